"""Numbers of the focus-and-dilution figures (arXiv 2605.01199); each function makes the runs it needs."""

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

from stagescope.detect.stage import Stages
from stagescope.dynamics.evolve import evolve
from stagescope.dynamics.flow import GradientFlow
from stagescope.dynamics.record import AtTimes, Uniform
from stagescope.landscape.ladder import Ladder
from stagescope.papers.answers import saddle_ladder, stages
from stagescope.papers.focus_dilution.evidence import Evidence, visited
from stagescope.papers.focus_dilution.family import attention_rate, condensation_rate, plateau_amplitude
from stagescope.papers.focus_dilution.ladder import SmallPoint, condensed_start, nearest_point, small_point
from stagescope.papers.focus_dilution.loss import TokenPopulation
from stagescope.papers.focus_dilution.model import LazyChain, TokenAttention, asymmetric_law
from stagescope.papers.focus_dilution.observables import TokenCurves, token_curves
from stagescope.papers.focus_dilution.stages import THRESHOLDS, opening_times, passes, row_cycles, stays
from stagescope.papers.predicting import saddle_path
from stagescope.papers.published import published
from stagescope.papers.reading import reading
from stagescope.papers.rebuild import replay
from stagescope.papers.registry import run_study
from stagescope.processes.markov_chain import MarkovChain
from stagescope.progress import Progress
from stagescope.runs.run import Run
from stagescope.views.figure import Numbers, rounded

# Numbers of the focus-and-dilution figures that show a run (arXiv 2605.01199); each function makes the runs it needs.
#
# `measured` values are those of an independent implementation, from reference.json. Its random generator is another one, so
# they agree up to the spread over seeds. The differences stand beside them.

REFERENCE = published("stagescope.papers.focus_dilution")
PRESETS = ("ref", "paper")
Panel = Callable[[str, TokenCurves, Stages], Numbers]


@cache
def seen(preset: str) -> tuple[Run, TokenCurves, Stages]:
    """A preset's run with its curves and stages, at a resolution that shows everything; the figures share them."""
    run = run_study("focus-dilution", preset, progress=False)
    fine = replay(run, AtTimes(at=tuple(reading(run).curves.time.tolist())))
    return fine, token_curves(fine), stages(fine)


def _openings(curves: TokenCurves) -> dict[str, float | None]:
    return opening_times(curves.time, curves.embedding_values, curves.score_values)


def shown(curves: TokenCurves, frames: int = 900) -> np.ndarray:
    """Frames for drawing: equally spaced in how far things move and in the logarithm of time."""
    early = curves.time[-1] * 1e-3
    path = np.cumsum(np.minimum(curves.moves(), 5.0) / 3 + 30 * np.diff(np.log(curves.time + early)))
    wanted = np.linspace(0, path[-1], frames)
    return np.unique(np.searchsorted(np.concatenate([[0.0], path]), wanted).clip(0, len(curves.time) - 1))


def side_by_side(what: str, **more: Any) -> Callable[[Panel], Callable[[Progress], Numbers]]:
    """Makes the numbers of a figure, ref beside paper, from those of one panel; each has the name and the events of its run."""

    def figure(panel: Panel) -> Callable[[Progress], Numbers]:
        def compute(progress: Progress) -> Numbers:
            panels = []
            for preset in progress.each(PRESETS, what, "runs"):
                run, curves, found = seen(preset)
                held = {name: when for name, when in found.events.items() if when is not None}
                panels.append({"preset": preset, "pi": rounded(curves.pi), "until": float(run.t[-1]), "events": held})
                panels[-1] |= panel(preset, curves, found)
            return {**more, "panels": panels}

        return compute

    return figure


def embedding(progress: Progress) -> Numbers:
    """Rows of W0 over time, and the share of their variance in each principal direction at some moments [FD:condensed].

    Axes: the principal direction of the condensed plateau, and beside it the largest one of the end.
    """
    progress.begin("embedding", 1, "run")
    _, curves, found = seen("ref")
    rows, kept = curves.params["W0"], shown(curves)
    held = {name: when for name, when in found.events.items() if when is not None}
    diluted = max(when for name, when in held.items() if name.startswith("dilution"))
    moments = {"(1,0)": (held["E1"] + held["Q1"]) / 2, "diluted": diluted + 0.15 * (held["E2"] - diluted)}
    moments |= {"E2": held["E2"], "Q2": held["Q2"], "end": float(curves.time[-1])}
    frames = {name: int(np.argmin(np.abs(curves.time - when))) for name, when in {"E1": held["E1"], **moments}.items()}
    # Two orthonormal directions (2, width); the frequent token is on the positive side of both.
    condensed, last = rows[frames["(1,0)"]], rows[-1]
    first = np.linalg.svd(condensed)[2][0]
    axes = np.stack([first, np.linalg.svd(last - np.outer(last @ first, first))[2][0]])
    axes *= np.sign([condensed[0] @ axes[0], last[0] @ axes[1]])[:, None]
    progress.update(1)
    return {
        "preset": "ref",
        "pi": rounded(curves.pi),
        "events": held,
        "moments": {name: float(curves.time[frames[name]]) for name in moments},
        "points": {name: rounded(rows[frames[name]] @ axes.T) for name in moments},
        "explained": {name: rounded(_explained(rows[frame])) for name, frame in frames.items()},
        "t": rounded(curves.time[kept]),
        "path": rounded(rows[kept] @ axes.T),
    }


def _explained(rows: np.ndarray) -> np.ndarray:
    """Shares of the variance of rows in their principal directions (centred)."""
    square = np.linalg.svd(rows - rows.mean(axis=0), compute_uv=False) ** 2
    return square / square.sum()


@side_by_side("singular values", level=THRESHOLDS.level)
def singular_values(preset: str, curves: TokenCurves, found: Stages) -> Numbers:
    """Singular values of W0, W1 and Phi with the events E_k and Q_k [FD:stages]."""
    kept = shown(curves)
    named = {"W0": curves.embedding_values, "W1": curves.output_values, "Phi": curves.score_values}
    measured = REFERENCE["events"].value[preset]
    # How far a time lies outside its range, relative to the nearer end; 0 inside.
    reached = {name: when for name in measured if (when := found.events[name]) is not None}
    outside = dict.fromkeys(measured) | {
        name: max(measured[name][0] / when - 1, when / measured[name][1] - 1, 0.0) for name, when in reached.items()
    }
    ladder = stays(curves.time, curves.embedding_values, curves.score_values)
    return {
        "t": rounded(curves.time[kept]),
        "values": {name: rounded(values[kept].T, 9) for name, values in named.items()},
        "ladder": [[stay.label, stay.start] for stay in ladder],
        "measured_range": measured,
        "outside_measured_range": outside,
    }


@side_by_side("attention")
def attention(preset: str, curves: TokenCurves, found: Stages) -> Numbers:
    """Attention A_i0 on the frequent token by query row: base, focus, dilution, and the second cycle [FD:focus]."""
    kept, rows = shown(curves), curves.on_frequent
    peaks, troughs = first_cycle(curves, found)
    measured = {name: REFERENCE[f"{name}s"].value[preset] for name in ("peak", "trough")}
    gaps = [abs(peaks[row] - value) for row, value in measured["peak"].items()]
    gaps += [abs(troughs[row] - value) for row, value in measured["trough"].items()]
    when, height = (REFERENCE[name].value[preset] for name in ("refocus_time", "refocus_to"))
    top = found.events["refocus1"]
    assert top is not None
    second = {"t": top, "height": float(np.interp(top, curves.time, rows[:, 1]))}
    turned = [stage for stage in found.json()["stages"] if stage["name"] in ("refocus", "redilution")]
    return {
        "base": float(curves.pi[curves.frequent]),
        "t": rounded(curves.time[kept]),
        "rows": rounded(rows[kept].T),
        "peak": peaks,
        "trough": troughs,
        "turns": turned,
        "measured": {**measured, "refocus1": {"t": when, "height": height}},
        "refocus1": {**second, "difference": abs(second["height"] - height)},
        "mean_abs_difference": float(np.mean(gaps)),
    }


def first_cycle(curves: TokenCurves, found: Stages) -> tuple[dict[str, float], dict[str, float]]:
    """Highest attention on the frequent token from E1 to E2, and lowest from there to E2, of every other row."""
    rows = curves.on_frequent
    inside = np.flatnonzero((curves.time >= found.events["E1"]) & (curves.time <= found.events["E2"]))
    peaks, troughs = {}, {}
    for row in range(len(curves.pi)):
        if row != curves.frequent:
            curve = rows[inside, row]
            top = int(np.argmax(curve))
            peaks[str(row)], troughs[str(row)] = rounded(curve[top]), rounded(curve[top:].min())
    return peaks, troughs


@side_by_side("entropy")
def entropy(preset: str, curves: TokenCurves, found: Stages) -> Numbers:
    """Entropy of attention rows: it falls with the focus, rises with the dilution, falls again [FD:dilution]."""
    kept = shown(curves)
    until = found.events["E2"]
    turning = {
        str(row): {name: rounded(value) for name, value in _turning(curves.time, curves.entropy[:, row], until).items()}
        for row in range(len(curves.pi))
        if row != curves.frequent
    }
    unigram = float(-np.sum(curves.pi * np.log(curves.pi)))
    rows, largest = rounded(curves.entropy[kept].T), float(np.log(len(curves.pi)))
    return {"base": unigram, "largest": largest, "t": rounded(curves.time[kept]), "rows": rows, "turning": turning}


def _turning(time: np.ndarray, curve: np.ndarray, second: float | None) -> dict[str, Any]:
    """Lowest before the largest of the first cycle, that largest value, and the end."""
    inside = curve[: int(np.searchsorted(time, second or time[-1])) + 1]
    top = int(np.argmax(inside))
    return {"start": curve[0], "focused": inside[: top + 1].min(), "diluted": inside[top], "end": curve[-1]}


@side_by_side("norms")
def norms(preset: str, curves: TokenCurves, found: Stages) -> Numbers:
    """Row norms of W0 against a pi_i / n on the plateau (1,0), and their dips at the dilution [FD:condensed]."""
    kept = shown(curves)
    predicted = plateau_amplitude(curves.pi) * curves.pi / np.linalg.norm(curves.pi)
    first, opened = found.events["E1"], found.events["Q1"]
    assert first is not None
    assert opened is not None
    run = seen(preset)[0]
    inside = np.flatnonzero((run.t > first) & (run.t < opened))
    slowest = inside[np.argmin(run.series["speed"][inside])]
    measured = np.linalg.norm(run.params["W0"][slowest], axis=1)
    return {
        "t": rounded(curves.time[kept]),
        "rows": rounded(curves.norms[kept].T, 9),
        "plateau": [first, opened],
        "predicted": rounded(predicted),
        "measured": rounded(measured),
        "mean_abs_difference": float(np.mean(np.abs(measured - predicted))),
    }


# Other chains with one stationary law: which of them focus and which move away [FD:attention-rate].

PI = np.array([0.5, 0.25, 0.15, 0.10])
SCALE = 4.0


def joint_laws() -> dict[str, np.ndarray]:
    """Joint laws F_ij = pi_i P_ij of two neighbours, all with marginals pi: independent tokens plus moves that keep them.

    A swap s (E_ij + E_ji - E_ii - E_jj) makes i and j follow each other instead of themselves (s > 0) and stays
    reversible; a circulation s (C - C^T) along 0 -> 1 -> 2 -> 3 -> 0 does not.
    """
    base = np.outer(PI, PI)

    def swapped(*pairs: tuple[int, int, float]) -> np.ndarray:
        law = base.copy()
        for i, j, s in pairs:
            law[[i, j, i, j], [j, i, i, j]] += s, s, -s, -s
        return law

    cycle = np.roll(np.eye(len(PI)), 1, axis=1)
    circulation = 0.012 * (cycle - cycle.T)
    return {
        "reversible, clusters {0,1} {2,3}": swapped((0, 2, -0.05), (0, 3, -0.03), (1, 2, -0.02), (1, 3, -0.015)),
        "cyclic, 0→3→2→1→0": base - circulation,
        "the same cycle reversed": base + circulation,
        "anti-persistent": swapped((0, 1, 0.05), (0, 2, 0.012), (0, 3, 0.005), (1, 2, 0.005)),
    }


def transitions(progress: Progress) -> Numbers:
    """Attention on the frequent token in four chains with the law of ref, in units of 1/|c|: sign(c) decides the first move."""
    laws = progress.each(tuple(joint_laws().items()), "transitions", "flows")
    panels = [{"name": name, **_panel(law / PI[:, None])} for name, law in laws]
    agree = all(np.sign(panel["c"]) == np.sign(panel["first_move"]) for panel in panels)
    return {"pi": PI.tolist(), "scale": SCALE, "panels": panels, "sign_agrees": agree}


def _panel(transition: np.ndarray) -> Numbers:
    c = attention_rate(PI, transition, SCALE)
    model = TokenAttention(vocab=len(PI), width=8, scale=SCALE)
    problem = TokenPopulation(model=model, process=MarkovChain(rows=transition / transition.sum(axis=1, keepdims=True)))
    run = evolve(problem, model.init(0, 1e-3), GradientFlow(), until=14 / abs(c), record=Uniform(frames=3000), progress=False)
    curves = token_curves(run)
    opened, ends = (passes(curves.time, values)[0] for values in (curves.score_values, curves.embedding_values[:, 1:]))
    assert opened is not None
    until = float(curves.time[-1]) if ends is None else ends
    rows = curves.attention[:, :, 0]
    cycles = row_cycles(curves.time, rows, float(PI[0]), (opened / 2, until), float(np.sign(c)), 0)
    kept = np.flatnonzero((curves.time >= 0.6 * opened) & (curves.time <= 1.6 * opened))[::3]
    at = int(np.searchsorted(curves.time, opened))
    return {
        "c": c,
        "transition": rounded(transition),
        "reversible": bool(np.allclose(PI[:, None] * transition, (PI[:, None] * transition).T)),
        "Q1": opened,
        "E2": ends,
        "first_move": float(rows[at, 1] - PI[0]),
        "gain": {str(cycle.row): rounded(np.sign(c) * cycle.gain) for cycle in cycles if cycle.focus is not None},
        "ct": rounded(abs(c) * curves.time[kept]),
        "rows": rounded(rows[kept].T),
    }


# Numbers of the focus-and-dilution figures that test its laws; each function makes the runs it needs.
#
# `measured` values are those of an independent implementation, from reference.json. The differences stand beside them.

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
        found_times = _openings(token_curves(run))
        times.append([found_times[name] for name in ("E1", "Q1", "E2")])
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
    times = _openings(curves)
    return {
        "pi0": first,
        "persistence": persistence,
        "delta": delta,
        "Q1": times["Q1"],
        "E2": times["E2"],
        "t": rounded(curves.time[kept]),
        "second_value": rounded(curves.embedding_values[kept, 1], 9),
    }


# Numbers of the figure of saddle paths: event times over the initial scale, far below where a flow can start.

EVENTS = ("E1", "Q1", "E2", "Q2", "E3")
SCALES = (1e-3, 1e-4, 1e-5, 1e-6, 1e-10, 1e-20, 1e-30, 1e-45, 1e-60)
FLOWS = {1e-2: 400.0, 1e-3: 450.0, 1e-4: 600.0, 1e-5: 800.0, 1e-6: 950.0}
"""Initial scales of flows, each followed to shortly after E3."""


def predicted(progress: Progress) -> Numbers:
    """Events of ref predicted from starts of 1e-3 to 1e-60, and those of flows [FD:predicted-times]."""
    problem = lazy_loss((0.5, 0.25, 0.15, 0.10), 0.6)
    progress.begin("saddle paths and flows", len(SCALES) + len(FLOWS), "starts")
    paths, flows = [], []
    for eps in SCALES:
        paths.append(saddle_path(problem, scale=eps))
        progress.update(len(paths))
    for eps, until in FLOWS.items():
        run = run_study("focus-dilution", init_scale=eps, until=until, frames=4000, progress=False)
        flows.append({name: when or float("nan") for name, when in _openings(token_curves(run)).items()})
        progress.update(len(SCALES) + len(flows))
    times = {name: [path[name].t for path in paths] for name in EVENTS}
    halves = {name: [((path[name].high or 0.0) - (path[name].low or 0.0)) / 2 for path in paths] for name in EVENTS}
    ratios = {
        name: [flow[name] / times[name][SCALES.index(eps)] for eps, flow in zip(FLOWS, flows, strict=True) if eps in SCALES]
        for name in EVENTS
    }
    return {
        "eps": list(SCALES),
        "events": {name: rounded(np.array(when)) for name, when in times.items()},
        "half_widths": {name: rounded(np.array(half)) for name, half in halves.items()},
        "flow_eps": list(FLOWS),
        "flows": {name: rounded(np.array([flow[name] for flow in flows])) for name in EVENTS},
        "measured_over_predicted": {name: rounded(np.array(each)) for name, each in ratios.items()},
        "largest_difference": float(max(abs(ratio - 1) for each in ratios.values() for ratio in each)),
    }
