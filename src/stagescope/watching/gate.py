"""The gate: whether a watched model learned anything for which attention is needed. Otherwise its attention moves for nothing."""

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from stagescope.runs.run import Run
from stagescope.watching.source import model_of


@dataclass(frozen=True)
class Limits:
    """When the gate is open.

    below: how far the lowest probe loss must be below the unigram entropy, of that entropy. Models on shuffled text
        stay at it. It is not the last one: a model that overfits has learned something before.
    records: over which the loss is a running median before its lowest is taken.
    errors: standard errors by which what context is worth must be above 0; a model that uses the current token alone, as a
        bigram table does, has 0 but for chance. 2.57 is the end of the 95 % interval of a mean of six sequences.
    worth: what context must be worth, of the probe loss: a training of 20 steps has .002 of it.
    """

    below: float = 0.05
    records: int = 5
    errors: float = 2.57
    worth: float = 0.02


LIMITS = Limits()


@dataclass(frozen=True)
class Gate:
    """Whether events of attention count, and why.

    `loss` is that on the probe at the last record, `lowest` its lowest, `unigram_entropy` that of the probe's tokens, all in
    nats a token.
    `context_gain` is by how much the loss rises if the tokens before the current one are those of another sequence, at the last
    record where that was measured (`measured_at`), with its standard error. None where something was not recorded.
    """

    open: bool
    loss: float | None
    lowest: float | None
    unigram_entropy: float | None
    context_gain: float | None
    context_gain_error: float | None
    measured_at: float | None
    sentence: str

    def json(self) -> dict[str, Any]:
        return asdict(self)


def gate_of(run: Run, limits: Limits = LIMITS) -> Gate:
    """The gate of a watched run."""
    entropy = model_of(run).unigram_entropy
    loss, lowest = _last(run, "loss")[0], _lowest(run, limits.records)
    gain, at = _last(run, "context_gain")
    error = None if at is None else _at(run, "context_gain_error", at)
    learned, first = _learned(lowest, entropy, limits)
    used, second = _used(run, gain, error, at, lowest, limits)
    verdict = "events of attention count" if learned and used else "no event of attention counts"
    step = None if at is None else float(run.time[at])
    return Gate(learned and used, loss, lowest, entropy, gain, error, step, f"{first}; {second}: {verdict}")


def _last(run: Run, name: str) -> tuple[float | None, int | None]:
    """The last number of a series, and its record."""
    values = np.asarray(run.series[name], dtype=float) if name in run.series else np.empty(0)
    good = np.flatnonzero(np.isfinite(values)) if values.ndim == 1 else np.empty(0, int)
    return (float(values[good[-1]]), int(good[-1])) if len(good) else (None, None)


def _lowest(run: Run, records: int) -> float | None:
    values = np.asarray(run.series["loss"], dtype=float) if "loss" in run.series else np.empty(0)
    good = values[np.isfinite(values)] if values.ndim == 1 else values[:0]
    if 0 < len(good) < 10 * records:  # few records, as of checkpoints, are far apart
        return float(good.min())
    windows = np.lib.stride_tricks.sliding_window_view(good, records) if len(good) else None
    return None if windows is None else float(np.median(windows, axis=-1).min())


def _at(run: Run, name: str, frame: int) -> float | None:
    value = float(run.series[name][frame]) if name in run.series else float("nan")
    return value if np.isfinite(value) else None


def _learned(loss: float | None, entropy: float | None, limits: Limits) -> tuple[bool, str]:
    if loss is None:
        return False, "no loss on the probe was recorded"
    if not entropy:
        return False, "the unigram entropy of the probe is not known"
    below = 1 - loss / entropy
    said = f"the lowest probe loss is {loss:.3f}, {abs(below):.1%} {'below' if below >= 0 else 'above'}"
    good = below >= limits.below
    return good, f"{said} the unigram entropy, {entropy:.3f}" + ("" if good else f" (at least {limits.below:.0%} below)")


def _used(
    run: Run, gain: float | None, error: float | None, at: int | None, loss: float | None, limits: Limits
) -> tuple[bool, str]:
    if gain is None or error is None or at is None:
        return False, "what context is worth was not measured (that takes a causal model and two sequences or more)"
    said = f"exchanging the context costs {gain:.3f} ± {error:.3f} nats at {run.clock} {run.time[at]:.5g}"
    if gain <= limits.errors * error:
        return False, f"{said}, less than {limits.errors:g} standard errors"
    if gain < limits.worth * (loss or 0.0):
        return False, f"{said}, less than {limits.worth:.0%} of the loss"
    return True, said
