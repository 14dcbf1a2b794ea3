"""One scrubber: slider, keys, play, events, stages, ledger and ladder all move it, and everything follows."""

from dataclasses import replace

import numpy as np
import pytest

from stagescope.detect.stage import Stage
from stagescope.show.page import page
from stagescope.views.axes import change_of
from tests.browser.samples import DILUTION, FOCUS, attention, portrait

FRAMES, UNTIL = 201, 20.0
STEP = UNTIL / (FRAMES - 1)


@pytest.fixture(scope="module")
def sample(tmp_path_factory):
    path = tmp_path_factory.mktemp("scrubber") / "page.html"
    path.write_text(page([portrait(frames=FRAMES, until=UNTIL)]), encoding="utf-8")
    return path


@pytest.fixture
def seen(visit, sample):
    return visit(sample)


def here(seen) -> int:
    """The position, on which slider, words and the scene itself agree."""
    seen.settle()
    position = seen.position
    assert f"frame {position + 1} of {FRAMES}" in seen.page.locator(".readout").inner_text()
    assert seen.page.evaluate("() => window.stagescope.scene().position") == position
    assert seen.page.evaluate("() => window.stagescope.time()") == pytest.approx(position * STEP)
    return position


def test_a_page_begins_at_the_first_frame(seen):
    assert here(seen) == 0
    seen.press("End")
    assert here(seen) == FRAMES - 1


def test_the_slider_moves_everything(seen):
    seen.scrub(137)
    assert here(seen) == 137
    assert f"frame 138 of {FRAMES}" in seen.panel("attention").inner_text()
    told = seen.value("attention", 0, 1, 4, 4)
    assert abs(told["value"] - attention(FRAMES)[137, 1, 4, 4]) <= told["precision"]


def test_the_slider_says_where_it_is(seen):
    seen.scrub(100)
    assert seen.slider.get_attribute("aria-valuetext") == f"frame 101 of {FRAMES}, t = 10, stage plateau"


def test_dragging_the_thumb(seen):
    box = seen.slider.bounding_box()
    middle = box["y"] + box["height"] / 2
    seen.page.mouse.move(box["x"] + 9, middle)
    seen.page.mouse.down()
    seen.page.mouse.move(box["x"] + box["width"] * 0.5, middle, steps=5)
    seen.page.mouse.up()
    assert abs(here(seen) - 100) <= 4


KEYS = [
    (["ArrowRight"], 51),
    (["ArrowLeft"], 49),
    (["Shift+ArrowRight"], 60),
    (["Shift+ArrowLeft"], 40),
    (["PageDown"], 60),
    (["PageUp"], 40),
    (["Home"], 0),
    (["End"], FRAMES - 1),
    (["ArrowRight"] * 5 + ["ArrowLeft"] * 2, 53),
    (["End", "ArrowRight"], FRAMES - 1),
    (["Home", "ArrowLeft", "PageUp"], 0),
    (["e"], round(DILUTION * UNTIL / STEP)),
    (["Home", "e"], round(FOCUS * UNTIL / STEP)),
    (["Home", "e", "e", "Shift+E"], round(FOCUS * UNTIL / STEP)),
    (["End", "e"], FRAMES - 1),
]


@pytest.mark.long
@pytest.mark.parametrize("focus", ["page", "slider"])
def test_keys(seen, focus):
    """The same wherever the focus is: a slider that has it must not move twice."""
    for keys, expected in KEYS:
        seen.scrub(50)
        if focus == "slider":
            seen.slider.focus()
        seen.press(*keys)
        assert here(seen) == expected, keys


@pytest.mark.long
def test_play_goes_on_and_pauses(seen):
    play = seen.page.get_by_role("button", name="play", exact=True)
    play.click()
    seen.until("() => window.stagescope.scene().position > 10")
    seen.page.get_by_role("button", name="pause", exact=True).click()
    stopped = here(seen)
    assert 10 < stopped < FRAMES
    seen.page.wait_for_timeout(200)
    assert here(seen) == stopped


def test_space_plays_and_pauses(seen):
    seen.press("Space")
    seen.until("() => window.stagescope.scene().position > 3")
    seen.press("Space")
    stopped = here(seen)
    seen.page.wait_for_timeout(200)
    assert here(seen) == stopped


def test_play_ends_at_the_last_frame_and_begins_again(seen):
    seen.scrub(FRAMES - 4)
    seen.press("Space")
    seen.until(f"() => window.stagescope.scene().position === {FRAMES - 1}")
    seen.page.get_by_role("button", name="play", exact=True).wait_for()
    seen.press("Space")
    seen.until("() => window.stagescope.scene().position < 100 && window.stagescope.scene().position > 0")
    seen.press("Space")


def frames_played(seen, milliseconds: int) -> int:
    """Frames that pass in so long by a clock that the test winds on, 20 ms at a time: a busy machine plays no slower."""
    return seen.page.evaluate(
        """length => { const real = window.requestAnimationFrame, asked = [], play = document.querySelector('.play');
            window.requestAnimationFrame = step => asked.push(step);
            window.stagescope.go(0);
            play.click();
            const began = performance.now();
            for (let passed = 20; passed <= length; passed += 20) for (const step of asked.splice(0)) step(began + passed);
            play.click();
            window.requestAnimationFrame = real;
            asked.forEach(step => real(step));
            return window.stagescope.scene().position; }""",
        milliseconds,
    )


def test_speed(seen):
    """Faster is faster, by the choice and by the keys. Playing moves by change and takes as long as 24 frames a second would."""
    made = portrait(frames=FRAMES, until=UNTIL)
    change = change_of(made.run, made.views)
    assert change is not None
    normal, fast, slow = (int(np.searchsorted(change.at, speed * 24 / FRAMES)) for speed in (1, 4, 0.5))
    assert slow < normal < fast
    assert frames_played(seen, 1000) == pytest.approx(normal, abs=1)
    seen.page.get_by_label("speed").select_option("4")
    assert frames_played(seen, 1000) == pytest.approx(fast, abs=1)
    seen.page.get_by_label("speed").evaluate("one => one.blur()")
    seen.press("[", "[", "[")
    assert seen.page.get_by_label("speed").input_value() == "0.5"
    assert frames_played(seen, 1000) == pytest.approx(slow, abs=1)


def test_the_hand_wins_over_play(seen):
    """A person who moves the slider while it plays goes on from there."""
    seen.press("Space")
    seen.scrub(150)
    seen.until("() => window.stagescope.scene().position > 152")
    seen.press("Space")


def test_a_ledger_row_jumps_to_what_shows_it(seen):
    seen.panel("ledger").scroll_into_view_if_needed()
    row = seen.page.locator(".ledger tr[data-verdict]", has_text="attention dilutes")
    row.click()
    assert here(seen) == round(DILUTION * UNTIL / STEP)
    marked = seen.page.evaluate("() => window.stagescope.scene().marked")
    assert marked == pytest.approx([0, UNTIL])  # the claim names focus and dilution; it is about the last of them
    assert seen.page.locator(".present-title").inner_text() == "dilution:"


def test_the_ledger_says_everything(seen):
    seen.panel("ledger").scroll_into_view_if_needed()
    ledger = seen.page.locator(".ledger").inner_text()
    for words in ("attention focuses", "confirmed", "violated", "inconclusive", "not applicable", "0.4987", "0.01", "no rate"):
        assert words in ledger
    made = portrait(frames=FRAMES, until=UNTIL).ledger
    assert made.summary() == "1 confirmed, 1 violated, 1 inconclusive (3 groups of 4 claims)"
    assert f"{made.summary()}. Claims that rest on one measurement are a group" in ledger
    assert [int(n) for n in seen.page.locator(".verdict-chip b").all_inner_texts()] == [1, 1, 1, 0]
    places = seen.page.locator(".place-head").all_inner_texts()
    assert [place.strip().lower() for place in places] == ["section 3, data", "lemma 1, eq. 3 and 4"]


def test_a_claim_over_several_runs_has_a_small_figure(seen):
    seen.panel("ledger").scroll_into_view_if_needed()
    figure = seen.page.locator(".ledger svg.over-runs")
    figure.wait_for()
    assert figure.count() == 1
    assert figure.locator("circle.said").count() == 3
    assert figure.locator("circle.seen-in-run").count() == 2
    assert figure.locator("circle.seen-in-run title").first.text_content() == "scale 1: measured 2"


def test_a_rung_jumps_to_its_time(seen):
    seen.panel("ladder").scroll_into_view_if_needed()
    rung = seen.page.locator(".ladder tr[data-rung]").nth(1)
    rung.click()
    assert here(seen) == round(0.75 * FRAMES - 0.75)


def test_a_stage_jumps_to_its_start(seen):
    seen.page.locator(".ribbon button").nth(1).click()
    assert here(seen) == round(FOCUS * UNTIL / STEP)


def test_parts_have_lanes_of_their_own_as_long_as_names_can_be_read(visit, tmp_path):
    """Six tracks of a run: the first five are named in lanes one below the other, the sixth is left to the spoken words."""
    parts = [Stage(f"part {k}", 0.0, None, "", f"track {k}") for k in range(1, 6)]
    base = portrait(frames=FRAMES, until=UNTIL)
    path = tmp_path / "page.html"
    made = replace(base, stages=replace(base.stages, stages=(*parts, *base.stages.stages)))
    path.write_text(page([made]), encoding="utf-8")
    seen = visit(path)
    strips = seen.page.locator(".ribbon .segment")
    assert strips.all_inner_texts() == ["focus", "plateau", "dilution", "part 1", "part 2", "part 3", "part 4"]
    tops = [box.bounding_box()["y"] for box in strips.all()]
    assert tops[0] == tops[1] == tops[2] < tops[3] < tops[4] < tops[5] < tops[6]
    assert "part 5" in seen.slider.get_attribute("aria-valuetext")


def test_an_event_jumps_to_its_time(seen):
    seen.page.locator(".player .chips").get_by_role("button").nth(1).click()
    assert here(seen) == round(DILUTION * UNTIL / STEP)
    assert "collapse" in seen.page.locator(".player .chips").inner_text()
    assert "not reached" in seen.page.locator(".player .chips").inner_text()


def test_a_click_in_a_curve_moves_there(seen):
    area = seen.panel("loss").locator(".u-over")
    box = area.bounding_box()
    area.click(position={"x": box["width"] / 2, "y": box["height"] / 2})
    assert abs(here(seen) - 100) <= 2


@pytest.mark.long
def test_the_curve_names_its_value(seen):
    """Hovering over the middle of the loss curve's line gives the recorded value there, to the digits shown."""
    area = seen.panel("loss").locator(".u-over")
    box = area.bounding_box()
    texts = []
    for y in np.linspace(2, box["height"] - 2, 25):
        seen.hover(area, position={"x": box["width"] / 2, "y": float(y)})
        texts.append(seen.panel("loss").locator(".tag").text_content())
    named = next(text for text in texts if text)
    value = float(named.split()[1])
    frame = int(named.split("frame ")[1].split(",")[0]) - 1
    assert value == pytest.approx(0.1 + np.exp(-frame * STEP / 4), rel=1e-5)
