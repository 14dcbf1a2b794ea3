"""How time and memory grow, and where the first wall is: `python -m benchmarks.scaling [--figure docs/scaling.png]`.

Each size runs in a process of its own, on one thread, after a small call that compiles. Seconds are CPU seconds; memory is the
highest the process had by then, less what it had before. Where there is a flow, the reading beside it is a second curve. The
exponent is the slope between the last three sizes on logarithmic axes. The wall is the size at which the slope reaches ten
minutes or eight gigabytes. The text is WikiText-2 where STAGESCOPE_DATA is set, else the one inside CPython.
"""

import argparse
import json
import math
import os
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

os.environ["OMP_NUM_THREADS"] = os.environ["OPENBLAS_NUM_THREADS"] = "1"

import numpy as np

import stagescope as ss

SLOW, LARGE = 600.0, 8192.0
"""A wall: seconds, and megabytes."""
LEAST = {"seconds": 1e-3, "megabytes": 64.0}
"""What is too little for a slope: less counts as this much."""
Works = dict[str, Callable[[], object]]


@dataclass(frozen=True)
class Axis:
    """A number that grows, the sizes it is given, and the works that are timed at a size, one after the other."""

    unit: str
    sizes: tuple[int, ...]
    works: Callable[[int], Works]


def _flow(
    model: ss.TokenAttention, chain: Any, until: float, frames: int, readings: dict[str, Callable[[ss.Run], object]]
) -> Works:
    """A flow, and readings of the run it leaves."""
    loss, made = ss.TokenPopulation(model=model, process=chain), []

    def flow() -> None:
        record = ss.Uniform(frames=frames)
        made.append(ss.evolve(loss, model.init(0, 1e-3), ss.GradientFlow(), until=until, record=record, progress=False))

    def reading(read: Callable[[ss.Run], object]) -> Callable[[], object]:
        return lambda: read(made[-1])

    return {"flow": flow, **{name: reading(read) for name, read in readings.items()}}


def tokens(size: int) -> Works:
    """Focus and dilution on a lazy chain whose frequencies fall as 1 / rank."""
    weights = 1 / np.arange(1, size + 1)
    chain = ss.LazyChain(pi=tuple((weights / weights.sum()).tolist()), persistence=0.6)
    return _flow(ss.TokenAttention(vocab=size, width=8, scale=4.0), chain, 800.0, 300, {"stages": ss.stages, "check": ss.check})


def frames(size: int) -> Works:
    """`ref` with more and more recorded frames."""
    chain = ss.LazyChain(pi=(0.5, 0.25, 0.15, 0.1), persistence=0.6)
    return _flow(ss.TokenAttention(vocab=4, width=8, scale=4.0), chain, 800.0, size, {"stages": ss.stages})


def parameters(size: int) -> Works:
    """`ref` with a wider embedding; the size is the number of parameters, 2 m (m + 4)."""
    width = round(math.sqrt(size / 2 + 4) - 2)
    chain = ss.LazyChain(pi=(0.5, 0.25, 0.15, 0.1), persistence=0.6)
    model = ss.TokenAttention(vocab=4, width=width, scale=4.0)
    return _flow(model, chain, 800.0, 300, {"ladder": ss.saddle_ladder})


def classes(size: int) -> Works:
    """A flow of scan and snap, two classes to a query token."""
    made = []

    def flow() -> None:
        options: Any = {"num_last": size // 2, "num_next_per_last": 2}
        made.append(ss.run_study("scan-snap", progress=False, **options))

    return {"flow": flow, "check": lambda: ss.check(made[-1])}


def _steps(**options: Any) -> Works:
    """A hundred steps of the preset `ladder` of incremental learning."""
    return {
        "100 steps": lambda: ss.run_study(
            "incremental", "ladder", progress=False, steps=100, frames=3, record="uniform", **options
        )
    }


def heads(size: int) -> Works:
    return _steps(heads=size)


def sequences(size: int) -> Works:
    return _steps(sequences=size)


def vocabulary(size: int) -> Works:
    """Forty steps of focus and dilution on a text: batches of 1024 windows of 256 tokens, width 32."""
    corpus = "wikitext-2" if os.environ.get("STAGESCOPE_DATA") else "topics"
    options: Any = {"width": 32, "window": 256, "batch": 1024, "steps": 40, "frames": 12, "watched": 256}
    return {"40 steps": lambda: ss.run_study("text-focus", progress=False, corpus=corpus, vocab=size, **options)}


AXES = {
    "tokens": Axis("tokens", (16, 32, 64, 128, 256), tokens),
    "frames": Axis("frames", (250, 1000, 4000, 16000), frames),
    "parameters": Axis("parameters", (192, 640, 2304, 8704, 33792), parameters),
    "classes": Axis("classes", (10, 20, 50, 100, 200), classes),
    "heads": Axis("heads", (2, 4, 8, 16, 32), heads),
    "sequences": Axis("sequences", (1500, 3000, 6000, 12000, 24000), sequences),
    "vocabulary": Axis("types", (500, 1000, 2500, 5000, 10000), vocabulary),
}


def resident(kind: str) -> float:
    """Megabytes of this process: now (VmRSS), or the most it ever had (VmHWM)."""
    line = next(line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith(kind))
    return int(line.split()[1]) / 1024


def one(axis: Axis, size: int) -> None:
    """Time the works at a size, in this process, after the two smallest, which may have kernels of their own; print JSON."""
    for small in axis.sizes[: 1 + (size > axis.sizes[0])]:
        for work in axis.works(small).values():
            work()
    Path("/proc/self/clear_refs").write_text("5")  # the most from here on
    before, found = resident("VmRSS"), {}
    for name, work in axis.works(size).items():
        began = time.process_time()
        work()
        found[name] = {"seconds": time.process_time() - began, "megabytes": max(resident("VmHWM") - before, 0.0)}
    print(json.dumps(found))


def measured(name: str, axis: Axis) -> dict[str, dict[str, list[float]]]:
    """Seconds and megabytes of each work by size."""
    table: dict[str, dict[str, list[float]]] = {}
    for size in axis.sizes:
        words = [sys.executable, "-m", "benchmarks.scaling", "--one", name, str(size)]
        answer = subprocess.run(words, check=True, capture_output=True, text=True).stdout
        for work, row in json.loads(answer.splitlines()[-1]).items():
            for what, value in row.items():
                table.setdefault(work, {}).setdefault(what, []).append(value)
        last = {work: f"{rows['seconds'][-1]:.3g} s, {rows['megabytes'][-1]:.0f} MB" for work, rows in table.items()}
        print(f"{size:6d} {axis.unit}: " + "; ".join(f"{work} {text}" for work, text in last.items()), flush=True)
    return table


def slope(sizes: tuple[int, ...], rows: dict[str, list[float]], what: str) -> float:
    """Of the last three sizes, on logarithmic axes."""
    return float(np.polyfit(np.log(sizes[-3:]), np.log(np.maximum(rows[what][-3:], LEAST[what])), 1)[0])


def wall(sizes: tuple[int, ...], rows: dict[str, list[float]], what: str, limit: float) -> float:
    """The size at which the slope from the last value reaches the limit."""
    exponent, last = slope(sizes, rows, what), max(rows[what][-1], LEAST[what])
    return sizes[-1] * (limit / last) ** (1 / exponent) if exponent > 0.05 else math.inf


def summary(name: str, axis: Axis, table: dict[str, dict[str, list[float]]]) -> dict[str, Any]:
    """Exponents of each work, and what is in the way first."""
    found: dict[str, Any] = {"sizes": axis.sizes, "measured": table}
    walls = {}
    for work, rows in table.items():
        found[f"exponent {work}"] = round(slope(axis.sizes, rows, "seconds"), 2)
        found[f"exponent of memory {work}"] = round(slope(axis.sizes, rows, "megabytes"), 2)
        walls[f"{SLOW / 60:g} minutes for {work}"] = wall(axis.sizes, rows, "seconds", SLOW)
        walls[f"{LARGE / 1024:g} GB for {work}"] = wall(axis.sizes, rows, "megabytes", LARGE)
    first = min(walls, key=walls.__getitem__)
    found["wall"] = {"size": walls[first] if math.isfinite(walls[first]) else None, "what": first}
    print(f"{name}: " + ", ".join(f"{work} ~ size^{found[f'exponent {work}']:.2f}" for work in table))
    print(f"  first wall: {first} at about {walls[first]:.2g} {axis.unit}", flush=True)
    return found


def draw(results: dict[str, dict[str, Any]], path: Path) -> None:
    """One panel an axis: seconds above, megabytes below."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, panels = plt.subplots(2, len(results), figsize=(2.1 * len(results), 4.6), sharey="row", layout="constrained")
    for column, (name, found) in zip(panels.T, results.items(), strict=True):
        for work, rows in found["measured"].items():
            label = f"{work}, {found[f'exponent {work}']:.1f}"
            column[0].loglog(found["sizes"], rows["seconds"], "o-", ms=3, lw=1.2, label=label)
            column[1].loglog(found["sizes"], np.maximum(rows["megabytes"], 1.0), "o-", ms=3, lw=1.2)
        column[0].set_title(name, fontsize=9, loc="left")
        column[0].legend(fontsize=7, frameon=False, title="work, exponent", title_fontsize=7)
        column[1].set_xlabel(AXES[name].unit, fontsize=8)
        shown = found["sizes"][:: 2 if len(found["sizes"]) > 4 else 3]
        for ax in column:
            ax.set_xticks(shown, [f"{size:,}" for size in shown])
            ax.tick_params(labelsize=7)
            ax.tick_params(axis="x", which="minor", labelbottom=False)
            ax.spines[["top", "right"]].set_visible(False)
    panels[0, 0].set_ylabel("CPU seconds", fontsize=8)
    panels[1, 0].set_ylabel("megabytes", fontsize=8)
    figure.savefig(path, dpi=130)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--one", nargs=2, metavar=("AXIS", "SIZE"), help="time one size in this process")
    parser.add_argument("--axes", nargs="*", choices=AXES, default=list(AXES), help="which; default: all")
    parser.add_argument("--figure", type=Path, help="draw the curves into this file")
    given = parser.parse_args()
    if given.one:
        return one(AXES[given.one[0]], int(given.one[1]))
    results = {name: summary(name, AXES[name], measured(name, AXES[name])) for name in given.axes}
    if given.figure:
        draw(results, given.figure)
    print(json.dumps(results))
    return None


if __name__ == "__main__":
    main()
