"""Reference numbers of a paper, each once, in `reference.json` beside it; and how far numbers made again are from them."""

import json
import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields
from functools import cache
from importlib import resources
from itertools import groupby
from pathlib import Path
from typing import Any

from stagescope.errors import StagescopeError
from stagescope.runs.files import publish, store_errors


@dataclass(frozen=True)
class Published:
    """A number to compare with, or a list or table of them.

    `tolerance` is relative or absolute as `source` states, and None where the number is only shown. `source` says where the
    number comes from: a figure or table of the paper, an independent implementation, or an earlier result of this package.
    """

    value: Any
    unit: str
    tolerance: float | None
    source: str


@dataclass(frozen=True)
class Distance:
    """A published or reference number of some `quantity`, and the same made again: `at` says where, such as a step or a row.

    `ours` is None where it did not come. `tolerance` is absolute, None where the number is only shown. `cause` says why it is
    further away, where that is known.
    """

    section: str
    quantity: str
    at: str
    reference: float
    ours: float | None
    tolerance: float | None
    cause: str = ""

    @property
    def distance(self) -> float:
        return math.inf if self.ours is None else abs(self.ours - self.reference)

    @property
    def verdict(self) -> str:
        if self.tolerance is None:
            return "shown"
        return "within" if self.distance <= self.tolerance else "outside"

    def cells(self) -> tuple[str, ...]:
        """Place, reference, ours, distance, tolerance and verdict, as text."""
        far = "-" if math.isinf(self.distance) else f"{self.distance:.2g}"
        ours = "none" if self.ours is None else f"{self.ours:.4g}"
        limit = "-" if self.tolerance is None else f"{self.tolerance:.2g}"
        return self.at, f"{self.reference:.4g}", ours, far, limit, self.verdict


HEADINGS = ("quantity", "within", "where", "reference", "ours", "distance", "tolerance", "verdict")


def distance_table(distances: Sequence[Distance], every: bool = False) -> str:
    """Markdown with a table for each section, and below it the causes of what is outside.

    Unless `every` number is asked for, a line for a quantity shows its worst number: that with the largest distance in units of
    its tolerance. "within" counts those that are inside it.
    """
    parts = []
    for section, group in groupby(distances, lambda row: row.section):
        rows = list(group)
        quantities: dict[str, list[Distance]] = {}
        for row in rows:
            quantities.setdefault(row.quantity, []).append(row)
        lines: list[tuple[str, ...]] = [HEADINGS]
        for quantity, same in quantities.items():
            worst = max(same, key=lambda row: row.distance / max(row.tolerance or math.inf, 1e-300))
            lines += [(quantity, _within(same), *row.cells()) for row in (same if every else [worst])]
        widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
        lines.insert(1, tuple("-" * width for width in widths))
        padded = ["| " + " | ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)) + " |" for line in lines]
        causes: dict[str, list[str]] = {}
        for row in rows:
            if row.cause and row.verdict == "outside" and row.quantity not in causes.setdefault(row.cause, []):
                causes[row.cause].append(row.quantity)
        below = [f"- {', '.join(names)}: {cause}" for cause, names in causes.items()]
        parts.append("\n".join([f"## {section}", "", *padded, *(["", *below] if below else [])]))
    return "\n\n".join([f"{_within(distances)} numbers are within their tolerance.", *parts]) + "\n"


def _within(rows: Sequence[Distance]) -> str:
    judged = [row for row in rows if row.tolerance is not None]
    return f"{sum(row.verdict == 'within' for row in judged)} of {len(judged)}" if judged else "-"


def write_distances(distances: Sequence[Distance], out: Path) -> Path:
    """distances.json with every number, distances.md with the table of `distance_table` for every number."""
    body = [{**asdict(row), "verdict": row.verdict} for row in distances]
    with store_errors(out):
        out.mkdir(parents=True, exist_ok=True)
        publish(out / "distances.json", (json.dumps(body, indent=1, allow_nan=False) + "\n").encode())
        publish(out / "distances.md", distance_table(distances, every=True).encode())
    return out / "distances.md"


@cache
def published(package: str) -> dict[str, Published]:
    """The reference numbers of a paper by name, from the file `reference.json` of its package."""
    where = f"reference.json of {package}"
    try:
        found = json.loads(resources.files(package).joinpath("reference.json").read_text(encoding="utf-8"))
    except (OSError, ModuleNotFoundError) as error:
        raise StagescopeError(f"cannot read {where}: {error}") from None
    except ValueError as error:
        raise StagescopeError(f"{where} is not JSON: {error}") from None
    if not isinstance(found, dict):
        raise StagescopeError(f"{where} is a {type(found).__name__}; expected an object with one entry per number")
    return {name: _entry(f"the entry {name!r} in {where}", entry) for name, entry in found.items()}


def _entry(where: str, entry: Any) -> Published:
    wanted = [field.name for field in fields(Published)]
    if not isinstance(entry, dict) or set(entry) != set(wanted):
        has = ", ".join(map(str, entry)) if isinstance(entry, dict) else type(entry).__name__
        raise StagescopeError(f"{where} has {has or 'no fields'}; expected {', '.join(wanted)}")
    made = Published(**entry)
    for name, good, expected in (
        (
            "value",
            _is_number(made.value) or (isinstance(made.value, list | dict) and made.value),
            "a number, a list or an object",
        ),
        (
            "tolerance",
            made.tolerance is None or (_is_number(made.tolerance) and made.tolerance >= 0),
            "a number from 0 on, or null",
        ),
        ("unit", isinstance(made.unit, str), "text, empty for a pure number"),
        ("source", isinstance(made.source, str) and made.source, "text that says where the number comes from"),
    ):
        if not good:
            raise StagescopeError(f"{where} has the {name} {getattr(made, name)!r}; expected {expected}")
    return made


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
