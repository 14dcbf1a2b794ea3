"""Stages of incremental learning: competitive, then cooperative, class by class; on steps and on the flows."""

import pytest

import stagescope as ss


@pytest.fixture(scope="module")
def ladder():
    """Setting A on a draw of features and sequences."""
    return ss.stages(ss.run_study("incremental", "ladder", feature_seed=7, frames=120))


def test_setting_a(ladder):
    """Three transitions in order; heads agree on the dominant group, then split; the nearest class is the stage."""
    events = ladder.events
    assert 15 < events["t1"] < 40 < events["onset"] < events["t2"] < events["t3"]
    names = [stage.name for stage in ladder]
    assert names == ["start", "plateau 1", "plateau 2", "plateau 3"]
    words = [stage.evidence for stage in ladder][1:]
    assert "competitive" in words[0]
    assert "top groups 1 1 1" in words[0]
    assert "cooperative" in words[2]
    for j, evidence in enumerate(words, start=1):
        assert f"predicts as class {j}" in evidence


@pytest.mark.parametrize("kind", [ss.RegressionLoss, ss.MirrorFlow])
def test_flows(kind):
    model = ss.RegressionHeads(positions=10, gains=(2.89, 1.7, 1.0), heads=3)
    flow = ss.GradientFlow(rtol=1e-12)
    run = ss.evolve(kind(model=model), model.init(0, 1e-3), flow, until=3000.0, record=ss.LogSpaced(frames=600))
    found = ss.stages(run)
    assert [stage.name for stage in found] == ["start", "plateau 1", "plateau 2", "plateau 3"]
    assert found.events["t1"] < found.events["onset"] < found.events["t2"] < found.events["t3"]


def test_what_is_not_reached_is_said():
    """One head stops at the first plateau: t2 is not reached, and there is nothing to part from."""
    model = ss.RegressionHeads(positions=6, gains=(2.0, 1.0), heads=1)
    run = ss.evolve(ss.RegressionLoss(model=model), model.init(0, 1e-2), ss.GradientFlow(), until=2000.0)
    found = ss.stages(run)
    assert found.events["t1"] is not None
    assert found.events["t2"] is None
    assert "above half-way" in found.notes["t2"]
    assert found.notes["onset"] == "there is one head"


def test_levels_that_do_not_decrease_are_said():
    """Importances below rounding: every class is as good as the uniform law, and no transition can be seen or claimed."""
    small = {"vocab": 4, "spans": (1, 1), "targets": 1, "sequences": 50, "heads": 2, "steps": 3, "init_scale": 0.0}
    run = ss.run_study("incremental", scale=1e-9, **small)
    found = ss.stages(run)
    assert dict(found.events) == {"t1": None, "t2": None, "onset": None}
    assert [stage.name for stage in found] == ["start"]
    for name in ("t1", "t2"):
        assert "levels do not decrease: level" in found.notes[name]
    rows = list(ss.check(run))
    assert not {"confirmed", "violated"} & {row.verdict for row in rows}
    assert sum("levels do not decrease" in row.reason for row in rows) >= 5
