"""Curves of a run on a text against the matrices themselves."""

import numpy as np
import pytest

import stagescope as ss
from stagescope.papers.focus_dilution.observables import TokenCurves
from stagescope.papers.focus_dilution.text.loss import TextCounts
from stagescope.papers.focus_dilution.text.observables import text_curves
from stagescope.papers.rebuild import rebuilt


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
