"""Losses over counts: kernel = definition, gradient, symmetries, extreme scores; for the finite and the sampled form."""

from functools import cache

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import stagescope as ss
from stagescope.core.spec import build
from stagescope.flow.field import Objective
from stagescope.papers.focus_dilution.loss import Contexts
from tests.processes.test_markov_chain import chains

SEEDS = st.integers(0, 1000)
FORMS = st.sampled_from(["finite", "sampled"])


def problem(chain, form, length=4, start="uniform", width=5, key_width=3, scale=2.0):
    model = ss.TokenAttention(vocab=chain.vocab, width=width, key_width=key_width, scale=scale)
    if form == "finite":
        return model, ss.finite_loss(model, chain, length, start=start)
    return model, ss.sampled_loss(model, chain, length, sequences=200, seed=3, start=start)


@settings(max_examples=3)
@given(chains(), SEEDS, FORMS)
def test_kernel_equals_definition(chain, seed, form):
    model, loss = problem(chain, form)
    params = model.init(seed, 0.7)
    assert loss.value(params) == pytest.approx(Objective.value(loss, params), abs=1e-12)
    kernel, definition = loss.grad(params), Objective.grad(loss, params)
    for name in params:
        np.testing.assert_allclose(kernel[name], definition[name], atol=1e-12, rtol=0)


@given(chains(), SEEDS, FORMS)
def test_gradient_is_the_slope(chain, seed, form):
    model, loss = problem(chain, form)
    params, way = model.init(seed, 0.7), model.init(seed + 1, 1.0)
    h = 1e-5
    ahead, behind = (loss.value({n: params[n] + s * h * way[n] for n in params}) for s in (1, -1))
    expected = sum(np.sum(g * way[n]) for n, g in loss.grad(params).items())
    assert (ahead - behind) / (2 * h) == pytest.approx(expected, rel=1e-5, abs=1e-8)


@pytest.mark.long
@settings(max_examples=4)
@given(chains(), SEEDS, FORMS)
def test_curvature_is_the_slope_of_the_gradient(chain, seed, form):
    model, loss = problem(chain, form)
    params, way = model.init(seed, 0.7), model.init(seed + 1, 1.0)
    h = 1e-5
    ahead, behind = (loss.grad({n: params[n] + s * h * way[n] for n in params}) for s in (1, -1))
    for name, found in loss.hvp(params, way).items():
        np.testing.assert_allclose(found, (ahead[name] - behind[name]) / (2 * h), rtol=1e-4, atol=1e-6)


@given(chains(), SEEDS)
def test_rotations_and_relabelling_change_nothing(chain, seed):
    model, loss = problem(chain, "finite")
    params = model.init(seed, 0.7)
    rng = np.random.default_rng(seed)
    turn = np.linalg.qr(rng.normal(size=(5, 5)))[0]
    turned = {"W0": params["W0"] @ turn, "W1": turn.T @ params["W1"], "WQ": turn.T @ params["WQ"], "WK": turn.T @ params["WK"]}
    assert loss.value(turned) == pytest.approx(loss.value(params), abs=1e-12)
    order = rng.permutation(chain.vocab)
    other = ss.finite_loss(model, ss.MarkovChain(rows=chain.transition[np.ix_(order, order)]), 4, start="uniform")
    moved = {**params, "W0": params["W0"][order], "W1": params["W1"][:, order]}
    assert other.value(moved) == pytest.approx(loss.value(params), abs=1e-10)


@cache
def four_tokens(form):
    """The same loss for every size of the scores: it is compiled once."""
    chain = ss.LazyChain(pi=(0.5, 0.25, 0.15, 0.10), persistence=0.6)
    return problem(chain, form, length=5, width=4, key_width=4, scale=1.0)


@pytest.mark.long
@pytest.mark.parametrize("form", ["finite", "sampled"])
@pytest.mark.parametrize("size", [1.0, 40.0, 2000.0])
def test_scores_far_apart_give_no_nan(form, size):
    """Contexts lack the token that the query would attend to: every one is shifted by the strongest it has."""
    _, loss = four_tokens(form)
    scores = size * np.random.default_rng(0).normal(size=(4, 4))
    scores[1, 1] = scores[1].min() - size
    params = {"W0": np.eye(4), "W1": np.random.default_rng(1).normal(size=(4, 4)), "WQ": scores, "WK": np.eye(4)}
    assert loss.value(params) == pytest.approx(Objective.value(loss, params), abs=1e-11)
    kernel, definition = loss.grad(params), Objective.grad(loss, params)
    curvature = loss.hvp(params, {name: np.ones((4, 4)) for name in params})
    for name in params:
        np.testing.assert_allclose(kernel[name], definition[name], atol=1e-10)
        assert np.all(np.isfinite(curvature[name]))


def test_rows_in_any_order():
    rng = np.random.default_rng(0)
    counts, query, weights = rng.integers(1, 5, size=(30, 3)), rng.integers(0, 3, size=30), rng.random((30, 3))
    found = Contexts.of(counts, query, weights)
    np.testing.assert_array_equal(found.query, np.sort(query))
    np.testing.assert_array_equal(found.counts.T, counts[np.argsort(query, kind="stable")])
    np.testing.assert_allclose(found.mass.sum(), weights.sum())


@settings(max_examples=5)
@given(chains(), FORMS)
def test_specs_build_the_same_loss(chain, form):
    _, loss = problem(chain, form)
    assert build(loss.describe()).describe() == loss.describe()
