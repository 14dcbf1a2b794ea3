"""The address holds what is shown: opened afresh, it shows the same."""

from dataclasses import replace

import numpy as np
import pytest

from stagescope.show.page import page
from stagescope.views.view import Curve
from tests.browser.samples import portrait, run


@pytest.fixture(scope="module")
def sample(tmp_path_factory):
    path = tmp_path_factory.mktemp("state") / "page.html"
    portraits = [portrait("flow"), portrait("adam", clock="step", frames=21, until=200)]
    path.write_text(page(portraits), encoding="utf-8")
    return path


def state(seen) -> dict:
    return seen.page.evaluate(
        """() => { const scene = window.stagescope.scene(), look = getComputedStyle(document.documentElement);
            return {clock: scene.clock, position: scene.position, theme: look.backgroundColor,
                axis: scene.scale.kind, log: scene.isLog('loss'), speed: scene.settings.get('speed')}; }"""
    )


def address(seen, *parts: str) -> str:
    """The hash, once it has been written with all the parts: keys pressed in a row may be written one by one."""
    seen.until("parts => parts.every(part => location.hash.includes(part))", list(parts))
    return seen.page.evaluate("() => location.hash")


@pytest.mark.long
def test_a_link_opens_at_the_same_place(visit, sample):
    seen = visit(sample)
    seen.scrub(23)
    seen.press("d", "x", "l", "]")
    fresh = visit(sample, hash=address(seen, "frame=23", "theme=", "axis=log", "loss=log", "speed="))
    assert state(fresh) == state(seen)
    assert state(fresh)["position"] == 23
    assert state(fresh)["axis"] == "log"
    assert state(fresh)["theme"] != state(visit(sample))["theme"]


@pytest.mark.long
def test_the_scene_is_in_the_address(visit, sample):
    seen = visit(sample)
    seen.tab(1)
    seen.press("End")
    hash = address(seen, "scene=1", "frame=20")
    fresh = visit(sample, hash=hash)
    assert (state(fresh)["clock"], state(fresh)["position"]) == ("step", 20)


def test_a_written_address_works(visit, sample):
    seen = visit(sample, hash="#scene=0&frame=17&axis=log&loss=log&theme=dark&speed=2")
    found = state(seen)
    assert (found["position"], found["axis"], found["log"], found["speed"]) == (17, "log", True, "2")
    assert seen.value("attention", 0, 0, 0, 0)["value"] == pytest.approx(portrait().views[1].values[17, 0, 0, 0], abs=0.01)


def test_a_changed_address_moves_an_open_page(visit, sample):
    seen = visit(sample)
    seen.page.evaluate("() => { location.hash = '#frame=31'; }")
    seen.until("() => window.stagescope.scene().position === 31")
    seen.settle()
    assert seen.position == 31


BAD = ["#frame=999999&scene=77", "#frame=-3", "#frame=NaN&theme=pink&axis=%3Cb%3E", "#%", "#=&&&=", "#frame=1e9&speed=__proto__"]


def test_a_bad_address_does_no_harm(visit, sample):
    seen = visit(sample, BAD[0])
    assert 0 <= state(seen)["position"] <= 40
    for hash in BAD[1:]:
        seen.page.evaluate("hash => { location.hash = hash; }", hash)
        seen.settle()
        assert 0 <= state(seen)["position"] <= 40, hash


@pytest.mark.long
def test_back_does_not_go_through_frames(visit, sample):
    """Scrubbing writes no history."""
    seen = visit(sample)
    before = seen.page.evaluate("() => history.length")
    for position in (3, 9, 12):
        seen.scrub(position)
        address(seen, f"frame={position}")
    assert seen.page.evaluate("() => history.length") == before


@pytest.fixture(scope="module")
def spread(tmp_path_factory):
    """Times over many decades, and a loss that falls over many: the page opens with logarithmic axes."""
    made = portrait("flow")
    time = np.concatenate([[0.0], np.logspace(-4, 4, 40)])
    loss = 1e-9 + np.exp(-np.sqrt(time))
    view = replace(made.views[0], curves=(Curve("population", loss),), levels=())
    path = tmp_path_factory.mktemp("spread") / "page.html"
    text = page([replace(made, run=run(time, loss), views=(view, *made.views[1:]), stages=None, ledger=None, ladder=None)])
    path.write_text(text, encoding="utf-8")
    return path


def test_the_page_opens_with_the_axes_that_suit_it(visit, spread):
    seen = visit(spread)
    assert (state(seen)["axis"], state(seen)["log"]) == ("log", True)
    pressed = seen.panel("loss").locator("[aria-pressed=true]").filter(has_text="log")
    assert pressed.all_inner_texts() == ["log", "log time"]


@pytest.mark.long
def test_the_address_overrides_the_axes(visit, spread):
    seen = visit(spread, hash="#axis=time&loss=linear")
    assert (state(seen)["axis"], state(seen)["log"]) == ("time", False)
    seen.press("x", "l")
    assert (state(seen)["axis"], state(seen)["log"]) == ("log", True)
    address(seen, "axis=log", "loss=log")
    seen.press("x")
    assert state(seen)["axis"] == "change"
    seen.press("x", "l")
    fresh = visit(spread, hash=address(seen, "axis=time", "loss=linear"))
    assert (state(fresh)["axis"], state(fresh)["log"]) == ("time", False)
