"""Runs on one page: which share a scrubber, which views share a plot, and what these then say."""

from dataclasses import replace

import numpy as np
import pytest

from stagescope.show.page import page, scenes_of
from stagescope.show.portrait import portrait as portrait_of
from stagescope.views.axes import log_time, log_values
from stagescope.views.view import Curve, Curves, Level, Marks, Portrait
from tests.browser.samples import portrait
from tests.show.decode import Parts, precision
from tests.show.runs import small


def kind(name: str, study: str | None = None, field: str = "own", clock: str = "t") -> Portrait:
    made = portrait(name, clock=clock)
    return replace(made, run=replace(made.run, study=study, spec={**made.run.spec, "field": {"type": field}}))


def changed(made: Portrait, slot: str, **facts) -> Portrait:
    return replace(made, views=tuple(replace(view, **facts) if view.slot == slot else view for view in made.views))


def data(*portraits: Portrait, **options) -> list[dict]:
    return Parts(page(portraits, **options)).data()["scenes"]


def views(scene: dict, slot: str) -> list[dict | None]:
    """What each run of a scene shows in a slot."""
    return [next((view for view in run["views"] if view["slot"] == slot), None) for run in scene["runs"]]


def test_runs_with_the_same_views_on_one_clock_share_a_scene():
    given = [
        kind("a", "scan-snap", "scan-snap/PairwisePopulation"),
        kind("b", "focus-dilution", "focus-dilution/TokenPopulation"),
        kind("c", "scan-snap", "scan-snap/PairwiseSampled"),
        kind("d", "scan-snap", "scan-snap/PairwiseSampled", clock="step"),
        kind("e", None, "focus-dilution/TokenPopulation"),
        kind("f", None, "own"),
        kind("g", None, "Unheard"),
    ]
    assert [[one.name for one in scene] for scene in scenes_of(given)] == [["a", "c"], ["b", "e"], ["d"], ["f"], ["g"]]
    scenes = data(*given)
    titles = ["Scan and snap (clock: t)", "Focus and dilution", "Scan and snap (clock: step)", "own", "Unheard"]
    assert [scene["title"] for scene in scenes] == titles
    assert [scene["clock"] for scene in scenes] == ["t", "t", "step", "t", "t"]


def test_unlike_models_of_one_study_do_not_share_a_plot():
    """Cross-entropy of a student and squared error of a regression are no two curves of one axis."""
    scenes = data(kind("ladder", "incremental", "HeadsLoss"), kind("mirror", "incremental", "MirrorFlow"))
    assert [[run["name"] for run in scene["runs"]] for scene in scenes] == [["ladder"], ["mirror"]]
    assert [scene["title"].split(" (")[1] for scene in scenes] == ["ladder)", "mirror)"]


@pytest.mark.parametrize("exact", [False, True])
def test_matrices_side_by_side_have_one_range_of_colours(exact):
    first, second = portrait("a"), portrait("b", seed=1)
    wide = changed(second, "attention", values=3 * second.views[1].values, high=3.0)
    wide = changed(wide, "gap", low=0.0, high=7.0)
    parts = Parts(page([first, wide], exact=exact))
    scene = parts.data()["scenes"][0]
    assert [(view["low"], view["high"]) for view in views(scene, "attention")] == [(0.0, 3.0)] * 2
    assert [(view["low"], view["high"]) for view in views(scene, "gap")] == [(-7.0, 7.0)] * 2, "one diverging map for both"
    for made, view in zip((first, wide), views(scene, "attention"), strict=True):
        shown = parts.array(view["values"])
        allowed = 1e-6 if exact else precision(view["values"], shown) + 1e-12
        assert np.all(np.abs(shown - made.views[1].values) <= allowed), "values keep the precision of their own range"
    alone = data(first)[0]
    assert views(alone, "attention")[0]["high"] == 1.0


@pytest.mark.parametrize(
    ("slot", "facts"),
    [
        ("loss", {"axis": "squared error"}),
        ("attention", {"row_axis": "class"}),
        ("attention", {"column_axis": "position"}),
        ("attention", {"marks": Marks(("lag 1", "lag 2"), np.zeros((5, 5), dtype=np.uint8))}),
        ("attention", {"marks": None}),
    ],
)
def test_views_that_mean_different_things_have_slots_of_their_own(slot, facts):
    odd = changed(portrait("b"), slot, **facts)
    taken = replace(odd.views[3], slot=f"{slot}-2", title="A slot that has the name")
    scene = data(portrait("a"), replace(odd, views=(*odd.views, taken)), portrait("c"))[0]
    first, none, third = views(scene, slot)
    assert none is None
    assert first["title"] == third["title"]
    assert first["title"].endswith(" (a, c)")
    apart = views(scene, f"{slot}-3")
    assert [view is None for view in apart] == [True, False, True]
    assert apart[1]["title"].endswith(" (b)")
    assert all(views(scene, "plane")), "the others stay together"


def test_views_with_other_titles_are_apart_and_keep_them():
    scene = data(portrait("a"), changed(portrait("b"), "plane", title="Heads by their values"))[0]
    assert [view and view["title"] for view in views(scene, "plane")] == ["Embedding", None]
    assert [view and view["title"] for view in views(scene, "plane-2")] == [None, "Heads by their values"]


def test_sentences_say_for_which_run_they_hold():
    about = "The loss over time."
    given = [portrait(name) for name in "abc"]
    given[1] = changed(given[1], "loss", about=f"{about} Token 2 is frequent.")
    given[2] = changed(given[2], "loss", about=f"{about} Token 3 is frequent.")
    assert {view["about"] for view in views(data(*given)[0], "loss")} == {
        f"{about} b: Token 2 is frequent. c: Token 3 is frequent."
    }
    assert {view["about"] for view in views(data(given[0], portrait("d"))[0], "loss")} == {about}
    assert views(data(given[1])[0], "loss")[0]["about"] == given[1].views[0].about


def test_levels_that_differ_name_their_run():
    same, other = Level("start", 1.5), Level("floor", 0.2)
    first = changed(portrait("a"), "loss", levels=(same, Level("floor", 0.1)))
    second = changed(portrait("b"), "loss", levels=(same, other))
    names = [[level["name"] for level in view["levels"]] for view in views(data(first, second)[0], "loss")]
    assert names == [["start", "floor (a)"], ["start", "floor (b)"]]
    assert [level["name"] for level in views(data(first)[0], "loss")[0]["levels"]] == ["start", "floor"]


def test_real_runs_of_one_family_keep_their_slots():
    """The flow and its modified decoder: nothing that belongs together is torn apart, and the loss says what is computed."""
    given = [portrait_of(small(name), name, skip=("ledger", "ladder")) for name in ("pairwise", "pinv")]
    (scene,) = data(*given)
    for slot in ("loss", "attention", "scores", "common-mass", "norms", "embedding"):
        assert all(views(scene, slot)), slot
    assert "pinv: The modified decoder does not descend a loss" in views(scene, "loss")[0]["about"]
    tops = [float(np.nanmax(np.abs(view.values))) for made in given for view in made.views if view.slot == "scores"]
    assert [view["high"] for view in views(scene, "scores")] == [max(tops)] * 2


# axes


def test_time_starts_logarithmic_where_frames_are_early():
    even, early = portrait("a"), portrait("b")
    time = np.concatenate([[0.0], np.geomspace(1e-3, 20.0, 40)])
    early = replace(
        early, run=replace(early.run, series=type(early.run.series).of({"t": time, "loss": early.run.series["loss"]}))
    )
    assert [scene["log_time"] for scene in (*data(even), *data(early))] == [False, True]
    assert not log_time(np.array([0.0]))
    assert not log_time(np.zeros(10))


@pytest.mark.parametrize(
    ("values", "log", "expected"),
    [
        (np.geomspace(1, 1e-3, 20), True, True),
        (np.geomspace(1, 1e-3, 20), False, False),
        (np.geomspace(1, 0.1, 20), True, False),
        (np.append(np.full(30, -1.0), [1e-3, 1.0]), True, False),
        (np.full(5, np.nan), True, False),
    ],
)
def test_values_start_logarithmic_where_they_are_spread(values, log, expected):
    view = Curves("s", "S", "About.", "axis", (Curve("c", values),), log=log)
    assert log_values([view]) is expected


def test_the_page_and_the_figures_start_alike():
    from matplotlib import pyplot

    from stagescope.show.static import drawings

    found = portrait_of(small("pairwise"), skip=("ledger", "ladder"))
    (scene,) = data(found)
    drawn = drawings(found)
    seen = set()
    for view in scene["runs"][0]["views"]:
        if view["kind"] == "curves":
            axes = drawn[view["slot"]]().axes[0]
            assert (axes.get_yscale() == "log") == view["start_log"], view["slot"]
            assert (axes.get_xscale() == "log") == scene["log_time"], view["slot"]
            seen.add(view["start_log"])
    pyplot.close("all")
    assert seen == {False, True}


def test_curves_of_a_slot_start_on_one_axis():
    spread = Curve("c", np.geomspace(1, 1e-4, 41))
    scene = data(portrait("a"), changed(portrait("b"), "loss", curves=(spread,)))[0]
    assert [view["start_log"] for view in views(scene, "loss")] == [True, True]
