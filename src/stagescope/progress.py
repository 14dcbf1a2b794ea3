"""Progress on the terminal: rate, time left and the current loss."""

import sys
from collections.abc import Iterator, Sequence
from typing import Any, TypeVar

from stagescope.errors import printable

Item = TypeVar("Item")


class Progress:
    """Shows nothing; the base of progress bars."""

    def __enter__(self) -> "Progress":
        return self

    def __exit__(self, *_: object) -> None: ...

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

    def __init__(self) -> None:
        self._bar: Any = None
        self._task: Any = None

    def begin(self, what: str, total: float, unit: str) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, TaskProgressColumn, TextColumn, TimeRemainingColumn
        from rich.progress import Progress as Rich

        class Rate(TaskProgressColumn):
            def render(self, task: Any) -> Any:
                from rich.text import Text

                return Text(f"{task.speed:,.3g} {unit}/s" if task.speed else f"- {unit}/s", style="cyan")

        columns = (
            TextColumn("{task.description}", markup=False),
            BarColumn(),
            TaskProgressColumn(),
            Rate(),
            TimeRemainingColumn(),
        )
        loss = TextColumn("{task.fields[loss]}", style="green")
        self._bar = Rich(*columns, loss, console=Console(stderr=True))
        self._bar.start()
        self._task = self._bar.add_task(printable(what), total=total, loss="")

    def update(self, position: float, loss: float | None = None) -> None:
        if self._bar is not None:
            text = {} if loss is None else {"loss": f"loss {loss:.4g}"}
            self._bar.update(self._task, completed=position, **text)

    def __exit__(self, *_: object) -> None:
        if self._bar is not None:
            self._bar.stop()


def progress_for(shown: bool | None) -> Progress:
    """True: a bar; False: none; None: a bar on a terminal."""
    return Bar() if (sys.stderr.isatty() if shown is None else shown) else Progress()
