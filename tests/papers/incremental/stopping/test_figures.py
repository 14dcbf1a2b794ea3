"""The early-stopping figure: its numbers. Drawing is tested with the command."""

import pytest

from stagescope.papers.incremental.stopping.figures import MEASURED, stopping_numbers
from stagescope.papers.incremental.stopping.study import early_stopping
from tests.papers.incremental.stopping.test_study import SMALL


@pytest.fixture(scope="module")
def numbers():
    return stopping_numbers(early_stopping(sizes=[12, 40], repetitions=2, **SMALL))


def test_panels_carry_the_stops_of_their_run(numbers):
    for panel in numbers["panels"]:
        row = next(r for r in numbers["runs"] if (r["sequences"], r["seed"]) == (panel["sequences"], panel["seed"]))
        for rule, stop in panel["stops"].items():
            at = panel["step"].index(stop["step"])
            assert panel["validation"][at] == pytest.approx(row["rules"][rule]["loss"], abs=1e-5)
    assert numbers["measured"] == MEASURED
