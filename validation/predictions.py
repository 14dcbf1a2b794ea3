"""Predictions before their runs: `ss.predict` on random chains of focus-dilution and random tasks of linear-icl, and each run.

`python -m validation.predictions STUDY FIRST [COUNT]` draws settings from the seeds FIRST, FIRST + 1, ... It prints impossible
orders, events that only one of prediction and run has, how many events lie inside their intervals, and CPU time over that of
the flow. Prediction and run have the same end; the run is read as `stagescope stages` reads it.
"""

import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np

import stagescope as ss
from stagescope.flow.record import Record
from stagescope.papers.linear_icl.loss import LinearPopulation
from stagescope.papers.linear_icl.model import LinearAttention
from stagescope.papers.linear_icl.process import RegressionTask
from stagescope.papers.linear_icl.setup import flow_frames
from validation.saddle_path import drawn as drawn_chain

COUNT = 60
LARGEST_RATIO, LEAST_COVERAGE = 3.0, 0.95
Drawn = tuple[str, Any, dict[str, np.ndarray], float, Record, ss.GradientFlow]


def chain(seed: int) -> Drawn:
    """A chain, a model and a start of rms 1e-6 to 1e-3, to an end time between 100 and 1e4."""
    rng = np.random.default_rng(seed)
    loss, scale = drawn_chain(rng)
    until = float(10 ** rng.uniform(2, 4))
    return f"start {scale:.1e}", loss, loss.model.init(seed, scale), until, ss.Uniform(frames=400), ss.GradientFlow()


def task(seed: int) -> Drawn:
    """1 to 10 heads of rank 1 to 5, or merged, on 2 to 8 directions: spectra of three kinds, starts of rms 1e-4 to .05."""
    rng = np.random.default_rng(seed)
    dim, rank, heads = int(rng.integers(2, 9)), int(rng.integers(1, 6)), int(rng.integers(1, 11))
    merged, kind = bool(rng.random() < 0.12), int(rng.integers(3))
    if kind == 0:
        spectrum = np.sort(rng.dirichlet(np.full(dim, 3.0)))[::-1]
    elif kind == 1:
        spectrum = np.geomspace(1, rng.uniform(0.05, 0.6), dim) * rng.uniform(0.2, 1)
    else:
        spectrum = np.cumprod(np.append(rng.uniform(0.2, 1), rng.uniform(0.4, 0.95, dim - 1)))
    length = int(rng.choice([5, 10, 31, 100]))
    scale = float(10 ** rng.uniform(-4, -1.3))
    process = RegressionTask(eigenvalues=tuple(np.maximum(spectrum, 1e-3).tolist()), contexts=(length,))
    model = LinearAttention(dim=dim, heads=heads, rank=None if merged else rank)
    start = model.init(seed, scale)
    until, record = flow_frames(process, model, start)
    law = LinearPopulation(model=model, process=process)
    return f"rank {'merged' if merged else rank}", law, start, until, record, ss.GradientFlow(rtol=1e-11)


DRAWS: dict[str, Callable[[int], Drawn]] = {"focus-dilution": chain, "linear-icl": task}


def main(study: str = "", first: int = 400_000, count: int = COUNT) -> bool:
    results = [_table(name, first, count) for name in DRAWS if study in ("", name)]
    return all(results)


def _table(study: str, first: int, count: int) -> bool:
    ratios, inside, errors, disordered, unlike, by_path, regimes = [], [], [], 0, 0, 0, {}
    DRAWS[study](first - 1)
    for seed in range(first - 1, first + count):  # the first one warms the kernels and is not counted
        words, law, start, until, record, flow = DRAWS[study](seed)
        try:
            path, cost = _timed(lambda: ss.predict(law, start, until=until, flow=flow))  # noqa: B023
        except ss.InputError as error:
            print(f"  seed {seed}, {words}: {error}")
            continue
        run, flow_cost = _timed(lambda: ss.evolve(law, start, flow, until=until, record=record, progress=False))  # noqa: B023
        if seed < first:
            continue
        events = ss.stages(run).events
        ratios.append(cost / flow_cost)
        disordered += not _ordered(path)
        by_path += path.by != "flow"
        odd = [name for name, event in path.events.items() if (event.t is None) != (events.get(name) is None)]
        unlike += bool(odd)
        for name, event in path.events.items():
            when = events.get(name)
            if event.t is not None and when is not None:
                assert event.low is not None
                assert event.high is not None
                inside.append(event.low <= when <= event.high)
                errors.append(abs(event.t / when - 1))
                regimes.setdefault(words if study == "linear-icl" else "all", []).append(inside[-1])
                if not inside[-1]:
                    print(
                        f"  seed {seed}, {words}, {path.by}: {name} {event.low:.7g} to {event.high:.7g}, run {when:.7g}",
                        flush=True,
                    )
        if odd:
            print(f"  seed {seed}, {words}, {path.by}: only one has {', '.join(odd)}, run to {until:.5g}", flush=True)
    ratio, error = np.quantile(ratios, [0.5, 0.9, 1.0]), np.quantile(errors, [0.5, 0.9, 1.0])
    print(f"{study}: {len(ratios)} predictions, {by_path} along the saddle path; orders impossible {disordered}, unlike {unlike}")
    print(f"  {len(errors)} events, inside {np.mean(inside):.3f}, error {error[0]:.1e}, 90 % {error[1]:.1e}, most {error[2]:.1e}")
    print(f"  by regime: {', '.join(f'{name} {np.mean(found):.2f} of {len(found)}' for name, found in sorted(regimes.items()))}")
    print(f"  CPU over that of the flow: median {ratio[0]:.2f}, 90 % {ratio[1]:.2f}, most {ratio[2]:.2f}", flush=True)
    return bool(disordered == 0 and np.mean(inside) >= LEAST_COVERAGE and ratio[0] <= LARGEST_RATIO)


def _ordered(path: ss.SaddlePath) -> bool:
    """Times of a kind by number: those that come are the first ones, and none is before an earlier number."""
    kinds: dict[str, list[float]] = {}
    for name, event in path.events.items():
        kinds.setdefault(name.rstrip("0123456789"), []).append(np.inf if event.t is None else event.t)
    return all(times == sorted(times) for times in kinds.values())


def _timed(work: Callable[[], Any]) -> tuple[Any, float]:
    begun = time.process_time()
    result = work()
    return result, time.process_time() - begun


if __name__ == "__main__":
    words = sys.argv[1:]
    raise SystemExit(0 if main(*words[:1], *map(int, words[1:])) else 1)  # pyright: ignore[reportArgumentType]
