"""Descent in steps: gradient descent, heavy ball and Adam from Optax, one rate per block."""

import time
from abc import abstractmethod
from collections.abc import Iterator
from typing import Any, ClassVar, Protocol

import numpy as np
from pydantic import Field as Limits
from pydantic import SerializeAsAny, model_validator

from stagescope.described import Described
from stagescope.dynamics.dynamics import Dynamics, Point, SolveFailed, State
from stagescope.dynamics.record import Every, LogSpaced, Record
from stagescope.errors import InputError
from stagescope.objectives.field import Field
from stagescope.types import Layout

LIMIT = 1e15
"""A parameter beyond this has diverged, even where a saturated loss stays finite."""
DENSE = 1000
"""Descents up to this many steps are recorded at every step, longer ones log-spaced."""
BLOCK_SECONDS = 0.2
"""How long compiled code may run before Python looks at progress, checkpoints and Ctrl-C."""


class Optimizer(Described):
    """A direction from a gradient.

    `flow_time` is the clock one unit of step size is worth, None where there is no clock; `decay` is that of a memory of
    plain gradients (0 without memory), None where the direction is anything else.
    """

    decay: ClassVar[float | None] = None

    @property
    @abstractmethod
    def flow_time(self) -> float | None: ...

    @abstractmethod
    def transform(self) -> Any:
        """The Optax transformation, before the step size."""


class GD(Optimizer):
    """Plain gradient descent."""

    decay: ClassVar[float | None] = 0.0

    @property
    def flow_time(self) -> float:
        return 1.0

    def transform(self) -> Any:
        import optax

        return optax.identity()


class HeavyBall(Optimizer):
    """Gradient descent with momentum: effective rates are 1/(1 - momentum) times larger, and so is its clock."""

    momentum: float = Limits(default=0.9, ge=0, lt=1)

    @property
    def decay(self) -> float:  # pyright: ignore[reportIncompatibleVariableOverride]
        return self.momentum

    @property
    def flow_time(self) -> float:
        return 1.0 / (1.0 - self.momentum)

    def transform(self) -> Any:
        import optax

        return optax.trace(decay=self.momentum)


class Adam(Optimizer):
    """Adam; it has no flow time, its clock is the step."""

    b1: float = Limits(default=0.9, ge=0, lt=1)
    b2: float = Limits(default=0.999, ge=0, lt=1)
    eps: float = Limits(default=1e-8, gt=0)

    @property
    def flow_time(self) -> None:
        return None

    def transform(self) -> Any:
        import optax

        return optax.scale_by_adam(b1=self.b1, b2=self.b2, eps=self.eps)


class Descent(Dynamics):
    """theta_b <- theta_b + lr rate_b d_b, with d the optimiser's direction; t = lr x step / (1 - momentum)."""

    optimizer: SerializeAsAny[Optimizer] = GD()
    lr: float = Limits(default=1.0, gt=0)
    steps: int = Limits(ge=1)

    @model_validator(mode="after")
    def _final(self) -> "Descent":
        if type(self.optimizer) is Optimizer:
            raise ValueError("optimizer must be GD(), HeavyBall(...) or Adam(...)")
        return self

    @property
    def clock(self) -> str:
        return "step" if self.optimizer.flow_time is None else "t"

    def positions(self, record: Record | None, until: float | None) -> np.ndarray:
        if until is not None:
            raise InputError("a descent ends after its steps: give Descent(steps=...) instead of until")
        default = Every() if self.steps <= DENSE else LogSpaced(frames=DENSE)
        return (record or default).steps(self.steps)

    def times(self, position: float) -> dict[str, float]:
        unit = self.optimizer.flow_time
        clock = {} if unit is None else {"t": self.lr * unit * position}
        return {**clock, "step": int(position)}

    def start(self, field: Field, layout: Layout, vector: np.ndarray) -> State:
        return _loop(self, field, layout).start(vector)

    def walk(self, field: Field, layout: Layout, state: State, targets: np.ndarray) -> Iterator[Point]:
        loop = _loop(self, field, layout)
        carry, now = loop.restore(state), int(state["position"])
        block = 1
        for target in targets[targets > now]:
            while now < target:
                began = time.perf_counter()
                asked = int(min(block, target - now))
                carry, done = loop.advance(carry, now, asked)
                now += done
                if done < asked:
                    raise SolveFailed("diverged", f"diverged at step {now + 1}: a parameter exceeds 1e15; lower the rates")
                block = _next_block(block, asked, time.perf_counter() - began)
                vector = loop.vector(carry)
                yield Point(now, vector, frame=now == target, state=loop.state(carry, now))


def _next_block(block: int, done: int, seconds: float) -> int:
    """Grow blocks until one takes about BLOCK_SECONDS; their size never changes a result."""
    if done < block:
        return block
    return max(1, min(4 * block, int(done * BLOCK_SECONDS / max(seconds, 1e-6))))


class Loop(Protocol):
    """Steps on a carry (parameters and the optimiser's memory), in pieces of any size with the same result bit for bit."""

    def start(self, vector: np.ndarray) -> State: ...

    def restore(self, state: State) -> Any: ...

    def state(self, carry: Any, position: int) -> State: ...

    def advance(self, carry: Any, first: int, steps: int) -> tuple[Any, int]: ...

    def vector(self, carry: Any) -> np.ndarray: ...


def _loop(descent: Descent, field: Field, layout: Layout) -> Loop:
    """A kernel where the objective has one for this optimiser, else the compiled definition."""
    fused = getattr(field.objective, "fused", None)
    if fused is not None and descent.optimizer.decay is not None:
        rates = descent.block_rates(layout.names)
        lr = {name: descent.lr * rates[name] for name in layout.names}
        return KernelLoop(fused(layout, descent.optimizer.decay, lr))
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


class CompiledLoop:
    """Steps compiled by JAX; the body does not know how many are asked for. A stochastic law gets its data step by step."""

    def __init__(self, descent: Descent, field: Field, layout: Layout) -> None:
        import optax

        from stagescope.autodiff import jax, jnp

        rates = descent.block_rates(layout.names)
        self._jax, self._layout, self._draw = jax, layout, field.draw
        self._data = field.data
        self._transform = descent.optimizer.transform()

        def body(carry: Any, data: Any) -> Any:
            params, memory, count, _ = carry
            grads = {name: -value for name, value in field.law(params, data).items()}
            directions, memory_next = self._transform.update(grads, memory, params)
            updates = {name: -descent.lr * rates[name] * directions[name] for name in layout.names}
            moved: Any = optax.apply_updates(params, updates)
            finite = jnp.all(jnp.array([jnp.all(jnp.abs(moved[name]) < LIMIT) for name in layout.names]))
            kept = jax.tree.map(lambda new, old: jnp.where(finite, new, old), (moved, memory_next), (params, memory))
            return *kept, count + finite, finite

        @jax.jit
        def advance(params: Any, memory: Any, steps: Any, data: Any) -> Any:
            first = (params, memory, jnp.zeros((), jnp.int64), jnp.array(True))
            return jax.lax.while_loop(lambda c: (c[2] < steps) & c[3], lambda c: body(c, data), first)

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
            params, memory, done, _ = self._advance(*carry, steps, self._data)
            return (params, memory), int(done)
        for step in range(steps):
            params, memory, done, _ = self._advance(*carry, 1, self._draw(first + step))
            if not int(done):
                return carry, step
            carry = params, memory
        return carry, steps

    def vector(self, carry: Any) -> np.ndarray:
        return self._layout.pack({name: np.asarray(block) for name, block in carry[0].items()})
