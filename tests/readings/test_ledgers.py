"""The ledger of a paper: every preset judged, verdicts side by side."""

import json

import pytest

import stagescope as ss
from stagescope.claims.claim import Verdict
from stagescope.claims.ledger import Ledger
from stagescope.core.progress import Progress
from stagescope.readings.ledgers import ledgers, write_ledgers


@pytest.mark.long
def test_ledger_of_scan_snap(tmp_path):
    found = ledgers(ss.study("scan-snap"), Progress())
    path = write_ledgers(found, tmp_path)
    body = json.loads((tmp_path / "ledger.json").read_text())
    assert set(body) == set(ss.study("scan-snap").ledger)
    text = path.read_text()
    statement = {claim.tag: claim.statement for claim in ss.study("scan-snap").claims()}["SnS:transition"]
    assert f"| {statement} | ? |" in text
    rows = {row.tag: row.verdict for row in found["single-common-pinv"]}
    assert rows["SnS:theorem-4"] == "confirmed"
    assert {row.tag: row.verdict for row in found["collapse"]}["SnS:theorem-4"] == "inconclusive"


def test_presets_with_different_claims_stand_side_by_side(tmp_path):
    def ledger(*tags):
        rows = (Verdict(tag, f"statement {tag}", "", None, None, None, "confirmed", "") for tag in tags)
        return Ledger("finished", "t", tuple(rows))

    path = write_ledgers({"one": ledger("a", "b"), "two": ledger("b")}, tmp_path)
    text = path.read_text().splitlines()
    assert "| statement a | yes | - |" in text
    assert "| statement b | yes | yes |" in text


def test_figures_are_not_kept_open(tmp_path):
    from matplotlib import pyplot

    from stagescope.core.progress import Progress
    from stagescope.views.figure import Figure, reproduce

    before = len(pyplot.get_fignums())
    figure = Figure("x", "a dot", lambda progress: {"y": 1.0}, lambda numbers: pyplot.subplots()[0])
    assert reproduce(figure, tmp_path, Progress()).exists()
    assert len(pyplot.get_fignums()) == before
