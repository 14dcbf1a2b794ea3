"""Several runs on one page: what is equal looks equal, what is different can be told apart, and there is room for it."""

from dataclasses import replace

import numpy as np
import pytest

from stagescope.show.page import page
from tests.browser.samples import TOKENS, portrait
from tests.browser.test_odd import pixels_of

WIDER = (127 / 63) ** 2
"""Times the range: a value that is a code of the narrow range is one of the wide range, too."""


@pytest.fixture
def show(visit, tmp_path):
    def show(*portraits, exact=False, **how):
        path = tmp_path / "page.html"
        path.write_text(page(portraits, exact=exact), encoding="utf-8")
        return visit(path, **how)

    return show


def with_gap(made, values: np.ndarray, high: float):
    """The difference of heads replaced: the same matrix at every frame, in a range."""
    whole = np.broadcast_to(values, (made.run.frames, 1, TOKENS, TOKENS))
    views = [replace(view, values=whole, low=-high, high=high) if view.slot == "gap" else view for view in made.views]
    return replace(made, views=tuple(views))


@pytest.mark.long
@pytest.mark.parametrize("exact", [False, True], ids=["display", "exact"])
def test_equal_values_have_equal_colours_across_runs(show, exact):
    """Whatever range each run has of its own; the legend states the common one."""
    narrow = np.zeros((TOKENS, TOKENS))
    narrow[0] = [1.0, -1.0, 0.0, 1.0, -1.0]
    wide = narrow.copy()
    wide[1, 1], wide[2, 2] = WIDER, -WIDER
    seen = show(with_gap(portrait("a"), narrow, 1.0), with_gap(portrait("b"), wide, WIDER), exact=exact)
    seen.whole()
    maps = seen.panel("gap").locator("canvas.tile-cells")
    first, second = pixels_of(maps.nth(0)), pixels_of(maps.nth(1))
    assert np.array_equal(first[0], second[0])
    assert not np.array_equal(second[0, 0], second[1, 1])
    numbers = seen.panel("gap").locator(".bar-ticks span").all_inner_texts()
    assert (numbers[0], numbers[-1]) == (f"\u2212{WIDER:.2f}", f"{WIDER:.2f}")


@pytest.mark.long
def test_more_runs_than_colours_differ_in_dashes(show):
    seen = show(*(portrait(f"flow-seed-{i}", frames=5, seed=i) for i in range(12)))
    looks = (
        seen.panel("loss")
        .locator(".legend .entry line")
        .evaluate_all("lines => lines.map(line => `${line.style.stroke} ${line.getAttribute('stroke-dasharray')}`)")
    )
    assert len(looks) == len(set(looks)) == 12
    assert seen.panel("loss").locator(".legend .entry bdi").first.inner_text() == "seed-0"
    assert seen.page.locator(".player").bounding_box()["height"] < 240  # and the page keeps the rest of the screen
    seen.click(seen.page.get_by_role("button", name="flow-seed-11: stage plateau"))
    assert seen.page.evaluate("() => window.stagescope.time()") == 5.0


def test_escape_closes_a_map_that_the_mouse_enlarged(show):
    seen = show(*(portrait(f"run {i}", seed=i) for i in range(3)))
    panel = seen.panel("attention")
    before = panel.locator("canvas.tile-cells").nth(2).bounding_box()
    panel.locator("canvas.tile-cells").nth(2).dblclick()
    seen.settle()
    assert panel.locator("canvas.tile-cells:visible").count() == 1  # three beside each other would not be larger
    after = panel.locator("canvas.tile-cells:visible").bounding_box()
    assert after["width"] > 1.4 * before["width"]
    seen.press("Escape")
    assert panel.locator("canvas.tile-cells:visible").count() == 6
    assert panel.locator(".zoomed").count() == 0


@pytest.mark.long
def test_an_event_has_passed_when_its_time_has(show):
    """Not when the frame nearest to it is reached, which may be earlier."""
    seen = show(portrait(frames=9, until=20.0))  # a frame every 2.5; dilution is at 12, nearer to 12.5 than to 10
    chip = seen.page.locator(".chip[data-event=dilution]")
    seen.scrub(4)
    assert "passed" not in chip.get_attribute("class")
    seen.scrub(5)
    assert {"passed", "here"} <= set(chip.get_attribute("class").split())
    early = show(portrait(frames=6, until=20.0))  # every 4: focus, at 5, is nearest to 4
    chip = early.page.locator(".chip[data-event=focus]")
    early.scrub(1)
    assert "here" in chip.get_attribute("class").split()
    assert "passed" not in chip.get_attribute("class").split()
