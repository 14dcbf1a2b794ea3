"""The manifest: what a run is, which frames exist, and the checksum of every byte that belongs to it."""

import json
import os
import platform
import re
import sys
from importlib import metadata
from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field

from stagescope.core.errors import DamagedRun, NotARun, StoreError
from stagescope.core.spec import Json, Spec, types_of
from stagescope.core.threads import blas_threads
from stagescope.runs import files

SCHEMA = 2
NAME = "manifest.json"
EVENTS = "events.jsonl"
DATA = "data.zarr"
CHECKPOINT = "checkpoint"
CHECKPOINT_FILE = re.compile(rf"{CHECKPOINT}/[0-9]{{1,18}}\.safetensors")
_FRESH = r"(\.new)?"
OURS = re.compile(
    rf"{NAME}{_FRESH}|{EVENTS}{_FRESH}|{CHECKPOINT_FILE.pattern}{_FRESH}"
    rf"|{DATA}/(\w+/)?zarr\.json{_FRESH}|{DATA}/\w+/c(/\d+)+{_FRESH}"
)
"""Every file that the writer makes, also one whose writing was cut short."""
_PACKAGES = ("stagescope", "numpy", "numba", "scikit-sundae", "scipy", "jax", "optax", "safetensors")
_THREADS = (
    "OMP_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "MKL_NUM_THREADS",
    "BLIS_NUM_THREADS",
    "VECLIB_MAXIMUM_THREADS",
    "NUMBA_NUM_THREADS",
    "XLA_FLAGS",
)
"""Variables that set how many threads the numerical libraries use."""


def sealed(model: BaseModel) -> bytes:
    """One JSON file in one exact form, with its own digest: any changed byte is seen."""
    body = model.model_dump(mode="json")
    plain = json.dumps(body, indent=1, allow_nan=False)
    return (json.dumps({**body, "digest": files.digest(plain.encode())}, indent=1) + "\n").encode()


class Manifest(BaseModel):
    """One JSON file in one exact form: any changed byte, white space too, is seen."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    schema_version: int = SCHEMA
    study: str | None = None
    config: Json | None = None
    config_digest: str
    spec: Spec
    tags: tuple[str, ...] = ()
    clock: str
    seed: int | None = 0
    status: str
    reason: str = ""
    planned: int | None = Field(ge=0)
    committed: int = Field(0, ge=0)
    chunk: int = Field(ge=1)
    arrays: dict[str, tuple[str, ...]]
    checkpoint: str | None = None
    events_bytes: int = Field(0, ge=0)
    files: dict[str, str] = {}
    trimmed: dict[str, str] = {}
    environment: Json

    def text(self) -> bytes:
        """Names stay in the order given, because the order of blocks is that of the state vector; the digest covers it."""
        return sealed(self)

    def write(self, folder: Path) -> None:
        files.replace(folder / NAME, self.text())


def read(folder: Path) -> Manifest:
    """The manifest of a run folder, or an error that says what the folder is instead."""
    path = folder / NAME
    with files.store_errors(path):
        if not folder.is_dir() or not os.path.lexists(path):
            problem = "is a file, not a run" if folder.exists() else "does not exist"
            problem = "holds no run (no manifest.json)" if folder.is_dir() else problem
            raise NotARun(f"{folder} {problem}; give a folder written by `stagescope run` or `Run.save`")
    data = files.read(folder, NAME)
    try:
        body = json.loads(data, parse_int=_number)
        version = body["schema_version"]
    except (ValueError, KeyError, TypeError, RecursionError):
        raise DamagedRun(f"{path}: not a readable manifest; restore it from a copy") from None
    if isinstance(version, int) and version > SCHEMA:
        raise StoreError(f"{path}: schema version {version} is newer than {SCHEMA}; update stagescope to read this run")
    if version == 1:
        raise StoreError(f"{path}: schema version 1 is of Stagescope 0.1; install version 0.2, which reads it")
    if version != SCHEMA:
        raise DamagedRun(f"{path}: there is no schema version {version}; restore it from a copy")
    body.pop("digest", None)
    try:
        manifest = Manifest(**body)
        text = manifest.text()
    except (ValueError, TypeError, RecursionError):  # a field is missing or wrong, or a number is too large to be one
        raise DamagedRun(f"{path}: not a manifest of schema {version}; restore it from a copy") from None
    if text != data:
        raise DamagedRun(f"{path}: does not match its own digest; restore it from a copy")
    for name in (*manifest.files, *manifest.trimmed, *(f"{DATA}/{array}/zarr.json" for array in manifest.arrays)):
        parts = name.split("/")
        leaves = "\0" in name or {"", ".", ".."} & set(parts)
        if leaves or (name != EVENTS and parts[0] not in (DATA, CHECKPOINT)):
            raise DamagedRun(f"{path}: names a file outside the run, {name!r}; do not use it")
    wrong = _wrong_in(manifest.spec)
    if any("/" in name for name in manifest.arrays):
        wrong = wrong or "an array has a name with a slash"
    if manifest.checkpoint is not None and not CHECKPOINT_FILE.fullmatch(manifest.checkpoint):
        wrong = wrong or f"{manifest.checkpoint!r} is no name of a checkpoint"
    if manifest.clock not in manifest.arrays:
        wrong = wrong or f"there is no array of its clock, {manifest.clock!r}"
    if wrong:
        raise DamagedRun(f"{path}: {wrong}; restore it from a copy")
    return manifest


def _number(text: str) -> int:
    """A whole number, which must be a float too: longer ones are no number of a run, and arithmetic stops at them."""
    try:
        float(number := int(text))
    except OverflowError:
        raise ValueError("too large") from None
    return number


def _wrong_in(spec: Spec) -> str:
    """What is wrong with the shape of a spec; empty where nothing is."""
    absent = [name for name in ("field", "blocks", "until", "dynamics", "record", "stop") if name not in spec]
    if absent:
        return f"the spec has no {', '.join(absent)}"
    field, source = spec["field"], spec.get("source")
    if field is None:
        if not isinstance(source, dict) or not isinstance(source.get("kind"), str):
            return "the spec has no field, and no source with a kind as text"
    elif not isinstance(field, dict) or not isinstance(field.get("type"), str):
        return "the field of the spec is not an object with a type as text"
    elif field["type"] == "own" and not isinstance(field.get("name"), str):
        return "the field of the spec is of type own and has no name"
    dynamics, blocks = spec["dynamics"], spec["blocks"]
    if not (dynamics is None and field is None) and not (isinstance(dynamics, dict) and isinstance(dynamics.get("type"), str)):
        return "the dynamics of the spec is not an object with a type as text"
    if not isinstance(blocks, dict) or not all(isinstance(shape, list) for shape in blocks.values()):
        return "the blocks of the spec are not an object with one shape per name"
    return ""


def environment(spec: Spec | None = None) -> Json:
    """What the numbers may depend on: versions, also of the packages whose types a spec names, machine, cores and threads."""
    versions = {name: _version(name) or "absent" for name in _PACKAGES}
    packages = {name.rpartition("/")[0] for name in types_of(spec)} - {""}  # papers of ours, or packages of other people
    owners = {name: installed for name in sorted(packages) if (installed := _version(name)) is not None}
    return {
        "python": platform.python_version(),
        "system": platform.system(),
        "machine": platform.machine(),
        "cores": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count(),
        "threads": threads(),
        "packages": {**versions, **owners},
    }


def _version(package: str) -> str | None:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None


def threads() -> Json:
    """The thread setup of this process: variables that are set, threads of BLAS now, and Numba's once Numba is loaded."""
    setup: Json = {name: os.environ[name] for name in _THREADS if name in os.environ}
    numba = sys.modules.get("numba")
    numba_threads = {"numba": numba.config.NUMBA_NUM_THREADS} if numba is not None else {}
    return {**setup, "blas": blas_threads(), **numba_threads}


def other_bits(before: Json) -> list[str]:
    """Why a run from the environment `before` may go on with other last bits here: one sentence a reason.

    Call it where the run is continued, with the threads it will have. XLA's threads are those of the first use of JAX in a
    process: one for each core, unless XLA_FLAGS says otherwise.
    """
    then, now = before.get("threads"), environment()
    if not isinstance(then, dict) or "blas" not in then:
        return ["this run has no record of its BLAS threads, so its last bits may differ from those of an uninterrupted run"]
    pairs = {
        "BLAS threads": (then["blas"], now["threads"]["blas"]),
        "cores": (before.get("cores"), now["cores"]),
        "XLA_FLAGS": (then.get("XLA_FLAGS"), now["threads"].get("XLA_FLAGS")),
    }
    changed = [f"{name}: {old} then, {new} now" for name, (old, new) in pairs.items() if old != new]
    tail = "the last bits may differ from those of an uninterrupted run"
    return [f"this run was started with other threads ({'; '.join(changed)}): {tail}"] if changed else []
