"""Near-stationary rungs: plateaus that no critical point makes, with |F| there, their level and the law by which they are left.

At the unigram point of S the gradient is C/D: with many lags it is small, and never zero. The same holds on the unigram plateau
of R, where only the scores of the lags move. There is no linear rate at such a place.
"""

from dataclasses import dataclass

import numpy as np

from stagescope.fields.softmax import softmax
from stagescope.landscape.ladder import Rung
from stagescope.papers.markov_icl.evidence import Evidence
from stagescope.papers.markov_icl.levels import class_of
from stagescope.papers.markov_icl.model import LinearMatch
from stagescope.params import Params


def near_stationary(evidence: Evidence) -> tuple[Rung, ...]:
    """The unigram rung and the bigram rung, as far as the run came."""
    found = [_unigram(evidence), _bigram(evidence)]
    return tuple(rung for rung in found if rung is not None)


@dataclass(frozen=True)
class Place:
    """Where a plateau lies: its frame, the point of its class, the level, and when the law says that it is left."""

    frame: int
    point: Params
    level: float
    leaves: float
    why: str


def _unigram(evidence: Evidence) -> Rung | None:
    place = _at_zero(evidence) if evidence.model == "S" or evidence.doubly else _in_class(evidence)
    if place is None:
        return None
    drift = _speed(evidence, place.point)
    size = f"|F| = {drift:.3g} = {drift * evidence.lags:.3g}/D with D = {evidence.lags} lags"
    return Rung(
        label="unigram",
        t=float(evidence.curves.time[place.frame]),
        residual=drift,
        distance=_distance(evidence.curves.at(place.frame), place.point),
        loss=place.level,
        opening="lag 1",
        rates=(),
        predicted_escape=place.leaves if np.isfinite(place.leaves) else None,
        measured_escape=evidence.time("t2")[0],
        note=f"near-stationary, no critical point: {size}; {place.why}; no linear rate",
        law="drift",
        order=1,
    )


def _at_zero(evidence: Evidence) -> Place:
    """The first frame: at b = 0 softmax layer 2 is the unigram estimator, and under a doubly stochastic prior the uniform one."""
    levels = evidence.curves.levels
    known = evidence.model in ("R", "S")
    leaves = evidence.two_step if known else np.nan
    level = float(levels.losses[levels.names.index("bigram") - 1])
    return Place(0, evidence.start, level, leaves, "the match grows from zero, then attention with it")


def _in_class(evidence: Evidence) -> Place | None:
    rest = evidence.rest
    if rest is None:
        return None
    held = class_of(evidence.law, softmax(evidence.start["v"]))
    level, parts = held.least()
    frame = int(np.argmin(np.abs(evidence.curves.time - rest.t)))
    leaves = evidence.plateau_time if evidence.model == "R" else np.nan
    return Place(
        frame, {**evidence.start, "W": in_form(evidence.law.model, parts)}, level, leaves, "only the scores of the lags move"
    )


def _bigram(evidence: Evidence) -> Rung | None:
    """The end, where the match and the scores go on growing."""
    when, curves = evidence.time("t2")[0], evidence.curves
    if when is None:
        return None
    speed = _speed(evidence, curves.at(len(curves.time) - 1))
    level = float(curves.levels.losses[curves.levels.names.index("bigram")])
    note = f"the loss ends {curves.loss[-1] - level:+.2g} from its level, which scores reach at infinity"
    return Rung(
        label="bigram",
        t=float(curves.time[-1]),
        residual=speed,
        distance=0.0,
        loss=level,
        opening=None,
        rates=(),
        note=note,
    )


def in_form(model: LinearMatch, parts: np.ndarray) -> np.ndarray:
    """W = a 11^T + b I in the model's own form."""
    a, b = parts
    form, k = model.form, model.tokens
    if form == "free":
        return a + b * np.eye(k)
    return np.array([a, b] if form == "parts" else [a, a + b])


def _speed(evidence: Evidence, point: Params) -> float:
    """|F| at unit rates."""
    return evidence.law.field().speed(evidence.law.field().rhs(point))


def _distance(here: Params, point: Params) -> float:
    apart = np.sqrt(sum(float(np.sum((here[name] - point[name]) ** 2)) for name in here))
    size = np.sqrt(sum(float(np.sum(np.square(point[name]))) for name in point))
    return float(apart / size) if size > 0 else float(apart)
