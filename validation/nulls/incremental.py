"""Inputs of incremental learning, drawn by seed, and nulls: runs on which claims are false by construction.

Nulls reach the comparison. Most are near misses: a true run of which one thing is shown otherwise, its clock, its values or its
heads. They have the frames of a replay, so that they are read as they are.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from stagescope.claims.inputs import Inputs
from stagescope.core.params import key
from stagescope.detect.levels import transitions
from stagescope.flow.evolve import evolve
from stagescope.flow.gradient_flow import GradientFlow
from stagescope.flow.record import LogSpaced
from stagescope.papers.incremental.limits import LIMITS
from stagescope.papers.incremental.observables import dense, head_curves, lag_curves
from stagescope.papers.incremental.regression import RegressionForms, RegressionHeads, RegressionLoss
from stagescope.papers.incremental.study import STUDY
from stagescope.runs.run import Arrays, Run

FIXED = 40.0
"""A logit this far above the others keeps the attention where it is: its gradient is e^-40."""
SLOWER = 3.0
"""How much slower a stretched clock runs: far beyond every tolerance of a time."""


def draws(seed: int, *names: str) -> np.random.Generator:
    return key(seed, "incremental inputs", *names)


def log_uniform(rng: np.random.Generator, low: float, high: float) -> float:
    return float(np.exp(rng.uniform(np.log(low), np.log(high))))


def study(seed: int, **options: Any) -> Run:
    return STUDY.run(STUDY.configured(None, **options), seed=seed, progress=False)


def draw_gains(rng: np.random.Generator, groups: int) -> tuple[float, ...]:
    """Importances, each 1.35 to 2.5 times the next."""
    ratios = rng.uniform(1.35, 2.5, groups - 1)
    largest = log_uniform(rng, 1.5, 5.0)
    return tuple(float(f"{largest / np.prod(ratios[:i]):.4g}") for i in range(groups))


def _sizes(rng: np.random.Generator) -> tuple[int, int, int, tuple[float, ...]]:
    """Heads, groups, positions, gains."""
    groups = int(rng.integers(2, 4))
    heads, positions = int(rng.integers(2, groups + 2)), round(log_uniform(rng, groups + 1, 60))
    return heads, groups, positions, draw_gains(rng, groups)


def flow(seed: int, heads_of: Callable[[int, int], int] | None = None, least: float = 1e-8) -> Run:
    """A flow of either law, long enough for the last transition by the closed forms.

    `heads_of(heads, groups)` changes the number of heads drawn; `least` is the least noise.
    """
    rng = draws(seed, "flows")
    heads, groups, positions, gains = _sizes(rng)
    heads = heads if heads_of is None else heads_of(heads, groups)
    model = str(rng.choice(["regression", "mirror"]))
    sigma = log_uniform(rng, least, 1e-3)
    pairs = [RegressionForms(gains[i:], positions, heads, model == "mirror") for i in range(groups - 1)]
    until = 3 * (pairs[0].first_time + sum(pair.escape_time(sigma / 10) for pair in pairs)) + 50
    sizes = {"heads": heads, "positions": positions, "gains": gains}
    return study(seed, model=model, **sizes, init_scale=sigma, until=float(f"{until:.4g}"))


def wide_flow(seed: int) -> Run:
    """One head over 100 to 400 positions, long enough for t_1."""
    rng = draws(seed, "wide flows")
    heads, gains = 1, draw_gains(rng, int(rng.integers(2, 4)))
    model, positions = str(rng.choice(["regression", "mirror"])), int(rng.integers(100, 401))
    until = 12 * RegressionForms(gains, positions, heads, model == "mirror").first_time
    sizes = {"heads": heads, "positions": positions, "gains": gains}
    return study(seed, model=model, **sizes, init_scale=log_uniform(rng, 1e-8, 1e-3), until=float(f"{until:.4g}"))


def _lag_task(rng: np.random.Generator, groups: int) -> dict[str, Any]:
    return {
        "vocab": int(rng.integers(5, 11)),
        "importance_ratio": float(rng.uniform(1.4, 2.2)) if groups > 1 else 1.7,
        "feature_seed": int(rng.integers(2**31)),
        "feature_kind": "gram-schmidt",
        "reverse": bool(rng.random() < 0.5),
    }


def student(seed: int, size: float | None = None, **changes: Any) -> Run:
    """Positional heads on single lags by gradient descent, true law as labels; `size` is the rms of the true logits."""
    rng = draws(seed, "students")
    groups = int(rng.integers(2, 4))
    task, scale = _lag_task(rng, groups), log_uniform(rng, 0.25, 1.5)
    if size is not None:
        ratios = task["importance_ratio"] ** np.arange(groups)
        scale = size * float(np.sqrt(task["vocab"]) / np.linalg.norm(ratios))
    rate = 0.2 * task["vocab"] ** 2 * min(1.0, 0.35 / scale)
    options = {
        **task,
        "scale": scale,
        "spans": (1,) * groups,
        "pad": int(rng.integers(1, 4)),
        "targets": 1,
        "labels": "soft",
        "sequences": 1000,
        "heads": int(rng.integers(2, groups + 1)),
        "optimizer": "gd",
        "rate_values": rate,
        "rate_attention": rate,
        "steps": 2500,
        "init_scale": log_uniform(rng, 1e-4, 1e-2),
    }
    return study(seed, **{**options, **changes})


def _adam_student(seed: int) -> Run:
    """Positional heads on spans of lags by Adam, drawn tokens as labels: the paper's task, smaller."""
    rng = draws(seed, "adam")
    groups = int(rng.integers(2, 4))
    options = {
        "vocab": int(rng.integers(10, 17)),
        "feature_seed": int(rng.integers(2**31)),
        "importance_ratio": float(rng.uniform(1.5, 2.0)),
        "reverse": bool(rng.random() < 0.5),
        "scale": float(rng.uniform(3.0, 6.0)),
        "spans": (2,) * groups,
        "targets": 8,
        "sequences": 1500,
        "heads": groups,
        "steps": 800,
        "clip": 1.0,
        "init_scale": log_uniform(rng, 1e-4, 1e-2),
    }
    return study(seed, **options)


def _any_adam(seed: int) -> Run:
    """The same drawn more widely: fewer heads than groups, spans of different lengths, few tokens."""
    rng = draws(seed, "any adam")
    groups = int(rng.integers(2, 4))
    options = {
        **_lag_task(rng, groups),
        "feature_kind": str(rng.choice(["orthogonal", "gram-schmidt"])),
        "scale": float(rng.uniform(2.5, 5.0)),
        "spans": tuple(int(n) for n in rng.integers(1, 3, groups)),
        "targets": 6,
        "sequences": 2500,
        "heads": int(rng.integers(2, groups + 1)),
        "steps": 900,
        "clip": 1.0,
        "init_scale": log_uniform(rng, 1e-4, 1e-2),
    }
    return study(seed, **options)


def _content(seed: int) -> Run:
    """Heads that read tokens and positions, as the paper's, smaller: spans of two lags, Adam, drawn tokens as labels."""
    rng = draws(seed, "content")
    groups = int(rng.integers(2, 4))
    options = {
        "model": "content",
        "vocab": int(rng.integers(8, 13)),
        "feature_seed": int(rng.integers(2**31)),
        "importance_ratio": float(rng.uniform(1.5, 2.0)),
        "reverse": bool(rng.random() < 0.5),
        "scale": float(rng.uniform(3.0, 6.0)),
        "spans": (2,) * groups,
        "targets": 8,
        "sequences": 6000,
        "batch": 1500,
        "heads": groups,
        "steps": 800,
        "rate_values": 0.03,
        "rate_attention": 0.03,
        "clip": 1.0,
        "init_scale": log_uniform(rng, 1e-4, 1e-2),
    }
    return study(seed, **options)


def sampled(seed: int, **changes: Any) -> Run:
    """The regression transformer on batches of contexts."""
    rng = draws(seed, "sampled")
    groups = int(rng.integers(2, 4))
    ratios = rng.uniform(1.4, 1.8, groups - 1)
    last = float(rng.uniform(0.9, 1.3))
    options = {
        "model": "regression-transformer",
        "gains": tuple(float(f"{last * np.prod(ratios[i:]):.4g}") for i in range(groups)),
        "positions": int(rng.integers(groups + 1, 9)),
        "heads": int(rng.integers(2, groups + 1)),
        "dim": int(rng.integers(groups + 2, 10)),
        "batch": int(rng.choice([64, 128, 256])),
        "rate_values": 0.03,
        "rate_attention": 0.03,
        "steps": 4000,
        "feature_seed": int(rng.integers(2**31)),
        "init_scale": log_uniform(rng, 1e-3, 3e-2),
    }
    return study(seed, **{**options, **changes})


def _equal_heads(seed: int) -> Run:
    """Flows and students from exactly equal heads."""
    if seed % 3 == 0:
        return student(seed, init_scale=0.0)
    rng = draws(seed, "equal")
    heads, _, positions, gains = _sizes(rng)
    model = str(rng.choice(["regression", "mirror"]))
    until = 20 * RegressionForms(gains, positions, heads, model == "mirror").first_time + 50
    sizes = {"heads": heads, "positions": positions, "gains": gains}
    return study(seed, model=model, **sizes, init_scale=0.0, until=float(f"{until:.4g}"))


def few_sequences(seed: int, **changes: Any) -> Run:
    """Adam on few drawn sequences, which it overfits."""
    rng = draws(seed, "few")
    groups = int(rng.integers(2, 4))
    options = {
        "scale": float(rng.uniform(3.0, 5.0)),
        "spans": (1,) * groups,
        "targets": 6,
        "sequences": round(log_uniform(rng, 30, 500)),
        "heads": groups,
        "steps": 800,
        "clip": 1.0,
    }
    return study(seed, **{**_lag_task(rng, groups), "vocab": int(rng.integers(8, 13)), **options, **changes})


def _shown(run: Run, params: Mapping[str, np.ndarray] | None = None, series: Mapping[str, np.ndarray] | None = None) -> Run:
    """The run with some of its arrays replaced."""
    changed = {"params": Arrays.of({**run.params, **(params or {})}), "series": Arrays.of({**run.series, **(series or {})})}
    return replace(run, **changed, memo={})


def _stretched(run: Run) -> Run:
    return _shown(run, series={"t": SLOWER * run.t})


def _slow_student(seed: int) -> Run:
    """Small true logits, for which the regression flow gives the times."""
    return _stretched(student(seed, size=0.2, sequences=300))


def _frozen(seed: int) -> Run:
    """The exact flow from heads that start on features of their own and stay there."""
    rng = draws(seed, "frozen")
    groups = int(rng.integers(2, 4))
    model = RegressionHeads(positions=int(rng.integers(groups + 1, 12)), gains=draw_gains(rng, groups), heads=groups)
    start = model.init(seed, 0.0)
    start["a"][np.arange(groups), np.arange(groups)] += FIXED
    record, moved = LogSpaced(frames=300, first=1e-2), GradientFlow(rtol=1e-12)
    return evolve(RegressionLoss(model=model), start, moved, until=2000.0, record=record, progress=False)


def _swapped(seed: int) -> Run:
    """A flow whose first and last features are exchanged, with shares of their gains as they were."""
    run = dense(flow(seed, max))
    model = head_curves(run).model
    order = [*range(len(model.gains))]
    order[0], order[-1] = order[-1], order[0]
    scale = np.array(model.gains) / np.array(model.gains)[order]
    logits = np.array(run.params["a"])
    logits[:, :, model.at] = logits[:, :, model.at[order]]
    return _shown(run, {"a": logits, "V": run.params["V"][:, :, order] * scale})


def _faded(seed: int) -> Run:
    """A flow with smaller values: on the last plateau the loss is a tenth to three tenths of the step above its level."""
    run = dense(flow(seed))
    curves = head_curves(run)
    gains = np.square(curves.model.gains[: curves.forms.reachable])
    lost = np.sqrt(float(draws(seed, "faded").uniform(0.1, 0.3)) * gains[-1] / gains.sum())
    return _shown(run, {"V": run.params["V"] * (1 - lost)})


def _waiting(seed: int) -> Run:
    """A flow in which, from .3 t_1 on until heads part, one head does the work of all; the others wait on the second feature."""
    run = dense(flow(seed, min))
    curves = head_curves(run)
    first = transitions(curves.time, curves.loss, curves.forms.levels)[0] or 0.0
    alike = np.flatnonzero(curves.mass_agreement >= LIMITS.alike_cosine)
    during = np.flatnonzero(curves.time >= 0.3 * first)
    during = during[during <= alike[-1]]
    logits, values = np.array(run.params["a"]), np.array(run.params["V"])
    values[during, 0] = values[during].sum(axis=1)
    values[during, 1:] = 0.0
    logits[during, 1:, curves.model.at[1]] = logits[during, 1:].max(axis=2) + 10.0
    return _shown(run, {"a": logits, "V": values})


def _parted(seed: int) -> Run:
    """A flow whose heads part, shown with equal heads at the start."""
    run = dense(flow(seed, least=1e-5))
    params = {name: np.array(run.params[name]) for name in run.params}
    for block in params.values():
        block[0] = block[0].mean(axis=0)
    return _shown(run, params)


def _dimmed(seed: int) -> Run:
    """A student with one head on each lag and the maps of its last class from the first step on, ever less faint.

    They grow so that the loss is what it was.
    """
    run = student(seed)
    curves = lag_curves(run)
    model, groups = curves.law.model, curves.law.process.groups
    logits, values = (np.zeros(run.params[name].shape) for name in ("a", "V"))
    for head in range(min(model.heads, len(groups))):
        logits[1:, head, :, model.context - groups[head][0]] = FIXED
        values[:, head] = curves.levels.fits[model.heads].matrices[head]
    shares = np.append(0.0, np.geomspace(1e-3, 1, 80))[:, None, None, None]
    losses = curves.held_out.values({"a": logits[1 : len(shares) + 1], "V": shares * values[: len(shares)]})
    share = np.interp(curves.excess, (losses - curves.held_out.floor)[::-1], shares.ravel()[::-1])
    return _shown(run, {"a": logits, "V": values * share[:, None, None, None]})


def _borrowed(seed: int) -> Run:
    """A student of 1500 sequences with true laws, shown as one of 20 to 40 drawn ones; values grow too large in the end."""
    run = few_sequences(seed, sequences=1500, labels="soft", steps=500)
    few = int(draws(seed, "borrowed").integers(20, 41))
    values, last = np.array(run.params["V"]), run.frames // 10
    values[-last:] *= np.geomspace(1, 2, last)[:, None, None, None]
    spec = {**run.spec, "field": {**run.spec["field"], "sequences": few, "labels": "hard"}}
    return replace(_shown(run, {"V": values}), spec=spec, study=None, config=None)


STRETCHED = Inputs(
    "flows on a slow clock",
    "all times of a flow are shown three times as long, so every rate and time is off by that factor",
    lambda seed: _stretched(dense(flow(seed))),
)
STRETCHED_WIDE = Inputs(
    "wide flows on a slow clock", "the same for flows over many positions", lambda seed: _stretched(dense(wide_flow(seed)))
)
STRETCHED_STUDENT = Inputs("students on a slow clock", "the same for students with small true logits", _slow_student)
FROZEN = Inputs(
    "frozen attention",
    "each head starts on a feature of its own and stays there: the loss is one exponential without stages, and all features "
    "are learned at once",
    _frozen,
)
SWAPPED = Inputs("exchanged features", "the most and the least important feature of a flow are exchanged", _swapped)
FADED = Inputs("faded values", "the values of a flow are shown too small: the loss rests above the levels", _faded)
WAITING = Inputs("waiting heads", "before t_1 all heads but one leave for the second feature and wait there", _waiting)
PARTED = Inputs("an equal first frame", "heads that part are shown as equal at the start", _parted)
DIMMED = Inputs(
    "students of all groups at once",
    "the loss is that of a student, its map at every step a faint copy of that of its last class: no class before it",
    _dimmed,
)
BORROWED = Inputs(
    "borrowed students",
    "students of many sequences are shown as students of few: they predict better than any fit of the few, as the whole class",
    _borrowed,
)
INPUTS = {
    "incremental": (
        Inputs("flows", "regression flows of both laws: gains, positions, heads and noise drawn", flow),
        Inputs("wide flows", "flows of one head over 100 to 400 positions, up to plateau 1", wide_flow),
        Inputs("equal heads", "flows and students whose heads start exactly equal", _equal_heads),
        Inputs("students", "positional heads on single lags by gradient descent", student),
        Inputs("Adam", "positional heads on spans of lags by Adam, drawn tokens as labels", _adam_student),
        Inputs("any Adam", "the same with 5 to 10 tokens, spans of 1 or 2, and maybe fewer heads than groups", _any_adam),
        Inputs("content heads", "heads that read tokens and positions, on spans of lags, drawn tokens as labels", _content),
        Inputs("sampled", "the regression transformer on batches of contexts", sampled),
        Inputs("few sequences", "Adam on 30 to 500 drawn sequences", few_sequences),
    )
}
"""By study: settings that the paper is about."""
NULLS = {
    "incremental": {
        "ISA:plateaus": (FADED, FROZEN),
        "ISA:order": (SWAPPED, FROZEN),
        "ISA:nearest": (DIMMED,),
        "ISA:head-limit": (FADED,),
        "ISA:competition": (WAITING,),
        "ISA:cooperation": (WAITING,),
        "ISA:stays": (PARTED,),
        "ISA:first": (STRETCHED_WIDE,),
        "ISA:clock": (STRETCHED_STUDENT,),
        "ISA:parting": (STRETCHED,),
        "ISA:escape": (STRETCHED,),
        "ISA:escape-law": (STRETCHED,),
        "ISA:t2": (STRETCHED,),
        "ISA:wkb": (STRETCHED,),
        "ISA:early-stopping": (BORROWED,),
        "ISA:stop-ridge": (BORROWED,),
    }
}
"""By study and claim: runs on which the claim is false."""
