"""Numbers of the scan-and-snap figures (arXiv 2305.16380); each function makes all runs that its figure needs."""

from collections.abc import Callable
from functools import cache, partial
from typing import Any

import numpy as np

from stagescope.papers.published import published
from stagescope.papers.reading import stages
from stagescope.papers.rebuild import rebuilt
from stagescope.papers.registry import run_study
from stagescope.papers.scan_snap import forms
from stagescope.papers.scan_snap.evidence import Evidence
from stagescope.papers.scan_snap.loss import PairwiseSampled
from stagescope.papers.scan_snap.model import PairwiseAttention
from stagescope.papers.scan_snap.observables import ClassAttention, Supports, class_attention
from stagescope.papers.scan_snap.process import SequenceClasses
from stagescope.papers.scan_snap.study import MEDIUM_CELLS, MEDIUM_LAST, SEEDS
from stagescope.papers.scan_snap.text.claims import late_entropy, late_motion
from stagescope.papers.scan_snap.text.observables import checkpoints, held_out, known_windows, text_attention
from stagescope.progress import Progress
from stagescope.views.figure import Figure, Numbers, rounded

_PUBLISHED = published("stagescope.papers.scan_snap")


def overview(progress: Progress) -> Numbers:
    """Figure 2, drawn from data: attention of a class before, during and after the scan."""
    run = run_study("scan-snap", "syn-small-flow", progress=False)
    curves, events = class_attention(run), stages(run).events
    moments = {"start": 0.0, **{name: events[name] for name in ("onset", "winner", "snap")}, "end": float(run.t[-1])}
    times = {name: when for name, when in moments.items() if when is not None}
    own = curves.c[:, : curves.supports.start[1]].T
    bars = {name: rounded([np.interp(when, run.t, token) for token in own]) for name, when in times.items()}
    return {"times": times, "attention": bars, "common": curves.supports.common[: len(own)].tolist()}


def growth_factors(progress: Progress) -> Numbers:
    """Figure 3: chi(t) of the winning token, K = 10, M = 1000, eta_Z = .5, modified decoder, with the bounds of theorem 3."""
    curves = []
    for rate_y in progress.each((0.5, 1.0, 2.0, 5.0), "figure 3", "flows"):
        run = run_study("scan-snap", "published-growth", rate_y=rate_y, record="uniform", frames=351, progress=False)
        seen = Evidence.of(run)
        chi = np.exp(2 * seen.curves.z[:, seen.curves.winners]).mean(axis=1)
        table = seen.curves.table[0]
        start = forms.start_constant(float(table[seen.curves.common[0]][0]), float(np.sum(table**2)), 10)
        upper = np.exp(2 * forms.growth(forms.driving(run.t, 1000, 10, rate_y, 0.5) / 10, start))
        t0 = forms.t0_prime(1000, 10, rate_y)
        curves.append({"rate_y": rate_y, "t": rounded(run.t), "chi": rounded(chi), "upper": rounded(upper), "t0": t0})
    facts = {"largest_chi": max(max(curve["chi"]) for curve in curves), "axis": axis_of_figure_three()}
    return {"curves": curves, **facts}


def axis_of_figure_three() -> dict[str, float]:
    """The end of the paper's axis of figure 3, and the eta_Z at which the bound of theorem 3 allows it at eta_Y = .5, t = 700.

    chi <= e^{2B} = (1 + 4 Gamma/C0)^(1/2), and C0 >= K/(K-1) because p_c <= rho0; Gamma is proportional to eta_Z.
    """
    reached, classes, outputs = _PUBLISHED["figure_3_axis"].value, 10, 1000
    unit = float(forms.driving(700.0, outputs, classes, 0.5, 1.0)) / classes
    needed = (reached**2 - 1) * forms.start_constant(1.0, 1.0, classes) / 4 / unit
    return {"reaches": reached, "rate_z_needed": needed, "ratio_needed": needed / 0.5}


def syn_small(progress: Progress) -> Numbers:
    """Figure 4: SGD on Syn-Small at two rates of the decoder: attention of a class, entropy on its distinct tokens."""
    panels, curves_by_rate = [], _seeds(progress, "published-small", "rate_y", (1.0, 10.0))
    for rate_y, runs in curves_by_rate.items():
        first, entropies = runs[0], [curves.mean(curves.entropy) for curves in runs]
        halves = np.split(first.c, 2, axis=1)
        common = first.supports.common[: first.supports.start[1]].tolist()
        panel = {"rate_y": rate_y, "attention": rounded(np.mean(halves, axis=0)), "common": common}
        at_99 = [float(values[99]) for values in entropies]
        panel |= {"entropy": rounded(entropies), "entropy_at_99": [float(np.mean(at_99)), float(np.std(at_99))]}
        panels.append(panel)
    return {"panels": panels, "published": {"1": _PUBLISHED["figure_4_authors"].value}}


def _seeds(progress: Progress, preset: str, name: str, values: tuple[Any, ...]) -> dict[Any, list[ClassAttention]]:
    """Class attention of the runs of a preset for each value of an option, one for each seed."""
    curves_by_value: dict[Any, list[ClassAttention]] = {value: [] for value in values}
    for value, seed in progress.each(
        [(value, seed) for value in values for seed in range(SEEDS)], preset.replace("-", " "), "runs"
    ):
        options: dict[str, Any] = {name: value}
        curves_by_value[value].append(class_attention(run_study("scan-snap", preset, seed=seed, progress=False, **options)))
    return curves_by_value


def adam(progress: Progress) -> Numbers:
    """Figure 5: Adam at three rates ends on different distinct tokens."""
    panels = []
    for lr, runs in _seeds(progress, "published-adam-half", "lr", (0.1, 0.5, 1.0)).items():
        shares = []
        for curves in runs:
            own = curves.c[-1, ~curves.supports.common].reshape(2, -1)
            shares.append((own / own.sum(axis=1, keepdims=True)).mean(axis=0))
        mean = np.mean(shares, axis=0)
        panels.append({"lr": lr, "share": rounded(mean), "spread": rounded(np.std(shares, axis=0)), "top": int(np.argmax(mean))})
    return {"panels": panels}


def syn_medium(progress: Progress) -> dict[int, dict[str, Any]]:
    """The 640 runs of figure 6, by number of queries: final attention (160 runs, entries)."""
    return {last: medium_runs(last) for last in progress.each(MEDIUM_LAST, "640 runs of 100 steps", "sizes")}


@cache
def medium_runs(last: int) -> dict[str, Any]:
    """160 runs of Syn-Medium with `last` queries, ordered (eta_Z, ratio, seed), for figures 6, 11 and 12.

    Every run has its own seed, so that the errors of different cells are independent. Steps are made in float32: entropies are
    those of float64 to 1e-4 nats, a hundredth of the spread over seeds.
    """
    grid = np.array([(z, z * ratio) for z, ratio in MEDIUM_CELLS for _ in range(SEEDS)], dtype=float)
    process = SequenceClasses.synthetic(last, 2, 10, 10)
    model = PairwiseAttention.every_output(process)
    problem = PairwiseSampled(model=model, process=process, length=128, batch=128, precision="float32")
    _, z, _ = problem.train_many(np.arange(len(grid)), process.vocab**-0.5, grid[:, 1], grid[:, 0], steps=100)
    on = Supports.of_law(problem)
    return {"attention": on.attention(z[:, on.row, on.key]), "supports": on, "vocab": process.vocab}


def entropy_grid(progress: Progress) -> Numbers:
    """Figure 6: entropy on distinct tokens over eta_Z and eta_Y/eta_Z, against the 64 published means."""
    cells = {}
    for last, runs in syn_medium(progress).items():
        entropy = runs["supports"].entropy(runs["attention"]).mean(axis=1)
        for (z, ratio), block in zip(MEDIUM_CELLS, entropy.reshape(-1, SEEDS), strict=True):
            cells[f"{last}|{z}|{ratio}"] = rounded([block.mean(), block.std()])
    theirs = _PUBLISHED["figure_6_entropy"].value
    gaps = [abs(cells[name][0] - mean) for name, (mean, _) in theirs.items()]
    facts = {"mean_abs_difference": float(np.mean(gaps)), "largest_difference": float(np.max(gaps))}
    return {**facts, "cells": cells, "published": theirs}


def discrete(progress: Progress) -> Numbers:
    """Figure 8: h after steps against h of the flow; the gap stays below 2 eta_Y / M."""
    panels = []
    for outputs, rates in ((50, (0.1, 0.5, 1.0, 2.0)), (1000, (0.2, 1.0, 2.0, 4.0))):
        curves = []
        for rate in rates:
            until = 4 * forms.t0_prime(outputs, 1, rate)
            steps = int(np.ceil(until))
            stepped = forms.discrete_gap(steps, outputs, rate)
            excess = (stepped - forms.logit_gap(np.arange(steps + 1.0), outputs, 1, rate) / outputs) / (2 * rate / outputs)
            t = np.geomspace(0.5, steps, 200)
            flow = forms.logit_gap(t, outputs, 1, rate) / outputs
            curve = {"rate_y": rate, "t": rounded(t), "flow": rounded(flow, 12), "discrete": rounded(stepped, 12)}
            curves.append({**curve, "gap_over_bound": [float(excess.min()), float(excess.max())]})
        panels.append({"M": outputs, "curves": curves})
    return {"panels": panels}


def common_growth(progress: Progress) -> Numbers:
    """Figure 9: B(t) for nu = eta_Y/eta_Z = 10, M = 100 and nu = 1, M = 10^4, over eta_Z (K = 1, C0 = 1)."""
    panels = []
    for nu, outputs, until in ((10.0, 100, 5.0), (1.0, 10_000, 50.0)):
        t = np.linspace(0, until, 201)
        curves = [
            {"rate_z": z, "B": rounded(forms.growth(forms.driving(t, outputs, 1, nu * z, z), 1.0))}
            for z in (0.5, 1.0, 2.0, 4.0, 8.0)
        ]
        panels.append({"nu": nu, "M": outputs, "t": rounded(t), "curves": curves})
    return {"panels": panels}


def recall(progress: Progress, lasts: tuple[int, ...]) -> Numbers:
    """Figures 11 and 12: share of distinct tokens with attention above a threshold, in units of 1/M, on figure 6's runs."""
    thresholds, panels = np.geomspace(0.01, 10, 61), []
    for last, runs in syn_medium(progress).items():
        if last not in lasts:
            continue
        values = runs["attention"][:, ~runs["supports"].common] * runs["vocab"]
        blocks = zip(MEDIUM_CELLS, values.reshape(len(MEDIUM_CELLS), -1), strict=True)
        curves = {f"{z}|{ratio}": rounded([(block > level).mean() for level in thresholds], 4) for (z, ratio), block in blocks}
        panels.append({"num_last": last, "M": runs["vocab"], "recall": curves})
    return {"thresholds_times_M": rounded(thresholds), "panels": panels}


# Figures of scan and snap on a text: figures 7 and 10 of the paper, and one of topical classes, which is not in the paper.


_four_digits = partial(rounded, digits=4)


def maps(progress: Progress, preset: str = "figure-7", decay: float = 0.01, **changes: Any) -> Numbers:
    """Figure 7: four attention maps of one held-out window over training; entropy and motion at a constant and a decaying rate.

    The window is the one with the most known words.
    """
    runs, curves = {}, {}
    for name, falls_to in progress.each((("constant", None), ("decaying", decay)), "figure 7", "runs"):
        run = runs[name] = run_study("text-snap", preset, progress=False, decay=falls_to, **changes)
        attention = text_attention(run)
        entropy = _four_digits(attention.entropy)
        # Total variation of attention, at the step where each interval ends.
        stops = attention.step[checkpoints(attention.step)][1:].tolist()
        motion = {"step": stops, "variation": _four_digits(attention.motion.variation)}
        curves[name] = {"step": run.step.tolist(), "entropy": entropy, "motion": motion, "final_motion": late_motion(attention)}
    run = runs["constant"]
    field, judge = run.spec["field"], held_out(rebuilt(run.spec["field"]))
    windows = judge.watched_tokens
    (best,) = known_windows(windows, judge.process.words, 1)
    frames = [int(np.argmin(np.abs(run.step - at))) for at in np.linspace(0, int(run.step[-1]), 4)]
    return {
        "corpus": field["process"]["source"],
        "rate": run.spec["dynamics"]["lr"],
        "decay": decay,
        "width": field["model"]["width"],
        "words": [judge.process.label(int(token)) for token in windows[best]],
        "steps": run.step[frames].tolist(),
        "maps": [_four_digits(judge.attention(run.at(frame))[best]) for frame in frames],
        "curves": curves,
    }


def entropies(
    progress: Progress,
    preset: str = "figure-10",
    rates: tuple[float, ...] = (1.0, 2.0, 3.0, 4.0, 5.0),
    seeds: int = 3,
    decay: float = 0.01,
    **changes: Any,
) -> Numbers:
    """Figure 10: entropy of held-out attention against the learning rate; the largest rate also with decay."""
    rows = []
    for rate, falls_to in progress.each((*((rate, None) for rate in rates), (rates[-1], decay)), "figure 10", "rates"):
        options = {"lr": rate, "decay": falls_to, **changes}
        curves = [text_attention(run_study("text-snap", preset, progress=False, seed=seed, **options)) for seed in range(seeds)]
        ends = {"entropy": list(map(late_entropy, curves)), "motion": list(map(late_motion, curves))}
        ends = {"start": [seed.entropy[0] for seed in curves], **ends}
        rows.append({"rate": rate, "decay": falls_to, **{name: _four_digits(values) for name, values in ends.items()}})
    table = np.array([row["entropy"] for row in rows[:-1]])
    falls, extremes = np.all(np.diff(table, axis=0) < 0, axis=0), table[-1] < table[0]
    return {"rows": rows, "falls_at_every_rate": falls.tolist(), "largest_sparser_than_smallest": extremes.tolist()}


def _figure(name: str, title: str, compute: Callable[..., Numbers], cost: str = "", **more: Any) -> tuple[str, Figure]:
    """Drawn by the namesake of what computes its numbers; matplotlib is imported when something is drawn."""
    namesake = compute.func if isinstance(compute, partial) else compute

    def draw(numbers: Numbers) -> Any:
        from . import drawings

        return getattr(drawings, namesake.__name__)(numbers)

    return name, Figure(name, title, compute, draw, cost, **more)


FIGURES = dict(
    (
        _figure("2", "Attention of a class before, during and after the scan", overview),
        _figure("3", "Growth factor of the winning token", growth_factors),
        _figure("4", "SGD on Syn-Small at two decoder rates", syn_small),
        _figure("5", "Adam selects different distinct tokens at different rates", adam),
        _figure("6", "Entropy over rates and number of classes, against the published means", entropy_grid),
        _figure("7", "Attention of a one-layer transformer over training", maps, "3 minutes", needs="wikitext-2"),
        _figure("8", "Discrete against continuous h", discrete),
        _figure("9", "B(t), the fall of the common token", common_growth),
        _figure("10", "Attention entropy against the learning rate", entropies, "6 minutes", needs="wikitext-2"),
        _figure("11", "Recall of distinct tokens, 2 and 6 classes", partial(recall, lasts=(1, 3))),
        _figure("12", "Recall of distinct tokens, 10 and 20 classes", partial(recall, lasts=(5, 10))),
    )
)
TEXT_FIGURES = {name: FIGURES[name] for name in ("7", "10")}
