"""Transition matrices from files."""

import csv
from io import StringIO
from pathlib import Path

from stagescope.errors import InputError
from stagescope.memory import read_table
from stagescope.processes.markov_chain import MarkovChain


def read_chain(path: Path) -> MarkovChain:
    """The chain of a CSV file with one row of the transition matrix per line, without names."""
    try:
        text = read_table(f"the transition matrix in {path}", path)
        rows = [row for row in csv.reader(StringIO(text, newline="")) if any(cell.strip() for cell in row)]
    except InputError:
        raise
    except (OSError, ValueError, csv.Error) as error:
        raise InputError(f"cannot read the transition matrix in {path}: {error}") from None
    if not rows:
        raise InputError(f"{path} has no rows: write one row of the transition matrix per line, separated by commas")
    if len(rows) == 1 and len(rows[0]) > 1:
        raise InputError(f"{path} has one row, {', '.join(rows[0])!r}, and no matrix below it: write one row per token, no names")
    widths = [len(row) for row in rows]
    if set(widths) != {len(rows)}:
        odd = next((width for width in widths if width != len(rows)), 0)
        raise InputError(f"the transition matrix in {path} is not square: it has {len(rows)} rows, and one of {odd} entries")
    return MarkovChain(rows=tuple(tuple(_number(cell, i, path) for cell in row) for i, row in enumerate(rows)))


def _number(cell: str, row: int, path: Path) -> float:
    try:
        return float(cell)
    except ValueError:
        where = f"row {row} of the transition matrix in {path}"
        raise InputError(f"{where} has {cell.strip()!r}, which is not a number; leave out names and headings") from None
