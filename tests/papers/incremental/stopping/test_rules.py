"""Stopping rules on curves."""

import numpy as np
import pytest

from stagescope.detect.shoulders import transitions_so_far
from stagescope.papers.incremental.stopping.rules import Stop, adaptive_stop, oracle_stop, patient_stop
from tests.detect.test_shoulders import STEP, staircase

CENTRES = (20, 500)
TRAINING = staircase(CENTRES)


def sure(held):
    """Differences of the curve, without noise."""
    return lambda first, second: (float(held[first] - held[second]), 0.0)


def drifting(second_fall):
    """Held-out loss that rises slowly on plateau 1, and falls or rises at the second transition."""
    return staircase(CENTRES, heights=[1.0, second_fall]) + 0.05 * np.maximum(0, np.log(STEP / 60))


def test_oracle_is_the_least():
    assert oracle_stop(np.array([3.0, 1.0, 2.0])) == Stop(1, 2)


def test_patience_runs_out_on_a_plateau_and_stages_do_not():
    held = drifting(0.5)
    patient = patient_stop(STEP, held, patience=100)
    adaptive = adaptive_stop(STEP, TRAINING, held, sure(held))
    assert held[patient.frame] > held[adaptive.frame] + 0.2
    assert adaptive.frame == int(np.argmin(held))
    assert STEP[patient.decided] - STEP[patient.frame] >= 100


@pytest.mark.parametrize(
    ("patience", "expected"),
    [(3, Stop(2, 5)), (3.5, Stop(2, 6)), (4, Stop(2, 6)), (5, Stop(2, 7)), (6, Stop(8, 12)), (40, Stop(8, 12)), (1, Stop(2, 3))],
)
def test_patience_is_counted_in_steps_from_the_last_least_value(patience, expected):
    """The least so far at step 4, an equal one at step 9, a new least at step 10: stop at the first frame `patience` later."""
    step = np.array([0.0, 2, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14])
    held = np.array([5.0, 4, 3, 3.5, 3.5, 3.5, 3.5, 3, 2, 2.5, 2.5, 2.5, 2.5])
    assert patient_stop(step, held, patience) == expected


def test_a_stage_that_does_not_help_ends_the_run():
    """Decided at the very frame at which the second transition is known to be over."""
    held = drifting(-0.5)
    found = adaptive_stop(STEP, TRAINING, held, sure(held))
    assert found == Stop(int(np.argmin(held)), transitions_so_far(STEP, TRAINING)[1].over)
    assert 500 < STEP[found.decided] < 700


def test_a_stage_under_way_is_judged_at_the_end():
    cut = int(np.searchsorted(STEP, 480))
    held = drifting(-0.5)
    assert transitions_so_far(STEP[:cut], TRAINING[:cut])[-1].over is None
    found = adaptive_stop(STEP[:cut], TRAINING[:cut], held[:cut], sure(held))
    assert found == Stop(int(np.argmin(held[:cut])), cut - 1)


def test_a_gain_within_its_standard_error_is_no_gain():
    held = drifting(0.5)
    noisy = adaptive_stop(STEP, TRAINING, held, lambda a, b: (float(held[a] - held[b]), 0.6))
    assert STEP[noisy.frame] < 100
    assert held[noisy.frame] == held[: noisy.decided][STEP[: noisy.decided] < 200].min()


@pytest.mark.parametrize("fall", [0.5, -0.5])
def test_rules_look_back_only(fall):
    """Cut at the frame of the decision, curves give the same stop: later frames are never looked at."""
    held = drifting(fall)
    rules = (
        lambda n: patient_stop(STEP[:n], held[:n], 100),
        lambda n: adaptive_stop(STEP[:n], TRAINING[:n], held[:n], sure(held)),
    )
    for rule in rules:
        whole = rule(len(STEP))
        assert rule(whole.decided + 1) == whole


def test_a_run_that_never_learns_hands_back_its_start():
    flat = np.full(len(STEP), 3.0)
    assert adaptive_stop(STEP, flat, flat, sure(flat)) == Stop(0, len(STEP) - 1)
    assert patient_stop(STEP, flat, 50).frame == 0
