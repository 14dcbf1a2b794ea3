"""Answers of readings: stages, ledger, ladder and prediction of a stored run, kept in the user's cache.

An answer is named by the digest of all that decides it: the bytes of the run, the code, the texts. It is JSON with the names of
known classes, never code. Whoever asks again, in any process, gets it without computing; what cannot be kept is computed.
This module imports little: a command looks here before it loads anything that computes.
"""

import json
import re
from base64 import b64decode, b64encode
from collections.abc import Callable, Iterator, Mapping
from dataclasses import fields
from functools import partial, wraps
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from stagescope.core import caches
from stagescope.core.errors import StagescopeError
from stagescope.runs import files

if TYPE_CHECKING:
    from stagescope.runs.run import Run

CLASSES = {
    **dict.fromkeys(("Stages", "Stage", "Event", "Transition"), "stagescope.detect.stage"),
    **dict.fromkeys(("Verdict", "Elsewhere"), "stagescope.claims.claim"),
    "Ledger": "stagescope.claims.ledger",
    "OverRuns": "stagescope.claims.comparison",
    "Rates": "stagescope.claims.inputs",
    **dict.fromkeys(("Ladder", "Rung"), "stagescope.landscape.ladder"),
    **dict.fromkeys(("SaddlePath", "Leg", "Predicted"), "stagescope.landscape.saddle_path"),
}
"""What an answer may be made of, and where it is defined."""
FACTS = ("spec", "clock", "status", "reason", "seed", "study", "config")
"""What an answer depends on besides the arrays; a copy of a run may have others."""
ANSWERS = {"stages": "Stages", "check": "Ledger", "check --elsewhere": "Ledger", "ladder": "Ladder", "predicted": "tuple"}
"""What is asked, and the class of its answer."""
DTYPES = ("<f8", "<i8", "|b1")
MANIFEST, DATA = "manifest.json", "data.zarr/"
DONE = ("finished", "stopped")
Answer = TypeVar("Answer")


def kept_answer(what: str) -> Callable[[Callable[[Any], Answer]], Callable[[Any], Answer]]:
    """A part of a reading that is computed once for a stored run, whatever process asks; its integrations are kept too."""

    def decorated(compute: Callable[[Any], Answer]) -> Callable[[Any], Answer]:
        @wraps(compute)
        def answer(reading: Any) -> Answer:
            from stagescope.flow.kept import keeping

            run = reading.run
            # An objective of the user's, or a control, is no part of the run.
            name = None if reading.what is not None or getattr(reading, "control", None) is not None else _name_of(run, what)
            if name is not None and (stored := caches.kept(name, partial(decoded, what))) is not None:
                return stored
            with keeping(run):
                value = compute(reading)
            if name is not None:
                _keep(name, value, run)
            return value

        return answer

    return decorated


def stored_answer(folder: Path, what: str) -> Any:
    """The answer that is kept for a run folder; None where there is none, or where a byte of the run is not as committed."""
    try:
        data = files.read(folder, MANIFEST)
        manifest = json.loads(data)
        body = {key: value for key, value in manifest.items() if key != "digest"}
        sealed = {**body, "digest": files.digest(json.dumps(body, indent=1).encode())}
        name = _name(what, manifest, manifest)
        if name is None or data != (json.dumps(sealed, indent=1) + "\n").encode():
            return None
        if (answer := caches.kept(name, partial(decoded, what))) is None:
            return None
        for path, digest in manifest["files"].items():
            if {"", ".", ".."}.intersection(path.split("/")):
                return None
            with files.opened(folder, path) as file:
                if files.sha256(file) not in (digest, manifest["trimmed"].get(path)):
                    return None
    except (StagescopeError, OSError, ValueError, LookupError, TypeError, AttributeError, RecursionError):
        return None  # the command says what is wrong with the folder
    return answer


def _name_of(run: "Run", what: str) -> str | None:
    """The name of an answer about a run; None where the run was not read from a folder, or may still change."""
    if run.path is None or {getattr(arrays, "origin", None) for arrays in (run.params, run.series)} != {_digest(run.path)}:
        return None
    try:
        return _name(what, json.loads(files.read(run.path, MANIFEST)), {key: getattr(run, key) for key in FACTS})
    except (StagescopeError, ValueError):
        return None


def _digest(folder: Path) -> str:
    """Of the manifest of a run as it is now."""
    try:
        return files.digest(files.read(folder, MANIFEST))
    except StagescopeError:
        return ""


def _name(what: str, manifest: Mapping[str, Any], facts: Mapping[str, Any]) -> str | None:
    """The digest of the arrays of a run and of what else decides its answer: not of when it was made, or where it lies."""
    if caches.fresh() or facts["status"] not in DONE or not _ours(facts["spec"]):
        return None
    arrays = {path: digest for kind in ("files", "trimmed") for path, digest in manifest[kind].items() if path.startswith(DATA)}
    parts = [what, arrays, {key: facts[key] for key in FACTS}, caches.code_stamp(), list(_texts(facts["spec"]))]
    try:
        return f"answer-{caches.digest_of(json.dumps(parts, sort_keys=True, allow_nan=False, default=dict).encode())}"
    except (TypeError, ValueError):
        return None


def _objects(spec: Any) -> Iterator[Mapping[str, Any]]:
    """The parts of a spec that have a type."""
    if isinstance(spec, Mapping):
        if isinstance(spec.get("type"), str):
            yield spec
        spec = list(spec.values())
    if isinstance(spec, list | tuple):
        for item in spec:
            yield from _objects(item)


def _ours(spec: Mapping[str, Any]) -> bool:
    """Whether the code that reads a run is this package: the stamp of the code knows no other."""
    papers = Path(__file__).parents[1] / "papers"
    owners = [part["type"].rpartition("/") for part in _objects(spec)]
    if any(name == "own" or (owner and not (papers / owner.replace("-", "_")).is_dir()) for owner, _, name in owners):
        return False
    if spec["field"] is not None:
        return True
    from importlib.metadata import entry_points  # it takes as long to import as all the rest here

    return not entry_points(group="stagescope.papers")  # all papers judge a run without a field


def _texts(spec: Mapping[str, Any]) -> Iterator[list[Any]]:
    """Path, size and time of change of the files of each text: an answer may be given without a text that comes later."""
    for part in _objects(spec):
        if part["type"] == "TextCorpus":
            from stagescope.corpora.known import files_here

            for path in sorted(files_here(part["source"]).values()):
                yield [str(path), path.stat().st_size, path.stat().st_mtime_ns]


def _keep(name: str, value: Any, run: "Run") -> None:
    """Keep an answer that can be written, names no folder, and is about the run as it still is."""
    try:
        body = encoded(value)
    except (TypeError, ValueError):
        return
    if run.path is None or re.search(rf"(?<![\w/.-]){re.escape(json.dumps(str(run.path))[1:-1])}(?![\w.-])".encode(), body):
        return
    if run.params.origin != _digest(run.path):
        caches.say(f"{run.path} changed while it was read; this answer is about the run as it was opened, and is not kept")
        return
    caches.keep(name, body)


def encoded(value: Any) -> bytes:
    """An answer as JSON; a TypeError where it has something in it that an answer may not have."""
    return json.dumps(_plain(value), allow_nan=True).encode()


def _plain(value: Any) -> Any:
    """Numbers, texts and None as they are; all else is a list that begins with what it is."""
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, tuple | list):
        return ["tuple" if isinstance(value, tuple) else "list", *map(_plain, value)]
    if isinstance(value, Mapping):
        return ["dict", *([_plain(key), _plain(item)] for key, item in value.items())]
    name = type(value).__name__
    if CLASSES.get(name) == type(value).__module__:
        return [name, {field.name: _plain(getattr(value, field.name)) for field in fields(value)}]
    if name == "ndarray" and value.dtype.str in DTYPES:
        return ["array", value.dtype.str, list(value.shape), b64encode(value.tobytes()).decode()]
    if callable(value):  # the end of a leg, which is searched for when it is first asked for
        return ["constant", _plain(value())]
    if hasattr(value, "item") and getattr(value, "shape", None) == ():
        return _plain(value.item())
    raise TypeError(f"{name} is no part of an answer")


def decoded(what: str, body: bytes) -> Any:
    """The answer again. Only classes that are named above are made."""
    plain = json.loads(body)
    if plain[0] != ANSWERS[what]:
        raise ValueError(f"{plain[0]!r:.40} is no answer to {what!r}")
    return _restored(plain)


def _restored(plain: Any) -> Any:
    if not isinstance(plain, list):
        return plain
    kind, *parts = plain
    if kind in ("tuple", "list"):
        return (tuple if kind == "tuple" else list)(map(_restored, parts))
    if kind == "constant":
        return partial(_restored, parts[0])
    if kind == "dict":
        return {_restored(key): _restored(item) for key, item in parts}
    if kind == "array" and parts[0] in DTYPES:
        import numpy as np  # a ledger is shown without it

        return np.frombuffer(b64decode(parts[2]), parts[0]).reshape(parts[1]).copy()
    return getattr(import_module(CLASSES[kind]), kind)(**{name: _restored(item) for name, item in parts[0].items()})
