"""Phase diagrams of a sweep: a figure for paper with its numbers, and a page in which to look around."""

import base64
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from stagescope.core.errors import InputError
from stagescope.core.markup import block, note, title
from stagescope.runs.files import publish, store_errors
from stagescope.show.diagram_ink import draw_curves, draw_maps
from stagescope.show.diagram_numbers import boundary_line, find_boundary, numbers, select
from stagescope.show.diagram_page import diagram_page
from stagescope.show.report import html_target
from stagescope.sweeping.table import Sweep, load_sweep
from stagescope.views.figure import FORMATS, MARK, Numbers, check_replaceable, save


class Diagram(NamedTuple):
    """Files of a diagram: the PNG, beside it PDF, SVG and JSON of the same name, and the page; and the numbers drawn.

    `notes` say what a reader must know: points that are missing, times on different clocks.

    Examples:
        >>> drawn = ss.Diagram(figure="t.png", page="t.html", numbers={"x": [0.1, 0.2], "median": [3.0, 5.0]})
        >>> drawn.numbers["median"]
        [3.0, 5.0]
    """

    figure: Path
    page: Path
    numbers: Numbers
    notes: tuple[str, ...] = ()

    def _repr_html_(self) -> str:
        """What a notebook shows: the figure, its notes, and where the files are."""
        try:
            picture = base64.b64encode(self.figure.read_bytes()).decode()
        except (OSError, ValueError) as error:  # it was moved since
            return block(title("Diagram", f"{self.figure} cannot be read: {error}"))
        image = f'<img alt="the diagram" style="max-width:100%" src="data:image/png;base64,{picture}">'
        files = f"{self.figure.with_suffix('')}.{{pdf,svg,png,json}}; interactive page: {self.page}"
        return block(image, *map(note, self.notes), note(files))


def diagram(
    sweep: Sweep | str | Path,
    x: str,
    y: str | None = None,
    color: str | None = None,
    *,
    at: Mapping[str, Any] | None = None,
    boundary: str | None = None,
    out: str | Path | None = None,
    page: str | Path | None = None,
) -> Diagram:
    """Draw one column of a sweep over one or two of its axes; returns the files and the numbers.

    A cell shows the median over its seeds with a bootstrap interval, or the most frequent category with its share. A time that
    had not come by a run's end is later than all others. Cells whose runs all failed are hatched, cells that do not exist are
    blank. Files made with Stagescope are replaced, no other is.

    Args:
        sweep: the sweep or its folder.
        x: the axis across.
        y: the axis upwards; without it a curve is drawn.
        color: any column of the sweep: an event, "predicted E2" (from each start, without a run), a claim by its tag, a number,
            "stages"; default: the column of a named sweep, else "last stage", else "status".
        at: values of other axes. Axes that are not named here give a panel for each of their values.
        boundary: a line of theory that the study has over these two axes, such as "stall" of focus-dilution.
        out: folder of the figure; default: `diagrams` in the sweep's folder.
        page: file of the page; default: diagram.html beside the figure.

    Returns:
        The files, and the numbers drawn.

    Examples:
        >>> swept = ss.sweep("linear-icl", grid={"context": "10,20"}, seeds=1, out="swept", workers=1, until=20.0, progress=False)
        >>> ss.diagram(swept, x="context", color="status").figure.name
        'status-over-context.png'
    """
    table = sweep if isinstance(sweep, Sweep) else load_sweep(sweep)
    selection = select(table, x, y, color, at or {})
    lines = {} if boundary is None else {boundary: find_boundary(table, selection, boundary)}
    folder = table.folder / "diagrams" if out is None else Path(out)
    if folder.exists() and not folder.is_dir():
        raise InputError(f"{folder} is a file; give a folder for the figures")
    # A name for files that says what they show, safe on every file system.
    axes = selection.x if selection.y is None else f"{selection.x}-{selection.y}"
    cut = "".join(f"-{name}={value}" for name, value in selection.cut.items())
    stem = folder / "".join(c if c.isalnum() or c in "-_=" else "_" for c in f"{selection.color}-over-{axes}{cut}")[:120]
    for kind in (*FORMATS, "json"):
        check_replaceable(stem.with_suffix(f".{kind}"))
    figure = {"made": MARK, **numbers(table, selection)}
    for name, line in lines.items():
        for panel in figure["panels"]:
            panel["boundary"] = boundary_line(table, line, name, {**figure["at"], **panel["at"]})
    with store_errors(folder):
        folder.mkdir(parents=True, exist_ok=True)
        target = html_target(folder / "diagram.html" if page is None else Path(page))
        publish(stem.with_suffix(".json"), (json.dumps(figure, indent=1, allow_nan=False) + "\n").encode())
        save(lambda: draw_curves(figure) if y is None else draw_maps(figure), stem)
        # The line of all panels, None where they differ: the page shows one for every cut.
        boundaries = [panel.get("boundary") for panel in figure["panels"]]
        common = boundaries[0] if all(line == boundaries[0] for line in boundaries) else None
        publish(target, diagram_page(table, selection, common).encode())
    return Diagram(stem.with_suffix(".png"), target, figure, tuple(figure["notes"]))
