"""Read sequence classes from a table: JSON or CSV.

JSON: {"classes": [{"query": "the", "target": "game", "tokens": {"ball": 0.6, "of": 0.4}, "prior": 0.5}, ...], "vocab": 1000}
CSV:  columns query,target,token,probability, one row per context token of a class; optional column prior.
"""

import csv
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from stagescope.errors import InputError
from stagescope.memory import read_table
from stagescope.papers.scan_snap.process import SequenceClass, SequenceClasses


def read_classes(path: str | Path, vocab: int | None = None) -> SequenceClasses:
    r"""Sequence classes from a file; token names become numbers in order of appearance: contexts, queries, targets.

    Args:
        path: a .json or .csv file.
        vocab: number of tokens; default: those that are named.

    Examples:
        >>> rows = ["query,target,token,probability", "the,game,ball,0.6", "the,game,of,0.4", "a,song,choir,1.0"]
        >>> _ = Path("classes.csv").write_text("\n".join(rows))
        >>> ss.read_classes("classes.csv").vocab
        7
    """
    path = Path(path)
    try:
        text = read_table(f"the classes in {path}", path)
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"cannot read the classes in {path}: {error}") from None
    if path.suffix.lower() == ".json":
        rows, found = _from_json(path, text)
    elif path.suffix.lower() == ".csv":
        rows, found = _from_csv(path, text), None
    else:
        raise InputError(f"{path}: classes are read from .json or .csv, got {path.suffix or 'no suffix'!r}")
    if not rows:
        raise InputError(f"{path}: no classes given; at least one is needed")
    return _classes(path, rows, vocab or found)


def _from_json(path: Path, text: str) -> tuple[list[dict[str, Any]], int | None]:
    try:
        body = json.loads(text, object_pairs_hook=_without_repeats)
    except (ValueError, RecursionError) as error:
        raise InputError(f"{path} is not JSON: {error}") from None
    if not isinstance(body, Mapping) or not isinstance(body.get("classes"), list):
        raise InputError(f'{path}: expected {{"classes": [...]}}')
    vocab = body.get("vocab")
    if vocab is not None and (not isinstance(vocab, int) or vocab < 1):
        raise InputError(f"{path}: vocab is {vocab!r}, but must be a whole number >= 1")
    for number, row in enumerate(body["classes"]):
        if not isinstance(row, Mapping) or not {"query", "target", "tokens"} <= set(row):
            raise InputError(f"{path}: class {number} needs query, target and tokens")
        if not isinstance(row["tokens"], Mapping):
            raise InputError(f"{path}: tokens of class {number} must map token names to probabilities")
    return [dict(row) for row in body["classes"]], vocab


def _without_repeats(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"{twice!r} is given twice in one object")
    return found


def _from_csv(path: Path, text: str) -> list[dict[str, Any]]:
    reader = csv.DictReader(text.splitlines(), skipinitialspace=True)
    needed = {"query", "target", "token", "probability"}
    if not needed <= set(reader.fieldnames or ()):
        raise InputError(f"{path}: needs columns {', '.join(sorted(needed))}; found {reader.fieldnames}")
    classes: dict[tuple[str, str], dict[str, Any]] = {}
    for row in reader:
        line = f"{path}, line {reader.line_num}"
        item = classes.setdefault((row["query"], row["target"]), {"query": row["query"], "target": row["target"], "tokens": {}})
        if row["token"] in item["tokens"]:
            raise InputError(f"{line}: token {row['token']!r} is listed twice for this class")
        item["tokens"][row["token"]] = row["probability"]
        if row.get("prior"):
            item["prior"] = row["prior"]
    return list(classes.values())


def _classes(path: Path, rows: list[dict[str, Any]], vocab: int | None) -> SequenceClasses:
    names: dict[str, int] = {}
    for part in (lambda r: r["tokens"], lambda r: [r["query"]], lambda r: [r["target"]]):
        for row in rows:
            for name in part(row):
                names.setdefault(str(name), len(names))
    items, prior = [], []
    for row in rows:
        laws = {name: _number(path, name, value) for name, value in row["tokens"].items()}
        tokens = tuple(names[str(name)] for name in laws)
        item = {"query": names[str(row["query"])], "target": names[str(row["target"])]}
        try:
            items.append(SequenceClass(**item, tokens=tokens, probabilities=tuple(laws.values())))
        except InputError as error:
            raise InputError(f"{path}, query {row['query']!r}, target {row['target']!r}: {error}") from None
        if "prior" in row:
            prior.append(_number(path, "prior", row["prior"]))
    if prior and len(prior) != len(items):
        raise InputError(f"{path}: {len(prior)} of {len(items)} classes have a prior; give all or none")
    size = vocab or len(names)
    if size < len(names):
        raise InputError(f"{path}: vocab {size} is smaller than the {len(names)} tokens in use")
    try:
        return SequenceClasses(vocab=size, classes=tuple(items), prior=tuple(prior), labels=tuple(names))
    except InputError as error:
        raise InputError(f"{path}: {error}") from None


def _number(path: Path, name: str, value: Any) -> float:
    try:
        return float(value)
    except (TypeError, ValueError, OverflowError):
        raise InputError(f"{path}: probability of {name!r} is {value!r}, not a number") from None
