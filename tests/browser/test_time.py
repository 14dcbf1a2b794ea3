"""Time that follows what happens: one scale for slider, ribbons and plots, by change where stages are short, and a zoom."""

from dataclasses import replace

import numpy as np
import pytest

from stagescope.detect.stage import Stage
from stagescope.show.page import page
from stagescope.views.axes import EVEN
from tests.browser.samples import attention, portrait, run

FRAMES, UNTIL = 401, 40.0
QUICK = (10.0, 10.5)
"""A stage of 1.25 % of the time, in which half of all change happens."""
TIME = np.linspace(0.0, UNTIL, FRAMES)
FAR = np.interp(TIME, [0.0, *QUICK, UNTIL], [0.0, 0.25, 0.75, 1.0])


@pytest.fixture(scope="module")
def sample(tmp_path_factory):
    """Attention goes along a straight line, so that the widths of stages are known."""
    made = portrait(frames=FRAMES, until=UNTIL)
    ends = attention(2)
    values = ends[0] + FAR[:, None, None, None] * (ends[1] - ends[0])
    views = tuple(replace(view, values=values) if view.slot == "attention" else view for view in made.views)
    stages = (Stage("before", 0.0, QUICK[0], ""), Stage("quick", *QUICK, ""), Stage("after", QUICK[1], None, ""))
    made = replace(made, run=run(TIME, 0.1 + np.exp(-TIME / 4)), views=views, stages=replace(made.stages, stages=stages))
    path = tmp_path_factory.mktemp("time") / "page.html"
    path.write_text(page([made]), encoding="utf-8")
    return path


@pytest.fixture
def seen(visit, sample):
    return visit(sample)


def scale(seen) -> dict:
    """The scale as the scene has it, and where the present time is seen: on the slider, in a plot, as a share of the axis."""
    seen.settle()
    return seen.page.evaluate(
        """() => { const scene = window.stagescope.scene(), { scale } = scene;
            const over = document.querySelector('[data-slot=loss] .u-over').getBoundingClientRect();
            const now = document.querySelector('[data-slot=loss] .now').getBoundingClientRect();
            return { kind: scale.kind, window: scale.window, time: scene.time, share: scale.share(scene.time),
                slider: Number(document.querySelector('.slider').value),
                plot: (now.left + now.width / 2 - over.left) / over.width,
                said: document.querySelector('.bar-name').textContent }; }"""
    )


def width(seen, name: str) -> float:
    """Of a stage above the slider, as a share of all."""
    seen.settle()
    strip = seen.page.locator(".ribbon .strip").bounding_box()
    box = seen.page.locator(".ribbon .segment").filter(has_text=name).bounding_box()
    return box["width"] / strip["width"]


def drag(seen, locator, start: float, stop: float) -> None:
    locator.evaluate("one => one.scrollIntoView({block: 'center', behavior: 'instant'})")
    seen.settle()
    box = locator.bounding_box()
    middle = box["y"] + box["height"] / 2
    seen.page.mouse.move(box["x"] + start * box["width"], middle)
    seen.page.mouse.down()
    seen.page.mouse.move(box["x"] + stop * box["width"], middle, steps=4)
    seen.page.mouse.up()


def test_a_short_stage_opens_the_page_by_change(seen):
    assert scale(seen)["kind"] == "change"
    assert scale(seen)["said"] == "t, spaced by change of attention"
    assert width(seen, "quick") == pytest.approx((1 - EVEN) / 2 + EVEN / 80, abs=0.005)
    seen.panel("loss").get_by_role("button", name="time", exact=True).click()
    seen.until("() => window.stagescope.scene().scale.kind === 'time'")
    assert width(seen, "quick") == pytest.approx(1 / 80, abs=0.005)


def test_slider_and_plots_share_the_scale(seen):
    seen.open("#axis=time&zoom=5~20")
    for kind in ("time", "log", "change"):
        seen.page.evaluate("kind => window.stagescope.scene().settings.set('axis', kind)", kind)
        seen.scrub(120)
        found = scale(seen)
        assert found["kind"] == kind
        assert found["time"] == pytest.approx(12.0)
        assert found["window"] == pytest.approx([5, 20])
        assert found["slider"] == pytest.approx(found["share"], abs=1e-3)
        assert found["plot"] == pytest.approx(found["share"], abs=5e-3)


@pytest.mark.long
def test_dragging_along_an_axis_zooms_and_escape_goes_back(seen):
    seen.open("#axis=time")
    drag(seen, seen.panel("loss").locator(".axis-strip"), 0.25, 0.5)
    seen.until("() => window.stagescope.scene().scale.window")
    first = scale(seen)["window"]
    assert first == pytest.approx([10, 20], abs=0.2)
    drag(seen, seen.page.locator(".bar-times"), 0.0, 0.5)
    seen.until("before => window.stagescope.scene().scale.window[1] < before - 1", first[1])
    assert scale(seen)["window"] == pytest.approx([10, 15], abs=0.2)
    seen.press("Escape")
    assert scale(seen)["window"] == pytest.approx(first)
    seen.press("Escape")
    assert scale(seen)["window"] is None


def test_a_double_click_shows_a_stage_alone(seen):
    seen.page.locator(".ribbon .segment").filter(has_text="quick").dblclick()
    seen.until("() => window.stagescope.scene().scale.window")
    low, high = scale(seen)["window"]
    assert QUICK[0] - 2 < low < QUICK[0] < QUICK[1] < high < QUICK[1] + 2
    assert width(seen, "quick") > 0.85


@pytest.mark.long
def test_keys_zoom_and_the_window_follows(seen):
    seen.open("#axis=time")
    seen.scrub(200)
    seen.press("+", "+")
    assert scale(seen)["window"] == pytest.approx([15, 25])
    seen.press("-")
    assert scale(seen)["window"] == pytest.approx([10, 30])
    seen.press("End")
    assert scale(seen)["window"] == pytest.approx([20, 40])
    seen.press("0", "Home", "z")
    assert scale(seen)["window"] == pytest.approx([0, 10], abs=0.5)


def test_a_pinch_on_a_touch_pad_zooms(seen):
    seen.open("#axis=time")
    box = seen.panel("loss").locator(".u-over").bounding_box()
    seen.page.mouse.move(box["x"] + box["width"] / 2, box["y"] + 20)
    seen.page.keyboard.down("Control")
    seen.page.mouse.wheel(0, -70)
    seen.page.keyboard.up("Control")
    seen.until("() => window.stagescope.scene().scale.window")
    low, high = scale(seen)["window"]
    assert (low + high) / 2 == pytest.approx(20, abs=0.5)
    assert high - low == pytest.approx(40 * np.exp(-0.7), rel=0.05)


def pinch(seen, box, begin: float, end: float) -> None:
    """Two fingers, each `begin` of the width from the middle at first, `end` at last."""
    session = seen.context.new_cdp_session(seen.page)
    for kind, far in (("touchStart", begin), ("touchMove", (begin + end) / 2), ("touchMove", end), ("touchEnd", None)):
        shares = () if far is None else (0.5 - far, 0.5 + far)
        points = [
            {"x": box["x"] + share * box["width"], "y": box["y"] + box["height"] / 2, "id": i} for i, share in enumerate(shares)
        ]
        session.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": points})
    session.detach()


@pytest.mark.long
def test_two_fingers_zoom_plots_ribbons_and_the_scrubber(seen):
    seen.open("#axis=time")
    for where in ("[data-slot=loss] .u-over", ".ribbon .strip", ".slider", ".bar-times"):
        pinch(seen, seen.page.locator(where).first.bounding_box(), 0.1, 0.4)
        seen.until("() => window.stagescope.scene().scale.window")
        assert scale(seen)["window"] == pytest.approx([15, 25], abs=0.7), where  # what was under the fingers stays there
        seen.press("Escape")
        assert scale(seen)["window"] is None


@pytest.mark.long
def test_play_moves_by_change(seen):
    """Half of the playing is in the quick stage: after a few frames it is passed slowly, the rest quickly."""
    passed = seen.page.evaluate(
        """() => new Promise(done => { const scene = window.stagescope.scene(), found = [];
            const look = () => { const play = document.querySelector('.play.playing');
                if (!play) return done(found);
                found.push([performance.now(), scene.time]); requestAnimationFrame(look); };
            document.querySelector('.speed').value = '8';
            document.querySelector('.speed').dispatchEvent(new Event('change'));
            document.querySelector('.play').click(); requestAnimationFrame(look); })"""
    )
    times = np.array(passed)
    inside = times[(times[:, 1] >= QUICK[0]) & (times[:, 1] <= QUICK[1]), 0]
    assert np.ptp(inside) / np.ptp(times[:, 0]) == pytest.approx(0.45, abs=0.2)


@pytest.mark.long
def test_a_link_keeps_the_window(seen, visit, sample):
    seen.open("#axis=time&zoom=5~20&frame=60")
    seen.press("ArrowRight")
    seen.until("() => location.hash.includes('zoom=') && location.hash.includes('frame=61')")
    fresh = visit(sample, hash=seen.page.evaluate("() => location.hash"))
    assert scale(fresh)["window"] == pytest.approx([5, 20])
    fresh.page.get_by_role("button", name="Show all of it").click()
    assert scale(fresh)["window"] is None
