"""The general ladder: on a loss of one's own, on scan and snap, where there is no saddle, and without a flow time."""

from dataclasses import replace

import numpy as np
import pytest

import stagescope as ss
from stagescope.landscape import critical, derivatives
from stagescope.landscape import escape as leaving
from stagescope.landscape import ladder as ladders
from stagescope.landscape.ladder import Rung
from stagescope.landscape.limits import LIMITS
from stagescope.show.portrait import portrait
from tests.landscape.laws import VALUES, Power, deep_loss, deep_start, product_loss, product_start


@pytest.mark.long
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
        assert (rung.law, rung.order, rung.coefficient) == ("linear", 1, None)
        assert 0 < (rung.remainder or 0) < 0.1
        assert rung.rates[0] == pytest.approx(value, abs=1e-8)
        assert rung.measured_rate == pytest.approx(value, rel=0.03)
        assert rung.cosines[0] > 0.99
        assert rung.predicted_escape == pytest.approx(rung.measured_escape, rel=0.05)
        assert set(rung.opening.split("+")) == {"A", "B"}
    assert ladder["4 minimum"].opening is None


@pytest.mark.long
@pytest.mark.parametrize(("depth", "scale", "until", "coefficient"), [(3, 0.02, 400.0, 3**-0.5), (4, 0.1, 1500.0, 0.25)])
def test_an_escape_that_has_no_rate(depth, scale, until, coefficient):
    """The origin of a deep linear network is of order depth - 1: the law says so, predicts the escape, and gives no rate."""
    loss = deep_loss(depth)
    run = ss.evolve(loss, deep_start(depth, scale), ss.GradientFlow(), until=until, record=ss.Uniform(frames=3000))
    ladder = ss.saddle_ladder(run, loss)
    left = [rung for rung in ladder if rung.opening]
    assert len(left) == 2
    for rung in left:
        assert rung.law == f"order {depth - 1}"
        assert rung.rates == ()
        assert rung.measured_rate is None
        assert 0 < (rung.remainder or 0) < 0.02
        assert rung.predicted_escape == pytest.approx(rung.measured_escape, rel=0.02)
        assert rung.cosines[0] > 0.999
    assert (left[0].order, left[0].coefficient) == (depth - 1, pytest.approx(coefficient, rel=1e-3))
    assert f"{left[0].opening} opens by a law of order {depth - 1}, c = " in str(left[0])
    stated = ladder.json()["rungs"][0]
    assert (stated["law"], stated["rates"], stated["order"]) == (f"order {depth - 1}", [], depth - 1)


@pytest.mark.long
def test_a_plateau_that_is_left_is_no_minimum():
    """Nothing grows at the points that are found: they lie on cones through degenerate ones."""
    loss = deep_loss(3)
    run = ss.evolve(loss, deep_start(3, 0.02, seed=2), ss.GradientFlow(), until=300.0, record=ss.Uniform(frames=600))
    assert ss.critical_points(run, loss)[1].kind == "minimum"
    assert [rung.label for rung in ss.saddle_ladder(run, loss)] == ["1 degenerate", "2 degenerate", "3 minimum"]


@pytest.mark.long
def test_a_drift_is_followed():
    """x' = .01 + x^2 has no zero: from x = -1 the run is slowest at 0, and moves on as a tangent does."""
    law = Power(2, 1.0, 0.01)
    run = ss.evolve(law, {"x": np.full(1, -1.0)}, ss.GradientFlow(), until=29.0, record=ss.Uniform(frames=2000))
    drift = ss.saddle_ladder(run, law).rungs[0]
    assert (drift.law, drift.rates, drift.opening, drift.near) == ("drift", (), None, False)
    assert drift.predicted_escape == pytest.approx(drift.measured_escape, rel=0.01)
    assert "no critical point is near" in drift.note


def test_a_search_towards_infinity_is_given_up():
    """exp(-x) falls for ever: steps stay as long as they are, and a zero would be far away."""
    from stagescope.flow.autodiff import jnp

    law = ss.JaxObjective(lambda p: jnp.exp(-p["x"]).sum())
    run = ss.evolve(law, {"x": np.zeros(1)}, ss.GradientFlow(), until=20.0, record=ss.Uniform(frames=200))
    heard: list[int] = []
    (point,) = ss.critical_points(run, law, heard=heard.append)
    assert point.led_away
    assert not point.found
    assert heard[-1] < 100
    assert "a valley that leads further" in ss.saddle_ladder(run, law).rungs[0].note


@pytest.mark.long
def test_a_clock_that_is_no_time_leaves_the_order_open():
    """Adam near the origin of a deep network: the linear law does not hold, so no rate is given either."""
    descent = ss.Descent(optimizer=ss.Adam(), lr=1e-3, steps=2000)
    run = ss.evolve(deep_loss(3), deep_start(3, 0.02), descent, record=ss.Every(n=10))
    first = ss.saddle_ladder(run, deep_loss(3)).rungs[0]
    assert (first.law, first.rates, first.predicted_escape) == (None, (), None)
    assert "no flow time" in first.note


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


def test_runs_on_batches_have_no_ladder():
    """Where every step has data of its own there is no field whose critical points the run passes: it is refused, and at once."""
    batches = {"optimizer": "gd", "batch": 4, "lr": 0.01, "steps": 30}
    run = ss.run_study("linear-icl", "three", progress=False, **batches)
    with pytest.raises(ss.InputError, match=r"a batch of its own.*`stagescope stages`.*trained without batches"):
        ss.saddle_ladder(run)
    assert ss.reading(run).ladder_cost[0] == 0
    found = portrait(run, skip=("ledger", "prediction"))
    assert found.ladder is None
    assert [note for note in found.notes if "batch of its own" in note] == [f"there is no saddle ladder: {ladders.BATCHES}"]


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


@pytest.mark.long
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


@pytest.mark.long
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


@pytest.mark.long
def test_a_wild_run_of_heads_has_a_ladder():
    """Rates of 1e5: parameters of a million, saturated heads, and more slow points than are looked at; no traceback."""
    options = {"vocab": 5, "sequences": 200, "targets": 3, "steps": 200, "rate_values": 1e5, "rate_attention": 1e5}
    run = ss.run_study("incremental", **options, optimizer="gd", progress=False)
    ladder = ss.saddle_ladder(run)
    assert 0 < len(ladder) <= LIMITS.most_slow
    assert "slow points only the 8 most marked are used" in ladder.rungs[-1].note
    assert all(np.isfinite(rung.residual) and rung.note for rung in ladder)


@pytest.mark.long
def test_the_ladder_of_a_small_run_of_heads_has_bounded_work(monkeypatch):
    made = []
    jacobian = derivatives.Derivatives.jacobian
    monkeypatch.setattr(derivatives.Derivatives, "jacobian", lambda self, v: made.append(len(v)) or jacobian(self, v))
    run = ss.run_study("incremental", vocab=5, sequences=200, targets=3, steps=200, frames=50, progress=False)
    for products, why in ((300, "did not suffice"), (2000, "a valley that leads further")):
        made.clear()
        monkeypatch.setattr(critical, "LIMITS", replace(LIMITS, products=products))
        (rung,) = ladders.field_ladder(run, ss.reading(run).field)
        assert sum(made) <= products + 10 * made[0]
        assert why in rung.note
