"""Cells of the CSV files that this package writes: a spreadsheet must not run a text as a formula."""

from typing import Any

_FORMULA = ("=", "+", "-", "@", "\t", "\r")


def cell(value: Any) -> Any:
    """A text that a spreadsheet would take for a formula gets a ' before it; numbers, and texts of numbers, stay as they are."""
    if not isinstance(value, str) or not value.startswith(_FORMULA):
        return value
    try:
        float(value)
    except ValueError:
        return f"'{value}"
    return value
