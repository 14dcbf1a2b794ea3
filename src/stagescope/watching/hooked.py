"""A watcher that the callbacks of a training framework drive: the loss of a step is known only after the step."""

from collections.abc import Mapping
from math import isnan
from pathlib import Path
from typing import Any

from stagescope.errors import InputError, StagescopeError, unknown
from stagescope.runs import manifest
from stagescope.watching.pytorch import nn
from stagescope.watching.watch import Watcher, watch

OPTIONS = ("tokenizer", "record", "layers", "heads", "blocks", "patterns", "forward", "overwrite")
"""What a callback passes on to `watch`."""


class Hooked:
    """Records at the right steps; the last record waits for its training loss until the next one is due."""

    def __init__(self, watcher: Watcher) -> None:
        self.watcher = watcher
        self._waiting: tuple[int, dict[str, Any]] | None = None

    def before_update(self, step: int) -> None:
        """After the gradient and before the update that makes `step + 1` of `step` updates."""
        self.watcher.done = step
        if not self.watcher.schedule.due(step):
            return
        self.flush()
        frame = self.watcher.look(step)
        self._waiting = None if frame is None else (step, frame)

    @property
    def waits(self) -> bool:
        """Whether a record has no training loss yet."""
        return self._waiting is not None and isnan(self._waiting[1]["train_loss"])

    def loss(self, value: float) -> None:
        if self._waiting is not None and self.waits:
            self._waiting[1]["train_loss"] = float(value)

    def flush(self) -> None:
        if self._waiting is not None:
            waiting, self._waiting = self._waiting, None
            self.watcher.keep(*waiting)

    def finish(self, step: int) -> None:
        self.flush()
        self.watcher.done = step
        self.watcher.finish()

    def close(self) -> None:
        self.flush()
        self.watcher.close()


class Callback:
    """What the callbacks of all frameworks share: the options, the watcher and the run."""

    def __init__(self, *, probe: Any, out: str | Path | None = None, **options: Any) -> None:
        for name in options:
            if name not in OPTIONS:
                raise unknown("option", name, ("probe", "out", *OPTIONS))
        super().__init__()
        self._given, self._out, self._options = probe, out, options
        self._hooked: Hooked | None = None

    @property
    def watcher(self) -> Watcher:
        if self._hooked is None:
            raise InputError("nothing was watched in this process: the training did not begin here, or process 0 records")
        return self._hooked.watcher

    @property
    def run(self) -> Any:
        """The run as recorded so far."""
        watcher = self.watcher
        if self._hooked is not None:
            self._hooked.flush()
        return watcher.run

    def _begin(self, model: nn.Module, step: int, steps: int | None, optimizer: Any, known: Mapping[str, Any]) -> None:
        """Watch a training that has done `step` of `steps` updates; a later one goes on with the unfinished run in the folder."""
        if self._hooked is not None:  # a training that ended by an error
            self._hooked.close()
        options = {**known, **self._options}
        if step > 0 and self._out is not None and _unfinished(Path(self._out)):
            options |= {"resume": True, "overwrite": False}
        made = watch(model, probe=self._given, out=self._out, steps=steps, optimizer=optimizer, start=step, **options)
        self._hooked = Hooked(made)


def _unfinished(folder: Path) -> bool:
    try:
        return manifest.read(folder).status == "running"
    except StagescopeError:
        return False
