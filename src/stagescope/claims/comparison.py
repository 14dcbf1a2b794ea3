"""What a claim asks of a run: whether it is in the claim's regime, and how prediction and measurement compare."""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from stagescope.core.errors import InputError


@dataclass(frozen=True)
class OverRuns:
    """One number of each of several runs over what differs between them; the ledger draws it.

    Args:
        x: what differs between the runs, a number each.
        measured: the number of each run, None where it has none.
        predicted: what the claim's law says for each run, None where it says nothing; empty where there is no law.
        x_axis: name of x, with its unit.
        y_axis: name of the numbers, with their unit.
        names: of the runs, such as "seed 3"; empty where x says it all.
        log_x: whether x is drawn on a logarithmic axis; all x are then above 0.
        log_y: the same for the numbers.

    Examples:
        >>> over = ss.OverRuns(x=(0.1, 0.2), measured=(10.0, 5.1), predicted=(10.0, 5.0), x_axis="scale", y_axis="time")
        >>> len(over.x)
        2
    """

    x: tuple[float, ...]
    measured: tuple[float | None, ...]
    predicted: tuple[float | None, ...]
    x_axis: str
    y_axis: str
    names: tuple[str, ...] = ()
    log_x: bool = False
    log_y: bool = False

    def __post_init__(self) -> None:
        for name in ("x", "measured", "predicted"):
            object.__setattr__(self, name, tuple(map(_number, getattr(self, name))))
        object.__setattr__(self, "names", tuple(self.names))
        count = len(self.x)
        for name in ("measured", "predicted", "names"):
            entries = len(getattr(self, name))
            if entries != count and not (entries == 0 and name != "measured"):
                raise InputError(f"there are {count} runs, but {entries} entries in {name}; give one for each run")
        if None in self.x:
            raise InputError(f"x is {self.x}; give a finite number for each run")
        for name, log in (("x", self.log_x), ("measured", self.log_y), ("predicted", self.log_y)):
            if log and any(value is not None and value <= 0 for value in getattr(self, name)):
                raise InputError(f"{name} is {getattr(self, name)}; a logarithmic axis needs numbers above 0")

    @property
    def runs(self) -> int:
        return len(self.x)


def _number(value: Any) -> float | None:
    """A plain number; None for one that is not finite."""
    return None if value is None or not np.isfinite(value) else float(value)


CHANCE = 0.01
"""A pattern must be rarer than this under chance: one claim in a hundred would be confirmed by mistake."""


@dataclass(frozen=True)
class Regime:
    """Whether a run meets the assumptions of a claim.

    Args:
        holds: True inside the regime. Outside it the numbers are shown, and the verdict is "inconclusive".
        sentence: which assumptions hold, or which do not.
        applies: False where the claim is about another kind of run; the verdict is then "not applicable".
        elsewhere: True where it does not apply, but would to a companion run of the same study.

    Examples:
        >>> ss.Regime(True, "the chain is lazy").holds
        True
    """

    holds: bool
    sentence: str
    applies: bool = True
    elsewhere: bool = False

    def __post_init__(self) -> None:
        _check_text("sentence of a Regime", self.sentence)
        object.__setattr__(self, "holds", _truth(self.holds) and self.applies)


Condition = tuple[bool, str]
"""Whether it holds, and what to say where it does not."""


def regime_of(*conditions: Condition, holds: str) -> Regime:
    """In regime if every condition holds; otherwise the sentence names those that fail."""
    failed = [sentence for good, sentence in conditions if not good]
    return Regime(not failed, "; ".join(failed) or holds)


def narrowed(base: Regime, *conditions: Condition) -> Regime:
    """A regime under further conditions: where it holds, the first of them that fails is its sentence."""
    failed = [sentence for good, sentence in conditions if not good]
    return Regime(False, failed[0]) if base.holds and failed else base


def not_applicable(sentence: str) -> Regime:
    """The claim is about other runs."""
    return Regime(False, sentence, applies=False)


@dataclass(frozen=True)
class Comparison:
    """What a claim predicts and what the run shows.

    Args:
        predicted: a number, or words.
        measured: a number, or words; None where nothing could be measured.
        tolerance: how far apart the two may be, in the unit of the numbers, or in words.
        holds: True, False, or None where the run cannot decide.
        reason: one sentence with the numbers.
        predicted_error: half the width of the 95 % interval of the prediction, where it is known.
        measured_error: the same for the measurement.
        unit: of all these numbers.
        over_runs: the numbers of several runs, where the claim is about them together; the ledger draws them.

    Examples:
        >>> ss.Comparison(predicted=1.0, measured=1.02, tolerance=0.05, holds=True, reason="1.02 is near 1").holds
        True
    """

    predicted: float | str | None
    measured: float | str | None
    tolerance: float | str | None
    holds: bool | None
    reason: str
    predicted_error: float | None = None
    measured_error: float | None = None
    unit: str | None = None
    over_runs: OverRuns | None = None

    def __post_init__(self) -> None:
        _check_text("reason of a Comparison", self.reason)
        if self.unit is not None:
            _check_text("unit of a Comparison", self.unit)
        if self.holds is not None:
            object.__setattr__(self, "holds", _truth(self.holds))
        for name in ("predicted", "measured", "tolerance", "predicted_error", "measured_error"):
            object.__setattr__(self, name, _plain(name, getattr(self, name)))


def undecided(
    reason: str, predicted: float | str | None = None, tolerance: float | str | None = None, unit: str | None = None
) -> Comparison:
    """A comparison that this run cannot make: nothing was measured."""
    return Comparison(predicted, None, tolerance, None, reason, unit=unit)


def agreement(
    predicted: float,
    measured: float,
    tolerance: float,
    reason: str,
    *,
    predicted_error: float = 0.0,
    measured_error: float = 0.0,
    unit: str | None = None,
    over_runs: OverRuns | None = None,
) -> Comparison:
    """Whether two numbers agree to within a tolerance: decided only where their errors leave no doubt.

    All numbers are in one unit. The difference is decided if its error cannot move it across the tolerance.

    Args:
        predicted: the number that the claim gives.
        measured: the number that the run gives.
        tolerance: how far apart they may be.
        reason: one sentence with the numbers.
        predicted_error: half the width of the 95 % interval of the prediction.
        measured_error: the same for the measurement.
        unit: of all these numbers.
        over_runs: the numbers of several runs, where there are several.

    Returns:
        A comparison whose `holds` is True, False, or None where the errors leave a doubt.

    Examples:
        >>> ss.agreement(1.0, 1.02, 0.05, "1.02 is near 1", measured_error=0.01).holds
        True
        >>> ss.agreement(1.0, 1.04, 0.05, "1.04 is near 1", measured_error=0.02).holds is None
        True
    """
    gap, error = abs(measured - predicted), math.hypot(predicted_error, measured_error)
    holds = True if gap + error <= tolerance else False if gap - error > tolerance else None
    if holds is None:
        reason += f"; the difference is {gap:.3g} with an error of {error:.2g}: undecided at a tolerance of {tolerance:.3g}"
    return Comparison(predicted, measured, tolerance, holds, reason, predicted_error, measured_error, unit, over_runs)


def at_least(
    measured: float,
    bar: float,
    reason: str,
    *,
    measured_error: float = 0.0,
    control: float | None = None,
    unit: str | None = None,
) -> Comparison:
    """Whether a number reaches a bar, decided only where its error leaves no doubt.

    `control` is the same number of a run with nothing to learn. Where that one reaches the bar too, nothing is decided.
    """
    holds = True if measured - measured_error >= bar else False if measured + measured_error < bar else None
    if holds is None:
        reason += f"; with an error of {measured_error:.2g} it is undecided at a bar of {bar:.3g}"
    if control is not None:
        reason += f"; the control has {control:.3g}"
        if holds and control >= bar:
            holds, reason = None, f"{reason} and reaches the bar too, so the run shows nothing of its own"
    return Comparison(bar, measured, "at least", holds, reason, None, measured_error, unit)


def beyond_chance(
    measured: float,
    chance: np.ndarray,
    reason: str,
    *,
    least: float = -math.inf,
    measured_error: float | None = None,
    unit: str | None = None,
) -> Comparison:
    """Whether a number is larger than chance gives: `chance` are its values on permuted data.

    It is confirmed where fewer than one in a hundred of them reach it and it is, with its error, at least `least`. It is
    violated where the measurement with its error stays below that bar; without an error, below the median of chance or `least`.

    Args:
        measured: the number of the run.
        chance: the same number on permuted data, many times.
        reason: one sentence with the numbers.
        least: how large it must be besides.
        measured_error: half the width of its 95 % interval.
        unit: of all these numbers.

    Returns:
        A comparison whose `holds` is True, False, or None where it is not decided.

    Examples:
        >>> chance = np.random.default_rng(0).normal(size=1000)
        >>> ss.beyond_chance(5.0, chance, "5 is more than chance gives").holds
        True
    """
    chance = np.asarray(chance, dtype=float)
    count = int(np.sum(chance >= measured))
    bar = max(float(np.quantile(chance, 1 - CHANCE)), least)
    above = (1 + count) / (1 + chance.size) <= CHANCE and measured - (measured_error or 0.0) >= least
    plain = measured <= float(np.median(chance)) or measured < least
    low = plain if measured_error is None else measured + measured_error < bar
    holds = True if above else False if low else None
    sentence = f"{reason}; {count} of {chance.size} permutations reach it"
    return Comparison(bar, measured, "above", holds, sentence, None, measured_error, unit)


def _check_text(what: str, value: Any) -> None:
    if not isinstance(value, str):
        raise TypeError(f"the {what} is {value!r}; give a text")


def _truth(value: Any) -> bool:
    """A boolean, also one of NumPy or JAX."""
    if isinstance(value, str):
        raise TypeError(f"holds is {value!r}; give True or False")
    return bool(value)


def _plain(name: str, value: Any) -> Any:
    """A number that JSON knows; one of NumPy or JAX becomes a Python float."""
    if value is None or (isinstance(value, str) and not name.endswith("_error")):
        return value
    if isinstance(value, str):
        raise TypeError(f"{name} is {value!r}; give a number")
    try:
        number = float(value)
    except OverflowError:
        raise ValueError(f"{name} is too large for a floating-point number") from None
    return value if isinstance(value, int | float) else number
