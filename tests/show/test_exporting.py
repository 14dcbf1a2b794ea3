"""Exports with what the views of a run derive: every format has the numbers that a second computation from the blocks gives."""

import csv
import sys

import numpy as np
import pandas
import pytest
import xarray
from pyarrow import parquet

import stagescope as ss
from stagescope.core.errors import InputError
from stagescope.views.any_run import derived
from stagescope.views.view import Curve, Curves, Matrices, Points
from tests.runs.samples import memory_run
from tests.show.runs import small


@pytest.fixture(scope="module")
def run():
    return small("token")


def attention(run) -> np.ndarray:
    """Of the model of the paper, from its blocks: pi_j exp(score_ij) with rows that sum to one, by hand."""
    W0, WQ, WK = (run.params[name] for name in ("W0", "WQ", "WK"))
    scores = run.config["scale"] * (W0 @ WQ) @ np.swapaxes(W0 @ WK, 1, 2)
    weights = np.asarray(run.config["pi"]) * np.exp(scores)
    return weights / weights.sum(axis=2, keepdims=True)


def values_of(run) -> dict[str, np.ndarray]:
    """Columns of the table and what they must be, each by a way that the views do not use."""
    seen = attention(run)
    singular = np.linalg.svd(run.params["W0"], compute_uv=False)
    return {
        "loss": run.series["loss"],
        "attention/query 1/key 0": seen[:, 1, 0],
        "focus/query 2": seen[:, 2, 0],
        "entropy/query 1": -(seen[:, 1] * np.log(seen[:, 1])).sum(axis=1),
        "embedding-values/1": singular[:, 0],
        "norms/W1": np.sqrt((run.params["W1"] ** 2).sum(axis=(1, 2))),
    }


def read(path, to: str) -> dict[str, np.ndarray]:
    if to == "csv":
        with open(path, newline="") as file:
            header, *rows = csv.reader(file)
        return {name: np.array([float(row[i]) for row in rows]) for i, name in enumerate(header)}
    return {name: column.to_numpy() for name, column in zip(*_columns(parquet.read_table(path)), strict=True)}


def _columns(table):
    return table.column_names, table.columns


@pytest.mark.parametrize("to", ["csv", "parquet"])
def test_a_table_has_the_derived_curves(run, tmp_path, to):
    found = read(ss.export(run, to, tmp_path / "run.table", derived=True), to)
    assert list(found)[:2] == ["t", "loss"]
    for name, values in values_of(run).items():
        np.testing.assert_allclose(found[name], values, rtol=1e-9, atol=1e-12, err_msg=name)
    recorded = read(ss.export(run, to, tmp_path / "recorded", overwrite=True), to)
    assert list(recorded) == [name for name, values in run.series.items() if values.ndim == 1]


def test_npz_has_arrays_with_their_labels(run, tmp_path):
    with np.load(ss.export(run, "npz", tmp_path / "run.npz", derived=True), allow_pickle=False) as found:
        np.testing.assert_array_equal(found["W0"], run.params["W0"])
        np.testing.assert_allclose(found["attention"], attention(run), atol=1e-12)
        assert list(found["attention/key"]) == ["0", "1", "2", "3"]
        assert list(found["focus/curve"]) == [f"query {i}" for i in range(4)]


def test_netcdf_has_arrays_with_named_axes(run, tmp_path):
    with xarray.open_dataset(ss.export(run, "netcdf", tmp_path / "run.nc", derived=True), engine="scipy") as found:
        seen = found["attention"].sel(attention_query="1", attention_key="0")
        np.testing.assert_allclose(seen.values, attention(run)[:, 1, 0], atol=1e-12)
        assert seen.dims == ("t",)
        assert found["attention"].attrs["long_name"] == "Attention between token types"


def test_frames_that_a_view_leaves_out(tmp_path):
    """A table has no number there; arrays keep the frames they have."""
    run, frames = memory_run(6), np.array([0, 2, 5])
    view = Curves("mine", "Mine", "", "x", (Curve("a", np.array([1.0, 2.0, 3.0])),), frames=frames)
    made, _ = derived(run, [lambda: view])
    [column] = made[0].columns(run.frames).values()
    np.testing.assert_array_equal(column, [1.0, np.nan, 2.0, np.nan, np.nan, 3.0])
    np.testing.assert_array_equal(made[0].frames, frames)


def test_what_was_recorded_is_not_derived():
    run = memory_run(4)
    block = next(iter(run.params))
    values = np.asarray(run.params[block], dtype=float).reshape(4, 1, 1, -1)
    labels = tuple(map(str, range(values.shape[-1])))
    views = [
        Curves("loss", "Loss", "", "loss", (Curve("loss", run.series["loss"]), Curve("floor", np.ones(4)))),
        Matrices("again", "A block", "", values, ("",), ("",), labels),
        Points("points", "Points", "", np.arange(16.0).reshape(4, 2, 2), ("a", "b"), np.ones((4, 2))),
        None,
    ]
    made, problems = derived(run, [*(lambda view=view: view for view in views), lambda: 1 / 0])
    assert [(each.name, each.labels) for each in made] == [("loss", (("floor",),)), ("points", (("a", "b"), ("1", "2")))]
    assert problems[0].startswith("a view could not be made: ZeroDivisionError")


@pytest.mark.parametrize("kind", ["pairwise", "mirror", "heads", pytest.param("text", marks=pytest.mark.long)])
def test_every_kind_of_run_has_derived_curves(kind):
    run = small(kind)
    found = ss.reading(run).to_pandas()
    assert len(found) == run.frames
    assert found.index.name == run.clock
    assert any(name.split("/")[0] not in run.series for name in found.columns)
    assert ss.reading(run).failed_views == ()


def test_wide_arrays_are_left_to_npz(tmp_path, capsys, monkeypatch):
    from stagescope.cli.main import run as command
    from stagescope.runs import export

    monkeypatch.setattr(export, "WIDEST", 10)
    folder = small("token").save(tmp_path / "run").path
    assert command(["export", str(folder), "--to", "csv", "--derived", "--out", str(tmp_path / "a.csv")]) == 0
    assert "too wide for a table, so not written (npz and netcdf have them): attention, scores" in capsys.readouterr().err
    assert "attention/query" not in (tmp_path / "a.csv").read_text()


def test_pandas(run):
    found = run.to_pandas()
    assert isinstance(found, pandas.DataFrame)
    assert (found.index.name, *found.columns) == tuple(name for name, values in run.series.items() if values.ndim == 1)
    np.testing.assert_array_equal(found["loss"], run.series["loss"])


def test_the_ledger_as_a_table_and_by_tag(run):
    ledger = ss.check(run)
    table = ledger.to_pandas()
    assert list(table.index) == [row.tag for row in ledger]
    assert ledger["FD:origin"] is ledger.verdicts[0]
    assert table.loc["FD:origin", "verdict"] == ledger["FD:origin"].verdict
    assert table.loc["FD:origin", "predicted"] == ledger["FD:origin"].predicted
    with pytest.raises(InputError, match="FD:origin"):
        ledger["FD:orign"]


def test_what_is_not_installed_is_named(run, tmp_path, monkeypatch):
    for package, extra, call in (
        ("pandas", "pandas", run.to_pandas),
        ("pandas", "pandas", ss.reading(run).to_pandas),
        ("pyarrow", "parquet", lambda: ss.export(run, "parquet", tmp_path / "a")),
        ("xarray", "xarray", lambda: ss.export(run, "netcdf", tmp_path / "a")),
    ):
        monkeypatch.setitem(sys.modules, package, None)
        with pytest.raises(InputError, match=rf"needs the package {package}.*pip install 'stagescope\[{extra}\]'"):
            call()
    assert list(tmp_path.iterdir()) == []


def test_an_unknown_format_is_named(run, tmp_path):
    with pytest.raises(InputError, match="parquet"):
        ss.export(run, "parqet", tmp_path / "a")


@pytest.mark.parametrize("to", ["jsonl", "tensorboard"])
def test_scalars_alone_have_no_derived_curves(run, tmp_path, to):
    with pytest.raises(ss.InputError, match="choose one of: csv"):
        ss.export(run, to, tmp_path / "out", derived=True)
    assert not list(tmp_path.iterdir())
