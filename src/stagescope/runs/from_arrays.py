"""A run from plain arrays that were recorded elsewhere: no field, no dynamics, no parameters."""

import hashlib
from collections.abc import Sized
from typing import Any

import numpy as np

from stagescope.core.errors import InputError, message
from stagescope.core.memory import require_stored
from stagescope.core.params import check_name
from stagescope.runs.run import Arrays, Run

TAKEN = ("t", "step", "loss", "speed")
"""Names with a meaning of their own in every run."""
_FEWER = "give fewer records, such as every tenth"


def from_arrays(*, step: Any = None, t: Any = None, loss: Any = None, **named: Any) -> Run:
    """A run made of arrays, which `stages`, `check` with your own claims, `report`, `save` and everything else take.

    Args:
        step: the step of each record, whole numbers that rise from 0 or more. Give either `step` or `t`.
        t: the time of each record, numbers that rise from 0 or more.
        loss: one number a record. Stages are those of the loss; records that are not finite are left out there.
        named: any other arrays, one item a record along their first axis. Transitions are also searched for in those that have
            one number a record.

    Returns:
        A run whose frames are the records.

    Examples:
        >>> steps = np.arange(0, 2000, 10)
        >>> curve = ss.from_arrays(step=steps, loss=1 + 1 / (1 + np.exp((steps - 700) / 30)))
        >>> curve
        <Run arrays: 200 frames to step=1990, finished>
    """
    clock, time = _clock(step, t)
    named_arrays = {**({} if loss is None else {"loss": loss}), **named}
    if not named_arrays:
        raise InputError(f"there is nothing beside {clock}; give the loss as loss=..., or any other array by a name")
    for name in named:
        check_free(name)
    arrays, records = {clock: time}, len(time)
    for name, values in named_arrays.items():
        arrays[name] = array = numbers(name, values, _FEWER)
        if array.ndim == 0:
            raise InputError(f"{name} is a single number; give one for each of the {records:,} records")
        if len(array) != records:
            raise InputError(f"{name} has {len(array):,} records, {clock} has {records:,}; give them the same length, time first")
        if not array.size:
            raise InputError(f"{name} has shape {array.shape} and holds no number; leave it out")
    if loss is not None and arrays["loss"].ndim != 1:
        raise InputError(f"loss has shape {arrays['loss'].shape}, expected one number a record; average it, or rename the array")
    # what is known of such a run: that it comes from arrays, and the digest of these
    seal = hashlib.sha256()
    for name, values in arrays.items():
        seal.update(f"{name} {values.dtype} {values.shape}\n".encode())
        seal.update(np.ascontiguousarray(values).tobytes())
    nothing = dict.fromkeys(("field", "until", "dynamics", "record", "stop"))
    return Run(
        params=Arrays.of({}),
        series=Arrays.of(arrays),
        spec={**nothing, "source": {"kind": "arrays", "sha256": seal.hexdigest()}, "blocks": {}},
        clock=clock,
        status="finished",
        seed=None,
        axes={name: (clock, *(f"{name}_{i}" for i in range(values.ndim - 1))) for name, values in arrays.items()},
    )


def check_free(name: str) -> None:
    """Refuse what cannot name an array, or names something else in every run; `loss` is what it says."""
    check_name(name)
    if name in TAKEN and name != "loss":
        raise InputError(f"{name!r} has a meaning of its own in every run; give this array another name")


def _clock(step: Any, t: Any) -> tuple[str, np.ndarray]:
    """The name and the times of the records, which rise from 0 or more."""
    if (step is None) == (t is None):
        got = "neither step nor t" if step is None else "both step and t"
        raise InputError(f"got {got}; give the clock of the records once, as step=... or as t=...")
    name, values = ("t", t) if step is None else ("step", step)
    time = numbers(name, values, _FEWER)
    if time.ndim != 1:
        raise InputError(f"{name} has shape {time.shape}, expected one number a record; give a one-dimensional array")
    if not len(time):
        raise InputError(f"{name} is empty: there are no records; give at least one")
    if not np.isfinite(time).all():
        place = int(np.argmin(np.isfinite(time)))
        raise InputError(f"{name} is {time[place]} at record {place}; leave out records without a {name}")
    if time[0] < 0:
        raise InputError(f"{name} begins at {time[0]:g}; it must not be negative, count it from the first record")
    falls = np.flatnonzero(np.diff(time.astype(float)) <= 0)
    if len(falls):
        i = int(falls[0]) + 1
        fall = f"record {i} has {name} {time[i]:g} after {time[i - 1]:g}"
        raise InputError(f"{name} must rise: {fall}; sort the records by {name} and keep one of each")
    if name == "t":
        return name, time.astype(float)
    broken = np.flatnonzero((time != np.round(time)) | (np.abs(time.astype(float)) >= 2**63))
    if len(broken):
        i = broken[0]
        raise InputError(f"step is {time[i]:g} at record {i}, which is no whole number; give such a clock as t=...")
    return name, time.astype(np.int64)


def numbers(name: str, values: Any, smaller: str) -> np.ndarray:
    """A copy of what is given, in a type that can be stored; `smaller` says what to do where it is too large."""
    shape = values.shape if hasattr(values, "shape") else (len(values),) if isinstance(values, Sized) else ()
    require_stored(name, smaller, tuple(shape), getattr(values, "itemsize", 8))
    try:
        array = np.array(values)
    except Exception as error:  # lists of lists of unequal lengths, or anything else that is no array
        raise InputError(f"{name} is no array of numbers: {message(error)}; give a list or an array") from None
    kind = array.dtype
    if kind.kind in "bi" or (kind.kind == "u" and kind.itemsize < 8):
        return array.astype(np.int64)
    if kind.kind in "uf":
        return array.astype(np.float32 if kind.itemsize <= 4 else np.float64)
    first = array.reshape(-1)[0] if array.size else None
    contents = f"{repr(first)[:40]} ({type(first).__name__})" if array.size else f"items of type {kind}"
    raise InputError(f"{name} holds {contents}, expected real numbers; convert it with np.asarray({name}, dtype=float)")
