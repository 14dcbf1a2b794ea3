"""Tips of cones of zeros: orders and coefficients that are known."""

from dataclasses import replace

import numpy as np
import pytest

from stagescope.landscape.derivatives import Derivatives
from stagescope.landscape.escape import find_tip
from tests.landscape.laws import Linear, attention_loss, deep_loss, deep_start


@pytest.mark.parametrize(("depth", "order", "coefficient"), [(3, 2, 3**-0.5), (4, 3, 0.25)])
@pytest.mark.parametrize("seed", [0, 1])
def test_a_deep_linear_network(depth, order, coefficient, seed):
    """sigma_1 L^(-(L-2)/2), of order L - 1."""
    start = deep_start(depth, 0.05, seed)
    near = Derivatives(deep_loss(depth), start)
    tip = find_tip(near, near.layout.pack(start), 1.0, 2.0)
    assert tip is not None
    assert coefficient * np.linalg.norm(tip.point) ** order < 1e-15, "the search ends where |F|, about c s^p, is rounding"
    assert tip.order == order
    assert isinstance(tip.order, int)
    assert tip.coefficient == pytest.approx(coefficient, rel=1e-4)


@pytest.mark.long
def test_linear_attention_at_the_origin_and_with_one_direction_learned():
    """lambda_(m+1)^2 / 3^(1/2)."""
    learned = (1 / 0.6) ** (1 / 3)
    rng = np.random.default_rng(0)
    for m, value in enumerate((0.6, 0.3)):
        start = {name: 0.01 * rng.normal(size=shape) for name, shape in (("v", 2), ("k", (2, 2)), ("q", (2, 2)))}
        if m:
            start["v"][0] = start["k"][0, 0] = start["q"][0, 0] = learned
        near = Derivatives(attention_loss(), start)
        tip = find_tip(near, near.layout.pack(start), 1.0, 2.0)
        assert tip is not None
        assert (tip.order, tip.coefficient) == (2, pytest.approx(value**2 / 3**0.5, rel=1e-4))


def test_a_hyperbolic_point_has_no_kernel():
    near = Derivatives(Linear(np.diag([1.0, -2.0])), {"x": np.ones(2)})
    tip = find_tip(near, np.array([0.1, 0.1]), 1.0, 1.0)
    assert tip is not None
    assert (tip.order, tip.coefficient) == (None, None)


def test_a_tip_beyond_reach_is_none():
    near = Derivatives(Linear(np.diag([1.0, -2.0])), {"x": np.ones(2)})
    assert find_tip(near, np.array([0.1, 0.1]), 0.1, 1.0) is None


def test_multiples_of_newton_steps_reach_a_tip_at_once(monkeypatch):
    """One step goes 1/p of the way, its p-fold all of it."""
    from stagescope.landscape import critical

    monkeypatch.setattr(critical, "LIMITS", replace(critical.LIMITS, patience=3))
    start = deep_start(3, 0.05)
    near = Derivatives(deep_loss(3), start)
    assert find_tip(near, near.layout.pack(start), 1.0, 2.0) is not None
