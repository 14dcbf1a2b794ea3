"""The plan of a sweep: a study, the options that stay, the grids that were asked for, and what to measure."""

import json
import uuid
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, ValidationError

from stagescope.errors import InputError, NotARun
from stagescope.runs.files import replace, store_errors
from stagescope.sweeping.axes import Axis, Value, kind_of, merged, ordered

SCHEMA, OLDEST = 3, 2
"""Of sweep.json: the one written, and the oldest one read, which version 0.1.0 wrote. It differs in the number alone."""
FILE, CALL = "sweep.json", "call"
Measure = str
MEASURES: tuple[Measure, ...] = ("events", "verdicts", "numbers")


class Grid(BaseModel):
    """Cells that were asked for: the product of axes, or the lines of a table, or both; each at every seed.

    A line of a table may name a seed of its own.
    """

    model_config = ConfigDict(frozen=True)

    axes: tuple[Axis, ...]
    seeds: tuple[int, ...]
    lines: tuple[tuple[Value, ...], ...] | None = None
    line_seeds: tuple[int, ...] | None = None
    columns: tuple[str, ...] = ()

    @property
    def names(self) -> tuple[str, ...]:
        return (*self.columns, *(axis.name for axis in self.axes))

    def __len__(self) -> int:
        count = len(self.seeds) if self.line_seeds is None else 1
        for axis in self.axes:
            count *= len(axis.values)
        return count * (1 if self.lines is None else len(self.lines))

    def cells(self) -> Iterator[tuple[dict[str, Value], tuple[int, ...]]]:
        """(values by option, seeds) of every cell."""
        for place, line in enumerate(((),) if self.lines is None else self.lines):
            seeds = self.seeds if self.line_seeds is None else (self.line_seeds[place],)
            for values in product(*(axis.values for axis in self.axes)):
                yield dict(zip(self.names, (*line, *values), strict=True)), seeds

    def every_axis(self) -> tuple[Axis, ...]:
        """Axes of the table's columns, then those of the grid."""
        found = []
        for place, name in enumerate(self.columns):
            values = ordered(line[place] for line in self.lines or ())
            found.append(Axis(name=name, kind=kind_of(values), values=values))
        return (*found, *self.axes)


class Plan(BaseModel):
    """What a sweep is (study, fixed options, measures, own claims) and the grids that calls have asked for, in their order.

    `claims` is the "module:NAME" that the caller gave, `claims_digest` the SHA-256 of that module's file. Nothing is imported
    because a plan names it: each call gives the name again.
    """

    model_config = ConfigDict(frozen=True)

    schema_version: int = SCHEMA
    id: str
    study: str
    preset: str | None
    fixed: dict[str, Any]
    files: dict[str, str]
    measures: tuple[Measure, ...]
    grids: tuple[Grid, ...]
    versions: dict[str, str]
    claims: str | None = None
    claims_digest: str | None = None

    @property
    def axes(self) -> tuple[Axis, ...]:
        """Every axis with all values that were asked for; a later call may have named them in another order."""
        found: dict[str, list[Axis]] = {}
        for axis in (axis for grid in self.grids for axis in grid.every_axis()):
            found.setdefault(axis.name, []).append(axis)
        return tuple(map(merged, found.values()))

    def extended(self, asked: "Plan") -> "Plan":
        """The same sweep with another call's grids; an error if the other call is of another sweep."""
        for name, mine, other in self._identity(asked):
            if mine != other:
                raise InputError(
                    f"the output folder holds another sweep: {name} is {_brief(mine)} there and {_brief(other)} here; "
                    "choose another --out"
                )
        added = tuple(grid for grid in asked.grids if grid not in self.grids)
        files = {**self.files, **asked.files}
        return self.model_copy(update={"grids": (*self.grids, *added), "files": files, "versions": asked.versions})

    def _identity(self, other: "Plan") -> Iterator[tuple[str, Any, Any]]:
        yield "study", self.study, other.study
        mine, asked = ({name for grid in plan.grids for name in grid.names} for plan in (self, other))
        if other.grids:
            yield "what is swept", sorted(mine), sorted(asked)
        for name in sorted(self.fixed | other.fixed):
            yield f"the option {name}", self.fixed.get(name), other.fixed.get(name)
        for name in sorted(self.files.keys() & other.files.keys()):
            yield f"the content of {name}", self.files[name], other.files[name]
        yield "what is measured", " ".join(self.measures), " ".join(other.measures)
        yield "--claims", self.claims, other.claims
        yield f"the content of {self.claims}", self.claims_digest, other.claims_digest

    def save(self, folder: Path) -> None:
        replace(folder / FILE, (self.model_dump_json(indent=1) + "\n").encode())


def _brief(value: Any) -> str:
    text = ", ".join(map(str, value)) if isinstance(value, list) else str(value)
    return text if len(text) <= 80 else text[:77] + "..."


def new_id() -> str:
    return uuid.uuid4().hex


def load_plan(folder: Path) -> Plan:
    """The plan stored in a folder."""
    path = folder / FILE
    if not path.is_file():
        raise NotARun(f"{folder} holds no sweep (it has no {FILE}); `stagescope sweep` makes one")
    with store_errors(path):
        text = path.read_bytes()
    try:
        found = json.loads(text)
        version = found["schema_version"]
        if version > SCHEMA:
            raise InputError(f"{path}: schema version {version} is newer than {SCHEMA}; update stagescope to read this sweep")
        if version < OLDEST:
            raise InputError(f"{path}: schema version {version} is older than {OLDEST}, the oldest that can be read; sweep again")
        return Plan.model_validate({**found, "schema_version": SCHEMA})
    except (ValueError, ValidationError, KeyError, TypeError) as error:
        if isinstance(error, InputError):
            raise
        raise NotARun(f"{path} is damaged; restore it from a copy, or sweep into another folder") from None
