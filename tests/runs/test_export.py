"""Exports come back as they went out, and overwrite nothing by accident."""

import csv
import warnings

import numpy as np
import pytest
import xarray

from stagescope.core.errors import InputError, StoreError
from stagescope.runs.export import SUFFIX, export
from stagescope.runs.run import Arrays, Run
from stagescope.runs.store import load, verify
from tests.runs import samples


@pytest.fixture
def run(tmp_path):
    return load(samples.finished(tmp_path / "run"))


def stepped() -> Run:
    """A run with whole numbers, a block of an awkward name, and numbers that need all their digits."""
    series = {"step": np.array([0, 1, 2**53]), "loss": np.array([0.1, 1 / 3, 5e-324])}
    params = {"file": np.random.default_rng(0).normal(size=(3, 2))}
    axes = {"step": ("step",), "loss": ("step",), "file": ("step", "file_0")}
    return Run(Arrays.of(params), Arrays.of(series), samples.SPEC, clock="step", status="finished", axes=axes)


@pytest.mark.parametrize("source", ["stored", "stepped"])
def test_npz_round_trip(tmp_path, run, source):
    run = run if source == "stored" else stepped()
    path = export(run, "npz", tmp_path / "out.npz")
    with np.load(path, allow_pickle=False) as found:
        assert set(found.files) == {*run.series, *run.params}
        for name, values in {**run.series, **run.params}.items():
            assert found[name].dtype == values.dtype
            np.testing.assert_array_equal(found[name], values)


@pytest.mark.parametrize("source", ["stored", "stepped"])
def test_csv_round_trip(tmp_path, run, source):
    run = run if source == "stored" else stepped()
    with open(export(run, "csv", tmp_path / "out.csv"), newline="") as file:
        header, *rows = csv.reader(file)
    assert header == list(run.series)
    assert header[0] == run.clock
    for column, name in enumerate(header):
        found = np.array([row[column] for row in rows]).astype(run.series[name].dtype)
        np.testing.assert_array_equal(found, run.series[name])


def test_a_name_in_a_csv_is_never_a_formula(tmp_path, run):
    odd = {**stepped().series, "=1+1": np.zeros(3), "a,b": -np.ones(3)}
    made = Run(Arrays.of({}), Arrays.of(odd), samples.SPEC, clock="step", status="finished", axes=dict.fromkeys(odd, ("step",)))
    with open(export(made, "csv", tmp_path / "out.csv"), newline="") as file:
        header, first, *_ = csv.reader(file)
    assert header == ["step", "loss", "'=1+1", "a,b"]
    assert first[-1] == "-1.0"


def test_netcdf_round_trip(tmp_path, run):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        path = export(run, "netcdf", tmp_path / "out.nc")
        with xarray.open_dataset(path, engine="scipy") as found:
            xarray.testing.assert_equal(found.load(), run.to_xarray())
            assert found.attrs["clock"] == "t"


def test_netcdf_of_steps_beyond_32_bits(tmp_path):
    with xarray.open_dataset(export(stepped(), "netcdf", tmp_path / "out.nc"), engine="scipy") as found:
        np.testing.assert_array_equal(found["step"].values, stepped().step)
        np.testing.assert_array_equal(found["loss"].values, stepped().series["loss"])


WATCHED: dict[str, tuple[tuple[str, ...], tuple[int, ...]]] = {
    "loss": ((), ()),
    "entropy": (("layer", "head"), (2, 4)),
    "score_values": (("layer", "head", "value"), (2, 4, 8)),
    "embedding_values": (("value",), (32,)),
    "agreement": (("layer", "head", "head"), (2, 4, 4)),
    "type_mass": (("layer", "head", "type"), (2, 4, 33)),
    "type": (("type",), (33,)),
    "W": (("head", "value_W"), (3, 5)),
    "value": (("W_value", "value"), (5, 8)),
}
"""Series of a watched run and two blocks: equal names of axes with other sizes, twice in one array, and as names of arrays."""


def watched(frames: int = 3) -> Run:
    rng = np.random.default_rng(3)
    arrays = {name: rng.normal(size=(frames, *shape)).astype(np.float32) for name, (_, shape) in WATCHED.items()}
    params = {name: arrays.pop(name) for name in ("W", "value")}
    spec = {**dict.fromkeys(("field", "until", "dynamics", "record", "stop")), "source": {"kind": "watched"}}
    return Run(
        params=Arrays.of(params),
        series=Arrays.of({"step": np.arange(frames) * 10, **arrays}),
        spec={**spec, "blocks": {name: list(values.shape[1:]) for name, values in params.items()}},
        clock="step",
        status="finished",
        axes={"step": ("step",), **{name: ("step", *axes) for name, (axes, _) in WATCHED.items()}},
    )


@pytest.mark.parametrize("stored", [True, False])
def test_axes_of_one_name_and_several_sizes(tmp_path, stored):
    run = load(watched().save(tmp_path / "run").path) if stored else watched()
    found = run.to_xarray()
    dims = {str(name): values.dims[1:] for name, values in found.variables.items() if name != "step"}
    assert dims == {
        "loss": (),
        "entropy": ("layer", "head"),
        "score_values": ("layer", "head", "score_values_value"),
        "embedding_values": ("embedding_values_value",),
        "agreement": ("layer", "head", "agreement_head"),
        "type_mass": ("layer", "head", "type_mass_type"),
        "type": ("type_type",),
        "W": ("W_head", "value_W"),
        "value": ("W_value", "value_value"),
    }
    for name, values in {**run.series, **run.params}.items():
        assert found[name].dtype == values.dtype
        np.testing.assert_array_equal(found[name].values, values)
    assert float(found["entropy"].sel(step=20)[1, 2]) == run.series["entropy"][2, 1, 2]


def test_such_a_run_is_exported_in_every_form(tmp_path):
    run = watched()
    with xarray.open_dataset(export(run, "netcdf", tmp_path / "run.nc"), engine="scipy") as found:
        xarray.testing.assert_equal(found.load(), run.to_xarray())
        assert found["agreement"].dtype == np.float32
    with np.load(export(run, "npz", tmp_path / "run.npz"), allow_pickle=False) as found:
        assert {name: found[name].shape for name in found.files} == {n: v.shape for n, v in {**run.series, **run.params}.items()}
    with open(export(run, "csv", tmp_path / "run.csv"), newline="") as file:
        header, *rows = csv.reader(file)
    assert header == ["step", "loss"]
    np.testing.assert_array_equal(np.array([row[1] for row in rows], np.float32), run.series["loss"])


def test_an_unfinished_run_can_be_exported(tmp_path):
    run = load(samples.unfinished(tmp_path / "run", frames=8))
    with np.load(export(run, "npz", tmp_path / "out.npz"), allow_pickle=False) as found:
        np.testing.assert_array_equal(found["W"], samples.stacked(8)["W"])


def test_the_default_name_is_that_of_the_run(tmp_path, run, monkeypatch):
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    for to, suffix in SUFFIX.items():
        assert export(run, to).name == f"run{suffix}"
    assert export(stepped(), "csv", overwrite=True).name == "run.csv"


def test_an_existing_file_is_replaced_only_if_asked(tmp_path, run):
    path = tmp_path / "out.csv"
    path.write_text("mine")
    with pytest.raises(InputError, match=r"exists; choose another file, or --overwrite \(in Python overwrite=True\)"):
        export(run, "csv", path)
    assert path.read_text() == "mine"
    export(run, "csv", path, overwrite=True)
    assert path.read_text().startswith("t,loss\n")


def test_places_that_will_not_do(tmp_path, run):
    with pytest.raises(InputError, match="is a folder; choose a file"):
        export(run, "csv", tmp_path, overwrite=True)
    with pytest.raises(InputError, match="nowhere is not a folder; make it first"):
        export(run, "csv", tmp_path / "nowhere/out.csv")
    with pytest.raises(InputError, match="is inside the run"):
        export(run, "csv", tmp_path / "run/manifest.json", overwrite=True)
    assert verify(tmp_path / "run") == []


def test_a_full_disk_leaves_the_old_file(tmp_path, run, monkeypatch):
    path = tmp_path / "out.csv"
    path.write_text("mine")

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", full)
    with pytest.raises(StoreError, match="the disk is full"):
        export(run, "csv", path, overwrite=True)
    assert path.read_text() == "mine"
