"""What a notebook shows of stages, ladders, ledgers, readings, sweeps, diagrams and reports: static, escaped, and complete."""

import html
import re
from dataclasses import replace
from pathlib import Path

import pytest

import stagescope as ss
from stagescope.claims.claim import Verdict
from stagescope.claims.ledger import Ledger
from stagescope.detect.stage import Event, Stage, Stages
from stagescope.landscape.ladder import Ladder, Rung
from stagescope.show.diagram import Diagram
from stagescope.show.report import Page
from tests.show.runs import small
from tests.show.test_summary import ALLOWED, Seen
from tests.sweeping.small import cheap_plan

HOSTILE = "</td></table><script>alert(1)</script><img src=x onerror=alert(1)>\ud800"


def test_stages():
    events = {"onset": Event(3.14159, 3.1, 3.2), "snap": Event.missing()}
    stages = (Stage("scan", 0.0, 4.0, "It scans."), Stage("focus", 4.0, None, "It focuses.", "row 1"))
    seen = Seen(Stages.of("finished", "t", events, stages, {})._repr_html_()).text
    assert all(
        word in seen for word in ("scan", "focus, row 1", "It focuses.", "end", "3.1416", "3.1 to 3.2", "snap (not reached)")
    )


def test_ladder():
    rung = Rung("(1,0)", 60.46, 1e-12, 0.02, 1.2, "attention", (0.0983,), 0.0976, predicted_escape=75.99, measured_escape=75.73)
    seen = Seen(Ladder("finished", "t", (rung,))._repr_html_()).text
    assert all(word in seen for word in ("(1,0)", "attention", "0.0983", "0.0976", "75.99", "75.73"))
    assert "passes no critical point" in Seen(Ladder("finished", "t", ())._repr_html_()).text


def test_ledger():
    rows = (
        Verdict("a:one", "One holds", "", 1.0, 1.1, 0.2, "confirmed", "close", kind="prediction", unit="1/t"),
        Verdict("a:two", "Two does not apply", "", None, None, None, "not applicable", "no such run"),
    )
    found = Ledger("finished", "t", rows)._repr_html_()
    before, folded = found.split("<details>")
    assert all(word in before for word in ("✓ confirmed", "One holds [a:one]", "1.1", "0.2 1/t", "close"))
    assert "Two does not apply" in folded


def hostile():
    rung = Rung(HOSTILE, 1.0, 1.0, 1.0, None, HOSTILE, (), note=HOSTILE)
    row = Verdict(HOSTILE, HOSTILE, HOSTILE, HOSTILE, HOSTILE, HOSTILE, "violated", HOSTILE, unit=HOSTILE)
    stage = Stage(HOSTILE, 0.0, None, HOSTILE, HOSTILE)
    yield Stages.of(HOSTILE, HOSTILE, {HOSTILE: Event(1.0)}, (stage,), {})
    yield Ladder(HOSTILE, HOSTILE, (rung,))
    yield Ledger(HOSTILE, HOSTILE, (row,))
    yield Diagram(Path(HOSTILE), Path(HOSTILE), {}, (HOSTILE,))


@pytest.mark.parametrize("shown", [*hostile()], ids=lambda shown: type(shown).__name__)
def test_text_of_anybody_is_escaped(shown):
    seen = Seen(shown._repr_html_())
    assert set(seen.tags) <= ALLOWED - {"img"}
    seen.text.encode()


def test_a_reading_shows_its_run_and_its_parts():
    run = small("pairwise")
    found = ss.reading(run)._repr_html_()
    assert run._repr_html_() in found
    assert "reading.ladder" in found


def test_a_sweep_and_its_diagram(tmp_path):
    cheap_plan(tmp_path, grid={"rate_y": "1,2"})
    found = Seen(ss.load_sweep(tmp_path)._repr_html_())
    assert "rate_y" in found.text
    assert "0 rows in 0 cells" in found.text
    picture = tmp_path / "a.png"
    picture.write_bytes(b"\x89PNG")
    shown = Diagram(picture, tmp_path / "a.html", {}, ("two points are missing",))._repr_html_()
    assert 'src="data:image/png;base64,iVBORw=="' in shown
    assert "two points are missing" in shown


def test_a_report_without_a_path_is_a_page(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    made = ss.report(small("pairwise"), skip=("ladder", "ledger"), progress=False)
    assert list(tmp_path.iterdir()) == []
    assert isinstance(made, Page)
    assert len(repr(made)) < 500
    written = ss.report(small("pairwise"), "page.html", skip=("ladder", "ledger"), progress=False)
    assert isinstance(written, Path)
    assert made.save("again.html").read_bytes() == written.read_bytes() == made.html.encode()


def test_a_page_in_a_notebook_is_in_a_frame_that_reaches_nothing():
    shown = Page(f"<script>1 < 2 && '{HOSTILE}'\"</script>", HOSTILE)._repr_html_()
    frame = re.fullmatch(r'<iframe sandbox="([^"]*)" title="[^"<>]*" style="[^"<>]*" srcdoc="([^"]*)"></iframe>', shown)
    assert frame is not None
    assert frame[1].split() == ["allow-scripts", "allow-downloads"]
    assert html.unescape(frame[2]).startswith("<script>1 < 2 &&")


def test_the_heat_maps_of_a_summary_have_title_axes_and_colours(monkeypatch):
    from stagescope.show import summary
    from stagescope.show.portrait import portrait
    from stagescope.views.view import Curves, Matrices

    found = portrait(small("token"), skip=("ladder", "ledger", "prediction"))
    loss = next(view for view in found.views if isinstance(view, Curves))
    seen = next(view for view in found.views if isinstance(view, Matrices))
    drawing = summary._draw(replace(found, stages=None), loss, seen)
    maps = drawing.subfigs[1]
    assert maps.get_suptitle() == "Attention between token types"
    first, *_, bar = maps.axes
    assert (first.get_xlabel(), first.get_ylabel()) == ("key", "query")
    assert bar.get_label() == "<colorbar>"
