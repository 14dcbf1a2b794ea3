"""Stopping rules on curves."""

import numpy as np
import pytest

from stagescope.detect.stopping import Stop, adaptive_stop, oracle_stop, patient_stop
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


def test_a_stage_that_does_not_help_ends_the_run():
    held = drifting(-0.5)
    found = adaptive_stop(STEP, TRAINING, held, sure(held))
    assert found.frame == int(np.argmin(held))
    assert 500 < STEP[found.decided] < 700


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
