"""The figures of focus and dilution (arXiv 2605.01199). They are ours: the images of the paper were not available.

Each function computes the numbers of one figure and makes the runs it needs; its twin in figures_draw.py draws them.
"""

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

from stagescope.detect.stage import Stages
from stagescope.dynamics.record import AtTimes
from stagescope.landscape.ladder import Ladder
from stagescope.papers.focus_dilution.family import plateau_amplitude
from stagescope.papers.focus_dilution.limits import LIMITS
from stagescope.papers.focus_dilution.observables import TokenCurves, spectra, token_curves
from stagescope.papers.focus_dilution.stages import stays
from stagescope.papers.focus_dilution.text import figures as text_figures
from stagescope.papers.published import published
from stagescope.papers.reading import reading, saddle_ladder, stages
from stagescope.papers.rebuild import replay
from stagescope.papers.registry import run_study
from stagescope.progress import Progress
from stagescope.runs.run import Run
from stagescope.views.figure import Figure, Numbers, rounded

# `measured` values are those of an independent implementation, from reference.json. Its random generator is another one, so
# they agree up to the spread over seeds. The differences stand beside them.

REFERENCE = published("stagescope.papers.focus_dilution")
PRESETS = ("ref", "flow-skewed")
Panel = Callable[[str, TokenCurves, Stages], Numbers]


@cache
def seen(preset: str) -> tuple[Run, TokenCurves, Stages]:
    """A preset's run with its curves and stages, at a resolution that shows everything; the figures share them."""
    run = run_study("focus-dilution", preset, progress=False)
    fine = replay(run, AtTimes(at=tuple(reading(run).curves.time.tolist())))
    return fine, token_curves(fine), stages(fine)


def reached(found: Stages) -> dict[str, float]:
    """The events that have come."""
    return {name: when for name, when in found.events.items() if when is not None}


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
                shared = {"preset": preset, "pi": rounded(curves.pi), "until": float(run.t[-1]), "events": reached(found)}
                panels.append({**shared, **panel(preset, curves, found)})
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
    held = reached(found)
    diluted = max(when for name, when in held.items() if name.startswith("dilution"))
    moments = {"(1,0)": (held["E1"] + held["Q1"]) / 2, "diluted": diluted + 0.15 * (held["E2"] - diluted)}
    moments |= {"E2": held["E2"], "Q2": held["Q2"], "end": float(curves.time[-1])}
    frames = {name: int(np.argmin(np.abs(curves.time - when))) for name, when in {"E1": held["E1"], **moments}.items()}
    # Two orthonormal directions (2, width); the frequent token is on the positive side of both.
    condensed, last = rows[frames["(1,0)"]], rows[-1]
    first = np.linalg.svd(condensed)[2][0]
    axes = np.stack([first, np.linalg.svd(last - np.outer(last @ first, first))[2][0]])
    axes *= np.sign([condensed[0] @ axes[0], last[0] @ axes[1]])[:, None]
    # Shares of the variance of rows in their principal directions (centred).
    squares = {name: np.linalg.svd(rows[at] - rows[at].mean(axis=0), compute_uv=False) ** 2 for name, at in frames.items()}
    progress.update(1)
    return {
        "preset": "ref",
        "pi": rounded(curves.pi),
        "events": held,
        "moments": {name: float(curves.time[frames[name]]) for name in moments},
        "points": {name: rounded(rows[frames[name]] @ axes.T) for name in moments},
        "explained": {name: rounded(square / square.sum()) for name, square in squares.items()},
        "t": rounded(curves.time[kept]),
        "path": rounded(rows[kept] @ axes.T),
    }


@side_by_side("singular values", level=LIMITS.level)
def singular_values(preset: str, curves: TokenCurves, found: Stages) -> Numbers:
    """Singular values of W0, W1 and Phi with the events E_k and Q_k [FD:stages]."""
    kept = shown(curves)
    named = {"W0": curves.embedding_values, "W1": spectra(curves.params["W1"]), "Phi": curves.score_values}
    measured = REFERENCE["events"].value[preset]
    # How far a time lies outside its range, relative to the nearer end; 0 inside.
    outside = dict.fromkeys(measured) | {
        name: max(measured[name][0] / when - 1, when / measured[name][1] - 1, 0.0)
        for name, when in reached(found).items()
        if name in measured
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
    first_cycle_end = int(np.searchsorted(curves.time, until or curves.time[-1])) + 1
    turning = {}
    for row, curve in enumerate(curves.entropy.T):
        if row != curves.frequent:
            # Lowest before the largest of the first cycle, that largest value, and the end.
            inside = curve[:first_cycle_end]
            top = int(np.argmax(inside))
            values = {"start": curve[0], "focused": inside[: top + 1].min(), "diluted": inside[top], "end": curve[-1]}
            turning[str(row)] = {name: rounded(value) for name, value in values.items()}
    unigram = float(-np.sum(curves.pi * np.log(curves.pi)))
    rows, largest = rounded(curves.entropy[kept].T), float(np.log(len(curves.pi)))
    return {"base": unigram, "largest": largest, "t": rounded(curves.time[kept]), "rows": rows, "turning": turning}


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


def _figure(name: str, title: str) -> Figure:
    """Numbers and drawing are by functions of its name; matplotlib is imported when something is drawn, not when it is listed."""
    twin = name.replace("-", "_")

    def draw(numbers: Numbers) -> Any:
        from stagescope.papers.focus_dilution import figures_draw

        return getattr(figures_draw, twin)(numbers)

    return Figure(f"-{name}", title, globals()[twin], draw)


TITLES = {
    "embedding": "Rows of the embedding over time, in principal directions",
    "singular-values": "Singular values of W0, W1 and Phi",
    "attention": "Attention on the frequent token: focus and dilution",
    "entropy": "Entropy of attention rows",
    "norms": "Row norms of the embedding against the condensed plateau",
    "loss": "Loss with the levels of the critical points, and its gradient",
}
FIGURES = {name: _figure(name, title) for name, title in TITLES.items()} | text_figures.FIGURES
