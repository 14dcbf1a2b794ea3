"""The prediction in a portrait: made for flows of a paper that gives paths, and left out as asked."""

import numpy as np
import pytest

import stagescope as ss
from stagescope.readings.predicting import saddle_path
from stagescope.readings.reading import reading
from stagescope.show.portrait import legs_as_stages, portrait, predicted_events
from stagescope.show.static import text
from tests.show.runs import small

QUICK = ("ledger", "ladder")


@pytest.fixture(scope="module")
def found():
    return portrait(small("token"), skip=QUICK)


def loss_of(found):
    return next(view for view in found.views if view.slot == "loss")


def test_the_predicted_loss_is_dashed_beside_the_measured_one(found):
    measured, predicted = loss_of(found).curves
    assert (measured.dashed, predicted.dashed) == (False, True)
    assert np.abs(predicted.values - measured.values).max() < 5e-3
    assert "predicted from the start" in loss_of(found).about


def test_legs_begin_before_the_run_ends(found):
    legs, end = legs_as_stages(found.prediction, found.run), found.run.time[-1]
    assert [leg.name for leg in legs] == ["predicted (0,0)", "predicted (1,0)", "predicted (1,1)"]
    assert {leg.track for leg in legs} == {"predicted"}
    assert legs[-1].stop > end > legs[-1].start


def test_events_are_listed_with_those_of_the_run(found):
    rows = {row["name"]: row for row in predicted_events(found.prediction, found.stages, found.run)}
    assert rows["E1"]["measured"] == pytest.approx(rows["E1"]["t"], rel=5e-3)
    assert rows["E2"]["said"] == "after the end of the run"
    assert rows["E4"]["said"].startswith("beside a run the path is followed to the first event well after")
    whole = saddle_path(reading(found.run).law, found.run.at(0))
    rows_of_all = {row["name"]: row for row in predicted_events(whole, found.stages, found.run)}
    assert rows_of_all["E4"]["said"].startswith("does not come: on ")
    assert list(rows)[:3] == ["E1", "Q1", "E2"]
    written = text(found)
    assert "## Predicted from the start" in written
    assert f"| E1 | {rows['E1']['t']:.5g} |" in written


def test_it_can_be_left_out_and_is_not_computed_then():
    run = ss.run_study("focus-dilution", width=2, until=1.0, frames=3, progress=False)
    found = portrait(run, skip=(*QUICK, "prediction"))
    assert found.prediction is None
    assert any("prediction was left out" in note for note in found.notes)
    assert len(loss_of(found).curves) == 1
    assert "_predicted" not in vars(reading(run))


def test_a_flow_without_a_prediction_says_why_and_a_descent_nothing():
    large = ss.run_study("focus-dilution", width=2, init_scale=0.1, until=1.0, frames=3, progress=False)
    assert any("nothing is predicted from the start" in note for note in portrait(large, skip=QUICK).notes)
    steps = ss.run_study("focus-dilution", optimizer="gd", steps=3, width=2, frames=3, progress=False)
    found = portrait(steps, skip=QUICK)
    assert found.prediction is None
    assert not any("predict" in note for note in found.notes)
