"""Reference numbers: every paper's file has value, unit, tolerance and source; a malformed file says what is wrong."""

import json
import math
import pkgutil
import sys
from importlib import resources

import pytest

import stagescope.papers
from stagescope.core.errors import StagescopeError
from stagescope.readings.published import HEADINGS, Distance, Published, Row, distance_table, published, write_distances

PACKAGES = [
    found.name
    for found in pkgutil.iter_modules(stagescope.papers.__path__, "stagescope.papers.")
    if found.ispkg and resources.files(found.name).joinpath("reference.json").is_file()
]
GOOD = {"value": 23.7, "unit": "flow time", "tolerance": 0.05, "source": "table 1"}


@pytest.mark.parametrize("package", PACKAGES)
def test_every_number_of_a_paper_has_its_source(package: str):
    numbers = published(package)
    assert numbers
    assert all(isinstance(number, Published) for number in numbers.values())


@pytest.fixture
def package(tmp_path, monkeypatch):
    """A package with a reference.json of the given text; it is imported under a name of its own."""
    name = f"paper_{tmp_path.name}"
    (tmp_path / name).mkdir()
    (tmp_path / name / "__init__.py").touch()
    monkeypatch.syspath_prepend(str(tmp_path))

    def write(text: str) -> str:
        (tmp_path / name / "reference.json").write_text(text)
        published.cache_clear()
        return name

    yield write
    sys.modules.pop(name, None)
    published.cache_clear()


def test_a_number_is_read_back(package):
    assert published(package(json.dumps({"E1": GOOD}))) == {"E1": Published(23.7, "flow time", 0.05, "table 1")}


@pytest.mark.parametrize(
    ("text", "about"),
    [
        ("{", "JSON"),
        ("[1]", "object"),
        (json.dumps({"E1": 23.7}), "E1.*23.7"),
        (json.dumps({"E1": {"value": 23.7}}), "E1.unit"),
        (json.dumps({"E1": {**GOOD, "more": 1}}), "E1.more"),
        (json.dumps({"E1": {**GOOD, "value": "23.7"}}), "E1.value.*'23.7'"),
        (json.dumps({"E1": {**GOOD, "value": True}}), "E1.value.*True"),
        (json.dumps({"E1": {**GOOD, "value": []}}), r"E1.value.*\[\]"),
        (json.dumps({"E1": {**GOOD, "tolerance": -0.1}}), "E1.tolerance.*-0.1"),
        (json.dumps({"E1": {**GOOD, "unit": None}}), "E1.unit.*None"),
        (json.dumps({"E1": {**GOOD, "source": ""}}), "E1.source.*''"),
    ],
)
def test_a_malformed_file_names_what_is_wrong(package, text: str, about: str):
    with pytest.raises(StagescopeError, match=about):
        published(package(text))


def test_a_package_without_the_file_is_named():
    with pytest.raises(StagescopeError, match=r"reference\.json of stagescope\.claims"):
        published("stagescope.claims")


ROWS = [
    Distance("First", "A10", "step 1", 1.0, 1.02, 0.05),
    Distance("First", "A10", "step 2", 2.0, 2.3, 0.2, "the grid of steps"),
    Distance("First", "A10", "step 3", 3.0, 3.25, None),
    Distance("Second", "loss", "end", 0.5, None, 0.1),
]


def test_a_number_is_judged_by_its_tolerance():
    assert [row.verdict for row in ROWS] == ["within", "outside", "shown", "outside"]
    assert [row.distance for row in ROWS] == pytest.approx([0.02, 0.3, 0.25, math.inf])
    assert Distance("", "", "", 1.0, 0.75, 0.25).verdict == "within"  # at the tolerance


def test_the_short_table_has_the_worst_number_of_each_quantity_and_its_cause():
    table = distance_table(ROWS)
    lines = [[cell.strip() for cell in line.strip("|").split("|")] for line in table.splitlines() if line.startswith("| ")]
    rows = [dict(zip(HEADINGS, line, strict=True)) for line in lines if line[0] in ("A10", "loss")]
    assert [(row["quantity"], row["within"], row["where"], row["verdict"]) for row in rows] == [
        ("A10", "1 of 2", "step 2", "outside"),
        ("loss", "0 of 1", "end", "outside"),
    ]
    assert table.startswith("1 of 3 numbers")
    assert "- A10: the grid of steps" in table
    assert len({len(line) for line in table.partition("## Second")[0].splitlines() if line.startswith("|")}) == 1  # in columns
    assert sum(line.startswith("| A10") for line in distance_table(ROWS, every=True).splitlines()) == 3


def test_what_the_paper_shows_without_a_number_is_not_decidable():
    drawing = Row("First", "drawing", "", None, None, None, "a drawing")
    assert drawing.verdict == "not decidable"
    assert drawing.cells()[1:4] == ("-", "none", "-")
    assert "- drawing: a drawing" in distance_table([drawing])


def test_every_number_is_written(tmp_path):
    page = write_distances(ROWS, tmp_path / "new")
    body = json.loads(page.with_suffix(".json").read_text())
    assert [row["verdict"] for row in body] == [row.verdict for row in ROWS]
    assert body[3]["ours"] is None
    assert page.read_text() == distance_table(ROWS, every=True)
