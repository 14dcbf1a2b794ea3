"""Transitions of a loss without levels, found while it runs."""

from itertools import pairwise

import numpy as np
import pytest

from stagescope.detect.shoulders import THRESHOLDS, speeds, transitions_so_far
from stagescope.errors import InputError

STEP = np.unique(np.rint(np.geomspace(1, 1000, 300)))


def staircase(centres, step=STEP, width=0.08, heights=None):
    """A loss that falls by logistic steps in ln s."""
    heights = heights or [1.0] * len(centres)
    falls = (h / (1 + np.exp(-(np.log(step) - np.log(c)) / width)) for c, h in zip(centres, heights, strict=True))
    return 3.0 - np.sum(list(falls), axis=0)


def test_speed_of_a_power_of_the_step_is_its_slope_in_ln_step():
    loss = 2.0 - 0.3 * np.log(STEP)
    found = speeds(STEP, loss)
    seen = np.log(STEP) >= THRESHOLDS.window
    np.testing.assert_allclose(found[seen], 0.3, rtol=1e-9)
    assert not found[~seen].any()


@pytest.mark.parametrize("centres", [(20, 150), (10, 60, 500), (30, 240, 464)])
def test_every_fall_of_a_staircase_is_found_where_it_is(centres):
    found = transitions_so_far(STEP, staircase(centres))
    assert len(found) == len(centres)
    for transition, centre in zip(found, centres, strict=True):
        assert STEP[transition.peak] == pytest.approx(centre, rel=0.1)
        assert transition.over is not None
        assert transition.shoulder < transition.peak < transition.over
    for before, after in pairwise(found):
        assert before.over is not None
        assert before.over <= after.shoulder


def test_answers_do_not_change_when_more_frames_come():
    loss = staircase((10, 60, 500)) + 0.02 * np.sin(5 * np.log(STEP))
    whole = transitions_so_far(STEP, loss)
    assert len(whole) >= 3
    for frames in range(2, len(STEP)):
        for early, late in zip(transitions_so_far(STEP[:frames], loss[:frames]), whole, strict=False):
            assert early.shoulder == late.shoulder
            assert early == late if early.over is not None else late.over is None or late.over >= frames


def test_recording_more_frames_finds_the_same_falls():
    dense = np.arange(1.0, 1001.0)
    centres = (20, 150)
    coarse = [STEP[t.peak] for t in transitions_so_far(STEP, staircase(centres))]
    fine = [dense[t.peak] for t in transitions_so_far(dense, staircase(centres, dense))]
    np.testing.assert_allclose(coarse, fine, rtol=0.05)


def test_flicker_of_a_loss_at_rest_is_no_stage():
    noise = np.random.default_rng(0).normal(size=len(STEP))
    loss = staircase((20,)) + 0.2 * THRESHOLDS.faint * 3.0 * THRESHOLDS.window * noise
    assert len(transitions_so_far(STEP, loss)) == 1


def test_a_small_burst_on_a_plateau_is_no_stage():
    """As minibatches make them: fast for a moment, but nothing comes of it."""
    loss = staircase((20, 90, 500), heights=[1.0, 0.02, 0.5], width=0.03)
    assert [STEP[t.peak] for t in transitions_so_far(STEP, loss)] == pytest.approx([20, 500], rel=0.1)


def test_a_fall_under_way_is_not_over():
    found = transitions_so_far(STEP, staircase((1000,)))
    assert found[-1].over is None


def test_steps_must_rise():
    with pytest.raises(InputError, match="rising steps"):
        speeds(np.array([0.0, 2.0, 1.0]), np.zeros(3))
    with pytest.raises(InputError, match="3 steps for 2 losses"):
        speeds(np.arange(3.0), np.zeros(2))
    assert transitions_so_far(np.array([]), np.array([])) == ()
