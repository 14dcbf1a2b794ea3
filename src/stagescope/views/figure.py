"""A figure is two functions: one computes its numbers, the other draws them. The numbers are stored beside the picture."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from stagescope.corpora.known import locate
from stagescope.errors import InputError, unknown
from stagescope.progress import Progress
from stagescope.runs.files import check_target, publish, store_errors
from stagescope.views.palette import CATEGORIES

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Drawing

Numbers = dict[str, Any]
COLORS = CATEGORIES
GREY = "#8a8a8a"
STYLE = {
    "figure.dpi": 110,
    "savefig.dpi": 200,
    "font.size": 9,
    "axes.titlesize": 9.5,
    "figure.titlesize": 10,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.alpha": 0.25,
    "grid.linewidth": 0.6,
    "lines.linewidth": 1.6,
    "legend.frameon": False,
    "legend.fontsize": 8,
    "pdf.fonttype": 42,
    "svg.fonttype": "none",
    "svg.hashsalt": "stagescope",
}
FORMATS = ("pdf", "svg", "png")
MARK = "Made with Stagescope"
"""Written into every file, so that files of other origin are recognised and never replaced."""


@dataclass(frozen=True)
class Figure:
    """One figure of a paper, or one it lacks. One that is `full` takes an hour or more and is made only by name or with `--full`.

    `cost` says in words how long it takes, where that is worth knowing; `needs` names a corpus that must be at hand. A figure
    of a named `sweep` of its study computes its numbers from the table of that sweep, any other with a progress bar at hand.
    """

    name: str
    title: str
    compute: Callable[[Any], Numbers]
    draw: Callable[[Numbers], "Drawing"]
    cost: str = ""
    full: bool = False
    needs: str | None = None
    sweep: str | None = None

    @property
    def lacking(self) -> str:
        """Why this figure cannot be made on this machine; empty where it can."""
        if self.needs is None:
            return ""
        try:
            locate(self.needs)
        except InputError as error:
            return str(error)
        return ""


def rounded(values: Any, digits: int = 6) -> Any:
    """Numbers as they are stored beside a picture: lists of rounded floats."""
    return np.round(np.asarray(values, dtype=float), digits).tolist()


def reproduce(figure: Figure, out: Path, progress: Progress) -> Path:
    """Compute and draw a figure; writes figureNAME.{json,pdf,svg,png} into `out` and returns the PNG."""
    return store(figure, figure.compute(progress), out)


def store(figure: Figure, found: Numbers, out: Path) -> Path:
    """Draw numbers that were computed; writes the files of `reproduce`."""
    numbers = {"figure": figure.name, "title": figure.title, **found}
    stem = out / f"figure{figure.name}"
    with store_errors(out):
        out.mkdir(parents=True, exist_ok=True)
        publish(stem.with_suffix(".json"), (json.dumps(numbers, indent=1, allow_nan=False) + "\n").encode())
        save(lambda: figure.draw(numbers), stem)
    return stem.with_suffix(".png")


def check_replaceable(path: Path) -> None:
    """Refuse a path where there is something that was not made with Stagescope."""
    check_target(path)
    with store_errors(path):
        if path.exists() and (path.is_dir() or MARK.encode() not in path.read_bytes()):
            raise InputError(f"{path} exists and was not made with Stagescope; choose another folder or remove it")


def save(draw: Callable[[], "Drawing"], stem: Path, kinds: Sequence[str] | None = None) -> None:
    """Draw in the style of all figures and write STEM.KIND, by default of all FORMATS; the same drawing gives the same bytes."""
    import io

    import matplotlib
    from matplotlib import pyplot

    matplotlib.use("Agg")
    with matplotlib.rc_context(STYLE):  # pyright: ignore[reportArgumentType]
        drawing = draw()
        pyplot.close(drawing)  # it can still be saved, but pyplot no longer keeps it
        for kind in FORMATS if kinds is None else kinds:
            buffer = io.BytesIO()
            undated = {"pdf": {"CreationDate": None, "Creator": MARK}, "svg": {"Date": None, "Creator": MARK}}
            drawing.savefig(buffer, format=kind, metadata=undated.get(kind, {"Software": MARK}))
            publish(stem.with_suffix(f".{kind}"), buffer.getvalue())


def chosen(figures: Mapping[str, Figure], name: str | None, full: bool = False) -> list[Figure]:
    """One figure by name, or all of them that can be made here; those that take an hour or more only with `full`."""
    if name is None:
        return [figure for figure in figures.values() if (full or not figure.full) and not figure.lacking]
    if name not in figures:
        raise unknown("figure", name, figures)
    if figures[name].full and not full:
        raise InputError(f"figure {name} takes {figures[name].cost}; add --full to make it")
    return [figures[name]]
