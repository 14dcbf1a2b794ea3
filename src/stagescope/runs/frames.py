"""The arrays of one record: what the first one fixes, and whether a later one agrees with it."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from stagescope.errors import InputError
from stagescope.params import check_name
from stagescope.runs.arrays import Column
from stagescope.runs.from_arrays import numbers

CLOCK = "step"
_TAKEN = ("t", "speed")
"""Names with a meaning of their own in every run."""
_SMALLER = "record a part of it, or a mean over one of its axes"

Frame = dict[str, np.ndarray]
Axes = Mapping[str, tuple[str, ...]]


def columns_of(arrays: Mapping[str, Any], axes: Axes, blocks: tuple[str, ...]) -> tuple[Frame, dict[str, Column]]:
    """The first record and the columns that it fixes."""
    if not arrays:
        raise InputError("there is nothing beside the step; give the loss as loss=..., or any other array by a name")
    for what, names in (("axes", axes), ("blocks", blocks)):
        for name in names:
            if name not in arrays:
                raise InputError(f"{what} names {name!r}, which is not recorded; recorded: {', '.join(arrays)}")
    frame = {name: _first(name, value) for name, value in arrays.items()}
    columns = {name: _column(name, value, axes.get(name)) for name, value in frame.items()}
    _check_shared(columns)
    return frame, columns


def fitted(arrays: Mapping[str, Any], columns: Mapping[str, Column]) -> Frame:
    """A later record in the types of the first; one with other names, shapes or types is refused."""
    names = [name for name in columns if name != CLOCK]
    for name in names:
        if name not in arrays:
            raise InputError(f"{name} is missing; give every array at every record, NaN where it is not known")
    for name in arrays:
        if name not in columns:
            raise InputError(f"{name} was not in the first record; give it from the first record on, NaN where it is not known")
    return {name: _fitted(name, arrays[name], columns[name]) for name in names}


def _fitted(name: str, value: Any, column: Column) -> np.ndarray:
    found = _array(name, value)
    if found.shape != column.shape:
        raise InputError(
            f"{name} has shape {found.shape}, in the first record it had {column.shape}; give it one shape throughout"
        )
    if not np.can_cast(found.dtype, column.dtype, "safe"):
        remedy = f"convert it, or give {found.dtype} from the first record on"
        raise InputError(f"{name} is {found.dtype}, in the first record it was {column.dtype}; {remedy}")
    return found.astype(column.dtype)


def _first(name: str, value: Any) -> np.ndarray:
    check_name(name)
    if name in _TAKEN:
        raise InputError(f"{name!r} has a meaning of its own in every run; give this array another name")
    found = _array(name, value)
    if not found.size:
        raise InputError(f"{name} has shape {found.shape} and holds no number; leave it out")
    if name == "loss" and found.ndim:
        raise InputError(f"loss has shape {found.shape}, expected one number; average it, or rename the array")
    return found


def _array(name: str, value: Any) -> np.ndarray:
    """A copy: the program may change its arrays afterwards. A tensor of PyTorch is taken from its graph and its device."""
    if hasattr(value, "detach") and hasattr(value, "cpu"):
        value = value.detach().cpu()
    return numbers(name, value, _SMALLER)


def _column(name: str, value: np.ndarray, axes: tuple[str, ...] | None) -> Column:
    named = tuple(f"{name}_{i}" for i in range(value.ndim)) if axes is None else axes
    if len(named) != value.ndim:
        raise InputError(
            f"{name} has shape {value.shape}, and axes names {len(named)}: {named}; name each of its axes, without time"
        )
    if len({CLOCK, *named}) != 1 + len(named):
        raise InputError(f"the axes {named} of {name} are not different from each other and from {CLOCK!r}; rename one")
    return Column(value.shape, (CLOCK, *named), str(value.dtype))


def _check_shared(columns: Mapping[str, Column]) -> None:
    """An axis has one length in all arrays: other tools, such as xarray, open the run only then."""
    first: dict[str, tuple[str, int]] = {}
    for name, column in columns.items():
        for axis, size in zip(column.axes[1:], column.shape, strict=True):
            other, known = first.setdefault(axis, (name, size))
            if known != size:
                raise InputError(f"the axis {axis!r} has {known} items in {other} and {size} in {name}; give it two names")
