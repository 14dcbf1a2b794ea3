"""Derivatives: those of a model's own code are those of its definition, and compiled ones are shared where they may be."""

import numpy as np
import pytest

import stagescope as ss
from stagescope.landscape.derivatives import Derivatives, _compiled, _Source
from stagescope.papers.focus_dilution.loss import BLOCKS, TokenFinite, TokenPopulation

MODEL = ss.TokenAttention(vocab=3, width=2, key_width=2, scale=0.7)
CHAINS = [ss.LazyChain(pi=(0.5, 0.3, 0.2), persistence=0.3), ss.LazyChain(pi=(0.2, 0.2, 0.6), persistence=0.7)]


def point(seed=0):
    draw = np.random.default_rng(seed)
    return {name: draw.normal(size=MODEL.shapes[name]) for name in BLOCKS}


@pytest.mark.parametrize("scale", [0.7, 1.4])
@pytest.mark.parametrize("chain", CHAINS, ids=["first", "second"])
def test_the_jacobian_is_that_of_each_chain_and_scale(chain, scale):
    """Against central differences of the gradient's kernel."""
    near = Derivatives(TokenPopulation(model=MODEL.model_copy(update={"scale": scale}), process=chain), point())
    vector, step = near.layout.pack(point()), 1e-6
    columns = [(near.velocity(vector + step * e) - near.velocity(vector - step * e)) / (2 * step) for e in np.eye(len(vector))]
    np.testing.assert_allclose(near.jacobian(vector), np.array(columns).T, atol=1e-8)


@pytest.mark.long
@pytest.mark.parametrize("sizes", [(2, 3, 1), (5, 2, 4)])
def test_a_model_with_terms_of_its_own_has_the_derivatives_of_its_definition(sizes):
    """Taylor terms of the kernel against JAX, with rates that differ between blocks and one that is frozen."""
    tokens, width, keys = sizes
    model = ss.TokenAttention(vocab=tokens, width=width, key_width=keys, scale=1.3)
    rng = np.random.default_rng(0)
    loss = TokenPopulation(model=model, process=ss.MarkovChain(rows=rng.dirichlet(np.ones(tokens), size=tokens)))
    near = Derivatives(loss, model.init(1, 0.7), {"W0": 2.0, "WQ": 0.5, "WK": 0.0})
    defined = _compiled(_Source(loss), near.layout, tuple(near.rates.items()))
    here, along = near.layout.pack(model.init(1, 0.7)), near.layout.pack(model.init(2, 0.5))
    found = {
        "velocity": (near.law(here), here),
        "jacobian": (near.jacobian(here), here),
        "jvp": (near.jvp(here, along), here, along),
        "vjp": (near.vjp(here, along), here, along),
        "second": (near.second(here, along), here, along),
    }
    for name, (kernel, *vectors) in found.items():
        np.testing.assert_allclose(kernel, defined[name](*vectors, loss.data), rtol=0, atol=1e-12, err_msg=name)
    np.testing.assert_allclose(near.series(here, along, 3), defined["series"](3)(here, along, loss.data), rtol=0, atol=1e-12)


@pytest.mark.long
def test_products_for_many_tokens_are_those_of_the_definition():
    """Above 16 tokens they have a kernel of its own; rates differ, so that J is not symmetric, and a point is kept."""
    model = ss.TokenAttention(vocab=19, width=3, key_width=2, scale=1.3)
    loss = TokenPopulation(model=model, process=ss.MarkovChain(rows=np.random.default_rng(0).dirichlet(np.ones(19), size=19)))
    near = Derivatives(loss, model.init(1, 0.7), {"W0": 2.0, "WQ": 0.5, "WK": 0.0})
    known = _compiled(_Source(loss), near.layout, tuple(near.rates.items()))
    first, second, along = (near.layout.pack(model.init(seed, 0.7)) for seed in range(3))
    for here in (first, second, first):
        np.testing.assert_allclose(near.jvp(here, along), known["jvp"](here, along, loss.data), rtol=0, atol=1e-12)
        assert along @ near.vjp(here, first) == pytest.approx(first @ near.jvp(here, along), rel=1e-12)
    whole = near.jacobian(first)
    np.testing.assert_allclose(whole @ along, near.jvp(first, along), rtol=0, atol=1e-12)


def test_losses_of_one_description_share_compiled_code():
    short, again, longer = (Derivatives(TokenFinite(model=MODEL, process=CHAINS[0], length=n), point()) for n in (3, 3, 4))
    assert short._functions is again._functions
    assert short._functions is not longer._functions
