"""What every dynamics has in common: block rates, and a walk from frame to frame that can be resumed."""

import math
from abc import abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np
from pydantic import field_validator

from stagescope.dynamics.record import Record
from stagescope.errors import InputError, StagescopeError, unknown
from stagescope.fields.field import Field
from stagescope.params import Layout
from stagescope.spec import Described

State = Mapping[str, np.ndarray]
"""Everything needed to continue exactly: parameters, optimiser state, position."""


TINIEST = 5e-15
"""Least rms of an initial block that is not exactly 0. Once other parameters are of order 1, they are rounded to 1e-16, and that
moves a smaller block more than it moves itself: down to 1e-14 events are right to 1 %, below 1e-15 they are not
(validation/tiny_starts.py)."""


class SolveFailed(StagescopeError):
    """A solve that broke down; `status` says how, the message where and at which norm."""

    def __init__(self, status: str, message: str) -> None:
        super().__init__(message)
        self.status = status


@dataclass(frozen=True)
class Point:
    """Where a walk is: `frame` marks a position to record, a `state` one it can be continued from."""

    position: float
    vector: np.ndarray
    frame: bool
    state: State | None


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

    @property
    @abstractmethod
    def clock(self) -> str:
        """`t` for flow time, `step` where there is none."""

    @abstractmethod
    def positions(self, record: Record | None, until: float | None) -> np.ndarray:
        """Where the frames are, on the axis that `walk` counts."""

    @abstractmethod
    def times(self, position: float) -> dict[str, float]:
        """The clock series (`t`, `step`) at a position."""

    def settled(self, layout: Layout, vector: np.ndarray) -> "Dynamics":
        """This dynamics with every choice that depends on the initial state made, so that the spec is complete."""
        return self

    @abstractmethod
    def start(self, field: Field, layout: Layout, vector: np.ndarray) -> State:
        """The state at position 0."""

    @abstractmethod
    def walk(self, field: Field, layout: Layout, state: State, targets: np.ndarray) -> Iterator[Point]:
        """Visit every target after the state's position, in order; the last target is the end of the run."""


def least_rms(layout: Layout, vector: np.ndarray) -> float:
    """The rms of the smallest block that is not exactly 0, infinity where all are; one that is too small is refused."""
    least = math.inf
    for name, block in layout.unpack(vector).items():
        if not np.any(block):
            continue
        largest = float(np.max(np.abs(block)))
        rms = largest * float(np.sqrt(np.mean(np.square(block / largest))))  # squares of tiny numbers would be 0
        if rms < TINIEST:
            raise InputError(
                f"the initial {name} has rms {rms:.2g}, but below {TINIEST:g} rounding in float64 decides when it grows: "
                "start it at 1e-14 or more, or at exactly 0"
            )
        least = min(least, rms)
    return least


def check_finite(vector: np.ndarray, where: str) -> None:
    if not np.all(np.isfinite(vector)):
        raise SolveFailed("diverged", f"diverged at {where}: parameters are no longer finite; lower the rates")
