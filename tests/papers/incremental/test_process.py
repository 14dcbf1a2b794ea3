"""Lagged chains: the conditional law against brute force, sampling in law, losses, refusals."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import stagescope as ss
from stagescope.core.params import key
from stagescope.core.spec import build

SHIFTS = np.broadcast_to([0.3, 0.1, -2.0, 0.7], (4, 4))
"""1 v^T: all scores shift alike, which softmax ignores."""


@st.composite
def chains(draw):
    """Random chains: groups of random lags, shared or not, with or without weights, any kind of features."""
    vocab, seed = draw(st.integers(3, 6)), draw(st.integers(0, 10_000))
    rng = np.random.default_rng(seed)
    lags = rng.permutation(np.arange(1, 7))
    parts = draw(st.sampled_from([(1, 1), (2, 1), (2, 2, 2), (3,)]))
    stops = np.cumsum(parts)
    groups = [tuple(lags[stop - size : stop].tolist()) for stop, size in zip(stops, parts, strict=True)]
    if draw(st.booleans()):
        groups[-1] = tuple({*groups[-1], groups[0][0]})
    importances = np.sort(rng.uniform(0.5, 3, len(groups)))[::-1]
    weights = tuple(tuple(rng.uniform(0.2, 2, len(g))) for g in groups) if draw(st.booleans()) else None
    kind = draw(st.sampled_from(["orthogonal", "centred"]))
    features = ss.RandomFeatures(kind=kind, seed=seed)
    return ss.LaggedChain(vocab=vocab, groups=groups, importances=importances, features=features, weights=weights)


def law_by_hand(chain, past):
    """softmax of z, from one-hot vectors and matrix products."""
    z = np.zeros(chain.vocab)
    for i, group in enumerate(chain.groups):
        for place, lag in enumerate(group):
            weight = 1.0 if chain.weights is None else chain.weights[i][place]
            z += weight * chain.matrices[i] @ np.eye(chain.vocab)[past[-lag]]
    return np.exp(z) / np.exp(z).sum()


@given(chains(), st.integers(0, 3))
def test_the_law_of_each_target_is_that_of_its_own_past(chain, pad):
    tokens = chain.sample(key(0, "law"), 4, 5, pad)
    assert tokens.shape == (4, chain.reach + pad + 5)
    start = chain.reach + pad
    law = chain.predictive(tokens, start)
    for b, t in itertools.product(range(4), range(5)):
        np.testing.assert_allclose(law[b, t], law_by_hand(chain, tokens[b, : start + t]), rtol=1e-10)


@given(chains())
def test_chains_round_trip(chain):
    assert build(chain.describe()) == chain
    assert hash(build(chain.describe())) == hash(chain)


@given(chains())
def test_losses_are_means_over_contexts(chain):
    tokens = chain.sample(key(1, "loss"), 30, 4)
    law = chain.predictive(tokens)
    assert chain.bayes_loss(tokens) == pytest.approx(-np.sum(law * np.log(law)) / law[..., 0].size)
    for j in range(len(chain.groups) + 1):
        wanted = -np.sum(law * np.log(chain.predictive(tokens, groups=j))) / law[..., 0].size
        assert chain.soft_loss(tokens, chain.matrices[:j]) == pytest.approx(wanted)
        assert chain.soft_loss(tokens, chain.matrices[:j]) >= chain.bayes_loss(tokens) - 1e-12
    assert chain.soft_loss(tokens, chain.matrices[:0]) == pytest.approx(np.log(chain.vocab))
    assert chain.soft_loss(tokens, chain.matrices[: len(chain.groups)]) == pytest.approx(chain.bayes_loss(tokens))


@given(chains(), st.integers(0, 100))
def test_relabelling_tokens_commutes(chain, seed):
    order = np.random.default_rng(seed).permutation(chain.vocab)
    renamed = np.empty_like(chain.matrices)
    renamed[:, order[:, None], order[None, :]] = chain.matrices / np.array(chain.importances)[:, None, None]
    given = {"features": ss.GivenFeatures(matrices=renamed), "weights": chain.weights}
    other = ss.LaggedChain(vocab=chain.vocab, groups=chain.groups, importances=chain.importances, **given)
    tokens = chain.sample(key(2, "names"), 5, 3)
    np.testing.assert_allclose(other.predictive(order[tokens])[..., order], chain.predictive(tokens), rtol=1e-9)


def test_blocks_do_not_change_losses(monkeypatch):
    chain = ss.LaggedChain.spans(5)
    tokens = chain.sample(key(0, "blocks"), 50, 3)
    whole = chain.soft_loss(tokens, chain.matrices[:1])
    monkeypatch.setattr("stagescope.papers.incremental.process.BLOCK", 100)
    assert chain.soft_loss(tokens, chain.matrices[:1]) == pytest.approx(whole, rel=1e-14)


def test_sample_frequencies():
    """Every context of a small chain is followed by tokens in proportion to its law; the first tokens are uniform."""
    chain = ss.LaggedChain(vocab=3, groups=((2,), (1,)), importances=(1.5, 0.8))
    tokens = chain.sample(key(0, "frequencies"), 40_000, 3, pad=1)
    np.testing.assert_allclose(np.bincount(tokens[:, :3].ravel()) / tokens[:, :3].size, 1 / 3, atol=0.005)
    counts = np.zeros((3, 3, 3))
    np.add.at(counts, (tokens[:, 1:-2], tokens[:, 2:-1], tokens[:, 3:]), 1)
    for old, last in itertools.product(range(3), repeat=2):
        law = chain.predictive(np.array([[old, last, 0]]))[0, 0]
        np.testing.assert_allclose(counts[old, last] / counts[old, last].sum(), law, atol=0.02)


def test_tokens_of_no_probability_are_never_drawn():
    """Scores far apart underflow to zero; the largest random number below one must not reach such a token."""

    class Highest:
        def integers(self, high, size):
            return np.zeros(size, dtype=np.int64)

        def random(self, size):
            return np.full(size, np.nextafter(1, 0))

    matrix = np.zeros((4, 4))
    matrix[:2] = 2000.0
    chain = ss.LaggedChain(vocab=4, groups=((1,),), importances=(1.0,), features=ss.GivenFeatures(matrices=matrix[None]))
    assert chain.sample(Highest(), 1, 3).tolist() == [[0, 1, 1, 1]]
    assert chain.bayes_loss(np.array([[0, 1]])) == pytest.approx(np.log(2))


def test_spans_are_laid_out_as_said():
    chain = ss.LaggedChain.spans(6, (2, 4, 8), ratio=2, scale=3)
    assert chain.groups == ((1, 2), (3, 4, 5, 6), (7, 8, 9, 10, 11, 12, 13, 14))
    assert chain.importances == (12.0, 6.0, 3.0)
    assert ss.LaggedChain.spans(6, (2, 4, 8), reverse=True).groups == (
        (13, 14),
        (9, 10, 11, 12),
        (1, 2, 3, 4, 5, 6, 7, 8),
    )
    assert chain.disjoint
    assert chain.reach == 14
    shared = ss.LaggedChain.spans(6, (4, 4, 4), stride=2, span_weights=(0.4, 0.3, 0.2, 0.1))
    assert shared.groups == ((1, 2, 3, 4), (3, 4, 5, 6), (5, 6, 7, 8))
    assert shared.weights == ((0.4, 0.3, 0.2, 0.1),) * 3
    assert not shared.disjoint
    assert shared.lags == tuple(range(1, 9))
    own = ss.LaggedChain.spans(6, (1, 2), span_weights=((1.0,), (0.7, 0.3)), reverse=True)
    assert own.groups == ((3,), (1, 2))
    assert own.weights == ((1.0,), (0.7, 0.3))
    assert ss.LaggedChain.spans(6, ratio=1).importances == (5.0, 5.0, 5.0)


def test_the_floor_is_the_bayes_loss():
    chain = ss.LaggedChain.spans(8, (1, 1))
    fresh = chain.sample(key(9, "fresh"), 3000, 20)
    assert chain.floor() == pytest.approx(chain.bayes_loss(fresh), abs=0.03)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"groups": ((0, 1), (2,))}, "group 0 has lag 0; lags count back"),
        ({"groups": ((1,), (-2,))}, "group 1 has lag -2"),
        ({"groups": ((1, 1), (2,))}, "group 0 has lag 1 twice"),
        ({"groups": ((1,), ())}, "group 1 has no lags"),
        ({"groups": ()}, "no groups"),
        ({"importances": (1.0,)}, "1 importances for 2 groups"),
        ({"importances": (1.0, 0.0)}, "importance 0 is not positive"),
        ({"importances": (1.0, -2.0)}, "importance -2 is not positive"),
        ({"importances": (1.0, 2.0)}, "most important first"),
        ({"importances": (float("inf"), 2.0)}, "finite"),
        ({"vocab": 1}, "vocab"),
        ({"vocab": 10**6}, "GiB"),
        ({"weights": ((1.0,),)}, "one weight per lag"),
        ({"weights": ((1.0,), (0.0,))}, "not all positive"),
        ({"features": ss.GivenFeatures(matrices=np.ones((2, 3, 3)))}, r"shape \(2, 3, 3\), but 2 groups .* 4 tokens"),
        ({"features": ss.GivenFeatures(matrices=np.ones((3, 4, 4)))}, r"shape \(3, 4, 4\)"),
        ({"features": ss.GivenFeatures(matrices=np.full((2, 4, 4), 1e308)), "importances": (9.0, 1.0)}, "could reach inf"),
        ({"features": ss.GivenFeatures(matrices=np.zeros((2, 4, 4)))}, "feature of group 0 is all zero, .*leave the group out"),
        ({"features": ss.GivenFeatures(matrices=np.stack([np.eye(4), np.full((4, 4), 0.3)]))}, "group 1 has equal rows"),
        ({"features": ss.GivenFeatures(matrices=np.stack([np.eye(4), SHIFTS]))}, "group 1 has equal rows, so .* no effect"),
        ({"lag": 3}, "unknown field"),
    ],
)
def test_bad_chains(change, words):
    with pytest.raises(ss.InputError, match=words):
        ss.LaggedChain(**{"vocab": 4, "groups": ((1,), (2,)), "importances": (2.0, 1.0), **change})


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"spans": ()}, "at least one"),
        ({"spans": (2, 0)}, r"spans are \(2, 0\)"),
        ({"ratio": 0.5}, "ratio is 0.5"),
        ({"ratio": float("nan")}, "ratio is nan"),
        ({"scale": 0.0}, "scale is 0"),
        ({"scale": -1.0}, "scale is -1"),
        ({"stride": 0}, "stride is 0"),
        ({"span_weights": (0.7, 0.2, 0.1)}, "one weight per lag"),
        ({"span_weights": ((0.7, 0.3), 1.0)}, "one weight per lag"),
        ({"span_weights": (0.7, -0.3)}, "not all positive"),
    ],
)
def test_bad_spans(change, words):
    with pytest.raises(ss.InputError, match=words):
        ss.LaggedChain.spans(**{"vocab": 6, "spans": (2, 2), **change})


def test_bad_requests():
    chain = ss.LaggedChain.spans(4, (2, 2), stride=1)
    assert not chain.disjoint
    assert ss.LaggedChain.spans(4).disjoint
    chain.check_context(3)
    with pytest.raises(ss.InputError, match=r"context of 2 tokens does not reach back 3 lags; .*at least 3"):
        chain.check_context(2)
    for fields, words in (((0, 5), "sequences is 0"), ((5, 0), "targets is 0"), ((5, 5, -1), "pad is -1")):
        with pytest.raises(ss.InputError, match=words):
            chain.sample(key(0), *fields)
    with pytest.raises(ss.InputError, match=r"sample would take .* GiB"):
        chain.sample(key(0), 10**9, 5)
    tokens = chain.sample(key(0), 3, 2)
    with pytest.raises(ss.InputError, match="groups is 3, but must be between 0 and 2"):
        chain.scores(tokens, groups=3)
    for start in (2, 5):
        with pytest.raises(ss.InputError, match=f"start {start} in tokens of shape"):
            chain.scores(tokens, start)
    for bad, words in ((tokens[0], "got shape"), (tokens * 1.0, "float64"), (tokens[:0], "one sequence"), (tokens + 4, "0..3")):
        with pytest.raises(ss.InputError, match=words):
            chain.bayes_loss(bad)
    with pytest.raises(ss.InputError, match="scores would take"):
        chain.scores(np.broadcast_to(np.int8(0), (10**8, 4)))
