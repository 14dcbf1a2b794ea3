"""Chains: stationary law, entropy rate, structure of the graph, sampling in law."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import stagescope as ss
from stagescope.core.params import key
from stagescope.core.spec import build
from stagescope.papers.focus_dilution.model import asymmetric_law


@st.composite
def chains(draw):
    size, seed = draw(st.integers(2, 7)), draw(st.integers(0, 10_000))
    rng = np.random.default_rng(seed)
    return ss.MarkovChain(rows=rng.dirichlet(np.ones(size), size=size) * 0.99 + 0.01 / size)


@given(chains())
def test_stationary_law_is_kept_and_floor_is_below_unigram(chain):
    pi, p = chain.stationary, chain.transition
    np.testing.assert_allclose(pi @ p, pi, atol=1e-12)
    np.testing.assert_allclose(np.linalg.matrix_power(p, 400)[0], pi, atol=1e-9)
    assert 0 <= chain.floor() <= chain.unigram_loss() + 1e-12
    assert build(chain.describe()) == chain


@given(chains(), st.integers(0, 1000))
def test_no_predictor_beats_the_transition_matrix(chain, seed):
    other = np.random.default_rng(seed).dirichlet(np.ones(chain.vocab), size=chain.vocab)
    loss = -np.sum(chain.stationary[:, None] * chain.transition * np.log(other))
    assert loss >= chain.floor() - 1e-12


def test_lazy_chain_is_the_markov_chain_of_its_matrix():
    lazy = ss.LazyChain(pi=(0.5, 0.3, 0.2), persistence=0.6)
    same = ss.MarkovChain(rows=lazy.transition)
    np.testing.assert_allclose(same.stationary, lazy.stationary, atol=1e-14)
    assert same.floor() == pytest.approx(lazy.floor())
    assert ss.LazyChain(pi=(0.5, 0.5), persistence=0.0).floor() == pytest.approx(np.log(2))


def test_samples_follow_the_chain():
    chain = ss.LazyChain(pi=(0.6, 0.3, 0.1), persistence=0.4)
    tokens = chain.sample(key(0, "chain"), batch=3000, length=30)
    np.testing.assert_allclose(np.bincount(tokens.ravel()) / tokens.size, chain.stationary, atol=0.01)
    pairs = np.zeros((3, 3))
    np.add.at(pairs, (tokens[:, :-1].ravel(), tokens[:, 1:].ravel()), 1)
    np.testing.assert_allclose(pairs / pairs.sum(axis=1, keepdims=True), chain.transition, atol=0.02)
    first = chain.sample(key(0, "uniform"), 3000, 2, start="uniform")[:, 0]
    np.testing.assert_allclose(np.bincount(first) / 3000, 1 / 3, atol=0.04)


@given(chains(), st.integers(1, 9), st.sampled_from(["stationary", "uniform"]))
def test_counts_are_those_of_the_same_sequences(chain, length, start):
    tokens = chain.sample(key(3, "counts"), 40, length + 1, start)
    counts, last, after = chain.sample_counts(key(3, "counts"), 40, length, start)
    np.testing.assert_array_equal(counts, [np.bincount(row[:-1], minlength=chain.vocab) for row in tokens])
    np.testing.assert_array_equal(last, tokens[:, -2])
    np.testing.assert_array_equal(after, tokens[:, -1])


def test_forbidden_steps_are_never_drawn():
    """Also by the largest random numbers below one, and where a row does not sum to one exactly."""

    class Highest:
        def random(self, size):
            return np.full(size, np.nextafter(1, 0))

    rows = [[0.1] * 9 + [0.1, 0.0], *[[1 / 11] * 11] * 9, [0.3, 0.7, *[0.0] * 9]]
    chain = ss.MarkovChain(rows=rows)
    tokens = chain.sample(key(0, "forbidden"), 500, 50)
    assert np.all(chain.transition[tokens[:, :-1], tokens[:, 1:]] > 0)
    assert chain.sample(Highest(), 1, 5).tolist() == [[10, 1, 10, 1, 10]]


@pytest.mark.parametrize(
    ("rows", "words"),
    [
        ([[1.0]], "at least two"),
        ([[0.5, 0.5], [1.0]], "row 1 .* 1 entries"),
        ([[0.5, 0.6], [0.5, 0.5]], "row 0 sums to 1.1"),
        ([[1.5, -0.5], [0.5, 0.5]], "negative"),
        ([[1.0, 0.0], [0.5, 0.5]], "reducible"),
        ([[0.5, 0.5, 0.0], [0.5, 0.5, 0.0], [0.3, 0.3, 0.4]], "reducible"),
        ([[0.0, 1.0], [1.0, 0.0]], "period 2"),
        ([[0.0, 1.0, 0.0], [0.0, 0.0, 1.0], [1.0, 0.0, 0.0]], "period 3"),
    ],
)
def test_bad_matrices_are_refused_with_the_reason(rows, words):
    with pytest.raises(ss.InputError, match=words):
        ss.MarkovChain(rows=rows)


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"pi": (0.5, 0.5, 0.0), "persistence": 0.5}, "never occurs"),
        ({"pi": (0.5, 0.4), "persistence": 0.5}, "sums to 0.9"),
        ({"pi": (0.5, 0.5), "persistence": 1.0}, "below 1"),
        ({"pi": (0.8, 0.2), "persistence": -0.25}, r"above -0\.25"),
        ({"pi": (0.5, float("nan")), "persistence": 0.1}, "finite"),
    ],
)
def test_bad_lazy_chains(fields, words):
    with pytest.raises(ss.InputError, match=words):
        ss.LazyChain(**fields)


def test_a_chain_that_avoids_repeating():
    """Negative persistence: rows are laws, pi is stationary, and P_ii is below pi_i."""
    chain = ss.LazyChain(pi=(0.5, 0.3, 0.2), persistence=-0.24)
    assert np.min(chain.transition) > 0
    np.testing.assert_allclose(chain.transition.sum(axis=1), 1)
    np.testing.assert_allclose(chain.stationary @ chain.transition, chain.stationary)
    assert np.all(np.diag(chain.transition) < chain.stationary)


@given(st.floats(0.05, 0.9), st.integers(3, 8), st.integers(0, 100))
def test_the_asymmetric_family(first, tokens, seed):
    shape = np.random.default_rng(seed).normal(size=tokens - 1)
    shape = tuple(shape - shape.mean())
    law = np.array(asymmetric_law(first, tokens, shape, 1e-3))
    assert law.sum() == pytest.approx(1)
    np.testing.assert_allclose(law[1:] - (1 - first) / (tokens - 1), 1e-3 * np.array(shape), atol=1e-15)


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ((0.0, 3, (1.0, -1.0), 0.1), "pi0 is 0"),
        ((1.0, 3, (1.0, -1.0), 0.1), "pi0 is 1"),
        ((0.5, 4, (1.0, -1.0), 0.1), "has 2 entries, but 4 tokens need 3"),
        ((0.5, 3, (1.0, -0.5), 0.1), "sum to 0.5, not 0"),
        ((0.4, 3, (1.0, -1.0), 0.5), r"delta 0.5 makes a probability -0.2; .*below 0.3"),
        ((0.4, 4, (2.0, -1.0, -1.0), -0.2), "delta -0.2 makes a probability -0.2; .*below 0.1"),
    ],
)
def test_bad_asymmetric_laws(fields, words):
    with pytest.raises(ss.InputError, match=words):
        asymmetric_law(*fields)


@pytest.mark.parametrize("coupling", [1e-6, 1e-14, 1e-300])
def test_stationary_law_of_parts_that_are_all_but_apart(coupling):
    """Two blocks, left with probabilities c and 3 c: pi is (3/4, 1/4) times the blocks' own laws, to rounding.

    A block of equal rows r has the law r, whatever leaves it, so this is exact.
    """
    a, b = np.array([0.7, 0.3]), np.array([0.2, 0.5, 0.3])
    rows = np.block(
        [
            [np.tile((1 - coupling) * a, (2, 1)), np.tile(coupling * b, (2, 1))],
            [np.tile(3 * coupling * a, (3, 1)), np.tile((1 - 3 * coupling) * b, (3, 1))],
        ]
    )
    expected = np.concatenate([0.75 * a, 0.25 * b])
    np.testing.assert_allclose(ss.MarkovChain(rows=rows).stationary, expected, rtol=1e-13)


def test_rare_tokens_keep_their_digits():
    """Of two tokens pi = (b, a)/(a + b): also where one is met once in 1e200 steps."""
    chain = ss.MarkovChain(rows=[[1.0, 1e-200], [0.5, 0.5]])
    np.testing.assert_allclose(chain.stationary, [1.0, 2e-200], rtol=1e-14)
