"""Token-pair attention: sums, masking, and the long-sequence limit of sampled contexts."""

import numpy as np
import pytest

from stagescope.core.errors import InputError
from stagescope.papers.scan_snap.model import PairwiseAttention, attention, features
from stagescope.papers.scan_snap.process import SequenceClasses


def test_attention_sums_to_one_ignores_absent_keys_and_shifts():
    rng = np.random.default_rng(0)
    scores, counts = rng.normal(size=(5, 7)), rng.integers(0, 4, size=(5, 7)) + np.eye(5, 7)
    found = attention(scores, counts)
    np.testing.assert_allclose(found.sum(axis=1), 1.0)
    assert np.all(found[counts == 0] == 0)
    np.testing.assert_allclose(found, attention(scores + 1000.0, counts), rtol=1e-10)
    np.testing.assert_allclose(np.linalg.norm(features(scores, counts), axis=1), 1.0)


def test_zero_scores_give_the_counts():
    counts = np.array([[1.0, 3.0, 0.0]])
    np.testing.assert_allclose(attention(np.zeros((1, 3)), counts), [[0.25, 0.75, 0.0]])


def test_merged_model_keeps_only_what_can_move():
    process = SequenceClasses.synthetic(2, 1, 3, 4, vocab=1000)
    model = PairwiseAttention.merged(process)
    shapes = {name: block.shape for name, block in model.init().items()}
    assert shapes == {"Y": (11, 3), "Z": (2, 11)}
    assert model.rest == 998
    assert model.multiplicity.sum() == 1000


def test_random_start_needs_all_columns():
    process = SequenceClasses.synthetic(2, 1, 3, 4)
    with pytest.raises(InputError, match="merged column"):
        PairwiseAttention.merged(process).init(0, 0.1)
    full = PairwiseAttention.full(process.vocab).init(0, 0.1)
    assert full["Y"].shape == (process.vocab, process.vocab)
    assert 0.09 < np.abs(full["Y"]).max() <= 0.1
    with pytest.raises(InputError, match="init scale"):
        PairwiseAttention.full(4).init(0, float("nan"))
    with pytest.raises(InputError, match="keys must list different tokens"):
        PairwiseAttention(vocab=3, keys=(0, 0), queries=(1,), outputs=(2,))
