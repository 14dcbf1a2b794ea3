"""The ledger of a paper: every preset judged, verdicts side by side."""

import json

import stagescope as ss
from stagescope.papers.ledgers import ledgers, write_ledgers
from stagescope.progress import Progress


def test_ledger_of_scan_snap(tmp_path):
    found = ledgers(ss.study("scan-snap"), Progress())
    path = write_ledgers(found, tmp_path)
    body = json.loads((tmp_path / "ledger.json").read_text())
    assert set(body) == set(ss.study("scan-snap").ledger)
    text = path.read_text()
    assert "| The transition is at K ln M / eta_Y | ? |" in text
    rows = {row.tag: row.verdict for row in found["single-common-pinv"]}
    assert rows["SnS:theorem-4"] == "confirmed"
    assert {row.tag: row.verdict for row in found["collapse"]}["SnS:theorem-4"] == "violated"


def test_figures_are_not_kept_open(tmp_path):
    from matplotlib import pyplot

    from stagescope.progress import Progress
    from stagescope.views.figure import Figure, reproduce

    before = len(pyplot.get_fignums())
    figure = Figure("x", "a dot", lambda progress: {"y": 1.0}, lambda numbers: pyplot.subplots()[0])
    assert reproduce(figure, tmp_path, Progress()).exists()
    assert len(pyplot.get_fignums()) == before
