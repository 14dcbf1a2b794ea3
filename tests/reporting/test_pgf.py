"""Views for LaTeX: a picture names only columns of its table, the table has the numbers, and text cannot steer TeX."""

import csv
import re
from pathlib import Path

import numpy as np
import pytest

import stagescope as ss
from stagescope.errors import InputError
from stagescope.reporting.pgf import pgf, tex
from stagescope.reporting.portrait import portrait
from stagescope.views.view import Curve, Curves, Level, Matrices, Points
from tests.reporting.runs import small
from tests.runs.samples import memory_run

HOSTILE = ("\\input{/etc/passwd}", "a,b", "100 %", "a_b^c", "{", "\u202e", "", "a,b", "$\\frac{")


def columns(text: str) -> dict[str, list[str]]:
    mark, header, *rows = csv.reader(text.splitlines())
    assert mark == ["# Made with Stagescope"]
    return {name: [row[i] for row in rows] for i, name in enumerate(header)}


def named(picture: str) -> set[str]:
    """Columns that the pictures of a file read."""
    tables = re.findall(r"table\[col sep=comma, ([^\]]*)\]", picture)
    return {word.split("=")[1] for table in tables for word in table.split(", ")}


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    folder = tmp_path_factory.mktemp("pgf")
    return folder, ss.figures(small("token"), folder, to="pgf", skip=("ladder", "ledger", "prediction"), progress=False)


def test_pictures_name_columns_that_are_there(made):
    folder, files = made
    pictures = [path for path in files if path.suffix == ".tex"]
    assert {"loss.tex", "attention.tex", "embedding.tex", "entropy.tex"} <= {path.name for path in pictures}
    assert sorted(path.name for path in folder.iterdir()) == sorted(path.name for path in files)
    for path in pictures:
        text = path.read_text()
        assert set(re.findall(r"\{([\w.-]+\.csv)\}", text)) == {f"{path.stem}.csv"}
        found = columns(path.with_suffix(".csv").read_text())
        assert named(text) | {"t"} == {*found, "t"}, path.name
        for name in ("tikzpicture", "axis", "groupplot"):
            assert text.count(rf"\begin{{{name}}}") == text.count(rf"\end{{{name}}}")
        assert text.replace(r"\{", "").replace(r"\}", "").count("{") == text.replace(r"\{", "").replace(r"\}", "").count("}")


def test_tables_have_the_numbers(made):
    folder, run = made[0], small("token")
    loss = columns((folder / "loss.csv").read_text())
    np.testing.assert_array_equal(np.array(loss["t"], float), run.t)
    np.testing.assert_array_equal(np.array(loss["loss"], float), run.series["loss"])
    cells = columns((folder / "attention.csv").read_text())
    assert (cells["column"][:5], cells["row"][:5]) == (list("01230"), list("00001"))
    np.testing.assert_allclose(np.array(cells["start"], float).reshape(4, 4).sum(axis=1), 1.0)


def test_files_of_ours_are_replaced_and_no_others(made, tmp_path):
    folder, files = made
    before = {path: path.read_bytes() for path in files}
    again: dict[str, object] = {"to": ("pgf",), "skip": ("ladder", "ledger", "prediction"), "progress": False}
    ss.figures(small("token"), folder, **again)
    assert before == {path: path.read_bytes() for path in files}
    (tmp_path / "loss.csv").write_text("mine")
    with pytest.raises(InputError, match=r"loss\.csv exists and was not made with Stagescope"):
        ss.figures(small("token"), tmp_path, **again)
    assert [path.name for path in tmp_path.iterdir()] == ["loss.csv"]


def test_names_of_anybody(tmp_path):
    run, names = memory_run(5), HOSTILE
    found = portrait(run)
    curves = Curves("x", names[0], "", names[2], tuple(Curve(n, np.ones(5)) for n in names), (Level(names[4], 1.0),))
    cells = np.zeros((5, 1, len(names), len(names)))
    matrices = Matrices("x", names[0], "", cells, (names[0],), names, names, names[3], names[4])
    points = Points("x", names[0], "", np.zeros((5, len(names), 2)), names, np.ones((5, 2)))
    for view in (curves, matrices, points):
        picture, table = pgf(found, view, "x")
        assert named(picture) <= set(columns(table))
        assert "\\input" not in picture
        assert picture.isascii()
    assert len(columns(pgf(found, curves, "x")[1])) == 1 + len(names)


@pytest.mark.parametrize(
    ("text", "printed"), [("50 % of {a}", r"50 \% of \{a\}"), ("x\ny", "x y"), ("\\x^2", r"\textbackslash{}x\textasciicircum{}2")]
)
def test_text_as_tex_prints_it(text, printed):
    assert tex(text) == printed


def test_an_unknown_kind_is_named(tmp_path):
    with pytest.raises(InputError, match="pgf"):
        ss.figures(small("token"), tmp_path / "new", to="pfd")
    assert not Path(tmp_path / "new").exists()
