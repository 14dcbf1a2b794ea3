"""Local laws: orders and times that are known, and what they leave out."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stagescope.landscape.derivatives import Derivatives
from stagescope.landscape.escape import carried, drift_law, linear_remainder, local_law
from stagescope.landscape.limits import LIMITS
from stagescope.landscape.linearise import linearise
from tests.landscape.laws import Forced, Power, product_loss, product_start

ZERO = np.zeros(1)
FIELDS = {order: Power(order, 1.0) for order in (2, 3)}


def near(order: int, coefficient: float, force: float = 0.0) -> Derivatives:
    """One field for each order, so that it is compiled once: its numbers are data."""
    field = FIELDS[order]
    field.coefficient, field.force = coefficient, force
    return Derivatives(field, {"x": ZERO})


def test_taylor_terms_of_a_power():
    """(1 + d)^3 = 1 + 3 d + 3 d^2 + d^3."""
    found = near(3, 2.0).series(np.ones(1), np.full(1, 0.5), 3)
    np.testing.assert_allclose(found[:, 0], 2 * np.array([1, 1.5, 0.75, 0.125]), rtol=1e-14)


@pytest.mark.long
@given(st.sampled_from([2, 3]), st.floats(0.1, 10.0), st.floats(1e-4, 0.1))
def test_an_escape_of_known_order(order, coefficient, start):
    """s' = c s^p reaches S after (s^(1-p) - S^(1-p)) / ((p - 1) c)."""
    after = (start ** (1 - order) - 1) / ((order - 1) * coefficient)
    found = local_law(near(order, coefficient), ZERO, np.full(1, start), 1.0, 2 * after)
    assert found.order == order
    assert found.after == pytest.approx(after, rel=1e-4)
    assert found.remainder <= 1e-9
    assert found.end == pytest.approx([1.0], rel=1e-4)


def test_a_law_that_does_not_leave_is_none():
    found = local_law(near(3, -1.0), ZERO, np.full(1, 0.1), 1.0, 100.0)
    assert found.order is None
    assert "it would not leave" in found.reason


def test_a_law_of_too_low_an_order_is_none():
    found = local_law(near(3, 1.0), ZERO, np.full(1, 0.1), 1.0, 100.0, orders=2)
    assert found.order is None
    assert found.remainder == pytest.approx(1.0), "all of a cubic field is left out at order two"


@pytest.mark.long
@given(st.floats(0.01, 100.0))
def test_a_drift_past_a_ghost(force):
    """x' = a + x^2 has no zero; from x = 0 it reaches S after arctan(S / a^(1/2)) / a^(1/2)."""
    root = force**0.5
    after = np.arctan(1 / root) / root
    found = drift_law(near(2, 1.0, force), ZERO, 1.0, 100 * after, 2)
    assert found.order == (1 if found.remainder > 1e-9 else 2)
    assert found.remainder <= LIMITS.holds
    assert found.after == pytest.approx(after, rel=2 * found.remainder + 1e-2)


def test_a_straight_drift_says_what_it_leaves_out():
    found = drift_law(near(2, 1.0, 0.1), ZERO, 1.0, 100.0, 1)
    assert found.order is None
    assert LIMITS.holds < found.remainder < 1


def test_what_the_linear_law_leaves_out():
    """x' = x, y' = -y + 3 x^2 from (.1, 0): |F - J d| = 3 x^2, |F| = (x^2 + y'^2)^(1/2), x from .1 to .2."""
    local = linearise(Forced(1.0, 1.0, 3.0), {"x": ZERO, "y": ZERO})
    after = np.log(2.0)
    found = linear_remainder(local, np.array([0.1, 0.0]), after)
    x = 0.1 * np.exp(np.linspace(0.0, after, 10_000))
    assert found == pytest.approx(np.mean(3 * x**2 / np.hypot(x, 3 * x**2)), rel=1e-3)


def test_the_linear_law_of_a_saddle_holds():
    local = linearise(product_loss(), {"A": np.zeros((3, 3)), "B": np.zeros((3, 3))})
    start = local.near.layout.pack(product_start())
    assert linear_remainder(local, start, local.escape_time(product_start(), 0.2)) < 0.01


def test_a_law_must_hold_on_its_way():
    """x^3 - 1 at its zero is 3 d + 3 d^2 + d^3: at d = .05 order two leaves out .1 %, on the way to 3 far more."""
    found = local_law(near(3, 1.0, -1.0), np.ones(1), np.full(1, 0.05), 3.0, 100.0)
    assert found.order == 3


def test_a_point_that_is_not_critical_is_carried_on():
    """x' = c (1 + d)^2 from d = 0: to d = 1 after 1/(2c) by the field itself, ln(3)/(2c) to order 1."""
    for order, after in ((1, np.log(3) / 2), (2, 0.5)):
        found = carried(near(2, 0.1), np.ones(1), order, lambda vector: float(vector[0] - 2), 100.0)
        assert found == pytest.approx(after / 0.1, rel=1e-5)
    assert carried(near(2, -0.1), np.ones(1), 2, lambda vector: float(vector[0] - 2), 100.0) is None
