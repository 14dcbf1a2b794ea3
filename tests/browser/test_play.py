"""The playground in Chromium, from disk: sliders, keys, address, files; the tab of a report."""

import json
from pathlib import Path

import pytest

import stagescope as ss
from stagescope.show import play as playing
from stagescope.show.portrait import portrait
from stagescope.show.report import write
from tests.browser import samples

MOVED = "([option, to]) => { const s = document.querySelector(`[data-option='${option}']`); s.value = String(to);"
MOVED += " s.dispatchEvent(new Event('input', {bubbles: true})); }"
RESTS = "() => stagescope.ground.difference !== null"


@pytest.fixture(scope="session")
def page(tmp_path_factory) -> Path:
    return playing.write_play([], tmp_path_factory.mktemp("play") / "play.html")


def drag(seen, strip, start: float, stop: float) -> None:
    strip.scroll_into_view_if_needed()
    box = strip.bounding_box()
    middle = box["y"] + box["height"] / 2
    seen.page.mouse.move(box["x"] + start * box["width"], middle)
    seen.page.mouse.down()
    seen.page.mouse.move(box["x"] + stop * box["width"], middle)
    seen.page.mouse.up()
    seen.until("() => stagescope.ground.window !== null")


def command(seen) -> str:
    return seen.page.locator(".play-command").inner_text()


@pytest.mark.long
def test_a_slider_moves_the_flow_the_command_and_the_address(visit, page):
    seen = visit(page)
    seen.until(RESTS)
    before = seen.page.evaluate("() => stagescope.ground.played.events.map(({time}) => time)")
    assert command(seen) == "stagescope run focus-dilution --preset ref --out runs/focus-dilution-played"
    assert before[:2] == pytest.approx([20.584, 187.62], rel=1e-3)  # E1 and E2 of the run of the preset `ref`
    seen.page.locator("[data-option=persistence]").focus()
    seen.press("ArrowLeft", "ArrowLeft", "Tab", "Tab")
    seen.until("() => location.hash.includes('persistence=0.58')")
    seen.until(RESTS)
    assert "--persistence 0.58" in command(seen)
    after = seen.page.evaluate("() => stagescope.ground.played.events.map(({time}) => time)")
    assert after[1] > before[1]
    assert seen.page.locator(".play-faint").first.inner_text() == "faint: preset ref"
    assert "the second cycle begins" in seen.page.locator(".play-events li", has_text="E2").inner_text()
    axis = seen.page.locator(".play-axis").first
    low, middle, high = (seen.page.evaluate("share => stagescope.ground.axis.value(share)", share) for share in (0.25, 0.5, 0.75))
    drag(seen, axis, 0.25, 0.75)
    ends = [seen.page.evaluate("share => stagescope.ground.axis.value(share)", share) for share in (0, 0.5, 1)]
    assert ends == pytest.approx([low, middle, high], rel=0.02)
    seen.press("Escape")
    assert seen.page.evaluate("() => stagescope.ground.window") is None
    said = seen.page.locator(".play-error").inner_text()
    assert said.startswith("Error of this preview")
    seen.press("r")
    seen.until("() => !location.hash.includes('persistence')")
    assert "--persistence" not in command(seen)


@pytest.mark.long
def test_nothing_scrolls_sideways(visit, page):
    seen = visit(page, "#theme=dark")
    for width, study in ((320, "focus-dilution"), (400, "scan-snap"), (800, "linear-icl"), (1400, "focus-dilution")):
        seen.page.get_by_label("study", exact=True).select_option(study)
        seen.resize(width)
        seen.until(RESTS)
        seen.page.evaluate("() => document.querySelectorAll('details').forEach(fold => { fold.open = true; })")
        seen.settle()
        wide, room = seen.page.evaluate("() => [document.documentElement.scrollWidth, document.documentElement.clientWidth]")
        assert wide <= room, width
    assert seen.page.evaluate("() => getComputedStyle(document.documentElement).colorScheme") == "dark"


@pytest.mark.long
def test_a_wrong_address_is_set_right_with_a_sentence(visit, page):
    seen = visit(page, "#study=nothing&preset=ref&persistence=7&width=abc&foo=3")
    seen.until(RESTS)
    said = seen.page.locator(".play-notes").inner_text()
    assert (
        "persistence 7 is outside -0.11 to 0.95 (with the other options as they are); 0.95 is used." in said
    )  # pi of ref: 0.1 / 0.9
    assert 'there is no option "foo"; it is left out.' in said
    assert "no number" in said
    assert "no study" in said
    number = seen.page.get_by_label("persistence, number")
    number.fill("-0.2")
    number.press("Enter")
    seen.until("() => document.querySelector('.play-notes').textContent.startsWith('persistence -0.2 is outside -0.11 to 0.95')")
    assert number.input_value() == "-0.11"


def test_a_configuration_is_saved_and_a_command_copied(visit, page):
    seen = visit(page, "#study=linear-icl&preset=merged&heads=3")
    seen.until(RESTS)
    with seen.page.expect_download() as saved:
        seen.page.get_by_role("button", name="Download configuration").click()
    until = seen.page.evaluate("() => stagescope.ground.settings.options.until")
    config = json.loads(Path(saved.value.path()).read_text())
    assert config == {"study": "linear-icl", "preset": "merged", "heads": 3, "until": until}
    seen.page.get_by_role("button", name="Copy command").click()
    seen.until("() => document.querySelector('.play-done').textContent === 'Copied.'")


@pytest.mark.long
def test_every_study_and_preset_is_drawn(visit, page):
    seen = visit(page)
    found = seen.page.evaluate(
        """() => { const {ground} = stagescope; return ground.data.studies.flatMap(study => { ground.useStudy(study.name);
            return Object.keys(study.presets).map(preset => { ground.usePreset(preset);
                const curves = ground.played.curves.flatMap(curve => [...curve]);
                const finite = curves.every(Number.isFinite);
                return [study.name, preset, ground.failure, finite, ground.played.events.length]; }); }); }"""
    )
    assert {name for name, *_ in found} == {"focus-dilution", "linear-icl", "scan-snap"}
    assert len(found) >= 14
    for name, preset, failure, finite, events in found:
        assert (failure, finite) == ("", True), (name, preset)
        assert events > 0, (name, preset)
    seen.until(RESTS)


@pytest.mark.long
def test_two_hundred_moves(visit, page):
    """Of all sliders in turn, each to a place of its own; `python -m benchmarks.play` says how long a move takes."""
    seen = visit(page, "#study=focus-dilution&until=40&width=4")
    seen.until(RESTS)
    moves, wrong = seen.page.evaluate(
        """() => { const {ground} = stagescope, wrong = [], before = ground.spent.length;
            for (let i = 0; i < 200; i++) {
                const sliders = [...document.querySelectorAll('[data-option]:not([data-option=until])')];
                const slider = sliders[i % sliders.length];
                slider.value = String(Math.round(Number(slider.max) * ((i * 0.618) % 1)));
                slider.dispatchEvent(new Event('input', {bubbles: true}));
                const sum = ground.settings.options.pi.reduce((sum, p) => sum + p, 0);
                const finite = ground.played.curves.every(curve => curve.every(Number.isFinite));
                if (ground.failure || !finite || Math.abs(sum - 1) > 1e-9) wrong.push([slider.dataset.option, ground.failure]);
            }
            return [ground.spent.length - before, wrong]; }"""
    )
    assert (moves, wrong) == (200, [])
    seen.until(RESTS)


@pytest.mark.long
def test_the_tab_of_a_report_plays_its_runs(visit, tmp_path):
    run = ss.run_study("focus-dilution", persistence=0.5, seed=2, until=60, frames=30, progress=False)
    path = write([_portrait(run), samples.portrait("other")], tmp_path / "report.html")
    seen = visit(path)
    seen.page.get_by_role("tab", name="Play").click()
    seen.until("() => document.querySelector('.playground')?.checkVisibility()")
    assert "--persistence 0.5 --until 60 --seed 2" in command(seen)
    seen.page.locator("[data-option=persistence]").focus()
    seen.press("ArrowRight")
    seen.until("() => location.hash.includes('play-persistence=0.51')")
    assert "--persistence 0.51" in command(seen)
    seen.page.get_by_role("tab").first.click()
    seen.until("() => !document.querySelector('.playground')")
    assert seen.position == 0


def _portrait(run):
    return portrait(run, "played", skip=("ledger", "ladder", "prediction"), claims=(), done=lambda _: None)


def test_without_a_notebook_a_page_is_written(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert ss.play("linear-icl", preset="merged").name == "linear-icl-play.html"
    monkeypatch.setattr(playing, "in_notebook", lambda: True)
    page = ss.play("linear-icl")
    assert page.title == "Play: linear-icl"
    assert page._repr_html_().startswith('<iframe sandbox="allow-scripts')
