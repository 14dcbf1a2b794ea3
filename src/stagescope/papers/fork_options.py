"""Options of the motion that may change at a fork."""

from collections.abc import Mapping
from typing import Any

from stagescope.dynamics.descent import Descent, Optimizer
from stagescope.dynamics.dynamics import Dynamics
from stagescope.dynamics.flow import GradientFlow
from stagescope.errors import InputError, unknown
from stagescope.options import field_name, option
from stagescope.papers.setup import OPTIMIZERS
from stagescope.runs.run import Run

ENDS = ("until", "steps")
"""Fields that the end of the new run sets."""
SMALLEST = 1e-200
"""Least share of the first step size that is left at a fork: what falls further cannot be counted back."""


def changed(run: Run, motion: Dynamics, changes: Mapping[str, Any], at: float) -> tuple[Dynamics, list[str]]:
    """The motion with options changed, and notes. Texts are read as numbers where a field is one; "none" is None."""
    given = {field_name(name): None if value == "none" else value for name, value in changes.items()}
    rates: dict[str, Any] = {**motion.rates, **(given.pop("rates", None) or {})}
    for name in [name for name in given if name.startswith("rates.")]:
        rates[name.removeprefix("rates.")] = given.pop(name)
    for name in rates:
        if name not in run.params:
            raise unknown("parameter block in rates", name, run.params)
    if not isinstance(motion, Descent):
        _refuse_others(run, given, set(type(motion).model_fields) - {"rates"}, "a flow")
        return type(motion)(**{**dict(motion), **given, "rates": rates}), []
    optimizer, notes = _optimizer(motion.optimizer, given)
    own = set(type(optimizer).model_fields)
    _refuse_others(run, given, {*own, "lr", "clip", "half_life"}, _spelled(optimizer))
    of_optimizer = {name: given.pop(name) for name in own & set(given)}
    optimizer = type(optimizer)(**{**dict(optimizer), **of_optimizer})
    made = Descent(**{**dict(motion), **given, "optimizer": optimizer, "rates": rates})
    return (_from_here(motion, made, "lr" in given, at) if {"lr", "half_life"} & set(given) else made), notes


def _optimizer(now: Optimizer, given: dict[str, Any]) -> tuple[Optimizer, list[str]]:
    """The optimiser that is named, taken out of what is given; without a name the one that is at work."""
    wanted = given.pop("optimizer", now)
    if isinstance(wanted, str):
        if wanted not in OPTIMIZERS:
            raise unknown("optimizer of a fork", wanted, OPTIMIZERS)
        wanted = now if OPTIMIZERS[wanted] is type(now) else OPTIMIZERS[wanted]()
    if type(wanted) is type(now) or not wanted.moments:
        return wanted, []
    return wanted, [f"{_spelled(now)} becomes {_spelled(wanted)}, whose memory is empty at the fork"]


def _spelled(optimizer: Optimizer) -> str:
    return next((name for name, kind in OPTIMIZERS.items() if kind is type(optimizer)), type(optimizer).__name__)


def _from_here(motion: Descent, made: Descent, given: bool, at: float) -> Descent:
    """A step size that is given is the one at the fork; without one it goes on from what it is there."""
    if made.half_life is None and (given or motion.half_life is None):
        return made
    here, fallen = made.lr if given else motion.lr * motion.ratio**at, made.ratio**at
    if fallen < SMALLEST:
        raise InputError(f"half_life is {made.half_life:g}, too short for a fork at step {at:g}: the step size would be 0 there")
    return Descent(**{**dict(made), "lr": here / fallen})


def _refuse_others(run: Run, given: Mapping[str, Any], known: set[str], motion: str) -> None:
    """Refuse what is no option of the motion, and say what to do instead."""
    every = {name for kind in (GradientFlow, Descent, *OPTIMIZERS.values()) for name in kind.model_fields}
    for name in given:
        if name in ENDS:
            raise InputError(f"{name} is the end of a fork, not a change of its motion; give {option(name)} itself")
        if name in known:
            continue
        if name in every:
            raise InputError(f"{name} has no effect on {motion}; what can change is {', '.join(sorted(known))}, rates")
        if name in (run.config or {}):
            instead = f"`stagescope run {run.study} {option(name)} ...` makes another run from the start"
            raise InputError(f"{name} belongs to the loss, the start or the record of a run, which a fork keeps; {instead}")
        raise unknown("option of a fork", name, {*known, "rates"})
