"""`stagescope demo`: a study of each paper, small; what was found on one screen, and all of it on one page."""

from pathlib import Path

from rich.console import Console
from rich.padding import Padding
from rich.text import Text

from stagescope.cli.answers import open_page
from stagescope.papers.registry import studies
from stagescope.papers.study import Study
from stagescope.reporting.portrait import portrait
from stagescope.reporting.report import html_target, write
from stagescope.runs.files import store_errors
from stagescope.views.view import Portrait

TITLE = "How attention learns: a tour"


def tour() -> list[tuple[Study, str, str]]:
    """Study, preset and sentence of each stop: what every study of every paper shows."""
    return [(study, preset, sentence) for study in studies().values() for preset, sentence in study.tour.items()]


def demo(out: Path, quiet: bool = False, show: bool = False, quick: bool = False) -> int:
    """Run the tour into `out`, replacing runs and the report of an earlier tour.

    `show` opens the report. `quick` makes the first stop only: it takes seconds and shows that the installation works.
    """
    console, portraits = Console(highlight=False), []
    with store_errors(out):
        out.mkdir(parents=True, exist_ok=True)
    page = html_target(out / "report.html")
    stored: list[Path] = []
    try:
        for found, preset, sentence in tour()[: 1 if quick else None]:
            console.print(Text.assemble((f"{found.name}: ", "bold"), sentence))
            place = out / f"{found.name}-{preset}"
            run = found.run(found.configured(preset), out=place, overwrite=True, progress=False if quiet else None)
            stored.append(place)
            portraits.append(portrait(run, preset))
            for line in _lines(portraits[-1]):
                console.print(Padding(Text(line), (0, 0, 0, 2)))
        made = write(portraits, page, title=TITLE)
    except KeyboardInterrupt as interrupt:
        raise KeyboardInterrupt(_left(interrupt, stored)) from None
    console.print(Text(f"The page with all of it: {made}", style="bold"))
    console.print(Text(f"Each run is a folder in {out}/: look with `stagescope stages`, `check`, `ladder`."))
    if show:
        open_page(made)
    return 0


def _left(interrupt: KeyboardInterrupt, stored: list[Path]) -> str:
    """What an interrupt leaves: a run that can be continued, if one was being stored, and those that are whole."""
    said = str(interrupt) if getattr(interrupt, "folder", None) is not None else "interrupted; no page was written"
    return f"{said}; finished runs: {', '.join(map(str, stored))}" if stored else said


def _lines(found: Portrait) -> list[str]:
    """What was found, in two lines: the stages of the run itself with their starts, and the verdicts as `check` counts them."""
    lines = []
    if found.stages is not None:
        own = [f"{_time(stage.start)} {stage.name}" for stage in found.stages if not stage.track]
        lines.append(f"stages from {found.stages.clock} = {', '.join(own)}")
    if found.ledger is not None:
        lines.append(f"claims: {found.ledger.summary()}")
    return lines


def _time(value: float) -> str:
    return f"{value:.3g}" if value < 1000 else f"{value:.0f}"
