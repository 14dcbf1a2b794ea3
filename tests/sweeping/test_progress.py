"""What is shown of a sweep while it runs."""

import io
import sys

import pytest

from stagescope.sweeping import progress
from stagescope.sweeping.plan import Point
from stagescope.sweeping.progress import LiveProgress, LoggedProgress, SweepProgress, per_second, sweep_progress
from stagescope.sweeping.worker import Brief

POINT, FINE, BAD = Point("d", 0, {"x": 0.5}, {}), Brief("d", "finished", "", 1.0), Brief("d", "failed", "no luck", 1.0)


@pytest.fixture
def clock(monkeypatch):
    """Time that only the test moves."""
    now = [100.0]
    monkeypatch.setattr(progress.time, "monotonic", lambda: now[0])
    return now


def test_without_a_terminal_a_line_now_and_then(clock, capsys):
    shown = sweep_progress(None)
    assert isinstance(shown, LoggedProgress)
    shown.begin("points", 400, 30)
    assert capsys.readouterr().err == "stagescope: a sweep of 400 points, 30 of them are there\n"
    shown.begin("points", 400, 0)
    assert capsys.readouterr().err == "stagescope: a sweep of 400 points\n"
    for _ in range(150):  # each second a look, each two seconds a point
        clock[0] += 1
        shown.tick(2, 2 if clock[0] > 110 else 0)
        if clock[0] > 111 and clock[0] % 2 == 0:
            shown.ended(POINT, FINE)
    first, second = capsys.readouterr().err.splitlines()[:2]
    assert first == "stagescope: 9 of 400 points, 2 running, 0 failed, 0.47/s, about 14 min left"
    assert second.startswith("stagescope: 39 of 400 points")
    shown.ended(POINT, BAD)
    assert capsys.readouterr().err == "stagescope: x=0.5 seed 0: failed: no luck\n"


def test_before_workers_are_there_it_says_so(clock, capsys):
    shown = LoggedProgress()
    shown.begin("round 2", 40, 0)
    clock[0] += 31
    shown.tick(0, 0)
    assert capsys.readouterr().err.splitlines()[1:] == ["stagescope: round 2: 0 of 40 points, waiting for workers"]


def test_a_board_that_was_refused_is_silent(clock, capsys):
    shown = sweep_progress(False)
    assert type(shown) is SweepProgress
    shown.begin("points", 4, 0)
    clock[0] += 1000
    shown.tick(1, 1)
    shown.ended(POINT, BAD)
    assert (shown.done, shown.failed) == (1, 1)
    assert not capsys.readouterr().err


@pytest.mark.parametrize("columns", [60, 120])
def test_the_live_line_fits_and_keeps_its_counts(clock, monkeypatch, columns):
    screen = io.StringIO()
    monkeypatch.setattr(sys, "stderr", screen)
    monkeypatch.setenv("COLUMNS", str(columns))
    monkeypatch.setenv("FORCE_COLOR", "1")
    with LiveProgress() as shown:
        shown.begin("points", 4000, 0)
        assert shown._facts() == "   0/4000 waiting for workers"
        shown.tick(2, 2)
        assert "2 running" in shown._facts()
        for _ in range(123):
            clock[0] += 0.7
            shown.ended(POINT, FINE)
        shown.tick(2, 2)
        lines = shown._bar.console.render_lines(shown._bar.get_renderable())
        text = "".join(segment.text for segment in lines[0]).rstrip()
    assert len(lines) == 1
    assert " 123/4000 2 running" in text
    assert "1.4/s about 45 min" in text


@pytest.mark.parametrize(
    ("rate", "said"), [(0, "-/s"), (0.012, "0.012/s"), (0.66, "0.66/s"), (9.94, "9.9/s"), (48.2, "48.2/s"), (1234.5, "1,234/s")]
)
def test_rates(rate, said):
    assert per_second(rate) == said


def test_the_rate_begins_anew_when_all_workers_were_gone(clock):
    shown = SweepProgress()
    shown.begin("points", 100, 0)
    shown.tick(1, 1)
    for _ in range(50):
        clock[0] += 1
        shown.ended(POINT, FINE)
    shown.tick(0, 0)
    clock[0] += 20
    shown.tick(1, 1)
    clock[0] += 1
    shown.ended(POINT, FINE)
    assert shown.rate == 1
