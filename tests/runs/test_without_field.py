"""A run that was recorded elsewhere: no field, no dynamics, maybe no parameters and no seed."""

import csv

import numpy as np
import pytest
import xarray

import stagescope as ss
from stagescope.cli.command import info
from stagescope.cli.main import run as command
from stagescope.runs import files, store
from stagescope.runs.export import export
from stagescope.runs.manifest import read as read_manifest
from stagescope.runs.run import Arrays, Run
from stagescope.runs.writer import Writer

FRAMES = 4
SOURCE = {"kind": "arrays", "program": "train.py", "checkpoints": [0, 100, 200, 300]}
NOTHING = dict.fromkeys(("field", "until", "dynamics", "record", "stop"))
LOSS = np.array([3.0, 2.5, 1.0, 0.5], np.float32)
MAPS = np.arange(FRAMES * 6, dtype=np.float32).reshape(FRAMES, 2, 3)
WEIGHTS = np.linspace(0, 1, FRAMES * 5, dtype=np.float32).reshape(FRAMES, 5)


def recorded(with_params: bool) -> Run:
    """Loss, attention maps that are no parameters and, where asked for, one block of parameters."""
    params = {"W": WEIGHTS} if with_params else {}
    axes = {"step": ("step",), "loss": ("step",), "maps": ("step", "query", "key"), "W": ("step", "W_0")}
    return Run(
        params=Arrays.of(params),
        series=Arrays.of({"step": np.arange(FRAMES) * 100, "loss": LOSS, "maps": MAPS}),
        spec={**NOTHING, "source": SOURCE, "blocks": {"W": [5]} if with_params else {}},
        clock="step",
        status="finished",
        seed=None,
        axes={name: axes[name] for name in ("step", "loss", "maps", *params)},
    )


@pytest.fixture(params=[True, False], ids=["with parameters", "without"])
def run(request, tmp_path):
    return recorded(request.param).save(tmp_path / "run")


def test_it_comes_back_as_it_was(run):
    assert ss.verify(run.path) == []
    found = ss.load(run.path)
    assert (found.spec, found.seed, found.status, found.clock) == (run.spec, None, "finished", "step")
    assert list(found.params) == list(run.params)
    assert list(found.series) == ["step", "loss", "maps"]
    for name, values in {**run.series, **run.params}.items():
        again = {**found.series, **found.params}[name]
        assert again.dtype == values.dtype
        assert again.tobytes() == values.tobytes()
    assert found.config_digest == read_manifest(run.path).config_digest == run.config_digest


def test_what_is_said_of_it(run):
    found = info(ss.load(run.path))
    assert (found["field"], found["dynamics"], found["seed"]) == (None, None, None)
    assert found["source"] == SOURCE
    assert found["last"] == {"step": 300.0, "loss": 0.5}
    assert "arrays: 4 frames to step=300, finished" in repr(run)


def test_other_tools_get_its_arrays(run, tmp_path):
    found = ss.load(run.path)
    with np.load(export(found, "npz", tmp_path / "run.npz")) as arrays:
        assert arrays["maps"].dtype == np.float32
        np.testing.assert_array_equal(arrays["maps"], MAPS)
    rows = list(csv.DictReader(export(found, "csv", tmp_path / "run.csv").read_text().splitlines()))
    assert [list(map(float, row.values())) for row in rows] == [[100.0 * i, float(LOSS[i])] for i in range(FRAMES)]
    with xarray.open_dataset(export(found, "netcdf", tmp_path / "run.nc")) as dataset:
        assert dataset["maps"].dims == ("step", "query", "key")
        np.testing.assert_array_equal(dataset["maps"].values, MAPS)
    dataset = xarray.open_zarr(run.path / "data.zarr").load()
    assert dataset["loss"].dtype == np.float32
    np.testing.assert_array_equal(dataset["loss"].values, LOSS)


@pytest.mark.parametrize("words", [["info"], ["verify"], ["info", "--json"]])
def test_commands_on_it(run, words, capsys):
    assert command([words[0], str(run.path), *words[1:]]) == 0
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize("words", ["check", "ladder"])
def test_what_needs_a_paper_or_a_law_says_so(run, words, capsys):
    assert command([words, str(run.path)]) == 2
    assert len(capsys.readouterr().err.strip().splitlines()) == 1


def test_one_that_was_cut_short_can_be_read_and_not_resumed(run):
    """Its recorder was killed: only that program could go on."""
    path = run.path / "manifest.json"
    manifest = read_manifest(run.path).model_copy(update={"status": "running"})
    path.write_bytes(manifest.text())
    found = store.load(run.path)
    assert found.status == "interrupted"
    assert "only the program that recorded it" in found.reason
    assert not files.locked(run.path)
    with pytest.raises(ss.InputError, match="has no law of motion: it was recorded elsewhere"):
        ss.resume(run.path)
    again, _ = Writer.reopen(run.path)
    again.close()
