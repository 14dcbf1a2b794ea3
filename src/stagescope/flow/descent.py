"""Descent in steps: gradient descent, heavy ball, Adam and AdamW, one rate per block.

Steps are taken by a kernel of whole steps, on a kernel's gradient, or by the definition compiled by JAX.
"""

import time
from abc import abstractmethod
from collections.abc import Iterator
from typing import Any, ClassVar

import numpy as np
from pydantic import Field as Limits
from pydantic import SerializeAsAny, model_validator

from stagescope.core.errors import InputError
from stagescope.core.params import Layout
from stagescope.core.spec import Described
from stagescope.flow.dynamics import Dynamics, Point, SolveFailed, State
from stagescope.flow.field import Field, StepGradient
from stagescope.flow.record import Every, LogSpaced, Record

LIMIT = 1e15
"""A parameter beyond this has diverged, even where a saturated loss stays finite."""


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


def loop_for(descent: "Descent", field: Field, layout: Layout) -> "KernelLoop | GradientLoop | CompiledLoop":
    """A kernel where the objective has one for this optimiser, else the compiled definition.

    Each takes steps on a carry (parameters and the optimiser's memory), in pieces of any size with the same result bit for bit.
    `remembered` is the memory of plain gradients in a state, as a flat vector; `remembering` the part of a state that holds it.
    """
    fused = getattr(field.objective, "fused", None)
    if fused is not None and descent.optimizer.decay is not None and descent.clip is None and descent.half_life is None:
        rates = descent.block_rates(layout.names)
        lr = {name: descent.lr * rates[name] for name in layout.names}
        return KernelLoop(fused(layout, descent.optimizer.decay, lr))
    gradient = getattr(field.objective, "step_gradient", None)
    if gradient is not None:
        return GradientLoop(descent, field, layout, gradient(layout))
    return CompiledLoop(descent, field, layout)


class FlatLoop:
    """What loops on flat vectors have in common: a carry is the parameters, and the optimiser's memory by name."""

    memory: tuple[str, ...]

    def start(self, vector: np.ndarray) -> State:
        return self.state((vector, *(np.zeros_like(vector) for _ in self.memory)), 0)

    def restore(self, state: State) -> Any:
        return tuple(np.array(state[name]) for name in ("theta", *self.memory))

    def state(self, carry: Any, position: int) -> State:
        return {"theta": carry[0], "position": np.array(position), **dict(zip(self.memory, carry[1:], strict=True))}

    def vector(self, carry: Any) -> np.ndarray:
        return carry[0]

    def remembered(self, state: State) -> np.ndarray:
        return np.array(state[self.memory[0]])

    def remembering(self, memory: np.ndarray) -> State:
        return {self.memory[0]: memory}


class KernelLoop(FlatLoop):
    """Steps in a kernel."""

    memory = ("memory",)

    def __init__(self, steps: Any) -> None:
        self._steps = steps

    def advance(self, carry: Any, first: int, steps: int) -> tuple[Any, int]:
        new_carry = carry[0].copy(), carry[1].copy()
        done = self._steps(*new_carry, first, steps)
        return new_carry, int(done)


class GradientLoop(FlatLoop):
    """Steps on a kernel's gradient, the optimiser in NumPy: the numbers of `CompiledLoop` without JAX.

    `since` in a state is the step with which its memory begins; Optax counts for itself.
    """

    def __init__(self, descent: "Descent", field: Field, layout: Layout, gradient: StepGradient) -> None:
        rates = descent.block_rates(layout.names)
        self._gradient, self._optimizer, self._clip = gradient, descent.optimizer, descent.clip
        self._ratio, self._since = descent.ratio, 0
        self.memory = tuple(f"memory{i}" for i in range(descent.optimizer.moments))
        self._lr = layout.spread({name: descent.lr * rate for name, rate in rates.items()})
        self._counts = field.weights(layout)

    def restore(self, state: State) -> Any:
        self._since = int(state.get("since", 0))
        return super().restore(state)

    def state(self, carry: Any, position: int) -> State:
        since = {"since": np.array(self._since)} if self._since else {}
        return {**super().state(carry, position), **since}

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


class CompiledLoop:
    """Steps compiled by JAX; the body does not depend on their number. A stochastic law gets its data step by step.

    Step sizes are arguments, not constants of the compiled code: runs that differ in them alone share it.
    """

    def __init__(self, descent: "Descent", field: Field, layout: Layout) -> None:
        import optax

        from stagescope.flow.autodiff import jax, jnp

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
            new_params: Any = optax.apply_updates(params, updates)
            finite = jnp.all(jnp.array([jnp.all(jnp.abs(new_params[name]) < LIMIT) for name in layout.names]))
            accepted = jax.tree.map(lambda new, old: jnp.where(finite, new, old), (new_params, memory_next), (params, memory))
            return *accepted, count + finite, finite

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


DENSE = 1000
"""Descents up to this many steps are recorded at every step, longer ones log-spaced."""
NEAR = 2**13
"""Numbers that an optimiser works on at once: 64 KiB of each array."""
BLOCK_SECONDS = 0.2
"""How long compiled code may run before Python looks at progress, checkpoints and Ctrl-C."""


class Optimizer(Described):
    """A direction from a gradient.

    `flow_time` is the clock one unit of step size is worth, None where there is no clock; `decay` is that of a memory of
    plain gradients (0 without memory), None where the direction is anything else. `moments` is how many vectors are remembered.
    """

    decay: ClassVar[float | None] = None
    flow_time: ClassVar[float | None] = None
    moments: ClassVar[int] = 0

    @abstractmethod
    def transform(self) -> Any:
        """The Optax transformation, before the step size."""

    @abstractmethod
    def direction(self, gradient: np.ndarray, memory: list[np.ndarray], theta: np.ndarray, step: int) -> np.ndarray:
        """The same in NumPy on flat vectors, for step 1, 2, ...; `memory` is brought up to date in place."""


class GD(Optimizer):
    """Plain gradient descent.

    Examples:
        >>> ss.Descent(optimizer=ss.GD(), lr=0.1, steps=100).steps
        100
    """

    decay: ClassVar[float | None] = 0.0
    flow_time: ClassVar[float | None] = 1.0

    def transform(self) -> Any:
        import optax

        return optax.identity()

    def direction(self, gradient: np.ndarray, memory: list[np.ndarray], theta: np.ndarray, step: int) -> np.ndarray:
        return gradient


class HeavyBall(Optimizer):
    """Gradient descent with momentum: effective rates are 1/(1 - momentum) times larger, and so is its clock.

    Args:
        momentum: the share of the last step that is taken again.

    Examples:
        >>> ball = ss.Descent(optimizer=ss.HeavyBall(momentum=0.5), lr=0.1, steps=10)
        >>> print(ss.evolve(well, {"x": np.full(1, 0.1)}, ball).t[-1].round(6))  # 10 steps of 0.1 / (1 - 0.5)
        2.0
    """

    moments: ClassVar[int] = 1
    momentum: float = Limits(default=0.9, ge=0, lt=1)

    @property
    def decay(self) -> float:  # pyright: ignore[reportIncompatibleVariableOverride]
        return self.momentum

    @property
    def flow_time(self) -> float:  # pyright: ignore[reportIncompatibleVariableOverride]
        return 1.0 / (1.0 - self.momentum)

    def transform(self) -> Any:
        import optax

        return optax.trace(decay=self.momentum)

    def direction(self, gradient: np.ndarray, memory: list[np.ndarray], theta: np.ndarray, step: int) -> np.ndarray:
        memory[0] *= self.momentum
        memory[0] += gradient
        return memory[0]


class Adam(Optimizer):
    """Adam; it has no flow time, its clock is the step.

    Args:
        b1: how much of the mean gradient is kept each step.
        b2: how much of the mean squared gradient is kept each step.
        eps: added to the root of the mean square.

    Examples:
        >>> ss.evolve(well, {"x": np.full(1, 0.1)}, ss.Descent(optimizer=ss.Adam(), lr=0.05, steps=50)).clock
        'step'
    """

    moments: ClassVar[int] = 2
    b1: float = Limits(default=0.9, ge=0, lt=1)
    b2: float = Limits(default=0.999, ge=0, lt=1)
    eps: float = Limits(default=1e-8, gt=0)

    def transform(self) -> Any:
        import optax

        return optax.scale_by_adam(b1=self.b1, b2=self.b2, eps=self.eps)

    def direction(self, gradient: np.ndarray, memory: list[np.ndarray], theta: np.ndarray, step: int) -> np.ndarray:
        direction = np.empty_like(gradient)
        for start in range(0, len(gradient), NEAR):  # a piece at a time, which stays near the processor
            piece = slice(start, start + NEAR)
            first, second = (moment[piece] for moment in memory)
            room = (1 - self.b1) * gradient[piece]
            first *= self.b1
            first += room
            np.square(gradient[piece], out=room)
            room *= 1 - self.b2
            second *= self.b2
            second += room
            np.sqrt(np.divide(second, 1 - self.b2**step, out=room), out=room)
            room += self.eps
            np.divide(first, 1 - self.b1**step, out=direction[piece])
            direction[piece] /= room
        return direction


class AdamW(Adam):
    """Adam with decoupled weight decay: each step also takes away lr x rate x weight_decay of a parameter.

    Args:
        b1: how much of the mean gradient is kept each step.
        b2: how much of the mean squared gradient is kept each step.
        eps: added to the root of the mean square.
        weight_decay: the share of a parameter that is taken away at lr x rate = 1.

    Examples:
        >>> ss.Descent(optimizer=ss.AdamW(weight_decay=0.1), lr=0.01, steps=100).optimizer.weight_decay
        0.1
    """

    weight_decay: float = Limits(default=0.01, ge=0)

    def transform(self) -> Any:
        import optax

        return optax.chain(super().transform(), optax.add_decayed_weights(self.weight_decay))

    def direction(self, gradient: np.ndarray, memory: list[np.ndarray], theta: np.ndarray, step: int) -> np.ndarray:
        direction = super().direction(gradient, memory, theta, step)
        direction += self.weight_decay * theta
        return direction


class Descent(Dynamics):
    """theta_b <- theta_b + lr rate_b d_b, with d the optimiser's direction; t = (sum of lr) / (1 - momentum).

    With `clip`, a gradient (of all blocks, before their rates) longer than that is shortened to it; steps then are no flow time.
    With `half_life` the step size falls, lr_k = lr 2^(-k/half_life) in step k = 0, 1, ..., however many steps there are.

    Args:
        optimizer: `GD`, `HeavyBall`, `Adam` or `AdamW`.
        lr: the step size.
        steps: how many steps are taken.
        rates: a factor of the step size for each block; 1 where it is not named.
        clip: the longest gradient, None for no limit.
        half_life: steps after which the step size is halved.

    Examples:
        >>> descent = ss.Descent(optimizer=ss.GD(), lr=0.1, steps=20)
        >>> ss.evolve(well, {"x": np.full(1, 0.1)}, descent, record=ss.Every(n=10)).step.tolist()
        [0, 10, 20]
    """

    optimizer: SerializeAsAny[Optimizer] = GD()
    lr: float = Limits(default=1.0, gt=0)
    steps: int = Limits(ge=1)
    clip: float | None = Limits(default=None, gt=0)
    half_life: float | None = Limits(default=None, gt=0)

    @model_validator(mode="after")
    def _final(self) -> "Descent":
        if type(self.optimizer) is Optimizer:
            raise ValueError("optimizer must be GD(), HeavyBall(...), Adam(...) or AdamW(...)")
        return self

    @property
    def ratio(self) -> float:
        """The step size of a step over that of the step before."""
        return 1.0 if self.half_life is None else 0.5 ** (1 / self.half_life)

    @property
    def flow_time(self) -> float | None:
        """The flow time of one unit of step size, None where there is none."""
        return self.optimizer.flow_time if self.clip is None else None

    @property
    def clock(self) -> str:
        return "step" if self.flow_time is None else "t"

    @property
    def usual_record(self) -> Record:
        return Every() if self.steps <= DENSE else LogSpaced(frames=DENSE)

    def shortened(self, steps: int) -> "Descent":
        """The same steps, so many of them."""
        return self.model_copy(update={"steps": steps})

    def positions(self, record: Record | None, until: float | None) -> np.ndarray:
        if until is not None:
            raise InputError("a descent ends after its steps: give Descent(steps=...) instead of until")
        return (record or self.usual_record).steps(self.steps)

    def times(self, position: float) -> dict[str, float]:
        unit = self.flow_time
        units = position if self.half_life is None else (1 - self.ratio**position) / (1 - self.ratio)
        clock = {} if unit is None else {"t": self.lr * unit * units}
        return {**clock, "step": int(position)}

    def start(self, field: Field, layout: Layout, vector: np.ndarray) -> State:
        return loop_for(self, field, layout).start(vector)

    def walk(self, field: Field, layout: Layout, state: State, targets: np.ndarray) -> Iterator[Point]:
        loop = loop_for(self, field, layout)
        carry, now = loop.restore(state), int(state["position"])
        block = 1
        for target in targets[targets > now]:
            while now < target:
                began = time.perf_counter()
                count = int(min(block, target - now))
                before = carry
                carry, done = loop.advance(before, now, count)
                if done < count:
                    last = loop.advance(before, now, done)[0] if done else before
                    raise _diverged(field, layout, loop.vector(last), now + done)
                now += done
                if count == block:  # blocks grow until one takes about BLOCK_SECONDS; their size never changes a result
                    seconds = max(time.perf_counter() - began, 1e-6)
                    block = max(1, min(4 * block, int(block * BLOCK_SECONDS / seconds)))
                vector = loop.vector(carry)
                yield Point(now, vector, frame=now == target, state=loop.state(carry, now))


@np.errstate(over="ignore", invalid="ignore")
def _diverged(field: Field, layout: Layout, vector: np.ndarray, step: int) -> SolveFailed:
    """Why there is no next step from here."""
    kernel = getattr(field.objective, "step_gradient", None)
    gradient = np.empty_like(vector)
    if kernel is not None:
        kernel(layout)(vector, step, gradient)
    else:
        batch = field.draw(step)
        law = field.law(layout.unpack(vector), field.data if batch is None else batch)
        gradient = layout.pack({name: np.asarray(block) for name, block in law.items()})
    noun = "field" if field.objective is None else "gradient"
    if np.all(np.isfinite(gradient)):
        reason = "a parameter exceeds 1e15; lower the rates"
    else:
        size = "NaN" if np.isnan(gradient).any() else "infinite"
        reason = f"the {noun} is {size} at |theta|={np.linalg.norm(vector):.3g}; lower the rates, or mend the loss"
    return SolveFailed("diverged", f"diverged at step {step + 1}: {reason}")
