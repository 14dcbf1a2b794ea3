"""The chunk layout: encode and read are inverse, and it is Zarr v3 as zarr and xarray understand it."""

import json
import sys
import warnings
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import xarray
import zarr
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import stagescope as ss
from stagescope.core.errors import DamagedRun, InputError
from stagescope.runs import arrays
from stagescope.runs.arrays import Column
from stagescope.runs.writer import Writer
from tests.runs import samples

SHAPES = hnp.array_shapes(min_dims=0, max_dims=3, min_side=1, max_side=4)


def write(folder, columns, values, chunk, clock="t"):
    """A group of arrays as the writer lays it out; returns the number of frames."""
    frames = len(values[clock])
    texts = arrays.metadata(columns, frames, chunk, clock)
    for place, text in texts.items():
        (folder / place).parent.mkdir(parents=True, exist_ok=True)
        (folder / place).write_bytes(text)
    for name, column in columns.items():
        for number in range(-(-frames // chunk)):
            path = folder / name / arrays.chunk_name(column, number)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(arrays.encode(column, list(values[name][number * chunk : (number + 1) * chunk]), chunk))
    return frames


def fetch_from(folder):
    return lambda part: (folder / part).read_bytes()


@st.composite
def groups(draw):
    shape = draw(SHAPES)
    frames = draw(st.integers(1, 9))
    kind = draw(st.sampled_from(["float64", "float32"]))
    numbers = st.floats(allow_nan=False, width=64 if kind == "float64" else 32)
    block = draw(hnp.arrays(np.dtype(kind), (frames, *shape), elements=numbers))
    clock = draw(st.sampled_from(["t", "step"]))
    dtype = "int64" if clock == "step" else "float64"
    times = np.arange(frames).astype(dtype)
    axes = (clock, *(f"W_{i}" for i in range(len(shape))))
    columns = {clock: Column((), (clock,), dtype), "W": Column(shape, axes, kind, draw(st.booleans()))}
    return columns, {clock: times, "W": block}, draw(st.integers(1, 10)), clock


@given(groups())
def test_read_is_the_inverse_of_encode(tmp_path_factory, group):
    columns, values, chunk, clock = group
    folder = tmp_path_factory.mktemp("arrays")
    frames = write(folder, columns, values, chunk, clock)
    for name, expected in values.items():
        found = arrays.read(folder, fetch_from(folder / name), frames, chunk)
        assert found.dtype == expected.dtype
        assert found.shape == expected.shape
        assert found.tobytes() == expected.tobytes()


@given(groups())
def test_zarr_and_xarray_read_it_without_a_warning(tmp_path_factory, group):
    columns, values, chunk, clock = group
    folder = tmp_path_factory.mktemp("arrays")
    write(folder, columns, values, chunk, clock)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        opened = zarr.open_group(folder, mode="r")
        dataset = xarray.open_zarr(folder).load()
    assert opened.attrs["clock"] == clock
    for name, expected in values.items():
        np.testing.assert_array_equal(np.asarray(opened[name]), expected)
        np.testing.assert_array_equal(dataset[name].values, expected)
        assert dataset[name].dims == columns[name].axes


def test_fewer_frames_than_stored_can_be_read(tmp_path):
    values = {"t": np.arange(7.0)}
    write(tmp_path, {"t": Column((), ("t",))}, values, chunk=3)
    for frames in range(8):
        np.testing.assert_array_equal(arrays.read(tmp_path, fetch_from(tmp_path / "t"), frames, 3), values["t"][:frames])


def test_metadata_describes_its_column():
    column = Column((2, 3), ("t", "query", "key"))
    texts = arrays.metadata({"Z": column}, frames=5, chunk=2, clock="t")
    assert arrays.column_of(texts["Z/zarr.json"], Path("Z")) == column
    inside = json.loads(texts["zarr.json"])["consolidated_metadata"]["metadata"]["Z"]
    assert inside == json.loads(texts["Z/zarr.json"])
    assert inside["shape"] == [5, 2, 3]
    assert arrays.chunk_name(column, 4) == "c/4/0/0"
    assert arrays.chunk_name(Column((), ("t",)), 4) == "c/4"


def test_the_last_chunk_is_filled_up(tmp_path):
    """The format asks for whole chunks, so a short one ends in the fill value."""
    floats = np.frombuffer(arrays.encode(Column((), ("t",)), [1.0, 2.0], 4))
    np.testing.assert_array_equal(floats, [1.0, 2.0, np.nan, np.nan])
    whole = np.frombuffer(arrays.encode(Column((), ("step",), "int64"), [1, 2], 3), dtype=np.int64)
    np.testing.assert_array_equal(whole, [1, 2, 0])


def test_a_chunk_of_the_wrong_size_is_an_error(tmp_path):
    write(tmp_path, {"t": Column((), ("t",))}, {"t": np.arange(3.0)}, chunk=3)
    (tmp_path / "t/c/0").write_bytes(b"\0" * 16)
    with pytest.raises(DamagedRun, match="c/0: has 16 bytes, expected 24"):
        arrays.read(tmp_path / "t", fetch_from(tmp_path / "t"), 3, 3)


@pytest.mark.parametrize(
    "text", ["", "[]", "{}", "[" * 9999, '"shape"', '{"shape": [3], "data_type": "float64", "dimension_names": ["t"]}']
)
def test_an_odd_zarr_json_is_an_error(text):
    with pytest.raises(DamagedRun, match=r"t/zarr.json: describes no array that Stagescope writes"):
        arrays.column_of(text.encode(), Path("t/zarr.json"))


@pytest.mark.parametrize(
    ("part", "value"),
    [
        ("shape", [3, 10**9, 10**9]),
        ("shape", [3, -1]),
        ("shape", [3, 2.5]),
        ("shape", [3, "2"]),
        ("codecs", []),
        ("data_type", "bool"),
    ],
)
def test_an_odd_part_of_zarr_json_is_an_error(part, value):
    body = json.loads(arrays.metadata({"W": Column((2,), ("t", "W_0"))}, 3, 3, "t")["W/zarr.json"])
    with pytest.raises(DamagedRun, match="describes no array"):
        arrays.column_of(json.dumps({**body, part: value}).encode(), Path("W/zarr.json"))


@pytest.mark.parametrize(("shape", "size"), [((), 8), ((3,), 24), ((2, 5), 80), ((0,), 0)])
def test_bytes_of_a_frame(shape, size):
    assert Column(shape, ("t", *shape)).frame_bytes == size
    assert Column(shape, ("t", *shape), "float32").frame_bytes == size / 2


@pytest.mark.parametrize("kind", ["float16", "int32", "complex128", "object"])
def test_other_types_are_refused(kind):
    with pytest.raises(InputError, match=f"type {kind} cannot be stored; convert it to float64, float32, int64"):
        Column((), ("t",), kind)


def test_a_plain_zarr_reader_sees_a_flipped_byte(tmp_path):
    """Without the checksum it serves the damaged number; our own readers see it either way."""
    options = {"until": 1.0, "frames": 20, "progress": False}
    whole = ss.run_study("scan-snap", out=tmp_path / "plain", **options)
    ss.run_study("scan-snap", out=tmp_path / "checked", checksum=True, **options)
    for name in ("plain", "checked"):
        path = tmp_path / name / "data.zarr/loss/c/0"
        opened = zarr.open_group(tmp_path / name / "data.zarr", mode="r")
        np.testing.assert_array_equal(np.asarray(opened["loss"]), whole.series["loss"])
        np.testing.assert_array_equal(ss.load(tmp_path / name).series["loss"], whole.series["loss"])
        assert ss.verify(tmp_path / name) == []
        data = path.read_bytes()
        path.write_bytes(bytes([data[0] ^ 1]) + data[1:])
        assert ss.verify(tmp_path / name)
        if name == "plain":
            assert np.asarray(opened["loss"])[0] != whole.series["loss"][0]
        else:
            with pytest.raises(ValueError, match="checksum do not match"):
                np.asarray(opened["loss"])


def test_a_run_with_checksums_goes_on_with_them(tmp_path):
    """The columns of a run that is reopened are those of its zarr.json."""
    columns = {name: replace(column, checksum=True) for name, column in samples.COLUMNS.items()}

    def begin(writer):
        for i in range(4):
            writer.frame(samples.frame(i))
        writer.commit(samples.state(4))

    Writer.create(tmp_path / "run", samples.manifest(10, 3), columns, begin).close()
    writer, _ = Writer.reopen(tmp_path / "run")
    for i in range(4, 10):
        writer.frame(samples.frame(i))
    writer.finish("finished", "", samples.state(10))
    opened = zarr.open_group(tmp_path / "run/data.zarr", mode="r")
    for name, values in samples.stacked(10).items():
        np.testing.assert_array_equal(np.asarray(opened[name]), values)
        np.testing.assert_array_equal({**(run := ss.load(tmp_path / "run")).series, **run.params}[name], values)


def test_checksums_need_a_folder_and_a_package(tmp_path, monkeypatch):
    with pytest.raises(InputError, match="give out=FOLDER"):
        ss.run_study("scan-snap", checksum=True, progress=False)
    monkeypatch.setitem(sys.modules, "google_crc32c", None)
    with pytest.raises(InputError, match=r"pip install 'stagescope\[xarray\]'"):
        ss.run_study("scan-snap", checksum=True, out=tmp_path / "run", progress=False)
    assert not (tmp_path / "run").exists()
