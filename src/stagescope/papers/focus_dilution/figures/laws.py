"""Numbers of the focus-and-dilution figures that test its laws; each function makes the runs it needs.

`measured` values are those of an independent implementation, from reference.json. The differences stand beside them.
"""

from functools import cache
from typing import Any

import numpy as np

from stagescope.landscape.ladder import Ladder
from stagescope.papers.answers import saddle_ladder
from stagescope.papers.focus_dilution.evidence import Evidence, visited
from stagescope.papers.focus_dilution.figures.numbers import REFERENCE, seen, shown, side_by_side
from stagescope.papers.focus_dilution.forms import attention_rate, condensation_rate
from stagescope.papers.focus_dilution.ladder.points import SmallPoint, condensed_start, nearest_point, small_point
from stagescope.papers.focus_dilution.loss import TokenPopulation
from stagescope.papers.focus_dilution.model import TokenAttention
from stagescope.papers.focus_dilution.observables import TokenCurves, token_curves
from stagescope.papers.focus_dilution.process import LazyChain, asymmetric_law
from stagescope.papers.focus_dilution.stages import passes
from stagescope.papers.reading import reading
from stagescope.papers.registry import run_study
from stagescope.progress import Progress
from stagescope.views.figure import Numbers, rounded

RUNGS = ((0, 0), (1, 0), (1, 1))
CHAINS: dict[str, dict[str, Any]] = {
    "ref": {"until": 250.0},
    "paper": {"pi": (0.75, 0.19, 0.05, 0.01), "persistence": 0.5, "scale": 8**-0.5, "until": 450.0},
    "near-symmetric": {"pi": (0.4, 0.22, 0.2, 0.18), "persistence": 0.6, "until": 750.0},
    "zipf, 6 tokens": {"pi": (0.4081, 0.2041, 0.1361, 0.102, 0.0816, 0.0681), "persistence": 0.5, "until": 400.0},
    "3 tokens": {"pi": (0.55, 0.3, 0.15), "persistence": 0.5, "until": 600.0},
    "5 tokens": {"pi": (0.45, 0.2, 0.15, 0.12, 0.08), "persistence": 0.7, "until": 500.0},
    "scale 1": {"pi": (0.6, 0.2, 0.12, 0.08), "persistence": 0.5, "scale": 1.0, "until": 1000.0},
}
"""Chains whose escape rates are compared, each followed to shortly after E2."""
EPS = (1e-2, 1e-3, 1e-4, 1e-5)
SHAPES = ((1.0, 0.0, -1.0), (1.0, 1.0, -2.0), (2.0, -1.0, -1.0))
DELTAS = (1e-4, 3e-4, 1e-3, 3e-3)
STALLS = ((0.4, 0.3, 0.0), (0.4, 0.3, 0.003), (0.4, 0.3, 0.01), (0.4, 0.3, 0.03), (0.55, 0.6, 0.0))


@cache
def ladder(preset: str) -> Ladder:
    return saddle_ladder(seen(preset)[0])


@side_by_side("loss")
def loss(preset: str, curves: TokenCurves, _: Any) -> Numbers:
    """Loss above the floor with the levels of the critical points, and |grad L| with its plateaus (r, rq) [FD:ladder]."""
    run, chain = seen(preset)[0], curves.law.process
    kept = shown(curves)
    rungs = [
        {"label": rung.label, "t": rung.t, "loss": rung.loss, "distance": rung.distance, "near": rung.near}
        for rung in ladder(preset)
    ]
    return {
        "t": rounded(run.t[kept]),
        "loss": rounded(run.series["loss"][kept], 9),
        "grad": rounded(run.series["speed"][kept], 12),
        "floor": chain.floor(),
        "unigram": chain.unigram_loss(),
        "end_above_floor": float(run.series["loss"][-1] - chain.floor()),
        "rungs": rungs,
    }


def rates(progress: Progress) -> Numbers:
    """Escape rates at (0,0), (1,0), (1,1) of several chains, predicted against measured [FD:ladder]."""
    rows, measured = [], REFERENCE["rate_ratios"].value
    for name, options in progress.each(tuple(CHAINS.items()), "escape rates", "chains"):
        run = run_study("focus-dilution", progress=False, **options)
        evidence = Evidence(run, reading(run).curves)
        for number, label in enumerate(RUNGS):
            visit = evidence.visit(*label)
            if visit is None or visit.small.opening is None or visit.rise is None:
                continue
            regime = visited(*label)(evidence)
            why = visit.out_of_regime if regime.holds else regime.sentence
            row = {"chain": name, "rung": f"({label[0]},{label[1]})", "opening": visit.small.opening.block}
            row |= {"predicted": visit.small.opening.rate, "measured": visit.rise.rate, "distance": visit.distance}
            row |= {
                "ratio": visit.rise.rate / visit.small.opening.rate,
                "conclusive": not why,
                "regime": why or regime.sentence,
            }
            if name in measured:
                row |= {"measured_ratio": measured[name][number]}
            rows.append(row)
    gaps = [abs(row["ratio"] - row["measured_ratio"]) for row in rows if "measured_ratio" in row]
    ratios = [row["ratio"] for row in rows if row["conclusive"]]
    return {"rows": rows, "conclusive_ratio": [min(ratios), max(ratios)], "mean_abs_difference": float(np.mean(gaps))}


def lazy_loss(pi: tuple[float, ...], persistence: float, scale: float = 4.0) -> TokenPopulation:
    """The loss of a model of width 8 on a lazy chain."""
    model = TokenAttention(vocab=len(pi), width=8, scale=scale)
    return TokenPopulation(model=model, process=LazyChain(pi=pi, persistence=persistence))


def eps_law(progress: Progress) -> Numbers:
    """E1, Q1 and E2 of ref against the initial scale: ln 10 over a rate for every decade [FD:eps-law]."""
    problem = lazy_loss((0.5, 0.25, 0.15, 0.10), 0.6)
    pi = problem.process.stationary
    opening = small_point(problem, condensed_start(problem, 1e-3, 1.0), 1, 1).opening
    assert opening is not None
    found = (condensation_rate(pi), attention_rate(pi, problem.process.transition, 4.0), opening.rate)
    times = []
    for eps in progress.each(EPS, "initial scales", "flows"):
        run = run_study("focus-dilution", init_scale=eps, until=500.0, frames=4000, progress=False)
        curves = token_curves(run)
        embedding, scores = passes(curves.time, curves.embedding_values), passes(curves.time, curves.score_values)
        times.append((embedding[0], scores[0], embedding[1]))
    events = np.array(times, dtype=float)
    legs = np.diff(np.diff(np.column_stack([np.zeros(len(EPS)), events]), axis=1), axis=0)
    measured = {name: times[: len(EPS)] for name, times in REFERENCE["eps_events"].value.items()}
    delays = REFERENCE["eps_delays"].value
    return {
        "eps": list(EPS),
        "rates": dict(zip(("mu0", "c", "mu11"), found, strict=True)),
        "events": dict(zip(("E1", "Q1", "E2"), rounded(events.T), strict=True)),
        "measured": measured,
        "mean_relative_difference": float(np.mean(np.abs(events.T / np.array(list(measured.values())) - 1))),
        "per_decade": dict(zip(delays, rounded(legs.T), strict=True)),
        "measured_per_decade": delays,
        "predicted_per_decade": dict(zip(delays, (float(np.log(10) / rate) for rate in found), strict=True)),
    }


def delta_law(progress: Progress) -> Numbers:
    """Rate at (1,1) over delta, and the stall at delta = 0 [FD:kappa]."""
    progress.begin("asymmetry", 2 * len(SHAPES) + len(STALLS), "points and flows")
    families, done = [], 0
    for first, persistence in ((0.55, 0.6), (0.4, 0.3)):
        curves = []
        for shape in SHAPES:
            curves.append(_kappa(first, persistence, shape))
            done += 1
            progress.update(done)
        families.append({"pi0": first, "persistence": persistence, "curves": curves})
    found, measured = {curve["shape"]: curve["kappa"] for curve in families[0]["curves"]}, REFERENCE["kappa"].value
    gaps = {name: abs(found[name] - value) for name, value in measured.items()}
    flows = []
    for first, persistence, delta in STALLS:
        flows.append(_stall(first, persistence, delta))
        done += 1
        progress.update(done)
    return {"families": families, "measured_kappa": measured, "difference": gaps, "flows": flows}


def _kappa(first: float, persistence: float, shape: tuple[float, ...]) -> dict[str, Any]:
    """rate/delta at the critical point that continues the symmetric (1,1) from delta to the next larger delta."""
    start, over = symmetric_point(first, persistence).point.params, []
    for delta in DELTAS:
        found = nearest_point(lazy_loss(asymmetric_law(first, 4, shape, delta), persistence), start, 1, 1)
        assert found.point.found, f"no critical point (1,1) at delta = {delta:g}"
        over.append(found.openings["embedding"][0].rate / delta)
        start = found.point.params
    name = "(" + ", ".join(f"{c:g}" for c in shape) + ")"
    return {"shape": name, "delta": list(DELTAS), "rate_over_delta": rounded(over), "kappa": over[0]}


@cache
def symmetric_point(first: float, persistence: float) -> SmallPoint:
    """The point (1,1) at delta = 0, reached by the flow of the small model from a symmetric start."""
    problem = lazy_loss(asymmetric_law(first, 4, SHAPES[0], 0.0), persistence)
    return small_point(problem, condensed_start(problem, 1e-3, 1.0), 1, 1)


def _stall(first: float, persistence: float, delta: float) -> dict[str, Any]:
    """sv_2(W0) over time, with Q1 and E2."""
    pi = asymmetric_law(first, 4, SHAPES[0], delta)
    run = run_study("focus-dilution", pi=pi, persistence=persistence, until=4000.0, frames=2000, progress=False)
    curves = token_curves(run)
    kept = np.unique(np.linspace(0, run.frames - 1, 400).astype(int))
    return {
        "pi0": first,
        "persistence": persistence,
        "delta": delta,
        "Q1": passes(curves.time, curves.score_values)[0],
        "E2": passes(curves.time, curves.embedding_values)[1],
        "t": rounded(curves.time[kept]),
        "second_value": rounded(curves.embedding_values[kept, 1], 9),
    }
