"""Verdicts: what can and what cannot be confirmed."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import stagescope as ss
from stagescope.claims.claim import Claim, Elsewhere
from stagescope.claims.comparison import Comparison, Regime
from stagescope.claims.inputs import Inputs, Rates
from stagescope.claims.ledger import Ledger

RUN = ss.run_study("scan-snap", until=5.0, frames=20)
NULL = Inputs("frozen", "nothing moves", lambda seed: RUN)


def claim(
    holds: bool | None = True,
    regime: Regime | None = None,
    tag: str = "SnS:lemma-1",
    found: Comparison | None = None,
    **more: Any,
) -> Claim:
    inside, seen = regime or Regime(True, "always"), found or Comparison(1.0, 2.0, 0.1, holds, "because")
    return Claim(tag=tag, statement="a sentence", regime=lambda e: inside, compare=lambda e: seen, **more)


def test_verdicts():
    assert claim(True).judge(RUN, None).verdict == "confirmed"
    assert claim(False).judge(RUN, None).verdict == "violated"
    assert claim(None).judge(RUN, None).verdict == "inconclusive"
    assert claim(True, Regime(False, "too fast")).judge(RUN, None).verdict == "inconclusive"
    assert claim(True, Regime(False, "elsewhere", applies=False)).judge(RUN, None).verdict == "not applicable"


@pytest.mark.parametrize("holds", [True, False, None])
def test_out_of_regime_shows_numbers_that_decide_nothing(holds):
    row = claim(holds, Regime(False, "too fast")).judge(RUN, None)
    assert (row.verdict, row.measured) == ("inconclusive", 2.0)
    assert "out of regime: too fast" in row.reason


@pytest.mark.parametrize("status", ["failed", "diverged", "interrupted", "running"])
def test_a_run_that_did_not_end_confirms_nothing(status):
    row = claim(True).judge(replace(RUN, status=status, reason="why"), None)
    assert row.verdict == "inconclusive"
    assert "why" in row.reason


@pytest.mark.parametrize("status", ["failed", "diverged"])
def test_nothing_is_computed_for_a_broken_run(status):
    def never(evidence):
        raise AssertionError("a regime was computed")

    row = replace(claim(True), regime=never).judge(replace(RUN, status=status, reason="why"), None)
    assert (row.verdict, row.error) == ("inconclusive", None)


def test_a_tag_of_ones_own_needs_no_table():
    row = claim(tag="own:anything").judge(RUN, None)
    assert (row.tag, row.verdict) == ("own:anything", "confirmed")


def test_a_claim_takes_keywords_only():
    with pytest.raises(TypeError):
        Claim("own:x", "a sentence", lambda e: Regime(True, ""), lambda e: Comparison(0, 0, 0, True, ""))  # pyright: ignore[reportCallIssue]


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"tag": ""}, "tag of a claim"),
        ({"statement": None}, "statement of a claim"),
        ({"compare": True}, "own:x: compare is True"),
        ({"null": 3}, "own:x: null is 3"),
        ({"kind": "law"}, "prediction, pattern"),
    ],
)
def test_a_claim_that_cannot_be_judged_is_refused(given, words):
    parts = {"tag": "own:x", "statement": "s", "regime": lambda e: Regime(True, ""), "compare": lambda e: None, **given}
    with pytest.raises(ss.InputError, match=words):
        Claim(**parts)


def test_ledger_json_and_text():
    ledger = Ledger.of(RUN, (claim(True), claim(False)), None)
    body = ledger.json()
    assert body["status"] == "finished"
    keys = {"tag", "statement", "regime", "predicted", "measured", "tolerance", "verdict", "reason", "shown"}
    keys |= {
        "predicted_error",
        "measured_error",
        "unit",
        "kind",
        "group",
        "calibrated",
        "error",
        "rules",
        "in_regime",
        "elsewhere",
        "cost",
        "over_runs",
        "rates",
    }
    assert all(set(row) == keys for row in body["claims"])
    assert "1 confirmed, 1 violated" in str(ledger)


def test_a_tolerance_in_words_is_a_sentence_and_options_elsewhere_are_said_once():
    found = Comparison(1.0, 2.0, "at least", True, "two rows", unit="rows")
    options = {"length": None, "until": 5, "spans": (2, 1), "shape": (), "pad": 0, "text": Path("my text"), "exact": False}
    near = [claim(tag=f"own:{i}", regime=Regime(False, "short"), elsewhere=lambda e: options) for i in range(2)]
    text = str(Ledger.of(RUN, [claim(found=found), *near], None))
    assert "predicted 1, measured 2 (rows); it must be at least the prediction" in text
    assert text.count("--until 5 --spans 2 1 --pad 0 --text 'my text' (leave out --length --shape --exact)") == 1
    assert "own:0, own:1" in text


def test_nothing_is_said_twice_out_of_regime():
    """Why there is no number is said by the regime, and words that were measured by the reason."""
    outside = Regime(False, "the run has no stay at (1,1)")
    nothing = Comparison(0.0, None, 1e-10, None, "no stay at (1,1)")
    assert claim(regime=outside, found=nothing).judge(RUN, None).reason == "out of regime: the run has no stay at (1,1)"
    words = Comparison("A < B", "A 1, B 2", "order", True, "A 1, B 2")
    assert str(Ledger.of(RUN, [claim(regime=outside, found=words)], None)).count("A 1, B 2") == 1


def test_kind_errors_unit_and_calibration_travel_into_the_row():
    found = Comparison(1.0, 2.0, 0.1, True, "because", predicted_error=0.01, measured_error=np.float32(0.5), unit="nats")
    full = claim(found=found, kind="prediction", null=NULL, group="rates")
    row = Ledger.of(RUN, [full], None).json()["claims"][0]
    wanted = {"predicted_error": 0.01, "measured_error": 0.5, "unit": "nats", "kind": "prediction", "group": "rates"}
    assert wanted.items() <= row.items()
    assert row["calibrated"] is True
    assert "predicted 1 ± 0.01, measured 2 ± 0.5, tolerance 0.1 (nats)" in str(Ledger.of(RUN, [full], None))


def test_the_ledger_counts_uncalibrated_claims():
    calibrated = claim(null=NULL)
    assert Ledger.of(RUN, [calibrated], None).remarks() == ()
    (remark,) = Ledger.of(RUN, [calibrated, claim(), claim()], None).remarks()
    assert remark.startswith("2 claims are uncalibrated")


def test_numbers_of_numpy_become_numbers_of_json():
    found = Comparison(np.float32(0.5), np.int64(3), np.array(0.25), np.bool_(True), "because")
    assert (found.predicted, found.measured, found.tolerance, found.holds) == (0.5, 3.0, 0.25, True)
    json.dumps(claim(found=found).judge(RUN, None).json())


def test_what_one_claim_cannot_compute_is_not_the_others_failure():
    def fails(evidence):
        raise ss.InputError("14592 parameters are too many")

    inside = Regime(True, "always")
    regimes = (lambda e: inside, fails)
    broken = [Claim(tag="SnS:lemma-1", statement="a sentence", regime=regime, compare=fails) for regime in regimes]
    ledger = Ledger.of(RUN, (*broken, claim(True)), None)
    assert [row.verdict for row in ledger] == ["inconclusive", "inconclusive", "confirmed"]
    assert all("14592 parameters are too many" in row.reason for row in list(ledger)[:2])


def fails(evidence):
    raise KeyError("what")


@pytest.mark.parametrize(
    ("parts", "error", "words"),
    [
        ({"compare": fails}, "KeyError", "KeyError: 'what' (test_claim.py, line "),
        ({"regime": fails}, "KeyError", "KeyError: 'what'"),
        ({"compare": lambda e: 1 / 0}, "ZeroDivisionError", "division by zero"),
        ({"compare": lambda e: RUN.at(10**6)}, "IndexError", "(test_claim.py, line "),  # raised by the package, called here
        ({"compare": lambda e: True}, "TypeError", "compare returned a value of type bool, not a Comparison"),
        ({"regime": lambda e: None}, "TypeError", "regime returned a value of type NoneType, not a Regime"),
        ({"compare": lambda e: Comparison(0, 0, 0, True, None)}, "TypeError", "reason of a Comparison"),  # pyright: ignore[reportArgumentType]
        ({"compare": lambda e: Comparison(0, 0, 0, "yes", "r")}, "TypeError", "holds is 'yes'"),  # pyright: ignore[reportArgumentType]
        ({"compare": lambda e: Comparison(0, [1, 2], 0, True, "r")}, "TypeError", "float()"),  # pyright: ignore[reportArgumentType]
    ],
)
def test_a_claim_that_raises_is_one_inconclusive_row(parts, error, words):
    broken = replace(claim(tag="own:broken"), **parts)
    ledger = Ledger.of(RUN, (broken, claim(True)), None)
    first, second = ledger
    assert (first.verdict, first.error, second.verdict, second.error) == ("inconclusive", error, "confirmed", None)
    assert "own:broken" in first.reason
    assert words in first.reason
    assert any("own:broken" in remark for remark in ledger.remarks())


def test_an_interruption_is_no_error_of_a_claim():
    def interrupted(evidence):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        replace(claim(), compare=interrupted).judge(RUN, None)


def leaves(evidence):
    raise SystemExit(3)


class Mute(Exception):
    def __str__(self) -> str:
        raise RuntimeError("no text")


class MuteOfOurs(Mute, ss.StagescopeError):
    pass


def mute(evidence):
    raise Mute


def mute_of_ours(evidence):
    raise MuteOfOurs


@pytest.mark.parametrize(
    ("function", "error", "words"),
    [
        (leaves, "SystemExit", "raised SystemExit: 3 (test_claim.py"),
        (mute, "Mute", "message cannot be read"),
        (mute_of_ours, None, "message cannot be read"),
        (lambda e: Comparison(10**400, 0, 0, True, "r"), "ValueError", "predicted is too large"),
        (lambda e: Comparison(0, 0, 10**5000, True, "r"), "ValueError", "tolerance is too large"),
        (lambda e: Comparison(0, 0, 0, True, "r", unit=object()), "TypeError", "unit of a Comparison"),  # pyright: ignore[reportArgumentType]
        (lambda e: Comparison(0, 0, 0, True, "r", measured_error="x"), "TypeError", "measured_error is 'x'"),  # pyright: ignore[reportArgumentType]
    ],
)
def test_nothing_that_a_claim_does_ends_the_ledger(function, error, words):
    ledger = Ledger.of(RUN, (replace(claim(), compare=function), claim(True)), None)
    first, second = ledger
    assert (first.verdict, first.error, second.verdict) == ("inconclusive", error, "confirmed")
    assert words in first.reason
    json.dumps(ledger.json())
    assert words in str(ledger)


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf, np.float32("nan")])
@pytest.mark.parametrize("name", ["predicted", "measured"])
@pytest.mark.parametrize("holds", [True, False])
def test_a_number_that_is_not_finite_decides_nothing(name, value, holds):
    row = claim(found=Comparison(**{"predicted": 1.0, "measured": 1.0, name: value}, tolerance=1, holds=holds, reason="r")).judge(
        RUN, None
    )
    assert row.verdict == "inconclusive"
    assert f"the {name} number is" in row.reason


@pytest.mark.parametrize("given", [{"shown": (3,)}, {"shown": 3}, {"group": object()}])
def test_names_of_a_claim_are_texts(given):
    with pytest.raises(ss.InputError, match="own:x: "):
        claim(tag="own:x", **given)


def test_a_group_counts_once():
    rows = (claim(kind="prediction", group="rate"), claim(None, kind="prediction", group="rate"), claim(kind="pattern"))
    ledger = Ledger.of(RUN, rows, None)
    assert ledger.counts() == {"confirmed": 2}
    assert ledger.summary() == "2 confirmed (2 groups of 3 claims)"
    assert any("count as one" in remark for remark in ledger.remarks())
    assert not any("count as one" in remark for remark in Ledger.of(RUN, rows[2:], None).remarks())


def test_rates_of_the_calibration_are_summed_over_claims_that_apply():
    elsewhere = claim(regime=Regime(False, "another kind of run", applies=False))
    ledger = Ledger.of(RUN, [claim(kind="pattern"), claim(kind="pattern"), elsewhere], None)
    rated = tuple(replace(row, rates=Rates(inputs=40, violated=1, nulls=1000, null_confirmed=3)) for row in ledger)
    said = replace(ledger, verdicts=rated).remarks()[-1]
    assert said.endswith("confirmed on 6 of 2,000 nulls, violated on 2 of 80 inputs in regime")
    assert replace(ledger, verdicts=rated).json()["claims"][0]["rates"]["null_confirmed"] == 3


def test_what_runs_beside_decide_is_counted_in_the_unit_of_the_summary():
    rows = Ledger.of(RUN, [claim(kind="prediction", group="rate"), claim(None, kind="prediction", group="rate")], None)
    near = tuple(replace(row, elsewhere=Elsewhere({"until": 5}, row)) for row in rows)
    ledger = replace(rows, verdicts=near)
    assert ledger.summary() == "1 confirmed (1 group of 2 claims)"
    assert "claims that this run cannot decide, with other options: 1 confirmed (1 group of 2 claims)" in ledger.remarks()


def test_a_group_with_a_violation_is_violated():
    rows = (claim(True, kind="prediction", group="rate"), claim(False, kind="prediction", group="rate"))
    assert Ledger.of(RUN, rows, None).counts() == {"violated": 1}


def test_a_claim_out_of_regime_names_where_it_is_decided():
    outside = Regime(False, "too slow")
    row = claim(regime=outside, elsewhere=lambda e: {"ratio": 30.0}).judge(RUN, None)
    assert row.elsewhere is not None
    assert dict(row.elsewhere.options) == {"ratio": 30.0}
    assert claim(elsewhere=lambda e: {"ratio": 30.0}).judge(RUN, None).elsewhere is None
    assert claim(regime=outside, elsewhere=lambda e: {}).judge(RUN, None).elsewhere is None


def test_a_claim_that_makes_companion_runs_makes_none_out_of_regime():
    def compare(evidence):
        raise AssertionError("a companion run was made")

    costly = Claim(tag="own:x", statement="s", regime=lambda e: Regime(False, "too slow"), compare=compare, cost="2 flows")
    row = costly.judge(RUN, None)
    assert (row.verdict, row.error, row.measured) == ("inconclusive", None, None)
