"""Cells of CSV files: texts that a spreadsheet would run are quoted, numbers never."""

import pytest

from stagescope.core.spreadsheet import cell


@pytest.mark.parametrize("text", ["=1+1", "+cmd", "-x", "@SUM(A1)", "\t=1", "\r=1", "=", "-"])
def test_a_formula_is_quoted(text):
    assert cell(text) == f"'{text}"


@pytest.mark.parametrize("value", [-1.5, -3, None, True, "", "flow", "-1.5", "+2e-3", "a=b", "'=1"])
def test_all_else_stays(value):
    assert cell(value) == value
