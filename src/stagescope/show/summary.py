"""A run in a notebook: one small figure, its stages and its ledger, as static HTML."""

import base64
import io
import warnings
from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING, Any

from stagescope.core.markup import block, escaped
from stagescope.readings.reading import reading
from stagescope.runs.run import Run
from stagescope.show.portrait import LEFT_OUT, no_ladder, portrait
from stagescope.show.static_draw import WIDE, curves_on, matrix_on, moments, plain, ribbon, times
from stagescope.views.figure import STYLE
from stagescope.views.view import Curves, Matrices, Portrait

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Drawing
    from matplotlib.figure import SubFigure


@dataclass(frozen=True)
class Summary:
    """What a notebook shows of a run.

    Examples:
        >>> ss.summary(snap).html.strip()[:4]
        '<div'
    """

    html: str

    def _repr_html_(self) -> str:
        return self.html


def summary(run: Run) -> Summary:
    """Figure, stages and ledger of a run. It never raises: a run that cannot be read shows why.

    Args:
        run: any run.

    Examples:
        >>> "scan" in ss.summary(snap).html
        True
    """
    try:
        run_reading = reading(run)

        def show(*_: str) -> Summary:
            skip = ("ladder", "prediction", "ledger") if run_reading.cost.slow_claims else ("ladder", "prediction")
            # `hidden` are the notes on ladder and prediction, which a notebook never shows.
            of_run = portrait(run, skip=skip)
            hidden = {no_ladder(run, skip), LEFT_OUT}
            parts = [f"<p><strong>{escaped(of_run.name)}</strong> <code>{escaped(repr(of_run.run))}</code></p>"]
            parts += [f"<p><em>{escaped(note)}</em></p>" for note in of_run.notes if note not in hidden]
            picture = _picture(of_run)
            if picture:
                parts.append(
                    f'<img alt="loss and attention over the run" style="max-width:100%" src="data:image/png;base64,{picture}">'
                )
            parts += [part._repr_html_() for part in (of_run.stages, of_run.ledger) if part is not None]
            return Summary(block(*parts))

        return run_reading.companion(show, str(run.path), run.status, run.reason)
    except Exception as error:
        return Summary(f"<pre>{escape(_named(run))}\n{escape(f'{type(error).__name__}: {error}')}</pre>")


def _named(run: Run) -> str:
    try:
        return repr(run)
    except Exception:
        return f"<Run in {run.path}>"


def _picture(run_portrait: Portrait) -> str:
    """The loss under the ribbon, beside it attention at the start, on the way and at the end; empty where there is neither."""
    loss = next((view for view in run_portrait.views if isinstance(view, Curves)), None)
    matrices = sorted((view for view in run_portrait.views if isinstance(view, Matrices)), key=lambda view: len(view.panels) > 1)
    attention = next(iter(matrices), None)  # the first with a single panel: all heads by lag rather than one head
    if loss is None:
        return ""
    import matplotlib
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    with matplotlib.rc_context(STYLE), warnings.catch_warnings():  # pyright: ignore[reportArgumentType]
        warnings.filterwarnings("ignore", message=".*[Gg]lyph.*")
        drawing = _draw(run_portrait, loss, attention)
        buffer = io.BytesIO()
        FigureCanvasAgg(drawing).print_png(buffer)
    return base64.b64encode(buffer.getvalue()).decode()


def _draw(run_portrait: Portrait, loss: Curves, attention: Matrices | None) -> "Drawing":
    """Made without pyplot, so that the notebook's own figures and backend are left alone."""
    from matplotlib.figure import Figure

    frames = [] if attention is None else moments(run_portrait, attention, 3)
    drawing = Figure(figsize=(9.0, 2.9), layout="constrained", dpi=110)
    parts = drawing.subfigures(1, 1 + bool(frames), squeeze=False, width_ratios=(1.3, 1.0)[: 1 + bool(frames)])[0]
    axes = parts[0].subplots()
    curves_on(axes, run_portrait, loss)
    if len(axes.get_legend_handles_labels()[0]) > 1:
        axes.legend(loc="best", fontsize=7)
    axes.set_title(plain(loss.title), loc="left", pad=8 + ribbon(axes, run_portrait)[0])
    if attention is not None and frames:
        _small(parts[1], run_portrait, attention, frames)
    return drawing


def _small(figure: "SubFigure", run_portrait: Portrait, view: Matrices, frames: list[tuple[int, str]]) -> None:
    """Small pictures side by side, or one above the other where they are wide, with names of axes and one colour bar."""
    wide = len(view.columns) > WIDE * len(view.rows)
    grid = (len(frames), 1) if wide else (1, len(frames))
    panels = figure.subplots(*grid, squeeze=False)
    image: Any = None
    for axes, (place, event) in zip(panels.flat, frames, strict=True):
        image = matrix_on(axes, view, place)
        axes.set_xlabel(plain(view.column_axis), fontsize=8)
        axes.set_ylabel(plain(view.row_axis), fontsize=8)
        axes.label_outer()
        caption = (plain(event, 14), f"{run_portrait.run.clock} = {times(run_portrait, view)[place]:.3g}")
        axes.set_title((", " if wide else "\n").join(filter(None, caption)), fontsize=8, loc="left" if wide else "center")
    figure.colorbar(image, ax=panels, shrink=0.9, aspect=25, pad=0.02).ax.tick_params(labelsize=7)
    head = plain(view.panels[0], 30)
    figure.suptitle(plain(view.title, 50) + (f" ({head})" if head else ""), fontsize=9)
