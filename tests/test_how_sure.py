"""The page How sure are we: its tables are those of the calibration, and it names the claims whose rules have changed since."""

import pytest

from stagescope.readings.calibrate import with_nulls
from stagescope.readings.registry import studies
from validation import how_sure

PAGE = how_sure.DOCS / "how-sure.md"
COUNTS = how_sure.counts()


def test_the_tables_are_those_of_the_calibration():
    assert PAGE.read_text() == how_sure.page(PAGE.read_text(), COUNTS)


@pytest.mark.parametrize("name", list(COUNTS))
def test_every_claim_was_calibrated_and_one_whose_rules_have_changed_is_named(name):
    lines, claims = COUNTS[name]["claims"], studies()[name].claims()
    assert {line["tag"]: line["kind"] for line in lines} == {claim.tag: claim.kind for claim in claims}
    older = {(line["tag"], line["rules"]) for line in lines} - {(claim.tag, claim.rules) for claim in claims}
    section = how_sure.tables({name: COUNTS[name]})
    assert {tag for tag, _ in older} == set(how_sure.drawn_by_other_rules(name, lines))
    assert all(tag in section.partition("rules that have changed since")[2] for tag, _ in older)


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
