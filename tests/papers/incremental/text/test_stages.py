"""Lags are acquired when a head gives them most of its attention."""

import json

import numpy as np
import pytest

from stagescope.papers.incremental.observables import agreement
from stagescope.papers.incremental.text.stages import LagHeads, acquired, detect


def heads(*curves, frames=201, end=50, lags=4):
    """Heads that move from one lag to the next of `curves` at t = 10.1, 20.1, ..., in ramps of one unit."""
    time = np.linspace(0, end, frames)
    mass = np.zeros((frames, len(curves), lags))
    for h, path in enumerate(curves):
        share = np.full((frames, lags), 1 / lags)
        for j, lag in enumerate(path):
            moved = np.clip(time - 10 * (j + 1) - 0.1, 0, 1)[:, None]
            share = (1 - moved) * share + moved * np.eye(lags)[lag - 1]
        mass[:, h] = share
    return LagHeads(time, 3 - np.linspace(0, 1, frames), mass, agreement(mass))


def test_lags_in_the_order_in_which_heads_turn_to_them():
    found = acquired(heads([1, 1, 1], [1, 3, 3], [1, 1, 4]))
    assert [lag for lag, _ in found] == [1, 3, 4]
    times = [when for _, when in found]
    assert times[0] == pytest.approx(10.1 + 1 / 3, abs=1e-2)
    assert times[1] == pytest.approx(20.6, abs=1e-2)
    assert times[2] == pytest.approx(30.6, abs=1e-2)


def test_the_answer_does_not_depend_on_how_densely_a_run_was_recorded():
    coarse, fine = (acquired(heads([1, 2], [1, 1], frames=n)) for n in (101, 2001))
    assert [lag for lag, _ in coarse] == [lag for lag, _ in fine]
    np.testing.assert_allclose([t for _, t in coarse], [t for _, t in fine], atol=0.3)


def test_events_and_stages_of_heads_that_share_out_two_lags():
    found = detect(heads([1, 1], [1, 2], [1, 1]), clock="step", status="finished")
    assert list(found.events) == ["t1", "t2", "t3"]
    assert found.events["t3"] is None
    assert set(found.notes) == {"t1", "t2", "t3"}
    assert [stage.name for stage in found] == ["start", "1 lag", "2 lags"]
    assert [stage.stop for stage in found] == [found.events["t1"], found.events["t2"], None]
    assert [stage.facts["acquired"] for stage in found] == [[], [1], [1, 2]]
    last = found.stages[-1].facts
    assert last["top_lags"] == [1, 2, 1]
    assert last["top_attention"] == pytest.approx([1, 1, 1])
    assert last["agreement"] == pytest.approx(1 / 3)
    assert (found.stages[0].facts["loss_start"], last["loss_end"]) == (3.0, 2.0)
    json.dumps(found.json())


def test_a_head_that_spreads_over_lags_acquires_none():
    found = detect(heads([], []), clock="t", status="finished")
    assert set(found.events.values()) == {None}
    assert len(found) == 1


def test_all_lags_may_be_acquired():
    found = detect(heads([1, 2, 3, 4], [1]), clock="t", status="finished")
    assert found.stages[-1].facts["acquired"] == [1, 2, 3, 4]
