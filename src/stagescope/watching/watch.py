"""Watch a PyTorch training: at some steps, one forward pass on a fixed probe is recorded into a run.

Training is bitwise the same with and without: see `capture`. Whatever goes wrong while recording stops the recording, says so
once, and never stops the training.
"""

import warnings
import weakref
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from math import isnan, nan
from pathlib import Path
from typing import Any

import numpy as np

from stagescope.core.caches import say
from stagescope.core.errors import InputError, StagescopeError, message, unknown
from stagescope.flow.record import Graded, Record
from stagescope.runs import manifest
from stagescope.runs.recorder import Recorder
from stagescope.runs.run import Run
from stagescope.watching.capture import Forward, unwrapped
from stagescope.watching.observer import SHOWN, Observer
from stagescope.watching.pytorch import Tensor, nn

DEFAULT = Graded(frames=240, early=60)
"""About 300 records: evenly spaced, and closer together up to the tenth of the even ones. Stages are found from 60 records on."""
RATIO = 1.03
"""Where nobody knows how long a training lasts, each record is at this ratio of the one before."""


class Schedule:
    """Which steps are due; `steps` is the planned number of training steps, or None where it is not known."""

    def __init__(self, steps: int | None = None, record: Record | None = None) -> None:
        if steps is not None and (isinstance(steps, bool) or not isinstance(steps, int) or steps < 1):
            raise InputError(
                f"steps is {steps!r}, expected the number of training steps, 1 or more; leave it out if it is not known"
            )
        if record is not None and not isinstance(record, Record):
            raise InputError(f"record is {record!r}, expected a value such as ss.LogSpaced(frames=200) or ss.Every(n=10)")
        if steps is None and record is not None:
            raise InputError("a record needs the number of training steps; give steps=...")
        self.steps = steps
        self.value = None if steps is None else record or DEFAULT
        self._due = frozenset(self.value.steps(steps).tolist()) if self.value is not None and steps is not None else None
        self._next, self._mark = 0, 16

    def due(self, step: int) -> bool:
        if self._due is not None:
            return step in self._due
        if step < self._next:
            return False
        self._next = max(step + 1, int(np.ceil(RATIO * step)))
        return True

    def milestone(self, step: int) -> bool:
        """Whether a record is the first one after a doubling of the steps, where what takes longer is measured too."""
        if step < self._mark:
            return False
        self._mark = 2 * step
        return True


GAINS = 8
"""Places of each probe sequence at which the value of context is measured now and then; at the end it is three times as many."""
_WATCHED: "weakref.WeakSet[nn.Module]" = weakref.WeakSet()


@dataclass(eq=False, repr=False)
class Watcher:
    """Records a model in training. `ss.watch` makes it; call `step(loss)` once for each training step.

    `run` is what was recorded so far. `problem` says why recording stopped before the end, where it did.

    Examples:
        >>> with ss.watch(net, probe=probe, steps=2) as watcher:
        ...     watcher.step(net(probe).mean())
        >>> type(watcher).__name__, watcher.problem
        ('Watcher', '')
    """

    observer: Observer
    recorder: Recorder
    schedule: Schedule
    optimizer: Any
    done: int

    def __post_init__(self) -> None:
        self.problem, self._ended = "", False
        self._dropped = weakref.finalize(self, _let_go, self.recorder, weakref.ref(self.observer.model))

    def __enter__(self) -> "Watcher":
        return self

    def __exit__(self, kind: Any, error: Any, trace: Any) -> None:
        self.close() if kind is not None else self.finish()

    def step(self, loss: Any = None) -> None:
        """Say that one training step is about to change the parameters. Call it after `backward` and before `optimizer.step`.

        Args:
            loss: the training loss of the step, a tensor or a number; it is read only at steps that are recorded.
        """
        if self.schedule.due(self.done):
            self.record(self.done, loss)
        if self.done == self.schedule.steps:
            text = f"the training goes on after steps={self.done:,}: of the steps from here only the last is recorded"
            _warn(f"{text}; give watch the number of all steps, or leave steps out", 3)
        self.done += 1

    def record(self, step: int, loss: Any = None, *, last: bool = False) -> None:
        """Record the model as it is, as `step`; a step that is recorded already, or lies before the last one, is passed over."""
        self.keep(step, self.look(step, loss, last=last))

    def look(self, step: int, loss: Any = None, *, last: bool = False) -> dict[str, Any] | None:
        """What a record of the model as it is would hold; None where nothing is to be recorded."""
        if self.problem or (self.recorder.last is not None and step <= self.recorder.last):
            return None
        try:
            places = 3 * GAINS if last else GAINS if self.schedule.milestone(step) else 0
            return self.observer.frame(places) | {
                "train_loss": nan if loss is None else float(loss.detach() if isinstance(loss, Tensor) else loss),
                "learning_rate": nan if self.optimizer is None else float(self.optimizer.param_groups[0]["lr"]),
                # at the end the last gradient was used already
                "gradient_norm": nan if last else self.observer.parameters.gradient_norm(),
            }
        except Exception as error:  # a model that was changed, no memory: the training must go on
            self._stop(step, error)
            return None

    def keep(self, step: int, frame: Mapping[str, Any] | None) -> None:
        """Record what `look` gave."""
        if frame is None or self.problem:
            return
        try:
            self.recorder.record(step, **frame_arrays(frame))
        except Exception as error:  # a full disk, another shape: the training must go on
            self._stop(step, error)

    def _stop(self, step: int, error: Exception) -> None:
        self.problem = f"recording stopped at step {step:,}, training goes on: {message(error)}"
        self._release()
        committed = self.recorder.committed
        self.problem += " (nothing was recorded)" if committed is None else f" (records up to step {committed:,} are kept)"
        _warn(self.problem, 6)

    def finish(self, status: str = "finished", reason: str = "") -> None:
        """Record the model once more, as it is now, and end the run. The context manager does it; twice does no harm."""
        if self._ended:
            return
        self.record(self.done, last=True)
        planned = self.schedule.steps
        if planned is not None and self.done < planned and status == "finished":
            status, reason = "stopped", f"the training ended after {self.done:,} of {planned:,} steps"
        try:
            if not self.problem:
                self.recorder.finish(status, reason)
        except Exception as error:
            self._stop(self.done, error)
        self._release()

    def close(self) -> None:
        """Keep what was recorded, and leave the run so that `resume=True` continues it."""
        if self._ended:
            return
        try:
            self.recorder.close()
        except Exception as error:
            self._stop(self.done, error)
        self._release()

    def _release(self) -> None:
        self._ended = True
        self._dropped.detach()
        _WATCHED.discard(self.observer.model)
        if self.problem:
            with suppress(Exception):  # the disk may be full; what was committed is safe
                self.recorder.close()

    @property
    def run(self) -> Run:
        """The run as recorded so far."""
        if self.problem and self.recorder.committed is None:
            raise InputError(f"there is no run: {self.problem}")
        return self.recorder.run


def _let_go(recorder: Recorder, model: "weakref.ref[nn.Module]") -> None:
    """Keep what a watcher has recorded that nobody ended: its program was interrupted, or lost it."""
    with suppress(Exception):
        recorder.close()
    watched = model()
    if watched is not None:
        _WATCHED.discard(watched)


def frame_arrays(frame: Mapping[str, Any]) -> dict[str, np.ndarray]:
    """A record in the type in which it is stored."""
    return {name: np.asarray(value, np.float32) for name, value in frame.items()}


def watch(
    model: nn.Module,
    *,
    probe: Any,
    out: str | Path | None = None,
    steps: int | None = None,
    tokenizer: Any = None,
    optimizer: Any = None,
    record: Record | None = None,
    layers: Collection[int | str] | None = None,
    heads: Collection[int] | None = None,
    blocks: Sequence[str] = (),
    patterns: int = SHOWN,
    forward: Forward | None = None,
    overwrite: bool = False,
    resume: bool = False,
    start: int | None = None,
) -> Watcher:
    """Watch a model while it trains; the result is a run, which `stages`, `check` and `report` read.

    Args:
        model: the model that is trained; also one in torch.compile or DistributedDataParallel, where process 0 records.
        probe: what the model is looked at on: token ids (sequence, position), a text with `tokenizer`, or a batch.
        out: folder of the run; without it the run is kept in memory, as `watcher.run`.
        steps: how many training steps there will be, if known.
        tokenizer: a tokenizer of transformers or tokenizers, the path of a tokenizer.json, or a list of tokens.
        optimizer: the optimizer, so that its learning rate is recorded.
        record: which steps are recorded, by default about 300, close together at the beginning.
        layers: which attention modules, by number or a part of their name; by default all.
        heads: which heads, by number; by default all.
        blocks: names of parameters to record whole.
        patterns: how many tokens of the first probe sequence have their pattern recorded whole.
        forward: `forward(model, ids)`, for a model that is not called as `model(ids)`.
        overwrite: replace a run that is in `out`.
        resume: continue the run in `out` after its last committed record.
        start: with `resume`, how many steps your training has done; by default it goes on after the last record.

    Call `watcher.step(loss)` once for each step of your training, between `loss.backward()` and `optimizer.step()`.

    Returns:
        The watcher, a context manager.

    Examples:
        >>> with ss.watch(net, probe=probe, steps=2) as watcher:
        ...     for step in range(2):
        ...         watcher.step(net(probe).mean())
        >>> watcher.run.frames
        3
    """
    if not isinstance(model, nn.Module):
        raise InputError(f"expected a PyTorch module to watch, got {type(model).__name__}; for other frameworks use ss.Recorder")
    unwrapped(model)  # a model that cannot be watched is refused in every process
    import torch.distributed as processes

    if processes.is_available() and processes.is_initialized() and processes.get_rank() != 0:  # process 0 records
        return Idle()
    observer = Observer(
        model, probe, tokenizer=tokenizer, layers=layers, heads=heads, blocks=blocks, patterns=patterns, forward=forward
    )
    if observer.model in _WATCHED:
        raise InputError("this model is being watched already; end that watcher first, or watch with one")
    schedule = Schedule(steps, record)
    recorder = Recorder(
        out,
        axes=observer.axes,
        source=observer.source(steps),
        blocks=tuple(observer.blocks),
        record=None if schedule.value is None else schedule.value.describe(),
        overwrite=overwrite,
        resume=resume,
    )
    try:
        _check_same(recorder, observer.source(steps))
        begin = _begin(recorder, start)
    except BaseException:
        recorder.close()
        raise
    _WATCHED.add(observer.model)
    return Watcher(observer, recorder, schedule, optimizer, begin)


def _check_same(recorder: Recorder, source: Mapping[str, Any]) -> None:
    """Refuse to continue a run with another model or probe."""
    for name in ("model", "layers", "heads", "vocabulary", "probe"):
        if recorder.source[name] != source[name]:
            was, now = (one[name] if name != "probe" else one[name]["sha256"][:12] for one in (recorder.source, source))
            raise InputError(f"the run was recorded with {name} {was}, now it is {now}; give the same, or choose another folder")


def _begin(recorder: Recorder, start: int | None) -> int:
    """The number of training steps that are done; says what a resumed run lacks."""
    if start is not None and (isinstance(start, bool) or not isinstance(start, int) or start < 0):
        raise InputError(f"start is {start!r}, expected how many steps the training has done, 0 or more")
    if recorder.last is None:
        return start or 0
    begin = recorder.last + 1 if start is None else start
    lost = f"; steps {recorder.last + 1:,} to {begin - 1:,} were not recorded" if begin > recorder.last + 1 else ""
    overlap = f"; records from step {begin:,} to {recorder.last:,} are kept as they are" if begin <= recorder.last else ""
    assumed = "; give start=N if your training has done N steps" if start is None else ""
    _warn(f"the run goes on after its record of step {recorder.last:,}{lost}{overlap}{assumed}", 4)
    return begin


def _warn(text: str, level: int) -> None:
    """A warning, also where warnings are errors: the training must go on."""
    try:
        warnings.warn(f"stagescope: {text}", stacklevel=level)
    except Warning:
        say(text)


class Idle(Watcher):
    """What `watch` gives in the processes of a distributed training that do not record."""

    def __init__(self) -> None:
        self.done, self.schedule = 0, Schedule()
        self.problem, self._ended = "process 0 of this training records", True

    @property
    def run(self) -> Run:
        raise InputError(f"no run here: {self.problem}")


OPTIONS = ("tokenizer", "record", "layers", "heads", "blocks", "patterns", "forward", "overwrite")
"""What a callback passes on to `watch`."""


class Callback:
    """What the callbacks of all frameworks share: the options, the watcher and the run.

    The last record waits for its training loss until the next one is due. Before the training begins, and in processes that do
    not record, there is no watcher and nothing is done.
    """

    def __init__(self, *, probe: Any, out: str | Path | None = None, **options: Any) -> None:
        for name in options:
            if name not in OPTIONS:
                raise unknown("option", name, ("probe", "out", *OPTIONS))
        super().__init__()
        self._probe, self._out, self._options = probe, out, options
        self._watcher: Watcher | None = None
        self._waiting: tuple[int, dict[str, Any]] | None = None

    @property
    def watcher(self) -> Watcher:
        if self._watcher is None:
            raise InputError("nothing was watched in this process: the training did not begin here, or process 0 records")
        return self._watcher

    @property
    def run(self) -> Run:
        """The run as recorded so far."""
        self._keep_waiting()
        return self.watcher.run

    def _begin(self, model: nn.Module, step: int, steps: int | None, optimizer: Any, defaults: Mapping[str, Any]) -> None:
        """Watch a training that has done `step` of `steps` updates; a later one goes on with the unfinished run in the folder."""
        self._close()  # a training that ended by an error
        options = {**defaults, **self._options}
        if step > 0 and self._out is not None:
            with suppress(StagescopeError):
                if manifest.read(Path(self._out)).status == "running":
                    options |= {"resume": True, "overwrite": False}
        self._watcher = watch(model, probe=self._probe, out=self._out, steps=steps, optimizer=optimizer, start=step, **options)

    def _before_update(self, step: int) -> None:
        """After the gradient and before the update that makes `step + 1` of `step` updates."""
        if self._watcher is None:
            return
        self._watcher.done = step
        if self._watcher.schedule.due(step):
            self._keep_waiting()
            frame = self._watcher.look(step)
            self._waiting = None if frame is None else (step, frame)

    @property
    def _awaited(self) -> dict[str, Any] | None:
        """The record that has no training loss yet."""
        return self._waiting[1] if self._waiting is not None and isnan(self._waiting[1]["train_loss"]) else None

    def _keep_waiting(self) -> None:
        if self._watcher is not None and self._waiting is not None:
            self._watcher.keep(*self._waiting)
            self._waiting = None

    def _finish(self, step: int) -> None:
        self._keep_waiting()
        if self._watcher is not None:
            self._watcher.done = step
            self._watcher.finish()

    def _close(self) -> None:
        self._keep_waiting()
        if self._watcher is not None:
            self._watcher.close()
