"""A critical point followed over a number: of any loss, of a rung of a model's ladder, over an option of a study."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, get_args

import numpy as np

from stagescope.core.errors import InputError, unknown
from stagescope.core.ids import type_id
from stagescope.core.options import Options, Unused, field_name, option
from stagescope.core.params import Params
from stagescope.flow.field import Objective
from stagescope.landscape.continuation import Branch, DenseZeros, follow
from stagescope.readings.registry import kind_of
from stagescope.readings.study import Study

Family = Callable[[float], Any]
"""From a value to an objective."""
AROUND = 4.0
"""A branch goes from the value over this to the value times this, as far as is allowed, where no range is given."""
AROUND_ZERO = 0.1
"""And this far to both sides of 0."""
NUDGE = 1e-5
"""Relative change of an option that shows whether the loss depends on it."""


def continue_point(
    family: Family,
    value: float,
    start: Params | None = None,
    *,
    rung: Sequence[int] | None = None,
    low: float | None = None,
    high: float | None = None,
) -> Branch:
    """The branch of critical points through one at a value: points with rates and stability, folds, crossings of rates.

    Args:
        family: from a value to an `Objective`; an `InputError` of it says that the value is not allowed.
        value: where the branch starts.
        start: parameters near a critical point at this value. Up to 500 of them.
        rung: in place of a start, the label of a rung of the model's ladder, such as (1, 1) of `TokenPopulation`: the critical
            point that runs from small starts approach, in the small model of this label.
        low: where the branch ends below; default: a quarter of the value, as far as values are allowed.
        high: and above; default: four times the value.

    Returns:
        The points in order, folds and crossings.

    Examples:
        >>> def family(v):
        ...     return ss.JaxObjective(lambda params: (params["x"] ** 4 / 4 - params["x"] ** 2 / 2 - v * params["x"]).sum())
        >>> branch = ss.continue_point(family, 0.0, {"x": np.ones(1)}, low=-1, high=0.5)
        >>> print([round(fold.value, 4) for fold in branch.folds], round(2 / 27**0.5, 4))  # measured and exact
        [0.3849, -0.3849] 0.3849
    """
    if (start is None) == (rung is None):
        raise InputError("give a start near a critical point, or a rung, and not both")
    if not np.isfinite(value):
        raise InputError(f"the value is {value}, but must be a finite number")
    objective = family(value)
    if not isinstance(objective, Objective):
        raise InputError(f"the family gives a {type(objective).__name__}, no Objective; wrap a JAX loss in JaxObjective")
    ends = _range(family, value, low, high)
    if start is not None:
        zeros = DenseZeros(family, start, value)
        return follow(zeros, zeros.start(start), value, *ends)
    kind = kind_of(type_id(type(objective).__module__, type(objective).__name__))
    if kind is None or kind.rung is None:
        raise InputError(f"{type(objective).__name__} has no rungs to name; give parameters near a critical point as start")
    zeros, begin = kind.rung(family, tuple(rung or ()), value)
    return follow(zeros, begin, value, *ends)


def _range(family: Family, value: float, low: float | None, high: float | None) -> tuple[float, float]:
    """The ends that are given, checked; others as far as values are allowed."""
    near = sorted((value / AROUND, value * AROUND)) if value else (-AROUND_ZERO, AROUND_ZERO)
    for end in (low, high):
        if end is not None:
            if not np.isfinite(end):
                raise InputError(f"the end of the range is {end}, but must be a finite number")
            family(end)
    if low is not None and high is not None and low > high:
        raise InputError(f"the range from {low:g} to {high:g} is empty: exchange its ends")
    return (
        _allowed(family, value, near[0]) if low is None else float(low),
        _allowed(family, value, near[1]) if high is None else float(high),
    )


def _allowed(family: Family, value: float, end: float) -> float:
    """The end, or a place near the last value before it that is allowed."""
    if _is_allowed(family, end):
        return end
    good = value
    for _ in range(20):
        middle = (good + end) / 2
        good, end = (middle, end) if _is_allowed(family, middle) else (good, middle)
    return value + 0.99 * (good - value)


def _is_allowed(family: Family, value: float) -> bool:
    try:
        family(value)
    except (InputError, ValueError):
        return False
    return True


@dataclass(frozen=True)
class OptionFamily:
    """The loss of a study over one of its options, or over an element of a list such as pi.0."""

    study: Study
    options: Options
    name: str

    @property
    def value(self) -> float:
        """The option's own value."""
        name, _, place = self.name.partition(".")
        value = getattr(self.options, name)
        return float(value[int(place)] if place else value)

    def __call__(self, value: float) -> Any:
        name, _, place = self.name.partition(".")
        option_value = self.options.with_elements(name, {int(place): value}) if place else value
        changed = {**self.options.model_dump(exclude_unset=True), name: option_value}
        try:
            return self.study.setup(self.study.configured(**changed), 0).what
        except Unused:
            raise
        except ValueError as error:  # of a process that does not exist for this value
            raise InputError(f"{option(name)} {value:g}: {error}") from None


def option_family(study: Study, options: Options, over: str) -> OptionFamily:
    """The family over an option, refused where the loss does not depend on it or it is no real number."""
    name = field_name(over)
    if name.partition(".")[0] not in study.options.model_fields:
        raise unknown(f"option of {study.name}", name, study.options.model_fields)
    continued_options = list(continued(study, options))
    if name not in continued_options:
        raise InputError(
            f"{name} cannot be continued here: {_why_not(study, options, name)}; choose among {', '.join(continued_options)}"
        )
    return OptionFamily(study, options, name)


def _why_not(study: Study, options: Options, name: str) -> str:
    field = name.partition(".")[0]
    if getattr(options, field) is None:
        return f"it has no value; give {option(field)}"
    try:
        if name in _real(options, field):
            _nudged(OptionFamily(study, options, name), 1)
    except Unused as error:
        return f"it has no effect: {error.why}"
    except InputError:
        pass
    return "it is no real number on which the loss depends"


def _nudged(family: OptionFamily, sign: int) -> Any:
    return family(family.value + sign * NUDGE * (abs(family.value) or 1.0))


def continued(study: Study, options: Options) -> Iterator[str]:
    """The options that are real numbers on which the loss depends, elements of lists one by one."""
    before = study.setup(options, 0).what.describe()
    for name in study.options.model_fields:
        for spelled in _real(options, name):
            family = OptionFamily(study, options, spelled)
            for sign in (1, -1):
                try:
                    changed = _nudged(family, sign).describe()
                except InputError:
                    continue
                if changed != before:
                    yield spelled
                break


def _real(options: Options, name: str) -> list[str]:
    kind, value = type(options).model_fields[name].annotation, getattr(options, name)
    if kind is float or (float in get_args(kind) and isinstance(value, float)):
        return [name]
    if isinstance(value, tuple) and float in get_args(kind):
        return [f"{name}.{place}" for place in range(len(value))]
    return []
