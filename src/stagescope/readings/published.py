"""Reference numbers of a paper, each once, in `reference.json` beside it; and how far numbers made again are from them."""

import json
import math
from collections.abc import Sequence
from dataclasses import asdict
from functools import cache, partial
from importlib import resources
from itertools import groupby
from pathlib import Path
from typing import Annotated, Any

from pydantic import AfterValidator, ConfigDict, Field, TypeAdapter, ValidationError
from pydantic.dataclasses import dataclass

from stagescope.core.errors import StagescopeError
from stagescope.runs.files import publish, store_errors

_VALUE: Any = TypeAdapter(int | float | Annotated[list[Any] | dict[str, Any], Field(min_length=1)])


@dataclass(frozen=True, config=ConfigDict(extra="forbid", strict=True))
class Published:
    """A number to compare with, or a list or table of them.

    `tolerance` is relative or absolute as `source` states, and None where the number is only shown. `source` says where the
    number comes from: a figure or table of the paper, an independent implementation, or an earlier result of this package.
    """

    value: Annotated[Any, AfterValidator(partial(_VALUE.validate_python, strict=True))]
    unit: str
    tolerance: Annotated[float, Field(ge=0)] | None
    source: Annotated[str, Field(min_length=1)]


@dataclass(frozen=True)
class Distance:
    """A published or reference number of some `quantity`, and the same made again: `at` says where, such as a step or a row.

    `reference` is None where the paper shows no number, `ours` where it did not come. `tolerance` is absolute, None where the
    number is only shown. `cause` says why it is further away, where that is known. `figures` are those that show it, by
    name, where `section` is not itself "Figure NAME".
    """

    section: str
    quantity: str
    at: str
    reference: float | None
    ours: float | None
    tolerance: float | None
    cause: str = ""
    figures: tuple[str, ...] = Field(default=(), kw_only=True)

    @property
    def distance(self) -> float:
        return math.inf if self.ours is None or self.reference is None else abs(self.ours - self.reference)

    @property
    def shown_in(self) -> tuple[str, ...]:
        """The figures that show it."""
        return self.figures or (tuple(self.section.split()[1:2]) if self.section.startswith("Figure ") else ())

    @property
    def within(self) -> bool:
        return self.tolerance is not None and self.distance <= self.tolerance

    @property
    def verdict(self) -> str:
        return "shown" if self.tolerance is None else "within" if self.within else "outside"

    @property
    def note(self) -> str:
        """What is said of it below the table."""
        return "" if self.within or self.tolerance is None else self.cause

    def cells(self) -> tuple[str, ...]:
        """Place, reference, ours, distance, tolerance and verdict, as text."""
        far = "-" if math.isinf(self.distance) else f"{self.distance:.2g}"
        ours = "none" if self.ours is None else f"{self.ours:.4g}"
        reference = "-" if self.reference is None else f"{self.reference:.4g}"
        limit = "-" if self.tolerance is None else f"{self.tolerance:.2g}"
        return self.at, reference, ours, far, limit, self.verdict


@dataclass(frozen=True)
class Row(Distance):
    """A row of a table "as published"; `change` says what is not as published, where that is known."""

    change: str = ""

    @property
    def verdict(self) -> str:
        if self.ours is None or self.tolerance is None:
            return "not decidable"
        if self.distance > self.tolerance:
            return "contradicted"
        return "reproduced with a stated change" if self.change else "reproduced"

    @property
    def note(self) -> str:
        return "; ".join(part for part in (self.cause, f"change: {self.change}" if self.change else "") if part)


HEADINGS = ("quantity", "within", "where", "reference", "ours", "distance", "tolerance", "verdict")


def distance_table(distances: Sequence[Distance], every: bool = False) -> str:
    """Markdown with a table for each section, and below it its notes, such as the causes of what is outside.

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
        for quantity, rows_of_quantity in quantities.items():
            worst = max(rows_of_quantity, key=lambda row: row.distance / max(row.tolerance or math.inf, 1e-300))
            lines += [(quantity, _within(rows_of_quantity), *row.cells()) for row in (rows_of_quantity if every else [worst])]
        widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
        lines.insert(1, tuple("-" * width for width in widths))
        padded = ["| " + " | ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)) + " |" for line in lines]
        causes: dict[str, list[str]] = {}
        for row in rows:
            if row.note and row.quantity not in causes.setdefault(row.note, []):
                causes[row.note].append(row.quantity)
        below = [f"- {', '.join(names)}: {cause}" for cause, names in causes.items()]
        parts.append("\n".join([f"## {section}", "", *padded, *(["", *below] if below else [])]))
    absent = sum(row.tolerance is not None and row.ours is None for row in distances)
    without = f"; {absent} have no value here: not made, or the event did not come" if absent else ""
    return "\n\n".join([f"{_within(distances)} numbers are within their tolerance{without}.", *parts]) + "\n"


def _within(rows: Sequence[Distance]) -> str:
    judged = [row for row in rows if row.tolerance is not None]
    return f"{sum(row.within for row in judged)} of {len(judged)}" if judged else "-"


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
    file = f"reference.json of {package}"
    try:
        return TypeAdapter(dict[str, Published]).validate_json(resources.files(package).joinpath("reference.json").read_bytes())
    except (OSError, ModuleNotFoundError) as error:
        raise StagescopeError(f"cannot read {file}: {error}") from None
    except ValidationError as error:
        wrong = (f"{'.'.join(map(str, item['loc']))}: {item['msg']}, got {item['input']!r:.60}" for item in error.errors())
        raise StagescopeError(f"{file} is wrong in {'; '.join(wrong)}") from None
