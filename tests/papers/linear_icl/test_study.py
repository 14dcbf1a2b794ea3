"""The study: options, frames that resolve drops, stages, given starts, steps on batches, predictions."""

import numpy as np
import pytest

import stagescope as ss
from stagescope.papers.linear_icl import forms
from stagescope.papers.linear_icl.loss import LinearPopulation
from stagescope.papers.linear_icl.model import LinearAttention
from stagescope.papers.linear_icl.process import RegressionTask
from tests.papers.linear_icl.test_forms import REF, drawn


@pytest.fixture(scope="module")
def ref() -> ss.Run:
    return ss.run_study("linear-icl", "ref", progress=False)


def test_a_run_of_the_page_has_its_drops_and_levels():
    """Seed 0 at scale .03 of the independent implementation, given as a start: drops at 352.2, 552.6, 664.4, 3971."""
    law = LinearPopulation(model=LinearAttention(dim=4, heads=5), process=REF)
    run = ss.evolve(law, drawn(0, 5, 4, 0.03), ss.GradientFlow(), until=6000.0, progress=False)
    found = ss.stages(run)
    assert list(found.events.values()) == pytest.approx([352.2, 552.6, 664.4, 3971], rel=3e-4)
    assert [stage.name for stage in found] == [f"plateau {m}" for m in range(5)]
    assert found.stages[3].facts["loss"] == pytest.approx(forms.levels(REF)[3], abs=1e-5)


def test_frames_of_a_run_resolve_its_drops(ref):
    """Half of the frames around a drop see it happen: the loss falls by less than a tenth of the start between two."""
    assert np.max(-np.diff(ref.series["loss"])) < 0.1
    assert ref.frames < 700


def test_the_replay_gives_the_same_events_as_dense_frames(ref):
    few = ss.run_study("linear-icl", "ref", frames=3, until=float(ref.t[-1]), progress=False)
    assert list(ss.reading(few).stages.events.values()) == pytest.approx(list(ss.reading(ref).stages.events.values()), rel=1e-4)


def test_too_few_heads_have_drops_that_do_not_count():
    found = ss.reading(ss.run_study("linear-icl", "ref", heads=2, progress=False)).stages
    assert found.states == {"d1": "reached", "d2": "reached", "d3": "not counted", "d4": "not counted"}
    assert "2 heads of rank 1 hold 2 directions" in found.notes["d3"]


def test_merged_heads_have_one_drop():
    found = ss.reading(ss.run_study("linear-icl", "merged", progress=False)).stages
    assert list(found.events) == ["d1"]
    assert [stage.name for stage in found] == ["plateau 0", "plateau 4"]


def test_steps_on_batches_follow_the_flow():
    """Drop times of SGD are .986 to 1.005 of the flow's on the page."""
    options = {"eigenvalues": (1.0, 0.5), "heads": 3, "context": 20, "init_scale": 0.1}
    flow = ss.reading(ss.run_study("linear-icl", **options, progress=False)).stages.events["d1"]
    assert flow is not None
    steps = ss.run_study(
        "linear-icl", **options, optimizer="gd", batch=256, lr=0.02, steps=int(1.5 * flow / 0.02), progress=False
    )
    assert ss.reading(steps).stages.events["d1"] == pytest.approx(flow, rel=0.06)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"merged": True, "rank": 2}, "merged heads have no rank"),
        ({"batch": 4}, "a flow has no steps"),
        ({"contexts": (3, 4), "context": 5}, "the lengths come from --contexts"),
        ({"init_scale": 0.0}, "give --until"),
        ({"eigenvalues": (0.1, 0.2)}, "list the largest first"),
        ({"eigenvalues": (1e200, 1.0)}, "others overflow"),
        ({"eigenvalues": (1e-300,)}, "others overflow"),
    ],
)
def test_what_makes_no_sense_is_refused(options, said):
    with pytest.raises(ss.InputError, match=said):
        ss.run_study("linear-icl", **options, progress=False)


def test_the_path_before_training_has_the_drops_of_the_run(ref):
    law = LinearPopulation(model=LinearAttention(dim=4, heads=5), process=REF)
    path = ss.saddle_path(law, ref.at(0))
    seen = ss.reading(ref).stages.events
    assert path.events["d1"].t == pytest.approx(seen["d1"], rel=1e-3)
    for name, event in path.events.items():
        assert event.low < seen[name] < event.high
    assert all(not leg.rates and leg.local_rate is None for leg in path.legs)


def test_the_path_of_merged_heads_has_a_rate():
    law = LinearPopulation(model=LinearAttention(dim=4, heads=8, rank=None), process=REF)
    path = ss.saddle_path(law, scale=1e-3)
    assert path.legs[0].rates == pytest.approx((np.sqrt(np.sum(REF.spectrum**4)),))
    assert path.events["d1"].t is not None


def test_paths_from_far_or_of_batches_are_refused():
    law = LinearPopulation(model=LinearAttention(dim=4, heads=2), process=REF)
    with pytest.raises(ss.InputError, match="near the origin"):
        ss.saddle_path(law, scale=1.0)
    batches = ss.sampled_loss(LinearAttention(dim=4, heads=2), REF, 8)
    with pytest.raises(ss.InputError, match="no flow to predict"):
        ss.saddle_path(batches, scale=0.01)


def test_views_name_winners_and_levels(ref):
    views = {view.slot: view for make in ss.reading(ref).views if (view := make()) is not None}
    assert [level.name for level in views["loss"].levels] == [f"l_{m}" for m in range(5)]
    assert "d1 head" in views["competition"].about
    assert views["map"].values.shape[1:] == (1, 4, 4)
    assert {curve.name for curve in views["regression"].curves} == {f"{m} components" for m in range(5)}


def test_a_task_of_one_direction_and_one_head():
    task = RegressionTask(eigenvalues=(1.0,), contexts=(1,))
    run = ss.run_study("linear-icl", eigenvalues=(1.0,), context=1, heads=1, progress=False)
    assert ss.reading(run).stages.events["d1"] is not None
    assert run.series["loss"][-1] == pytest.approx(forms.levels(task)[-1], abs=1e-5)


def test_a_head_has_one_place_and_so_one_colour_in_all_views(ref):
    found = {view.slot: view for view in (make() for make in ss.reading(ref).views) if view is not None}
    names = {slot: [curve.name for curve in found[slot].curves if curve.name != "now"] for slot in ("head-values", "competition")}
    assert names["head-values"] == names["competition"]
    assert len(set(names["competition"])) == 5


def test_a_large_start_is_run_and_judged():
    run = ss.run_study("linear-icl", init_scale=5.0, until=5.0, progress=False)
    assert run.status == "finished"
    assert "confirmed" not in {row.verdict for row in ss.check(run) if row.tag in ("LIN:first-drop", "LIN:levels")}


def test_plateaus_inside_a_head_are_not_compared_with_levels():
    """The second direction opens while the value of the head still rises: the loss has no rest there."""
    row = next(row for row in ss.check(ss.run_study("linear-icl", rank=9, heads=2, progress=False)) if row.tag == "LIN:levels")
    assert row.verdict == "inconclusive"
