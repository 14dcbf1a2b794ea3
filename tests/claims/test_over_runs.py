"""Numbers of several runs: plain, as many as there are runs, and carried from a comparison to its verdict."""

import json

import numpy as np
import pytest

import stagescope as ss
from stagescope.claims.claim import Claim
from stagescope.claims.comparison import Regime

RUN = ss.run_study("scan-snap", until=1.0, frames=5)


def test_numbers_are_plain_and_what_is_not_finite_is_none():
    over = ss.OverRuns(np.array([1, 2]), (np.float64(3.0), np.nan), (None, 4), "scale", "time")
    assert over.x == (1.0, 2.0)
    assert over.measured == (3.0, None)
    assert over.predicted == (None, 4.0)
    assert over.runs == 2


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"measured": (1.0,)}, "2 runs, but 1 entries in measured"),
        ({"names": ("a",)}, "2 runs, but 1 entries in names"),
        ({"x": (1.0, np.inf)}, "give a finite number for each run"),
        ({"measured": (0.0, 1.0), "log_y": True}, "needs numbers above 0"),
    ],
)
def test_bad_numbers_are_refused(given, said):
    with pytest.raises(ss.InputError, match=said):
        ss.OverRuns(**{"x": (1, 2), "measured": (1, 2), "predicted": (), "x_axis": "scale", "y_axis": "time", **given})


def test_a_verdict_carries_them_also_as_json():
    over = ss.OverRuns((1.0, 2.0), (3.0, None), (3.0, 4.0), "scale", "time", names=("seed 0", "seed 1"))
    found = ss.agreement(1.0, 1.0, 0.1, "they agree", over_runs=over)
    claim = Claim(tag="own:x", statement="all agree", regime=lambda e: Regime(True, "any"), compare=lambda e: found)
    row = claim.judge(RUN, None)
    assert row.over_runs is over
    assert json.loads(json.dumps(row.json()))["over_runs"]["measured"] == [3.0, None]
