"""`stagescope demo`: each study small, on screen."""

from pathlib import Path

from rich.console import Console
from rich.text import Text

from stagescope.cli.render import print_ladder, print_ledger, print_stages
from stagescope.reading import check, saddle_ladder, stages
from stagescope.studies.table import study

TOUR = (
    ("focus-dilution", "ref", "Gradient flow of one attention layer on a Markov chain of four tokens."),
    ("scan-snap", "syn-small-flow", "Gradient flow on two classes with ten common and ten distinct tokens each."),
    ("scan-snap", "syn-small-flow-10", "The same with the decoder ten times faster than attention: it ends less sparse."),
)


def demo(out: Path, quiet: bool = False) -> int:
    """Run the tour into `out`, replacing runs of an earlier tour."""
    console = Console()
    shown = False if quiet else None
    for name, preset, sentence in TOUR:
        console.rule(Text(f"{name}: {preset}"))
        console.print(Text(sentence))
        found = study(name)
        run = found.run(found.configured(preset), out=out / f"{name}-{preset}", overwrite=True, progress=shown)
        print_stages(stages(run))
        if name == "focus-dilution":
            print_ladder(saddle_ladder(run))
        print_ledger(check(run))
        console.print(Text(f"stored in {run.path}; look closer with `stagescope info {run.path}`\n", style="dim"))
    return 0
