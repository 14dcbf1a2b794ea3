"""What every dynamics has in common: block rates, and a walk from frame to frame that can be resumed."""

import math
from abc import abstractmethod
from collections.abc import Iterator, Mapping
from typing import NamedTuple

import numpy as np
from pydantic import field_validator

from stagescope.core.errors import InputError, StagescopeError, unknown
from stagescope.core.params import Layout, Params
from stagescope.core.spec import Described
from stagescope.flow.field import Field
from stagescope.flow.record import Record

State = Mapping[str, np.ndarray]
"""Everything needed to continue exactly: parameters, optimiser state, position."""


TINIEST = 5e-15
"""Least rms of an initial block that is not exactly 0, unless the field moves it from 0 all the same. Once other parameters are
of order 1, they are rounded to 1e-16, and that moves a smaller block more than it moves itself: down to 1e-14 events are right
to 1 %, below 1e-15 they are not (validation/tiny_starts.py)."""
DRIVEN = 1e-8
"""Least speed, over that of the fastest block, at which a field moves a block from 0: far above rounding."""
FRAMES = 64
"""Frames that are handled at a time: taken from the solver, and made into blocks of parameters."""
PROBE, PRODUCTS = 1e-6, 6
"""Length of the step and number of products that show whether noise in a block grows; a rate up to the length counts for none."""


class TinyStart(InputError):
    """A start so small that rounding decides what becomes of it."""


class SolveFailed(StagescopeError):
    """A solve that broke down; `status` says how, the message where and at which norm."""

    def __init__(self, status: str, message: str) -> None:
        super().__init__(message)
        self.status = status


class Point(NamedTuple):
    """Where a walk is: `frame` marks a position to record, a `state` one it can be continued from.

    Loss and speed are there where they came with the step.
    """

    position: float
    vector: np.ndarray
    frame: bool
    state: State | None
    loss: float | None = None
    speed: float | None = None


class Dynamics(Described):
    """How parameters move. `rates` multiply the field block by block, 1 where not given."""

    rates: dict[str, float] = {}

    @field_validator("rates")
    @classmethod
    def _positive(cls, rates: dict[str, float]) -> dict[str, float]:
        for name, rate in rates.items():
            if not (math.isfinite(rate) and rate >= 0):
                raise ValueError(f"rate of {name} is {rate:g}, but rates must be finite and >= 0")
        return rates

    def block_rates(self, names: tuple[str, ...]) -> dict[str, float]:
        for name in self.rates:
            if name not in names:
                raise unknown("parameter block in rates", name, names)
        return {name: self.rates.get(name, 1.0) for name in names}

    def in_force(self, position: float) -> "Dynamics":
        """The dynamics that leads to a position: this one, unless it changes on the way."""
        return self

    @property
    @abstractmethod
    def clock(self) -> str:
        """`t` for flow time, `step` where there is none."""

    @property
    @abstractmethod
    def usual_record(self) -> Record:
        """The frames that are kept where nobody says which."""

    @abstractmethod
    def positions(self, record: Record | None, until: float | None) -> np.ndarray:
        """Where the frames are, on the axis that `walk` counts."""

    @abstractmethod
    def times(self, position: float) -> dict[str, float]:
        """The clock series (`t`, `step`) at a position."""

    def waiting(self, frames: int) -> int:
        """How many of so many frames wait in memory at most until there is a state that can be continued from."""
        return 1

    def settled(self, field: Field, layout: Layout, vector: np.ndarray) -> "Dynamics":
        """This dynamics with every choice that depends on the initial state made, so that the spec is complete."""
        least_rms(field, layout, vector)
        return self

    @abstractmethod
    def start(self, field: Field, layout: Layout, vector: np.ndarray) -> State:
        """The state at position 0."""

    @abstractmethod
    def walk(self, field: Field, layout: Layout, state: State, targets: np.ndarray) -> Iterator[Point]:
        """Visit every target after the state's position, in order; the last target is the end of the run."""


def least_rms(field: Field, layout: Layout, vector: np.ndarray) -> float:
    """The rms of the smallest initial block, infinity where all are 0. One that rounding would make grow is refused.

    A tiny block that the field moves from 0 all the same is rounding noise, and left out, unless the noise itself grows: so do
    tiny differences between heads that are moved alike.
    """
    blocks = layout.unpack(vector)
    sizes = {name: _rms(block) for name, block in blocks.items() if np.any(block)}
    tiny = [name for name, size in sizes.items() if size < TINIEST]
    if tiny:
        without = {name: 0 * block if name in tiny else block for name, block in blocks.items()}
        with np.errstate(all="ignore"):
            moves = speeds(field, without)
            refused = [
                name
                for name in tiny
                if not moves[name] > DRIVEN * max(moves.values()) or _grows(field, without, name, blocks[name] / sizes[name])
            ]
        for name in refused:
            raise TinyStart(
                f"the initial {name} has rms {sizes[name]:.2g}, but below {TINIEST:g} rounding in float64 decides whether and "
                f"when it grows: start it at 1e-14 or more{', or at exactly 0' if np.isfinite(moves[name]) else ''}"
            )
    return min((size for name, size in sizes.items() if name not in tiny), default=math.inf)


def _grows(field: Field, params: Params, name: str, noise: np.ndarray) -> bool:
    """Whether noise in a block grows, by the rates of the field in the directions that it is turned to (Arnoldi)."""
    at_rest = np.asarray(field.rhs(params)[name]).ravel()
    basis = [noise.ravel() / np.linalg.norm(noise)]
    small = np.zeros((PRODUCTS + 1, PRODUCTS))
    for k in range(min(PRODUCTS, noise.size)):
        pushed = {**params, name: params[name] + PROBE * basis[k].reshape(noise.shape)}
        turned = (np.asarray(field.rhs(pushed)[name]).ravel() - at_rest) / PROBE
        for j, vector in enumerate(basis):
            small[j, k] = vector @ turned
            turned = turned - small[j, k] * vector
        small[k + 1, k] = np.linalg.norm(turned)
        if not small[k + 1, k] > PROBE:
            break
        basis.append(turned / small[k + 1, k])
    projected = small[: len(basis), : len(basis)][: min(PRODUCTS, noise.size), : min(PRODUCTS, noise.size)]
    return not np.isfinite(projected).all() or float(np.max(np.real(np.linalg.eigvals(projected)))) > PROBE


def speeds(field: Field, params: Params) -> dict[str, float]:
    """The rms of the field in each block, before rates."""
    return {name: _rms(block) for name, block in field.rhs(params).items()}


def require_motion(field: Field, params: Params, speed: float, until: float) -> None:
    """Refuse a run from exactly 0 that ends before anything is larger than rounding in float64."""
    if 0 < speed * until < TINIEST and max(speeds(field, params).values()) > DRIVEN:
        raise InputError(
            f"every parameter starts at 0 and ends below {speed * until:.2g}, but below {TINIEST:g} rounding in float64 decides: "
            "let the run be longer, or raise the rates"
        )


def _rms(block: np.ndarray) -> float:
    """Of a block scaled to 1, because squares of tiny numbers would be 0."""
    largest = float(np.max(np.abs(block), initial=0.0))
    return largest * float(np.sqrt(np.mean(np.square(block / largest)))) if largest else 0.0


def check_finite(vector: np.ndarray, where: str) -> None:
    if not math.isfinite(vector.dot(vector)) and not np.all(np.isfinite(vector)):
        raise SolveFailed("diverged", f"diverged at {where}: parameters are no longer finite; lower the rates")
