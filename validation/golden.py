"""Golden answers: what every preset answers, stored once, and compared after every change.

    python -m validation.golden compare [STUDY[/PRESET] ...]     exit code 1 and a line for every answer that moved
    python -m validation.golden make [STUDY[/PRESET] ...]        store the answers of this tree

An answer holds, for a preset and a seed: how the run ended, digests of its arrays, `stages --json`, `check --json`,
`ladder --json` where the page has a ladder, `predict --json` where there is a prediction, and the data of the page without what
changes from version to version. Presets in SHORT are shortened, all others run whole. Numbers are compared to TOLERANCE,
everything else exactly. Presets on real text need STAGESCOPE_DATA and are left out without it.

Bits are promised for one kind of processor and one set of versions, which are stored too. Elsewhere numbers are compared to
LOOSE, those in ROUNDED to ROUGH, and sentences without their numbers.

Everything here goes through public names and through files that a user gets, so that the answers outlive changes of the inside.
"""

import argparse
import base64
import json
import lzma
import math
import multiprocessing
import os
import re
import sys
import time
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from importlib.metadata import version
from pathlib import Path
from pydoc_data.topics import topics
from typing import Any

os.environ |= dict.fromkeys(("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "NUMBA_NUM_THREADS"), "1")
os.environ.setdefault("XLA_FLAGS", "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1")

import numpy as np

import stagescope as ss
from stagescope.core.caches import processor

STORE = Path(__file__).parent / "golden.json.xz"
SEEDS = (0, 1)
TOLERANCE = 1e-9
"""Relative, of a number and of the digest of an array."""
LOOSE = 1e-4
"""The same with another processor or other versions: solvers agree to their tolerance."""
ROUGH = 0.05
"""The same of a number in ROUNDED: it is a difference of two that agree to several digits, so few of its own are left."""
ROUNDED = ("_error", ".remainder", ".local_rate")
SMALL = 1e-12
"""Two numbers below it are equal: residuals of solvers are rounding errors."""
LONG, LONG_TEXT = 24, 2000
"""A longer list of numbers is stored as its digest, a longer text, such as encoded arrays, as its checksum."""
CORPORA = ("tinystories", "wikitext-2")
VOLATILE = {"version", "provenance", "environment"}
"""Fields of a page that say by which versions, where and when it was made."""
_STUDENTS = {"sequences": 300, "batch": 100, "watched": 50}
_TRANSFORMER = {**_STUDENTS, "steps": 6, "frames": 5, "vocab": 10, "width": 24, "targets": 5}
_CONTENT = {**_STUDENTS, "steps": 12, "frames": 6, "vocab": 10, "targets": 5}
_OF_TRANSFORMERS = ("published-transformer", "published-transformer-2", "published-reversed", "published-sgd")
_OF_CONTENT = (
    "published",
    "published-online",
    "published-orthogonal",
    "published-overlapping",
    "published-overlapping-3",
    "published-two-layers",
    "published-weighted",
    "published-xavier",
)
_TEXT_TRANSFORMER = {"steps": 100, "batch": 4, "vocab": 200, "width": 16}
_TEXT_PUBLISHED = {"steps": 50, "streams": 4, "vocab": 200, "width": 16, "hidden": 16}
_SMALL_ADAM = {"steps": 400, "frames": 100, "sequences": 5000, "width": 64}
SHORT: dict[str, dict[str, Any]] = {
    "focus-dilution/sampled": {"steps": 200, "frames": 100},
    "focus-dilution/published": _SMALL_ADAM,
    "focus-dilution/published-halving": _SMALL_ADAM,
    "focus-dilution/published-flow": {"until": 120.0, "frames": 200, "width": 32},
    "incremental/ladder": {"steps": 150, "frames": 60},
    "incremental/gd-ladder": {"steps": 300, "frames": 60, "sequences": 1000},
    "incremental/regression-transformer": {"steps": 500, "frames": 60},
    **{f"incremental/{name}": _CONTENT for name in _OF_CONTENT},
    **{f"incremental/{name}": _TRANSFORMER for name in _OF_TRANSFORMERS},
    "text-focus": {"steps": 100, "frames": 12, "watched": 512, "batch": 128},
    "text-focus/published-tinystories": {"steps": 20, "frames": 12, "watched": 256, "vocab": 500, "width": 32},
    "text-focus/published-wikitext": {"steps": 20, "frames": 12, "watched": 256, "width": 32},
    "text-focus/causal": {"steps": 50, "frames": 12, "watched": 512, "batch": 8},
    "text-focus/residual": {"steps": 20, "frames": 12, "watched": 256, "batch": 64},
    "text-focus/transformer": {"steps": 20, "frames": 12, "watched": 256, "batch": 64},
    "text-incremental": {"steps": 60, "frames": 20, "watched": 2000, "batch": 512},
    "text-snap": {"steps": 200},
    "text-snap/topics-transformer": _TEXT_TRANSFORMER,
    "text-snap/wikitext-2-transformer": _TEXT_TRANSFORMER,
    "text-snap/wikitext-2-decay": _TEXT_TRANSFORMER,
    **{f"text-snap/{name}": _TEXT_PUBLISHED for name in ("published-figure-7", "published-figure-7-deep", "published-figure-10")},
}
"""Options that make a preset take seconds, by `study/preset`, or by `study` for all its other presets."""


def presets(only: Sequence[str] = ()) -> list[str]:
    """All presets as STUDY/PRESET, or those of some studies, or some of them."""
    known = [f"{name}/{preset}" for name, study in ss.studies().items() for preset in study.presets]
    if unknown := [word for word in only if word not in known and word not in ss.studies()]:
        raise SystemExit(f"not a study or a preset: {', '.join(unknown)}")
    return [key for key in known if not only or key in only or key.partition("/")[0] in only]


def answer(key: str, seed: int) -> dict[str, Any]:
    """What a preset answers today, as JSON."""
    name, preset = key.split("/")
    study = ss.study(name)
    options = study.configured(preset, **SHORT.get(key, SHORT.get(name, {})))
    run = study.run(options, seed=seed, progress=False)
    arrays = {name: digest(values) for name, values in {**run.series, **run.params}.items()}
    page = page_data(ss.report(run, progress=False).html)
    has_ladder = any(shown["ladder"] is not None for scene in page["scenes"] for shown in scene["runs"])
    found = {
        "status": f"{run.status} {run.reason}".strip(),
        "arrays": arrays,
        "stages": _tried(lambda: ss.stages(run).json()),
        "check": _tried(lambda: ss.check(run).json()),
        "ladder": _tried(lambda: ss.saddle_ladder(run).json()) if has_ladder else None,
        "predict": _tried(lambda: ss.saddle_path((plan := study.setup(options, seed)).what, plan.params).json())
        if any(shown["prediction"] is not None for scene in page["scenes"] for shown in scene["runs"])
        else None,
        "page": page,
    }
    return json.loads(json.dumps(condensed(found), default=_plain))


def _tried(make: Any) -> Any:
    try:
        return make()
    except ss.StagescopeError as error:
        return {"refused": str(error)}


def _plain(value: Any) -> Any:
    return value.item() if hasattr(value, "item") else str(value)


def digest(values: np.ndarray) -> dict[str, Any]:
    """Shape, kind, size and a weighted sum of an array: any cell that moves moves the sum."""
    flat = np.asarray(values, float).reshape(-1)
    finite = np.where(np.isfinite(flat), flat, 0.0)
    weights = np.resize(np.random.default_rng(0).uniform(0.5, 1.5, 10_007), flat.size)
    size = float(np.abs(finite).sum())
    kind = np.asarray(values).dtype.kind
    return {"digest": [list(np.shape(values)), kind, int(flat.size - np.isfinite(flat).sum()), size, float(weights @ finite)]}


def condensed(value: Any) -> Any:
    """Long lists of numbers as digests."""
    if isinstance(value, dict):
        return {str(name): condensed(inner) for name, inner in value.items() if name not in VOLATILE}
    if isinstance(value, list | tuple):
        plain = len(value) > LONG and all(isinstance(each, int | float) and not isinstance(each, bool) for each in value)
        return digest(np.array(value)) if plain else [condensed(each) for each in value]
    if isinstance(value, str) and len(value) > LONG_TEXT:
        return f"{len(value)} characters, checksum {zlib.crc32(value.encode())}"
    return value


def page_data(html: str) -> dict[str, Any]:
    """What is inside a page: its data, with the bytes of each block as a checksum of what it holds."""
    scripts = dict(re.findall(r'<script type="application/[\w-]+" id="([\w-]+)">(.*?)</script>', html, re.DOTALL))
    data = json.loads(scripts["data"])

    def filled(value: Any) -> Any:
        if isinstance(value, dict) and {"id", "shape", "encoding"} <= value.keys():
            raw = zlib.decompress(base64.b64decode(scripts[f"block-{value['id']}"]))
            if value["encoding"] == "f64":
                return digest(np.frombuffer(raw, "u1").reshape(8, -1).T.copy().view("<f8").reshape(value["shape"]))
            if value["encoding"] == "f32":
                items = np.frombuffer(raw, "u1").reshape(4, -1).T.copy().view("<u4").reshape(value["shape"])
                if value["order"]:  # signs stand in the last bits
                    items = (items >> 1) ^ -(items & 1)
                for _ in range(value["order"]):
                    items = np.cumsum(items, axis=0, dtype="<u4")
                return digest(items.view("<f4"))
            return {name: inner for name, inner in value.items() if name != "id"} | {"crc": zlib.crc32(raw)}
        if isinstance(value, dict):
            return {name: filled(inner) for name, inner in value.items()}
        return [filled(inner) for inner in value] if isinstance(value, list) else value

    return filled(data)


def differences(stored: Any, now: Any, path: str = "", tolerance: float = TOLERANCE) -> Iterator[tuple[str, Any, Any]]:
    """(path, stored, now) of everything that is not the same."""
    if isinstance(stored, dict) and isinstance(now, dict):
        if "digest" in stored and "digest" in now:
            (*before, size, total), (*after, other_size, other_total) = stored["digest"], now["digest"]
            allowed = tolerance * size + SMALL
            if before != after or abs(size - other_size) > allowed or abs(total - other_total) > allowed:
                yield path, stored["digest"], now["digest"]
            return
        for name in dict.fromkeys([*stored, *now]):
            yield from differences(
                stored.get(name, "(absent)"), now.get(name, "(absent)"), f"{path}.{name}" if path else name, tolerance
            )
    elif isinstance(stored, list) and isinstance(now, list) and len(stored) == len(now):
        for place, (a, b) in enumerate(zip(stored, now, strict=True)):
            tag = a.get("tag", place) if isinstance(a, dict) else place
            yield from differences(a, b, f"{path}[{tag}]", tolerance)
    elif isinstance(stored, list) and isinstance(now, list) and _named(stored) and _named(now):
        yield from differences({row["tag"]: row for row in stored}, {row["tag"]: row for row in now}, path, tolerance)
    elif not same(stored, now, _rough(path, tolerance)) and not (tolerance > TOLERANCE and path.endswith(".crc")):
        yield path, stored, now


def _rough(path: str, tolerance: float) -> float:
    return ROUGH if tolerance > TOLERANCE and path.endswith(ROUNDED) else tolerance


def _named(rows: list[Any]) -> bool:
    return all(isinstance(row, dict) and "tag" in row for row in rows) and len({row["tag"] for row in rows}) == len(rows)


def same(a: Any, b: Any, tolerance: float = TOLERANCE) -> bool:
    """Numbers to a tolerance, NaN equal to itself; everything else exactly, but for numbers in sentences where it is loose."""
    numbers = all(isinstance(each, int | float) and not isinstance(each, bool) for each in (a, b))
    if not numbers:
        loose = tolerance > TOLERANCE and isinstance(a, str) and isinstance(b, str)
        return _without_numbers(a) == _without_numbers(b) if loose else type(a) is type(b) and a == b
    return math.isclose(a, b, rel_tol=tolerance, abs_tol=SMALL) or (math.isnan(a) and math.isnan(b))


def _without_numbers(text: str) -> str:
    return re.sub(r"[-+]?[\d.,]+(e[-+]?\d+)?", "#", text)


def made_with() -> dict[str, str]:
    """The processor and the versions that decide the last bits, and the text that comes with Python."""
    names = ("numpy", "scipy", "jax", "numba", "scikit-sundae", "optax")
    text = "\n".join(f"{name}\n{words}" for name, words in sorted(topics.items()))
    return {"processor": processor(), "topics": f"{zlib.crc32(text.encode()):x}", **{name: version(name) for name in names}}


@dataclass(frozen=True)
class Stored:
    """The answers of one preset, a list by seed, and what they were made with."""

    answers: list[dict[str, Any]]
    made_with: dict[str, str]

    @property
    def tolerance(self) -> float:
        """The tolerance to compare with on this machine."""
        return TOLERANCE if self.made_with == made_with() else LOOSE

    def same_text(self, key: str) -> bool:
        """Whether a preset reads the text here that it read there: the one of Python differs between versions."""
        return not key.startswith("text-") or needs_text(key) or self.made_with["topics"] == made_with()["topics"]


def stored_answers() -> dict[str, Stored]:
    """By preset."""
    if not STORE.exists():
        return {}
    return {key: Stored(**given) for key, given in json.loads(lzma.decompress(STORE.read_bytes())).items()}


def _store(answers: dict[str, Stored]) -> None:
    text = json.dumps({key: asdict(answers[key]) for key in sorted(answers)}, separators=(",", ":"))
    STORE.write_bytes(lzma.compress(text.encode(), preset=9))


def needs_text(key: str) -> bool:
    """Whether a preset reads a corpus that is not part of the package."""
    name, preset = key.split("/")
    return ss.study(name).presets[preset].get("corpus") in CORPORA


def _answers(key: str) -> tuple[str, list[dict[str, Any]], float]:
    began = time.process_time()
    found = [answer(key, seed) for seed in SEEDS]
    return key, found, time.process_time() - began


def _all(keys: Sequence[str], workers: int) -> Iterator[tuple[str, list[dict[str, Any]]]]:
    with multiprocessing.get_context("spawn").Pool(workers, maxtasksperchild=6) as pool:
        for key, found, seconds in pool.imap_unordered(_answers, keys):
            print(f"{key:<40} {seconds:6.1f} s", file=sys.stderr, flush=True)
            yield key, found


def compare(keys: Sequence[str], workers: int = 2) -> bool:
    """Print what moved; whether nothing did."""
    stored, moved = stored_answers(), 0
    if left := [key for key in keys if key in stored and not stored[key].same_text(key)]:
        print(f"left out, since this Python comes with another text: {', '.join(left)}")
    if any(stored[key].tolerance == LOOSE for key in keys if key in stored):
        print(f"made with another processor or other versions: compared to {LOOSE:g}")
    for key, found in _all([key for key in keys if key not in left], workers):
        before = stored.get(key, Stored([{}] * len(SEEDS), made_with()))
        for seed, stored_answer, now in zip(SEEDS, before.answers, found, strict=True):
            for path, old, new in differences(stored_answer, now, tolerance=before.tolerance):
                moved += 1
                print(f"{key} seed {seed}: {path}: {_brief(old)} -> {_brief(new)}", flush=True)
    print(f"{len(keys)} presets, {len(SEEDS)} seeds: {moved} answers moved" if moved else f"{len(keys)} presets: nothing moved")
    return not moved


def _brief(value: Any) -> str:
    text = json.dumps(value, default=str)
    return text if len(text) <= 160 else f"{text[:110]}...{text[-40:]}"


def main(words: Sequence[str] = ("compare",)) -> bool:
    parser = argparse.ArgumentParser(prog="python -m validation.golden", description="make or compare golden answers")
    parser.add_argument("what", choices=("make", "compare"))
    parser.add_argument("only", nargs="*", metavar="STUDY[/PRESET]")
    parser.add_argument("--workers", type=int, default=2)
    given = parser.parse_args(words)
    keys = presets(given.only)
    if not os.environ.get("STAGESCOPE_DATA"):
        print("STAGESCOPE_DATA is not set: presets on real text are left out", file=sys.stderr)
        keys = [key for key in keys if not needs_text(key)]
    if given.what == "compare":
        return compare(keys, given.workers)
    answers = {key: found for key, found in stored_answers().items() if key in presets()}
    answers |= {key: Stored(found, made_with()) for key, found in _all(keys, given.workers)}
    _store(answers)
    print(f"{STORE.name}: {len(answers)} presets, {STORE.stat().st_size / 1e6:.2f} MB")
    return True


if __name__ == "__main__":
    sys.exit(0 if main(sys.argv[1:]) else 1)
