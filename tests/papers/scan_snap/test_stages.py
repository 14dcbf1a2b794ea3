"""Stages of scan and snap: the published values, independence of recording, and honest silence."""

import numpy as np
import pytest

import stagescope as ss
from stagescope.papers.scan_snap.stages import detect

MEASURED = {
    1.0: {"onset": 9.0, "winner": 15.2, "peak": 12.5, "snap": 92.0},
    10.0: {"onset": 3.5, "winner": 13.7, "peak": 1.6, "snap": 38.0},
}


@pytest.mark.parametrize("rate_y", [1.0, 10.0])
def test_syn_small_flow_events(rate_y):
    """Values of an independent implementation; 5 %."""
    found = ss.stages(ss.run_study("scan-snap", "syn-small-flow", rate_y=rate_y)).events
    for name, value in MEASURED[rate_y].items():
        assert found[name] == pytest.approx(value, rel=0.05), name


@pytest.mark.parametrize("rate_y", [1.0, 10.0])
@pytest.mark.parametrize("shape", [{}, {"num_last": 3, "num_next_per_last": 2, "num_common": 4, "num_unique": 6}])
def test_events_do_not_depend_on_recording(rate_y, shape):
    answers = [
        ss.stages(ss.run_study("scan-snap", rate_y=rate_y, **shape, **record)).events
        for record in ({"frames": 2000}, {"frames": 400}, {"frames": 6}, {"record": "uniform", "frames": 11})
    ]
    for name, value in answers[0].items():
        for other in answers[1:]:
            if value is None:
                assert other[name] is None
            else:
                assert other[name] == pytest.approx(value, rel=2e-3), name


def test_descent_events_do_not_depend_on_recording():
    dense, coarse = (
        ss.stages(ss.run_study("scan-snap", optimizer="heavy-ball", steps=100, **record)).events
        for record in ({}, {"record": "uniform", "frames": 5})
    )
    assert dense == coarse
    steps = {name: value / 10 for name, value in dense.items() if value is not None}
    expected = {"onset": 6, "winner": 8, "peak": 9, "snap": 35}  # whole steps, sampled contexts of length 128
    for name, step in expected.items():
        assert step - 2.2 < steps[name] <= step, name


def test_a_short_run_reaches_nothing_and_says_why():
    found = ss.stages(ss.run_study("scan-snap", until=2.0))
    assert set(found.events.values()) == {None}
    assert "still accelerating" in found.notes["peak"]
    assert [stage.name for stage in found] == ["uniform"]
    later = ss.stages(ss.run_study("scan-snap", until=30.0))
    assert later.events["winner"] is not None
    assert later.events["snap"] is None
    assert "of its peak" in later.notes["snap"]


def test_no_common_tokens_and_frozen_attention():
    alone = ss.stages(ss.run_study("scan-snap", num_common=0))
    assert alone.events["onset"] is None
    assert "no common tokens" in alone.notes["onset"]
    frozen = ss.stages(ss.run_study("scan-snap", rate_z=0.0, until=50.0))
    assert set(frozen.events.values()) == {None}
    assert frozen.notes["peak"] == "attention never moved"


def test_detector_on_curves_with_known_answers():
    t = np.linspace(0, 100, 20_001)
    speed = np.exp(-((np.log(t + 1e-9) - np.log(10)) ** 2) / 0.5)
    mass = 0.5 - 0.4 / (1 + np.exp(-(t - 10)))
    facts = {"moved": True, "winners": "", "clock": "t", "status": "finished"}
    found = detect(t, mass, 1.5 - mass * 2, mass, speed, **facts).events
    assert found["peak"] == pytest.approx(10, rel=1e-3)
    assert found["snap"] == pytest.approx(10 * np.exp(np.sqrt(0.5 * np.log(10))), rel=1e-3)
    assert found["onset"] == pytest.approx(10 - np.log(0.4 / (0.02 * mass[0]) - 1), rel=1e-3)
    assert mass[np.argmin(np.abs(t - found["winner"]))] == pytest.approx(1.5 / 3.25, rel=1e-3)


def test_own_objective_has_no_stage_rules():
    run = ss.evolve(ss.JaxObjective(lambda p: (p["x"] ** 2).sum()), {"x": np.ones(2)}, ss.GradientFlow(), until=1.0)
    with pytest.raises(ss.InputError, match="no stages"):
        ss.stages(run)


def test_rounding_is_not_motion(tmp_path):
    """Classes without common tokens: attention has nothing to choose, and what moves is rounding."""
    table = tmp_path / "classes.csv"
    rows = ("q1,t1,a1,0.7", "q1,t1,a2,0.3", "q2,t2,b1,0.6", "q2,t2,b2,0.4")
    table.write_text("\n".join(("query,target,token,probability", *rows)))
    run = ss.run_study("scan-snap", classes=table, vocab=1000)
    assert set(ss.stages(run).events.values()) == {None}
    decided = {row.tag: row.verdict for row in ss.check(run) if row.verdict in ("confirmed", "violated")}
    assert set(decided) <= {"SnS:lemma-1", "SnS:lemma-2", "SnS:assumption-2", "SnS:scaling"}


@pytest.mark.parametrize("until", [1e7, 1e10])
def test_events_do_not_depend_on_the_horizon(until):
    near, far = (ss.stages(ss.run_study("scan-snap", until=end)).events for end in (1e3, until))
    for name, value in near.items():
        assert far[name] == pytest.approx(value, rel=5e-3), name


@pytest.mark.parametrize("rate_y", [1.0, 10.0, 100.0, 1000.0])
def test_stages_agree_with_events(rate_y):
    found = ss.stages(ss.run_study("scan-snap", rate_y=rate_y))
    stages = {stage.name: stage for stage in found}
    if found.events["snap"] is not None:
        assert stages["snapped"].start == found.events["snap"]
        assert stages["scan"].start == min(w for w in (found.events["onset"], found.events["peak"]) if w is not None)


def test_winners_have_names(tmp_path):
    table = tmp_path / "classes.csv"
    rows = ("the,game,of,0.5", "the,game,ball,0.3", "the,game,team,0.2", "a,song,of,0.5", "a,song,guitar,0.4", "a,song,drum,0.1")
    table.write_text("\n".join(("query,target,token,probability", *rows)))
    found = ss.stages(ss.run_study("scan-snap", classes=table, vocab=5000))
    assert "ball, guitar" in str(found)
