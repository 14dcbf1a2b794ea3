"""Branches of critical points: normal forms with known folds and bifurcations, orbits, loops, and rates that only touch zero."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import stagescope as ss
from stagescope.landscape.continuation import Modes, follow, signs
from stagescope.landscape.follower import Zeros


class Plain(Zeros):
    """Zeros of F given with its Jacobian, without JAX; `opening` is a matrix of rates out of the model."""

    def __init__(self, law, slope, potential, opening=None):
        self.law, self.slope, self.potential, self.opening = law, slope, potential, opening

    def rows(self, vector, value):
        return self.law(vector, value)

    def slopes(self, vector, value):
        return self.slope(vector, value)

    def loss(self, vector, value):
        return float(self.potential(vector, value))

    def params(self, vector, value):
        return {"x": vector}

    def openings(self, vector, value):
        return {} if self.opening is None else self.opening(vector, value)


def cusp(b=1.0):
    """L = x^4/4 - b x^2/2 - v x: folds at v = -+2 (b/3)^(3/2)."""
    return Plain(
        lambda x, v: -(x**3) + b * x + v,
        lambda x, v: np.diag(-3 * x**2 + b),
        lambda x, v: np.sum(x**4 / 4 - b * x**2 / 2 - v * x),
    )


def pitchfork(opening=None):
    """L = x^4/4 - v x^2/2 + y^2: at x = 0 a rate is v."""
    return Plain(
        lambda x, v: np.array([-(x[0] ** 3) + v * x[0], -2 * x[1]]),
        lambda x, v: np.diag([-3 * x[0] ** 2 + v, -2.0]),
        lambda x, v: x[0] ** 4 / 4 - v * x[0] ** 2 / 2 + x[1] ** 2,
        opening,
    )


@settings(max_examples=8, deadline=None)
@given(st.floats(0.3, 2.0))
def test_folds_of_the_cusp(b):
    found = follow(cusp(b), np.array([np.sqrt(b)]), 0.0, -2.0, 2.0)
    assert sorted(fold.value for fold in found.folds) == pytest.approx([-2 * (b / 3) ** 1.5, 2 * (b / 3) ** 1.5], abs=1e-6)
    assert found.crossings == (), "the rate that is zero at a fold is no crossing of its own"
    assert [found.points[0].value, found.points[-1].value] == [-2.0, 2.0]
    for point in found.points:
        assert point.index == int(b > 3 * point.params["x"][0] ** 2)


def test_the_bifurcation_of_the_pitchfork():
    found = follow(pitchfork(), np.zeros(2), -0.4, -1.0, 1.0)
    assert found.folds == ()
    assert [(each.kind, each.value) for each in found.crossings] == [("bifurcation", pytest.approx(0.0, abs=1e-8))]
    assert all(point.index == int(point.value > 0) for point in found.points if abs(point.value) > 1e-6)
    assert found.points[-1].rates == (pytest.approx(1.0),)


def test_a_start_at_the_edge_of_the_range():
    found = follow(pitchfork(), np.zeros(2), -1.0, -1.0, 1.0)
    values = [point.value for point in found.points]
    assert values[0] == -1.0
    assert values == sorted(set(values))


def test_a_loop_is_followed_once():
    """L = x^3/3 + (v^2 - 1) x: the circle x^2 + v^2 = 1."""
    circle = Plain(
        lambda x, v: -(x**2) - (v**2 - 1), lambda x, v: np.diag(-2 * x), lambda x, v: np.sum(x**3 / 3 + (v**2 - 1) * x)
    )
    found = follow(circle, np.ones(1), 0.0, -2.0, 2.0)
    assert found.notes == ("it closes on itself",)
    assert sorted(fold.value for fold in found.folds) == pytest.approx([-1.0, 1.0], abs=1e-6)


def test_an_orbit_is_flat_and_is_no_bifurcation():
    """L = (|x|^2 - v)^2: circles of minima, along which a rate is zero everywhere."""
    ring = Plain(
        lambda x, v: -4 * (x @ x - v) * x,
        lambda x, v: -8 * np.outer(x, x) - 4 * (x @ x - v) * np.eye(2),
        lambda x, v: (x @ x - v) ** 2,
    )
    found = follow(ring, np.array([1.0, 0.2]), 1.04, 0.2, 2.0)
    assert {point.index for point in found.points} == {0}
    assert found.crossings == ()
    assert any("equal loss" in note for note in found.notes)
    angles = [np.arctan2(*point.params["x"]) for point in found.points]
    assert np.ptp(angles) < 1e-6, "the member of the orbit does not drift"


def test_a_rate_that_is_exponentially_small_does_not_cross():
    """At x = 0 the rate -exp(-40 v) sinks below every threshold, and stays negative."""
    sinking = Plain(
        lambda x, v: np.array([-np.exp(-40 * v) * x[0], -2 * x[1]]),
        lambda x, v: np.diag([-np.exp(-40 * v), -2.0]),
        lambda x, v: 0.0,
    )
    found = follow(sinking, np.zeros(2), 0.1, 0.0, 2.0)
    assert found.crossings == ()
    assert {point.index for point in found.points} == {0}


def test_a_value_that_wobbles_by_rounding_is_no_fold():
    """v = (2 - x)^3 falls to 0 at x = 2; beyond it the value is rounding, up to where nothing is found any more."""

    def value(x):
        return np.maximum(2 - x, 0.0) ** 3 + 1e-9 * np.sin(50 * x)

    def slope(x):
        return -3 * np.maximum(2 - x, 0.0) ** 2 + 5e-8 * np.cos(50 * x)

    stuck = Plain(lambda x, v: np.where(x < 2.5, v - value(x), np.nan), lambda x, v: -np.diag(slope(x)), lambda x, v: float(x[0]))
    found = follow(stuck, np.ones(1), 1.0, -1.0, 1.5)
    assert found.folds == ()
    assert "could not be followed" in found.notes[0]
    assert np.diff([point.value for point in found.points]).min() > 0
    assert found.points[0].params["x"][0] < 2.1


def test_openings_that_cross_zero_and_each_other():
    """Singular values |v - .3| and .5 - v of two kinds: one changes its sign, and the order swaps where they are equal."""
    rates = {"embedding": lambda v: np.diag([v - 0.3, 0.05]), "attention": lambda v: np.array([[0.5 - 0.2 * v]])}
    found = follow(pitchfork(lambda x, v: {name: rate(v) for name, rate in rates.items()}), np.zeros(2), 0.1, 0.02, 1.0)
    places = {(each.kind, each.what): each.value for each in found.crossings}
    assert places["opening", "a rate of embedding is zero"] == pytest.approx(0.3, abs=1e-6)
    assert places["order", "embedding and attention open equally fast"] == pytest.approx(0.8 / 1.2, abs=1e-6)
    assert len(places) == 2
    assert found.points[-1].rates == pytest.approx((0.7, 0.3, 0.05))


def test_signs_are_those_of_neighbours_where_a_rate_is_too_small():
    column = np.ones((1, 1))
    modes = [Modes(np.array([rate]), column, column, singular=False) for rate in (1e-12, -0.1, 1e-12, -1e-12, -0.2)]
    assert signs(modes, np.full(5, 1e-9)).ravel().tolist() == [-1.0] * 5


def test_any_loss_in_jax():
    def family(v):
        return ss.JaxObjective(lambda params: (params["x"] ** 4 / 4 - params["x"] ** 2 / 2 - v * params["x"]).sum())

    found = ss.continue_point(family, 0.0, {"x": np.full(1, 0.9)}, low=-1, high=1)
    assert sorted(fold.value for fold in found.folds) == pytest.approx([-2 / 27**0.5, 2 / 27**0.5], abs=1e-7)
    assert set(found.json()) == {"points", "folds", "crossings", "notes"}
    assert set(found.json()["points"][0]) == {"value", "loss", "index", "rates", "stable", "openings"}


def test_a_family_that_needs_a_number_is_followed_too():
    """It cannot be traced with the value left open."""

    def family(v):
        known = float(v)
        return ss.JaxObjective(lambda params: ((params["x"] - known) ** 2).sum())

    found = ss.continue_point(family, 0.5, {"x": np.zeros(1)}, low=0.48, high=0.52)
    assert [float(point.params["x"][0]) for point in found.points] == pytest.approx([point.value for point in found.points])


class Turning(ss.Field):
    def law(self, params, data):
        return {"x": -params["x"]}

    def describe(self):
        return {"type": "own", "name": "turning"}


def square(v):
    return ss.JaxObjective(lambda params: ((params["x"] - v) ** 2).sum())


@pytest.mark.parametrize(
    ("family", "how", "said"),
    [
        (square, {}, "a start near a critical point, or a rung"),
        (square, {"start": {"x": np.zeros(1)}, "rung": (1, 1)}, "not both"),
        (square, {"rung": (1, 1)}, "JaxObjective has no rungs"),
        (square, {"start": {"x": np.zeros(1)}, "low": 0.6}, "starts inside its range"),
        (square, {"start": {"x": np.zeros(1)}, "high": np.nan}, "finite number"),
        (square, {"start": {"x": np.zeros(501)}}, "501 parameters"),
        (lambda v: Turning(), {"start": {"x": np.zeros(1)}}, "no Objective"),
    ],
)
def test_refusals(family, how, said):
    with pytest.raises(ss.InputError, match=said):
        ss.continue_point(family, 0.5, **how)


def test_a_loss_without_a_critical_point_is_said_so():
    with pytest.raises(ss.StagescopeError, match="no critical point was found at"):
        ss.continue_point(
            lambda v: ss.JaxObjective(lambda params: params["x"].sum() * v), 0.5, {"x": np.zeros(1)}, low=0.4, high=0.6
        )
