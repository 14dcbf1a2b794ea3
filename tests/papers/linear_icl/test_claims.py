"""Claims: confirmed where they should be, and on a null of each not."""

from functools import cache

import pytest

import stagescope as ss
from stagescope.claims.claim import Claim, Verdict
from stagescope.papers.linear_icl.claims import CLAIMS
from validation.nulls.linear_icl import INPUTS, NULLS

BY_TAG = {claim.tag.removeprefix("LIN:"): claim for claim in CLAIMS}
NULLS_BY_TAG = NULLS["linear-icl"]


def verdicts(run: ss.Run, *names: str) -> dict[str, Verdict]:
    judged = [BY_TAG[name] for name in names] or CLAIMS
    return {row.tag.removeprefix("LIN:"): row for row in ss.reading(run).judge(judged)}


@pytest.mark.long
def test_every_claim_about_separate_heads_holds_on_ref():
    found = verdicts(ss.run_study("linear-icl", "ref", progress=False))
    about = {name for name, row in found.items() if row.verdict != "not applicable"}
    assert about == {"levels", "order", "pcr", "first-drop", "blow-up", "scalar", "cascade", "scale-law"}
    assert {name: found[name].verdict for name in about} == dict.fromkeys(about, "confirmed")
    assert found["cascade"].over_runs.runs >= 10
    assert found["scale-law"].over_runs.measured == pytest.approx(found["scale-law"].over_runs.predicted, rel=0.01)


def test_every_claim_about_merged_heads_holds():
    found = verdicts(ss.run_study("linear-icl", "merged", progress=False))
    about = {name: row.verdict for name, row in found.items() if row.verdict != "not applicable"}
    assert about == dict.fromkeys(("merged", "merged-drop", "merged-rate", "scale-law"), "confirmed")


def test_rates_inside_heads_of_higher_rank():
    """Direction 4 of ref, rank 2: .01602 measured over .01612 on the page."""
    found = verdicts(
        ss.run_study("linear-icl", "ref", heads=3, rank=2, init_scale=0.003, progress=False), "rank", "rank-plateaus"
    )
    assert {row.verdict for row in found.values()} == {"confirmed"}


def test_few_heads_end_at_their_level():
    run = ss.run_study("linear-icl", "ref", heads=2, until=20_000.0, progress=False)
    assert verdicts(run, "few-heads")["few-heads"].verdict == "confirmed"


def test_white_inputs_follow_a_logistic():
    run = next(each for each in INPUTS["linear-icl"] if each.name == "white inputs").make(0)
    assert verdicts(run, "logistic")["logistic"].verdict == "confirmed"


def test_small_is_beside_the_final_value_of_a_head():
    """lambda -> c lambda with theta -> c^(-1/3) theta is the same run on another clock, so its regimes are the same."""
    names = ("levels", "first-drop", "scalar", "order")
    one = verdicts(ss.run_study("linear-icl", "three", init_scale=0.008, progress=False), *names)
    large = {"eigenvalues": (1000.0, 500.0, 250.0), "init_scale": 0.0008}
    other = verdicts(ss.run_study("linear-icl", "three", **large, progress=False), *names)
    assert {row.verdict for row in one.values()} == {"confirmed"}
    for name in names:
        assert (one[name].verdict, one[name].regime) == (other[name].verdict, other[name].regime), name


def test_a_start_that_is_large_beside_the_final_value():
    """Eigenvalues 50 and 1: a head ends at .27, so a start of .1 is not small, though it is below 1."""
    run = ss.run_study("linear-icl", eigenvalues=(50.0, 1.0), init_scale=0.1, progress=False)
    found = verdicts(run, "first-drop", "levels", "order", "scale-law")
    assert {row.verdict for row in found.values()} == {"inconclusive"}
    assert all("of the final value of a head" in row.regime for row in found.values())


@cache
def _null(name: str, seed: int) -> ss.Run:
    return next(null for nulls in NULLS_BY_TAG.values() for null in nulls if null.name == name).make(seed)


@pytest.mark.long
@pytest.mark.parametrize("claim", CLAIMS, ids=lambda claim: claim.tag)
def test_no_claim_is_confirmed_on_its_null(claim: Claim):
    tested = False
    for null in NULLS_BY_TAG[claim.tag]:
        for seed in range(2):
            row = ss.reading(_null(null.name, seed)).judge([claim]).verdicts[0]
            assert row.verdict != "confirmed", (null.name, seed, row.reason)
            assert row.error is None, row.reason
            tested = tested or row.verdict == "violated"
    assert tested, claim.tag
