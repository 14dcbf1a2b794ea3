"""A page explains itself: what is shown, what happens now, what symbols mean, and a tour of the stages for a lecture."""

from dataclasses import replace

import pytest

from stagescope.show.page import page
from tests.browser.samples import DILUTION, FOCUS, portrait

UNTIL, FRAMES = 20.0, 41
STEP = UNTIL / (FRAMES - 1)


@pytest.fixture(scope="module")
def sample(tmp_path_factory):
    path = tmp_path_factory.mktemp("explained") / "page.html"
    path.write_text(page([portrait(frames=FRAMES, until=UNTIL)]), encoding="utf-8")
    return path


@pytest.fixture
def seen(visit, sample):
    return visit(sample)


def test_the_head_says_what_is_shown(seen):
    head = seen.page.locator(".about-runs")
    assert "Two heads learn a coin." in head.inner_text()
    assert head.locator("td").all_inner_texts()[1:3] == ["0.9", "0.1"]
    assert head.locator("a").get_attribute("href") == "https://arxiv.org/abs/2600.00001"


def test_runs_say_in_what_they_differ(visit, tmp_path):
    path = tmp_path / "page.html"
    configs = [{"study": "coins", "heads": 2, "width": 8}, {"study": "coins", "heads": 4, "width": 8}]
    runs = [portrait(f"run-{i}", frames=11, config=config) for i, config in enumerate(configs)]
    path.write_text(page(runs), encoding="utf-8")
    seen = visit(path)
    assert " ".join(seen.page.locator(".differs").inner_text().split()) == "The runs differ in: heads: 2 (run-0), 4 (run-1)"
    assert seen.page.locator(".about-words > p").first.inner_text() == "Two heads learn a coin."


def test_the_present_stage_is_said_in_words(seen):
    present = seen.page.locator(".present")
    assert "attention gathers on token 1" in present.inner_text()
    assert "Rung 1 saddle, where r opens at rate 2; it is left at t = 4 (predicted 3.9)" in present.inner_text()
    seen.scrub(30)
    assert "attention spreads" in present.inner_text()
    assert "Rung 1 saddle" not in present.inner_text()
    seen.scrub(0)
    seen.resize(320)
    cut = "() => { const all = document.querySelector('.present-words'); return all.scrollHeight > all.clientHeight + 2; }"
    assert seen.page.evaluate(cut)
    seen.click(present)
    assert not seen.page.evaluate(cut)
    assert seen.page.get_by_role("button", name="less").get_attribute("aria-expanded") == "true"


def test_symbols_explain_themselves(seen):
    """By the focus, under the pointer, and by a tap; Escape hides the tip."""
    tip = seen.page.get_by_role("tooltip")
    seen.panel("ladder").scroll_into_view_if_needed()
    term = seen.panel("ladder").locator(".term").first
    term.wait_for()
    seen.page.keyboard.press("Tab")
    term.focus()
    seen.until("() => !document.querySelector('#term-tip').hidden")
    assert len(tip.inner_text()) > 20
    assert term.get_attribute("aria-describedby") == tip.get_attribute("id")
    seen.press("Escape")
    assert tip.is_hidden()
    term.evaluate("one => one.blur()")
    seen.hover(seen.page.locator(".chip.missed"))
    assert tip.inner_text().startswith("all attention on one token")
    seen.page.mouse.move(2, 2)
    seen.until("() => document.querySelector('#term-tip').hidden")
    seen.click(term)
    assert len(tip.inner_text()) > 20


def tour(seen) -> tuple[str, str, float, bool]:
    seen.settle()
    guide = seen.page.locator(".guide")
    playing = seen.page.locator(".play.playing").count() == 1
    time = seen.page.evaluate("() => window.stagescope.time()")
    return guide.locator("h2").inner_text(), guide.locator(".guide-place").inner_text(), time, playing


def test_a_guided_tour_by_keys_alone(seen):
    seen.press("g")
    title, place, time, playing = tour(seen)
    assert (title, place, playing) == ("focus", "1 of 3", True)
    assert time < FOCUS * UNTIL
    assert seen.panel("attention").is_visible()
    assert seen.panel("loss").is_visible()
    assert seen.panel("plane").is_hidden()
    assert "attention gathers on token 1" in seen.page.locator(".guide").inner_text()
    seen.press("ArrowRight", "ArrowRight", "ArrowRight")
    title, place, time, _ = tour(seen)
    assert (title, place) == ("dilution", "3 of 3, last stop")
    assert seen.page.locator(".guide-place.beyond").count() == 1  # the third arrow went beyond the end
    assert time >= DILUTION * UNTIL
    seen.press("ArrowLeft")
    assert tour(seen)[:2] == ("plateau", "2 of 3")
    seen.press("Space")
    assert tour(seen)[3] is False
    seen.press("Escape")
    assert seen.page.locator(".guide").is_hidden()
    assert seen.panel("plane").is_visible()
    seen.press("Home", "ArrowRight")
    assert seen.position == 1


SIZES = """() => ['.bar-times span', '.ribbon .segment', '.legend', '.bar-ticks'].map((one) =>
    parseFloat(getComputedStyle(document.querySelector(one)).fontSize))"""


def test_a_run_of_one_stage_is_told_by_its_events_in_type_that_a_class_can_read(visit, tmp_path):
    made = portrait(frames=11, until=UNTIL)
    path = tmp_path / "page.html"
    alone = replace(made.explained, captions=made.explained.captions[:1])
    path.write_text(page([replace(made, explained=alone)]), encoding="utf-8")
    seen = visit(path)
    seen.resize(1920, 1080)
    seen.press("g", "ArrowRight", "ArrowRight")
    assert tour(seen)[:2] == ("dilution", "3 of 3, last stop")  # the stage, then the events that were reached
    assert f"At t = {DILUTION * UNTIL:g}." in seen.page.locator(".guide-text").inner_text()
    assert min(seen.page.evaluate(SIZES)) >= 18
    seen.resize(400, 900)
    seen.settle()
    cells = seen.panel("attention").locator("canvas.tile-cells").first.bounding_box()
    assert cells["y"] + cells["height"] <= seen.page.locator(".dock").bounding_box()["y"]


@pytest.mark.long
def test_a_tour_plays_a_stage_to_its_end(seen):
    seen.page.get_by_label("speed").select_option("8")
    seen.page.get_by_role("button", name="Guided tour").click()
    seen.until("() => window.stagescope.time() > 0 && !document.querySelector('.play.playing')")
    assert tour(seen)[2] == pytest.approx(FOCUS * UNTIL, abs=STEP)
    seen.page.get_by_role("button", name="end the tour").click()
    assert seen.page.locator(".guide").is_hidden()
