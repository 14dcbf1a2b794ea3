"""Compiled derivatives are shared between objectives of one form, and each still sees its own data."""

import numpy as np
import pytest

import stagescope as ss
from stagescope.landscape.derivatives import Derivatives
from stagescope.papers.focus_dilution.loss import BLOCKS, TokenPopulation

MODEL = ss.TokenAttention(vocab=3, width=2, key_width=2, scale=0.7)
CHAINS = [ss.LazyChain(pi=(0.5, 0.3, 0.2), persistence=0.3), ss.LazyChain(pi=(0.2, 0.2, 0.6), persistence=0.7)]


def point(seed=0):
    draw = np.random.default_rng(seed)
    return {name: draw.normal(size=MODEL.shapes[name]) for name in BLOCKS}


@pytest.mark.parametrize("scale", [0.7, 1.4])
@pytest.mark.parametrize("chain", CHAINS, ids=["first", "second"])
def test_the_jacobian_is_that_of_each_chain_and_scale(chain, scale):
    """Against central differences of the kernel, which knows nothing of the shared compiled code."""
    near = Derivatives(TokenPopulation(model=MODEL.model_copy(update={"scale": scale}), process=chain), point())
    vector, step = near.layout.pack(point()), 1e-6
    columns = [(near.velocity(vector + step * e) - near.velocity(vector - step * e)) / (2 * step) for e in np.eye(len(vector))]
    np.testing.assert_allclose(near.jacobian(vector), np.array(columns).T, atol=1e-8)


def test_chains_and_scales_of_one_shape_share_compiled_code():
    first, second = (Derivatives(TokenPopulation(model=MODEL, process=chain), point()) for chain in CHAINS)
    assert first._functions is second._functions
    scaled = MODEL.model_copy(update={"scale": 2 * MODEL.scale})
    third = Derivatives(TokenPopulation(model=scaled, process=CHAINS[0]), point())
    assert third._functions is first._functions


def test_losses_that_read_more_than_their_data_have_forms_of_their_own():
    """A form that leaves out a field which the expression reads would hand one loss the compiled code of another."""
    from stagescope.papers.focus_dilution.finite import TokenFinite

    short, long = (TokenFinite(model=MODEL, process=CHAINS[0], length=n) for n in (3, 4))
    assert short.form() != long.form()
    assert TokenFinite.form is not TokenPopulation.form
