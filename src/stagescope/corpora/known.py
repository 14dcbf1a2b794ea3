"""Corpora known by name: where they are looked for, which files they have, and what must be in them."""

import difflib
import json
import os
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from stagescope.core.errors import InputError
from stagescope.corpora import hub as corpus_hub
from stagescope.corpora.files import Layout
from stagescope.corpora.tokens import Tokens

FOLDER = "STAGESCOPE_DATA"
"""The environment variable that names the folder of corpora."""
TOPICS = "topics"
"""The reference topics inside CPython: a text that every machine has."""


@dataclass(frozen=True)
class Part:
    """One file of a corpus, with what is known of it: checksum, tokens under the corpus's own tokeniser, documents."""

    file: str
    sha256: str | None = None
    tokens: int | None = None
    documents: int | None = None


@dataclass(frozen=True)
class Known:
    """A corpus with its usual tokeniser, its files by part in each edition, what they hold, and its name on the hub."""

    tokens: Tokens
    layout: Layout
    editions: tuple[Mapping[str, Part], ...]
    holds: str
    hub: tuple[str, str | None] | None = None


def _known_corpus(holds: str, editions: list[dict[str, list[Any]]], **facts: Any) -> Known:
    """A corpus as known.json has it: of each file of an edition the checksum, tokens and documents that are known."""
    return Known(
        holds=holds, editions=tuple({part: Part(*item) for part, item in edition.items()} for edition in editions), **facts
    )


KNOWN = {name: _known_corpus(**facts) for name, facts in json.loads(Path(__file__).with_suffix(".json").read_bytes()).items()}


def cache_folder() -> Path:
    """Where downloaded corpora are kept."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "stagescope" / "corpora"


def folders() -> tuple[Path, ...]:
    """Where corpora are looked for, first place first."""
    folder = os.environ.get(FOLDER)
    return (*((Path(folder),) if folder else ()), cache_folder())


def locate(source: str) -> dict[str, Path]:
    """The files of a corpus by part: a known name, a file, or a folder with train.txt and perhaps valid.txt and test.txt.

    A relative path is looked for here, then in the folders of corpora.
    """
    if source not in KNOWN:
        return _first(source)[1]
    hub = KNOWN[source].hub
    files = _present(source)
    if not files and hub is not None and corpus_hub.available():
        corpus_hub.download(hub, cache_folder() / source)
        files = _present(source)
    if not files:
        raise InputError(_how_to_get(source, KNOWN[source]))
    return files


def files_here(source: str) -> dict[str, Path]:
    """The same; empty where there are none: nothing is downloaded."""
    try:
        return _present(source) if source in KNOWN else _first(source)[1]
    except InputError:
        return {}


def anchored(source: str) -> str:
    """A known name as it is, a path as the absolute one that it means here: that is good from any folder."""
    return source if source in KNOWN else os.path.abspath(_first(source)[0])


def texts_of_this_name(source: str) -> dict[Path, dict[str, Path]]:
    """Files of texts that have the name of this one, in the current folder and the folders of corpora."""
    by_folder = {}
    for path in (root / Path(source).name for root in (Path.cwd(), *folders())):
        with suppress(OSError, InputError):  # a folder that may not be entered, or that holds no text
            by_folder[path] = _files_at(path)
    return {path: files for path, files in by_folder.items() if files}


def _first(source: str) -> tuple[Path, dict[str, Path]]:
    """The first place where there is something of that path, and its files."""
    try:
        places = (root / Path(source).expanduser() for root in (Path(), *folders()) if source)
        first_place = next(((place, files) for place in places if (files := _files_at(place))), None)
    except (OSError, RuntimeError) as error:  # a folder without permission, a name too long, a user without a home folder
        raise InputError(f"cannot read the corpus {source}: {getattr(error, 'strerror', None) or error}") from None
    if first_place is None:
        places = ", ".join(str(root) for root in (Path.cwd(), *folders()))
        near = difflib.get_close_matches(source, KNOWN, n=1, cutoff=0.5)
        hint = f"did you mean {near[0]!r}?" if near else f"give the path of a text file or one of {', '.join(KNOWN)}"
        raise InputError(f"there is no corpus {source!r}: looked for it in {places}; {hint}")
    return first_place


def _files_at(path: Path) -> dict[str, Path] | None:
    """The files of a corpus that is a file or a folder; None where there is nothing."""
    if path.is_file():
        return {"train": path}
    if not path.is_dir():
        return None
    files = {part: path / f"{part}.txt" for part in ("train", "valid", "test") if (path / f"{part}.txt").is_file()}
    if "train" not in files:
        raise InputError(f"the folder {path} has no train.txt; name one file, or put train.txt and valid.txt there")
    return files


def _present(name: str) -> dict[str, Path]:
    """The files of the first edition that is complete in one place."""
    for root in folders():
        for edition in KNOWN[name].editions:
            files = {part: root / name / item.file for part, item in edition.items()}
            if all(path.is_file() for path in files.values()):
                return files
    return {}


def _how_to_get(name: str, usual: Known) -> str:
    """Where a known corpus was looked for, and how to get it."""
    places = ", ".join(str(root / name) for root in folders())
    unset = "" if os.environ.get(FOLDER) else f" ({FOLDER} is not set)"
    files = " or ".join(", ".join(part.file for part in edition.values()) for edition in usual.editions)
    hub = f"install stagescope[hub] and be online to download {usual.hub[0]}, or " if usual.hub else ""
    put = f"put {files} ({usual.holds}) into one of these folders, or give a path"
    return f"the corpus {name!r} is not here: looked for it in {places}{unset}; {hub}{put}"
