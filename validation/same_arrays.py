"""Does every preset of every study still give the same arrays, events and verdicts as another source tree?

    python -m validation.same_arrays record --source PATH/src --out FILE.json
    python -m validation.same_arrays compare A.json B.json

`record` runs every preset that the tree itself lists, each in a process of its own that imports stagescope from that tree, by
public names only, with seed 0. Presets in SHORT are shortened; all others run whole. Processes have one thread. A recording
begins with empty caches of compiled code and fitted levels, so that nothing comes from another tree; corpora are read from the
folder STAGESCOPE_DATA. Bits are promised for one machine with one set of versions: record both trees on the same one.
"""

import argparse
import hashlib
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from importlib.metadata import version
from pathlib import Path
from typing import Any

LIMIT = 60.0
"""Seconds of processor time that a run, its events, its ladder and its verdicts may take, each."""
TOO_LONG = "too long"
PARTS = ("status", "arrays", "events", "ladder", "verdicts")
LADDERS = ("focus-dilution/ref", "focus-dilution/paper")
_FEW_STUDENTS = {"sequences": 300, "batch": 100, "watched": 50}
_TRANSFORMER = {**_FEW_STUDENTS, "steps": 6, "frames": 5, "vocab": 10, "width": 24, "targets": 5}
SHORT = {
    "focus-dilution/sampled": {"steps": 200, "frames": 100},
    "incremental/ladder": {"steps": 150, "frames": 60},
    "incremental/gd-ladder": {"steps": 300, "frames": 60, "sequences": 1000},
    "incremental/regression-transformer": {"steps": 500, "frames": 60},
    "incremental/content": {**_FEW_STUDENTS, "steps": 12, "frames": 6, "vocab": 10, "targets": 5},
    "incremental/transformer": _TRANSFORMER,
    "incremental/transformer-2": _TRANSFORMER,
    "text-focus": {"steps": 100, "frames": 12, "watched": 512, "batch": 128},
    "text-focus/causal": {"steps": 50, "frames": 12, "watched": 512, "batch": 8},
    "text-focus/residual": {"steps": 20, "frames": 12, "watched": 256, "batch": 64},
    "text-focus/transformer": {"steps": 20, "frames": 12, "watched": 256, "batch": 64},
    "text-incremental": {"steps": 60, "frames": 20, "watched": 2000, "batch": 512},
    "text-snap": {"steps": 200},
    "text-snap/topics-transformer": {"steps": 100, "batch": 4, "vocab": 200, "width": 16},
    "text-snap/wikitext-2-transformer": {"steps": 100, "batch": 4, "vocab": 200, "width": 16},
    "text-snap/wikitext-2-decay": {"steps": 100, "batch": 4, "vocab": 200, "width": 16},
    "text-snap/figure-7": {"steps": 50, "batch": 4, "vocab": 200},
    "text-snap/figure-10": {"steps": 100, "batch": 4, "vocab": 200, "width": 16},
}
"""Options that make a preset take seconds, by `study/preset`, or by `study` for all its other presets."""
_ONE_THREAD = {
    "OPENBLAS_NUM_THREADS": "1",
    "OMP_NUM_THREADS": "1",
    "NUMBA_NUM_THREADS": "1",
    "XLA_FLAGS": "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1",
}


def options_of(key):
    return SHORT.get(key, SHORT.get(key.partition("/")[0], {}))


# in the process of one preset


def one(source, key):
    """Run a preset and print a line of JSON for each part as soon as it is known; a failure is its sentence."""
    answers, sys.stdout = sys.stdout, sys.stderr
    import stagescope as ss

    if not Path(ss.__file__).resolve().is_relative_to(source):
        sys.exit(f"stagescope was imported from {ss.__file__}, not from {source}")

    def say(name, make):
        signal.setitimer(signal.ITIMER_PROF, LIMIT)  # the signal ends the process, also inside compiled code
        try:
            value = make()
        except Exception as error:
            value = str(error) or repr(error)
        signal.setitimer(signal.ITIMER_PROF, 0)
        print(json.dumps({name: value}, default=_plain), file=answers, flush=True)

    def status():
        nonlocal run
        run = ss.run_study(*key.split("/"), seed=0, progress=False, **options_of(key))
        return f"{run.status} {run.reason}".strip()

    run: Any = None
    say("status", status)
    if run is not None:
        say("arrays", lambda: {name: _digest(values) for name, values in {**run.series, **run.params}.items()})
        say("events", lambda: dict(ss.stages(run).events))
        if key in LADDERS:
            say("ladder", lambda: {str(i): str(rung) for i, rung in enumerate(ss.saddle_ladder(run))})
        say("verdicts", lambda: {v.tag: [v.verdict, v.predicted, v.measured] for v in ss.check(run)})


def _digest(values):
    return f"{values.dtype.str} {values.shape} {hashlib.sha256(values.tobytes()).hexdigest()}"


def _plain(value):
    """Numbers of NumPy as those of Python."""
    return value.item() if hasattr(value, "item") else str(value)


# in the process that asks


def record(source, out, only=()):
    """Every preset of a source tree, or those named, into one file."""
    source = Path(source).resolve()
    names = ("numpy", "scipy", "jax", "numba", "scikit-sundae", "optax")
    found = {"versions": {"python": sys.version.split()[0], **{name: version(name) for name in names}}, "presets": {}}
    with tempfile.TemporaryDirectory() as cache:
        caches = {"XDG_CACHE_HOME": cache, "NUMBA_CACHE_DIR": f"{cache}/numba"}
        environment = {**os.environ, **_ONE_THREAD, **caches, "PYTHONPATH": str(source)}
        listed = _python(environment, "-m", "stagescope", "list", "--json")
        if listed.returncode:
            sys.exit(f"`stagescope list` of {source} failed: {_last(listed.stderr)}")
        keys = [f"{study}/{preset}" for study, facts in json.loads(listed.stdout).items() for preset in facts["presets"]]
        if missing := set(only) - set(keys):
            sys.exit(f"no such preset: {', '.join(sorted(missing))}")
        for key in only or keys:
            began = time.monotonic()
            made = _python(environment, __file__, "one", str(source), key)
            found["presets"][key] = _parts(key, made)
            said = [f"{part}: {value}" for part, value in found["presets"][key].items() if not isinstance(value, dict)]
            print(f"{key:<40} {time.monotonic() - began:5.1f} s  {'; '.join(said)[:150]}", file=sys.stderr, flush=True)
    Path(out).write_text(json.dumps(found, indent=1) + "\n")


def _python(environment, *words):
    return subprocess.run([sys.executable, "-P", *words], env=environment, capture_output=True, text=True, check=False)


def _parts(key, made):
    """What the process of a preset said, with a reason in place of what it did not."""
    parts = {"options": options_of(key)}
    for line in made.stdout.splitlines():
        parts |= json.loads(line)
    if made.returncode == -signal.SIGPROF:
        why = TOO_LONG
    else:
        why = f"ended with {made.returncode}: {_last(made.stderr)}" if made.returncode else "not asked: there is no run"
    return parts | {part: why for part in PARTS if part not in parts and (part != "ladder" or key in LADDERS)}


def _last(text):
    return (text.strip().splitlines() or ["nothing said"])[-1]


def compare(first, second):
    """Print what differs between two files; True if nothing does."""
    a, b = (json.loads(Path(path).read_text()) for path in (first, second))
    alone = sorted(set(a["presets"]) ^ set(b["presets"]))
    sides = [dict(_values(side, alone)) for side in (a, b)]
    rows = [(key, *(side.get(key, "absent") for side in sides)) for key in dict.fromkeys([*sides[0], *sides[1]])]
    unknown = [key for key, *values in rows if values == [json.dumps(TOO_LONG)] * 2]
    differ = [row for row in rows if row[1] != row[2]]
    if differ:
        print(f"{'preset':<36} {'what':<28} {'first':<44} second")
    for (preset, what), *values in differ:
        print(f"{preset:<36} {what:<28} {_brief(values[0]):<44} {_brief(values[1])}")
    for preset, what in unknown:
        print(f"{preset:<36} {what:<28} not compared, too long in both")
    presets = len({preset for (preset, _), *_ in differ})
    asked = f"{len(a['presets'])} and {len(b['presets'])} presets, {len(rows)} values"
    print(f"{asked}: {len(differ)} differ, in {presets} presets; {len(unknown)} not compared")
    return not differ


def _values(side, alone):
    """Every stored value under (preset, "part name"), as JSON, so that NaN equals itself; a preset that stands alone is one."""
    for preset, parts in {"": {"versions": side["versions"]}, **side["presets"]}.items():
        for part, value in {"preset": "there"}.items() if preset in alone else parts.items():
            named = {f"{part} {name}": inner for name, inner in value.items()} if isinstance(value, dict) else {part: value}
            yield from (((preset, name), json.dumps(inner)) for name, inner in named.items())


def _brief(text):
    return text if len(text) <= 44 else f"{text[:30]}...{text[-11:]}"


if __name__ == "__main__":
    if sys.argv[1:2] == ["one"]:
        sys.exit(one(*sys.argv[2:]))
    parser = argparse.ArgumentParser(prog="python -m validation.same_arrays", description="compare runs of two source trees")
    commands = parser.add_subparsers(dest="command", required=True)
    recording = commands.add_parser("record", help="run every preset of a source tree")
    recording.add_argument("--source", required=True, help="folder that holds the package stagescope")
    recording.add_argument("--out", required=True, help="JSON file to write")
    recording.add_argument("--only", nargs="+", default=(), metavar="STUDY/PRESET", help="these presets alone")
    comparing = commands.add_parser("compare", help="print what differs; exit code 1 if anything does")
    comparing.add_argument("files", nargs=2, metavar="FILE.json")
    given = parser.parse_args()
    sys.exit(record(given.source, given.out, given.only) if given.command == "record" else not compare(*given.files))
