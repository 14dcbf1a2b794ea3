"""Stages of any run: the transitions of its curves, and the plateaus of its loss between them. Knows no paper."""

from collections.abc import Iterator, Mapping
from dataclasses import asdict, replace

import numpy as np

from stagescope.detect.limits import LIMITS
from stagescope.detect.stage import BROKEN, Event, Stage, Stages, Transition
from stagescope.detect.transitions import record_origin

Named = tuple[tuple[str, Transition], ...]
"""Transitions and spikes with the names of their curves."""
NOT_READ = ("t", "step", "speed")
"""Series that every run may have and that are no curves of interest: clocks, and the speed, which the loss repeats."""
HOW = ("a fast change of the loss between two slower stretches, decided by likelihood", "the top of a change that recovers")


def read_curves(clock: str, series: Mapping[str, np.ndarray]) -> list[str]:
    """The series that are curves: one number a record, the loss first; no clock, no speed."""
    numbers = [name for name, values in series.items() if values.ndim == 1 and name not in (*NOT_READ, clock)]
    return sorted(numbers, key=lambda name: name != "loss")


def thinned(time: np.ndarray, most: int) -> np.ndarray:
    """Places of at most `most` records: half of them even in ln time, half even in time. Records are never averaged."""
    if len(time) <= most:
        return np.arange(len(time))
    clock = np.log(time + time[-1] / 300)
    even = (np.linspace(axis[0], axis[-1], most // 2) for axis in (clock, time))
    places = [np.searchsorted(axis, marks) for axis, marks in zip((clock, time), even, strict=True)]
    return np.unique(np.clip(np.concatenate([*places, [0, len(time) - 1]]), 0, len(time) - 1))


def curve_notes(clock: str, time: np.ndarray, series: Mapping[str, np.ndarray]) -> dict[str, str]:
    """What a reader must know of the curves that were read: records left out, and curves left out."""
    names = read_curves(clock, series)
    notes = {}
    for name in names[: LIMITS.curves]:
        good = np.isfinite(series[name])
        sentences = [] if good.all() else [f"{(~good).sum():,} of {len(time):,} records are not finite and were left out"]
        if good.sum() > LIMITS.bins:
            sentences.append(f"{good.sum():,} records were averaged in at most {LIMITS.bins} bins")
        sentences.extend(_jump(clock, time[good], series[name][good].astype(float)))
        if sentences:
            notes[name] = "; ".join(sentences)
    if len(names) > LIMITS.curves:
        notes["curves"] = f"{LIMITS.curves} of {len(names):,} curves were searched for transitions, in the order recorded"
    if len(time) > 1 and record_origin(time) > LIMITS.early * (time[-1] - time[0]):
        notes[clock] = (
            f"transitions are searched for on the clock ln({clock} - {record_origin(time):.5g}), from before the first record"
        )
    return notes


def _jump(clock: str, time: np.ndarray, curve: np.ndarray) -> Iterator[str]:
    """Where most of a curve's way lies between two records: what happens there is not seen."""
    if len(curve) < LIMITS.fewest or not np.ptp(curve / 2):
        return
    share = np.abs(np.diff(curve / 2)) / np.ptp(curve / 2)  # halves: a range may be too large for a number
    place = int(np.argmax(share))
    if share[place] >= LIMITS.jump and np.median(share) < LIMITS.jump / 10:
        yield (
            f"{share[place]:.0%} of its range lies between the records at {clock} = {time[place]:.5g} and {time[place + 1]:.5g}:"
            " record more often there to see stages in it"
        )


def loss_stages(
    status: str, clock: str, time: np.ndarray, loss: np.ndarray | None, found: Named, notes: Mapping[str, str]
) -> Stages:
    """Stages of a run by its loss alone: plateaus and the transitions between them, or one stage that says why there are none."""
    events = {}
    for kind, of_kind in (("transition", False), ("spike", True)):
        of_loss = [event for name, event in found if name == "loss" and (event.kind == "spike") == of_kind]
        events |= {f"{kind} {k}": event for k, event in enumerate(of_loss, 1)}
    estimates = {name: Event(event.t, event.low, event.high, how=HOW[event.kind == "spike"]) for name, event in events.items()}
    stages = tuple(_between(time, loss, events)) if loss is not None and events else (_single(status, clock, time, loss),)
    listed = tuple((name, event) for name, event in found if event.kind != "spike")
    return replace(Stages.of(status, clock, estimates, stages, notes), transitions=listed)


def _single(status: str, clock: str, time: np.ndarray, loss: np.ndarray | None) -> Stage:
    """The one stage of a run in which no transition was found."""
    facts: dict[str, float | None] = {"records": len(time)}
    name, sentence = "whole run", "No loss was recorded, so the run is not divided."
    good = np.zeros(0) if loss is None else loss[np.isfinite(loss)]
    if loss is not None:
        facts = {"records": len(good), **_ends(good)}
        if status in BROKEN:
            sentence = f"The run {status}: its loss is not searched for transitions."
        elif len(good) < LIMITS.fewest:
            records = f"{len(good)} record{'' if len(good) == 1 else 's'} of the loss"
            sentence = f"{records}: transitions are searched for in {LIMITS.fewest} or more."
        elif good.min() == good.max():
            name, sentence = "no transition", f"The loss is {good[0]:.4g} at every record."
        else:
            name, way = "no transition", f"The loss goes from {good[0]:.4g} to {good[-1]:.4g}"
            until, share = _beginning(time[np.isfinite(loss)], good)
            sentence = f"{way} without a change faster than the rest of the run."
            if share >= LIMITS.early_way:
                rule = "a change that begins with the first record is no transition, as nothing rests before it"
                sentence = (
                    f"{way}, {share:.0%} of that by {clock} = {until:.5g}: {rule}. Later changes are not faster than the rest."
                )
                facts["early"] = share
    return Stage(name, float(time[0]), None, sentence, facts=facts)


def _beginning(time: np.ndarray, loss: np.ndarray) -> tuple[float, float]:
    """The last record in the beginning of a run, and the share of the way from the first loss to the last made by it."""
    place = int(np.searchsorted(time, time[0] + LIMITS.beginning * (time[-1] - time[0]), side="right")) - 1
    way = float(loss[-1] / 2 - loss[0] / 2)  # halves: a range may be too large for a number
    return float(time[place]), float((loss[place] / 2 - loss[0] / 2) / way) if way else 0.0


def _ends(values: np.ndarray) -> dict[str, float | None]:
    first, last = (float(values[0]), float(values[-1])) if len(values) else (None, None)
    return {"loss_first": first, "loss_last": last}


def _between(time: np.ndarray, loss: np.ndarray, events: Mapping[str, Transition]) -> Iterator[Stage]:
    """Plateau, transition or spike, plateau, ... from the first record to the last."""
    begin, plateaus = float(time[0]), 1
    for name, event in sorted(events.items(), key=lambda item: item[1].start):
        if event.start > begin:
            yield _plateau(f"plateau {plateaus}", begin, event.start, time, loss)
            plateaus += 1
        way = "falls" if event.amplitude < 0 else "rises"
        middle = " and recovers; its top is" if event.kind == "spike" else "; half of it"
        sentence = f"The loss {way} by {abs(event.amplitude):.4g}{middle} at {event.t:.5g} [{event.low:.5g}, {event.high:.5g}]."
        yield Stage(name, event.start, event.stop, sentence, facts=asdict(event))
        begin = event.stop
    yield replace(_plateau(f"plateau {plateaus}", begin, float(time[-1]), time, loss), stop=None)


def _plateau(name: str, start: float, stop: float, time: np.ndarray, loss: np.ndarray) -> Stage:
    inside = loss[(time >= start) & (time <= stop) & np.isfinite(loss)]
    middle = 2 * float(np.median(inside / 2)) if len(inside) else None  # the sum of two numbers may be none
    facts = {"records": len(inside), "loss_median": middle, **_ends(inside)}
    if not len(inside):
        return Stage(name, start, stop, "No record lies in it.", facts=facts)
    sentence = f"The loss goes from {inside[0]:.4g} to {inside[-1]:.4g}, with a median of {middle:.4g}."
    return Stage(name, start, stop, sentence, facts=facts)
