"""Figures: their numbers near the targets, and that every one can be drawn."""

import numpy as np
import pytest

from stagescope.readings.published import published
from stagescope.readings.study import reproduction
from tests.readings.drawing import drawn

FIGURES = reproduction("linear_icl").FIGURES
KNOWN = published("stagescope.papers.linear_icl")


def test_merged_heads_drop_at_the_step_of_the_notebook():
    found, step, levels = drawn(FIGURES["merged"]), KNOWN["figure_merged_step"], KNOWN["figure_merged_levels"]
    assert found["over_starts"][1] == pytest.approx(step.value, rel=step.tolerance)
    assert found["half"] == pytest.approx(found["predicted"], rel=5e-3)
    for at, loss in found["at"].items():
        assert loss == pytest.approx(levels.value[at], abs=levels.tolerance)


@pytest.mark.long
def test_drops_of_separate_heads_have_the_ratios_of_the_notebook():
    found, known = drawn(FIGURES["separate"]), KNOWN["figure_separate_ratios"]
    for ratio, (low, _, high) in zip(known.value[1:], found["over_starts"][1:], strict=True):
        assert low <= ratio <= high
    for run in found["runs"]:
        assert np.all(np.diff([step for step in run["drops"] if step is not None]) > 0)


@pytest.mark.long
def test_plateaus_are_long_at_multiples_of_the_rank():
    for panel in drawn(FIGURES["low-rank"])["panels"]:
        steps, rank = np.array([step for step in panel["drops"] if step is not None]), panel["rank"]
        for m in range(rank, len(steps), rank):
            assert rank == 1 or steps[m] - steps[m - 1] > np.max(np.diff(steps[m - rank : m]))


def test_one_head_rises_at_each_drop():
    found = drawn(FIGURES["heads"])
    ends = np.sort(np.array(found["v"])[-1])[::-1]
    assert ends[:4] == pytest.approx(sorted(found["finals"], reverse=True), rel=0.01)
    assert ends[4] < 0.05
    assert len(found["maps"]) == 4
