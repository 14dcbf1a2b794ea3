"""What a claim over several runs compares: one number of each run beside the one its law predicts, the data of a small figure."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from stagescope.errors import InputError


@dataclass(frozen=True)
class OverRuns:
    """One number of each of several runs over what differs between them; the ledger draws it.

    Args:
        x: what differs between the runs, a number each.
        measured: the number of each run, None where it has none.
        predicted: what the claim's law says for each run, None where it says nothing; empty where there is no law.
        x_axis: name of x, with its unit.
        y_axis: name of the numbers, with their unit.
        names: of the runs, such as "seed 3"; empty where x says it all.
        log_x: whether x is drawn on a logarithmic axis; all x are then above 0.
        log_y: the same for the numbers.

    Examples:
        >>> over = ss.OverRuns(x=(0.1, 0.2), measured=(10.0, 5.1), predicted=(10.0, 5.0), x_axis="scale", y_axis="time")
        >>> len(over.x)
        2
    """

    x: tuple[float, ...]
    measured: tuple[float | None, ...]
    predicted: tuple[float | None, ...]
    x_axis: str
    y_axis: str
    names: tuple[str, ...] = ()
    log_x: bool = False
    log_y: bool = False

    def __post_init__(self) -> None:
        for name in ("x", "measured", "predicted"):
            object.__setattr__(self, name, tuple(map(_number, getattr(self, name))))
        object.__setattr__(self, "names", tuple(self.names))
        count = len(self.x)
        for name in ("measured", "predicted", "names"):
            held = len(getattr(self, name))
            if held != count and not (held == 0 and name != "measured"):
                raise InputError(f"there are {count} runs, but {held} entries in {name}; give one for each run")
        if None in self.x:
            raise InputError(f"x is {self.x}; give a finite number for each run")
        for name, log in (("x", self.log_x), ("measured", self.log_y), ("predicted", self.log_y)):
            if log and any(value is not None and value <= 0 for value in getattr(self, name)):
                raise InputError(f"{name} is {getattr(self, name)}; a logarithmic axis needs numbers above 0")

    @property
    def runs(self) -> int:
        return len(self.x)


def _number(value: Any) -> float | None:
    """A plain number; None for one that is not finite."""
    return None if value is None or not np.isfinite(value) else float(value)
