"""Runs with something wrong or unusual still give a useful page that says so."""

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

import stagescope as ss
from stagescope.papers.focus_dilution.observables import token_curves
from stagescope.show.page import page
from stagescope.views.curves import spread
from stagescope.views.view import Curve, Level, Matrices
from tests.browser.samples import FOCUS, portrait, run
from tests.show.runs import broken, small

MANY = 100_000
SCALES = """() => [...document.querySelectorAll('.uplot')].map(plot => { const canvas = plot.querySelector('canvas');
    const left = Math.floor((plot.querySelector('.u-over').offsetLeft - 6) * devicePixelRatio);
    const pixels = left > 22 ? canvas.getContext('2d').getImageData(20, 0, left - 20, canvas.height * 0.8).data : [];
    return {left, drawn: pixels.some((value, i) => i % 4 === 3 && value > 60)}; })"""
"""Whether ink stands left of each plot, where the numbers of the axis of values are; its name is farther left."""
TICKS = """() => [...document.querySelectorAll('.bar-ticks')].map(bar => [...bar.children].map(tick => {
    const box = tick.getBoundingClientRect(); return [box.left, box.right]; }))"""
"""From where to where each number under a colour bar goes."""


@pytest.fixture
def show(visit, tmp_path):
    """A page of portraits, opened."""

    def show(*portraits, **how):
        path = tmp_path / "page.html"
        path.write_text(page(portraits, **how), encoding="utf-8")
        return visit(path)

    return show


def pixels_of(map_) -> np.ndarray:
    """Red, green, blue and opacity of each cell of a heat map."""
    width, height, data = map_.evaluate(
        "map => [map.width, map.height, Array.from(map.getContext('2d').getImageData(0, 0, map.width, map.height).data)]"
    )
    return np.reshape(data, (height, width, 4))


def said(seen) -> str:
    return seen.page.locator("main").inner_text()


def with_view(made, slot, **changes):
    return replace(made, views=tuple(replace(view, **changes) if view.slot == slot else view for view in made.views))


def test_numbers_that_are_none(show):
    made = portrait()
    values, loss = made.views[1].values.copy(), made.views[0].curves[0].values.copy()
    values[20:, 0, 3] = np.nan
    values[:, 1, 0, 0] = np.inf
    loss[30:] = np.nan
    seen = show(with_view(with_view(made, "attention", values=values), "loss", curves=(Curve("population", loss),)))
    seen.scrub(25)
    assert seen.value("attention", 0, 0, 3, 1)["value"] is None or np.isnan(seen.value("attention", 0, 0, 3, 1)["value"])
    assert seen.value("attention", 0, 0, 2, 1)["value"] == pytest.approx(values[25, 0, 2, 1], abs=0.01)
    seen.panel("attention").locator("canvas.tile-cells").first.focus()
    seen.press("ArrowDown", "ArrowDown", "ArrowDown")
    assert "not a" in seen.panel("attention").locator(".tip").inner_text()
    seen.scrub(40)
    assert "NaN" in said(seen) or "not a" in said(seen)


def test_all_numbers_are_none(show):
    made = portrait()
    nothing = np.full_like(made.views[1].values, np.nan)
    loss = Curve("population", np.full(made.run.frames, np.nan))
    seen = show(with_view(with_view(made, "attention", values=nothing), "loss", curves=(loss,)))
    seen.scrub(3)
    assert seen.position == 3


def test_one_frame(show):
    seen = show(portrait(frames=1))
    assert seen.position == 0
    assert "frame 1 of 1" in said(seen)
    seen.press("ArrowRight", "End", "Space", "e", "PageDown")
    assert seen.position == 0
    assert seen.value("attention", 0, 0, 0, 0)["value"] == pytest.approx(0.2, abs=0.01)


def test_names_of_close_levels_do_not_overlap(show):
    """At the top of the plot too, where a name has no room above its line."""
    made = portrait()
    top = float(made.views[0].curves[0].values.max())
    levels = tuple(Level(f"level {i}", top * 0.97**i) for i in range(5))
    seen = show(with_view(made, "loss", levels=levels))
    boxes = seen.page.evaluate(
        """() => [...document.querySelectorAll('.level-name:not([hidden])')].map(name => {
            const box = name.getBoundingClientRect(); return [box.top, box.bottom]; })"""
    )
    assert len(boxes) == 5
    for (_, bottom), (above, _) in pairwise(sorted(boxes)):
        assert above >= bottom - 0.5


def test_no_attention(show):
    made = portrait()
    seen = show(replace(made, views=made.views[:1], stages=None, ledger=None, ladder=None))
    assert seen.page.locator("section.panel canvas.tile-cells").count() == 0
    seen.scrub(12)
    assert "frame 13 of 41" in said(seen) or "13 of 41" in seen.slider.get_attribute("aria-valuetext")


def test_nothing_to_show(show):
    """No view at all: the page still says what the run was."""
    seen = show(replace(portrait(), views=(), stages=None, ledger=None, ladder=None))
    assert "a note about this run" in said(seen)


@pytest.mark.long
@pytest.mark.parametrize("status", ["diverged", "failed", "interrupted"])
def test_a_run_that_failed_says_so_at_the_top(show, status):
    made = portrait(status=status, reason="the loss is not finite from t = 3 on")
    seen = show(made)
    banner = seen.page.get_by_text("the loss is not finite from t = 3 on").first
    assert banner.is_visible()
    assert banner.bounding_box()["y"] < 400
    assert status in said(seen)


def test_many_frames_are_counted(show):
    """10^5 frames: curves hold all of them, a thinned view says how many it shows, the scrubber reaches each."""
    time = np.linspace(0.0, 100.0, MANY)
    loss = np.exp(-time / 30)
    kept = spread(MANY, 1200)
    assert kept is not None
    values = np.repeat(np.linspace(0, 1, len(kept))[:, None, None, None], 4, axis=3).reshape(-1, 1, 2, 2)
    made = portrait()
    thin = Matrices("attention", "Attention", "Thinned.", values, ("one",), ("a", "b"), ("c", "d"), frames=kept)
    whole = replace(made.views[0], curves=(Curve("population", loss),))
    seen = show(replace(made, run=run(time, loss), views=(whole, thin)))
    assert "1,200 of 100,000 frames" in seen.panel("attention").inner_text()
    assert "of 100,000 frames" not in seen.panel("loss").inner_text()
    assert seen.frames == MANY
    seen.scrub(77_777)
    at = int(np.argmin(np.abs(kept - 77_777)))
    assert seen.value("attention", 0, 0, 1, 1)["value"] == pytest.approx(values[at, 0, 1, 1], abs=0.01)
    assert f"frame {kept[at] + 1:,} of 100,000" in seen.panel("attention").inner_text()
    assert "77,778" in said(seen)


def test_two_runs_on_one_clock(show):
    """Each run shows its own frame nearest to the time, and prints its number."""
    first, second = portrait("first", frames=41, until=20.0), portrait("second", frames=11, until=20.0, seed=1)
    seen = show(first, second)
    assert seen.frames == 41
    seen.scrub(17)  # t = 8.5: frame 18 of the first; of the second, t = 8 is nearer than 10
    assert "frame 18 of 41" in seen.panel("attention").inner_text()
    assert "frame 5 of 11" in seen.panel("attention").inner_text()
    for i, (made, frame) in enumerate([(first, 17), (second, 4)]):
        told = seen.value("attention", i, 1, 2, 2)
        assert abs(told["value"] - made.views[1].values[frame, 1, 2, 2]) <= told["precision"]
    assert seen.panel("attention").count() == 1


def test_runs_of_different_length_share_the_union_of_frames(show):
    first, second = portrait("first", frames=5, until=4.0), portrait("second", frames=4, until=6.0)
    seen = show(first, second)
    assert seen.frames == 6  # 0, 1, 2, 3, 4 and 6
    seen.press("End")
    assert seen.page.evaluate("() => window.stagescope.time()") == 6.0
    assert "frame 5 of 5" in seen.panel("attention").inner_text()


def test_two_scenes_have_a_scrubber_each(show):
    """Steps are never put on the clock of flow time."""
    flow, adam = portrait("flow"), portrait("adam", clock="step", frames=21, until=200)
    seen = show(flow, adam)
    assert seen.page.get_by_role("tab").count() == 2
    seen.scrub(10)
    seen.tab(1)
    assert seen.page.evaluate("() => window.stagescope.scene().clock") == "step"
    assert seen.frames == 21
    seen.tab(0)
    assert seen.page.evaluate("() => window.stagescope.scene().clock") == "t"
    assert seen.page.evaluate("() => window.stagescope.scene().position") == 10


@pytest.fixture(scope="module")
def papers(tmp_path_factory):
    """A small run of each paper and one whose numbers break, on one page, as the command makes it; no claims, which take long."""
    runs = [small("token"), small("pairwise"), small("regression"), broken(small("heads"), 6)]
    path = ss.report(runs, tmp_path_factory.mktemp("papers") / "papers.html", skip=("ladder", "ledger"), progress=False)
    return path, runs


def test_real_runs_of_each_paper(visit, papers):
    path, runs = papers
    seen = visit(path)
    frames = []
    for number in range(seen.page.get_by_role("tab").count() - 1):  # the last one is Play
        seen.tab(number)
        seen.whole()
        seen.press("End")
        assert seen.page.locator(".failure").count() == 0
        assert seen.page.locator("section.panel").count() >= 4
        frames += seen.page.evaluate("() => window.stagescope.scene().runs.map(run => run.time.length)")
    assert sorted(frames) == sorted(run.frames for run in runs)

    seen.tab(0)
    seen.scrub(31)
    truth = token_curves(runs[0]).attention[31]  # by value, against the model
    for row, column in np.ndindex(truth.shape):
        told = seen.value("attention", 0, 0, row, column)
        assert abs(told["value"] - truth[row, column]) <= told["precision"] + 1e-12


@pytest.mark.long
def test_an_own_run_that_diverged(visit, tmp_path):
    loss = ss.JaxObjective(lambda params: ((params["A"] @ params["A"] - 1.0) ** 2).sum())
    wild = ss.evolve(loss, {"A": 2.0 * np.eye(3)}, ss.Descent(lr=2.0, steps=100))
    assert wild.status == "diverged"
    seen = visit(ss.report(wild, tmp_path / "wild.html"))
    assert "diverged" in said(seen)
    assert seen.page.get_by_text("lower the rates").first.is_visible()
    seen.whole()
    ends = seen.page.evaluate(SCALES)
    assert ends
    assert all(end["drawn"] for end in ends)  # the axis of values has room beside the curves, which numbers fill
    bars = seen.page.evaluate(TICKS)
    assert bars
    assert all(right <= left for bar in bars for (_, right), (left, _) in pairwise(bar))


def test_events_are_where_the_portrait_says(show):
    made = portrait()
    seen = show(made)
    seen.press("e")
    assert seen.page.evaluate("() => window.stagescope.time()") == pytest.approx(FOCUS * 20.0, abs=0.25)


def damaged(text: str, block: int) -> str:
    """The page with some letters of a block cut out."""
    start = text.index(">", text.index(f'id="block-{block}"')) + 1
    return text[:start] + text[start : start + 8] + text[start + 12 :]


def test_a_damaged_file_says_what_to_do(visit, tmp_path):
    path = tmp_path / "page.html"
    path.write_text(damaged(page([portrait()]), 0), encoding="utf-8")
    seen = visit(path)
    seen.whole()
    assert "Make the report anew" in seen.page.locator(".failure").first.inner_text()


def test_an_old_browser_is_told_which_one_to_use(browser, tmp_path):
    path = tmp_path / "page.html"
    path.write_text(page([portrait()]), encoding="utf-8")
    context = browser.new_context()
    context.add_init_script("delete window.DecompressionStream")
    old = context.new_page()
    old.goto(path.as_uri())
    old.locator(".failure").first.wait_for()
    assert "Firefox 113" in old.locator(".failure").first.inner_text()
    context.close()


def test_one_frame_recorded_is_said_as_one(show):
    seen = show(portrait(frames=1, status="failed", reason="no room"))
    assert "Only one frame was recorded" in said(seen)


@pytest.mark.long
def test_infinity_is_painted_as_no_number_exact_or_not(visit, tmp_path):
    made = portrait()
    values = made.views[1].values.copy()
    values[:, 0, 0, 0], values[:, 0, 0, 1] = np.inf, np.nan
    for exact in (False, True):
        path = tmp_path / f"{exact}.html"
        path.write_text(page([with_view(made, "attention", values=values)], exact=exact), encoding="utf-8")
        seen = visit(path)
        pixels = pixels_of(seen.panel("attention").locator("canvas.tile-cells").first)
        assert pixels[0, 0, 3] == pixels[0, 1, 3] == 0
        assert pixels[1, 0, 3] == 255
        assert seen.panel("attention").get_by_text("no finite number").is_visible()
