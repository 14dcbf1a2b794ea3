"""Transitions and plateaus on curves whose answers are known, and on the regression flow."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import stagescope as ss
from stagescope.detect.levels import crossings, plateaus, transitions, widened

LEVELS = np.array([3.0, 2.0, 1.0, 0.0])


def stairs(time, at=(1.0, 10.0, 100.0)):
    """One step at each time, smooth on a logarithmic clock."""
    lag = np.log(np.maximum(time, 1e-9))[:, None] - np.log(at)
    return 3.0 - np.sum(1 / (1 + np.exp(-12 * lag)), axis=1)


@pytest.mark.parametrize("frames", [120, 1000])
def test_stairs(frames):
    time = np.concatenate([[0.0], np.geomspace(1e-2, 1e4, frames)])
    loss = stairs(time)
    np.testing.assert_allclose(transitions(time, loss, LEVELS), (1.0, 10.0, 100.0), rtol=0.01)
    for j, found in enumerate(plateaus(time, loss, LEVELS), start=1):
        assert found.accepted
        assert found.j == j
        assert found.loss == pytest.approx(LEVELS[j], abs=1e-3)
    assert plateaus(time, loss, LEVELS)[0].t == pytest.approx(10**0.5, rel=0.1)


def test_what_is_not_reached_is_none():
    time = np.geomspace(1e-2, 30.0, 400)
    loss = stairs(time)
    assert transitions(time, loss, LEVELS)[2] is None
    first, second, third = plateaus(time, loss, LEVELS)
    assert first.accepted
    assert second.accepted
    assert third is None


def test_a_slide_has_no_plateau():
    time = np.geomspace(0.1, 100.0, 500)
    loss = np.interp(np.log(time), np.log([0.1, 100.0]), [3.0, 0.5])
    assert not any(found.accepted for found in plateaus(time, loss, np.array([3.0, 2.0, 0.9])))


def test_bad_levels():
    with pytest.raises(ss.InputError, match="at least two"):
        transitions(np.arange(3.0), np.ones(3), np.array([1.0]))
    with pytest.raises(ss.InputError, match=r"do not decrease: level 1 \(2\) is not below level 0 \(1\)"):
        transitions(np.arange(3.0), np.ones(3), np.array([1.0, 2.0]))
    with pytest.raises(ss.InputError, match="3 times"):
        transitions(np.arange(3.0), np.ones(2), LEVELS)


def test_a_stage_free_loss_crosses_all_levels_and_has_no_plateau():
    time = np.concatenate([[0.0], np.geomspace(1e-3, 1e3, 500)])
    for loss in (3 * np.exp(-time), 3 / (1 + time) ** 0.7, 3 * np.exp(-(time**2))):
        assert None not in transitions(time, loss, np.array([3.0, 2.0, 1.0, 0.1]))
        first, second, _ = plateaus(time, loss, np.array([3.0, 2.0, 1.0, 0.1]))
        assert (first.between, second.between) == (False, False)


@given(seed=st.integers(0, 10_000), frames=st.sampled_from([200, 400]), noise=st.floats(0.003, 0.05))
def test_intervals_hold_the_crossing_of_the_curve_without_noise(seed, frames, noise):
    """And stairs are seen as stairs."""
    time = np.geomspace(1e-2, 1e4, frames)
    loss = stairs(time) + noise * np.random.default_rng(seed).standard_normal(frames)
    for event, true in zip(crossings(time, loss, LEVELS, smooth=False), (1.0, 10.0, 100.0), strict=True):
        low, high = event.interval or (np.inf, -np.inf)
        assert low <= true * 1.01
        assert high >= true * 0.99
    assert all(found.between for found in plateaus(time, loss, LEVELS)[:2])


@pytest.mark.long
@settings(max_examples=6)
@given(
    frames=st.sampled_from([20, 60, 300, 1500, 3000]),
    law=st.sampled_from([ss.RegressionLoss, ss.MirrorFlow]),
    uniform=st.booleans(),
    seed=st.integers(0, 20),
)
def test_events_do_not_move_with_the_record(frames, law, uniform, seed):
    """Stages and claims of a run have the same t_j, whatever its frames."""
    model = ss.RegressionHeads(positions=7, gains=(3.0, 1.6), heads=2)
    record = ss.Uniform(frames=frames) if uniform else ss.LogSpaced(frames=frames)
    moved, start = ss.GradientFlow(rtol=1e-12), model.init(seed, 1e-4)
    until = 800.0 if law is ss.RegressionLoss else 120.0
    exact = ss.evolve(law(model=model), start, moved, until=until, record=ss.LogSpaced(frames=6000), progress=False)
    run = ss.evolve(law(model=model), start, moved, until=until, record=record, progress=False)
    found = ss.stages(run)
    fine = transitions(exact.t, model.losses(exact.params), np.array([(9 + 2.56) / 2, 1.28, 0.0]))
    for j, true in enumerate(fine, start=1):
        assert true is not None
        event = found.estimates[f"t{j}"]
        assert event.time == pytest.approx(true, rel=0.002)
        low, high = event.interval or (np.inf, -np.inf)
        assert low - 1e-3 * true <= true <= high + 1e-3 * true
        assert ss.reading(run).evidence.times[j - 1] == event.time


def test_other_batches_widen_an_event():
    """Student's interval of the spread; without other draws nothing changes."""
    event = crossings(np.geomspace(1e-2, 1e4, 300), stairs(np.geomspace(1e-2, 1e4, 300)), LEVELS, smooth=False)[1]
    assert widened(event, []) == widened(event, [None]) == event
    wide = widened(event, [9.0, 10.0, 11.0])
    spread = np.std([event.time, 9.0, 10.0, 11.0], ddof=1)
    assert (wide.high - wide.time) / spread == pytest.approx(3.182, abs=0.001)
    assert wide.time == event.time
