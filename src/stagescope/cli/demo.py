"""`stagescope demo`: a study of each paper, small, on screen, and all of them on one page."""

from pathlib import Path

from rich.console import Console
from rich.text import Text

from stagescope.cli.answers import open_page
from stagescope.cli.render import print_ladder, print_ledger, print_stages
from stagescope.papers.registry import study
from stagescope.reporting.portrait import portrait
from stagescope.reporting.report import write
from stagescope.views.view import Portrait

TOUR = (
    ("focus-dilution", "ref", "Gradient flow of one attention layer on a Markov chain of four tokens."),
    ("scan-snap", "syn-small-flow", "Gradient flow on two classes with ten common and ten distinct tokens each."),
    ("scan-snap", "syn-small-flow-10", "The same with the decoder ten times faster than attention: it ends less sparse."),
    ("incremental", "ode-mirror", "Flow of three heads over forty positions: each finds its own, the largest gain first."),
)
TITLE = "How attention learns: a tour of three papers"


def demo(out: Path, quiet: bool = False, show: bool = False) -> int:
    """Run the tour into `out`, replacing runs and the report of an earlier tour; `show` opens the report."""
    console = Console()
    portraits = []
    for name, preset, sentence in TOUR:
        console.rule(Text(f"{name}: {preset}"))
        console.print(Text(sentence))
        found = study(name)
        place = out / f"{name}-{preset}"
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
