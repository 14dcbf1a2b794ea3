"""Versions of rules: a column shows one of them, and a row is outdated when claims or their rules have changed."""

import pytest

from stagescope.sweeping.columns import Rules, newest_verdict, outdated


def row(rules=None, status="finished", **verdicts):
    made = {"status": status, "verdicts": verdicts}
    return made if rules is None else {**made, "rules": rules}


def test_of_two_versions_the_newer_is_shown():
    rows = [row(a="confirmed"), row({"a": 2}, a="violated")]
    assert list(map(newest_verdict(rows, "a"), rows)) == [None, "violated"]


def test_rows_of_one_version_are_all_shown():
    rows = [row(a="confirmed"), row({"a": 1}, a="violated")]
    assert list(map(newest_verdict(rows, "a"), rows)) == ["confirmed", "violated"]


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        (row({"a": 2, "b (c)": 1}, a="confirmed"), False),
        (row({"a": 1, "b (c)": 1}, a="confirmed"), True),
        (row({"a": 2}, a="confirmed"), True),  # a claim is new
        (row({"a": 2, "b (c)": 1, "gone": 1}, a="confirmed"), True),
        (row(a="confirmed"), True),  # of version 0.1.0
        (row({"a": 1}, status="failed"), False),
        ({"status": "finished"}, False),  # nothing was judged
    ],
)
def test_outdated(found, expected):
    assert outdated(found, Rules({"a": 2, "b (c)": 1}, {})) is expected


def test_a_row_judged_by_another_module_is_outdated():
    judged = {**row({"own": 1}, own="confirmed"), "own": {"own": "old"}}
    assert not outdated(judged, Rules({"own": 1}, {"own": "old"}))
    assert outdated(judged, Rules({"own": 1}, {"own": "new"}))


def test_of_two_modules_the_one_that_judged_last_is_shown():
    rows = [{**row({"own": 2}, own="confirmed"), "own": {"own": "old"}, "committed": 1.0}]
    rows.append({**row({"own": 1}, own="violated"), "own": {"own": "new"}, "committed": 2.0})
    assert list(map(newest_verdict(rows, "own"), rows)) == [None, "violated"]


def test_a_tag_that_is_numbered_has_the_rules_of_its_claim():
    rows = [row({"a": 1}, **{"a (2)": "confirmed"}), row({"a": 2}, **{"a (2)": "violated"})]
    assert list(map(newest_verdict(rows, "a (2)"), rows)) == [None, "violated"]
