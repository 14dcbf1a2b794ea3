"""Events are estimates: a time with an interval, or a state; stages of a run that broke down have no times."""

from dataclasses import replace

import numpy as np
import pytest

from stagescope.detect.stage import Event, Stage, Stages, Transition, span_text

EVENTS = {"onset": Event(5.0, 4.0, 6.0), "snap": Event.missing(), "winner": Event.missing("at the start"), "bare": Event(7.0)}


def made(status: str = "finished") -> Stages:
    return Stages.of(status, "t", EVENTS, (), {})


def test_times_intervals_and_states_agree():
    found = made()
    assert found.events == {"onset": 5.0, "snap": None, "winner": None, "bare": 7.0}
    assert found.intervals == {"onset": (4.0, 6.0), "snap": None, "winner": None, "bare": None}
    assert found.states == {"onset": "reached", "snap": "not reached", "winner": "at the start", "bare": "reached"}
    answer = found.json()
    assert answer["intervals"]["onset"] == [4.0, 6.0]
    assert set(answer["events"]) == set(answer["intervals"]) == set(answer["states"])


@pytest.mark.parametrize("status", ["diverged", "failed"])
def test_a_run_that_broke_down_has_no_times(status):
    found = made(status)
    assert set(found.events.values()) == {None}
    assert found.states == {"onset": "unreliable", "snap": "not reached", "winner": "at the start", "bare": "unreliable"}
    assert found.notes == dict.fromkeys(("onset", "bare"), f"the run {status}")


def test_events_without_estimates_are_reached_or_not():
    found = Stages("finished", "t", {"a": 1.0, "b": None}, (), {})
    assert found.states == {"a": "reached", "b": "not reached"}
    assert found.intervals == {"a": None, "b": None}


def test_a_copy_with_transitions_keeps_the_events():
    found = replace(made(), transitions=(("loss", Transition(1.0, 0.5, 1.5, 0.4, 1.6, -2.0)),))
    assert found.estimates == EVENTS
    (row,) = found.json()["transitions"]
    assert row | {"curve": "loss", "t": 1.0, "low": 0.5, "high": 1.5, "start": 0.4, "stop": 1.6, "amplitude": -2.0} == row
    assert set(row) == {"curve", "t", "low", "high", "start", "stop", "amplitude", "kind", "origin"}


def test_events_in_words():
    assert [str(event) for event in EVENTS.values()] == ["5 [4, 6]", "not reached", "there at the start", "7"]
    assert made("diverged").estimates["onset"].words == "not reliable"


@pytest.mark.parametrize("width", 10.0 ** np.arange(-8, 3))
def test_the_ends_of_an_interval_differ_as_far_as_nine_digits_tell(width):
    low, high = span_text(100.0, 100.0 + width).split(", ")
    assert (low != high) == (width >= 1e-6)


def test_a_run_that_broke_down_has_one_stage_and_no_event():
    found = Stages("diverged", "t", {"a": 1.0, "b": None}, (Stage("focus", 0.5, 1.0, ""), Stage("dilution", 1.0, None, "")), {})
    assert [(stage.name, stage.start, stage.stop) for stage in found] == [("whole run", 0.5, None)]
    assert found.states == {"a": "unreliable", "b": "not reached"}
    assert dict(found.events) == {"a": None, "b": None}
