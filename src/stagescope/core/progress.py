"""Progress on the terminal: rate, time left and the current loss."""

import sys
from collections.abc import Iterator, Sequence
from typing import Any, Self, TypeVar

from stagescope.core.errors import printable

Item = TypeVar("Item")


class Shown:
    """Something on the terminal while work is under way."""

    _bar: Any = None
    _task: Any = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._bar is not None:
            self._bar.stop()


class Progress(Shown):
    """Shows nothing; the base of progress bars."""

    def begin(self, what: str, total: float, unit: str) -> None: ...

    def update(self, position: float, loss: float | None = None) -> None: ...

    def each(self, items: Sequence[Item], what: str, unit: str) -> Iterator[Item]:
        """The items one by one; the progress moves on when the next one is taken."""
        self.begin(what, len(items), unit)
        for done, item in enumerate(items, start=1):
            yield item
            self.update(done)


class Bar(Progress):
    """A bar on standard error, made only when something begins."""

    def begin(self, what: str, total: float, unit: str) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, TaskProgressColumn, TextColumn, TimeRemainingColumn
        from rich.progress import Progress as Rich

        class Rate(TaskProgressColumn):
            def render(self, task: Any) -> Any:
                from rich.text import Text

                return Text(f"{task.speed:,.3g} {unit}/s" if task.speed else f"- {unit}/s", style="cyan")

        name, loss = TextColumn("{task.description}", markup=False), TextColumn("{task.fields[loss]}", style="green")
        columns = (BarColumn(), TaskProgressColumn(), Rate(), TimeRemainingColumn())
        self._bar = Rich(name, *columns, loss, console=Console(stderr=True))
        self._bar.start()
        self._task = self._bar.add_task(printable(what), total=total, loss="")

    def update(self, position: float, loss: float | None = None) -> None:
        if self._bar is not None:
            text = {} if loss is None else {"loss": f"loss {loss:.4g}"}
            self._bar.update(self._task, completed=position, **text)


def progress_for(shown: bool | None) -> Progress:
    """True: a bar; False: none; None: a bar on a terminal."""
    return Bar() if (sys.stderr.isatty() if shown is None else shown) else Progress()
