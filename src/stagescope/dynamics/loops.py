"""Ways to take the steps of a descent: a kernel of whole steps, a kernel's gradient, or the definition compiled by JAX."""

from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from stagescope.dynamics.dynamics import State
from stagescope.fields.field import Field, StepGradient
from stagescope.params import Layout

if TYPE_CHECKING:
    from stagescope.dynamics.descent import Descent

LIMIT = 1e15
"""A parameter beyond this has diverged, even where a saturated loss stays finite."""


class Loop(Protocol):
    """Steps on a carry (parameters and the optimiser's memory), in pieces of any size with the same result bit for bit."""

    def start(self, vector: np.ndarray) -> State: ...

    def restore(self, state: State) -> Any: ...

    def state(self, carry: Any, position: int) -> State: ...

    def advance(self, carry: Any, first: int, steps: int) -> tuple[Any, int]: ...

    def vector(self, carry: Any) -> np.ndarray: ...

    def remembered(self, state: State) -> np.ndarray:
        """The memory of plain gradients in a state, as a flat vector."""
        ...

    def remembering(self, memory: np.ndarray) -> State:
        """The part of a state that holds such a memory."""
        ...


def handed_over(before: "Descent", after: "Descent", field: Field, layout: Layout, state: State) -> State:
    """A state of one descent as one of another: with its memory, or with none where the optimiser is of another type."""
    old, new = loop_for(before, field, layout), loop_for(after, field, layout)
    if type(before.optimizer) is not type(after.optimizer):
        fresh = new.start(np.asarray(state["theta"]))
        return {**fresh, "position": state["position"], "since": state["position"]}
    if type(old) is type(new):
        return state
    memory = new.remembering(old.remembered(state)) if after.optimizer.moments else {}
    return {**new.start(np.asarray(state["theta"])), **memory, "position": state["position"]}


def loop_for(descent: "Descent", field: Field, layout: Layout) -> Loop:
    """A kernel where the objective has one for this optimiser, else the compiled definition."""
    fused = getattr(field.objective, "fused", None)
    if fused is not None and descent.optimizer.decay is not None and descent.clip is None and descent.half_life is None:
        rates = descent.block_rates(layout.names)
        lr = {name: descent.lr * rates[name] for name in layout.names}
        return KernelLoop(fused(layout, descent.optimizer.decay, lr))
    gradient = getattr(field.objective, "step_gradient", None)
    if gradient is not None:
        return GradientLoop(descent, field, layout, gradient(layout))
    return CompiledLoop(descent, field, layout)


class KernelLoop:
    """Steps in a kernel on flat vectors."""

    def __init__(self, steps: Any) -> None:
        self._steps = steps

    def start(self, vector: np.ndarray) -> State:
        return self.state((vector, np.zeros_like(vector)), 0)

    def restore(self, state: State) -> Any:
        return np.array(state["theta"]), np.array(state["memory"])

    def state(self, carry: Any, position: int) -> State:
        return {"theta": carry[0], "memory": carry[1], "position": np.array(position)}

    def advance(self, carry: Any, first: int, steps: int) -> tuple[Any, int]:
        moved = carry[0].copy(), carry[1].copy()
        done = self._steps(*moved, first, steps)
        return moved, int(done)

    def vector(self, carry: Any) -> np.ndarray:
        return carry[0]

    def remembered(self, state: State) -> np.ndarray:
        return np.array(state["memory"])

    def remembering(self, memory: np.ndarray) -> State:
        return {"memory": memory}


class GradientLoop:
    """Steps on a kernel's gradient, the optimiser in NumPy: the numbers of `CompiledLoop` without JAX.

    `since` in a state is the step with which its memory begins; Optax counts for itself.
    """

    def __init__(self, descent: "Descent", field: Field, layout: Layout, gradient: StepGradient) -> None:
        rates, counts = descent.block_rates(layout.names), field.multiplicity
        self._gradient, self._optimizer, self._clip = gradient, descent.optimizer, descent.clip
        self._ratio, self._since = descent.ratio, 0
        self._lr = layout.pack({name: np.full(shape, descent.lr * rates[name]) for name, shape in layout.shapes})
        self._counts = layout.pack({name: np.broadcast_to(counts.get(name, 1.0), shape) for name, shape in layout.shapes})

    def start(self, vector: np.ndarray) -> State:
        return self.state((vector, *(np.zeros_like(vector) for _ in range(self._optimizer.moments))), 0)

    def restore(self, state: State) -> Any:
        self._since = int(state.get("since", 0))
        return tuple(np.array(state[name]) for name in ("theta", *(f"memory{i}" for i in range(self._optimizer.moments))))

    def state(self, carry: Any, position: int) -> State:
        memory = {f"memory{i}": moment for i, moment in enumerate(carry[1:])}
        since = {"since": np.array(self._since)} if self._since else {}
        return {"theta": carry[0], "position": np.array(position), **memory, **since}

    @np.errstate(over="ignore", invalid="ignore")  # a divergence is reported once, as the outcome
    def advance(self, carry: Any, first: int, steps: int) -> tuple[Any, int]:
        theta, *memory = (part.copy() for part in carry)
        gradient = np.empty_like(theta)
        for done in range(steps):
            self._gradient(theta, first + done, gradient)
            if self._clip is not None:
                norm = np.sqrt(np.dot(self._counts * gradient, gradient))
                if norm > self._clip:
                    gradient *= self._clip / norm
            lr = self._ratio ** (first + done) * self._lr
            theta -= lr * self._optimizer.direction(gradient, memory, theta, first + done + 1 - self._since)
            if not np.max(np.abs(theta)) < LIMIT:
                return carry, done
        return (theta, *memory), steps

    def vector(self, carry: Any) -> np.ndarray:
        return carry[0]

    def remembered(self, state: State) -> np.ndarray:
        return np.array(state["memory0"])

    def remembering(self, memory: np.ndarray) -> State:
        return {"memory0": memory}


class CompiledLoop:
    """Steps compiled by JAX; the body does not depend on their number. A stochastic law gets its data step by step.

    Step sizes are arguments, not constants of the compiled code: runs that differ in them alone share it.
    """

    def __init__(self, descent: "Descent", field: Field, layout: Layout) -> None:
        import optax

        from stagescope.autodiff import jax, jnp

        rates = descent.block_rates(layout.names)
        self._jax, self._layout, self._draw = jax, layout, field.draw
        self._data, self._ratio = field.data, descent.ratio
        self._lr = {name: descent.lr * rates[name] for name in layout.names}
        self._transform = descent.optimizer.transform()
        counts = field.multiplicity

        def clipped(grads: Any) -> Any:
            if descent.clip is None:
                return grads
            norm = jnp.sqrt(sum(jnp.sum(grads[name] ** 2 * counts.get(name, 1.0)) for name in layout.names))
            return {name: grads[name] * jnp.where(norm > descent.clip, descent.clip / norm, 1.0) for name in layout.names}

        def body(carry: Any, first: Any, lr: Any, ratio: Any, data: Any) -> Any:
            params, memory, count, _ = carry
            shrunk = ratio ** (first + count)
            grads = clipped({name: -value for name, value in field.law(params, data).items()})
            directions, memory_next = self._transform.update(grads, memory, params)
            updates = {name: -shrunk * lr[name] * directions[name] for name in layout.names}
            moved: Any = optax.apply_updates(params, updates)
            finite = jnp.all(jnp.array([jnp.all(jnp.abs(moved[name]) < LIMIT) for name in layout.names]))
            kept = jax.tree.map(lambda new, old: jnp.where(finite, new, old), (moved, memory_next), (params, memory))
            return *kept, count + finite, finite

        @jax.jit
        def advance(params: Any, memory: Any, first: Any, steps: Any, lr: Any, ratio: Any, data: Any) -> Any:
            start = (params, memory, jnp.zeros((), jnp.int64), jnp.array(True))
            return jax.lax.while_loop(lambda c: (c[2] < steps) & c[3], lambda c: body(c, first, lr, ratio, data), start)

        self._advance = advance

    def start(self, vector: np.ndarray) -> State:
        params = self._layout.unpack(vector)
        return self.state((params, self._transform.init(dict(params))), 0)

    def state(self, carry: Any, position: int) -> State:
        leaves = {f"memory{i}": np.asarray(leaf) for i, leaf in enumerate(self._jax.tree.leaves(carry[1]))}
        return {"theta": self.vector(carry), "position": np.array(position), **leaves}

    def restore(self, state: State) -> Any:
        params = self._layout.unpack(np.asarray(state["theta"]))
        shape = self._jax.tree.structure(self._transform.init(dict(params)))
        leaves = [state[f"memory{i}"] for i in range(shape.num_leaves)]
        return dict(params), self._jax.tree.unflatten(shape, leaves)

    def advance(self, carry: Any, first: int, steps: int) -> tuple[Any, int]:
        if self._draw(first) is None:
            params, memory, done, _ = self._advance(*carry, first, steps, self._lr, self._ratio, self._data)
            return (params, memory), int(done)
        for step in range(steps):
            data = self._draw(first + step)
            params, memory, done, _ = self._advance(*carry, first + step, 1, self._lr, self._ratio, data)
            if not int(done):
                return carry, step
            carry = params, memory
        return carry, steps

    def vector(self, carry: Any) -> np.ndarray:
        return self._layout.pack({name: np.asarray(block) for name, block in carry[0].items()})

    def remembered(self, state: State) -> np.ndarray:
        return self._layout.pack({name: state[f"memory{i}"] for i, name in enumerate(sorted(self._layout.names))})

    def remembering(self, memory: np.ndarray) -> State:
        blocks = self._layout.unpack(memory)  # JAX orders the leaves of a dict by name
        return {f"memory{i}": blocks[name] for i, name in enumerate(sorted(self._layout.names))}
