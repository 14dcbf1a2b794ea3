"""`stagescope demo`: a study of each paper, small, on screen, and all of them on one page."""

from pathlib import Path

from rich.console import Console
from rich.text import Text

from stagescope.cli.answers import open_page
from stagescope.cli.render import print_ladder, print_ledger, print_stages
from stagescope.papers.registry import studies
from stagescope.papers.study import Study
from stagescope.reporting.portrait import portrait
from stagescope.reporting.report import write
from stagescope.views.view import Portrait

TITLE = "How attention learns: a tour"


def tour() -> list[tuple[Study, str, str]]:
    """Study, preset and sentence of each stop: what every study of every paper shows."""
    return [(study, preset, sentence) for study in studies().values() for preset, sentence in study.tour.items()]


def demo(out: Path, quiet: bool = False, show: bool = False) -> int:
    """Run the tour into `out`, replacing runs and the report of an earlier tour; `show` opens the report."""
    console = Console()
    portraits = []
    for found, preset, sentence in tour():
        console.rule(Text(f"{found.name}: {preset}"))
        console.print(Text(sentence))
        place = out / f"{found.name}-{preset}"
        run = found.run(found.configured(preset), out=place, overwrite=True, progress=False if quiet else None)
        portraits.append(portrait(run, preset))
        _print(portraits[-1])
        console.print(Text(f"stored in {run.path}; look closer with `stagescope info {run.path}`\n", style="dim"))
    made = write(portraits, out / "report.html", title=TITLE)
    console.rule(Text("the report"))
    print(f"{made}: all of it on one page; open it in a browser, it works offline")
    if show:
        open_page(made)
    return 0


def _print(found: Portrait) -> None:
    """What the page will say of a run, for the terminal."""
    if found.stages is not None:
        print_stages(found.stages)
    if found.ladder is not None:
        print_ladder(found.ladder)
    if found.ledger is not None:
        print_ledger(found.ledger)
    for note in found.notes:
        Console().print(Text(note, style="yellow"))
