"""Check a stored sweep: its plan, its rows, its journal, and the runs that it kept."""

from pathlib import Path

from stagescope.errors import NotARun, StoreError
from stagescope.runs.store import verify
from stagescope.sweeping.plan import FILE, load_plan
from stagescope.sweeping.rows import Rows, misfits


def verify_sweep(folder: str | Path) -> list[str]:
    """One sentence for everything damaged or missing in a sweep; an empty list means that it is as it was committed.

    A damaged row whose point was computed again is no problem any more. `table.csv` is not checked: each call of `sweep`
    writes it again from the rows.
    """
    folder = Path(folder)
    try:
        plan = load_plan(folder)
    except NotARun as damage:
        if not (folder / FILE).is_file():
            raise
        return [str(damage)]
    try:
        rows = Rows(folder).refresh()
    except StoreError as damage:
        return [str(damage)]
    journal = rows.journal
    problems = [*rows.problems(), *misfits(rows, plan.axes), *journal.damaged]
    if plan.journal is not None and journal.size < plan.journal:
        problems.append(f"{journal.folder}: {plan.journal - journal.size} bytes that were committed are gone")
    for run in sorted(path.parent for path in (folder / "runs").glob("*/manifest.json")):
        problems += verify(run)
    return problems
