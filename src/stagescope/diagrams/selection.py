"""What a phase diagram shows, checked against what the sweep has."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from stagescope.errors import InputError, unknown
from stagescope.sweeping.axes import Value
from stagescope.sweeping.columns import LAST_STAGE
from stagescope.sweeping.predicted import PREFIX
from stagescope.sweeping.presets import color_of
from stagescope.sweeping.table import Sweep, same


@dataclass(frozen=True)
class Selection:
    """Axes across and up, the column that gives the colour, and where it cuts the other axes."""

    x: str
    y: str | None
    color: str
    at: Mapping[str, Value]


def select(sweep: Sweep, x: str, y: str | None, color: str | None, at: Mapping[str, Any]) -> Selection:
    """The selection, checked; errors name what is wrong and the nearest thing that exists."""
    if not len(sweep):
        raise InputError(f"{sweep.folder}: the sweep has no row yet, so there is nothing to draw; continue it first")
    names = [axis.name for axis in sweep.axes]
    x, y = _axis_name(sweep, x), None if y is None else _axis_name(sweep, y)
    at = {_axis_name(sweep, name): value for name, value in at.items()}
    if x == y:
        raise InputError(f"x and y are both {x}; choose two axes, or x alone for a curve (axes: {', '.join(names)})")
    for name in at:
        if name in (x, y):
            raise InputError(f"{name} is drawn as an axis, so it cannot be cut at {at[name]}; leave one of the two out")
    return Selection(x, y, _color(sweep, color), {name: _match(sweep, name, value) for name, value in at.items()})


def _axis_name(sweep: Sweep, name: str) -> str:
    """An axis as the sweep spells it; the command line may write init-scale for init_scale."""
    names = [axis.name for axis in sweep.axes]
    for spelled in (name, name.replace("-", "_")):
        if spelled in names:
            return spelled
    if name in sweep.columns:
        raise InputError(f"{name} is a result, not an axis of this sweep; axes: {', '.join(names)} (--color {name} shows it)")
    raise unknown("axis of this sweep", name, names)


def _color(sweep: Sweep, color: str | None) -> str:
    """The column given; by default that of a named sweep, else the last stage of runs, else how they ended."""
    if color is None:
        color = color_of(sweep.plan.study, sweep.plan.preset)  # the column that answers the question of a named sweep
        if color in sweep.columns:
            return color
        last = sweep.column_of(LAST_STAGE)
        return LAST_STAGE if any(last.reading(row).lack is None for row in sweep.rows) else "status"
    if color not in sweep.columns and len(sweep.failed) == len(sweep) and not color.startswith(PREFIX):
        raise InputError(f"every run of this sweep failed, so there is no {color}; --color status or --color reason shows how")
    sweep.column_of(color)
    return color


def _match(sweep: Sweep, name: str, value: Any) -> Value:
    """The value of an axis that a person means, who may have typed a number with fewer digits."""
    known = list(dict.fromkeys(row["at"][name] for row in sweep.rows))
    for each in known:
        if each == value or str(each).lower() == str(value).lower():
            return each
    try:
        number = float(value)
    except (TypeError, ValueError):
        raise unknown(f"value of {name}", str(value), map(str, known)) from None
    numbers = [each for each in known if isinstance(each, int | float) and not isinstance(each, bool)]
    near = sorted(numbers, key=lambda each: abs(each - number))[:5]
    if near and same(near[0], number):
        return near[0]
    raise InputError(f"no cell has {name} = {value}; the nearest have {', '.join(f'{each:.6g}' for each in sorted(near))}")
