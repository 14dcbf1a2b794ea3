"""Audit of published hashes: which checkpoints are the same, seen without their weights."""

import json
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from stagescope.errors import InputError
from stagescope.watching.findings import Audit, Finding, listed_tensors, some
from stagescope.watching.folders import is_weights, number

_SHA256 = re.compile(r"(?:sha256:)?([0-9a-f]{64})", re.IGNORECASE)
_LIMIT = 2**28
"""Bytes of a file of hashes that are read."""
Hashes = dict[str, dict[str, str]]


def audit_hashes(hashes: Mapping[str, Mapping[str, str]] | str | Path) -> Audit:
    """Look for checkpoints of different steps whose files are the same.

    Args:
        hashes: {checkpoint: {file: sha256}}, or a JSON file that holds this. Files that hold no weights, such as a tokenizer, are
            left out. A checkpoint without a number in its name, such as `main`, may be the same as one with a number.

    Raises:
        InputError: it is no such table, or has fewer than two checkpoints with weights.

    Returns:
        The names of the checkpoints in order, and what was found.

    Examples:
        >>> first, second = {"model.safetensors": "a" * 64}, {"model.safetensors": "b" * 64}
        >>> print(ss.audit_hashes({"step1": first, "step2": second}).summary())
        2 checkpoints: nothing found
    """
    table = _checked(_loaded(Path(hashes)) if isinstance(hashes, str | Path) else hashes)
    if len(table) < 2:
        raise InputError(
            f"the hashes are of {len(table)} checkpoint{'s' * (len(table) != 1)} with weights; an audit compares at least two"
        )
    names = sorted(table, key=lambda name: (number(name) is None, number(name) or 0, name))
    found = list(_same(names, table))
    copies = {each.checkpoint for each in found}
    found += _same_files([name for name in names if name not in copies], table)
    found.sort(key=lambda each: names.index(each.checkpoint))
    return Audit(tuple(names), tuple(found))


def _same(names: list[str], table: Hashes) -> Iterator[Finding]:
    """Checkpoints of which all files of weights are the same."""
    groups: dict[tuple[str, ...], list[str]] = defaultdict(list)
    for name in names:
        groups[tuple(sorted(table[name].values()))].append(name)
    for group in groups.values():
        first, *others = [name for name in group if _numbers(name)] or group[:1]
        for name in others:
            if _numbers(name) != _numbers(first):
                files = len(table[name])
                text = f"{'its file is the same' if files == 1 else f'all {files} files are the same'} as in {first}"
                yield Finding(name, "duplicate", None, text, {"same_as": first, "files": files})


def _same_files(names: list[str], table: Hashes) -> Iterator[Finding]:
    """Single files that are the same in some checkpoints and not in all: those that are in all hold what never moves."""
    places: dict[str, list[str]] = defaultdict(list)
    for name in names:
        for value in set(table[name].values()):
            places[value].append(name)
    shared: dict[tuple[str, str], list[str]] = defaultdict(list)
    for value, group in places.items():
        first, *others = [name for name in group if _numbers(name)] or group[:1]
        for name in others if len(group) < len(names) else []:
            if _numbers(name) != _numbers(first):
                shared[name, first] += [file for file, other in table[name].items() if other == value]
    for (name, first), files in shared.items():
        text = f"{some(sorted(files))}: the same file as in {first}, while other files differ"
        yield Finding(name, "duplicate", sorted(files)[0], text, {**listed_tensors(sorted(files)), "same_as": first})


def _numbers(name: str) -> tuple[int, ...]:
    """All numbers of a name: `stage2-ingredient1-step1000` is another checkpoint than that of ingredient 2."""
    return tuple(int(each) for each in re.findall(r"\d{1,18}", name))


def _loaded(path: Path) -> Any:
    if not path.is_file():
        raise InputError(
            f"{path} is {'no file' if path.exists() else 'missing'}; give a JSON file {{checkpoint: {{file: sha256}}}}"
        )
    if path.stat().st_size > _LIMIT:
        raise InputError(f"{path} has {path.stat().st_size:,} bytes, more than a list of hashes; it is not read")
    try:
        return json.loads(path.read_bytes())
    except (OSError, ValueError, RecursionError) as error:
        raise InputError(f"{path} is no JSON that can be read; expected {{checkpoint: {{file: sha256}}}}") from error


def _checked(given: Any) -> Hashes:
    """The table with lower-case hashes, of files with weights alone."""
    if not isinstance(given, Mapping):
        raise InputError(f"the hashes are a {type(given).__name__}; expected {{checkpoint: {{file: sha256}}}}")
    found: Hashes = {}
    for name, files in given.items():
        if not isinstance(name, str) or not isinstance(files, Mapping):
            raise InputError(f"the hashes of {name!r:.80} are a {type(files).__name__}; expected {{file: sha256}}")
        for file, value in files.items():
            match = _SHA256.fullmatch(value) if isinstance(value, str) else None
            if match is None or not isinstance(file, str):
                raise InputError(
                    f"the hash of {file!r:.80} in {name!r:.80} is {value!r:.80}; expected a sha256 of 64 hexadecimal digits"
                )
            if is_weights(file):
                found.setdefault(name, {})[file] = match[1].lower()
    return found
