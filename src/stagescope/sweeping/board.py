"""Progress of a sweep: done, running, failed, rate, time left, and the first failures in words."""

import sys
from typing import Any

from stagescope.sweeping.axes import spelled
from stagescope.sweeping.points import Point
from stagescope.sweeping.rows import outcome
from stagescope.sweeping.worker import Brief

SHOWN_FAILURES = 5


class Board:
    """Counts; shows nothing."""

    def __init__(self) -> None:
        self.failed = 0

    def __enter__(self) -> "Board":
        return self

    def __exit__(self, *_: object) -> None: ...

    def begin(self, what: str, total: int, done: int) -> None: ...

    def note(self, sentence: str) -> None: ...

    def warn(self, sentence: str) -> None:
        """Something that must be said even where no progress is shown."""
        print(f"stagescope: {sentence}", file=sys.stderr)

    def update(self, done: int, running: int, workers: int) -> None: ...

    def failure(self, point: Point, brief: Brief) -> None:
        """Count a failure, and show the first few."""
        self.failed += 1
        if self.failed <= SHOWN_FAILURES:
            at = " ".join(f"{name}={spelled(value)}" for name, value in point.at.items())
            self.note(f"{at} seed {point.seed}: {outcome(brief.status, brief.reason)}")


class LiveBoard(Board):
    """A line on standard error that is kept up to date; failures stand above it."""

    def __init__(self) -> None:
        super().__init__()
        self._bar: Any = None
        self._task: Any = None

    def begin(self, what: str, total: int, done: int) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

        if self._bar is None:
            facts = TextColumn("{task.fields[facts]}", style="cyan")
            columns = (
                TextColumn("{task.description}"),
                BarColumn(bar_width=20),
                MofNCompleteColumn(),
                facts,
                TimeRemainingColumn(),
            )
            self._bar = Progress(*columns, console=Console(stderr=True), speed_estimate_period=120)
            self._bar.start()
        else:
            self._bar.remove_task(self._task)
        self._task = self._bar.add_task(what, total=total, completed=done, facts="starting workers")

    def note(self, sentence: str) -> None:
        from rich.text import Text

        if self._bar is not None:
            self._bar.console.print(Text(sentence, style="yellow"))

    def update(self, done: int, running: int, workers: int) -> None:
        if self._bar is None:
            return
        speed = next(task.speed for task in self._bar.tasks if task.id == self._task)
        rate = f"{speed:,.3g}/s" if speed else "-/s"
        facts = f"{running} running on {workers} workers, {self.failed} failed, {rate}"
        self._bar.update(self._task, completed=done, facts=facts)

    def __exit__(self, *_: object) -> None:
        if self._bar is not None:
            self._bar.stop()


def board_for(shown: bool | None) -> Board:
    """A live board if asked for, a silent one if refused; undecided means: on a terminal."""
    return LiveBoard() if (sys.stderr.isatty() if shown is None else shown) else Board()
