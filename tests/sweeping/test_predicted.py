"""Columns `predicted EVENT`: computed when one is asked for, kept in the folder, and beside what was measured."""

import json
from types import SimpleNamespace

import numpy as np
import pytest

from stagescope.core.errors import InputError
from stagescope.landscape.saddle_path import Predicted
from stagescope.readings import predicting
from stagescope.readings.registry import study
from stagescope.show.diagram_numbers import numbers, select
from stagescope.sweeping.axes import Axis
from stagescope.sweeping.table import PREDICTED_FILE
from tests.show.sweeps import sweep

SCALE = Axis(name="scale", kind="linear", values=(1.0, 2.0, 4.0))


@pytest.fixture
def planned(monkeypatch):
    """Paths made up from the options: E2 at 100 / scale, none at scale 1; Q2 is not decided. Their plans are listed."""
    seen = []

    def path(plan):
        seen.append(plan)
        scale = plan.what.model.scale
        if scale == 2.0:
            raise InputError("this run is none")
        later = Predicted(None, reason="-", beyond=np.inf) if scale == 1.0 else Predicted(100 / scale, 20.0, 30.0)
        return SimpleNamespace(events={"E2": later, "Q2": Predicted(None, reason="not decided", beyond=50.0)})

    monkeypatch.setattr(predicting, "planned_path", path)
    return seen


def made(folder):
    """Three points; the run at scale 4 failed."""

    def result(scale, seed):
        return {"config": {"scale": scale}, "events": {"E2": 10.0}, "status": "diverged" if scale == 4.0 else "finished"}

    return sweep((SCALE,), result, folder=folder)


def test_it_is_computed_when_asked_and_kept(planned, tmp_path):
    found = made(tmp_path)
    assert "predicted E2" not in found.columns
    assert "predicted E2" not in found.csv()
    assert planned == []
    assert found.column("predicted E2") == [None, None, 25.0]
    assert found.column("E2") == [10.0] * 3
    assert found.columns[-1] == "predicted E2"
    assert len(planned) == 3
    assert made(tmp_path).column("predicted E2") == [None, None, 25.0]
    assert len(planned) == 3
    assert made(tmp_path).csv(predicted=True).splitlines()[0].endswith(",predicted E2")


def test_a_slip_is_met_with_the_column_that_is_meant_and_nothing_is_computed(planned, tmp_path):
    for slip in ("predictd E2", "Predicted e2"):
        with pytest.raises(InputError, match="did you mean 'predicted E2'"):
            made(tmp_path).column(slip)
    assert planned == []


def test_what_is_not_reached_is_told_from_what_is_not_predicted(planned, tmp_path):
    """A run that failed has a prediction; an event that never comes is later than all; a refused start has no value."""
    column = made(tmp_path).column_of("predicted E2")
    assert [column.reading(row).lack for row in made(tmp_path).rows] == ["not reached", "none", None]
    shown = numbers(found := made(tmp_path), select(found, "scale", None, "predicted E2", {}))
    assert shown["lacks"] == {"not reached": "not reached by t = 1e+08", "none": "no value"}
    assert [cell["value"] for cell in shown["panels"][0]["cells"]] == [None, None, 25.0]


@pytest.mark.parametrize("broken", ["[]", "{", '{"version": "0", "paths": {}}', '{"paths": 3}'])
def test_a_file_of_another_kind_or_version_counts_for_nothing(planned, tmp_path, broken):
    (tmp_path / PREDICTED_FILE).write_text(broken)
    assert made(tmp_path).column("predicted E2")[2] == 25.0
    assert set(json.loads((tmp_path / PREDICTED_FILE).read_text())) == {"version", "paths"}


def test_an_event_that_is_not_predicted_is_named_and_so_is_a_sweep_of_none(planned, tmp_path):
    with pytest.raises(InputError, match="predicted E9"):
        made(tmp_path).column("predicted E9")
    alone = sweep((Axis(name="scale", kind="linear", values=(2.0,)),), lambda scale, seed: {"config": {"scale": scale}})
    with pytest.raises(InputError, match="nothing is predicted of this sweep: this run is none"):
        alone.column("predicted E2")


def test_the_plan_is_that_of_the_point(planned, tmp_path):
    found = made(tmp_path)
    found.column("predicted E2")
    own = study("focus-dilution")
    start = own.setup(own.configured(None, scale=4.0), 0).params
    assert np.array_equal(planned[2].params["W0"], start["W0"])
