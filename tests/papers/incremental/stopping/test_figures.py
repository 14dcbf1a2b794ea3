"""The figure of the sweep `early-stopping`: what it reads from the rows, its summary, its drawing."""

import importlib
import json

import numpy as np
import pytest

import stagescope as ss
from stagescope.cli.main import run as command
from stagescope.papers.incremental.panels import value
from stagescope.readings.study import PACKAGE, reproduction
from stagescope.views import figure
from tests.papers.incremental.stopping.sweeps import SMALL, small_sweep

own = reproduction("incremental").own
stopping_numbers, summary = own.stopping_numbers, own.summary
drawings = importlib.import_module(f"{PACKAGE}.incremental.drawings")


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    return small_sweep(tmp_path_factory.mktemp("stopping") / "sweep", "12,200")


@pytest.fixture(scope="module")
def numbers(table):
    return stopping_numbers(table)


@pytest.mark.long
def test_a_row_is_what_stopping_finds_in_the_run(table):
    row = table.find({"sequences": 12}, seed=1)
    found = ss.stopping(ss.run_study("incremental", "ladder", seed=1, sequences=12, progress=False, **SMALL))
    assert {**found.row(), "not_judged": row["measures"]["stopping"]["not_judged"]} == row["measures"]["stopping"]
    assert table.column("stopping.loss.adaptive")[1] == found.loss("adaptive")
    assert table.column("stopping.gain")[1] == found.gain
    assert table.column("stopping.class.oracle")[1] == found.nearest(found.stops["oracle"].frame)
    assert "stopping.likelihood" not in table.columns


def test_only_runs_in_the_regime_of_the_claim_are_counted(table, numbers):
    """200 sequences are not overfitted: the claim does not apply to them, and the headline does not count them."""
    why = table.column("stopping.not_judged")
    assert all("not overfitted" in each for each in why[2:])
    judged = [row["measures"]["stopping"] for row in table.rows if row["measures"]["stopping"]["not_judged"] is None]
    same = sum(row["class.oracle"] == row["best_class"] for row in judged)
    assert sum(entry["judged"] for entry in numbers["summary"]) == len(judged)
    assert f"in {same} of {len(judged)} runs, {4 - len(judged)} not judged" in drawings.stopping_headline(numbers["summary"])


def test_the_summary_is_of_the_rows(table, numbers):
    first, last = numbers["summary"]
    losses = table.column("stopping.loss.end")[:2]
    assert first["loss"]["end"] == pytest.approx(np.mean(losses))
    assert first["loss_range"]["end"] == [min(losses), max(losses)]
    first_gain, last_gain = (entry["loss"]["end"] - entry["loss"]["oracle"] for entry in (first, last))
    assert first_gain > last_gain + 0.1
    assert last["loss"]["oracle"] < first["loss"]["oracle"]
    assert len(numbers["levels"]) == 3
    assert numbers["settings"]["clip"] == 1.0


def test_a_fit_that_did_not_converge_is_left_out(numbers):
    runs = [dict(run) for run in numbers["runs"]]
    runs[0] |= {"loss.ridge": None, "ridge": [runs[0]["ridge"][0], None, None]}
    entry = summary(runs)[0]
    assert entry["loss"]["ridge"] == runs[1]["loss.ridge"]
    assert entry["ridge_by_class"][1:] == runs[1]["ridge"][1:]
    assert summary([runs[0]])[0]["loss_range"]["ridge"] == [None, None]


def test_panels_carry_the_stops_of_their_run(numbers):
    assert [panel["sequences"] for panel in numbers["panels"]] == [12, 200]
    for panel in numbers["panels"]:
        run = next(r for r in numbers["runs"] if (r["sequences"], r["seed"]) == (panel["sequences"], panel["seed"]))
        for rule, stop in panel["stops"].items():
            at = panel["step"].index(stop["step"])
            assert panel["validation"][at] == pytest.approx(run[f"loss.{rule}"], abs=1e-5)
    assert numbers["measured"] == value("early-stopping")


@pytest.mark.long
def test_reproduce_draws_a_sweep(table, numbers, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(figure, "FORMATS", ("png",))
    words = ["reproduce", "incremental", "--figure", "stopping", "--sweep", str(table.folder), "--out", str(tmp_path), "--quiet"]
    assert command(words) == 0
    assert {path.name for path in tmp_path.iterdir()} == {"figure-stopping.json", "figure-stopping.png"}
    assert json.loads((tmp_path / "figure-stopping.json").read_text())["summary"] == numbers["summary"]
    assert command(["reproduce", "incremental", "--figure", "4", *words[4:]]) == 2
    assert "stopping" in capsys.readouterr().err


def test_a_run_that_diverges_is_listed_without_numbers(tmp_path):
    found = small_sweep(tmp_path / "wild", "12", optimizer="gd", clip=None, rate_values=1e200)
    assert {row["status"] for row in found.rows} == {"diverged"}
    assert not any("measures" in row for row in found.rows)
    with pytest.raises(ss.InputError, match="no row of the sweep has the measure stopping"):
        stopping_numbers(found)


def test_a_run_that_cannot_be_stopped_is_a_failed_row(tmp_path):
    found = small_sweep(tmp_path / "soft", "12", seeds=1, labels="soft", steps=5, frames=3)
    assert found.rows[0]["status"] == "failed"
    assert "labels hard" in found.rows[0]["reason"]


def test_other_axes_are_refused(table):
    class Two:
        axes = (*table.axes, *table.axes)

    with pytest.raises(ss.InputError, match="over sequences alone"):
        stopping_numbers(Two())
