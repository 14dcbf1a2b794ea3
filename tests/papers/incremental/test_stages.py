"""Stages of incremental learning: competitive, then cooperative, class by class; on the flows.

Those on steps, of the paper's setting, are tested with the study, where the same run is measured.
"""

import pytest

import stagescope as ss


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
