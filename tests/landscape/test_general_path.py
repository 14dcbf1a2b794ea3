"""The saddle path of any loss: closed forms, flows, and what is refused."""

from typing import Any

import numpy as np
import pytest

import stagescope as ss
from stagescope.flow.autodiff import jnp
from stagescope.landscape.saddle_path import plain_time

STRENGTHS = np.array([2.0, 0.7])


def factorisation(params, target):
    return 0.5 * ((params["A"] @ params["B"] - target) ** 2).sum()


@pytest.fixture(scope="module")
def loss():
    return ss.JaxObjective(factorisation, data=np.diag(STRENGTHS))


@pytest.mark.parametrize(
    ("t", "digits", "said"), [(1417.3, 2, "1400"), (26_781.0, 2, "27000"), (0.12345, 4, "0.1235"), (83.0, 4, "83")]
)
def test_times_in_sentences_have_no_exponent(t, digits, said):
    assert plain_time(t, digits) == said


def start(eps):
    return {"A": eps * np.eye(2), "B": eps * np.eye(2)}


@pytest.mark.parametrize("eps", [1e-8, pytest.param(1e-60, marks=pytest.mark.long)])
def test_times_of_a_factorisation_are_those_of_the_closed_form(loss, eps):
    path = ss.saddle_path(loss, start(eps))
    assert [leg.label for leg in path.legs] == ["1 saddle", "2 saddle", "3 minimum"]
    assert [leg.state for leg in path.legs] == ["settled"] * 3
    assert [leg.loss for leg in path.legs] == pytest.approx([2.245, 0.245, 0], abs=1e-9)
    assert [leg.local_rate for leg in path.legs[:2]] == pytest.approx(STRENGTHS)
    assert path.legs[1].opens == "A+B"
    for (name, event), strength in zip(path.events.items(), STRENGTHS, strict=True):
        learned = strength * (1 - np.sqrt(0.5))  # half of its loss
        exact = (np.log(learned / (strength - learned)) + np.log(strength) - 2 * np.log(eps)) / (2 * strength)
        assert event.t == pytest.approx(exact, rel=1e-6), name
        assert event.low < exact < event.high


@pytest.mark.long
def test_a_passed_place_is_read_off_a_run_in_the_same_way(loss):
    path = ss.saddle_path(loss, start(1e-2))
    assert [leg.state for leg in path.legs] == ["settled", "passed", "settled"]
    assert path.legs[1].rates == ()
    run = ss.evolve(loss, start(1e-2), ss.GradientFlow(), until=12, record=ss.Uniform(frames=1000), progress=False)
    for name, when in path.crossings(run.time, run.series["loss"]).items():
        assert path[name].t == pytest.approx(when, rel=2e-3)


@pytest.mark.long
def test_a_network_without_symmetry_beside_its_path():
    rng = np.random.default_rng(7)
    x = rng.normal(size=(30, 3))
    y = np.tanh(2 * x[:, 0]) - np.tanh(x[:, 1] - x[:, 2])
    loss = ss.JaxObjective(
        lambda p, d: 0.5 * ((jnp.tanh(d["x"] @ p["w"].T) @ p["v"] - d["y"]) ** 2).mean(), data={"x": x, "y": y}
    )
    begin = {"w": 1e-4 * rng.normal(size=(2, 3)), "v": 1e-4 * rng.normal(size=2)}
    path = ss.saddle_path(loss, begin)
    until = 1.1 * max(event.t for event in path.events.values() if event.t is not None)
    run = ss.evolve(loss, begin, ss.GradientFlow(), until=until, record=ss.Uniform(frames=2000), progress=False)
    flow = path.crossings(run.time, run.series["loss"])
    assert len(flow) >= 2
    for name, event in path.events.items():
        assert event.t == pytest.approx(flow[name], rel=2e-5)


def test_what_the_start_has_not_never_grows(loss):
    only = {"A": np.diag([1e-4, 0.0]), "B": np.diag([1e-4, 0.0])}
    path = ss.saddle_path(loss, only)
    assert path.sequence == ("escape 1",)
    assert "no part along what grows" in path.notes[-1]


def test_the_time_up_to_which_a_path_is_followed(loss):
    path = ss.saddle_path(loss, start(1e-30), until=10.0)
    assert path.sequence == ()
    assert "t=10" in path.notes[-1]


def square(params):
    return ((params["x"] - 1) ** 2).sum()


def beside(params):
    """A saddle at x = 1, y = 0, onto which x falls."""
    return (params["x"] - 1) ** 2 + params["y"] ** 4 - params["y"] ** 2


def deep(params):
    return 0.5 * (params["a"] * params["b"] * params["c"] - 1) ** 2


@pytest.mark.parametrize(
    ("function", "begin", "said"),
    [
        (lambda p: 0.5 * ((p["x"] ** 2).sum() - 1) ** 2, {"x": np.full(501, 1e-4)}, "501 parameters"),
        (deep, {name: np.array(1e-3) for name in "abc"}, "every rate is 0"),
        (lambda p: 0.25 * ((p["x"] ** 2 - 1) ** 2).sum(), {"x": np.array([0.4, 0.1])}, "times"),
        (lambda p: 0.25 * ((p["x"] ** 2 - 1) ** 2).sum(), {"x": np.array([np.nan])}, "not finite"),
        (beside, {"x": np.array(0.0), "y": np.array(1e-3)}, "what decays of it has size 1, "),
        (lambda p: p["x"].sum() + (p["x"] ** 4).sum(), {"x": np.array([1e-4])}, "no critical point"),
    ],
)
def test_refusals(function, begin, said):
    with pytest.raises(ss.InputError, match=said):
        ss.saddle_path(ss.JaxObjective(function), begin)


def test_a_law_that_is_no_gradient_is_refused():
    class Turning(ss.Field):
        def law(self, params: Any, data: Any) -> Any:
            return {"x": params["y"], "y": -params["x"]}

        def describe(self):
            return {"type": "turning"}

    with pytest.raises(ss.InputError, match="no gradient"):
        ss.saddle_path(Turning(), {"x": np.array([1e-4]), "y": np.array([0.0])})


def test_what_is_no_law_is_refused():
    what: Any = 3
    with pytest.raises(ss.InputError, match="got int; wrap a JAX loss in JaxObjective"):
        ss.saddle_path(what, start(1e-4))


def test_a_start_is_needed(loss):
    with pytest.raises(ss.InputError, match="draws no start"):
        ss.saddle_path(loss)


@pytest.mark.long
def test_a_start_beside_a_critical_point_elsewhere():
    """A saddle at x = 0, y = 1."""
    loss = ss.JaxObjective(lambda p: 0.25 * (p["x"] ** 2 - 1) ** 2 + 0.5 * (p["y"] - 1) ** 2)
    path = ss.saddle_path(loss, {"x": np.array(1e-5), "y": np.array(1 + 1e-5)})
    assert path.sequence == ("escape 1",)
    half = np.sqrt(1 - np.sqrt(0.5))  # half of the loss; x / sqrt(1 - x^2) grows as e^t
    exact = np.log(half / np.sqrt(1 - half**2)) - np.log(1e-5)
    assert path["escape 1"].t == pytest.approx(exact, rel=1e-5)


@pytest.mark.long
def test_a_path_that_slows_down_twice_at_a_saddle_has_one_place_there():
    path = ss.saddle_path(ss.JaxObjective(beside), {"x": np.array(0.9), "y": np.array(1e-3)})
    assert [leg.label for leg in path.legs] == ["1 saddle", "2 minimum"]
    assert path.sequence == ("escape 1",)
    half = 0.5 - np.sqrt(0.125)  # of y^2, where half of the loss is gone; y^2 / (1 - 2 y^2) grows as e^(4 t)
    assert path["escape 1"].t == pytest.approx((np.log(half / (1 - 2 * half)) - 2 * np.log(1e-3)) / 4, rel=1e-4)
