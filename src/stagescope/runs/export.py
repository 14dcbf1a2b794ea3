"""Recorded arrays for other tools."""

import csv
import io
import zipfile
from pathlib import Path

import numpy as np

from stagescope.errors import InputError
from stagescope.runs.files import check_target, publish
from stagescope.runs.run import Run
from stagescope.spreadsheet import cell

SUFFIX = {"npz": ".npz", "csv": ".csv", "netcdf": ".nc"}


def export(run: Run, to: str, out: Path | None = None, overwrite: bool = False) -> Path:
    """Write a run as npz, csv (series only) or netcdf; returns the file."""
    name = run.path.resolve().name if run.path is not None else "run"
    path = Path(out) if out is not None else Path(name + SUFFIX[to])
    _check_target(run, path, overwrite)
    publish(path, {"npz": _npz, "csv": _csv, "netcdf": lambda run: bytes(run.to_xarray().to_netcdf(engine="scipy"))}[to](run))
    return path


def _check_target(run: Run, path: Path, overwrite: bool) -> None:
    if path.is_dir():
        raise InputError(f"{path} is a folder; choose a file")
    if not path.parent.is_dir():
        raise InputError(f"{path.parent} is not a folder; make it first, or choose another file")
    if run.path is not None and path.resolve().is_relative_to(run.path.resolve()):
        raise InputError(f"{path} is inside the run; choose a file outside it, so that the run stays as it was committed")
    check_target(path)
    if path.exists() and not overwrite:
        raise InputError(f"{path} exists; choose another file, or --overwrite (in Python overwrite=True)")


def _npz(run: Run) -> bytes:
    """Written part by part, because a block may have a name that `np.savez` wants for itself, such as `file`."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, values in {**run.series, **run.params}.items():
            with archive.open(f"{name}.npy", "w", force_zip64=True) as part:
                np.lib.format.write_array(part, values, allow_pickle=False)
    return buffer.getvalue()


def _csv(run: Run) -> bytes:
    series = {name: values.tolist() for name, values in run.series.items() if values.ndim == 1}
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerow(map(cell, series))
    text.writelines(",".join(map(repr, row)) + "\n" for row in zip(*series.values(), strict=True))
    return text.getvalue().encode()
