"""Attention on lag groups, how heads split them, and the class a model predicts as."""

import numpy as np
import pytest

import stagescope as ss
from stagescope.observables.lags import LagCurves
from stagescope.observables.regression import contrast
from stagescope.processes.class_levels import class_levels


def curves(heads=3, targets=4, frames=1, **params):
    chain = ss.LaggedChain.spans(5, spans=(2, 1), scale=2.0)
    model = ss.PositionalHeads(vocab=5, heads=heads, context=chain.reach, targets=targets)
    law = ss.HeadsLoss(model=model, process=chain, sequences=50)
    start = {name: np.stack([block] * frames) for name, block in model.init(0, 0.0).items()}
    return LagCurves(np.arange(frames, dtype=float), start | params, law)


def looking_at(found, lags):
    """Scores that put head h on lag lags[h] for every target."""
    model = found.law.model
    scores = np.zeros((1, *model.shapes["a"]))
    for head, lag in enumerate(lags):
        for target in range(model.targets):
            scores[0, head, target, model.context + target - lag] = 60.0
    return scores


def test_mass_counts_positions_by_their_lag():
    """Groups are lags (1, 2) and (3): a head on lag 2 is in the first, one on lag 3 in the second."""
    base = curves()
    found = curves(a=looking_at(base, (1, 2, 3)))
    np.testing.assert_allclose(found.mass[0], [[1, 0], [1, 0], [0, 1]], atol=1e-12)
    assert found.agreement[0] == pytest.approx(0.0, abs=1e-12)
    flat = curves(targets=1)
    np.testing.assert_allclose(flat.mass[0], np.tile([2 / 3, 1 / 3], (3, 1)), atol=1e-12)
    assert flat.agreement[0] == pytest.approx(1.0)
    assert flat.contrast[0] == pytest.approx(0.0, abs=1e-12)


def test_contrast_of_a_perfect_split():
    assert contrast(np.eye(3)[None])[0] == pytest.approx(2 / 3)
    assert contrast(np.eye(3)[None, [2, 0, 1]])[0] == pytest.approx(2 / 3), "whoever takes which group"
    assert contrast(np.tile([1.0, 0.0, 0.0], (1, 3, 1)))[0] == pytest.approx(0.0)


def test_excess_is_measured_from_the_truth():
    """Values zero: the uniform prediction, ln d above nothing but the entropy; it predicts as class 0."""
    found = curves()
    entropy = found.held_out.floor
    assert found.excess[0] == pytest.approx(np.log(5) - entropy)
    assert np.argmin(found.divergences(0)) == 0
    assert found.divergences(0)[0] == pytest.approx(0.0, abs=1e-12)
    assert found.steps[-1] == pytest.approx(0.0, abs=0.01)


def test_the_true_heads_predict_as_the_last_class():
    """One head per lag with the true values: no excess, and the nearest class is the whole one."""
    base = curves()
    process = base.law.process
    values = np.stack([process.matrices[0], process.matrices[0], process.matrices[1]])[None]
    found = curves(a=looking_at(base, (1, 2, 3)), V=values)
    assert found.excess[0] == pytest.approx(0.0, abs=1e-9)
    assert np.argmin(found.divergences(0)) == 2
    assert len(class_levels(process, 4).losses) == 3
