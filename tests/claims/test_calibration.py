"""Counts of verdicts on inputs and nulls, and the bars that a claim must meet."""

import pytest

from stagescope.claims.calibration import Calibration, Line, NullCounts
from stagescope.claims.claim import Claim
from stagescope.claims.comparison import Comparison, Regime
from stagescope.claims.inputs import Inputs

NULL = Inputs("shuffled", "no order", lambda seed: None)  # pyright: ignore[reportArgumentType]


def claim(**more) -> Claim:
    parts = {"kind": "pattern", "null": NULL, **more}
    return Claim(
        tag="a", statement="s", regime=lambda e: Regime(True, ""), compare=lambda e: Comparison(0, 0, 0, True, ""), **parts
    )


def draws(role: str, *verdicts: str, family: str = "shuffled", inside: bool = True):
    found = [{"verdict": verdict, "in_regime": inside} for verdict in verdicts]
    return [{"role": role, "family": family, "seed": n, "verdicts": {"a": each}} for n, each in enumerate(found)]


def test_a_line_counts_inputs_in_regime_and_its_own_nulls():
    rows = [
        *draws("input", "confirmed", "confirmed", "violated", "inconclusive", "not applicable", family="any"),
        *draws("input", "inconclusive", family="any", inside=False),
        *draws("null", "confirmed", "violated", "inconclusive"),
        *draws("null", "confirmed", family="another"),
    ]
    line = Line.of(claim(), rows)
    assert (line.applies, line.in_regime, line.confirmed, line.violated, line.open) == (5, 4, 2, 1, 1)
    assert line.nulls == (NullCounts("shuffled", 3, 3, 1, 1),)


@pytest.mark.parametrize(
    ("given", "yes", "no", "null", "words"),
    [
        ({}, 30, 0, 4, None),
        ({}, 30, 0, 5, "confirmed on 5 of 30 draws of shuffled"),
        ({}, 26, 4, 0, None),
        ({}, 25, 5, 0, "violated on 5 of 30"),
        ({}, 17, 0, 0, "decided on 17 of 30"),
        ({"null": ()}, 30, 0, 0, "no null"),
    ],
)
def test_the_bars(given, yes, no, null, words):
    inputs = ["confirmed"] * yes + ["violated"] * no + ["inconclusive"] * (30 - yes - no)
    rows = [*draws("input", *inputs), *draws("null", *["confirmed"] * null, *["inconclusive"] * (30 - null))]
    problems = Line.of(claim(**given), rows).problems
    assert (problems == []) if words is None else any(words in each for each in problems)


def test_a_claim_that_is_never_in_regime_is_not_calibrated():
    rows = [*draws("input", *["inconclusive"] * 30, inside=False), *draws("null", *["violated"] * 30)]
    assert Line.of(claim(), rows).problems == ["decided on 0 of 0 inputs in regime"]


def test_draws_that_fail_are_named_and_nothing_holds():
    found = Calibration.of("study", [claim()], [{"role": "input", "family": "any", "seed": 7, "failed": "no file"}])
    assert found.failed == ("any, seed 7: no file",)
    assert not found.holds


def test_shares_are_pooled_over_claims():
    rows = [*draws("input", "confirmed", "violated"), *draws("null", "confirmed", "inconclusive")]
    found = Calibration.of("study", [claim()], rows)
    assert (found.null_confirmed, found.violated) == (0.5, 0.5)
    assert found.json()["claims"][0]["nulls"][0]["confirmed"] == 1


def test_a_null_that_is_always_out_of_regime_tests_nothing():
    rows = [*draws("input", *["confirmed"] * 30), *draws("null", *["inconclusive"] * 30, inside=False)]
    assert Line.of(claim(), rows).problems == ["no null tests it: in regime on 0 of 30 draws"]


def test_each_null_has_its_own_bar():
    """A null that cannot confirm must not hide one that does."""
    other = Inputs("cut", "the run ends before", lambda seed: None)  # pyright: ignore[reportArgumentType]
    rows = [*draws("input", *["confirmed"] * 30), *draws("null", *["inconclusive"] * 30, family="cut")]
    rows += draws("null", *["confirmed"] * 8, *["violated"] * 22)
    assert Line.of(claim(null=(NULL, other)), rows).problems == ["confirmed on 8 of 30 draws of shuffled"]
