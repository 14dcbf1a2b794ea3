"""Fork a run: the same bits up to a recorded frame, then other options, frozen blocks, or a push along an unstable direction."""

import math
import warnings
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from stagescope.dynamics.descent import Descent, Optimizer
from stagescope.dynamics.dynamics import Dynamics
from stagescope.dynamics.evolve import Origin, evolve
from stagescope.dynamics.flow import GradientFlow
from stagescope.dynamics.fork import Forked
from stagescope.dynamics.record import AtTimes, Record, Spliced, Stop
from stagescope.errors import InputError, unknown
from stagescope.fields.field import Field, Objective
from stagescope.landscape.spectrum import Pushed, direction
from stagescope.options import field_name, option
from stagescope.papers.rebuild import differences, field_of
from stagescope.papers.setup import OPTIMIZERS
from stagescope.params import Layout
from stagescope.runs.run import Run
from stagescope.runs.store import load
from stagescope.spec import build, digest
from stagescope.threads import one_blas_thread

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
    if not {"lr", "half_life"} & set(given) or (made.half_life is None and ("lr" in given or motion.half_life is None)):
        return made, notes
    # A step size that is given is the one at the fork; without one it goes on from what it is there.
    here, fallen = made.lr if "lr" in given else motion.lr * motion.ratio**at, made.ratio**at
    if fallen < SMALLEST:
        raise InputError(f"half_life is {made.half_life:g}, too short for a fork at step {at:g}: the step size would be 0 there")
    return Descent(**{**dict(made), "lr": here / fallen}), notes


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


SAME = 1e-9
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
    after, more = changed(run, before.in_force(math.inf), changes or {}, place)
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
        moved = Forked(**parts)
    else:
        moved = Pushed(**parts, perturb=perturb, along=along)
        more.append(_push_note(run, law, frame, after, perturb, along))
    ends = until if until is not None or moved.steps is not None else float(run.spec["until"])
    record = _record(build(run.spec["record"]), moved, ends)
    for sentence in (*notes, *more):
        warnings.warn(sentence, stacklevel=3)
    origin = Origin(tags=run.tags)
    given: Any = {"record": record, "stop": stop, "seed": run.seed or 0, "out": out, "overwrite": overwrite}
    made = evolve(law, run.at(0), moved, until=ends, origin=origin, progress=progress, **given)
    if (apart := prefix_apart(run, made, frame)) > 0:
        said = f"up to the fork the frames are not bitwise those of the run: they differ by up to {apart:.2g} of their size"
        warnings.warn(said, stacklevel=3)
    return made


def frame_at(run: Run, at: str | float) -> tuple[int, list[str]]:
    """The frame that `at` names, and a note where it is the one before."""
    clock, value = _clock_and_value(run, at)
    if clock == "frame":
        if not -run.frames <= value < run.frames or value != int(value):
            raise InputError(f"there is no frame {value:g}: the run has frames 0 to {run.frames - 1}")
        return int(value) % run.frames, []
    times = run.t if clock == "t" else run.step
    last = float(times[-1])
    if not 0 <= value <= last * (1 + SAME):
        why = f" ({run.reason})" if run.reason else ""
        ended = f"the last frame of this run, which {run.status}{why}, is at {clock}={last:.10g}"
        remedy = "to go beyond it, fork there and give a later end (--until, or --steps)"
        raise InputError(f"{clock}={value:.10g} is not between 0 and the end: {ended}; {remedy}")
    frame = int(np.searchsorted(times, value * (1 + SAME), side="right")) - 1
    found = float(times[frame])
    near = abs(found - value) <= SAME * value
    note = f"no frame was recorded at {clock}={value:.10g}: forked at the one before, {clock}={found:.10g} (frame {frame})"
    return frame, [] if near else [note]


def _clock_and_value(run: Run, at: str | float) -> tuple[str, float]:
    clock, given, number = str(at).rpartition("=")
    clock = clock.strip() if given else run.clock
    try:
        value = float(number)
    except ValueError:
        value = math.nan
    if clock not in ("t", "step", "frame") or not math.isfinite(value):
        raise InputError(f"at is {at!r}, which names no frame; write t=120, step=4000 or frame=17")
    return clock, value


def _ending(after: Dynamics, at: float, until: float | None, steps: int | None, usual: float) -> Dynamics:
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
    if not last > at:
        raise InputError(f"the fork at {clock}={at:g} would end at {clock}={last:g}; give a later end with --{remedy}")
    return after


def _push_note(run: Run, law: Field, frame: int, after: Dynamics, size: float, along: int) -> str:
    """How fast the direction of a push grows; directions that cannot be used are refused before the run begins."""
    if not math.isfinite(size) or size == 0:
        raise InputError(f"perturb is {size}, but a push has a length other than 0")
    params = {name: run.params[name][frame] for name in (law.axes or run.params)}
    layout = Layout.of(params)
    vector = layout.pack(params)
    _, rate, alike = direction(law, layout, vector, after.block_rates(layout.names), along)
    length = law.speed(params)
    coarse = getattr(after, "atol", None)
    tail = f"; that is below the absolute tolerance of the flow, {coarse:.2g}" if coarse and abs(size) < coarse else ""
    tail = f"; it is one of {alike} directions with this rate" + tail if alike > 1 else tail
    return f"pushed by {size:g} along direction {along}, which grows at rate {rate:.4g}; |theta| is {length:.4g} there{tail}"


def _record(record: Record | None, moved: Forked, until: float | None) -> Record | None:
    """The frames of the old run up to the fork, then as many as its record has to the new end."""
    end = float(moved.steps if until is None else until)  # pyright: ignore[reportArgumentType]
    if end == moved.ends:
        return record
    kept = record or moved.before.usual_record
    if isinstance(kept, AtTimes) and kept.at[-1] > end:
        kept = AtTimes(at=tuple(t for t in kept.at if t <= end))
    return Spliced(record=kept, at=moved.at, ends=moved.ends)


def prefix_apart(run: Run, made: Run, frame: int) -> float:
    """How far the frames up to the fork are from those of the run, relative to the largest parameter; 0 where bitwise equal."""
    worst = 0.0
    for name in run.params:
        here, there = run.params[name][: frame + 1], made.params[name][: frame + 1]
        if here.shape != there.shape:
            return math.inf
        if not np.array_equal(here, there):
            worst = max(worst, float(np.max(np.abs(here - there)) / np.max(np.abs(here))))
    return worst
