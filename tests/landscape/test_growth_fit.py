"""Growth rates: right on an exponential, the same for every spacing of frames, none where there is no rise."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stagescope.landscape.linearise import last_rise


def grown(time):
    return 1e-3 * np.exp(0.7 * time)


def test_an_exponential():
    time = np.linspace(0, 10, 201)
    rise = last_rise(time, grown(time), 0.01, 0.1)
    assert rise is not None
    assert rise.rate == pytest.approx(0.7, rel=1e-9)
    assert rise.stop - rise.start == pytest.approx(np.log(10) / 0.7, rel=1e-9)
    assert rise.times(3)[1] == pytest.approx((rise.start + rise.stop) / 2)


def test_no_rise():
    time = np.linspace(0, 10, 201)
    assert last_rise(time, np.full(201, 0.01), 0.01, 0.1) is None
    assert last_rise(time[::40], grown(time[::40]), 0.01, 0.1) is None, "too few frames"
    assert last_rise(time, 0.05 + grown(time), 0.01, 0.1) is None, "it never was below"


@given(st.integers(0, 10**6))
def test_the_spacing_of_frames_does_not_matter(seed):
    """A curve that bends: a fit over frames would follow where they are dense."""
    rng = np.random.default_rng(seed)
    dense = np.unique(np.concatenate([np.linspace(0, 10, 400), rng.uniform(*np.sort(rng.uniform(0, 10, 2)), 2000)]))
    even = np.linspace(0, 10, 4000)
    rates = [last_rise(time, 1e-3 * np.exp(0.3 * time + 0.06 * time**2), 0.01, 0.1) for time in (dense, even)]
    assert rates[0] is not None
    assert rates[1] is not None
    assert rates[0].rate == pytest.approx(rates[1].rate, rel=1e-4)
