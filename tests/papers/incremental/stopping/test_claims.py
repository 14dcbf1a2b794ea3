"""Claims about early stopping: their regimes, and verdicts on runs of the ladder that no constant was chosen on."""

from types import SimpleNamespace

import numpy as np
import pytest

import stagescope as ss
from stagescope.claims.ledger import Ledger
from stagescope.papers.incremental.limits import LIMITS
from stagescope.papers.incremental.stopping import STOPPING_CLAIMS, Stop, StoppingEvidence

FINISHED = SimpleNamespace(done=True, status="finished", reason="", clock="step")


def evidence(
    near=(1, 2),
    fits=(3.0, 1.5, 2.0),
    loose=None,
    ridge=(3.0, 1.6, 1.5),
    end=2.5,
    levels=(3.0, 1.5, 1.0),
    error=0.1,
    clear=True,
    ridge_error=0.01,
):
    """A run whose best frame is its second, with loss 1.4; `near` are the classes there and at the end."""
    likelihood = {**dict.fromkeys(LIMITS.ridges, np.array(fits)), LIMITS.ridges[-1]: np.array(loose or fits)}
    best = {r: int(np.argmin(row)) for r, row in likelihood.items()}
    found = SimpleNamespace(
        law=SimpleNamespace(sequences=50),
        curves=SimpleNamespace(levels=SimpleNamespace(losses=np.array(levels)), nearest=lambda frame: (near[frame - 1], clear)),
        validation_law=SimpleNamespace(floor=1.0),
        difference=lambda first, second: (0.0, error),
        step=np.array([0.0, 90.0, 1000.0]),
        validation=np.array([3.0, 1.4, end]),
        stops={"oracle": Stop(1, 2), "end": Stop(2, 2)},
        gain=end - 1.4,
        loss=lambda rule: {"oracle": 1.4, "end": end}[rule],
        nearest=lambda frame: near[frame - 1],
        likelihood=likelihood,
        best_by_ridge=best,
        best_class=best[LIMITS.ridges[-1]] if best[LIMITS.ridges[-1]] == best[LIMITS.ridges[-2]] else None,
        ridge=np.array(ridge),
        ridge_error=lambda frame, groups: ridge_error,
    )
    return SimpleNamespace(stopping=found, found=found)


def verdicts(found):
    return [row.verdict for row in Ledger.of(FINISHED, STOPPING_CLAIMS, found)]


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({}, ["confirmed", "violated"]),
        ({"near": (2, 2)}, ["violated", "violated"]),
        ({"near": (2, 2), "clear": False}, ["inconclusive", "violated"]),
        ({"ridge": (3.0, 1.6, 1.2)}, ["confirmed", "confirmed"]),
        ({"ridge": (3.0, 1.6, 1.41)}, ["confirmed", "inconclusive"]),
        ({"ridge": (3.0, 1.6, 1.2), "ridge_error": 0.3}, ["confirmed", "inconclusive"]),
        ({"ridge": (3.0, 1.6, np.nan)}, ["confirmed", "inconclusive"]),
        ({"loose": (3.0, 2.5, 2.0)}, ["inconclusive", "violated"]),
        ({"fits": (3.0, 2.5, 2.0), "near": (1, 1)}, ["inconclusive", "violated"]),
        ({"end": 1.41}, ["not applicable", "not applicable"]),
        ({"levels": (1.5, 1.2, 1.0)}, ["inconclusive", "inconclusive"]),  # half-way to level 1 is 1.35
        ({"error": 2.1}, ["inconclusive", "inconclusive"]),  # the ladder is 2.0 high
        ({"end": np.nan}, ["inconclusive", "inconclusive"]),
    ],
)
def test_verdicts(changes, expected):
    assert verdicts(evidence(**changes)) == expected


def test_runs_without_a_stop_are_not_spoken_of():
    assert verdicts(SimpleNamespace(stopping="labels are the true law")) == ["not applicable"] * 2


def test_runs_of_other_models_say_why_they_have_no_stops():
    run = ss.run_study("incremental", "ladder", sequences=8, labels="soft", steps=2, frames=3, progress=False)
    assert [row.verdict for row in Ledger.of(run, STOPPING_CLAIMS, StoppingEvidence(run))] == ["not applicable"] * 2
    assert "labels hard" in StoppingEvidence(run).stopping


def test_a_run_that_did_not_end_confirms_nothing():
    broken = SimpleNamespace(done=False, status="diverged", reason="too fast", clock="step")
    assert [row.verdict for row in Ledger.of(broken, STOPPING_CLAIMS, evidence())] == ["inconclusive"] * 2


NOTHING = {
    "diverging": ({"optimizer": "gd", "rate_values": 1e5, "rate_attention": 1e5, "steps": 60}, "t_1 was not passed"),
    "no ladder": ({"scale": 1e-6, "steps": 150}, "the ladder is 2.7e-13 high"),
}


@pytest.mark.long
@pytest.mark.parametrize("kind", NOTHING)
def test_runs_that_learned_nothing_decide_nothing(kind):
    """The best frame of both is the first, and the last is far worse: no stage was learned that could be overfitted."""
    changes, words = NOTHING[kind]
    run = ss.run_study("incremental", "ladder", vocab=6, spans=(1, 1), sequences=30, progress=False, **changes)
    for row in Ledger.of(run, STOPPING_CLAIMS, StoppingEvidence(run)):
        assert row.verdict == "inconclusive"
        assert words in row.regime


@pytest.mark.long
def test_fifty_sequences_of_the_ladder():
    """On fresh features: the stop is of class 1, as the best likelihood fit is, and the ridge fit is far better."""
    run = ss.run_study("incremental", "ladder", sequences=50, steps=400, feature_seed=41, seed=42, progress=False)
    ledger = Ledger.of(run, STOPPING_CLAIMS, StoppingEvidence(run))
    first, second = ledger
    assert (first.predicted, first.measured) == (1, 1)
    assert first.verdict == "inconclusive", "class 2 is nearly as near"
    assert second.verdict == "confirmed"
    assert second.measured > 0.2
