"""Transitions and plateaus on curves whose answers are known, and on the regression flow."""

import numpy as np
import pytest

import stagescope as ss
from stagescope.papers.incremental.transitions import plateaus, transitions

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
