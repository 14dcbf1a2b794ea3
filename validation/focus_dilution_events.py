"""Focus and dilution: intervals of events of sampled runs against the mean over data seeds, and their turns beside the flow's."""

import numpy as np

import stagescope as ss
from stagescope.detect.stage import Stages
from stagescope.papers.focus_dilution.loss import TokenSampled
from stagescope.papers.focus_dilution.model import LazyChain
from stagescope.papers.focus_dilution.study import STUDY
from stagescope.readings.reading import reading
from validation.nulls.focus_dilution import lazy_chain

SEEDS, FIRST_SEED, BATCHES = 14, 161_000, (4, 16, 128)
CHAINS, BATCH = 4, 16
"""Other chains, drawn by seed, and the batch on them."""
COVERAGE = (0.85, 0.99)


def main() -> bool:
    flow = _turns(ss.stages(ss.run_study("focus-dilution", "ref", until=600.0, progress=False)))
    print(f"ref by flow: {flow[0]} refocus, {flow[1]} redilution by t = 600")
    print(f"{'chain':>24} {'batch':>5} {'cases':>5} {'covered':>7} {'turns within 1 of the flow':>27}")
    ref = np.array([_row(None, batch, flow) for batch in BATCHES])
    others = np.array([_row(lazy_chain(np.random.default_rng(FIRST_SEED + i)), BATCH) for i in range(CHAINS)])
    for name, counts in (("ref", ref), ("others", others)):
        cases, covered = counts.sum(axis=0)
        print(f"{name:>24} {'all':>5} {cases:>5} {covered / cases:>7.2f}")
    shares = [*ref, others.sum(axis=0)]
    return all(COVERAGE[0] <= covered / cases <= COVERAGE[1] for cases, covered in shares)


def _row(chain: LazyChain | None, batch: int, flow: tuple[int, int] | None = None) -> tuple[int, int]:
    """Cases of an event in a run, and those whose interval covers the mean over seeds."""
    found = [_stages(chain, batch, seed) for seed in range(FIRST_SEED, FIRST_SEED + SEEDS)]
    cases = covered = 0
    for name in sorted({name for each in found for name in each.events}):
        seen = [each for each in found if each.events.get(name) is not None]
        if len(seen) > SEEDS / 2:
            mean = float(np.mean([each.events[name] or np.nan for each in seen]))
            ends = [each.intervals[name] or (np.nan, np.nan) for each in seen]
            cases, covered = cases + len(seen), covered + sum(low <= mean <= high for low, high in ends)
    near = f"{sum(_near(_turns(each), flow) for each in found)} of {SEEDS}" if flow else ""
    name = " ".join(f"{p:.2f}" for p in chain.pi) if chain else "ref"
    print(f"{name:>24} {batch:>5} {cases:>5} {covered / cases:>7.2f} {near:>27}", flush=True)
    return cases, covered


def _near(turns: tuple[int, int], flow: tuple[int, int]) -> bool:
    return max(abs(a - b) for a, b in zip(turns, flow, strict=True)) <= 1


def _turns(found: Stages) -> tuple[int, int]:
    reached = [name for name, when in found.events.items() if when is not None]
    return sum(name.startswith("refocus") for name in reached), sum(name.startswith("redilution") for name in reached)


def _stages(chain: LazyChain | None, batch: int, seed: int) -> Stages:
    """One start, and other data for each seed."""
    law = {} if chain is None else {"pi": chain.pi, "persistence": chain.persistence}
    options = STUDY.configured("ref", form="sampled", optimizer="sgd", batch=batch, steps=6000, lr=0.1, **law)
    plan = STUDY.setup(options, 0)
    assert isinstance(plan.what, TokenSampled)
    sampled = TokenSampled(**{**{name: getattr(plan.what, name) for name in TokenSampled.model_fields}, "seed": seed})
    return reading(ss.evolve(sampled, plan.params, plan.dynamics, record=plan.record, seed=seed, progress=False)).stages
