"""The general ladder: on a loss of one's own, on scan and snap, where there is no saddle, and without a flow time."""

import numpy as np
import pytest

import stagescope as ss
from stagescope.landscape.ladder import fitted_rate
from tests.landscape.laws import VALUES, product_loss, product_start


def test_own_objective():
    loss = product_loss()
    run = ss.evolve(loss, product_start(), ss.GradientFlow(), until=100.0, record=ss.Uniform(frames=1500))
    ladder = ss.saddle_ladder(run, loss)
    assert [rung.label for rung in ladder] == ["1 saddle", "2 saddle", "3 saddle", "4 minimum"]
    for rung, value in zip(ladder, VALUES, strict=False):
        assert rung.near
        assert rung.rates[0] == pytest.approx(value, abs=1e-8)
        assert rung.measured_rate == pytest.approx(value, rel=0.03)
        assert rung.cosines[0] > 0.99
        assert rung.predicted_escape == pytest.approx(rung.measured_escape, rel=0.05)
        assert set(rung.opening.split("+")) == {"A", "B"}
    assert ladder["4 minimum"].opening is None
    with pytest.raises(ss.InputError, match="pass it"):
        ss.saddle_ladder(run)


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


def test_fitted_rate():
    time = np.linspace(0, 10, 201)
    rate, rise = fitted_rate(time, 1e-3 * np.exp(0.7 * time), 0.01, 0.1)
    assert rate == pytest.approx(0.7)
    assert rise is not None
    assert time[rise[1]] - time[rise[0]] == pytest.approx(np.log(10) / 0.7, abs=0.11)
    assert fitted_rate(time, np.full(201, 0.01), 0.01, 0.1) == (None, None)
    assert fitted_rate(time[::40], 1e-3 * np.exp(0.7 * time[::40]), 0.01, 0.1) == (None, None), "too few frames"
