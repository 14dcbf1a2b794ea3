"""A figure is two functions: one computes its numbers, the other draws them. The numbers are stored beside the picture."""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from stagescope.core.errors import InputError, unknown
from stagescope.core.progress import Progress
from stagescope.corpora.known import locate
from stagescope.runs.files import check_target, publish, store_errors

if TYPE_CHECKING:
    from matplotlib.colors import ListedColormap
    from matplotlib.figure import Figure as Drawing

CATEGORIES = ("#0072b2", "#d55e00", "#009e73", "#b8578b", "#c98500", "#3a9bd9", "#8a7a00", "#3d3d3d")
"""Okabe and Ito's eight, ordered by how well they stand on white."""
TINTS = tuple("#" + "".join(f"{round(0.8 * 255 + 0.2 * level):02x}" for level in bytes.fromhex(hue[1:])) for hue in CATEGORIES)
"""The same in pale, four parts of white, for strips with names: stages on paper have the colours of those on the page."""
SEQUENTIAL = (
    (0.975, 0.012, 110),
    (0.88, 0.105, 122),
    (0.74, 0.12, 155),
    (0.6, 0.098, 195),
    (0.46, 0.098, 250),
    (0.33, 0.12, 285),
    (0.21, 0.09, 305),
)
"""From the colour of the paper to the strongest: lightness, chroma and hue in degrees (OKLCH)."""
DIVERGING = (
    (0.3, 0.11, 262),
    (0.52, 0.125, 255),
    (0.76, 0.085, 245),
    (0.975, 0.004, 90),
    (0.8, 0.1, 65),
    (0.58, 0.13, 48),
    (0.34, 0.09, 40),
)
"""From the strongest negative over zero to the strongest positive."""
_TO_CONES = np.array([[1, 0.3963377774, 0.2158037573], [1, -0.1055613458, -0.0638541728], [1, -0.0894841775, -1.291485548]])
_TO_LIGHT = np.array(
    [
        [4.0767416621, -3.3077115913, 0.2309699292],
        [-1.2684380046, 2.6097574011, -0.3413193965],
        [-0.0041960863, -0.7034186147, 1.707614701],
    ]
)
"""Ottosson's matrices from OKLab to linear light."""


def ramp(signed: bool, foot: float = 0.0) -> np.ndarray:
    """255 colours (steps, 3) in 0..1, lowest value first; `foot` is the share at the pale end that is left out."""
    anchors = np.array(DIVERGING if signed else SEQUENTIAL)
    angle = np.radians(anchors[:, 2])
    lab = np.stack([anchors[:, 0], anchors[:, 1] * np.cos(angle), anchors[:, 1] * np.sin(angle)], axis=1)
    places = np.linspace(foot, 1.0, 255) * (len(anchors) - 1)
    points = np.stack([np.interp(places, np.arange(len(anchors)), lab[:, axis]) for axis in range(3)], axis=1)
    light = np.clip((points @ _TO_CONES.T) ** 3 @ _TO_LIGHT.T, 0.0, 1.0)
    return np.where(light <= 0.0031308, 12.92 * light, 1.055 * light ** (1 / 2.4) - 0.055)


def colour_map(signed: bool = False, foot: float = 0.0) -> "ListedColormap":
    """The ramp for Matplotlib."""
    from matplotlib.colors import ListedColormap

    return ListedColormap(ramp(signed, foot), "page")


Numbers = dict[str, Any]
COLORS = CATEGORIES


def coloured(items: Iterable[Any]) -> Iterator[tuple[str, Any]]:
    """Each of some items with a colour of its own."""
    return zip(COLORS, items, strict=False)


def subplots(*grid: int, **options: Any) -> Any:
    """A drawing and its axes. Matplotlib is imported when a figure is drawn, not when figures are listed."""
    from matplotlib import pyplot

    return pyplot.subplots(*grid, layout="constrained", **options)


GREY = "#8a8a8a"
WARNING = "#b00020"
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
    `quick` computes them from less in seconds; its numbers say so under "quick", which stands below the picture.
    """

    name: str
    title: str
    compute: Callable[[Any], Numbers]
    draw: Callable[[Numbers], "Drawing"]
    cost: str = ""
    full: bool = False
    needs: str | None = None
    sweep: str | None = None
    quick: Callable[[Any], Numbers] | None = None

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


def reproduce(figure: Figure, out: Path, progress: Progress, quick: bool = False) -> Path:
    """Compute and draw a figure; writes figureNAME.{json,pdf,svg,png} into `out` and returns the PNG."""
    return store(figure, (figure.quick if quick and figure.quick else figure.compute)(progress), out)


def store(figure: Figure, results: Numbers, out: Path) -> Path:
    """Draw numbers that were computed; writes the files of `reproduce`."""
    numbers = {"figure": figure.name, "title": figure.title, **results}
    stem = out / f"figure{figure.name}"
    with store_errors(out):
        out.mkdir(parents=True, exist_ok=True)
        publish(stem.with_suffix(".json"), (json.dumps(numbers, indent=1, allow_nan=False) + "\n").encode())
        save(lambda: _marked_quick(figure.draw(numbers), numbers.get("quick")), stem)
    return stem.with_suffix(".png")


def _marked_quick(drawing: "Drawing", note: str | None) -> "Drawing":
    """A drawing that says below it, or above the legend there, what was left out to make it quickly."""
    if note is None:
        return drawing
    if not drawing.legends:
        drawing.supxlabel(note, fontsize=8, color=WARNING)
    for legend in drawing.legends:
        legend.set_title(note)
        legend.get_title().set(fontsize=8, color=WARNING)
    return drawing


def check_replaceable(path: Path) -> None:
    """Refuse a path where there is something that was not made with Stagescope."""
    check_target(path)
    with store_errors(path):
        if path.exists() and (path.is_dir() or MARK.encode() not in path.read_bytes()):
            raise InputError(f"{path} exists and was not made with Stagescope; choose another folder or remove it")


def save(draw: Callable[[], "Drawing"], stem: Path, kinds: Sequence[str] | None = None) -> None:
    """Draw in the style of all figures and write STEM.KIND, by default of all FORMATS."""
    for kind, data in pictures(draw, FORMATS if kinds is None else kinds).items():
        publish(stem.with_suffix(f".{kind}"), data)


def pictures(draw: Callable[[], "Drawing"], kinds: Sequence[str]) -> dict[str, bytes]:
    """A drawing in the style of all figures as files, by kind; the same drawing gives the same bytes."""
    import io

    import matplotlib
    from matplotlib import pyplot

    matplotlib.use("Agg")
    files = {}
    undated = {"pdf": {"CreationDate": None, "Creator": MARK}, "svg": {"Date": None, "Creator": MARK}}
    with matplotlib.rc_context(STYLE):  # pyright: ignore[reportArgumentType]
        drawing = draw()
        pyplot.close(drawing)  # it can still be saved, but pyplot no longer keeps it
        for kind in kinds:
            buffer = io.BytesIO()
            drawing.savefig(buffer, format=kind, metadata=undated.get(kind, {"Software": MARK}))
            files[kind] = buffer.getvalue()
    return files


def chosen(figures: Mapping[str, Figure], name: str | None, full: bool = False) -> list[Figure]:
    """One figure by name, or all of them that can be made here; those that take an hour or more only with `full`."""
    if name is None:
        return [figure for figure in figures.values() if (full or not figure.full) and not figure.lacking]
    if name not in figures:
        raise unknown("figure", name, figures)
    if figures[name].full and not full:
        raise InputError(f"figure {name} takes {figures[name].cost}; add --full to make it")
    return [figures[name]]
