"""Progress of a sweep: done, running, failed, rate, time left, and the first failures in words."""

import sys
import time

from stagescope.core.caches import say
from stagescope.core.progress import Shown
from stagescope.sweeping.axes import spelled
from stagescope.sweeping.plan import Point
from stagescope.sweeping.rows import outcome, reached_end
from stagescope.sweeping.worker import Brief

LINE_SECONDS = 60.0
"""Without a terminal: the time between lines of progress; the first one comes after half of it."""


class SweepProgress(Shown):
    """Counts; shows nothing."""

    def __init__(self) -> None:
        self.what, self.total, self.done, self.failed = "points", 0, 0, 0
        self.running, self.workers = 0, 0
        self._begun_with, self._since = 0, time.monotonic()

    def begin(self, what: str, total: int, done: int) -> None:
        """A grid or a round of refinement with `total` points, of which `done` have their rows."""
        self.what, self.total, self.done = what, total, done
        self._begun_with, self._since = done, time.monotonic()

    def note(self, sentence: str) -> None:
        """Something to know, where progress is shown."""

    def warn(self, sentence: str) -> None:
        """Something to know even where no progress is shown."""
        say(sentence)

    def tick(self, running: int, workers: int) -> None:
        """How things stand, several times a second."""
        if workers and not self.workers:
            self._begun_with, self._since = self.done, time.monotonic()  # the rate is of workers, not of waiting for them
        self.running, self.workers = running, workers

    def ended(self, point: Point, brief: Brief) -> None:
        """Count a point, and show the first few failures."""
        self.done += 1
        if reached_end({"status": brief.status}):
            return
        self.failed += 1
        if self.failed <= 5:
            place = " ".join(f"{name}={spelled(value)}" for name, value in point.values.items())
            self.note(f"{place} seed {point.seed}: {outcome(brief.status, brief.reason)}")

    @property
    def rate(self) -> float:
        """Points a second since workers are at this grid or round; 0 before the first."""
        return (self.done - self._begun_with) / max(time.monotonic() - self._since, 1e-3)

    def left(self) -> str:
        """Time left at this rate, in words."""
        if not self.rate:
            return ""
        seconds = (self.total - self.done) / self.rate
        for size, unit in ((3600, "h"), (60, "min")):
            if seconds >= 2 * size:
                return f"about {seconds / size:.0f} {unit} left"
        return f"about {seconds:.0f} s left"


def per_second(rate: float) -> str:
    """A rate with three digits or so, never in powers of ten."""
    return f"{rate:,.0f}/s" if rate >= 100 else f"{rate:.1f}/s" if rate >= 10 else f"{rate:.2g}/s" if rate else "-/s"


class LoggedProgress(SweepProgress):
    """A line on standard error now and then, for logs; notes as they come."""

    def __init__(self) -> None:
        super().__init__()
        self._due = time.monotonic() + LINE_SECONDS / 2

    note = SweepProgress.warn

    def begin(self, what: str, total: int, done: int) -> None:
        """Say the size before anything is computed."""
        super().begin(what, total, done)
        there = f", {done:,} of them are there" if done else ""
        self.warn(f"{what if what != 'points' else 'a sweep'} of {total:,} point{'s' * (total != 1)}{there}")

    def tick(self, running: int, workers: int) -> None:
        super().tick(running, workers)
        if time.monotonic() < self._due:
            return
        self._due = time.monotonic() + LINE_SECONDS
        facts = (f"{running} running, {self.failed} failed", per_second(self.rate), self.left())
        text = ", ".join(filter(None, facts)) if workers else "waiting for workers"
        stage = "" if self.what == "points" else f"{self.what}: "
        self.warn(f"{stage}{self.done} of {self.total} points, {text}")


class LiveProgress(SweepProgress):
    """A line on standard error that is kept up to date; failures stand above it."""

    _wide = True

    def begin(self, what: str, total: int, done: int) -> None:
        super().begin(what, total, done)
        if self._bar is not None:
            self._bar.remove_task(self._task)
        else:
            from rich.console import Console
            from rich.progress import BarColumn, Progress, TextColumn
            from rich.table import Column

            console = Console(stderr=True)
            self._wide = console.width >= 90  # columns: room for a bar and all facts
            bar = [BarColumn(bar_width=16)] * self._wide
            facts = TextColumn("{task.fields[facts]}", style="cyan", table_column=Column(no_wrap=True))
            self._bar = Progress(TextColumn("{task.description}"), *bar, facts, console=console)
            self._bar.start()
        self._task = self._bar.add_task(what, total=total, completed=done, facts=self._facts())

    def _facts(self) -> str:
        """Of one width while a sweep runs, so that the line does not jump; what a narrow screen cuts off is last."""
        counts = f"{self.done:>{len(str(self.total))}}/{self.total}"
        if self.done == self.total:
            return f"{counts} {self.failed} failed"
        if not self.workers:
            return f"{counts} waiting for workers"
        workers = f" on {self.workers} worker{'s' if self.workers > 1 else ''}" if self._wide else ""
        return f"{counts} {self.running} running{workers}, {self.failed} failed, {per_second(self.rate):>7} {self.left()}"

    def note(self, sentence: str) -> None:
        from rich.text import Text

        if self._bar is None:
            self.warn(sentence)
        else:
            self._bar.console.print(Text(sentence, style="yellow"))

    def tick(self, running: int, workers: int) -> None:
        super().tick(running, workers)
        if self._bar is not None:
            self._bar.update(self._task, completed=self.done, facts=self._facts())


def sweep_progress(shown: bool | None) -> SweepProgress:
    """Live progress for True, none for False; for None live progress on a terminal, else a line now and then."""
    if shown is False:
        return SweepProgress()
    return LiveProgress() if shown or sys.stderr.isatty() else LoggedProgress()
