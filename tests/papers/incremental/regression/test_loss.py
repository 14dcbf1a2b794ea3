"""The regression flow: kernel = definition, what it conserves, the one-head reduction, two solvers, known values."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.integrate import cumulative_simpson

import stagescope as ss
from stagescope.flow import cvode
from stagescope.flow.field import Objective

LAWS = (ss.RegressionLoss, ss.MirrorFlow)
GAINS = (2.89, 1.7, 1.0)


@st.composite
def models(draw):
    features = draw(st.integers(1, 4))
    positions = draw(st.integers(features, 9))
    gains = sorted(draw(st.lists(st.floats(0.1, 3.0), min_size=features, max_size=features)), reverse=True)
    places = draw(st.permutations(range(positions)))[:features]
    copies = draw(st.integers(1, 3))
    return ss.RegressionHeads(positions=positions, gains=gains, heads=draw(st.integers(1, 4)), places=places, copies=copies)


def point(model, seed):
    rng = np.random.default_rng(seed)
    return {name: rng.normal(size=shape) for name, shape in model.shapes.items()}


def flow(law, model, params, until, frames=200, **choices):
    record = ss.LogSpaced(frames=frames, first=1e-2)
    run = ss.evolve(law(model=model), params, ss.GradientFlow(**choices), until=until, record=record)
    assert run.done, run.reason
    return run


@pytest.mark.parametrize(
    "model",
    [
        ss.RegressionHeads(positions=9, gains=GAINS, heads=4, places=(8, 0, 4), copies=2),
        ss.RegressionHeads(positions=2, gains=(0.5,), heads=1),
    ],
)
def test_kernel_equals_definition(model):
    loss, mirror = (law(model=model) for law in LAWS)
    for seed in range(10):
        params = point(model, seed)
        assert loss.value(params) == pytest.approx(Objective.value(loss, params), abs=1e-12, rel=1e-12)
        assert model.losses(params) == pytest.approx(loss.value(params), rel=1e-12)
        pairs = ((loss.grad(params), Objective.grad(loss, params)), (mirror.rhs(params), ss.Field.rhs(mirror, params)))
        for kernel, definition in pairs:
            for name in params:
                np.testing.assert_allclose(kernel[name], definition[name], atol=1e-12, rtol=1e-12)


@given(models(), st.integers(0, 1000))
def test_laws_as_written(model, seed):
    """V_h' = R s_h and a_h' = J R^T V_h, or R^T V_h, for every copy of a head."""
    params = point(model, seed)
    s, residual = model.attention(params), model.residual(params)
    down, mirror = ss.RegressionLoss(model=model).grad(params), ss.MirrorFlow(model=model).rhs(params)
    for h in range(model.heads):
        lift = residual.T @ params["V"][h]
        np.testing.assert_allclose(-down["V"][h], residual @ s[h], atol=1e-12)
        np.testing.assert_allclose(-down["a"][h], (np.diag(s[h]) - np.outer(s[h], s[h])) @ lift, atol=1e-12)
        np.testing.assert_allclose(mirror["V"][h], residual @ s[h], atol=1e-12)
        np.testing.assert_allclose(mirror["a"][h], lift, atol=1e-12)


@pytest.mark.parametrize("law", LAWS)
def test_what_each_head_conserves(law):
    model = ss.RegressionHeads(positions=6, gains=GAINS, heads=3)
    params = {**model.init(3, 0.5), "V": 0.3 * point(model, 4)["V"]}
    curves = ss.head_curves(flow(law, model, params, 2000.0))
    assert curves.loss[-1] < 1e-2
    np.testing.assert_allclose(curves.invariant - curves.invariant[0], 0.0, atol=1e-6)


def test_loss_falls_as_the_gradient_says():
    model = ss.RegressionHeads(positions=6, gains=GAINS, heads=3)
    run = ss.evolve(
        ss.RegressionLoss(model=model), model.init(0, 0.1), ss.GradientFlow(), until=60.0, record=ss.Uniform(frames=4001)
    )
    fallen = cumulative_simpson(run.series["speed"] ** 2, x=run.t, initial=0.0)
    np.testing.assert_allclose(run.series["loss"][0] - run.series["loss"], fallen, atol=1e-6)
    np.testing.assert_allclose(run.series["loss"], ss.head_curves(run).loss, atol=1e-13)


@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("copies", [1, 2])
def test_one_head_stands_for_equal_heads(law, copies):
    """Also the speed, which counts every head; rounding cannot split what is computed once."""
    model = ss.RegressionHeads(positions=8, gains=GAINS, heads=3, copies=copies)
    small = model.symmetric()
    assert small.symmetric() == small
    full, reduced = (flow(law, m, m.init(0, 0.0), 300.0, frames=50) for m in (model, small))
    for name in full.params:
        np.testing.assert_allclose(full.params[name] - reduced.params[name], 0.0, atol=1e-7)
    np.testing.assert_allclose(full.series["speed"], reduced.series["speed"], rtol=1e-6)
    np.testing.assert_allclose(ss.head_curves(full).loss, ss.head_curves(reduced).loss, atol=1e-9)


@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("sigma", [1e-2, 1e-6])
def test_two_solvers_agree(law, sigma):
    """Through the escape, at the default tolerances. From sigma = 1e-9 on rounding shows: 1e-15 of a logit of order 5."""
    model = ss.RegressionHeads(positions=6, gains=(3.0, 1.5), heads=2)
    runs = [flow(law, model, model.init(1, sigma), 1000.0, frames=60, method=method) for method in ("cvode", "lsoda")]
    assert runs[0].spec["dynamics"]["atol"] <= max(1e-10 * sigma, 1e-13) * 1.5
    curves = [ss.head_curves(run) for run in runs]
    assert curves[0].loss[-1] < 0.05
    np.testing.assert_allclose(curves[0].loss, curves[1].loss, atol=1e-6)
    np.testing.assert_allclose(curves[0].attention, curves[1].attention, atol=1e-6)


@pytest.mark.parametrize("law", LAWS)
def test_same_flow_with_python_in_between(law, monkeypatch):
    model = ss.RegressionHeads(positions=6, gains=GAINS, heads=2)
    direct = flow(law, model, model.init(0, 0.1), 100.0, frames=30, rates={"V": 2.0})
    monkeypatch.setattr(cvode, "functions", lambda: None)
    other = flow(law, model, model.init(0, 0.1), 100.0, frames=30, rates={"V": 2.0})
    for name in direct.params:
        np.testing.assert_allclose(direct.params[name], other.params[name], atol=1e-7)


def test_a_flow_that_blows_up_says_so():
    model = ss.RegressionHeads(positions=3, gains=(1.0,), heads=1)
    run = ss.evolve(
        ss.MirrorFlow(model=model), {"a": np.zeros((1, 3)), "V": np.full((1, 1), 1e100)}, ss.GradientFlow(), until=1.0
    )
    assert run.status == "diverged"


def test_a_run_is_replayed_from_its_spec():
    model = ss.RegressionHeads(positions=6, gains=GAINS, heads=2)
    run = flow(ss.MirrorFlow, model, model.init(0, 0.1), 20.0, frames=10)
    again = ss.replay(run, ss.AtTimes(at=(20.0,)))
    np.testing.assert_allclose(again.params["a"][-1], run.params["a"][-1], atol=1e-8)
