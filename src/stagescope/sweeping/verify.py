"""Check a stored sweep: its plan, its rows, its journal, and the runs that it kept."""

import os
from pathlib import Path

from stagescope.errors import NotARun, StoreError
from stagescope.runs.files import foreign
from stagescope.runs.store import verify
from stagescope.sweeping.plan import FILE, load_plan
from stagescope.sweeping.rows import Rows, misfits


def verify_sweep(folder: str | Path) -> list[str]:
    """One sentence for everything damaged, missing or foreign in a sweep; an empty list: it is as it was committed.

    A damaged row whose point was computed again is no problem any more. `table.csv` is not checked: each call of `sweep`
    writes it again from the rows.
    """
    folder = Path(folder)
    if not os.path.lexists(folder / FILE):
        load_plan(folder)  # says what is there instead
    problems = foreign(folder)
    try:
        plan, rows = load_plan(folder), Rows(folder).refresh()
    except StoreError as damage:
        return list(dict.fromkeys([*problems, str(damage)]))
    journal = rows.journal
    problems += [*rows.problems(), *misfits(rows, plan.axes), *journal.damaged]
    if plan.journal is not None and journal.size < plan.journal:
        problems.append(f"{journal.folder}: {plan.journal - journal.size} bytes that were committed are gone")
    kept = [] if (folder / "runs").is_symlink() else (folder / "runs").glob("[!.]*")
    for run in sorted(path for path in kept if not path.is_symlink()):
        problems += _kept(run)
    return list(dict.fromkeys(problems))


def _kept(run: Path) -> list[str]:
    """What is wrong with a run that was kept; a call that was killed leaves a hidden folder beside it, which is no run yet."""
    try:
        return verify(run)
    except NotARun as missing:
        return [str(missing)]
