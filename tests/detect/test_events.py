"""Crossings and peaks of curves with known answers."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stagescope.detect.events import first_crossing, peak


@given(st.floats(0.05, 0.95), st.integers(5, 200))
def test_crossing_of_a_line_is_exact(level, frames):
    time = np.linspace(0, 1, frames)
    assert first_crossing(time, time, level, rising=True) == pytest.approx(level, abs=1e-12)
    assert first_crossing(time, 1 - time, 1 - level, rising=False) == pytest.approx(level, abs=1e-12)


def test_crossing_is_none_when_not_reached_and_starts_after():
    time = np.linspace(0, 10, 101)
    wave = np.sin(time)
    assert first_crossing(time, wave, 2.0, rising=True) is None
    assert first_crossing(time, wave, 0.5, rising=True) == pytest.approx(np.arcsin(0.5), abs=1e-3)
    assert first_crossing(time, wave, 0.5, rising=True, after=4.0) == pytest.approx(2 * np.pi + np.arcsin(0.5), abs=1e-3)
    assert first_crossing(time, wave, -0.5, rising=True) == 0.0


@given(st.floats(2.0, 8.0))
def test_peak_of_a_parabola_is_exact_on_any_grid(top):
    time = np.concatenate([[0.0], np.geomspace(0.1, 10, 40)])
    when, height = peak(time, 100 - (time - top) ** 2) or (0, 0)
    assert when == pytest.approx(top, abs=1e-9)
    assert height == pytest.approx(100, abs=1e-9)


def test_a_peak_at_the_last_frame_is_not_passed():
    time = np.linspace(0, 1, 5)
    assert peak(time, time) is None
    assert peak(time, np.zeros(5)) is None
    assert peak(time, 1 - time) == (0.0, 1.0)
