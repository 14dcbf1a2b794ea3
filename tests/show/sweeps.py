"""Made-up sweeps: rows of any kind, without computing a run."""

from itertools import product
from pathlib import Path

from stagescope.sweeping.axes import Axis, Scale
from stagescope.sweeping.plan import Grid, Plan
from stagescope.sweeping.refine import refine
from stagescope.sweeping.table import Sweep

PI = Axis(name="pi.0", kind="linear", values=tuple(0.3 + 0.05 * i for i in range(9)))
PERSISTENCE = Axis(name="persistence", kind="linear", values=tuple(0.1 * i for i in range(1, 10)))
RATE = Axis(name="lr", kind="log", values=(0.001, 0.01, 0.1, 1.0))


def row(at, seed=0, **parts):
    whole = {"digest": f"{hash((tuple(at.values()), seed)):x}", "study": "focus-dilution", "seed": seed, "at": at}
    whole |= {"config": {"persistence": 0.5, "scale": 4.0}, "status": "finished", "reason": "", "clock": "t", "end": 400.0}
    return (
        whole | {"events": {}, "stages": [], "starts": {}, "durations": {}, "verdicts": {}, "numbers": {}, "seconds": 0.2} | parts
    )


def sweep(axes, result, seeds=1, cells=None, rounds=0, by=None, folder=Path("sweep"), study="focus-dilution"):
    """`result(*values, seed)` gives the parts of a row, or None for a cell that does not exist; `by` gives a signature."""
    asked = list(product(*(axis.values for axis in axes))) if cells is None else cells
    scales = [Scale(axis.kind, axis.values) for axis in axes]
    known = {cell: by(*cell) if by else None for cell in asked}
    for _ in range(rounds):
        known |= {cell: by(*cell) if by else None for cell in refine(scales, known)}
    names = [axis.name for axis in axes]
    made = [(cell, seed, result(*cell, seed)) for cell in sorted(known, key=str) for seed in range(seeds)]
    rows = [row(dict(zip(names, cell, strict=True)), seed, **parts) for cell, seed, parts in made if parts is not None]
    plan = Plan(
        id="0", study=study, preset=None, fixed={}, files={}, measures=("events", "numbers"), versions={},
        grids=(Grid(axes=tuple(axes), seeds=tuple(range(seeds))),),
    )  # fmt: skip
    return Sweep(folder, plan, tuple(rows))


def focus(pi, persistence, seed=0):
    """Made up, with a bent boundary: focus where pi is large, otherwise none; late near the boundary; one corner diverges."""
    if pi < 0.36 and persistence > 0.75:
        return {"status": "diverged", "reason": "the loss is not finite at t = 12.5", "stages": None}
    gap = pi - 0.42 - 0.25 * (persistence - 0.5) ** 2 + 0.01 * (seed - 1)
    late = 20.0 + 1.0 / (gap + 0.003) if gap > 0 else None
    names = ["condensation", "defocus"] if late is None else ["condensation", "focus", "dilution"][: 3 if gap > 0.1 else 2]
    return {
        "events": {"E1": 8.0 / persistence, "E2": late},
        "stages": names,
        "starts": dict.fromkeys(names, 0.0),
        "durations": {} if late is None else {"focus": late - 8},
        "verdicts": {"FD:focus": "violated" if late is None else "confirmed"},
        "numbers": {"final loss": 1.2 - pi},
    }
