"""The published numbers that the figures are compared with, from the paper's `reference.json`."""

from itertools import pairwise
from typing import Any

from stagescope.papers.published import published

REFERENCE = published("stagescope.papers.incremental")


def value(name: str) -> Any:
    """A number, or a list or table of them."""
    return REFERENCE[name].value


def tolerance(name: str) -> float:
    """How far ours may be from it and still count as reproduced; infinite where the number is only shown."""
    found = REFERENCE[name].tolerance
    return float("inf") if found is None else found


def by_step(name: str) -> dict[int, Any]:
    """The values of a curve by step."""
    return _numbered(value(name))


def ratios() -> dict[str, dict[int, float]]:
    """Figure 4 right: the excess loss by ratio of the importances and step."""
    return {ratio: _numbered(curve) for ratio, curve in value("figure-4-ratios").items()}


def middles() -> list[float]:
    """The losses half-way between levels 1 and 2 and between levels 2 and 3."""
    return [(above + below) / 2 for above, below in pairwise(value("levels")[1:])]


def _numbered(curve: dict[str, Any]) -> dict[int, Any]:
    return {int(step): found for step, found in curve.items()}
