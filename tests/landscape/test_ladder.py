"""The general ladder: on a loss of one's own, on scan and snap, where there is no saddle, and without a flow time."""

from dataclasses import replace

import numpy as np
import pytest

import stagescope as ss
from stagescope.landscape import critical, derivatives, leaving
from stagescope.landscape import ladder as ladders
from stagescope.landscape.critical import PASSING
from stagescope.landscape.ladder import Rung
from tests.landscape.laws import VALUES, product_loss, product_start


def test_own_objective():
    loss = product_loss()
    run = ss.evolve(loss, product_start(), ss.GradientFlow(), until=100.0, record=ss.Uniform(frames=1500))
    with pytest.raises(ss.InputError, match="your own objective"):
        ss.saddle_ladder(run)
    ladder = ss.saddle_ladder(run, loss)
    assert ss.saddle_ladder(run) is ladder, "the reading of a run remembers its objective"
    assert [rung.label for rung in ladder] == ["1 saddle", "2 saddle", "3 saddle", "4 minimum"]
    for rung, value in zip(ladder, VALUES, strict=False):
        assert rung.near
        assert rung.rates[0] == pytest.approx(value, abs=1e-8)
        assert rung.measured_rate == pytest.approx(value, rel=0.03)
        assert rung.cosines[0] > 0.99
        assert rung.predicted_escape == pytest.approx(rung.measured_escape, rel=0.05)
        assert set(rung.opening.split("+")) == {"A", "B"}
    assert ladder["4 minimum"].opening is None


def test_the_work_is_heard_and_foretold():
    loss = product_loss()
    run = ss.evolve(loss, product_start(), ss.GradientFlow(), until=12.0, record=ss.Uniform(frames=200))
    heard: list[int] = []
    ss.critical_points(run, loss, heard=heard.append)
    assert heard == sorted(heard)
    assert heard[-1] > 0
    seconds, sentence = ladders.search_cost(run, loss)
    assert seconds > 0
    size = sum(run.params[name][0].size for name in run.params)
    assert f"of {size:,} parameters from" in sentence


def test_bars_of_the_ladder(capsys):
    loss = product_loss()
    run = ss.evolve(loss, product_start(), ss.GradientFlow(), until=12.0, record=ss.Uniform(frames=200))
    shown = ss.saddle_ladder(run, loss, progress=True)
    said = capsys.readouterr().err
    assert "searching critical points" in said
    assert "following escapes" in said
    assert ss.saddle_ladder(run, loss) == shown
    assert capsys.readouterr().err == ""


def test_scan_and_snap_drifts():
    """Its late slowness is no saddle: no critical point is near, and the note says how slowly anything still grows."""
    ladder = ss.saddle_ladder(ss.run_study("scan-snap", "syn-small-flow", until=300.0))
    last = ladder.rungs[-1]
    assert last.t == 300.0
    assert not last.near
    assert last.predicted_escape is None
    assert "no critical point is near" in last.note
    assert set(ladder.json()) == {"status", "clock", "rungs"}


def test_adam_has_no_rates_to_compare():
    loss = product_loss()
    run = ss.evolve(loss, product_start(), ss.Descent(optimizer=ss.Adam(), lr=1e-3, steps=3000), record=ss.Every(n=10))
    for rung in ss.saddle_ladder(run, loss):
        assert rung.predicted_escape is None
        assert rung.measured_rate is None


def test_a_rung_that_does_not_exist_is_named():
    ladder = ss.Ladder("finished", "t", (Rung("(1,0)", 0.0, 0.0, 0.0, None, None, ()),))
    with pytest.raises(ss.InputError, match=r"unknown rung '\(1,1\)'; did you mean '\(1,0\)'"):
        _ = ladder["(1,1)"]


def test_a_model_of_many_parameters(monkeypatch):
    """Each rate up to forty-fold: the same rungs, found by products with the Jacobian, which is never formed."""
    monkeypatch.setattr(derivatives, "DENSE", 100)
    loss, rng = product_loss(), np.random.default_rng(0)
    start = {"A": 1e-5 * rng.normal(size=(3, 40)), "B": 1e-5 * rng.normal(size=(40, 3))}
    run = ss.evolve(loss, start, ss.GradientFlow(), until=40.0, record=ss.Uniform(frames=400))
    ladder = ss.saddle_ladder(run, loss)
    assert [rung.label.split()[1] for rung in ladder][:2] == ["unstable", "unstable"]
    for rung, value in zip(ladder.rungs[:2], VALUES, strict=False):
        assert rung.near
        assert rung.rates == pytest.approx([value] * 6, abs=1e-8)
        assert rung.measured_rate == pytest.approx(value, rel=0.05)


def test_a_failed_linearisation_is_the_note_of_its_rung(monkeypatch):
    def fails(*_):
        raise ss.StagescopeError("too many parameters")

    loss = product_loss()
    run = ss.evolve(loss, product_start(), ss.GradientFlow(), until=12.0, record=ss.Uniform(frames=200))
    monkeypatch.setattr(leaving, "linearise", fails)
    for rung in list(ss.saddle_ladder(run, loss))[:2]:
        assert rung.near
        assert rung.rates
        assert "too many parameters" in rung.note


def test_a_token_rung_that_fails_leaves_the_others(monkeypatch):
    from stagescope.papers.focus_dilution import reading

    run = ss.run_study("focus-dilution", "ref", until=60.0)
    made = reading.rung

    def once(visit):
        if visit.stay.label == "(1,0)":
            raise ss.StagescopeError("the flow of the small model failed")
        return made(visit)

    monkeypatch.setattr(reading, "rung", once)
    first, second = ss.saddle_ladder(run)
    assert first.near
    assert (second.label, second.near, second.rates) == ("(1,0)", False, ())
    assert "the flow of the small model failed" in second.note


def test_a_wild_run_of_heads_has_a_ladder():
    """Rates of 1e5: parameters of a million, saturated heads, and more slow points than are looked at; no traceback."""
    options = {"vocab": 5, "sequences": 200, "targets": 3, "steps": 200, "rate_values": 1e5, "rate_attention": 1e5}
    run = ss.run_study("incremental", **options, optimizer="gd", progress=False)
    ladder = ss.saddle_ladder(run)
    assert 0 < len(ladder) <= PASSING.most_slow
    assert "slow points only the 8 most marked are used" in ladder.rungs[-1].note
    assert all(np.isfinite(rung.residual) and rung.note for rung in ladder)


def test_the_ladder_of_a_small_run_of_heads_has_bounded_work(monkeypatch):
    made = []
    jacobian = derivatives.Derivatives.jacobian
    monkeypatch.setattr(derivatives.Derivatives, "jacobian", lambda self, v: made.append(len(v)) or jacobian(self, v))
    monkeypatch.setattr(critical, "PASSING", replace(critical.PASSING, products=2000))
    run = ss.run_study("incremental", vocab=5, sequences=200, targets=3, steps=200, frames=50, progress=False)
    (rung,) = ss.saddle_ladder(run)
    assert sum(made) <= 2000 + 10 * made[0]
    assert "did not suffice" in rung.note
