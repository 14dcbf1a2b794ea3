"""The experiment: sizes, repetitions, what it refuses, and that processes do not change it."""

import json

import numpy as np
import pytest

import stagescope as ss
from stagescope.papers.incremental.stopping.study import Agreement, checked_sizes, early_stopping

SMALL = {"vocab": 6, "spans": (1, 1), "targets": 4, "heads": 2, "scale": 3.0, "frames": 60, "steps": 300}


def test_sizes():
    assert checked_sizes("50:3200:7") == (50, 100, 200, 400, 800, 1600, 3200)
    assert checked_sizes("200, 50") == checked_sizes([200, 50]) == (50, 200)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"sizes": [0, 5]}, "size 0"),
        ({"sizes": "1,5"}, "size 1"),
        ({"sizes": [50.5]}, "size 50.5"),
        ({"sizes": ""}, "no sizes"),
        ({"sizes": "5,5"}, "repeat"),
        ({"sizes": "2:4:9"}, "repeat"),
        ({"sizes": "5:2:3"}, "lo < hi"),
        ({"sizes": "a:b"}, "neither numbers"),
        ({"repetitions": 1}, "repetitions is 1, but it takes at least 2"),
        ({"workers": 0}, "at least 1 process"),
        ({"seed": -1}, "seed is -1"),
        ({"sequences": 30}, "given as sizes"),
        ({"labels": "soft"}, "labels hard"),
        ({"fresh": True}, "fixed one"),
        ({"batch": 60}, "larger than the 50"),
        ({"held_sequences": 0}, "no standard error"),
        ({"patience": 0}, "patience is 0"),
        ({"preset": "ode-exact"}, "draws no sequences"),
        ({"preset": "laddr"}, "unknown preset"),
    ],
)
def test_bad_input(changes, said):
    with pytest.raises(ss.InputError, match=said):
        early_stopping(**changes)


@pytest.fixture(scope="module")
def found():
    return early_stopping(sizes=[12, 200], repetitions=2, seed=7, **SMALL)


def test_rows_are_in_order_and_processes_do_not_change_them(found):
    assert [(row["sequences"], row["seed"]) for row in found.rows] == [(12, 7), (12, 8), (200, 7), (200, 8)]
    beside = early_stopping(sizes=[12, 200], repetitions=2, seed=7, workers=2, **SMALL)
    assert beside.json() == found.json()
    for ours, theirs in zip(found.curves, beside.curves, strict=True):
        np.testing.assert_array_equal(ours["validation"], theirs["validation"])


def test_the_summary_is_of_the_rows(found):
    json.dumps(found.json(), allow_nan=False)
    first, last = found.summary()
    losses = [row["rules"]["end"]["loss"] for row in found.rows[:2]]
    assert first["loss"]["end"] == pytest.approx(np.mean(losses))
    assert first["loss_range"]["end"] == [min(losses), max(losses)]
    assert first["stop_gain"] > last["stop_gain"] + 0.1
    assert last["loss"]["oracle"] < first["loss"]["oracle"]
    assert len(found.levels) == 3


def test_only_runs_in_the_regime_of_the_claim_are_counted(found):
    """200 sequences are not overfitted: the claim says nothing of them, nor does the headline."""
    summary, rows = found.summary(), found.rows
    assert [row["not_judged"] is None for row in rows if row["sequences"] == 200] == [False, False]
    assert all("not overfitted" in row["not_judged"] for row in rows if row["sequences"] == 200)
    judged = [row for row in rows if row["not_judged"] is None]
    same = sum(row["rules"]["oracle"]["class"] == row["best_class"] for row in judged)
    assert Agreement.of(summary) == Agreement(same, len(judged), 4)
    assert str(Agreement(0, 2, 4)) == "0 of 2 runs, 2 not judged"
    assert str(Agreement(1, 2, 2)) == "1 of 2 runs"


def test_a_run_that_diverges_is_listed_and_stops_nothing():
    found = early_stopping(sizes=[12], repetitions=2, **{**SMALL, "optimizer": "gd", "clip": None, "rate_values": 1e200})
    assert len(found.failed) == 2
    assert found.failed[0]["status"] == "diverged"
    assert found.summary() == []
