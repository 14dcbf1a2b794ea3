"""Focus and dilution: intervals of events of sampled runs against the mean over data seeds, and their turns beside the flow's."""

import numpy as np

import stagescope as ss
from stagescope.detect.stage import Stages
from stagescope.papers.focus_dilution.sampled import TokenSampled
from stagescope.papers.focus_dilution.study import STUDY
from stagescope.papers.reading import reading

SEEDS, FIRST_SEED, BATCHES = 14, 2000, (4, 16, 128)
COVERAGE = (0.85, 0.99)


def main() -> bool:
    flow = _turns(ss.stages(ss.run_study("focus-dilution", "ref", until=600.0, progress=False)))
    print(f"ref by flow: {flow[0]} refocus, {flow[1]} redilution by t = 600")
    print(f"{'batch':>5} {'cases':>5} {'covered':>7} {'turns within 1 of the flow':>27}")
    counts = np.array([_batch(batch, flow) for batch in BATCHES])
    cases, covered = counts.sum(axis=0)
    print(f"all   {cases:>5} {covered / cases:>7.2f}")
    return bool(np.all((counts[:, 1] >= COVERAGE[0] * counts[:, 0]) & (counts[:, 1] <= COVERAGE[1] * counts[:, 0])))


def _batch(batch: int, flow: tuple[int, int]) -> tuple[int, int]:
    """Cases of an event in a run, and those whose interval covers the mean over seeds."""
    found = [_stages(batch, seed) for seed in range(FIRST_SEED, FIRST_SEED + SEEDS)]
    cases = covered = 0
    for name in sorted({name for each in found for name in each.events}):
        seen = [each for each in found if each.events.get(name) is not None]
        if len(seen) > SEEDS / 2:
            mean = float(np.mean([each.events[name] or np.nan for each in seen]))
            ends = [each.intervals[name] or (np.nan, np.nan) for each in seen]
            cases, covered = cases + len(seen), covered + sum(low <= mean <= high for low, high in ends)
    near = sum(max(abs(a - b) for a, b in zip(_turns(each), flow, strict=True)) <= 1 for each in found)
    print(f"{batch:>5} {cases:>5} {covered / cases:>7.2f} {near:>20} of {SEEDS}", flush=True)
    return cases, covered


def _turns(found: Stages) -> tuple[int, int]:
    reached = [name for name, when in found.events.items() if when is not None]
    return sum(name.startswith("refocus") for name in reached), sum(name.startswith("redilution") for name in reached)


def _stages(batch: int, seed: int) -> Stages:
    """One start, and other data for each seed."""
    options = STUDY.configured("ref", form="sampled", optimizer="sgd", batch=batch, steps=6000, lr=0.1)
    plan = STUDY.setup(options, 0)
    assert isinstance(plan.what, TokenSampled)
    law = TokenSampled(**{**{name: getattr(plan.what, name) for name in TokenSampled.model_fields}, "seed": seed})
    return reading(ss.evolve(law, plan.params, plan.dynamics, record=plan.record, seed=seed, progress=False)).stages
