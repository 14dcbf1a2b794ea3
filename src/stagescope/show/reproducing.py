"""Make the figures of a paper and its ledger from nothing."""

from collections.abc import Callable
from pathlib import Path

from stagescope.core.errors import InputError
from stagescope.core.progress import progress_for
from stagescope.readings.ledgers import ledgers, write_ledgers
from stagescope.readings.registry import study
from stagescope.sweeping.engine import sweep as compute
from stagescope.sweeping.table import load_sweep
from stagescope.views.figure import chosen, store
from stagescope.views.figure import reproduce as draw


def reproduce(
    paper: str,
    out: str | Path,
    figure: str | None = None,
    *,
    full: bool = False,
    quick: bool = False,
    sweep: str | Path | None = None,
    progress: bool | None = None,
    said: Callable[[str], None] = lambda sentence: None,
) -> list[Path]:
    """Make a paper's figures (PDF, SVG, PNG, numbers as JSON) and its ledger; returns the PNGs, and the ledger where it is made.

    Args:
        paper: a study, such as "scan-snap".
        out: folder for the figures.
        figure: one figure by name; default: all that take minutes, and the ledger.
        full: also figures that take an hour or more.
        quick: only figures that have a quick version, made from less and marked so; without the ledger.
        sweep: folder of a sweep to draw, for a figure of a sweep; default: made in `out`.
        progress: show bars; default: on a terminal.
        said: called with a sentence on every file, and on every figure that is left out.

    Returns:
        The figures as PNG, and the ledger where it is made.

    Examples:
        >>> sorted(ss.study("linear-icl").figures())  # the names of the figures
        ['heads', 'low-rank', 'merged', 'separate']
        >>> [file.name for file in ss.reproduce("linear-icl", "figures", "merged")]
        ['figure-merged.png']
    """
    out, figures = Path(out), study(paper).figures()
    to_make = chosen(figures, figure, full or quick)
    if quick:
        to_make = [one for one in to_make if one.quick is not None]
        if not to_make:
            raise InputError(f"no quick version of {figure or 'any figure'} of {paper}; leave out --quick")
    if sweep is not None and not (figure and to_make[0].sweep):
        names = ", ".join(name for name, one in figures.items() if one.sweep)
        raise InputError(f"--sweep is for a figure of a sweep, named with --figure; {paper} has: {names or 'none'}")
    files = []
    for one in to_make:
        if one.sweep is None:
            with progress_for(progress) as bar:
                files.append(draw(one, out, bar, quick))
        else:
            table = load_sweep(sweep) if sweep else compute(paper, one.sweep, out=out / f"sweep{one.name}", progress=progress)
            files.append(store(one, one.compute(table), out))
        said(f"{files[-1].with_suffix('')}.{{pdf,svg,png,json}}: {one.title}")
    if figure is not None or quick:
        return files
    with progress_for(progress) as bar:
        tables = ledgers(study(paper), bar)
    if path := write_ledgers(tables, out):
        files.append(path)
        said(f"{path}: which claim holds where")
    for name, one in figures.items():
        if one not in to_make:
            said(f"left out: figure {name} ({one.title}), {one.lacking or f'{one.cost}; add --full to make it'}")
    return files
