"""Nulls of incremental learning: runs drawn by seed on which claims are false by construction, and which reach the comparison.

Most are near misses: a true run of which one thing is shown otherwise, its clock, its values or its heads. They have the frames
of a replay, so that they are read as they are.
"""

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from stagescope.claims.inputs import Inputs
from stagescope.detect.levels import transitions
from stagescope.dynamics.evolve import evolve
from stagescope.dynamics.flow import GradientFlow
from stagescope.dynamics.record import LogSpaced
from stagescope.papers.incremental.drawn import draw_gains, draws, few_sequences, flow, student, wide_flow
from stagescope.papers.incremental.observables import dense, head_curves, lag_curves
from stagescope.papers.incremental.regression import RegressionHeads, RegressionLoss
from stagescope.papers.incremental.stages import HEADS
from stagescope.runs.run import Arrays, Run

FIXED = 40.0
"""A logit this far above the others keeps the attention where it is: its gradient is e^-40."""
SLOWER = 3.0
"""How much slower a stretched clock runs: far beyond every tolerance of a time."""


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
    alike = np.flatnonzero(curves.mass_agreement >= HEADS.alike)
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
