"""A portrait on paper: the views of a page as static figures, and its stages and ledger as text."""

import warnings
from collections.abc import Callable, Sequence
from functools import partial
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any

from stagescope.claims.own import Claims, own_claims
from stagescope.core.errors import InputError, unknown
from stagescope.core.progress import progress_for
from stagescope.detect.stage import Stages, span_text
from stagescope.runs.files import publish, store_errors
from stagescope.runs.run import Run
from stagescope.runs.store import load
from stagescope.show.portrait import PARTS, portrait, predicted_events
from stagescope.show.static_draw import draw_curves, draw_ladder, draw_matrices, draw_points
from stagescope.views.figure import FORMATS, MARK, check_replaceable, save
from stagescope.views.view import Curves, Matrices, Points, Portrait, View

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Drawing

LEDGER = "ledger.md"
DRAW: dict[type[View], Callable[..., Any]] = {Curves: draw_curves, Matrices: draw_matrices, Points: draw_points}


def figures(
    run: Run | str | Path,
    out: str | Path,
    *,
    to: str | Sequence[str] = FORMATS,
    skip: str | Sequence[str] = (),
    claims: Claims = (),
    progress: bool | None = None,
    said: Callable[[str], None] = lambda note: None,
) -> list[Path]:
    """Draw the views of a run's report as files in a folder, with its stages and ledger as `ledger.md`; returns the files.

    Files of these names that were made with Stagescope are replaced; any other is left alone, and nothing is written then.

    Args:
        run: a run or its folder.
        out: the folder.
        to: kinds of files: "pdf", "svg", "png".
        skip: what to leave out because it takes long: "ledger", "ladder", "prediction", or several of them.
        claims: your own, put to the run after those of its paper.
        progress: show a bar; default: on a terminal.
        said: called with each note on what the figures lack.

    Returns:
        The files.

    Examples:
        >>> flow = ss.evolve(well, {"x": np.full(1, 0.1)}, ss.GradientFlow(), until=20)
        >>> [file.name for file in ss.figures(flow, "drawn", to="png", skip=("ledger", "ladder", "prediction"))][:1]
        ['loss.png']
    """
    out, kinds = Path(out), (to,) if isinstance(to, str) else tuple(to)
    for kind in kinds:
        if kind not in FORMATS:
            raise unknown("kind of figure", kind, FORMATS)
    _check_folder(out)
    claims = own_claims(claims)
    stored_run = run if isinstance(run, Run) else load(run)
    with progress_for(progress) as bar:
        bar.begin("reading", len(PARTS), "parts")
        read = count(1)
        run_portrait = portrait(stored_run, skip=skip, claims=claims, done=lambda part: bar.update(next(read)))
    files = write_figures(run_portrait, out, kinds, progress)
    for note in run_portrait.notes:
        said(note)
    return files


def write_figures(
    run_portrait: Portrait, out: str | Path, kinds: Sequence[str] = FORMATS, progress: bool | None = False
) -> list[Path]:
    """Write NAME.KIND for every view, ladder.* where there are rungs, and ledger.md; returns the files."""
    out, kinds = Path(out), tuple(kinds)
    _check_folder(out)
    draw = drawings(run_portrait)
    files = [out / f"{name}.{kind}" for name in draw for kind in kinds]
    for path in files:
        check_replaceable(path)
    with store_errors(out), warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*[Gg]lyph.*")  # a token that the font lacks is drawn as a box
        out.mkdir(parents=True, exist_ok=True)
        with progress_for(progress) as bar:
            for name in bar.each(list(draw), "drawing", "figures"):
                save(draw[name], out / name, kinds)
        publish(out / LEDGER, text(run_portrait).encode("utf-8", "replace"))
    return [*files, out / LEDGER]


def _check_folder(out: Path) -> None:
    if out.exists() and not out.is_dir():
        raise InputError(f"{out} is a file; give a folder for the figures")
    check_replaceable(out / LEDGER)


def drawings(run_portrait: Portrait) -> "dict[str, Callable[[], Drawing]]":
    """What draws each figure, by the name of its files."""
    draw: dict[str, Callable[[], Drawing]] = {
        # a slot may hold the name of a block, which is the user's
        "".join(c if c.isalnum() or c in "-_." else "_" for c in view.slot)[:100]: partial(DRAW[type(view)], run_portrait, view)
        for view in run_portrait.views
    }
    ladder = run_portrait.ladder
    if ladder is not None and any(rung.law or rung.rates for rung in ladder):
        draw["ladder"] = partial(draw_ladder, ladder)
    return draw


def text(run_portrait: Portrait) -> str:
    """Notes, stages, events, ledger, prediction and ladder as Markdown."""
    lines = [f"# {_inline(run_portrait.name)}", "", _inline(repr(run_portrait.run).strip("<>"))]
    for note in run_portrait.notes:
        lines += ["", f"> {_inline(note)}"]
    if run_portrait.stages is not None:
        lines += _stages(run_portrait.stages)
    if run_portrait.ledger is not None:
        rows = [
            (row.verdict, f"{row.statement} [{row.tag}]", *map(_number, (row.predicted, row.measured, row.tolerance)), row.reason)
            for row in run_portrait.ledger
        ]
        heads = ("verdict", "claim", "predicted", "measured", "tolerance", "reason")
        lines += ["", "## Ledger", "", run_portrait.ledger.summary(), "", *_table(heads, rows)]
        lines += [line for remark in run_portrait.ledger.remarks() for line in ("", _inline(remark))]
    if run_portrait.prediction is not None:  # the events of the saddle path beside those of the run
        rows = []
        for row in predicted_events(run_portrait.prediction, run_portrait.stages, run_portrait.run):
            span = "" if row["t"] is None else span_text(row["low"], row["high"], " to ")
            rows.append((row["name"], _number(row["t"]), span, _number(row["measured"]), row["said"]))
        lines += ["", "## Predicted from the start", "", *_table(("event", "predicted", "interval", "measured", ""), rows)]
    if run_portrait.ladder is not None and len(run_portrait.ladder):
        heads = ("rung", run_portrait.ladder.clock, "distance", "opens", "rate", "measured", "leaves at", "left at", "note")
        rows = []
        for rung in run_portrait.ladder:
            rate = rung.law_words or _number(rung.rates[0] if rung.rates else None)
            numbers = map(_number, (rung.measured_rate, rung.predicted_escape, rung.measured_escape))
            distance = _number(rung.distance if rung.found else None)
            rows.append((rung.label, _number(rung.t), distance, rung.opening or "nothing", rate, *numbers, rung.note))
        lines += ["", "## Saddle ladder", "", *_table(heads, rows)]
    return "\n".join([*lines, "", f"<!-- {MARK} -->"]) + "\n"


def _stages(stages: Stages) -> list[str]:
    rows = [(stage.label, _number(stage.start), _number(stage.stop, "end"), stage.evidence) for stage in stages]
    lines = ["", "## Stages", "", *_table(("stage", f"from {stages.clock}", "to", "evidence"), rows)]
    if stages.events:
        events = []
        for name, event in stages.estimates.items():
            span = span_text(*event.interval, " to ") if event.interval else ""
            events.append((name, _number(event.time, event.words), span, stages.notes.get(name, "")))
        lines += ["", "## Events", "", *_table(("event", stages.clock, "95 % interval", ""), events)]
    if stages.transitions:
        steps = [
            (curve, f"{change.t:.5g}", span_text(change.low, change.high, " to "), f"{change.amplitude:+.4g}")
            for curve, change in stages.transitions
        ]
        lines += ["", "## Transitions", "", *_table(("curve", stages.clock, "95 % interval", "changes by"), steps)]
    return lines


def _table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    lines = ["| " + " | ".join(heads) + " |", "|---" * len(heads) + "|"]
    return lines + ["| " + " | ".join(map(_inline, row)) + " |" for row in rows]


def _number(value: Any, nothing: str = "-") -> str:
    if value is None:
        return nothing
    return f"{value:.5g}" if isinstance(value, float) else str(value)


def _inline(value: str) -> str:
    """One line, and nothing that Markdown would read as a cell or as HTML."""
    return " ".join(value.split()).replace("|", "\\|").replace("<", "&lt;")
