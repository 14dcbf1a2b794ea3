"""Descent: against hand-written steps, its clock, the limit of small steps, and divergence."""

from functools import cache

import numpy as np
import pytest

import stagescope as ss
from stagescope.core.errors import InputError


def quadratic(params):
    return 0.5 * (params["a"] ** 2).sum() + 2.0 * (params["b"] ** 2).sum()


QUADRATIC = ss.JaxObjective(quadratic)
"""Compiled once for all tests."""
START = {"a": np.array([1.0, -2.0]), "b": np.array([0.5])}


def test_gd_is_closed_form_on_a_quadratic():
    run = ss.evolve(QUADRATIC, START, ss.Descent(lr=0.1, rates={"b": 0.5}, steps=20))
    k = np.arange(21)
    np.testing.assert_allclose(run.params["a"][:, 0], 0.9**k, rtol=1e-12)
    np.testing.assert_allclose(run.params["b"][:, 0], 0.5 * 0.8**k, rtol=1e-12)
    np.testing.assert_allclose(run.t, 0.1 * k, rtol=1e-12)
    np.testing.assert_array_equal(run.step, k)


def test_heavy_ball_and_adam_equal_hand_written_steps():
    lr, steps = 0.05, 30
    ball = ss.evolve(QUADRATIC, START, ss.Descent(optimizer=ss.HeavyBall(momentum=0.8), lr=lr, steps=steps))
    adam = ss.evolve(QUADRATIC, START, ss.Descent(optimizer=ss.Adam(), lr=lr, steps=steps))
    x, buffer = START["a"].copy(), np.zeros(2)
    y, m, v = START["a"].copy(), np.zeros(2), np.zeros(2)
    for k in range(1, steps + 1):
        buffer = 0.8 * buffer + x
        x = x - lr * buffer
        m, v = 0.9 * m + 0.1 * y, 0.999 * v + 0.001 * y**2
        y = y - lr * (m / (1 - 0.9**k)) / (np.sqrt(v / (1 - 0.999**k)) + 1e-8)
        np.testing.assert_allclose(ball.params["a"][k], x, atol=1e-12)
        np.testing.assert_allclose(adam.params["a"][k], y, atol=1e-12)


def test_adamw_and_clipping_equal_hand_written_steps():
    lr, steps, clip = 0.05, 30, 0.7
    choices = {"lr": lr, "steps": steps, "clip": clip, "rates": {"b": 0.5}}
    adam = ss.evolve(QUADRATIC, START, ss.Descent(optimizer=ss.AdamW(weight_decay=0.3), **choices))
    ball = ss.evolve(QUADRATIC, START, ss.Descent(optimizer=ss.HeavyBall(momentum=0.8), **choices))
    rate, curvature = np.array([1.0, 1.0, 0.5]), np.array([1.0, 1.0, 4.0])
    x = y = np.array([1.0, -2.0, 0.5])
    buffer, m, v = np.zeros(3), np.zeros(3), np.zeros(3)
    for k in range(1, steps + 1):
        push, pull = (curvature * z * min(1.0, clip / np.linalg.norm(curvature * z)) for z in (x, y))
        buffer = 0.8 * buffer + push
        x = x - lr * rate * buffer
        m, v = 0.9 * m + 0.1 * pull, 0.999 * v + 0.001 * pull**2
        y = y - lr * rate * ((m / (1 - 0.9**k)) / (np.sqrt(v / (1 - 0.999**k)) + 1e-8) + 0.3 * y)
        for run, z in ((ball, x), (adam, y)):
            np.testing.assert_allclose(np.append(run.params["a"][k], run.params["b"][k]), z, atol=1e-12)
    assert ball.clock == "step"  # clipped steps are no flow time


def test_clocks():
    ball = ss.evolve(QUADRATIC, START, ss.Descent(optimizer=ss.HeavyBall(momentum=0.75), lr=0.1, steps=10))
    assert ball.clock == "t"
    assert ball.t[-1] == pytest.approx(0.1 * 10 / 0.25)
    adam = ss.evolve(QUADRATIC, START, ss.Descent(optimizer=ss.Adam(), lr=0.1, steps=10))
    assert adam.clock == "step"
    with pytest.raises(InputError, match="no flow time"):
        _ = adam.t


def test_gd_tends_to_the_flow_at_first_order():
    model, loss = merged_and_full()[0]
    flow = ss.evolve(loss, model.init(), ss.GradientFlow(), until=20.0, record=ss.Uniform(frames=2))
    gaps = []
    for steps in (200, 400, 800):
        run = ss.evolve(loss, model.init(), ss.Descent(lr=20 / steps, steps=steps), record=ss.Uniform(frames=2))
        gaps.append(np.abs(run.params["Z"][-1] - flow.params["Z"][-1]).max())
    assert 1.8 < gaps[0] / gaps[1] < 2.2
    assert 1.8 < gaps[1] / gaps[2] < 2.2


@cache
def merged_and_full():
    process = ss.SequenceClasses.synthetic(2, 1, 3, 4)
    models = ss.PairwiseAttention.merged(process), ss.PairwiseAttention.full(process.vocab)
    return [(model, ss.population_loss(model, process)) for model in models]


@pytest.mark.long
@pytest.mark.parametrize(
    ("optimizer", "clip"), [(ss.GD(), None), (ss.HeavyBall(), None), (ss.Adam(), None), (ss.AdamW(), None), (ss.GD(), 0.05)]
)
def test_merged_descent_is_the_full_descent(optimizer, clip):
    dynamics = ss.Descent(optimizer=optimizer, lr=0.3, steps=40, clip=clip)
    a, b = (ss.evolve(loss, model.init(), dynamics) for model, loss in merged_and_full())
    merged = merged_and_full()[0][0]
    np.testing.assert_allclose(a.params["Z"], b.params["Z"][:, merged.queries][:, :, merged.keys], atol=1e-9)


def test_frames_do_not_change_the_steps():
    runs = [
        ss.evolve(QUADRATIC, START, ss.Descent(optimizer=ss.Adam(), lr=0.01, steps=300), record=record)
        for record in (ss.Every(n=1), ss.Every(n=7), ss.LogSpaced(frames=10))
    ]
    for run in runs[1:]:
        np.testing.assert_array_equal(run.params["a"], runs[0].params["a"][run.step])


def test_divergence_names_the_step_and_keeps_the_last_good_state():
    run = ss.evolve(QUADRATIC, START, ss.Descent(lr=1e10, steps=50))
    assert run.status == "diverged"
    assert "step 2" in run.reason
    assert run.step[-1] == 1
    swift = ss.evolve(QUADRATIC, START, ss.Descent(lr=1e10, steps=50), record=ss.Every(n=10))
    assert "step 2" in swift.reason
    assert np.all(np.isfinite(run.params["a"]))


def test_bad_arguments():
    with pytest.raises(InputError, match=r"steps: .*greater than or equal to 1, got 0"):
        ss.Descent(steps=0)
    with pytest.raises(InputError, match="lr"):
        ss.Descent(steps=1, lr=-1.0)
    with pytest.raises(InputError, match="momentum"):
        ss.HeavyBall(momentum=1.0)
    with pytest.raises(InputError, match="weight_decay"):
        ss.AdamW(weight_decay=-0.1)
    with pytest.raises(InputError, match="clip"):
        ss.Descent(steps=1, clip=0.0)
    with pytest.raises(InputError, match="steps"):
        ss.evolve(QUADRATIC, START, ss.Descent(steps=2), until=3.0)


@pytest.mark.long
@pytest.mark.parametrize("optimizer", [ss.GD(), ss.HeavyBall(), ss.Adam()])
def test_step_sizes_that_fall(optimizer):
    """On L = x^2/2 against steps by hand, whatever pieces they are taken in; t is the sum of the step sizes."""
    descent = ss.Descent(optimizer=optimizer, lr=0.1, steps=30, half_life=7.0)
    run = ss.evolve(ss.JaxObjective(lambda params: (params["a"] ** 2).sum() / 2), {"a": np.array([2.0])}, descent)
    x, memory, expected, sizes = np.array([2.0]), [np.zeros(1) for _ in range(optimizer.moments)], [2.0], []
    for k in range(30):
        sizes.append(0.1 * 2 ** (-k / 7))
        x = x - sizes[-1] * optimizer.direction(x.copy(), memory, x, k + 1)
        expected.append(float(x[0]))
    np.testing.assert_allclose(run.params["a"][:, 0], expected, rtol=1e-12)
    if run.clock == "t":
        np.testing.assert_allclose(run.t[1:], np.cumsum(sizes) * optimizer.flow_time, rtol=1e-12)
