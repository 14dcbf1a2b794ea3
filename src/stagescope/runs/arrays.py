"""Recorded arrays as Zarr v3: one JSON file of metadata and raw little-endian chunks along time.

The format is simple enough to write directly, and doing so gives what a run needs: each chunk is one file whose bytes are
synced and hashed before they count, and the bytes decoded are the bytes that were hashed. `zarr.open` and xarray read it.
"""

import json
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from stagescope.core.errors import DamagedRun, InputError, needed
from stagescope.core.spec import Json

_TYPES = {"float64": "<f8", "float32": "<f4", "int64": "<i8"}


@dataclass(frozen=True)
class Column:
    """One recorded array: shape of a frame, names of its axes (time first), its type, and whether chunks end with a CRC32C."""

    shape: tuple[int, ...]
    axes: tuple[str, ...]
    dtype: str = "float64"
    checksum: bool = False

    def __post_init__(self) -> None:
        if self.dtype not in _TYPES:
            raise InputError(f"an array of type {self.dtype} cannot be stored; convert it to {', '.join(_TYPES)}")

    @property
    def frame_bytes(self) -> int:
        return np.dtype(self.dtype).itemsize * math.prod(self.shape)


def metadata(columns: Mapping[str, Column], frames: int, chunk: int, clock: str) -> dict[str, bytes]:
    """Every zarr.json of a group of arrays by its path, the group's own with all of them inside (consolidated)."""
    bodies = {name: _array(column, frames, chunk) for name, column in columns.items()}
    inside = {"kind": "inline", "must_understand": False, "metadata": bodies}
    group = {"zarr_format": 3, "node_type": "group", "attributes": {"clock": clock}, "consolidated_metadata": inside}
    return {"zarr.json": _text(group), **{f"{name}/zarr.json": _text(body) for name, body in bodies.items()}}


def _array(column: Column, frames: int, chunk: int) -> Json:
    return {
        "zarr_format": 3,
        "node_type": "array",
        "shape": [frames, *column.shape],
        "data_type": column.dtype,
        "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [chunk, *column.shape]}},
        "chunk_key_encoding": {"name": "default", "configuration": {"separator": "/"}},
        "codecs": [{"name": "bytes", "configuration": {"endian": "little"}}, *([{"name": "crc32c"}] if column.checksum else [])],
        "fill_value": 0 if column.dtype == "int64" else "NaN",
        "dimension_names": list(column.axes),
        "attributes": {},
    }


def column_of(text: bytes, path: Path) -> Column:
    """The column that a zarr.json written here describes; any other is refused."""
    try:
        body = json.loads(text)
        shape, axes, checksum = body["shape"][1:], body["dimension_names"], len(body["codecs"]) > 1
        column = Column(tuple(shape), tuple(axes), body["data_type"], checksum)
        [frames, chunk] = body["shape"][0], body["chunk_grid"]["configuration"]["chunk_shape"][0]
        if body == _array(column, frames, chunk) and all(type(size) is int and size >= 0 for size in column.shape):
            return column
    except (ValueError, TypeError, KeyError, IndexError, AttributeError, RecursionError):
        pass
    raise DamagedRun(f"{path}: describes no array that Stagescope writes; restore it from a copy")


def chunk_name(column: Column, number: int) -> str:
    return "/".join(["c", str(number)] + ["0"] * len(column.shape))


def encode(column: Column, frames: list[Any], chunk: int) -> bytes:
    """A whole chunk; the last one of an array is filled up with the fill value, as the format asks."""
    block = np.full((chunk, *column.shape), 0 if column.dtype == "int64" else np.nan, dtype=_TYPES[column.dtype])
    block[: len(frames)] = np.stack(frames)
    data = block.tobytes()
    return data + crc32c()(data).to_bytes(4, "little") if column.checksum else data


def crc32c() -> Callable[[bytes], int]:
    """The checksum of Zarr's codec of this name; zarr brings it along."""
    return needed("google_crc32c", "xarray", "a checksum").value


def read(folder: Path, fetch: Callable[[str], bytes], frames: int, chunk: int) -> np.ndarray:
    """The first `frames` frames of an array; `fetch` gives the bytes of a file inside its folder."""
    column = column_of(fetch("zarr.json"), folder / "zarr.json")
    values = np.empty((frames, *column.shape), column.dtype)
    for number in range(-(-frames // chunk)):
        name = chunk_name(column, number)
        data = fetch(name)
        size = chunk * column.frame_bytes
        if len(data) != size + 4 * column.checksum:
            values, expected = f"{len(data):,} bytes", f"{size + 4 * column.checksum:,}"
            raise DamagedRun(f"{folder / name}: has {values}, expected {expected}; restore it from a copy")
        part = np.frombuffer(data[:size], dtype=_TYPES[column.dtype]).reshape(chunk, *column.shape)
        first = number * chunk
        values[first : first + chunk] = part[: frames - first]
    return values


def _text(body: Json) -> bytes:
    return (json.dumps(body, indent=2) + "\n").encode()
