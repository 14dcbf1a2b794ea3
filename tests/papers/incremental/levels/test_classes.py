"""Restricted classes: the fit is the right convex problem, and its answers are right where they are known."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import stagescope as ss
from stagescope.core.params import key
from stagescope.papers.incremental.levels import (
    Contexts,
    Known,
    RestrictedClass,
    drawn_moments,
    fit,
    fit_class,
    fit_ridge,
    true_moments,
)


@st.composite
def tasks(draw):
    """A chain with disjoint or shared lags, with or without weights, and a few sequences of it."""
    seed, vocab = draw(st.integers(0, 1000)), draw(st.integers(3, 5))
    stride, weights = draw(st.sampled_from([None, 1])), draw(st.sampled_from([None, (0.7, 0.3)]))
    features = ss.RandomFeatures(seed=seed)
    chain = ss.LaggedChain.spans(vocab, (2, 2), scale=1.0, stride=stride, span_weights=weights, features=features)
    return chain, chain.sample(key(seed, "task"), 25, 3), np.random.default_rng(seed)


@given(tasks(), st.integers(1, 2))
def test_merged_contexts_and_moments_give_the_loss_of_the_definition(task, groups):
    chain, tokens, rng = task
    matrices = rng.normal(size=(groups, chain.vocab, chain.vocab))
    contexts = Contexts.of(chain, tokens)
    known = contexts.known_to(groups)
    assert known.loss(matrices, true_moments(contexts)[:groups]) == pytest.approx(chain.soft_loss(tokens, matrices))
    law = RestrictedClass(chain, matrices).law(tokens)
    drawn = np.take_along_axis(law, tokens[:, chain.reach :, None], axis=2)
    assert known.loss(matrices, drawn_moments(chain, tokens)[:groups]) == pytest.approx(-np.log(drawn).mean())


@given(tasks(), st.integers(1, 2))
def test_the_gradient_is_that_of_finite_differences(task, groups):
    chain, tokens, rng = task
    matrices, way = rng.normal(size=(2, groups, chain.vocab, chain.vocab))
    known = Contexts.of(chain, tokens).known_to(groups)
    _, grad = known.log_partition(matrices)
    step = 1e-5
    slope = (known.log_partition(matrices + step * way)[0] - known.log_partition(matrices - step * way)[0]) / (2 * step)
    assert np.sum(grad * way) == pytest.approx(slope, abs=1e-8)


@given(tasks(), st.integers(1, 2))
def test_no_other_member_of_the_class_does_better(task, groups):
    chain, tokens, rng = task
    contexts = Contexts.of(chain, tokens)
    known, moments = contexts.known_to(groups), true_moments(contexts)[:groups]
    matrices, converged = fit(known, moments)
    least = known.loss(matrices, moments)
    assert converged
    assert least <= chain.soft_loss(tokens, chain.matrices[:groups]) + 1e-7
    for scale in (0.01, 1.0):
        assert least <= known.loss(matrices + scale * rng.normal(size=matrices.shape), moments) + 1e-7


def test_the_kernel_adds_up_what_gathers_give():
    """One context, one lag: log Z is that of a row of the table, and the gradient its softmax."""
    matrix = np.random.default_rng(0).normal(size=(1, 3, 3))
    known = Known(np.ones((1, 1)), np.array([[2]], dtype=np.int32), np.ones(1))
    value, grad = known.log_partition(matrix)
    column = np.exp(matrix[0, :, 2])
    assert value == pytest.approx(np.log(column.sum()))
    np.testing.assert_allclose(grad[0], np.outer(column / column.sum(), [0, 0, 1]), atol=1e-15)


def test_spans_of_exchangeable_lags_have_few_contexts():
    chain = ss.LaggedChain.spans(5, (2, 2))
    tokens = chain.sample(key(0, "few"), 2000, 5)
    contexts = Contexts.of(chain, tokens)
    assert len(contexts.known_to(1).tokens) <= 15
    assert len(contexts.known_to(2).tokens) <= 15**2
    ordered = ss.LaggedChain.spans(5, (2, 2), span_weights=(0.7, 0.3))
    assert 15 < len(Contexts.of(ordered, tokens).known_to(1).tokens) <= 25


def test_fits_to_few_and_to_many_drawn_sequences():
    """Few sequences: a chosen ridge beats the likelihood fit. Many: both reach the truth, and the law is the true one."""
    chain = ss.LaggedChain.spans(8, (1, 1), scale=2.0)
    fresh = chain.sample(key(0, "fresh"), 2000, 5)
    few, many = chain.sample(key(0, "few"), 20, 5), chain.sample(key(0, "many"), 10_000, 5)
    for groups in (1, 2):
        assert fit_ridge(chain, few, groups).loss(fresh) < fit_class(chain, few, groups).loss(fresh)
    full = fit_class(chain, many, 2)
    assert full.converged
    assert len(full.matrices) == 2
    assert chain.bayes_loss(fresh) <= full.loss(fresh) <= chain.bayes_loss(fresh) + 0.005
    np.testing.assert_allclose(full.law(fresh), chain.predictive(fresh), atol=0.15)
    assert fit_class(chain, few, 0).loss(fresh) == fit_ridge(chain, few, 0).loss(fresh) == pytest.approx(np.log(8))


def test_narrow_integers_do_not_overflow():
    chain = ss.LaggedChain.spans(100, (1,))
    tokens = chain.sample(key(0, "narrow"), 20, 3)
    np.testing.assert_array_equal(drawn_moments(chain, tokens.astype(np.int8)), drawn_moments(chain, tokens))


def test_bad_requests():
    chain = ss.LaggedChain.spans(4, (1, 1))
    tokens = chain.sample(key(0), 4, 2)
    for groups in (-1, 3):
        with pytest.raises(ss.InputError, match=f"class is {groups}, but must be between 0 and 2"):
            fit_class(chain, tokens, groups)
    with pytest.raises(ss.InputError, match="finite and >= 0"):
        fit_class(chain, tokens, 1, penalty=-1.0)
    with pytest.raises(ss.InputError, match="1 sequences and ridges"):
        fit_ridge(chain, tokens[:1], 1)
    with pytest.raises(ss.InputError, match="at least one sequence"):
        fit_class(chain, tokens[:0], 1)
