"""Recorded arrays for other tools."""

from pathlib import Path

import numpy as np

from stagescope.errors import InputError
from stagescope.runs.files import replace, told
from stagescope.runs.run import Run

SUFFIX = {"npz": ".npz", "csv": ".csv", "netcdf": ".nc"}


def export(run: Run, to: str, out: Path | None = None, overwrite: bool = False) -> Path:
    """Write a run as npz, csv (series only) or netcdf; returns the file."""
    name = run.path.name if run.path is not None else "run"
    path = out or Path(name + SUFFIX[to])
    if path.exists() and not overwrite:
        raise InputError(f"{path} exists; choose another file, or --overwrite")
    with told(path):
        if to == "npz":
            import io

            buffer = io.BytesIO()
            np.savez_compressed(buffer, allow_pickle=False, **{**run.series, **run.params})
            replace(path, buffer.getvalue())
        elif to == "csv":
            rows = zip(*(values.tolist() for values in run.series.values()), strict=True)
            lines = [",".join(run.series), *(",".join(map(repr, row)) for row in rows)]
            replace(path, ("\n".join(lines) + "\n").encode())
        else:
            replace(path, bytes(run.to_xarray().to_netcdf(engine="scipy")))
    return path
