"""Verdicts: what can and what cannot be confirmed."""

from dataclasses import replace

import pytest

import stagescope as ss
from stagescope.claims.claim import Claim, Comparison, Regime
from stagescope.claims.ledger import Ledger

RUN = ss.run_study("scan-snap", until=5.0, frames=20)


def claim(holds: bool | None = True, regime: Regime | None = None) -> Claim:
    inside = regime or Regime(True, "always")
    return Claim(
        tag="SnS:lemma-1",
        statement="a sentence",
        regime=lambda e: inside,
        compare=lambda e: Comparison(1.0, 2.0, 0.1, holds, "because"),
    )


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


def test_unknown_tags_are_refused():
    with pytest.raises(ValueError, match="not in the table"):
        Claim(
            tag="SnS:nonsense", statement="s", regime=lambda e: Regime(True, ""), compare=lambda e: Comparison(0, 0, 0, True, "")
        )


def test_ledger_json_and_text():
    ledger = Ledger.of(RUN, (claim(True), claim(False)), None)
    body = ledger.json()
    assert body["status"] == "finished"
    keys = {"tag", "statement", "regime", "predicted", "measured", "tolerance", "verdict", "reason", "shown"}
    assert all(set(row) == keys for row in body["claims"])
    assert "1 confirmed, 1 violated" in str(ledger)


def test_what_one_claim_cannot_compute_is_not_the_others_failure():
    def fails(evidence):
        raise ss.InputError("14592 parameters are too many")

    inside = Regime(True, "always")
    regimes = (lambda e: inside, fails)
    broken = [Claim(tag="SnS:lemma-1", statement="a sentence", regime=regime, compare=fails) for regime in regimes]
    ledger = Ledger.of(RUN, (*broken, claim(True)), None)
    assert [row.verdict for row in ledger] == ["inconclusive", "inconclusive", "confirmed"]
    assert all("14592 parameters are too many" in row.reason for row in list(ledger)[:2])


def test_programming_errors_are_raised():
    with pytest.raises(ZeroDivisionError):
        Claim(tag="SnS:lemma-1", statement="a sentence", regime=lambda e: Regime(True, ""), compare=lambda e: 1 / 0).judge(
            RUN, None
        )  # pyright: ignore[reportArgumentType]
