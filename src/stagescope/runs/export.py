"""A run as a file for other tools: its recorded arrays, and what was derived from them."""

import csv
import io
import re
import zipfile
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from stagescope.core.errors import InputError, needed, printable, unknown
from stagescope.core.spreadsheet import cell
from stagescope.runs.files import check_target, publish
from stagescope.runs.run import Run

if TYPE_CHECKING:
    import xarray

SUFFIX = {"csv": ".csv", "npz": ".npz", "parquet": ".parquet", "netcdf": ".nc"}
WIDEST = 100
"""Numbers a frame of a derived array that a table has a column for each of: a matrix of ten by ten."""


@dataclass(frozen=True)
class Derived:
    """An array over the frames of a run that was not recorded but computed from it, such as attention.

    `values` has time first. `axes` are the names of its other axes and `labels` the names of the places on each. `frames` are
    the places in the run of its frames; None: every one. `title` says what it is.
    """

    name: str
    title: str
    values: np.ndarray
    axes: tuple[str, ...]
    labels: tuple[tuple[str, ...], ...]
    frames: np.ndarray | None = None

    @property
    def size(self) -> int:
        """Numbers a frame."""
        return int(np.prod(self.values.shape[1:]))

    def columns(self, frames: int) -> dict[str, np.ndarray]:
        """A column for each number, one row for each of the run's frames; nan at those that were left out."""
        places = np.arange(frames) if self.frames is None else self.frames
        by_name: dict[str, np.ndarray] = {}
        for place in np.ndindex(self.values.shape[1:]):
            column = np.full(frames, np.nan)
            column[places] = self.values[(slice(None), *place)]
            words = (
                names[i] if axis == "curve" else f"{axis} {names[i]}"
                for axis, names, i in zip(self.axes, self.labels, place, strict=True)
            )
            by_name[unique("/".join((self.name, *words)), by_name)] = column
        return by_name


def export(run: Run, to: str, out: str | Path | None = None, overwrite: bool = False, derived: Sequence[Derived] = ()) -> Path:
    """Write a run as csv or parquet (one row a frame), npz or netcdf (all arrays); returns the file."""
    writers = {"npz": _npz, "csv": _csv, "parquet": _parquet, "netcdf": _netcdf}
    if to not in writers:
        raise unknown("format of an export", to, writers)
    path = target(run, out, SUFFIX[to], overwrite)
    publish(path, writers[to](run, derived))
    return path


def columns(run: Run, derived: Iterable[Derived] = ()) -> dict[str, np.ndarray]:
    """One row a frame: the clock, the recorded series of numbers, and the derived arrays that are not wider than a table."""
    by_name = {name: values for name, values in run.series.items() if values.ndim == 1}
    for array in derived:
        if array.size <= WIDEST:
            by_name |= {unique(name, by_name): values for name, values in array.columns(run.frames).items()}
    return by_name


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


def unique(name: str, taken: Collection[Any]) -> str:
    """A name that is not taken: itself, or with the first number from 2 on that makes it free."""
    return name if name not in taken else next(free for k in count(2) if (free := f"{name}_{k}") not in taken)


def _netcdf(run: Run, derived: Sequence[Derived]) -> bytes:
    """The format has no whole numbers of 64 bits: where 32 are too few, they are written as float64, exact up to 2^53."""
    data = dataset(run, derived)
    integers = {name: values for name, values in data.variables.items() if values.dtype.kind == "i"}
    large = [name for name, values in integers.items() if np.any((values < -(2**31)) | (values >= 2**31))]
    return bytes(data.assign({name: data[name].astype(float) for name in large}).to_netcdf(engine="scipy"))


def dataset(run: Run, derived: Iterable[Derived] = ()) -> "xarray.Dataset":
    """Recorded and derived arrays with named axes; those of derived ones have their labels as coordinates."""
    data = run.to_xarray()
    for array in derived:
        name = unique(re.sub(r"\W", "_", array.name), {*data.variables, *data.dims})
        dims = [unique(f"{name}_{re.sub(r'[^0-9A-Za-z]+', '_', axis)}", data.dims) for axis in array.axes]
        time = run.clock if array.frames is None else f"{name}_{run.clock}"
        labels: dict[str, Any] = {dim: [printable(text) for text in names] for dim, names in zip(dims, array.labels, strict=True)}
        if array.frames is not None:
            labels[time] = run.time[array.frames]
        data = data.assign_coords(labels).assign({name: ((time, *dims), array.values, {"long_name": printable(array.title)})})
    return data


def _npz(run: Run, derived: Sequence[Derived]) -> bytes:
    """Written part by part, because a block may have a name that `np.savez` wants for itself, such as `file`.

    A derived array has beside it NAME/AXIS, the labels of each of its axes, and NAME/frames where it has not all frames.
    """
    arrays = {**run.series, **run.params}
    for array in derived:
        name = unique(array.name, arrays)
        arrays[name] = array.values
        arrays |= {f"{name}/{axis}": np.array(names) for axis, names in zip(array.axes, array.labels, strict=True)}
        arrays |= {} if array.frames is None else {f"{name}/frames": array.frames}
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, values in arrays.items():
            with archive.open(f"{name}.npy", "w", force_zip64=True) as part:
                np.lib.format.write_array(part, values, allow_pickle=False)
    return buffer.getvalue()


def _csv(run: Run, derived: Sequence[Derived]) -> bytes:
    series = {name: values.tolist() for name, values in columns(run, derived).items()}
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerow(map(cell, series))
    text.writelines(",".join(map(repr, row)) + "\n" for row in zip(*series.values(), strict=True))
    return text.getvalue().encode()


def _parquet(run: Run, derived: Sequence[Derived]) -> bytes:
    arrow = needed("pyarrow", "parquet", "an export to parquet")
    table = arrow.table({name: np.ascontiguousarray(values) for name, values in columns(run, derived).items()})
    facts = {"clock": run.clock, "status": run.status, "study": printable(run.study or "")}
    buffer = io.BytesIO()
    needed("pyarrow.parquet", "parquet", "an export to parquet").write_table(table.replace_schema_metadata(facts), buffer)
    return buffer.getvalue()
