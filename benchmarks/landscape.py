"""What predictions cost beside the flows they predict: `python -m benchmarks.landscape`. CPU seconds, one core, warm, minima.

The flow is `ss.evolve` to a little after the last predicted event, with 1000 frames. A flow at 1e-3 is cheaper than its
prediction, which is done twice for its intervals and says which events never come. The cost of a path grows with its legs, not
with the start: the last lines show one start scale after another.
"""

import json
import os
from collections.abc import Callable

os.environ["OMP_NUM_THREADS"] = os.environ["OPENBLAS_NUM_THREADS"] = "1"

import numpy as np

import stagescope as ss
from benchmarks.timing import least

REPEATS = 3
BARS = {"path_ref": 1.5, "path_d6": 4.0, "branch": 3.0}
"""Seconds that must not be passed."""


def seconds(work: Callable[[], object]) -> float:
    """The least CPU time of a few calls, after one that compiles."""
    work()
    return round(least(work, REPEATS), 3)


def loss_of(d: int) -> ss.TokenPopulation:
    """`ref`, or a lazy chain of d tokens whose frequencies fall as 1 / rank."""
    pi = (0.5, 0.25, 0.15, 0.1) if d == 4 else tuple((1 / np.arange(1, d + 1) / sum(1 / np.arange(1, d + 1))).tolist())
    chain = ss.LazyChain(pi=pi, persistence=0.6)
    return ss.TokenPopulation(model=ss.TokenAttention(vocab=d, width=8, scale=4.0), process=chain)


def beside_flow(name: str, loss: ss.TokenPopulation, scale: float) -> dict[str, float]:
    start = loss.model.init(0, scale)
    path = ss.saddle_path(loss, start)
    until = 1.1 * max(event.t for event in path.events.values() if event.t is not None)

    def flow() -> ss.Run:
        return ss.evolve(loss, start, ss.GradientFlow(), until=until, record=ss.Uniform(frames=1000), progress=False)

    return {f"path_{name}": seconds(lambda: ss.saddle_path(loss, start)), f"flow_{name}": seconds(flow)}


def branch() -> object:
    """(1,1) of `ref` over persistence, through both folds."""
    study = ss.study("focus-dilution")

    def family(value: float) -> ss.TokenPopulation:
        return study.setup(study.configured("ref", persistence=value), 0).what  # type: ignore[return-value]

    return ss.continue_point(family, 0.6, rung=(1, 1), low=0.5, high=0.9)


def main() -> dict[str, float]:
    found = {"branch": seconds(branch)}
    for name, d in (("ref", 4), ("d6", 6), ("d8", 8)):
        found |= beside_flow(name, loss_of(d), 1e-5)
    ref = loss_of(4)
    for scale in (1e-3, 1e-10, 1e-30, 1e-60):
        found[f"path_ref_{scale:g}"] = seconds(lambda scale=scale: ss.saddle_path(ref, scale=scale))
    return found


if __name__ == "__main__":
    numbers = main()
    print(json.dumps(numbers, indent=1))
    late = [f"{name} took {numbers[name]} s, more than {bar} s" for name, bar in BARS.items() if numbers.get(name, 0.0) > bar]
    raise SystemExit("; ".join(late) or 0)
