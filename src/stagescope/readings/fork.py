"""Fork a run: the same bits up to a recorded frame, then other options, frozen blocks, or a push along an unstable direction."""

import math
import warnings
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from stagescope.core.errors import InputError, unknown
from stagescope.core.options import field_name, option
from stagescope.core.params import Layout
from stagescope.core.spec import build, digest
from stagescope.core.threads import one_blas_thread
from stagescope.flow.descent import Descent, Optimizer
from stagescope.flow.dynamics import Dynamics
from stagescope.flow.evolve import Origin, evolve
from stagescope.flow.field import Field, Objective
from stagescope.flow.fork import Forked
from stagescope.flow.gradient_flow import GradientFlow
from stagescope.flow.record import AtTimes, Record, Spliced, Stop
from stagescope.landscape.spectrum import Pushed, direction
from stagescope.readings.rebuild import differences, field_of
from stagescope.readings.setup import OPTIMIZERS
from stagescope.runs.run import Run
from stagescope.runs.store import load

ENDS = ("until", "steps")
"""Fields that the end of the new run sets."""
SMALLEST = 1e-200
"""Least share of the first step size that is left at a fork: what falls further cannot be counted back."""


def changed(run: Run, motion: Dynamics, changes: Mapping[str, Any], place: float) -> tuple[Dynamics, list[str]]:
    """The motion with options changed, and notes. Texts are read as numbers where a field is one; "none" is None."""
    options = {field_name(name): None if value == "none" else value for name, value in changes.items()}
    rates: dict[str, Any] = {**motion.rates, **(options.pop("rates", None) or {})}
    for name in [name for name in options if name.startswith("rates.")]:
        rates[name.removeprefix("rates.")] = options.pop(name)
    for name in rates:
        if name not in run.params:
            raise unknown("parameter block in rates", name, run.params)
    if not isinstance(motion, Descent):
        _refuse_others(run, options, set(type(motion).model_fields) - {"rates"}, "a flow")
        return type(motion)(**{**dict(motion), **options, "rates": rates}), []
    optimizer, notes = _optimizer(motion.optimizer, options)
    of_type = set(type(optimizer).model_fields)
    _refuse_others(run, options, {*of_type, "lr", "clip", "half_life"}, _spelled(optimizer))
    of_optimizer = {name: options.pop(name) for name in of_type & set(options)}
    optimizer = type(optimizer)(**{**dict(optimizer), **of_optimizer})
    motion_after = Descent(**{**dict(motion), **options, "optimizer": optimizer, "rates": rates})
    if not {"lr", "half_life"} & set(options) or (
        motion_after.half_life is None and ("lr" in options or motion.half_life is None)
    ):
        return motion_after, notes
    # A step size that is given is the one at the fork; without one it goes on from what it is there.
    lr_at_fork, fallen = motion_after.lr if "lr" in options else motion.lr * motion.ratio**place, motion_after.ratio**place
    if fallen < SMALLEST:
        raise InputError(
            f"half_life is {motion_after.half_life:g}, too short for a fork at step {place:g}: the step size would be 0 there"
        )
    return Descent(**{**dict(motion_after), "lr": lr_at_fork / fallen}), notes


def _optimizer(now: Optimizer, options: dict[str, Any]) -> tuple[Optimizer, list[str]]:
    """The optimiser that is named, taken out of what is given; without a name the one that is at work."""
    chosen_optimizer = options.pop("optimizer", now)
    if isinstance(chosen_optimizer, str):
        if chosen_optimizer not in OPTIMIZERS:
            raise unknown("optimizer of a fork", chosen_optimizer, OPTIMIZERS)
        chosen_optimizer = now if OPTIMIZERS[chosen_optimizer] is type(now) else OPTIMIZERS[chosen_optimizer]()
    if type(chosen_optimizer) is type(now) or not chosen_optimizer.moments:
        return chosen_optimizer, []
    return chosen_optimizer, [f"{_spelled(now)} becomes {_spelled(chosen_optimizer)}, whose memory is empty at the fork"]


def _spelled(optimizer: Optimizer) -> str:
    return next((name for name, kind in OPTIMIZERS.items() if kind is type(optimizer)), type(optimizer).__name__)


def _refuse_others(run: Run, options: Mapping[str, Any], allowed: set[str], motion: str) -> None:
    """Refuse what is no option of the motion, and say what to do instead."""
    motion_options = {name for kind in (GradientFlow, Descent, *OPTIMIZERS.values()) for name in kind.model_fields}
    for name in options:
        if name in ENDS:
            raise InputError(f"{name} is the end of a fork, not a change of its motion; give {option(name)} itself")
        if name in allowed:
            continue
        if name in motion_options:
            raise InputError(f"{name} has no effect on {motion}; what can change is {', '.join(sorted(allowed))}, rates")
        if name in (run.config or {}):
            instead = f"`stagescope run {run.study} {option(name)} ...` makes another run from the start"
            raise InputError(f"{name} belongs to the loss, the start or the record of a run, which a fork keeps; {instead}")
        raise unknown("option of a fork", name, {*allowed, "rates"})


SAME_TIME = 1e-9
"""A time this near to a frame, relative to it, is that frame: times are printed rounded."""


@one_blas_thread()
def fork(
    run: Run | str | Path,
    what: Objective | Field | None = None,
    *,
    at: str | float,
    out: str | Path | None = None,
    until: float | None = None,
    steps: int | None = None,
    changes: Mapping[str, Any] | None = None,
    freeze: Iterable[str] = (),
    perturb: float | None = None,
    along: int = 1,
    stop: Stop | None = None,
    overwrite: bool = False,
    progress: bool | None = None,
) -> Run:
    """A new run that is bitwise the old one up to a recorded frame and then moves otherwise.

    The old run is walked again from its start, so an optimiser has its memory; a warning says where something is not as asked
    or not bitwise. The new run can be resumed and forked like any other. It has no stop condition unless one is given.

    Args:
        run: a run, or the folder of one.
        what: your own objective or field, where the run moves one.
        at: "t=120", "step=4000" or "frame=17"; a number is a time of the run's own clock. Between two frames it is the first.
        out: the folder of the new run; None keeps it in memory.
        until: the end of a flow; by default that of the old run.
        steps: the number of all steps of a descent, those before the fork counted; by default that of the old run.
        changes: options of the motion, such as {"lr": 0.05, "momentum": 0.5} or {"rates": {"WQ": 2.0}}.
        freeze: blocks that stay as they are at the fork.
        perturb: how far to push the parameters at the fork: a distance, not a share of their length.
        along: the direction of the push: 1 grows fastest at the fork, 2 comes next.
        stop: ends the new run early.

    Returns:
        The new run.

    Examples:
        >>> frozen = ss.fork(run, at="frame=370", freeze=("WQ", "WK"))
        >>> bool((frozen.params["WQ"][-1] == frozen.params["WQ"][370]).all())
        True
    """
    run = load(run) if isinstance(run, str | Path) else run
    law = field_of(run.spec, what)
    if run.frames == 0 or run.time[0] != 0:
        raise InputError("the first frame of this run is not its start, from which a fork walks again; load the whole run")
    if out is not None and run.path is not None and Path(out).resolve() == run.path.resolve():
        raise InputError(f"{out} is the run that is forked; choose another folder")
    for sentence in differences(dict(run.provenance.get("environment") or {}), law) if run.path else ():
        warnings.warn(sentence, stacklevel=3)
    frame, notes = frame_at(run, at)
    before: Dynamics = build(run.spec["dynamics"])
    place = float(run.step[frame] if "step" in run.series else run.t[frame])
    ended = float(getattr(before, "steps", None) or run.spec["until"])
    while isinstance(before, Forked) and place <= before.at:
        before, ended = before.before, before.ends
    after, change_notes = changed(run, before.in_force(math.inf), changes or {}, place)
    after, frozen = _ending(after, place, until, steps, float(run.spec["until"] or 0)), tuple(freeze)
    for name in frozen:
        if name not in run.params:
            raise unknown("parameter block to freeze", name, run.params)
    rates = {**after.rates, **dict.fromkeys(frozen, 0.0)}
    if frozen and not any(rates.get(name, 1.0) for name in run.params):
        raise InputError(f"nothing moves with {', '.join(frozen)} frozen; leave out a block")
    after = after.model_copy(update={"rates": rates})
    parts: Any = {"before": before, "after": after, "at": place, "ends": ended, "parent": digest(run.spec)}
    if perturb is None:
        motion = Forked(**parts)
    else:
        motion = Pushed(**parts, perturb=perturb, along=along)
        change_notes.append(_push_note(run, law, frame, after, perturb, along))
    ends = until if until is not None or motion.steps is not None else float(run.spec["until"])
    record = _record(build(run.spec["record"]), motion, ends)
    for sentence in (*notes, *change_notes):
        warnings.warn(sentence, stacklevel=3)
    origin = Origin(tags=run.tags)
    settings: Any = {"record": record, "stop": stop, "seed": run.seed or 0, "out": out, "overwrite": overwrite}
    forked = evolve(law, run.at(0), motion, until=ends, origin=origin, progress=progress, **settings)
    if (difference := prefix_apart(run, forked, frame)) > 0:
        warnings.warn(
            f"up to the fork the frames are not bitwise those of the run: they differ by up to {difference:.2g} of their size",
            stacklevel=3,
        )
    return forked


def frame_at(run: Run, at: str | float) -> tuple[int, list[str]]:
    """The frame that `at` names, and a note where it is the one before."""
    clock, value = _clock_and_value(run, at)
    if clock == "frame":
        if not -run.frames <= value < run.frames or value != int(value):
            raise InputError(f"there is no frame {value:g}: the run has frames 0 to {run.frames - 1}")
        return int(value) % run.frames, []
    times = run.t if clock == "t" else run.step
    last = float(times[-1])
    if not 0 <= value <= last * (1 + SAME_TIME):
        reason = f" ({run.reason})" if run.reason else ""
        ended = f"the last frame of this run, which {run.status}{reason}, is at {clock}={last:.10g}"
        remedy = "to go beyond it, fork there and give a later end (--until, or --steps)"
        raise InputError(f"{clock}={value:.10g} is not between 0 and the end: {ended}; {remedy}")
    frame = int(np.searchsorted(times, value * (1 + SAME_TIME), side="right")) - 1
    frame_time = float(times[frame])
    near = abs(frame_time - value) <= SAME_TIME * value
    note = f"no frame was recorded at {clock}={value:.10g}: forked at the one before, {clock}={frame_time:.10g} (frame {frame})"
    return frame, [] if near else [note]


def _clock_and_value(run: Run, text: str | float) -> tuple[str, float]:
    clock, separator, number = str(text).rpartition("=")
    clock = clock.strip() if separator else run.clock
    try:
        value = float(number)
    except ValueError:
        value = math.nan
    if clock not in ("t", "step", "frame") or not math.isfinite(value):
        raise InputError(f"at is {text!r}, which names no frame; write t=120, step=4000 or frame=17")
    return clock, value


def _ending(after: Dynamics, place: float, until: float | None, steps: int | None, usual: float) -> Dynamics:
    """The motion with its end, which must come after the fork."""
    if isinstance(after, Descent):
        if until is not None:
            raise InputError(f"until is {until:g}, but this run counts steps; give --steps, those before the fork counted")
        after = after if steps is None else Descent(**{**dict(after), "steps": steps})
        last, clock, remedy = float(after.steps), "step", "steps"
    else:
        if steps is not None:
            raise InputError(f"steps is {steps}, but this run is a flow; give --until")
        last, clock, remedy = usual if until is None else until, "t", "until"
    if not last > place:
        raise InputError(f"the fork at {clock}={place:g} would end at {clock}={last:g}; give a later end with --{remedy}")
    return after


def _push_note(run: Run, law: Field, frame: int, after: Dynamics, size: float, along: int) -> str:
    """How fast the direction of a push grows; directions that cannot be used are refused before the run begins."""
    if not math.isfinite(size) or size == 0:
        raise InputError(f"perturb is {size}, but a push has a length other than 0")
    params = {name: run.params[name][frame] for name in (law.axes or run.params)}
    layout = Layout.of(params)
    vector = layout.pack(params)
    _, rate, multiplicity = direction(law, layout, vector, after.block_rates(layout.names), along)
    length = law.speed(params)
    coarse = getattr(after, "atol", None)
    tail = f"; that is below the absolute tolerance of the flow, {coarse:.2g}" if coarse and abs(size) < coarse else ""
    tail = f"; it is one of {multiplicity} directions with this rate" + tail if multiplicity > 1 else tail
    return f"pushed by {size:g} along direction {along}, which grows at rate {rate:.4g}; |theta| is {length:.4g} there{tail}"


def _record(record: Record | None, motion: Forked, until: float | None) -> Record | None:
    """The frames of the old run up to the fork, then as many as its record has to the new end."""
    end = float(motion.steps if until is None else until)  # pyright: ignore[reportArgumentType]
    if end == motion.ends:
        return record
    usual = record or motion.before.usual_record
    if isinstance(usual, AtTimes) and usual.at[-1] > end:
        usual = AtTimes(at=tuple(t for t in usual.at if t <= end))
    return Spliced(record=usual, at=motion.at, ends=motion.ends)


def prefix_apart(run: Run, forked: Run, frame: int) -> float:
    """How far the frames up to the fork are from those of the run, relative to the largest parameter; 0 where bitwise equal."""
    worst = 0.0
    for name in run.params:
        old, new = run.params[name][: frame + 1], forked.params[name][: frame + 1]
        if old.shape != new.shape:
            return math.inf
        if not np.array_equal(old, new):
            worst = max(worst, float(np.max(np.abs(old - new)) / np.max(np.abs(old))))
    return worst
