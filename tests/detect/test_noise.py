"""Noise of a run from its own curve: walks of known variance, smooth curves, delays over seeds, coverage of local means."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stagescope.detect.events import first_crossing, turns
from stagescope.detect.noise import averaged, delay, flutter, variation


def walk(rng, time, sigma):
    steps = rng.normal(size=len(time) - 1) * sigma * np.sqrt(np.diff(time))
    return np.concatenate([[0.0], np.cumsum(steps)])


@pytest.mark.parametrize("spacing", ["even", "growing"])
def test_the_variance_of_a_walk_on_a_smooth_motion(spacing):
    time = np.linspace(0, 100, 2001) if spacing == "even" else np.concatenate([[0.0], np.geomspace(0.1, 100, 2000)])
    found = [variation(time, 3 * np.sin(time / 20) + walk(np.random.default_rng(seed), time, 0.3))[-1] for seed in range(20)]
    assert np.mean(found) == pytest.approx(0.09 * 100, rel=0.1)


def test_a_smooth_curve_has_none():
    time = np.linspace(0, 100, 1001)
    assert variation(time, 0.1 * time + np.sin(time / 20))[-1] < 1e-8
    assert variation(time[:3], time[:3]).tolist() == [0.0, 0.0, 0.0]


def test_the_interval_of_a_delay_covers_the_event_without_noise():
    """ln a = .2 t plus a walk: over seeds the crossing of ln a = 4 is spread as each run says."""
    time, covered, spread = np.linspace(0, 60, 601), 0, []
    for seed in range(200):
        curve = 0.2 * time + walk(np.random.default_rng(seed), time, 0.1)
        when = first_crossing(time, curve, 4.0, rising=True)
        assert when is not None
        half = delay(time, curve, 4.0, when)
        covered += abs(when - 20.0) <= half
        spread.append(half)
    assert 0.88 <= covered / 200 <= 0.995
    assert np.median(spread) == pytest.approx(1.96 * 0.1 * 20**0.5 / 0.2, rel=0.15)


def test_steps_with_memory_are_read_further_apart():
    """A walk whose increments are correlated over ten steps: its variance is that of records further apart."""
    found = []
    for seed in range(20):
        rng, time = np.random.default_rng(seed), np.arange(4001.0)
        steps = np.convolve(rng.normal(size=4010), np.full(10, 0.1), mode="valid")[:4000]
        curve = np.concatenate([[0.0], np.cumsum(steps)])
        found.append([variation(time, curve, apart)[-1] for apart in (0.0, 50.0)])
    near, far = np.mean(found, axis=0)
    assert near < 0.3 * 4000
    assert far == pytest.approx(4000, rel=0.25)


def test_local_means_and_their_errors_over_seeds():
    time = np.arange(1.0, 2000.0)
    truth = np.log(time)
    covered = []
    for seed in range(60):
        rng = np.random.default_rng(seed)
        noise = np.zeros(len(time))
        for i in range(1, len(time)):
            noise[i] = 0.5 * noise[i - 1] + rng.normal()
        mean, error = averaged(time, truth + noise)
        covered.append(np.abs(mean - truth)[[600, 1200]] <= error[[600, 1200]])
        assert np.median(error[600:1200]) < 0.8, "the mean is surer than one record, whose 95 % half-width is 2.3"
    assert 0.85 <= np.mean(covered) <= 1.0


def test_the_mean_of_a_line_is_the_line_at_both_ends_too():
    time = np.linspace(1, 100, 500)
    mean, error = averaged(time, 2 * time)
    assert mean == pytest.approx(2 * time)
    assert np.max(error[np.isfinite(error)]) < 1e-9
    assert np.isinf(error[[0, -1]]).all(), "one record says nothing about its noise"


def test_flutter_is_the_spread_of_records_around_a_smooth_curve():
    time = np.linspace(0, 10, 2001)
    found = flutter(time, np.sin(time) + np.random.default_rng(0).normal(size=2001) * 0.05)
    assert np.median(found) == pytest.approx(0.05, rel=0.1)
    assert np.max(flutter(time, np.sin(time))) < 1e-4


@given(st.integers(0, 10_000), st.integers(1, 300), st.sampled_from(["even", "log"]))
def test_pure_noise_has_an_error(seed, records, spacing):
    """However few the records, the error of their local mean is never zero."""
    time = np.linspace(1, 60, records) if spacing == "even" else np.geomspace(1, 1000, records)
    mean, error = averaged(time, 0.5 + 0.05 * np.random.default_rng(seed).normal(size=records))
    assert len(mean) == len(error) == records
    assert np.all(error > 0)


@pytest.mark.parametrize("records", [10, 60, 100, 200, 400, 1000])
def test_noise_has_no_turns(records):
    """Pure noise: of 60 records, too few for any window, 28 turns were found where the error was zero."""
    time, found = np.linspace(1, 60, records), []
    for seed in range(100):
        mean, error = averaged(time, 0.5 + 0.05 * np.random.default_rng(seed).normal(size=records))
        known = np.isfinite(error)
        later = turns(time[known], mean[known], 0.03, 0.005, error[known]) if known.any() else []
        found.append(sum(turn.stop is not None for turn in later))
    assert np.mean(found) <= 0.05
