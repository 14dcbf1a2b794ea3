"""The small models inside TokenAttention: invariance, closed-form slopes against autodiff, rates against the full Hessian."""

from functools import cache

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import stagescope as ss
from stagescope.papers.focus_dilution.family import escape_matrices, openings, place, project, reduced, slopes
from tests.processes.test_markov_chain import chains

SEEDS = st.integers(0, 1000)


def problem(chain, width=5, key_width=4, scale=2.0):
    model = ss.TokenAttention(vocab=chain.vocab, width=width, key_width=key_width, scale=scale)
    return model, ss.population_loss(model, chain)


def inside(model, r, rq, seed):
    """A point of the large model that lies in the small one (r, rq), and its small parameters."""
    rng = np.random.default_rng(seed)
    small = {"W0": (model.vocab, r), "W1": (r, model.vocab), "WQ": (r, rq), "WK": (r, rq)}
    small = {name: rng.normal(size=shape) for name, shape in small.items()}
    s = np.linalg.qr(rng.normal(size=(model.width, r)))[0].T
    u = np.linalg.qr(rng.normal(size=(model.key_width, rq)))[0].T
    large = {"W0": small["W0"] @ s, "W1": s.T @ small["W1"], "WQ": s.T @ small["WQ"] @ u, "WK": s.T @ small["WK"] @ u}
    return small, large, s, u


@given(chains(), SEEDS, st.sampled_from([(1, 1), (2, 1), (2, 2), (3, 2)]))
def test_the_small_model_is_invariant(chain, seed, label):
    """At a point inside, loss and gradient are those of the small model: the flow never leaves it."""
    model, loss = problem(chain)
    small, large, s, u = inside(model, *label, seed)
    little = reduced(loss, *label)
    assert loss.value(large) == pytest.approx(little.value(small), abs=1e-12)
    grad, inner = loss.grad(large), little.grad(small)
    lifted = {"W0": inner["W0"] @ s, "W1": s.T @ inner["W1"], "WQ": s.T @ inner["WQ"] @ u, "WK": s.T @ inner["WK"] @ u}
    for name in grad:
        np.testing.assert_allclose(grad[name], lifted[name], atol=1e-12)


@pytest.mark.long
@given(chains(), SEEDS, st.sampled_from([(1, 1), (2, 1), (2, 2)]))
def test_projection_and_place_are_inverse(chain, seed, label):
    model, _ = problem(chain)
    small, large, _, _ = inside(model, *label, seed)
    found = project(large, *label)
    back = place(found, large, *label)
    for name, block in back.params.items():
        np.testing.assert_allclose(block, large[name], atol=1e-10)
    for name, block in back.projected(large).items():
        np.testing.assert_allclose(block, found[name], atol=1e-10)
    again = place(small, large, *label)
    for name, block in again.params.items():
        np.testing.assert_allclose(block, large[name], atol=1e-10)


def test_the_empty_models():
    chain = ss.LazyChain(pi=(0.5, 0.3, 0.2), persistence=0.4)
    model, loss = problem(chain)
    params = model.init(0, 0.3)
    assert not any(np.any(block) for block in project(params, 0, 0).values())
    bare = project(params, 1, 0)
    assert np.any(bare["W0"])
    assert not np.any(bare["WQ"])
    nowhere = place(project(params, 0, 0), params, 0, 0)
    np.testing.assert_array_equal(nowhere.outside_s, np.eye(5))
    assert not openings(escape_matrices(loss, bare | {"W0": 0 * bare["W0"]}), 0)["attention"]


@cache
def gradient_of_the_loss():
    """By JAX, in M and Phi; compiled once for each number of tokens."""
    from stagescope.flow.autodiff import jax, jnp

    def value(product, scores, pi, transition):
        attention = jax.nn.softmax(scores + jnp.log(pi), axis=1)
        return -jnp.sum(pi[:, None] * transition * jax.nn.log_softmax(attention @ product, axis=1))

    return jax.jit(jax.grad(value, (0, 1)))


@pytest.mark.long
@settings(max_examples=8)
@given(chains(), SEEDS)
def test_slopes_are_those_of_autodiff(chain, seed):
    """GM = dL/dM and GP = scale dL/dPhi, differentiating L(M, Phi) = -sum pi P log softmax(A(Phi) M) by JAX."""
    model, loss = problem(chain)
    params = model.init(seed, 0.8)
    pi, transition = loss.process.stationary, loss.process.transition
    gm, gp = gradient_of_the_loss()(params["W0"] @ params["W1"], model.scores(params), pi, transition)
    found = slopes(loss, params)
    np.testing.assert_allclose(found[0], gm, atol=1e-12)
    np.testing.assert_allclose(found[1], model.scale * gp, atol=1e-12)


@pytest.mark.parametrize(("seed", "r", "rq"), [(0, 1, 1), (1, 2, 1), (2, 2, 2)])
def test_rates_are_rates_of_the_whole_model(seed, r, rq):
    """At any point inside, the singular values of B and F are eigenvalues of the full Jacobian, with multiplicity."""
    rng = np.random.default_rng(seed)
    chain = ss.MarkovChain(rows=rng.dirichlet(np.ones(4), size=4))
    model, loss = problem(chain)
    small, large, _, _ = inside(model, r, rq, seed)
    found = openings(escape_matrices(loss, small), r)
    rates = ss.spectrum(loss, large).rates
    for kind, copies in (("embedding", model.width - r), ("attention", model.key_width - rq)):
        for opening in found[kind]:
            if opening.rate > 1e-6:
                assert np.sum(np.abs(rates - opening.rate) < 1e-9) >= copies, (kind, opening.rate)
                assert np.sum(np.abs(rates + opening.rate) < 1e-9) >= copies, "each comes with its decay"


def test_an_opening_grows_at_its_rate():
    """A tiny push along an opening outside the small model: its amplitude doubles as the rate says."""
    chain = ss.LazyChain(pi=(0.5, 0.25, 0.15, 0.10), persistence=0.6)
    model, loss = problem(chain, scale=4.0)
    point = ss.critical_point(reduced(loss, 1, 1), project(model.init(3, 1.0), 1, 1))
    assert point.found
    here = place(point.params, model.init(3, 1.0), 1, 1)
    opening = openings(escape_matrices(loss, point.params), 1)["embedding"][0]
    x = np.linalg.svd(here.S)[2][-1]
    start = here.params
    push = 1e-6
    start["W0"] = start["W0"] + push * np.outer(opening.u, x)
    start["W1"] = start["W1"] + push * np.outer(x, opening.w)
    start["WQ"] = start["WQ"] + push * np.outer(x, opening.q @ here.U)
    start["WK"] = start["WK"] + push * np.outer(x, opening.k @ here.U)
    until = 1 / opening.rate
    run = ss.evolve(loss, start, ss.GradientFlow(atol=1e-15), until=until, record=ss.Uniform(frames=5))
    amplitude = here.amplitude(opening, {name: run.params[name] for name in run.params})
    assert amplitude[0] == pytest.approx(2 * push, rel=1e-6)
    assert np.log(amplitude[-1] / amplitude[0]) == pytest.approx(1.0, abs=1e-3)
