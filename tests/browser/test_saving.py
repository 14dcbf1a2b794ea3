"""The numbers of a panel as a file: the right ones, and nothing that a spreadsheet would run. Frames are counted from one."""

import csv
import io

import numpy as np
import pytest

from stagescope.show.page import page
from tests.browser.samples import TOKENS, attention, portrait

FRAMES, AT = 41, 23


@pytest.fixture(scope="module")
def sample(tmp_path_factory):
    path = tmp_path_factory.mktemp("saving") / "page.html"
    path.write_text(page([portrait(frames=FRAMES)], exact=True), encoding="utf-8")
    return path


def save(seen, slot: str) -> str:
    """Press the panel's button and take the file the browser is given."""
    with seen.page.expect_download() as download:
        seen.panel(slot).get_by_role("button", name="CSV", exact=True).click()
    assert download.value.suggested_filename.endswith(".csv")
    return download.value.path().read_bytes().decode("utf-8")


def table(text: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(text, newline="")))


def test_csv_of_matrices(visit, sample):
    seen = visit(sample)
    seen.scrub(AT)
    rows, truth = table(save(seen, "attention")), attention(FRAMES)[AT]
    assert len(rows) == 2 * TOKENS * TOKENS
    heads, names = {"head 1": 0, "head 2": 1}, [f"token {i}" for i in range(TOKENS)]
    for row in rows:
        expected = truth[heads[row["panel"]], names.index(row["query"]), names.index(row["key"])]
        assert float(row["value"]) == pytest.approx(expected, rel=1e-6)
        assert (row["run"], int(row["frame"]), float(row["t"])) == ("first", AT + 1, pytest.approx(AT / 2))


def test_csv_of_curves_has_every_frame_in_full(visit, sample):
    seen = visit(sample)
    rows = table(save(seen, "loss"))
    time = np.linspace(0.0, 20.0, FRAMES)
    assert [int(row["frame"]) for row in rows] == list(range(1, FRAMES + 1))
    assert [float(row["t"]) for row in rows] == time.tolist()
    assert [float(row["population"]) for row in rows] == (0.1 + np.exp(-time / 4)).tolist()  # to the last bit


def test_csv_of_points(visit, sample):
    seen = visit(sample)
    seen.scrub(AT)
    rows = table(save(seen, "plane"))
    angle = np.linspace(0, 1, FRAMES)[AT] + np.arange(TOKENS)
    assert [row["label"] for row in rows] == [f"token {i}" for i in range(TOKENS)]
    assert [int(row["frame"]) for row in rows] == [AT + 1] * TOKENS
    for row, here in zip(rows, angle, strict=True):
        assert [float(row["first"]), float(row["second"])] == pytest.approx([np.cos(here), np.sin(here)], abs=1e-6)


@pytest.mark.long
def test_csv_runs_nothing_in_a_spreadsheet(visit, tmp_path):
    """Names that begin like a formula are text; numbers stay numbers."""
    path = tmp_path / "formula.html"
    path.write_text(page([portrait("=HYPERLINK(1)", text=lambda text: f"@{text}")]), encoding="utf-8")
    seen = visit(path)
    rows = list(csv.reader(io.StringIO(save(seen, "gap"), newline="")))
    assert {row[0] for row in rows[1:]} == {"'@=HYPERLINK(1)"}
    assert all(row[4].startswith("'@token") for row in rows[1:])
    assert all(np.isfinite(float(row[6])) for row in rows[1:])
    seen.press("End")
    late = list(csv.reader(io.StringIO(save(seen, "gap"), newline="")))
    assert min(float(row[6]) for row in late[1:]) < 0
    assert save(seen, "loss").splitlines()[0].split(",")[-1] == "'@population"


def test_the_page_says_how_figures_are_made(visit, sample):
    seen = visit(sample)
    assert "stagescope figures RUN --out figures" in seen.page.locator("main").text_content()
    assert "stagescope figures RUN --out figures" in seen.panel("loss").get_by_role("button", name="CSV").get_attribute("title")
