"""Sentences of a phase diagram: why a cell has no value, where runs ended, what is missing, which clocks there are."""

from collections.abc import Iterable, Sequence
from typing import Any

from stagescope.papers.registry import studies
from stagescope.reporting.portrait import setting_text
from stagescope.sweeping.columns import Column
from stagescope.sweeping.rows import Row
from stagescope.sweeping.table import Sweep

Ends = dict[str, list[float]]
"""By clock, the first and the last place where runs ended."""
AT_START = "there at the start"
START_PARTS = ("events", "starts")
"""Parts of a row whose times are moments: one at 0 had come before the run began."""


def known_until(column: Column, rows: Iterable[Row]) -> Ends:
    """Up to where times of a column are known: where the runs ended, or the column's own horizon."""
    if column.horizon is not None:
        return {"t": [column.horizon] * 2}
    # Rows without an end or a clock are left out.
    return joined({row["clock"]: [row["end"]] * 2} for row in rows if row.get("end") is not None and row.get("clock"))


def joined(ends: Iterable[Ends]) -> Ends:
    found: Ends = {}
    for one in ends:
        for clock, (low, high) in one.items():
            before = found.setdefault(clock, [low, high])
            found[clock] = [min(before[0], low), max(before[1], high)]
    return found


def ends_text(ends: Ends) -> str:
    """`t = 4000`, `t = 800 to 4000`, `t = 800 or step 300`; without any end: `the end of the run`."""
    texts = []
    for clock, (low, high) in ends.items():
        span = f"{low:.6g}" if low == high else f"{low:.6g} to {high:.6g}"
        texts.append(f"step {span}" if clock == "step" else f"{clock} = {span}")
    return " or ".join(texts) or "the end of the run"


def lack_text(lack: str, ends: Ends, none: str) -> str:
    """Why there is no value; `none` is the word for a row that has no such thing."""
    if lack == "not reached":
        return f"not reached by {ends_text(ends)}"
    if lack == "in progress":
        return f"in progress at the end ({ends_text(ends)})" if ends else "in progress at the end"
    return none if lack == "none" else lack


def none_word(column: Column) -> str:
    """What it means that a run which reached its end has no such thing."""
    return "no such stage" if column.part == "durations" else "not judged" if column.part == "verdicts" else "no value"


def state_notes(sweep: Sweep) -> list[str]:
    """What a reader must know of a sweep that is not whole."""
    found = []
    if sweep.missing:
        found.append(f"{len(sweep)} of {len(sweep) + sweep.missing} points: the sweep is not complete")
    if sweep.damaged and sweep.missing:
        count = len(sweep.damaged)
        found.append(f"{count} damaged row{'s' if count > 1 else ''} left out")
    return found


def clocks_of(rows: Iterable[Row]) -> list[str]:
    """What times are counted in: t before steps."""
    return sorted({row["clock"] for row in rows if row.get("clock")}, reverse=True)


def clock_notes(rows: Sequence[Row]) -> list[str]:
    """That times are counted in different units, and where, as far as one axis decides it."""
    clocks = clocks_of(rows)
    if len(clocks) < 2:
        return []
    for name in rows[0]["at"]:
        found: dict[str, dict[Any, None]] = {clock: {} for clock in clocks}
        for row in rows:
            if row.get("clock"):
                found[row["clock"]][row["at"][name]] = None
        if sum(map(len, found.values())) == len({value for values in found.values() for value in values}):
            said = [f"in {_unit(clock)} for {name} = {', '.join(map(str, values))}" for clock, values in found.items()]
            return [f"times are {' and '.join(said)}: they do not compare"]
    return [f"times are in {' or in '.join(map(_unit, clocks))}, by run: they do not compare"]


def _unit(clock: str) -> str:
    return "steps" if clock == "step" else clock


def fixed_text(sweep: Sweep) -> list[tuple[str, str]]:
    """Options that stay and are not the study's defaults, and how far its runs go."""
    if sweep.plan.study not in studies():
        return []
    fields = studies()[sweep.plan.study].options.model_fields
    swept = next((axis.values for axis in sweep.axes if axis.name == "optimizer"), (sweep.plan.fixed.get("optimizer"),))
    length = {"until" if each == "flow" else "steps" for each in swept} if None not in swept else {"until", "steps"}
    found = []
    for name, value in sweep.plan.fixed.items():
        default = fields[name].default if name in fields else None
        default = list(default) if isinstance(default, tuple) else default
        if value is not None and (value != default or name in length):
            found.append((name, setting_text(value)))
    return found
