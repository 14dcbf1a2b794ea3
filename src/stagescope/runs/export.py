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
    path = target(run, out, SUFFIX[to], overwrite)
    publish(path, {"npz": _npz, "csv": _csv, "netcdf": _netcdf}[to](run))
    return path


def target(run: Run, out: Path | str | None, suffix: str, overwrite: bool) -> Path:
    """The file that an export of a run goes to, by default the run's name with a suffix; one that will not do is refused."""
    path = outside(run, out, suffix)
    if path.is_dir():
        raise InputError(f"{path} is a folder; choose a file")
    check_target(path)
    if path.exists() and not overwrite:
        raise InputError(f"{path} exists; choose another file, or --overwrite (in Python overwrite=True)")
    return path


def outside(run: Run, out: Path | str | None, suffix: str) -> Path:
    """A place in an existing folder that is not the run's own: an export never changes the run."""
    name = run.path.resolve().name if run.path is not None else "run"
    path = Path(out) if out is not None else Path(name + suffix)
    if not path.parent.is_dir():
        raise InputError(f"{path.parent} is not a folder; make it first, or choose another place")
    if run.path is not None and path.resolve().is_relative_to(run.path.resolve()):
        raise InputError(f"{path} is inside the run; choose a place outside it, so that the run stays as it was committed")
    return path


def _netcdf(run: Run) -> bytes:
    """The format has no whole numbers of 64 bits: where 32 are too few, they are written as float64, exact up to 2^53."""
    data = run.to_xarray()
    whole = {name: values for name, values in data.variables.items() if values.dtype.kind == "i"}
    large = [name for name, values in whole.items() if np.any((values < -(2**31)) | (values >= 2**31))]
    return bytes(data.assign({name: data[name].astype(float) for name in large}).to_netcdf(engine="scipy"))


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
