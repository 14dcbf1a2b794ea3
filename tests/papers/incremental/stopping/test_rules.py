"""Stopping rules on curves."""

import numpy as np
import pytest

from stagescope.detect.transitions import transitions
from stagescope.papers.incremental.limits import LIMITS
from stagescope.papers.incremental.stopping import Stop, adaptive_stop, looks, patient_stop

STEP = np.unique(np.concatenate([[0], np.rint(np.geomspace(1, 3000, 150))])).astype(float)
CENTRES = (20, 500)


def staircase(centres, heights=(1.0, 1.0), width=0.12):
    """Falls that are smooth on the clock ln step, from a loss of 3."""
    logs = np.log(np.maximum(STEP, 0.5))
    falls = [h / (1 + np.exp(-(logs - np.log(c)) / width)) for c, h in zip(centres, heights, strict=True)]
    return 3.0 - np.sum(falls, axis=0)


TRAINING = staircase(CENTRES)


def sure(held):
    """Differences of the curve, without noise."""
    return lambda first, second: (float(held[first] - held[second]), 0.0)


def drifting(second_fall):
    """Held-out loss that rises slowly on plateau 1, and falls or rises at the second transition."""
    return staircase(CENTRES, heights=[1.0, second_fall]) + 0.05 * np.maximum(0, np.log(np.maximum(STEP, 1) / 60))


@pytest.mark.long
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
    """Decided once the second transition is over, not before."""
    held = drifting(-0.5)
    found = adaptive_stop(STEP, TRAINING, held, sure(held))
    assert found.frame == int(np.argmin(held))
    assert 500 < STEP[found.decided] < 1000
    seen = [each.t for each in transitions(STEP[: found.decided + 1], TRAINING[: found.decided + 1])]
    assert seen[-1] == pytest.approx(500, rel=0.1)


def test_a_stage_under_way_decides_nothing():
    cut = int(np.searchsorted(STEP, 480))
    held = drifting(-0.5)
    found = adaptive_stop(STEP[:cut], TRAINING[:cut], held[:cut], sure(held))
    assert found == Stop(int(np.argmin(held[:cut])), cut - 1)


def test_it_looks_every_tenth_of_ln_step():
    when = STEP[looks(STEP)]
    assert when[-1] == STEP[-1]
    assert np.all(np.diff(np.log(when[:-1])) >= LIMITS.patience - 1e-12)
    assert np.max(np.diff(np.log(when[when > 100]))) < 2 * LIMITS.patience


def test_a_loss_without_stages_never_stops_early():
    """A power law has no transition: the rule waits for the end and hands back the least held-out loss."""
    training = (1 + STEP) ** -0.3
    held = 1 + (np.log(STEP + 1) - 3) ** 2
    assert adaptive_stop(STEP, training, held, sure(held)) == Stop(int(np.argmin(held)), len(STEP) - 1)


def test_a_gain_within_its_standard_error_is_no_gain():
    held = drifting(0.5)
    noisy = adaptive_stop(STEP, TRAINING, held, lambda a, b: (float(held[a] - held[b]), 0.6))
    assert STEP[noisy.frame] < 100
    assert held[noisy.frame] == held[: noisy.decided][STEP[: noisy.decided] < 200].min()


@pytest.mark.long
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
