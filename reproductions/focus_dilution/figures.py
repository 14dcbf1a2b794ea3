"""The numbers of every panel; `drawings.py` draws them. Figures 1 to 3 are the paper's, the others join theory and experiment."""

from collections.abc import Callable
from functools import cache, partial
from typing import Any

import numpy as np

import stagescope as ss
from stagescope.core.progress import Progress
from stagescope.papers.focus_dilution import (
    TokenCurves,
    last_token_losses,
    mean_cosine,
    neuron_cosines,
    neuron_order,
    perpendicular_norms,
    position_entropies,
    principal_paths,
    probe_attention,
)
from stagescope.views.figure import Figure, Numbers, rounded

from . import runs
from .quantities import BLOCKS, first

HEAT_STEPS = (0, 60, 120, 198, 300, 450, 1000)
MAP_STEPS = (60, 120, 198, 300, 351, 498, 799, 1498)
PCA_UNTIL = 550
SHOWN_NEURONS = 64
HALF_WAY = runs.PI[0] + (1 - runs.PI[0]) / 2
"""Attention on token 0 above which a row has focused totally: half of what there is to gain."""


def at(curves: TokenCurves, step: float) -> int:
    """The frame nearest to a step."""
    return int(np.argmin(np.abs(curves.time - step)))


def thinned(curves: TokenCurves, frames: int = 420) -> TokenCurves:
    """Some of the frames, equally spaced in the logarithm of time."""
    last = len(curves.time) - 1
    chosen = np.unique(np.rint(np.concatenate([[0], np.geomspace(1, last, frames)])).astype(int))
    return TokenCurves(curves.time[chosen], {name: block[chosen] for name, block in curves.params.items()}, curves.law)


def stages_of(curves: TokenCurves) -> dict[str, float]:
    """Where the paper's four stages begin: attention opens (sv_1(Phi) > 1), row 1 is at its peak, all rows are back at pi_0."""
    row = curves.on_frequent[:, 1]
    peak = int(np.argmax(row))
    back = [first(curves.time, curves.on_frequent[:, i] < curves.pi[0], peak) for i in range(1, len(curves.pi))]
    ends = {"II": first(curves.time, curves.score_values[:, 0] > 1), "III": float(curves.time[peak]), "IV": float(np.max(back))}
    return {"I": 0.0, **{name: when for name, when in ends.items() if np.isfinite(when)}}


def note(quick: bool, text: str = runs.QUICK_NOTE) -> Numbers:
    return {"quick": text} if quick else {}


def losses(curves: TokenCurves) -> Numbers:
    some = thinned(curves)
    found = last_token_losses(some)
    return {
        "step": some.time.tolist(),
        "losses": rounded(found.by_token.T, 5),
        "shares": rounded(found.shares, 4),
        "floor": rounded(found.floor, 4),
        "stages": stages_of(curves),
    }


def figure_1(progress: Progress, quick: bool = False) -> Numbers:
    progress.begin("published run", 1, "run")
    return {**note(quick), **losses(runs.published(quick))}


def heat(curves: TokenCurves, name: str, step: int) -> Numbers:
    """Cosines of neurons in the order of a tree, of every fourth of 256 neurons; a byte is 127.5 (1 + C), in hexadecimal."""
    weights = curves.params[name][at(curves, step)]
    cosines = neuron_cosines(weights)
    order = neuron_order(cosines)
    order = order[:: max(1, len(order) // SHOWN_NEURONS)]
    bytes_of = np.rint(127.5 * (1 + np.clip(cosines[np.ix_(order, order)], -1, 1))).astype(np.uint8)
    return {"mean_cosine": round(mean_cosine(weights), 4), "cosines": [row.tobytes().hex() for row in bytes_of]}


def figure_2(progress: Progress, quick: bool = False) -> Numbers:
    progress.begin("published run", 1, "run")
    curves = runs.published(quick)
    last = curves.time[-1]
    early = TokenCurves(*_until(curves, PCA_UNTIL), curves.law)
    paths, shares, origin = principal_paths(early.params["W0"])
    some = thinned(curves)
    return {
        **note(quick),
        **losses(curves),
        "heat": {name: {str(step): heat(curves, name, step) for step in HEAT_STEPS if step <= last} for name in BLOCKS},
        "paths": {
            "step": early.time.tolist(),
            "rows": rounded(paths, 4),
            "shares": rounded(shares, 4),
            "origin": rounded(origin, 4),
        },
        "maps": {str(step): rounded(curves.attention[at(curves, step)], 4) for step in MAP_STEPS if step <= last},
        "entropy": rounded(position_entropies(some).T, 5),
        "flat": float(np.log(runs.PRESET["length"])),
        "norms": rounded(some.norms.T, 5),
        "perpendicular": rounded(perpendicular_norms(some.params["W0"])[:, 1:].T, 5),
    }


def _until(curves: TokenCurves, last: float) -> tuple[np.ndarray, dict[str, np.ndarray]]:
    inside = curves.time <= last
    return curves.time[inside], {name: block[inside] for name, block in curves.params.items()}


HIGHLIGHT = 0.75
"""Self-attention from which figure 3 C highlights a token."""


def text_panel(run: runs.TextRun) -> Numbers:
    """Attention of the last word of the probe sequence over the sequence, and the norms of its words."""
    attention = probe_attention(run.scores, tuple(range(len(run.words))))
    return {
        "words": list(run.words),
        "step": run.step.tolist(),
        "attention": rounded(attention[:, -1].T, 4),
        "norms": rounded(run.norms.T, 4),
        "loss": rounded(run.loss, 4),
    }


SAMPLE_STEPS = (0, 100, 150, 200, 300, 500, 1500)


def sample_panel(run: runs.TextRun) -> Numbers:
    """Self-attention of every word of the test sample, that on its own type, at some steps."""
    attention = probe_attention(run.sample_scores, tuple(range(len(run.sample))))
    same = np.array([[a == b for a in run.sample] for b in run.sample])
    itself = (attention * same).sum(axis=2)
    chosen = sorted({int(np.argmin(np.abs(run.step - step))) for step in SAMPLE_STEPS})
    flat = same.sum(axis=1) / len(run.sample)
    shown = {str(int(run.step[frame])): rounded(itself[frame], 4) for frame in chosen}
    return {"words": list(run.sample), "flat": rounded(flat, 4), "itself": shown, "level": HIGHLIGHT}


def finds_itself(run: runs.TextRun) -> bool:
    """Whether the last word of the probe sequence looks mostly at itself in the end, as the paper's figure shows it."""
    return bool(probe_attention(run.scores, tuple(range(len(run.words))))[-1, -1, -1] > 0.5)


def figure_3(progress: Progress, quick: bool = False) -> Numbers:
    corpora = progress.each(tuple(runs.TEXTS), "texts", "runs")
    found = {corpus: runs.text_run(corpus, quick) for corpus in corpora}
    return {
        **note(quick, f"quick version: {runs.QUICK_TEXT['steps']} steps on batches of {runs.QUICK_TEXT['batch']}"),
        "panels": {corpus: text_panel(run) for corpus, run in found.items()},
        "finds_itself": {corpus: finds_itself(run) for corpus, run in found.items()},
        "sample": {"corpus": "tinystories", **sample_panel(found["tinystories"])},
        "steps": found["tinystories"].options["steps"],
        "batch": found["tinystories"].options["batch"],
    }


STEPS_BY_EPS = {1e-8: 1000, 1e-7: 1000, 1e-6: 1500, 1e-5: 9000, 1e-4: 5000, 1e-3: 2500, 1e-2: 1500, 1e-1: 1200, 1.0: 1200}
"""Steps until each of the rare rows has had its peak on token 0."""
QUICK_EPS = (1e-8, 1e-6, 1e-2, 1.0)
SAME_SIZE = 0.3
"""Row norms are compared when that of token 0 is this large."""


@cache
def by_eps(eps: float) -> Numbers:
    """Adam with lr = 1.5e-4 + .05 eps on infinitely long contexts: from the default to plain gradient descent at rate .05."""
    steps = STEPS_BY_EPS[eps]
    curves = runs.descended(steps, eps=eps, lr=runs.RATE + 0.05 * eps, every=max(5, steps // 400))
    frame = int(np.argmax(curves.norms[:, 0] > SAME_SIZE))
    return {
        "eps": eps,
        "peaks": rounded(curves.on_frequent.max(axis=0)[1:], 5),
        "at": curves.time[curves.on_frequent.argmax(axis=0)][1:].tolist(),
        "norms": rounded(curves.norms[frame] * SAME_SIZE / curves.norms[frame, 0], 4),
    }


def rows_panel(curves: TokenCurves) -> Numbers:
    some = thinned(curves)
    return {
        "time": rounded(some.time, 3),
        "attention": rounded(some.on_frequent.T, 5),
        "norms": rounded(some.norms.T, 5),
        "peaks": rounded(curves.on_frequent.max(axis=0)[1:], 5),
    }


def theorem_and_experiment(progress: Progress, quick: bool = False) -> Numbers:
    """The published run, gradient flow of the same chain from the same start, and Adam's eps between the two."""
    values = progress.each(QUICK_EPS if quick else tuple(STEPS_BY_EPS), "eps", "runs")
    path = [by_eps(eps) for eps in values]
    experiment, theorem = runs.published(quick), runs.flow(quick)
    frame = int(np.argmax(theorem.norms[:, 0] > SAME_SIZE))
    return {
        **note(quick),
        "pi": list(runs.PI),
        "persistence": runs.PRESET["persistence"],
        "experiment": rows_panel(experiment),
        "theorem": rows_panel(theorem),
        "flow_norms": rounded(theorem.norms[frame] * SAME_SIZE / theorem.norms[frame, 0], 4),
        "path": path,
    }


def focus_times(curves: TokenCurves) -> list[float | None]:
    """The step at which each rare row has focused totally, None where it never does."""
    when = [first(curves.time, curves.on_frequent[:, row] > HALF_WAY) for row in range(1, len(curves.pi))]
    return [float(value) if np.isfinite(value) else None for value in when]


def chains() -> dict[str, Any]:
    """Chains with one stationary law: lazy, independent tokens, and two random ones that are not lazy."""
    lazy = {f"persistence {p:g}": ss.LazyChain(pi=runs.PI, persistence=p) for p in (0.8, 0.5, 0.0)}
    return {**lazy, "random A": runs.chain_with_law(1), "random B": runs.chain_with_law(2)}


QUICK_CHAINS = ("persistence 0.8", "persistence 0", "random A")


def blind(progress: Progress, quick: bool = False) -> Numbers:
    """Chains with the same stationary law and other transition matrices, by Adam and by gradient flow."""
    panels = {}
    until = runs.FLOW_UNTIL / (4 if quick else 1)
    some = [(name, chain) for name, chain in chains().items() if not quick or name in QUICK_CHAINS]
    for name, chain in progress.each(some, "chains", "runs"):
        adam = runs.descended(300, chain, every=1)
        model = adam.law.model
        loss = ss.population_loss(model, chain)
        start = model.init(0, runs.START)
        record = ss.Uniform(frames=201)
        flow = runs.token_curves(ss.evolve(loss, start, ss.GradientFlow(), until=until, record=record, progress=False))
        panels[name] = {
            "transition": rounded(chain.transition, 5),
            "step": adam.time.tolist(),
            "adam": rounded(adam.on_frequent[:, 1], 5),
            "focused": focus_times(adam),
            "t": rounded(flow.time, 4),
            "flow": rounded(flow.on_frequent[:, 1], 5),
            "flow_moves": rounded(np.ptp(flow.on_frequent[:, 1]), 5),
        }
    return {**note(quick, "quick version: flows end at t = 50"), "pi": list(runs.PI), "level": HALF_WAY, "panels": panels}


FROZEN_EPS = (1e-12, 1e-8, 1e-7, 1e-6)
GRID = {1e-9: (0.0156, 0.0312, 0.0625, 0.125), 1e-8: (0.0625, 0.125, 0.25), 1e-7: (0.125, 0.25, 0.5)}
"""Start scales times the width, by eps: where focus is lost."""


def frozen(progress: Progress, quick: bool = False) -> Numbers:
    """Attention by Adam's eps beside the size of its gradients, and which starts never focus."""
    panels = []
    for eps in progress.each(FROZEN_EPS, "eps", "runs"):
        curves = runs.descended(500 if quick else 700, eps=eps)
        sizes = [gradient_sizes({n: b[frame] for n, b in curves.params.items()}, curves.law) for frame in range(len(curves.time))]
        inside = {"step": curves.time.tolist(), "row": rounded(curves.on_frequent[:, 1], 5), "focused": focus_times(curves)}
        panels.append(
            {"eps": eps, **inside, **{name: [float(f"{s[name]:.4g}") for s in sizes] for name in ("attention", "rest")}}
        )
    grid = []
    starts = [(eps, start) for eps, values in GRID.items() for start in values]
    for eps, start in progress.each(() if quick else starts, "starts", "runs"):
        curves = runs.descended(1500, eps=eps, start=start / runs.WIDTH, every=10)
        gained = float(curves.on_frequent[:, 1:].max())
        loss = float(curves.law.value({name: block[-1] for name, block in curves.params.items()}))
        grid.append({"eps": eps, "start": start, "largest": round(gained, 5), "loss": round(loss, 5)})
    return {
        **note(quick, "quick version: without the starts that never focus"),
        "level": HALF_WAY,
        "panels": panels,
        "grid": grid,
        "unigram": float(-np.dot(runs.PI, np.log(runs.PI))),
    }


def gradient_sizes(params: Any, law: Any) -> dict[str, float]:
    """Root mean square of the entries of the gradient: of WQ and WK together, and of W0 and W1."""
    gradient = law.grad(params)
    return {
        name: float(np.sqrt(np.mean(np.concatenate([gradient[block].ravel() ** 2 for block in blocks]))))
        for name, blocks in (("attention", ("WQ", "WK")), ("rest", ("W0", "W1")))
    }


def _figure(name: str, title: str, compute: Callable[..., Numbers], cost: str, needs: str | None = None) -> Figure:
    def draw(numbers: Numbers) -> Any:
        from . import drawings

        return getattr(drawings, compute.__name__)(numbers)

    stem = name if name.isdigit() else f"-{name}"
    return Figure(stem, title, compute, draw, cost, needs=needs, quick=partial(compute, quick=True))


FIGURES = {
    name: _figure(name, title, compute, cost, needs)
    for name, title, compute, cost, needs in (
        ("1", "Losses by last token (right half of the paper's figure 1)", figure_1, "20 s", None),
        ("2", "Condensation, focus and dilution: the paper's figure 2", figure_2, "20 s", None),
        ("3", "Probe sequences on text: the paper's figure 3", figure_3, "about 4 minutes", "tinystories"),
        ("theorem-and-experiment", "Same chain, theorem and experiment", theorem_and_experiment, "about 2 minutes", None),
        ("blind", "Focus under Adam is blind to the transition matrix", blind, "20 s", None),
        ("frozen", "Frozen attention is an effect of Adam's epsilon", frozen, "about 1 minute", None),
    )
}
