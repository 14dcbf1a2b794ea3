"""Stops of one run against independent computations of the same numbers."""

from dataclasses import replace
from functools import cache

import numpy as np
import pytest

import stagescope as ss
from stagescope.papers.incremental.levels import fit_class, fit_ridge
from stagescope.papers.incremental.limits import LIMITS
from stagescope.papers.incremental.stopping import Stopping, stopping

SMALL = {"vocab": 6, "spans": (1, 1), "targets": 4, "heads": 2, "scale": 3.0, "frames": 60}


@cache
def small(sequences: int = 40, steps: int = 400) -> Stopping:
    return stopping(ss.run_study("incremental", "ladder", sequences=sequences, steps=steps, seed=3, progress=False, **SMALL))


def tokens_of(law) -> np.ndarray:
    return law.all.tokens.T.astype(np.int64)


def test_curves_are_cross_entropies_of_the_model():
    found, model = small(), small().law.model
    frame = 40
    params = {name: block[frame] for name, block in found.curves.params.items()}
    for law, curve in ((found.validation_law, found.validation), (found.held_law, found.held)):
        tokens = tokens_of(law)
        logits = model.logits(params, tokens)
        logs = logits - np.log(np.exp(logits).sum(axis=-1, keepdims=True))
        drawn = np.eye(model.vocab)[tokens[:, model.context :]]
        wanted = law.process.predictive(tokens, model.context) if law.labels == "soft" else drawn
        assert curve[frame] == pytest.approx(-np.mean(np.sum(wanted * logs, axis=-1)), abs=1e-12)


def test_samples_are_drawn_apart_and_validation_is_the_same_for_all_seeds():
    found = small()
    assert found.held_sequences == 10
    assert (tokens_of(found.held_law) != tokens_of(found.law)[:10]).mean() > 0.5
    assert (tokens_of(found.held_law) != tokens_of(found.validation_law)[:10]).mean() > 0.5
    law = found.law
    reseeded = type(law)(model=law.model, process=law.process, sequences=law.sequences, seed=4)
    other = replace(found, curves=replace(found.curves, law=reseeded))
    np.testing.assert_array_equal(tokens_of(found.validation_law), tokens_of(other.validation_law))
    assert (tokens_of(found.held_law) != tokens_of(other.held_law)).any()


def test_differences_are_those_of_the_curve_with_the_spread_of_the_sequences():
    found = small()
    mean, error = found.difference(45, 20)
    assert mean == pytest.approx(found.held[45] - found.held[20], abs=1e-12)
    each = found._sequence_losses(45) - found._sequence_losses(20)
    means = [np.random.default_rng(i).choice(each, len(each)).mean() for i in range(2000)]
    assert error == pytest.approx(np.std(means), rel=0.15)


def test_no_rule_beats_the_oracle_and_every_stop_is_a_frame():
    found = small()
    for rule, stop in found.stops.items():
        assert found.loss(rule) >= found.loss("oracle")
        assert 0 <= stop.frame <= stop.decided < len(found.step)
    assert found.gain == found.loss("end") - found.loss("oracle") > 0.05


def test_fits_are_those_of_the_public_functions():
    found = small()
    law, judged = found.law, tokens_of(found.validation_law)
    start = law.model.context
    for j in (1, 2):
        direct = fit_class(law.process, tokens_of(law), j, start, LIMITS.ridges[1])
        assert found.likelihood[LIMITS.ridges[1]][j] == pytest.approx(direct.loss(judged, start), abs=2e-3)
        assert found.ridge[j] == pytest.approx(fit_ridge(law.process, tokens_of(law), j, start).loss(judged, start), abs=1e-9)
    assert [found.ridge[0], found.likelihood[LIMITS.ridges[0]][0]] == pytest.approx([np.log(6)] * 2)


def test_with_many_sequences_all_fits_reach_the_levels_and_nothing_is_gained_by_stopping():
    found = small(4000, 50)
    for losses in (*found.likelihood.values(), found.ridge):
        np.testing.assert_allclose(losses, found.curves.levels.losses, atol=0.03)
    assert found.best_class == 2
    assert found.gain == 0


def test_a_class_that_is_not_the_same_for_vanishing_ridges_is_not_settled():
    found = small()
    falling = dict(
        zip(LIMITS.ridges, (np.array([3.0, 2.0, 1.0]), np.array([3.0, 2.0, 1.0]), np.array([3.0, 2.0, 9.0])), strict=True)
    )
    unsure = replace(found)
    unsure.__dict__["likelihood"] = falling
    assert unsure.best_class is None
    assert list(unsure.best_by_ridge.values()) == [2, 2, 1]
    unsure.__dict__["likelihood"] = {**falling, LIMITS.ridges[-1]: np.array([3.0, 2.0, np.nan])}
    assert unsure.best_class is None


@pytest.mark.parametrize(
    ("options", "said"),
    [({"labels": "soft"}, "labels hard"), ({"fresh": True}, "fixed one"), ({"sequences": 1}, "at least 2")],
)
def test_runs_that_cannot_be_stopped_are_refused(options, said):
    run = ss.run_study("incremental", "ladder", steps=2, progress=False, **{"sequences": 8, **SMALL, "frames": 3, **options})
    with pytest.raises(ss.InputError, match=said):
        stopping(run)


def test_rules_without_sense_are_refused():
    run = ss.run_study("incremental", "ladder", steps=2, progress=False, sequences=8, **{**SMALL, "frames": 3})
    with pytest.raises(ss.InputError, match="no standard error"):
        stopping(run, held_sequences=1)
    with pytest.raises(ss.InputError, match="patience is -1"):
        stopping(run, patience=-1)
