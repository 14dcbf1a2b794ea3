"""A branch of critical points over a number, as it is shown: points, folds, and where rates cross."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np


@dataclass(frozen=True)
class BranchPoint:
    """A critical point of a branch: `index` directions grow inside the model; `rates` are those of what opens out of it.

    Where the model is whole, `rates` are those of the directions that grow in it. `measures` are curves to draw, by name.

    Examples:
        >>> point = ss.BranchPoint(0.0, -0.25, 0, (), {}, {}, {"x": np.ones(1)})
        >>> point.stable
        True
    """

    value: float
    loss: float
    index: int
    rates: tuple[float, ...]
    openings: Mapping[str, tuple[float, ...]]
    measures: Mapping[str, tuple[float, ...]]
    params: Mapping[str, np.ndarray]

    @property
    def stable(self) -> bool:
        """Whether nothing grows inside the model."""
        return self.index == 0

    def json(self) -> dict[str, Any]:
        found = {"value": self.value, "loss": self.loss, "index": self.index, "rates": list(self.rates), "stable": self.stable}
        found["openings"] = {name: list(rates) for name, rates in self.openings.items()}
        return found | {name: list(values) for name, values in self.measures.items()}


@dataclass(frozen=True)
class Crossing:
    """A place on a branch. `kind` is fold, bifurcation (a rate inside the model is zero), opening (a rate out of it is zero),
    or order (two kinds of openings are equally fast); `what` names the rates.

    Examples:
        >>> fold = ss.Crossing(value=0.385, loss=0.083, kind="fold", what="the branch turns back")
        >>> fold.kind, fold.value
        ('fold', 0.385)
    """

    value: float
    loss: float
    kind: str
    what: str

    def json(self) -> dict[str, Any]:
        return {"value": self.value, "loss": self.loss, "kind": self.kind, "what": self.what}


@dataclass(frozen=True)
class Branch:
    """Critical points in the order in which they follow each other, folds, and crossings of rates; `notes` say how it ends.

    Examples:
        >>> def family(v):
        ...     return ss.JaxObjective(lambda params: (params["x"] ** 4 / 4 - params["x"] ** 2 / 2 - v * params["x"]).sum())
        >>> branch = ss.continue_point(family, 0.0, {"x": np.ones(1)}, low=-0.2, high=0.2)
        >>> print(f"{len(branch.folds)} folds, loss {branch.points[0].loss:.3f} at {branch.points[0].value:.2f}")
        0 folds, loss -0.061 at -0.20
    """

    points: tuple[BranchPoint, ...]
    folds: tuple[Crossing, ...]
    crossings: tuple[Crossing, ...]
    notes: tuple[str, ...] = ()

    def json(self) -> dict[str, Any]:
        parts = {name: [each.json() for each in getattr(self, name)] for name in ("points", "folds", "crossings")}
        return {**parts, "notes": list(self.notes)}
