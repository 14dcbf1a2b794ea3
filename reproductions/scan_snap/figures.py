"""Numbers of the scan-and-snap figures (arXiv 2305.16380); each function makes all runs that its figure needs."""

import math
from collections.abc import Callable
from functools import cache, partial
from typing import Any

import numpy as np

from stagescope.core.progress import Progress
from stagescope.papers.scan_snap import forms
from stagescope.papers.scan_snap.loss import PairwiseSampled
from stagescope.papers.scan_snap.model import PairwiseAttention
from stagescope.papers.scan_snap.observables import ClassAttention, Supports, class_attention
from stagescope.papers.scan_snap.process import SequenceClasses
from stagescope.papers.scan_snap.study import MEDIUM_CELLS, MEDIUM_LAST, MEDIUM_RATIO, MEDIUM_Z, SEEDS
from stagescope.readings.published import published
from stagescope.readings.reading import stages
from stagescope.readings.registry import run_study
from stagescope.views.figure import Figure, Numbers, rounded

from .text_figures import TEXT_FIGURES

PUBLISHED = published("stagescope.papers.scan_snap")
RUN = partial(run_study, "scan-snap", progress=False)
SHOWN = (0, 2, 4, 6, 8, 10, 100)
"""Iterations of figures 4 and 5; the last is "Final": the end of a run."""
QUICK_SEEDS = 2
DISCRETE = ((50, 80, (0.1, 0.2, 0.5, 1.0, 2.0)), (1000, 70, (0.2, 0.5, 1.0, 2.0, 4.0)))
"""Figure 8: M, end of the axis and eta_Y."""


def printed_drive(t: Any, outputs: int, classes: int, rate_y: float, rate_z: float) -> Any:
    """Gamma as printed in theorem 4, with (M-1)^2 h^2; the exact flow decides for M (M-1) h^2."""
    return forms.driving(t, outputs, classes, rate_y, rate_z) * (outputs - 1) / outputs


def overview(progress: Progress) -> Numbers:
    """Figure 2, from data: attention of both classes at the start, once common tokens are behind, once slow, and at the snap.

    The last frame of the run shows how far attention still goes after that.
    """
    run = RUN("syn-small-flow")
    curves, events = class_attention(run), stages(run).events
    moments = {"start": 0.0, **{name: events[name] for name in ("winner", "slow", "snap")}, "end": float(run.t[-1])}
    times = {name: when for name, when in moments.items() if when is not None}
    classes = [item.T for item in np.moveaxis(np.asarray(curves.attention), 1, 0)]
    attention = {
        name: rounded([[np.interp(when, run.t, token) for token in item] for item in classes]) for name, when in times.items()
    }
    common = curves.common.all(axis=0).tolist()
    return {
        "times": times,
        "attention": attention,
        "common": common,
        "t0'": forms.t0_prime(34, 2, 1.0),
        "t0": forms.t0(34, 2, 1.0),
    }


def growth_factors(progress: Progress) -> Numbers:
    """Figure 3: chi(t) of the winning token, K = 10, M = 1000, eta_Z = .5, modified decoder; what reproduces the printed axis.

    `printed` is e^{2B} = (1 + 4 Gamma/C0)^(1/2) with C0 = rho0^4/K as printed, where rho0^2 is the one for which the curve of
    the slowest decoder ends near the end of the axis. `upper` is e^{2B} with the corrected C0 of the run's own classes.
    """
    curves, squares = [], PUBLISHED["figure_3_norm"].value
    for rate_y in progress.each((0.5, 1.0, 2.0, 5.0), "figure 3", "flows"):
        run = RUN("published-growth", rate_y=rate_y, record="uniform", frames=351)
        flow = class_attention(run)
        chi = np.exp(2 * flow.z[:, flow.winners]).mean(axis=1)
        row = flow.table[0]
        start = forms.start_constant(float(row[flow.common[0]][0]), float(np.sum(row**2)), 10)
        drive = forms.driving(run.t, 1000, 10, rate_y, 0.5)
        upper, printed = (np.sqrt(1 + 4 * drive / constant) for constant in (10 * start, squares**2 / 10))
        lines = {"chi": chi, "upper": upper, "printed": printed}
        times = {"t0'": forms.t0_prime(1000, 10, rate_y), "t0": forms.t0(1000, 10, rate_y)}
        numbers = {"rate_y": rate_y, **times, "t": rounded(run.t)}
        curves.append(numbers | {name: rounded(line) for name, line in lines.items()})
    facts = {"largest_chi": max(max(curve["chi"]) for curve in curves), "axis": axis_of_figure_three(), "squares": squares}
    return {"curves": curves, **facts}


def axis_of_figure_three() -> dict[str, float]:
    """The end of the paper's axis of figure 3, and the eta_Z at which the bound of theorem 3 allows it at eta_Y = .5, t = 700.

    chi <= e^{2B} = (1 + 4 Gamma/C0)^(1/2), and C0 >= K/(K-1) because p_c <= rho0; Gamma is proportional to eta_Z.
    """
    reached, classes, outputs = PUBLISHED["figure_3_axis"].value, 10, 1000
    unit = float(forms.driving(700.0, outputs, classes, 0.5, 1.0)) / classes
    needed = (reached**2 - 1) * forms.start_constant(1.0, 1.0, classes) / 4 / unit
    return {"reaches": reached, "rate_z_needed": needed, "ratio_needed": needed / 0.5}


def _maps(first: ClassAttention) -> dict[str, Any]:
    """Attention of a run at the iterations SHOWN (iterations, classes, tokens)."""
    return {"iterations": SHOWN, "attention": rounded(first.attention[list(SHOWN)]), "common": first.common.all(axis=0).tolist()}


def syn_small(progress: Progress, seeds: int = SEEDS) -> Numbers:
    """Figure 4: SGD on Syn-Small at two rates of the decoder: attention of seed 0, and numbers of all seeds."""
    panels = []
    for rate_y, runs in _seeds(progress, "published-small", "rate_y", (1.0, 10.0), seeds).items():
        entropies = [curves.mean(curves.entropy) for curves in runs]
        ends = [values[99] for values in entropies]
        tops = [np.argmax(curves.attention[-1, n]) - 10 * (n + 1) for curves in runs for n in range(2)]
        panel = {"rate_y": rate_y, **_maps(runs[0]), "start_entropy": entropies[0][0]}
        panel |= {"entropy_at_99": [float(np.mean(ends)), float(np.std(ends))]}
        panel |= {"top_is_frequent": float(np.mean(np.array(tops) == 9))}
        lost = [curves.mean(curves.common_mass) < 0.98 * curves.mean(curves.common_mass)[0] for curves in runs]
        panel |= {"onset": float(np.mean([np.argmax(values) for values in lost]))}
        panel |= {"moved_at_10": float(np.mean([curves.moved[10] for curves in runs]))}
        panels.append(panel)
    return {"panels": panels, "seeds": seeds, **_few(seeds)}


def _few(seeds: int) -> dict[str, str]:
    return {"quick": f"quick version: {seeds} seeds in place of {SEEDS}"} if seeds < SEEDS else {}


def _seeds(progress: Progress, preset: str, name: str, values: tuple[Any, ...], seeds: int) -> dict[Any, list[ClassAttention]]:
    """Class attention of the runs of a preset for each value of an option, one for each seed."""
    curves_by_value: dict[Any, list[ClassAttention]] = {value: [] for value in values}
    for value, seed in progress.each(
        [(value, seed) for value in values for seed in range(seeds)], preset.replace("-", " "), "runs"
    ):
        options: dict[str, Any] = {name: value}
        curves_by_value[value].append(class_attention(RUN(preset, seed=seed, **options)))
    return curves_by_value


def adam(progress: Progress, seeds: int = SEEDS) -> Numbers:
    """Figure 5: Adam at three rates: attention of class 1 of seed 0; which distinct token leads at the end, mean over seeds."""
    panels = []
    for lr, runs in _seeds(progress, "published-adam-half", "lr", (0.1, 0.5, 1.0), seeds).items():
        shares = []
        for curves in runs:
            own = curves.c[-1, ~curves.supports.common].reshape(2, -1)
            shares.append((own / own.sum(axis=1, keepdims=True)).mean(axis=0))
        mean = np.mean(shares, axis=0)
        panels.append({"lr": lr, **_maps(runs[0]), "share": rounded(mean), "top": int(np.argmax(mean))})
    return {"panels": panels, "seeds": seeds, **_few(seeds)}


def syn_medium(progress: Progress, seeds: int = SEEDS) -> dict[int, dict[str, Any]]:
    """The 640 runs of figure 6, by number of queries: final attention (160 runs, entries)."""
    return {last: medium_runs(last, seeds) for last in progress.each(MEDIUM_LAST, f"{64 * seeds} runs of 100 steps", "sizes")}


@cache
def medium_runs(last: int, seeds: int = SEEDS) -> dict[str, Any]:
    """160 runs of Syn-Medium with `last` queries, ordered (eta_Z, ratio, seed), for figures 6, 11 and 12.

    Every run has its own seed, so that the errors of different cells are independent. Steps are made in float32: entropies are
    those of float64 to 1e-4 nats, a hundredth of the spread over seeds. `scores` is the softmax of row z_m of a query over all
    M tokens, at the tokens of its classes. Tokens that are in no context keep the scores of the start, uniform in
    +-a = +-M^-1/2, and count with their mean weight sinh(a)/a.
    """
    grid = np.array([(z, z * ratio) for z, ratio in MEDIUM_CELLS for _ in range(seeds)], dtype=float)
    process = SequenceClasses.synthetic(last, 2, 10, 10)
    model = PairwiseAttention.every_output(process)
    problem = PairwiseSampled(model=model, process=process, length=128, batch=128, precision="float32")
    width = process.vocab**-0.5
    _, z, _ = problem.train_many(np.arange(len(grid)), width, grid[:, 1], grid[:, 0], steps=100)
    on = Supports.of_law(problem)
    unused = (process.vocab - len(model.keys)) * math.sinh(width) / width
    total = np.exp(z).sum(axis=2) + unused
    own = z[:, on.row, on.key]
    scores = np.exp(own) / total[:, on.row]
    return {"attention": on.attention(own), "scores": scores, "supports": on, "vocab": process.vocab}


def entropy_grid(progress: Progress, seeds: int = SEEDS) -> Numbers:
    """Figure 6: entropy on distinct tokens over eta_Z and eta_Y/eta_Z, against the 64 published means."""
    cells = {}
    for last, runs in syn_medium(progress, seeds).items():
        entropy = runs["supports"].entropy(runs["attention"]).mean(axis=1)
        for (z, ratio), block in zip(MEDIUM_CELLS, entropy.reshape(-1, seeds), strict=True):
            cells[f"{last}|{z}|{ratio}"] = rounded([block.mean(), block.std()])
    theirs = PUBLISHED["figure_6_entropy"].value
    gaps = [abs(cells[name][0] - mean) for name, (mean, _) in theirs.items()]
    facts = {"mean_abs_difference": float(np.mean(gaps)), "largest_difference": float(np.max(gaps))}
    return {**facts, "cells": cells, "published": theirs, **_few(seeds)}


def discrete(progress: Progress) -> Numbers:
    """Figure 8: h after steps against h of the flow; the gap stays below 2 eta_Y / M."""
    panels = []
    for outputs, until, rates in DISCRETE:
        curves = []
        for rate in rates:
            long = max(until, math.ceil(2 * forms.t0(outputs, 1, rate)))
            steps = forms.discrete_gap(long, outputs, rate)
            gap = (steps - forms.logit_gap(np.arange(long + 1.0), outputs, 1, rate) / outputs) / (2 * rate / outputs)
            flow = forms.logit_gap(np.linspace(0, until, 281), outputs, 1, rate) / outputs
            curve = {"rate_y": rate, "flow": rounded(flow, 12), "steps": rounded(steps[: until + 1], 12)}
            curves.append({**curve, "gap_over_bound": [float(gap.min()), float(gap.max())], "last_gap": float(gap[-1])})
        panels.append({"M": outputs, "until": until, "curves": curves})
    return {"panels": panels}


def common_growth(progress: Progress) -> Numbers:
    """Figure 9: B(t) for nu = eta_Y/eta_Z = 10, M = 100 and nu = 1, M = 10^4, over eta_Z (K = 1, C0 = 1); t0 and B(t0)."""
    panels = []
    for nu, outputs, until in ((10.0, 100, 5.0), (1.0, 10_000, 50.0)):
        t, curves = np.linspace(0, until, 201), []
        for rate_z in (0.5, 1.0, 2.0, 4.0, 8.0):
            second = forms.t0(outputs, 1, nu * rate_z)
            lines = (forms.growth(printed_drive(at, outputs, 1, nu * rate_z, rate_z), 1.0) for at in (t, second))
            line, height = map(rounded, lines)
            exact = float(forms.growth(forms.driving(second, outputs, 1, nu * rate_z, rate_z), 1.0))
            curves.append({"rate_z": rate_z, "B": line, "t0": second, "B(t0)": height, "exact numerator": exact})
        panels.append({"nu": nu, "M": outputs, "t": rounded(t), "curves": curves})
    return {"panels": panels}


def recall(progress: Progress, panels_by: str = "rate_z", seeds: int = SEEDS) -> Numbers:
    """Figures 11 and 12: share of distinct tokens whose score, the softmax of row z_m over all M tokens, is above a threshold.

    A row of panels is a number of classes, a column a value of eta_Z (figure 11) or of eta_Y/eta_Z (figure 12); the other is
    that of the curves. `drops` is the fall of a curve over the printed thresholds; of two neighbouring curves of a panel, that
    with the larger ratio, or with the smaller eta_Z, should fall more. `errors` are standard errors over seeds at both ends.
    """
    first, rows, ordered = panels_by == "rate_z", [], 0
    for last, runs in syn_medium(progress, seeds).items():
        low, high = PUBLISHED["figure_11_thresholds"].value[str(last)]
        thresholds = np.linspace(low, high, 41)
        blocks = runs["scores"][:, ~runs["supports"].common].reshape(len(MEDIUM_Z), len(MEDIUM_RATIO), seeds, -1)
        by_seed = np.stack([(blocks > level).mean(axis=3) for level in thresholds], axis=2)  # (eta_Z, ratio, threshold, seed)
        table, spread = by_seed.mean(axis=3), by_seed.std(axis=3, ddof=1) / math.sqrt(seeds)
        drops = table[..., 0] - table[..., -1]
        ordered += int(np.sum(np.diff(drops, axis=1) > 0) if first else np.sum(np.diff(drops, axis=0) < 0))
        curves, spread = (part if first else np.swapaxes(part, 0, 1) for part in (table, spread))
        ends = spread[:, :, [-1, 0]].max(axis=1)  # of the lowest and the highest recall of a panel
        row = {"num_last": last, "M": runs["vocab"], "thresholds": rounded(thresholds), "curves": rounded(curves, 4)}
        rows.append({**row, "errors": rounded(ends, 4)})
    named = {"panels_by": panels_by, "columns": MEDIUM_Z if first else MEDIUM_RATIO, "lines": MEDIUM_RATIO if first else MEDIUM_Z}
    return {"rows": rows, **named, "ordered": ordered, "pairs": 48, **_few(seeds)}


def _figure(name: str, title: str, compute: Callable[..., Numbers], cost: str = "", **more: Any) -> tuple[str, Figure]:
    """Drawn by the namesake of what computes its numbers; matplotlib is imported when something is drawn."""
    namesake = compute.func if isinstance(compute, partial) else compute

    def draw(numbers: Numbers) -> Any:
        from . import drawings

        return getattr(drawings, namesake.__name__)(numbers)

    return name, Figure(name, title, compute, draw, cost, **more)


FIGURES = dict(
    (
        _figure("2", "Attention of two classes: uniform, common suppressed, winners, frozen", overview, quick=overview),
        _figure("3", "Growth factor of the winning token", growth_factors, quick=growth_factors),
        _figure("4", "SGD on Syn-Small at two decoder rates", syn_small, quick=partial(syn_small, seeds=QUICK_SEEDS)),
        _figure("5", "Adam selects different distinct tokens at different rates", adam, quick=partial(adam, seeds=QUICK_SEEDS)),
        _figure(
            "6",
            "Entropy over rates and number of classes, against the published means",
            entropy_grid,
            quick=partial(entropy_grid, seeds=QUICK_SEEDS),
        ),
        ("7", TEXT_FIGURES["7"]),
        _figure("8", "Discrete against continuous h", discrete, quick=discrete),
        _figure("9", "B(t), the fall of the common token, and B(t0)", common_growth, quick=common_growth),
        ("10", TEXT_FIGURES["10"]),
        *(
            _figure(
                name, f"Recall of distinct tokens, a column for each {axis}", by_axis, quick=partial(by_axis, seeds=QUICK_SEEDS)
            )
            for name, axis, by_axis in (
                ("11", "eta_Z", recall),
                ("12", "eta_Y/eta_Z", partial(recall, panels_by="ratio")),
            )
        ),
    )
)
