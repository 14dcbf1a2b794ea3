"""The plan of a sweep: a study, the options that stay, the grids that were asked for, and what to measure."""

import json
import os
import uuid
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, model_validator

from stagescope.errors import InputError, NotARun
from stagescope.runs.files import digest, read, replace
from stagescope.sweeping.axes import Axis, Value, kind_of, merged, ordered

SCHEMA = 3
"""Of sweep.json."""
FILE, CALL = "sweep.json", "call"
Measure = str
MEASURES: tuple[Measure, ...] = ("events", "verdicts", "numbers")


class Grid(BaseModel):
    """Cells that were asked for: the product of axes, or the lines of a table, or both; each at every seed.

    A line of a table may name a seed of its own.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    axes: tuple[Axis, ...]
    seeds: tuple[int, ...]
    lines: tuple[tuple[Value, ...], ...] | None = None
    line_seeds: tuple[int, ...] | None = None
    columns: tuple[str, ...] = ()

    @model_validator(mode="after")
    def _even(self) -> "Grid":
        """Every line of a table has a value for each column, and a seed if any has."""
        lines, seeds = self.lines or (), self.line_seeds
        if any(len(line) != len(self.columns) for line in lines) or (seeds is not None and len(seeds) != len(lines)):
            raise ValueError("lines of several lengths")
        return self

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
    because a plan names it: each call gives the name again. `journal` is how many bytes the journal of committed rows had when
    the plan was written; None before any.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

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
    journal: int | None = None

    @property
    def axes(self) -> tuple[Axis, ...]:
        """Every axis with all values that were asked for; a later call may have named them in another order."""
        found: dict[str, list[Axis]] = {}
        for axis in (axis for grid in self.grids for axis in grid.every_axis()):
            found.setdefault(axis.name, []).append(axis)
        return tuple(map(merged, found.values()))

    def extended(self, asked: "Plan", remeasure: bool = False) -> "Plan":
        """The same sweep with another call's grids; an error if the other call is of another sweep.

        With `remeasure` the module of the caller's own claims may have changed.
        """
        if self.claims == asked.claims and self.claims_digest != asked.claims_digest and not remeasure:
            raise InputError(
                f"the claims {self.claims} have changed since they judged this sweep; --remeasure judges its rows again, "
                "or choose another --out"
            )
        for name, mine, other in self._identity(asked):
            if mine != other:
                raise InputError(
                    f"the output folder holds another sweep: {name} is {_brief(mine)} there and {_brief(other)} here; "
                    "choose another --out"
                )
        added = tuple(grid for grid in asked.grids if grid not in self.grids)
        files = {**self.files, **asked.files}
        changed = {"files": files, "versions": asked.versions, "claims_digest": asked.claims_digest}
        return self.model_copy(update={"grids": (*self.grids, *added), **changed})

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

    def text(self) -> bytes:
        """One JSON file in one exact form, with its own digest: any changed byte is seen."""
        body = self.model_dump(mode="json")
        plain = json.dumps(body, indent=1, allow_nan=False)
        return (json.dumps({**body, "digest": digest(plain.encode())}, indent=1) + "\n").encode()

    def save(self, folder: Path) -> None:
        replace(folder / FILE, self.text())


def _brief(value: Any) -> str:
    text = ", ".join(map(str, value)) if isinstance(value, list) else str(value)
    return text if len(text) <= 80 else text[:77] + "..."


def new_id() -> str:
    return uuid.uuid4().hex


def load_plan(folder: Path) -> Plan:
    """The plan stored in a folder; one whose bytes are not those that were written is refused."""
    path = folder / FILE
    if not os.path.lexists(path):
        raise NotARun(f"{folder} holds no sweep (it has no {FILE}); `stagescope sweep` makes one")
    data = read(folder, FILE)
    try:
        found = json.loads(data)
        version = found["schema_version"]
        if version > SCHEMA:
            raise InputError(f"{path}: schema version {version} is newer than {SCHEMA}; update stagescope to read this sweep")
        if version < SCHEMA:
            raise InputError(f"{path}: schema version {version} is older than {SCHEMA}; Stagescope 0.2 reads sweeps of version 2")
        found.pop("digest")
        plan = Plan.model_validate(found)
        if not plan.grids or plan.text() != data:
            raise ValueError("not the bytes that were written")
    except (ValueError, KeyError, TypeError, AttributeError, OverflowError, RecursionError) as error:
        if isinstance(error, InputError):
            raise
        raise NotARun(f"{path} is damaged; restore it from a copy, or sweep into another folder") from None
    return plan
