"""Rises and falls of curves: closed-form extremes, joined flickers, ends of runs, independence of frames."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stagescope.detect.events import turns
from stagescope.detect.noise import averaged

LEAST, BACK = 0.03, 0.005


def wave(frames, cycles=2.0):
    """1/2 - cos/2 on [1, 11]: rises and falls by 1, with extremes at known times."""
    time = np.linspace(1, 11, frames)
    return time, 0.5 - 0.5 * np.cos(2 * np.pi * cycles * (time - 1) / 10)


@pytest.mark.parametrize("frames", [101, 137, 2000])
def test_extremes_of_a_wave(frames):
    found = turns(*wave(frames, cycles=2.25), LEAST, BACK)
    assert [turn.rising for turn in found] == [True, False, True, False, True]
    assert [turn.stop for turn in found[:-1]] == pytest.approx([1 + 10 * k / 4.5 for k in (1, 2, 3, 4)], abs=0.02)
    assert [turn.after for turn in found] == pytest.approx([1, 0, 1, 0, 0.5], abs=0.01)
    assert found[-1].stop is None


def test_small_and_brief_moves_are_joined():
    time = np.linspace(1, 11, 1001)
    ramp = np.linspace(0, 1, 1001)
    ripple = ramp + 0.01 * np.sin(60 * time)
    spike = ramp + 0.5 * (np.abs(time - 6) < 0.02)
    for curve in (ripple, spike):
        found = turns(time, curve, LEAST, BACK)
        assert [(turn.start, turn.stop, turn.rising) for turn in found] == [(pytest.approx(1, abs=0.1), None, True)]


def test_flat_and_single_frames_have_no_turns():
    assert turns(np.array([0.0]), np.array([0.3]), LEAST, BACK) == []
    assert turns(np.linspace(0, 1, 50), np.full(50, 0.3), LEAST, BACK) == []


def test_a_fall_is_over_only_when_it_turned():
    time = np.linspace(1, 2, 101)
    fall = 1 - (time - 1)
    assert turns(time, fall, LEAST, BACK)[0].stop is None
    turned = np.where(time < 1.9, fall, 0.1 + (time - 1.9))
    (only,) = turns(time, turned, 0.2, BACK)
    assert only.stop == pytest.approx(1.9, abs=0.011)


@settings(max_examples=200)
@given(st.lists(st.floats(0, 1), min_size=3, max_size=60))
def test_turns_alternate_and_are_large(values):
    """Whatever the curve: rises and falls alternate, each by more than the least, in order, between values of the curve."""
    curve = np.repeat(np.array(values), 3)
    time = np.linspace(0.5, 40.0, len(curve)) ** 1.5
    found = turns(time, curve, LEAST, BACK)
    for turn, following in pairwise(found):
        assert turn.rising != following.rising
        assert turn.stop == following.start
    for turn in found:
        assert turn.stop is None or turn.stop > turn.start
        assert abs(turn.after - turn.before) > LEAST * 0.99
        assert min(values) - LEAST <= min(turn.before, turn.after) <= max(turn.before, turn.after) <= max(values) + LEAST


@pytest.mark.parametrize("sigma", [0.02, 0.06, 0.2])
def test_noise_alone_has_no_turns(sigma):
    """A flat row with the noise of batches, white or correlated over five records: no turn of its local mean counts."""
    time, counts = np.linspace(200, 800, 1500), []
    for seed in range(30):
        white = np.random.default_rng(seed).normal(size=1504) * sigma
        noise = white[4:] if seed % 2 else np.convolve(white, np.full(5, 0.2), mode="valid") * 5**0.5
        mean, error = averaged(time, 0.4 + noise)
        counts.append(len([turn for turn in turns(time, mean, LEAST, BACK, error) if turn.stop is not None]))
    assert np.mean(np.array(counts) > 0) <= 0.1
    jagged = 0.4 + np.random.default_rng(0).normal(size=150) * 0.06
    assert len(turns(time[::10], jagged, LEAST, BACK)) > 3, "without the noise floor there are many"


def test_turns_above_the_noise_are_found_with_intervals_around_them():
    """1/2 - cos/2 on [200, 800] with noise of .06: each extreme lies inside the interval of one turn."""
    time = np.linspace(200, 800, 1500)
    truth = 0.5 - 0.5 * np.cos(4 * np.pi * (time - 200) / 600)
    for seed in range(10):
        mean, error = averaged(time, truth + np.random.default_rng(seed).normal(size=1500) * 0.06)
        found = turns(time, mean, LEAST, BACK, error)
        assert len(found) <= 5, "four, and at most one at an end"
        for expected, rising in ((350, True), (500, False), (650, True)):
            (turn,) = (turn for turn in found if turn.low <= expected <= turn.high)
            assert turn.rising == rising
