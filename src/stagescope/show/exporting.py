"""Write a run for other tools: the arrays that were recorded, and those that its paper derives from them."""

from collections.abc import Callable
from pathlib import Path

from stagescope.core.errors import InputError, unknown
from stagescope.readings.reading import reading
from stagescope.runs import export as files
from stagescope.runs.run import Run
from stagescope.runs.store import load
from stagescope.watching.logs import notes, to_json_lines, to_tensorboard

SCALARS = {"jsonl": to_json_lines, "tensorboard": to_tensorboard}
FORMATS = (*files.SUFFIX, *SCALARS)


def export(
    run: Run | str | Path,
    to: str,
    out: str | Path | None = None,
    *,
    derived: bool = False,
    overwrite: bool = False,
    said: Callable[[str], None] = lambda note: None,
) -> Path:
    """Write a run as one file for other tools; returns the file.

    Args:
        run: a run or its folder.
        to: "csv" or "parquet", one row a frame; "npz" or "netcdf", all arrays; "jsonl" or "tensorboard", scalars. Parquet needs
            the extra `stagescope[parquet]`, netcdf `stagescope[xarray]`.
        out: the file, for tensorboard a folder; default: the run's name with the suffix of the format.
        derived: also what the views of the run show, as arrays: attention, singular values, entropies, masses and whatever else
            its paper derives. A table has those of up to 100 numbers a frame.
        overwrite: replace an existing file.
        said: called with what a reader of the file should know.

    Returns:
        The file.

    Examples:
        >>> ss.export(run, "csv", "run.csv").name
        'run.csv'
    """
    if to not in FORMATS:
        raise unknown("format of an export", to, FORMATS)
    stored_run = run if isinstance(run, Run) else load(run)
    if to in SCALARS:
        if derived:
            formats = ", ".join(name for name in FORMATS if name not in SCALARS)
            raise InputError(f"{to} holds the scalars of a run and no derived curves; choose one of: {formats}")
        path, messages = SCALARS[to](stored_run, out, overwrite), notes(stored_run)
    else:
        read = reading(stored_run) if derived else None
        derived_arrays = () if read is None else read.derived
        wide = [
            derived_array.name
            for derived_array in derived_arrays
            if derived_array.size > files.WIDEST and to in ("csv", "parquet")
        ]
        messages = [f"too wide for a table, so not written (npz and netcdf have them): {', '.join(wide)}"] if wide else []
        path, messages = (
            files.export(stored_run, to, out, overwrite, derived_arrays),
            [*messages, *(() if read is None else read.failed_views)],
        )
    for note in messages:
        said(note)
    return path
