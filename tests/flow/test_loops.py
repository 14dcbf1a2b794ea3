"""Steps on a kernel's gradient: pieces of any size, resuming on disk, divergence, and no JAX."""

import subprocess
import sys

import numpy as np
import pytest

import stagescope as ss
from stagescope.core.params import Layout
from stagescope.flow import evolve as evolving
from stagescope.flow.descent import GradientLoop, loop_for

CHAIN = ss.LaggedChain.spans(5, spans=(2, 1), scale=2.0)
MODEL = ss.PositionalHeads(vocab=5, heads=2, context=3, targets=3)
START = MODEL.init(0, 0.1)
DESCENTS = {
    "gd": ss.Descent(lr=1.0, steps=60),
    "heavy-ball": ss.Descent(optimizer=ss.HeavyBall(), lr=0.5, steps=60),
    "adam": ss.Descent(optimizer=ss.Adam(), lr=0.05, rates={"a": 0.2}, steps=60, clip=0.1),
    "adamw": ss.Descent(optimizer=ss.AdamW(), lr=0.05, steps=60, clip=0.1),
}


def loss(**more):
    return ss.HeadsLoss(model=MODEL, process=CHAIN, sequences=50, **more)


@pytest.mark.parametrize("name", DESCENTS)
def test_pieces_of_any_size_give_the_same_bits(name):
    layout = Layout.of(START)
    loop = loop_for(DESCENTS[name], loss(batch=16).field(), layout)
    assert isinstance(loop, GradientLoop)
    begin = loop.start(layout.pack(START))
    whole, _ = loop.advance(loop.restore(begin), 0, 60)
    carry, now = loop.restore(begin), 0
    for piece in (1, 2, 7, 50):
        carry, done = loop.advance(carry, now, piece)
        now += done
        carry = loop.restore(loop.state(carry, now))
    for one, other in zip(whole, carry, strict=True):
        np.testing.assert_array_equal(one, other)


class Halt(Exception):
    """Power failure."""


@pytest.mark.parametrize("name", ["heavy-ball", "adam", "adamw"])
def test_resumed_runs_end_bit_for_bit(name, tmp_path, monkeypatch):
    """Stopped right after a commit in the middle; the optimiser's memory comes from the checkpoint."""
    monkeypatch.setattr(evolving, "FIRST_COMMIT", 0.0)
    monkeypatch.setattr(evolving, "NEXT_COMMIT", 0.0)
    whole = ss.evolve(loss(batch=16), START, DESCENTS[name], record=ss.Every(n=5))
    seen, commit = [], evolving.Disk.__init__

    def stops(self, writer, layout):
        commit(self, writer, layout)

        def then(state, event):
            writer.commit(state, event)
            seen.append(event)
            if len(seen) == 7:
                raise Halt

        self.commit = then

    with monkeypatch.context() as patch:
        patch.setattr(evolving.Disk, "__init__", stops)
        with pytest.raises(Halt):
            ss.evolve(loss(batch=16), START, DESCENTS[name], record=ss.Every(n=5), out=tmp_path / "run")
    assert 1 < ss.load(tmp_path / "run").frames < whole.frames
    again = ss.resume(tmp_path / "run")
    for block in ("a", "V"):
        np.testing.assert_array_equal(again.params[block], whole.params[block])
    np.testing.assert_array_equal(again.series["loss"], whole.series["loss"])


def test_divergence_keeps_the_last_good_state():
    run = ss.evolve(loss(), START, ss.Descent(lr=1e20, steps=40), record=ss.Every(n=10))
    assert run.status == "diverged"
    assert run.reason == "diverged at step 1: a parameter exceeds 1e15; lower the rates"
    np.testing.assert_array_equal(run.params["a"][-1], START["a"])


def test_a_gradient_that_is_nan_is_called_that():
    """The loss is finite everywhere; its gradient is not where x is below 1."""
    jnp = pytest.importorskip("jax.numpy")
    odd = ss.JaxObjective(lambda params: jnp.sum(params["x"] ** 2 + jnp.sqrt(jnp.maximum(params["x"] - 1, 0))))
    start = {"x": np.array([2.0])}
    run = ss.evolve(odd, start, ss.Descent(lr=0.3, steps=40))
    assert run.reason.startswith("diverged at step 2: the gradient is NaN at |theta|=0.65;")
    assert run.frames == 2
    flow = ss.evolve(odd, start, ss.GradientFlow(), until=5.0)
    assert "the gradient is not finite at |theta|=" in flow.reason


@pytest.mark.long
def test_adam_on_a_kernel_needs_no_jax():
    code = """
import sys, stagescope as ss
ss.run_study("incremental", "ladder", vocab=4, sequences=20, targets=2, steps=5, progress=False)
print([m for m in ("jax", "optax") if m in sys.modules])
"""
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert out.stdout.strip() == "[]"


def plain_descent(objective, name, steps, lr=0.05, clip=0.1, decay=0.01):
    """PyTorch's documented updates, one number at a time: norm clipped over all blocks, corrected moments, decoupled decay."""
    theta = {block: values.copy() for block, values in START.items()}
    first = {block: np.zeros_like(values) for block, values in START.items()}
    second = {block: np.zeros_like(values) for block, values in START.items()}
    for step in range(1, steps + 1):
        grads = objective.grad(theta)
        norm = np.sqrt(sum(float(g) ** 2 for grad in grads.values() for g in grad.ravel()))
        for block, values in theta.items():
            for at in np.ndindex(values.shape):
                g = grads[block][at] * min(1.0, clip / norm)
                if name == "heavy-ball":
                    first[block][at] = 0.9 * first[block][at] + g
                    values[at] -= lr * first[block][at]
                    continue
                first[block][at] = 0.9 * first[block][at] + (1 - 0.9) * g
                second[block][at] = 0.999 * second[block][at] + (1 - 0.999) * g * g
                if name == "adamw":
                    values[at] *= 1 - lr * decay
                over = np.sqrt(second[block][at]) / np.sqrt(1 - 0.999**step) + 1e-8
                values[at] -= lr / (1 - 0.9**step) * first[block][at] / over
    return theta


@pytest.mark.parametrize("name", ["heavy-ball", "adam", "adamw"])
def test_steps_on_a_kernel_equal_a_plain_second_implementation(name):
    rules = {"heavy-ball": ss.HeavyBall(momentum=0.9), "adam": ss.Adam(), "adamw": ss.AdamW(weight_decay=0.01)}
    objective = loss()
    assert np.sqrt(sum(np.sum(grad**2) for grad in objective.grad(START).values())) > 0.1, "the first step is clipped"
    found = ss.evolve(objective, START, ss.Descent(optimizer=rules[name], lr=0.05, steps=30, clip=0.1))
    expected = plain_descent(objective, name, 30)
    for block, values in expected.items():
        np.testing.assert_allclose(found.params[block][-1], values, atol=1e-10)
        assert np.abs(values - START[block]).max() > 0.005
