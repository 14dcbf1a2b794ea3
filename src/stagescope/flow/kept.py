"""Integrations that readings have made: kept in the user's cache, so that none is made twice, also not in another process.

A kept integration is plain arrays, named by the digest of everything that decides them: field, start, dynamics, record, end,
seed, and the code. What the code of a user decides, such as an objective of their own, is not kept.
"""

import inspect
import io
import json
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from functools import wraps
from pathlib import Path
from typing import Any, ParamSpec

import numpy as np

from stagescope.core import caches
from stagescope.core.spec import Described, digest, types_of
from stagescope.flow.field import as_field
from stagescope.runs.run import Arrays, Run

_keeping: ContextVar[bool] = ContextVar("keeping", default=False)
counts = {"integrated": 0, "kept": 0}
"""Integrations of this process: those that were made, and those that were taken from the cache. For benchmarks and tests."""
MOST = caches.BOUND // 16
"""Bytes of one integration: with larger ones a single reading, which makes about ten, could fill the cache."""
P = ParamSpec("P")
Frames = Iterator[tuple[dict[str, float], np.ndarray]]


@contextmanager
def keeping(run: Run) -> Iterator[None]:
    """Integrations in memory are kept while a stored run is read: not what a user runs, nor what a sweep reads of each point."""
    token = _keeping.set(_keeping.get() or run.path is not None)
    try:
        yield
    finally:
        _keeping.reset(token)


def kept_run(evolve: Callable[P, Run]) -> Callable[P, Run]:
    """`evolve` that keeps runs in memory while a reading is `keeping` them."""
    call = inspect.signature(evolve)

    @wraps(evolve)
    def once(*args: P.args, **options: P.kwargs) -> Run:
        arguments = call.bind(*args, **options).arguments
        name = None if arguments.get("out") is not None else _name("run", arguments)
        if name is not None and (stored := _read(name)) is not None:
            facts, arrays = stored
            params, series = ({key: arrays[f"{kind}/{key}"] for key in facts[kind]} for kind in ("params", "series"))
            origin, axes = arguments.get("origin"), {key: tuple(names) for key, names in facts["axes"].items()}
            ended = {key: facts[key] for key in ("spec", "clock", "status", "reason")}
            labels = {} if origin is None else {"study": origin.study, "config": origin.config, "tags": origin.tags}
            run = Run(Arrays.of(params), Arrays.of(series), **ended, seed=arguments.get("seed", 0), axes=axes, **labels)
            run.memo["evolved"] = run.params, run.series, run.spec
            return run
        counts["integrated"] += 1
        run = evolve(*args, **options)
        if name is not None:
            facts = {"spec": run.spec, "clock": run.clock, "status": run.status, "reason": run.reason, "axes": dict(run.axes)}
            facts |= {"params": list(run.params), "series": list(run.series)}
            arrays = {f"params/{key}": block for key, block in run.params.items()}
            _write(name, facts, arrays | {f"series/{key}": values for key, values in run.series.items()})
        return run

    return once


def kept_frames(frames: Callable[P, Frames]) -> Callable[P, Frames]:
    """`frames` that keeps them while a reading is `keeping` them, where all were asked for and they are not many."""
    call = inspect.signature(frames)

    def kept_or_made(name: str | None, *args: P.args, **options: P.kwargs) -> Frames:
        if name is not None and (stored := _read(name)) is not None:
            facts, arrays = stored
            yield from zip(facts["clocks"], arrays["vectors"], strict=True)
            return
        counts["integrated"] += 1
        clocks: list[dict[str, float]] = []
        vectors: list[np.ndarray] = []
        for clock, vector in frames(*args, **options):
            if name is not None:
                clocks.append(dict(clock))
                vectors.append(vector.copy())
                if len(vectors) * vector.nbytes > MOST:
                    name = None
                    vectors.clear()
            yield clock, vector
        if name is not None:
            _write(name, {"clocks": clocks}, {"vectors": np.array(vectors)})

    @wraps(frames)
    def once(*args: P.args, **options: P.kwargs) -> Frames:
        return kept_or_made(_name("frames", call.bind(*args, **options).arguments), *args, **options)

    return once


def _name(kind: str, arguments: Mapping[str, Any]) -> str | None:
    """The name of an integration; None where none is kept, or where code of others than this package decides the numbers."""
    if not _keeping.get() or caches.fresh():
        return None
    left_out = ("what", "params", "out", "overwrite", "progress", "origin")
    named = {key: value for key, value in arguments.items() if key not in left_out}
    spec = {"what": as_field(arguments["what"]).describe(), **{key: _described(value) for key, value in named.items()}}
    places = {Described.registry[name].__module__ for name in types_of(spec) if name in Described.registry}
    if not all(name in Described.registry for name in types_of(spec)):
        return None
    try:
        stamps = [_stamp(package) for package in sorted({place.partition(".")[0] for place in places} - {"stagescope"})]
        start = [[name, _described(np.asarray(block, dtype=float))] for name, block in arguments["params"].items()]
        return f"{kind}-{digest([caches.code_stamp(), stamps, spec, start])}"
    except (OSError, TypeError, ValueError):  # a package without files, or numbers that JSON does not have
        return None


def _described(value: Any) -> Any:
    """What decides the numbers of an option, as JSON; of an array its shape, type and digest."""
    if isinstance(value, np.ndarray):
        return [list(value.shape), value.dtype.str, caches.digest_of(value.tobytes())]
    return value.describe() if isinstance(value, Described) else value


def _stamp(package: str) -> str:
    """The sources of another package; a script or a module without a folder has none that could be known."""
    file = getattr(sys.modules.get(package), "__file__", None)
    if file is None or Path(file).name != "__init__.py":
        raise TypeError(package)
    return caches.sources_stamp(Path(file).parent)


def _write(name: str, facts: dict[str, Any], arrays: Mapping[str, np.ndarray]) -> None:
    if sum(array.nbytes for array in arrays.values()) <= MOST:
        body = io.BytesIO()
        np.savez(body, allow_pickle=False, facts=np.frombuffer(json.dumps(facts).encode(), np.uint8), **arrays)
        caches.keep(name, body.getvalue())


def _read(name: str) -> tuple[dict[str, Any], dict[str, np.ndarray]] | None:
    def decoded(body: bytes) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        with np.load(io.BytesIO(body), allow_pickle=False) as stored:
            arrays = {key: stored[key] for key in stored.files}
        return json.loads(arrays.pop("facts").tobytes()), arrays

    entry = caches.kept(name, decoded)
    counts["kept"] += entry is not None
    return entry
