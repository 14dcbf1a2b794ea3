"""Curves of a run on a text against the matrices themselves."""

from dataclasses import replace

import numpy as np
import pytest

import stagescope as ss
from stagescope.papers.focus_dilution.observables import TokenCurves
from stagescope.papers.focus_dilution.text.model import TextCounts
from stagescope.papers.focus_dilution.text.observables import text_curves
from stagescope.readings.rebuild import rebuilt


@pytest.fixture(scope="module")
def run():
    corpus = ss.read_corpus("topics", vocab=20)
    model = ss.TokenAttention(vocab=20, width=5, key_width=3, scale=0.7)
    law = TextCounts(model=model, process=corpus, length=16, batch=32, watched=64)
    return ss.evolve(law, model.init(0, 0.7), ss.Descent(lr=0.3, steps=12), progress=False)


def whole_curves(run):
    law = rebuilt(run.spec["field"])
    params = {name: run.params[name] for name in run.params}
    return TokenCurves(run.time, params, ss.TokenPopulation(model=law.model, process=law.process))


def test_curves_are_those_of_the_whole_matrices(run):
    """`TokenCurves` forms every matrix of every frame."""
    found, whole = text_curves(run), whole_curves(run)
    top = found.frequent
    np.testing.assert_allclose(found.on_frequent, whole.attention[:, :, top], atol=1e-14)
    np.testing.assert_allclose(found.on_itself, np.diagonal(whole.attention, axis1=1, axis2=2), atol=1e-14)
    np.testing.assert_allclose(found.entropy, whole.entropy, atol=1e-12)
    np.testing.assert_allclose(found.embedding_values, whole.embedding_values, atol=1e-12)
    np.testing.assert_allclose(found.score_values[:, :3], whole.score_values[:, :3], atol=1e-12)
    np.testing.assert_allclose(found.norms, whole.norms, atol=1e-14)
    np.testing.assert_allclose(found.attention([4, 0]), whole.attention[:, [4, 0]], atol=1e-14)


def test_alignment_is_a_cosine(run):
    found = text_curves(run)
    phi, target = whole_curves(run).scores, np.outer(found.pi, found.pi)
    sizes = np.linalg.norm(phi, axis=(1, 2)) * np.linalg.norm(target)
    np.testing.assert_allclose(found.alignment, np.sum(phi * target, axis=(1, 2)) / sizes, atol=1e-12)


def test_rare_types_are_the_rarer_half(run):
    found = text_curves(run)
    assert len(found.rare) == 10
    assert found.pi[found.rare].max() <= np.delete(found.pi, found.rare).min()
    assert found.mean_entropy[0] == pytest.approx(found.entropy[0] @ found.pi)


def test_rows_of_a_frame_that_is_not_finite_are_nan(run):
    found = text_curves(run)
    params = {name: np.array(block) for name, block in found.params.items()}
    params["WQ"][3] = np.nan
    other = replace(found, params=params)
    assert np.isnan(other.entropy[3]).all()
    np.testing.assert_array_equal(other.entropy[4], found.entropy[4])


def test_one_type_that_is_not_finite_spoils_all_rows(run):
    """Every row has a score of it."""
    found = text_curves(run)
    params = {name: np.array(block) for name, block in found.params.items()}
    params["W0"][3, -1, 0] = np.nan
    assert np.isnan(replace(found, params=params).on_frequent[3]).all()


def test_scores_far_apart(run):
    """Entropy near 0, of attention on a single type, with scores that no exponential could hold."""
    found = text_curves(run)
    far = replace(found, params={**found.params, "WQ": 1e5 * found.params["WQ"]})
    exact = far.attention(range(20))
    np.testing.assert_allclose(far.on_itself, np.diagonal(exact, axis1=1, axis2=2), atol=1e-12)
    logs = np.log(exact, where=exact > 0, out=np.zeros_like(exact))
    np.testing.assert_allclose(far.entropy, -np.sum(exact * logs, axis=2), atol=1e-12)
