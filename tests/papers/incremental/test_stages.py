"""Stages of incremental learning: competitive, then cooperative, class by class; on the flows.

Those on steps, of the paper's setting, are tested with the study, where the same run is measured.
"""

import json
from itertools import pairwise

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
    facts = [stage.facts for stage in found]
    assert facts[0] == {"level": pytest.approx((2.89**2 + 1.7**2 + 1) / 2)}
    assert [fact["level"] for fact in facts[1:]] == pytest.approx([(1.7**2 + 1) / 2, 0.5, 0.0])
    assert [fact["plateau"] for fact in facts[1:]] == [1, 2, 3]
    assert (facts[1]["heads"], facts[1]["top_groups"]) == ("competitive", [1, 1, 1])
    assert facts[1]["agreement"] > 0.95
    assert facts[3]["heads"] == "cooperative"
    assert {fact["nearest_class"] for fact in facts[1:]} == {None}
    assert all(abs(fact["gap"]) < 0.03 for fact in facts[1:])
    json.dumps(found.json())


def test_one_head_stops_at_the_first_plateau():
    """t2 and the onset are not reached, and each has a note."""
    model = ss.RegressionHeads(positions=6, gains=(2.0, 1.0), heads=1)
    run = ss.evolve(ss.RegressionLoss(model=model), model.init(0, 1e-2), ss.GradientFlow(), until=2000.0)
    found = ss.stages(run)
    assert found.events["t1"] is not None
    assert found.events["t2"] is None
    assert found.events["onset"] is None
    assert set(found.notes) == {"t2", "onset"}


def test_levels_that_do_not_decrease():
    """Importances below rounding: every class is as good as the uniform law, and no transition can be seen or claimed."""
    small = {"vocab": 4, "spans": (1, 1), "targets": 1, "sequences": 50, "heads": 2, "steps": 3, "init_scale": 0.0}
    run = ss.run_study("incremental", scale=1e-9, **small)
    found = ss.stages(run)
    assert dict(found.events) == {"t1": None, "t2": None, "onset": None}
    assert [stage.name for stage in found] == ["start"]
    assert set(found.notes) == {"t1", "t2", "onset"}
    levels = found.stages[0].facts["levels"]
    assert any(below >= above for above, below in pairwise(levels))
    rows = {row.tag.removeprefix("ISA:"): row for row in ss.check(run)}
    assert not {"confirmed", "violated"} & {row.verdict for row in rows.values()}
    assert rows["plateaus"].measured is None
