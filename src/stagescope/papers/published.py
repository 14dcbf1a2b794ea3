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
    def within(self) -> bool:
        return self.tolerance is not None and self.distance <= self.tolerance

    @property
    def verdict(self) -> str:
        return "shown" if self.tolerance is None else "within" if self.within else "outside"

    def cells(self) -> tuple[str, ...]:
        """Place, reference, ours, distance, tolerance, verdict and cause, as text."""
        far = "-" if math.isinf(self.distance) else f"{self.distance:.2g}"
        ours, limit = (
            ("none" if self.ours is None else f"{self.ours:.4g}"),
            ("-" if self.tolerance is None else f"{self.tolerance:.2g}"),
        )
        return self.at, f"{self.reference:.4g}", ours, far, limit, self.verdict, self.cause


HEADINGS = ("quantity", "within", "where", "reference", "ours", "distance", "tolerance", "verdict", "cause")


def distance_table(distances: Sequence[Distance], every: bool = False) -> str:
    """Markdown with a table for each section; unless `every` number is asked for, a line for a quantity shows its worst number.

    The worst is that with the largest distance in units of its tolerance; "within" counts those that are inside it.
    """
    lines = []
    for section, rows in groupby(distances, lambda row: row.section):
        lines += ["", f"## {section}", "", f"| {' | '.join(HEADINGS)} |", "|---" * len(HEADINGS) + "|"]
        quantities: dict[str, list[Distance]] = {}
        for row in rows:
            quantities.setdefault(row.quantity, []).append(row)
        for quantity, group in quantities.items():
            judged = [row for row in group if row.tolerance is not None]
            inside = f"{sum(row.verdict == 'within' for row in judged)} of {len(judged)}" if judged else "-"
            worst = max(group, key=lambda row: row.distance / max(row.tolerance or math.inf, 1e-300))
            lines += [f"| {' | '.join((quantity, inside, *row.cells()))} |" for row in (group if every else [worst])]
    judged = [row for row in distances if row.tolerance is not None]
    inside = sum(row.within for row in judged)
    return "\n".join([f"{inside} of {len(judged)} numbers are within their tolerance.", *lines, ""])


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
