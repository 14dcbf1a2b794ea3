"""Curves of runs of many tokens: read off attention without the matrices of all frames."""

from dataclasses import replace

import numpy as np
import pytest

import stagescope as ss
from stagescope.papers.focus_dilution import reading
from stagescope.papers.focus_dilution.loss import MOST_BY_LOOPS
from stagescope.papers.focus_dilution.observables import TokenCurves


def curves(tokens, width, key_width, size, frames=4):
    rng = np.random.default_rng(tokens)
    rows = rng.random((tokens, tokens)) ** 4
    model = ss.TokenAttention(vocab=tokens, width=width, key_width=key_width, scale=2.0)
    law = ss.TokenPopulation(model=model, process=ss.MarkovChain(rows=rows / rows.sum(axis=1, keepdims=True)))
    starts = [model.init(seed, size) for seed in range(frames)]
    params = {name: np.stack([start[name] for start in starts]) for name in model.shapes}
    return TokenCurves(np.arange(float(frames)), params, law)


@pytest.mark.parametrize(("tokens", "width", "key_width", "size"), [(17, 1, 1, 1.0), (30, 5, 3, 0.5), (41, 4, 6, 4.0)])
def test_rows_are_those_of_the_matrices(tokens, width, key_width, size):
    found = curves(tokens, width, key_width, size)
    attention, scores = found.attention, found.scores
    flat = np.exp(scores - scores.max(axis=2, keepdims=True))
    flat /= flat.sum(axis=2, keepdims=True)
    np.testing.assert_allclose(found.on_frequent, attention[:, :, found.frequent], atol=1e-12)
    for entropy, rows in ((found.entropy, attention), (found.probe_entropy, flat)):
        np.testing.assert_allclose(entropy, -np.sum(rows * np.log(np.maximum(rows, 1e-300)), axis=2), atol=1e-11)
    np.testing.assert_allclose(found._rows[1], np.abs(np.diff(attention, axis=0)).max(axis=(1, 2)), atol=1e-12)


def test_a_frame_that_is_not_finite_has_no_rows():
    found = curves(20, 3, 3, 0.5)
    found.params["WQ"][1, 0, 0] = np.inf
    assert np.isnan(found.on_frequent[1]).all()
    assert np.isnan(found.probe_entropy[1]).all()
    assert np.isfinite(found.on_frequent[[0, 2, 3]]).all()
    assert np.isnan(found._rows[1][:2]).all()
    assert np.isfinite(found._rows[1][2])


def test_stages_of_many_tokens_form_no_matrices(monkeypatch):
    """Nor do they keep a replay of a run that has as many frames as are read."""
    tokens = MOST_BY_LOOPS + 1
    law = 1 / np.arange(1.0, tokens + 1)
    model = ss.TokenAttention(vocab=tokens, width=3, scale=4.0)
    loss = ss.population_loss(model, ss.LazyChain(pi=tuple(law / law.sum()), persistence=0.6))
    run = ss.evolve(loss, model.init(0, 1e-2), ss.GradientFlow(rtol=1e-7), until=150.0, record=ss.Uniform(frames=120))
    monkeypatch.setattr(reading, "REFINEMENT", replace(reading.REFINEMENT, most_entries=120 * tokens**2))
    monkeypatch.setattr(reading.Replay, "refined", None)
    assert ss.stages(run).events["Q1"] is not None
    assert not {"attention", "scores"} & set(vars(ss.reading(run).curves))
