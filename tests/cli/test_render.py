"""Stages on a terminal: an event a line with its interval, states in words, transitions that are no events, notes."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

import stagescope as ss
from stagescope.claims.ledger import Ledger
from stagescope.cli import render, sweep_commands
from stagescope.cli import render as legend
from stagescope.cli.main import run as command
from stagescope.detect.stage import Event, Stage, Stages, Transition
from stagescope.landscape.ladder import Ladder, Rung
from stagescope.landscape.saddle_path import Leg, SaddlePath
from stagescope.sweeping.plan import points
from stagescope.sweeping.rows import RowWriter
from stagescope.sweeping.table import load_sweep
from tests.runs import samples
from tests.show.runs import small
from tests.sweeping.small import cheap_plan


@pytest.fixture
def shown(monkeypatch, capsys):
    """The lines of a terminal of a width."""

    def shown(found: Stages, width: int = 80) -> list[str]:
        monkeypatch.setenv("COLUMNS", str(width))
        render.print_stages(found, all_events=True)
        return [line.rstrip() for line in capsys.readouterr().out.splitlines()]

    return shown


def made(status: str = "finished", **events: Event) -> Stages:
    return Stages.of(status, "step", events, (Stage("whole run", 0.0, None, "It goes on."),), {})


EVENTS = {
    "onset": Event(12345.6789, 12300.123, 12400.456),
    "long_name_of_an_event": Event(1.25e-7, 1.2e-7, 1.3e-7),
    "bare": Event(3.0),
    "snap": Event.missing(),
    "winner": Event.missing("at the start"),
}


@pytest.mark.parametrize("width", [60, 80, 120])
def test_an_event_is_one_line(shown, width):
    lines = shown(made(**EVENTS), width)
    for name, words in {
        "onset": ("12346", "12300 to 12400"),
        "long_name_of_an_event": ("1.25e-07", "1.2e-07 to 1.3e-07"),
        "bare": ("3",),
        "snap": ("not reached",),
        "winner": ("there at the start",),
    }.items():
        (line,) = [line for line in lines if line.split()[:1] == [name]]
        assert all(word in line for word in words), line
    assert max(map(len, lines)) <= width


def test_events_that_were_not_reached_are_counted(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    render.print_stages(made(**EVENTS))
    said = capsys.readouterr().out
    assert "not reached: snap (--all lists them with reasons)" in said
    assert all(name in said for name in EVENTS)
    render.print_stages(made(snap=Event.missing()))
    assert "95 %" not in capsys.readouterr().out


def test_events_of_a_run_that_broke_down_have_no_time(shown):
    lines = shown(made("diverged", **EVENTS))
    (line,) = [line for line in lines if line.split()[:1] == ["onset"]]
    assert "not reliable: the run diverged" in line
    assert "12346" not in "".join(lines)


def test_transitions_that_are_events_are_not_repeated(shown):
    step = Transition(50.0, 45.0, 56.0, 40.0, 60.0, -1.0)
    found = Stages.of("finished", "step", {"transition 1": Event(50.0, 45.0, 56.0)}, (), {"loss": "2 of 9 records"})
    with_loss = Stages(**{**vars(found), "transitions": (("loss", step),)})
    with_more = Stages(
        **{**vars(found), "transitions": (("loss", step), ("accuracy", Transition(60.0, 55.0, 66.0, 50.0, 70.0, 0.5)))}
    )
    assert not any("transition of" in line for line in shown(with_loss))
    lines = shown(with_more)
    (line,) = [line for line in lines if line.split()[:1] == ["accuracy"]]
    assert all(word in line for word in ("60", "55 to 66", "+0.5"))
    assert not any(line.split()[:1] == ["loss"] for line in lines)
    assert any("loss: 2 of 9 records" in line for line in lines)


def test_no_table_without_events(shown):
    assert not any("interval" in line for line in shown(made()))


def test_stages_and_claims_explain_their_symbols(tmp_path, monkeypatch, capsys):
    """Each symbol of the glossary once; the captions are those of the page."""
    small("token").save(tmp_path / "run")
    monkeypatch.setenv("COLUMNS", "80")
    assert command(["stages", str(tmp_path / "run")]) == 0
    assert capsys.readouterr().out.endswith(f"{legend.HINT}\n")
    assert command(["stages", str(tmp_path / "run"), "--explain"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert max(map(len, lines)) <= 80
    below = lines[lines.index("Symbols:") + 1 :]
    for symbol in ("E1, ...", "Q1, ...", "onset ", "focus1, ...", "dilution1, ...", "condensation "):
        assert sum(line.startswith(symbol) for line in below) == 1, symbol
    assert "the end of its stage focus" in " ".join(" ".join(below).split())
    monkeypatch.setenv("COLUMNS", "600")
    assert command(["stages", str(tmp_path / "run"), "--explain"]) == 0
    said = capsys.readouterr().out
    assert all(one.text in said for one in ss.reading(small("token")).explained.captions)
    row = SimpleNamespace(statement="A row is diluted", reason="near the time at which gamma_i crosses zero", verdict="confirmed")
    legend.print_claim_legend(ss.reading(small("token")), Ledger("finished", "t", (row,)))
    assert [line.split()[0] for line in capsys.readouterr().out.splitlines()] == ["Symbols:", "gamma_i"]


def test_info_has_no_notation_of_python(tmp_path, capsys):
    facts = {"environment": {"threads": {"blas": 1}, "packages": {"numpy": "2.0", "numba": "0.62"}}, "params": {"W": [4, 8]}}
    render.print_info({**facts, "config": {"pi": [0.5, 0.25], "shape": [], "quiet": True, "extra": {"a": {"b": None}}}})
    said = capsys.readouterr().out
    assert not set("[]{}'") & set(said)
    for line in ("threads = blas 1", "packages = numpy 2.0, numba 0.62", "W = 4, 8", "pi = 0.5, 0.25", "quiet = yes", "a (b -)"):
        assert line in said
    assert "shape" not in said


HOSTILE = "\x1b]0;owned\x07\x1b[2J\x9b1m\u202e\ud800[/bold][red]"
"""Sets the title of the window, clears the screen, turns text round, cannot be encoded, and looks like markup."""


@pytest.mark.parametrize("word", ["info", "stages", "verify", "resume", "report"])
def test_stored_text_cannot_steer_a_terminal(tmp_path, capsys, word):
    plain = samples.memory_run(5, status="failed", reason=f"it broke {HOSTILE}")
    facts = {"study": f"name {HOSTILE}", "config": {HOSTILE: HOSTILE}, "spec": {**plain.spec, "note": HOSTILE}}
    replace(plain, **facts).save(tmp_path / "run")
    (tmp_path / "run/\x1b[2J").touch()
    more = ["--quiet", "--out", str(tmp_path / "page.html")] if word == "report" else []
    command([word, str(tmp_path / "run"), *more])
    said = "".join(capsys.readouterr())
    assert said.replace("\n", "").isprintable()
    assert r"\x1b" in said or word in ("stages", "report")


def test_stages_with_odd_names(shown):
    found = made(**{f"event {HOSTILE}": Event(3.0)})
    text = "".join(shown(Stages(**{**vars(found), "notes": {"x": HOSTILE}})))
    assert text.isprintable()
    assert text.count("[/bold][red]") == 2


def test_reasons_of_a_sweep_cannot_steer_a_terminal(tmp_path, capsys):
    """A row may be of somebody else; what it says is shown, not obeyed."""
    plan = cheap_plan(tmp_path, grid={"rate_y": "1,2"})
    writer = RowWriter(tmp_path)
    for point in points(plan):
        place = {"digest": point.digest, "study": plan.study, "seed": point.seed, "at": dict(point.values)}
        ended = {"config": dict(point.config), "status": "failed", "reason": f"broke {HOSTILE}", "retry": 0}
        writer.commit([{**place, **ended}])
    sweep_commands._print_outcome(load_sweep(tmp_path))
    said = capsys.readouterr().out
    assert r"2 failed: broke" in said
    assert said.replace("\n", "").isprintable()


@pytest.mark.parametrize(("rates", "opens"), [((), "heads part"), ((0.09771,), "embedding")])
def test_the_legs_of_a_path_fit_into_80_columns(capsys, monkeypatch, rates, opens):
    monkeypatch.setenv("COLUMNS", "80")
    legs = (Leg("(1,1)", 344.13, 885.21, 1.9491, opens, 0.02125, lambda: ("at infinity", rates)),)
    render.print_path(1e-6, 0, SaddlePath(legs, {}, (), 0.1, np.zeros(0), {}))
    out = capsys.readouterr().out
    line = next(line for line in out.splitlines() if "344.13" in line)
    assert line.split() == ["(1,1)", "344.13", "885.21", "1.9491", "at", "infinity", *opens.split(), "0.02125", *map(str, rates)]
    assert ("at the" in out) == bool(rates)
    assert "event" not in out


def test_a_rung_without_a_rate_shows_its_law(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "100")
    facts = {"predicted_escape": 9.0, "measured_escape": 9.1, "law": "order 2", "order": 2, "coefficient": 0.0924}
    tip = Rung("1 saddle", 0.0, 1e-12, 0.01, 1.4, "v+k", (), **facts)
    drift = Rung("2", 20.0, 1e-3, 0.01, 1.4, None, (), predicted_escape=30.0, measured_escape=31.0, law="drift")
    render.print_ladder(Ladder("finished", "t", (tip, drift)))
    first, second = (line for line in capsys.readouterr().out.splitlines() if "9.1" in line or "31" in line)
    assert "order 2, c = 0.0924" in first
    assert "9 (9.1)" in first
    assert "drift" in second
    assert "30 (31)" in second
