"""A loss of the user's own goes through the same door: flow, frames, spectrum, a stored run, and back."""

from functools import partial

import numpy as np
import pytest

import stagescope as ss
from stagescope.core.own import fingerprint


def factorisation(params, target):
    """Half the squared error of A B: saddles at every rank, left one singular value after another."""
    error = params["A"] @ params["B"] - target
    return 0.5 * (error**2).sum()


TARGET = np.diag([3.0, 1.0])


def start():
    rng = np.random.default_rng(0)
    return {"A": 1e-3 * rng.normal(size=(2, 2)), "B": 1e-3 * rng.normal(size=(2, 2))}


def test_flow_spectrum_store_and_reload(tmp_path):
    loss = ss.JaxObjective(factorisation, data=TARGET)
    run = ss.evolve(loss, start(), ss.GradientFlow(), until=30.0, record=ss.Uniform(frames=301), out=tmp_path / "run")
    assert run.done
    assert run.series["loss"][-1] < 1e-8
    product = run.params["A"] @ run.params["B"]
    values = np.linalg.svd(product, compute_uv=False)
    times = [run.t[np.argmax(values[:, k] > s / 2)] for k, s in enumerate((3.0, 1.0))]
    # from scale e a mode of strength s grows as e^{st}: it takes off near ln(1/e^2)/(2s)
    assert times[0] < 0.5 * times[1]
    at_origin = ss.spectrum(loss, {name: np.zeros((2, 2)) for name in "AB"})
    np.testing.assert_allclose(at_origin.rates[:4], [3, 3, 1, 1], atol=1e-12)
    again = ss.load(tmp_path / "run")
    np.testing.assert_array_equal(again.params["A"], run.params["A"])
    assert again.spec["field"] == {"type": "own", "name": "factorisation"}


@pytest.mark.long
def test_conserved_quantity_of_the_flow():
    """A^T A - B B^T does not move: a check of the integrator on a field it has never seen."""
    run = ss.evolve(ss.JaxObjective(factorisation, data=TARGET), start(), ss.GradientFlow(), until=30.0)
    a, b = run.params["A"], run.params["B"]
    balance = np.swapaxes(a, 1, 2) @ a - b @ np.swapaxes(b, 1, 2)
    assert np.abs(balance - balance[0]).max() < 1e-9


def test_a_field_of_ones_own():
    class Rotation(ss.Field):
        """x' = y, y' = -x: no objective at all."""

        def law(self, params, data):
            return {"x": params["y"], "y": -params["x"]}

        def describe(self):
            return {"type": "own", "name": "rotation"}

    run = ss.evolve(Rotation(), {"x": np.array([0.0]), "y": np.array([1.0])}, ss.GradientFlow(), until=10.0)
    np.testing.assert_allclose(run.params["x"][:, 0], np.sin(run.t), atol=1e-7)
    assert "loss" not in run.series


def test_reserved_and_unsafe_block_names():
    for name in ("t", "loss", "../x", "a b", ""):
        with pytest.raises(ss.InputError, match="name"):
            ss.evolve(ss.JaxObjective(lambda p: 0.0), {name: np.ones(1)}, ss.GradientFlow(), until=1.0)


def test_resume_refuses_another_objective(tmp_path, monkeypatch):
    from stagescope.readings.rebuild import field_of

    spec = {"field": {"type": "own", "name": "factorisation"}}
    assert field_of(spec, ss.JaxObjective(factorisation, data=TARGET)).objective is not None
    with pytest.raises(ss.InputError, match="not 'other'"):
        field_of(spec, ss.JaxObjective(factorisation, data=TARGET, name="other"))


@pytest.mark.parametrize(
    ("loss", "words"),
    [
        (lambda p: (p["C"] ** 2).sum(), r"reads the block 'C', but the parameters are A \(2, 3\), B \(2, 3\)"),
        (lambda p: (p["A"] @ p["B"]).sum(), r"fails on the parameters A \(2, 3\), B \(2, 3\): .*dot_general"),
        (lambda p: p["A"] ** 2, r"is a number .* got shape \(2, 3\)"),
    ],
)
def test_a_loss_that_does_not_fit_its_blocks(loss, words):
    params = {"A": np.ones((2, 3)), "B": np.ones((2, 3))}
    for ask in (
        lambda: ss.evolve(ss.JaxObjective(loss), params, ss.GradientFlow(), until=1.0),
        lambda: ss.spectrum(ss.JaxObjective(loss), params),
        lambda: ss.JaxObjective(loss).value(params),
    ):
        with pytest.raises(ss.InputError, match=words):
            ask()


@pytest.mark.parametrize(
    ("law", "words"),
    [
        (lambda p: {"y": p["x"]}, r"gives nothing for block x"),
        (lambda p: {"x": p["x"][:1]}, r"gives shape \(1,\) for block x; the parameters are x \(2,\)"),
    ],
)
def test_a_law_that_does_not_fit_its_blocks(law, words):
    class Own(ss.Field):
        def law(self, params, data):
            return law(params)

        def describe(self):
            return {"type": "own", "name": "own"}

    with pytest.raises(ss.InputError, match=words):
        ss.evolve(Own(), {"x": np.ones(2)}, ss.GradientFlow(), until=1.0)
    with pytest.raises(ss.InputError, match=words):
        Own().rhs({"x": np.ones(2)})


def test_a_fingerprint_knows_what_is_bound_to_a_function():
    """Arguments of a partial, defaults of named arguments, and the object of a method."""

    class Weighted:
        def __init__(self, weight):
            self.weight = weight

        def loss(self, params):
            return self.weight * (params["A"] ** 2).sum()

    def named(weight):
        def loss(params, *, weight=weight):
            return weight * (params["A"] ** 2).sum()

        return loss

    kinds = [
        lambda weight: partial(factorisation, target=weight * TARGET),
        lambda weight: partial(lambda weights, params: weights[0] * (params["A"] ** 2).sum(), [weight]),
        lambda weight: Weighted(weight).loss,
        named,
    ]
    for kind in kinds:
        first, again, other = (fingerprint(ss.JaxObjective(kind(weight))) for weight in (1.0, 1.0, 2.0))
        assert first == again != other
