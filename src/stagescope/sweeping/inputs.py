"""Files that points read. A point is known by their bytes, so these must be the same wherever it is computed."""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from stagescope.errors import InputError
from stagescope.options import Options, option
from stagescope.runs.files import sha256, store_errors


def file_hashes(chosen: Iterable[Options]) -> dict[str, str]:
    """SHA-256 of every file that some options name, by its path."""
    found: dict[str, str] = {}
    for options in chosen:
        for name, parts in options.files().items():
            for path in parts.values():
                if not path.is_file():
                    raise InputError(f"{option(name)} {path}: No such file")
                if str(path) not in found:
                    with store_errors(path):
                        found[str(path)] = sha256(path)
    return found


def known_files(options: Options, hashes: Mapping[str, str]) -> dict[str, Any]:
    """Options that name files, by what is in them instead of where they lie."""
    return {name: {part: hashes[str(path)] for part, path in parts.items()} for name, parts in options.files().items()}


def changed_file(hashes: Mapping[str, str]) -> str | None:
    """What is wrong with the first file that is not as it was; None where all are."""
    for name, known in hashes.items():
        path = Path(name)
        if not path.is_file():
            return f"{path}, which this sweep reads, is missing"
        with store_errors(path):
            if sha256(path) != known:
                return f"{path} was changed since this sweep began"
    return None
