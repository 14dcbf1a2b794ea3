"""Frames: where they are, always the start and the end."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import stagescope as ss
from stagescope.core.errors import InputError
from stagescope.core.spec import build

RECORDS = [ss.Uniform(frames=7), ss.LogSpaced(frames=9), ss.AtTimes(at=(0.1, 0.3)), ss.LogSpaced(frames=5, first=0.01)]
RECORDS += [ss.Around(at=(0.2, 40.0), widths=(0.01, 3.0), frames=9)]


@pytest.mark.parametrize("record", RECORDS)
@given(until=st.floats(0.5, 1e6))
def test_times_start_at_zero_end_at_the_end_and_increase(record, until):
    times = record.times(until)
    assert times[0] == 0
    assert times[-1] == pytest.approx(until, rel=1e-15)
    assert np.all(np.diff(times) > 0)


@pytest.mark.parametrize("record", [ss.Uniform(frames=7), ss.LogSpaced(frames=9), ss.Every(n=3)])
@given(total=st.integers(1, 10**6))
def test_steps_start_at_zero_end_at_the_end_and_increase(record, total):
    steps = record.steps(total)
    assert (steps[0], steps[-1]) == (0, total)
    assert np.all(np.diff(steps) > 0)


@pytest.mark.parametrize("record", [*RECORDS, ss.Every(n=3), ss.LossBelow(value=1.0), ss.SpeedBelow(value=1.0)])
def test_specs_round_trip(record):
    assert build(record.describe()) == record


def test_bad_records():
    for at in ((), (2.0, 1.0), (-1.0,)):
        with pytest.raises(InputError, match="increasing"):
            ss.AtTimes(at=at)
    with pytest.raises(InputError, match="not before the end"):
        ss.LogSpaced(first=10.0).times(5.0)
    with pytest.raises(InputError, match="frames"):
        ss.Uniform(frames=1)


def test_frames_stand_close_around_chosen_times():
    record = ss.Around(at=(50.0, 2000.0), widths=(2.0, 10.0), frames=50)
    found = record.times(1000.0)
    assert found[0] == 0
    assert found[-1] == 1000
    assert np.all(np.diff(found) > 0)
    near = found[np.abs(found - 50) <= 2]
    assert np.max(np.diff(near)) <= 0.1 + 1e-12  # 41 frames within the width; the time after the end is passed over
    assert len(found) <= record.count(0)
    far = np.diff(found[(found > 60) & (found < 150)])
    assert np.all(far <= 0.2 * (found[(found > 60) & (found < 150)][1:] - 50))


@pytest.mark.parametrize(("at", "widths"), [((1.0,), ()), ((-1.0,), (1.0,)), ((1.0,), (0.0,))])
def test_times_without_a_width_are_refused(at, widths):
    with pytest.raises(ss.InputError, match="as many widths as times"):
        ss.Around(at=at, widths=widths)
