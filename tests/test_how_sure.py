"""The page How sure are we: its tables are those of the calibration, and no claim has changed its rules since."""

import pytest

from stagescope.papers.calibrate import with_nulls
from stagescope.papers.registry import studies
from validation import how_sure

PAGE = how_sure.DOCS / "how-sure.md"
COUNTS = how_sure.counts()


def test_the_tables_are_those_of_the_calibration():
    assert PAGE.read_text() == how_sure.page(PAGE.read_text(), COUNTS)


@pytest.mark.parametrize("name", list(COUNTS))
def test_every_claim_was_calibrated_with_the_rules_in_force(name):
    written = {line["tag"]: (line["rules"], line["kind"]) for line in COUNTS[name]["claims"]}
    assert written == {claim.tag: (claim.rules, claim.kind) for claim in studies()[name].claims()}


@pytest.mark.parametrize("name", list(studies()))
def test_every_claim_that_can_fail_has_a_null_and_a_kind(name):
    for claim in with_nulls(studies()[name]):
        assert claim.kind is not None, claim.tag
        assert claim.nulls, claim.tag


def test_a_claim_that_fails_on_its_own_ground_is_said_to():
    """Every claim that is violated too often is named in the section on failures."""
    said = PAGE.read_text().partition("## Where a claim fails on its own ground")[2].partition("\n## ")[0]
    lines = [line for body in COUNTS.values() for line in body["claims"]]
    missed = [line["tag"] for line in lines if any("violated" in problem for problem in line["problems"])]
    assert [tag for tag in missed if f"`{tag}`" not in said] == []
