"""Write expected.json beside this file: what version 0.1.0 says of the runs and sweeps here, by public names only."""

import hashlib
import json
from pathlib import Path

import stagescope as ss


def digest(values):
    return f"{values.dtype.str} {values.shape} {hashlib.sha256(values.tobytes()).hexdigest()}"


def run_facts(folder):
    run = ss.load(folder)
    return {
        "status": run.status,
        "frames": run.frames,
        "clock": run.clock,
        "intact": ss.verify(folder) == [],
        "last": {name: float(values[-1]) for name, values in run.series.items()},
        "arrays": {name: digest(values) for name, values in {**run.series, **run.params}.items()},
        "events": dict(ss.stages(run).events),
        "verdicts": {verdict.tag: verdict.verdict for verdict in ss.check(run)},
    }


def sweep_facts(folder):
    sweep = ss.load_sweep(folder)
    kept = ("at", "seed", "status", "events", "verdicts", "numbers")
    return {
        "axes": {axis.name: list(axis.values) for axis in sweep.axes},
        "cells": len(sweep.cells),
        "damaged": list(sweep.damaged),
        "columns": list(sweep.columns),
        "rows": {row["digest"]: {name: row[name] for name in kept} for row in sweep.rows},
    }


if __name__ == "__main__":
    runs = {path.parent.name: run_facts(path.parent) for path in sorted(Path().glob("*/manifest.json"))}
    sweeps = {path.parent.name: sweep_facts(path.parent) for path in sorted(Path().glob("*/sweep.json"))}
    Path("expected.json").write_text(json.dumps({"runs": runs, "sweeps": sweeps}, indent=1) + "\n")
