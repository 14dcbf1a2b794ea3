"""What the reading of a run says of the prediction from its start: when it is made, from what, and why there is none."""

from dataclasses import replace

import pytest

import stagescope as ss
from stagescope.core.errors import InputError
from stagescope.readings import predicting
from stagescope.readings.predicting import planned_path
from stagescope.readings.reading import reading
from stagescope.readings.registry import study

PLAIN = predicting.saddle_path


@pytest.fixture
def asked(monkeypatch):
    """Every start that a path is computed from; the paths are followed to t = 30 alone."""
    starts = []
    monkeypatch.setattr(
        predicting, "saddle_path", lambda what, start, **_: starts.append(start) or PLAIN(what, start, until=30.0)
    )
    return starts


def small(**options):
    return ss.run_study("focus-dilution", **{"width": 2, "frames": 40, "progress": False} | options)


FLOW = {"until": 60.0}


def test_the_prediction_is_that_of_the_runs_own_start_and_made_once(asked):
    run = small(**FLOW)
    found = reading(run)
    path = found.prediction
    assert path is not None
    assert path is found.prediction is reading(replace(run, reason="copied")).prediction
    assert found.unpredicted == ""
    assert len(asked) == 1
    assert path.json() == PLAIN(found.law, run.at(0), until=30.0).json()


def test_stages_and_ladder_make_none_and_claims_make_one(asked):
    run = small(**FLOW)
    ss.stages(run)
    ss.saddle_ladder(run)
    assert asked == []
    ss.check(run)
    assert len(asked) == 1


@pytest.mark.long
@pytest.mark.parametrize(
    ("options", "why"),
    [({"optimizer": "gd", "steps": 20}, "not a gradient flow"), (FLOW | {"init_scale": 0.1}, "take a smaller init scale")],
)
def test_what_is_not_predicted_has_a_reason_and_costs_claims_nothing(asked, options, why):
    run = small(**options)
    ss.check(run)
    assert asked == []
    assert reading(run).prediction is None
    assert why in reading(run).unpredicted


def test_blocks_at_other_rates_and_forks_are_refused():
    run = small(**FLOW)
    slow = ss.evolve(reading(run).law, run.at(0), ss.GradientFlow(rates={"WQ": 0.5}), until=1.0, progress=False)
    assert "different rates" in reading(slow).unpredicted
    assert "of one law from the start on" in reading(ss.fork(run, at=20.0, freeze=["WQ"], progress=False)).unpredicted


@pytest.mark.long
def test_a_model_without_a_path_says_so():
    run = ss.run_study("scan-snap", until=0.01, frames=3, progress=False)
    assert reading(run).prediction is None
    assert "no critical point" in reading(run).unpredicted or "no saddle path" in reading(run).unpredicted


def test_before_a_run_only_flows_have_a_path(asked):
    found = study("focus-dilution")
    path = planned_path(found.setup(found.configured(None, width=2), 0))
    assert path["E1"].t == pytest.approx(reading(small(**FLOW)).prediction["E1"].t)
    with pytest.raises(InputError, match="gradient flow"):
        planned_path(found.setup(found.configured(None, optimizer="gd", steps=5), 0))
