"""What cannot fail: heads that start exactly equal move as one head with H times the values, at scaled rates [ISA:symmetric]."""

import numpy as np
import pytest

import stagescope as ss
from stagescope.papers.incremental.limits import LIMITS
from stagescope.readings.reading import reading

SHORT = {"vocab": 5, "spans": (1, 1), "pad": 1, "sequences": 300, "heads": 2}


def largest_difference(run):
    """Between the losses of a run of equal heads and of one head, in shares of the ladder, until rounding parts the heads."""
    evidence = reading(run).evidence
    assert evidence.identical
    loss = evidence.run.series.get("loss", evidence.heads.loss)  # the mirror law records no loss
    together, equal = evidence.spread <= LIMITS.rounding, evidence.companion("equal_heads", None)
    difference = np.abs(loss - np.interp(evidence.run.time, equal.time, equal.loss))[together]
    return float(difference.max() / evidence.steps.sum())


@pytest.mark.parametrize("model", ["regression", "mirror"])
def test_equal_heads_of_a_flow_move_as_one(model):
    sizes = {"gains": (4.0, 2.0, 1.0), "positions": 6, "until": 100.0, "init_scale": 0.0}
    run = ss.run_study("incremental", model=model, progress=False, **sizes)
    assert largest_difference(run) <= 1e-6, "up to the tolerance of the solver"


def test_equal_heads_of_a_descent_move_as_one():
    chosen = {"rate_values": 2.0, "rate_attention": 1.0, "steps": 400, "init_scale": 0.0}
    run = ss.run_study("incremental", "gd-ladder", progress=False, **SHORT, **chosen)
    assert largest_difference(run) <= 1e-9, "the same steps, up to rounding"
