"""What was predicted, on the page: a table beside the run's events, legs over the slider, a dashed loss; names are text."""

from dataclasses import replace

import numpy as np
import pytest

from stagescope.landscape.saddle_path import Leg, Predicted, SaddlePath
from stagescope.show.page import page
from stagescope.show.portrait import with_predicted_loss
from tests.browser.samples import portrait
from tests.browser.test_hostile import hostile


def predicted(name="first", text=str):
    """A portrait whose event `focus` comes at 5, predicted at 4, with one event beyond the end and one that never comes."""
    made, time = portrait(name), np.array([0.0, 4.0, 20.0])
    events = {
        "focus": Predicted(4.0, 3.5, 4.5),
        text("late"): Predicted(30.0, 29.0, 31.0),
        text("none"): Predicted(None, reason=text("nothing grows"), beyond=np.inf, absent=True),
    }
    legs = (
        Leg(text("(0,0)"), 0.0, 4.0, 1.0, "embedding", 0.2, lambda: ("settled", (0.2,))),
        Leg("(1,0)", 4.0, 30.0, 0.5, None, None, lambda: ("passed", ())),
        Leg("(2,0)", 30.0, None, 0.5, None, None, lambda: ("passed", ())),
    )
    path = SaddlePath(legs, events, (), 0.02, time, {}, losses=np.array([1.1, 0.6, 0.1]))
    return replace(made, prediction=path, views=with_predicted_loss(made.views, path, made.run))


@pytest.fixture
def show(visit, tmp_path):
    def show(*portraits, **how):
        path = tmp_path / "page.html"
        path.write_text(page(portraits), encoding="utf-8")
        return visit(path, **how)

    return show


OUTSIDE = """() => [...document.querySelectorAll('.ribbon .segment')].filter((one) => {
    const name = one.querySelector('bdi').getBoundingClientRect();
    const [box, strip] = [one, one.parentElement].map((each) => each.getBoundingClientRect());
    const room = Math.max(2, parseFloat(one.style.width.match(/([0-9.]+)%/)[1]) / 100 * strip.width);
    return box.width > room + 1 || (name.width > 0 && (name.right > box.right + 0.5 || name.width < 20));
}).map((one) => one.title)"""
"""Stages that are wider than they last, or whose name stands outside of them or has no room."""


@pytest.mark.long
def test_events_legs_and_loss(show):
    seen = show(predicted())
    seen.whole()
    rows = seen.panel("prediction").locator("tbody tr")
    assert rows.nth(0).inner_text().split() == ["focus", "4", "3.5", "to", "4.5", "5", "1.25"]
    assert rows.nth(1).inner_text().split()[:2] == ["late", "30"]
    assert "after the end of the run" in rows.nth(1).inner_text()
    assert "does not come: nothing grows" in rows.nth(2).inner_text()
    titles = [segment.get_attribute("title") for segment in seen.page.locator(".segment").all()]
    assert [title.split(",")[0] for title in titles if "predicted" in title] == [
        "predicted: stage predicted (0",
        "predicted: stage predicted (1",
    ]
    assert seen.page.locator(".lane-name").all_inner_texts() == ["predicted"]
    for width in (1280, 400):
        seen.resize(width)
        assert seen.page.evaluate(OUTSIDE) == [], width
    assert "predicted" in seen.panel("loss").locator(".legend").first.inner_text()
    for width in (1400, 390):
        seen.resize(width)
        assert seen.page.evaluate("document.documentElement.scrollWidth <= innerWidth"), width


@pytest.mark.long
def test_a_reason_takes_a_few_lines_of_a_narrow_page(show):
    reason = "on the last leg nothing grows faster than 4.4e-09, less than one e-fold in the time that is left"
    seen = show(predicted(text=lambda text: text.replace("nothing grows", reason)), width=390, height=900)
    seen.whole()
    assert seen.panel("prediction").locator("tbody tr").nth(2).bounding_box()["height"] < 150


@pytest.mark.long
def test_a_click_goes_to_the_event_of_the_run(show):
    seen = show(predicted())
    seen.whole()
    seen.click(seen.panel("prediction").locator("button.jump").first)
    assert seen.page.evaluate("stagescope.time()") == 5.0


def test_several_runs_keep_a_colour_each_and_their_predictions_are_named(show):
    seen = show(predicted(), predicted("second"))
    legend = seen.panel("loss").locator(".legend").first.inner_text()
    assert [word in legend for word in ("first, predicted", "second, predicted")] == [True, True]


def test_names_are_text(show):
    """The page checks itself that nothing ran and nothing was loaded."""
    seen = show(predicted(text=hostile))
    seen.whole()
    assert "nothing grows </script><img src=x onerror=alert(1)>" in seen.panel("prediction").inner_text()
    assert seen.panel("prediction").locator("img").count() == 0
