"""Nulls are runs, judged by what a user calls: no null, and nothing that draws them, reaches into a reading."""

import ast
from pathlib import Path

import pytest

from stagescope.papers.calibrate import with_nulls
from stagescope.papers.registry import studies

ROOT = Path(__file__).parents[1]
FILES = sorted((ROOT / "validation" / "nulls").glob("*.py"))
INSIDE = {"reading", "Reading", "reading_cache", "vars", "setattr", "__dict__", "_recent"}
"""Names by which a reading, or what it keeps, is reached."""


def names(file: Path) -> set[str]:
    """Every name, attribute and part of an import in a file; `memo={}` drops what a run keeps, any other `memo` is named."""
    used = set()
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.Name):
            used.add(node.id)
        elif isinstance(node, ast.Attribute):
            used.add(node.attr)
        elif isinstance(node, ast.Import | ast.ImportFrom):
            paths = [alias.name for alias in node.names] + [getattr(node, "module", None) or ""]
            used |= {part for path in paths for part in path.split(".")}
        elif isinstance(node, ast.keyword) and node.arg == "memo" and ast.unparse(node.value) != "{}":
            used.add("memo")
    return used


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_no_null_touches_a_reading(file):
    assert not names(file) & {*INSIDE, "memo"}


def test_the_inspection_sees_a_patched_reading(tmp_path):
    file = tmp_path / "patched.py"
    file.write_text("from stagescope.papers.reading import reading\nvars(reading(run))['curves'] = replace(run, memo=old)\n")
    assert names(file) >= {"reading", "vars", "memo"}


@pytest.mark.parametrize("name", list(studies()))
def test_every_null_is_made_by_a_module_that_was_inspected(name):
    modules = {f"validation.nulls.{file.stem}" for file in FILES}
    for claim in with_nulls(studies()[name]):
        for null in claim.nulls:
            make = getattr(null.make, "func", null.make)
            assert make.__module__ in modules, null.name
