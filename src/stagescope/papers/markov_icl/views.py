"""A run of in-context chains on a page: layer 1 by lag, layer 2 by match, the composed path, KL to each strategy."""

from functools import partial
from typing import Any

import numpy as np

from stagescope.papers.markov_icl.model import LinearMatch, MatchModel
from stagescope.papers.markov_icl.observables import MatchCurves
from stagescope.runs.run import Run
from stagescope.views.any_run import loss_view, matrix, norms_view, speed_view
from stagescope.views.curves import CELLS, curves, many_curves, shown
from stagescope.views.view import Curve, Level, Maker, View

LAGS = 40
"""Lags that a heat map shows: the first ones, since attention by lag ends at lag 1 or 2."""


LEAST = 1e-8
"""Nats: divergences are drawn from here on, below it strategies are the same."""


def views(reading: Any) -> list[Maker]:
    """Loss with its levels, the two layers, what they do together, strategies, norms and speed."""
    run, found = reading.run, reading.curves
    return [
        partial(_loss, run, found),
        partial(_lags, run, found),
        partial(_match, found),
        partial(_path, run, found),
        partial(_previous, found),
        partial(_strategies, found),
        partial(norms_view, run),
        partial(speed_view, run),
    ]


def _loss(run: Run, found: MatchCurves) -> View | None:
    levels = [Level(name, float(loss)) for name, loss in zip(found.levels.names, found.levels.losses, strict=True)]
    about = "Cross-entropy of the next token. Levels: the best loss of each class (R, F), or the loss of each strategy."
    return loss_view(run, tuple(levels), about)


def _some(run: Run, found: MatchCurves) -> tuple[np.ndarray, np.ndarray | None]:
    """Attention on the first lags at the frames that are shown, and their places."""
    count = min(LAGS, found.law.model.lags)
    seen = shown(run, found.attention.shape[1] * count, CELLS)
    chosen = np.arange(len(found.time)) if seen.frames is None else seen.frames
    return found.attention[chosen][:, :, :count], seen.frames


def _lags(run: Run, found: MatchCurves) -> View:
    values, frames = _some(run, found)
    left = found.law.model.lags - values.shape[2]
    more = f" The other {left} lags are not shown." if left else ""
    return matrix(
        "attention",
        "Layer 1 by lag",
        f"Attention of each head of layer 1 on the token so many places before.{more}",
        values,
        rows=tuple(f"head {h + 1}" for h in range(values.shape[1])),
        columns=tuple(str(lag) for lag in range(values.shape[2])),
        row_axis="head",
        column_axis="lag",
        frames=frames,
    )


def _match(found: MatchCurves) -> View:
    """The match, and in linear models what all tokens get."""
    model, made = found.law.model, [Curve("match b", found.match)]
    weights = np.asarray(found.params["W"], dtype=float)
    if isinstance(model, LinearMatch):
        made.append(Curve("common part a", model.parts(weights)[:, 0]))
    elif weights.shape[1:] == (2,):
        made.append(Curve("second match b_2", weights[:, 1]))
    about = "Score that layer 2 gives a place whose layer 1 holds the current token, beyond that of other tokens."
    return curves("match", "Layer 2 by match", about, "score", made)


def _path(run: Run, found: MatchCurves) -> View | None:
    """b A_d: what a token at a lag before a place does to the score of that place."""
    if not isinstance(found.law.model, MatchModel) or found.attention.shape[1] > 1:
        return None
    values, frames = _some(run, found)
    chosen = found.match if frames is None else found.match[frames]
    return matrix(
        "path",
        "The composed path",
        "Match times attention: score of a place when the current token stands so many places before it.",
        chosen[:, None, None] * values,
        rows=("current token",),
        columns=tuple(str(lag) for lag in range(values.shape[2])),
        row_axis="token",
        column_axis="lag",
        signed=True,
        frames=frames,
    )


def _previous(found: MatchCurves) -> View:
    made = [Curve(f"head {h + 1}, lag {h + 1}", found.attention[:, h, h + 1]) for h in range(found.attention.shape[1])]
    about = "Attention of layer 1 on the lag that the n-gram needs: the token before, for a second head the one before that."
    return curves("previous", "Attention on the lag that wins", about, "attention", made)


def _strategies(found: MatchCurves) -> View:
    made = many_curves(np.maximum(found.divergences, LEAST), list(found.strategies.names))
    about = "KL(strategy || model) on fixed contexts, in nats: the model predicts as the lowest one."
    return curves("strategies", "Distance from each strategy", about, "nats", made, log=True, frames=found.compared)
