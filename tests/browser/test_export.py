"""The current view as a file: the right numbers, a drawing that is XML without code, a picture that is one.

Frames are counted from one, as on the page.
"""

import csv
import io
import xml.etree.ElementTree as ET

import numpy as np
import pytest
from matplotlib.image import imread

from stagescope.reporting.page import page
from tests.browser.samples import TOKENS, attention, portrait
from tests.browser.test_hostile import VISIBLE, hostile

FRAMES, AT = 41, 23


@pytest.fixture(scope="module")
def sample(tmp_path_factory):
    path = tmp_path_factory.mktemp("export") / "page.html"
    path.write_text(page([portrait(frames=FRAMES)], exact=True), encoding="utf-8")
    return path


def save(seen, slot: str, kind: str) -> bytes:
    """Open the panel's menu and take the file the browser is given."""
    panel = seen.panel(slot)
    panel.get_by_text("Export", exact=True).click()
    with seen.page.expect_download() as download:
        panel.get_by_role("button", name=kind, exact=True).click()
    assert download.value.suggested_filename.endswith(f".{kind.lower()}")
    return download.value.path().read_bytes()


def table(data: bytes) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(data.decode("utf-8"), newline="")))


def test_csv_of_matrices(visit, sample):
    seen = visit(sample)
    seen.scrub(AT)
    rows, truth = table(save(seen, "attention", "CSV")), attention(FRAMES)[AT]
    assert len(rows) == 2 * TOKENS * TOKENS
    heads, names = {"head 1": 0, "head 2": 1}, [f"token {i}" for i in range(TOKENS)]
    for row in rows:
        expected = truth[heads[row["panel"]], names.index(row["query"]), names.index(row["key"])]
        assert float(row["value"]) == pytest.approx(expected, rel=1e-6)
        assert (row["run"], int(row["frame"]), float(row["t"])) == ("first", AT + 1, pytest.approx(AT / 2))


def test_csv_of_curves_has_every_frame_in_full(visit, sample):
    seen = visit(sample)
    rows = table(save(seen, "loss", "CSV"))
    time = np.linspace(0.0, 20.0, FRAMES)
    assert [int(row["frame"]) for row in rows] == list(range(1, FRAMES + 1))
    assert [float(row["t"]) for row in rows] == time.tolist()
    assert [float(row["population"]) for row in rows] == (0.1 + np.exp(-time / 4)).tolist()  # to the last bit


def test_csv_of_points(visit, sample):
    seen = visit(sample)
    seen.scrub(AT)
    rows = table(save(seen, "plane", "CSV"))
    angle = np.linspace(0, 1, FRAMES)[AT] + np.arange(TOKENS)
    assert [row["label"] for row in rows] == [f"token {i}" for i in range(TOKENS)]
    assert [int(row["frame"]) for row in rows] == [AT + 1] * TOKENS
    for row, here in zip(rows, angle, strict=True):
        assert [float(row["first"]), float(row["second"])] == pytest.approx([np.cos(here), np.sin(here)], abs=1e-6)


@pytest.mark.parametrize("wild", [False, True], ids=["tame", "hostile"])
@pytest.mark.parametrize("slot", ["loss", "attention", "plane"])
def test_svg_is_xml_without_code(visit, sample, tmp_path, slot, wild):
    path = sample
    if wild:
        path = tmp_path / "hostile.html"
        path.write_text(page([portrait(text=hostile)]), encoding="utf-8")
    seen = visit(path)
    data = save(seen, slot, "SVG")
    root = ET.fromstring(data)
    assert root.tag == "{http://www.w3.org/2000/svg}svg"
    names = {one.tag.split("}")[1] for one in root.iter()}
    assert not names & {"script", "foreignObject", "image", "use", "a", "iframe", "img"}
    assert not [name for one in root.iter() for name in one.attrib if name.lower().startswith("on") or "href" in name]
    words = " ".join(text for one in root.iter() if (text := one.text))
    assert not wild or slot == "loss" or VISIBLE[:9] in words
    assert len(list(root.iter())) > 10


@pytest.mark.parametrize("slot", ["loss", "attention", "plane"])
def test_png_is_a_picture(visit, sample, slot):
    seen = visit(sample)
    pixels = imread(io.BytesIO(save(seen, slot, "PNG")), format="png")
    assert min(pixels.shape[:2]) > 100
    assert len(np.unique(pixels[::3, ::3, :3].reshape(-1, 3) @ [1.0, 3.0, 7.0])) > 5


def test_csv_runs_nothing_in_a_spreadsheet(visit, tmp_path):
    """Names that begin like a formula are text; numbers stay numbers."""
    path = tmp_path / "formula.html"
    path.write_text(page([portrait("=HYPERLINK(1)", text=lambda text: f"@{text}")]), encoding="utf-8")
    seen = visit(path)
    rows = list(csv.reader(io.StringIO(save(seen, "gap", "CSV").decode("utf-8"), newline="")))
    assert {row[0] for row in rows[1:]} == {"'@=HYPERLINK(1)"}
    assert all(row[4].startswith("'@token") for row in rows[1:])
    assert all(np.isfinite(float(row[6])) for row in rows[1:])
    seen.press("End")
    late = list(csv.reader(io.StringIO(save(seen, "gap", "CSV").decode("utf-8"), newline="")))
    assert min(float(row[6]) for row in late[1:]) < 0
    loss = save(seen, "loss", "CSV").decode("utf-8")
    assert loss.splitlines()[0].split(",")[-1] == "'@population"
