"""Near-stationary rungs: plateaus that no critical point makes, with |F| there, their level and the law by which they are left.

At the unigram point of S the gradient is C/D: with many lags it is small, and never zero. The same holds on the unigram plateau
of R, where only the scores of the lags move. There is no linear rate at such a place.
"""

from dataclasses import dataclass

import numpy as np

from stagescope.detect.events import first_crossing
from stagescope.fields.softmax import softmax
from stagescope.landscape.derivatives import Derivatives
from stagescope.landscape.escape import carried
from stagescope.landscape.ladder import Rung
from stagescope.papers.markov_icl.evidence import Evidence
from stagescope.papers.markov_icl.forms import effective_lags
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
        label=evidence.curves.levels.names[-2],  # "uniform" under a doubly stochastic prior
        t=float(evidence.curves.time[place.frame]),
        residual=drift,
        distance=_distance(evidence.curves.at(place.frame), place.point),
        loss=place.level,
        opening="lag 1",
        rates=(),
        predicted_escape=place.leaves if np.isfinite(place.leaves) else None,
        measured_escape=evidence.time("t2")[0],
        note=f"near-stationary, no critical point: {size}; {place.why}; no linear rate{_taylor_words(evidence)}",
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


ORDERS = (1, 2, 3)
"""Of the Taylor laws: the third differs from the second by a few per cent (science page, section 6)."""
MOST_LAGS = 30
"""Up to so many lags they take some seconds; with 100 lags it would be 20."""


@dataclass(frozen=True)
class TaylorLaws:
    """When v at lag 1 has grown by ln D, so that lag 1 has as much attention as all others: by the Taylor polynomials of F at the
    slowest frame before t_2, which is no critical point, and in the run. None where it does not come."""

    frame: int
    predicted: tuple[float | None, ...]
    measured: float | None


def taylor_laws(evidence: Evidence) -> TaylorLaws | None:
    """Orders 1, 2 and 3 at the slowest frame between t_1 and t_2 of a flow of R; None where there is none, or are many lags."""
    time, v = evidence.curves.time, np.asarray(evidence.curves.params["v"], dtype=float)
    first, last = (evidence.time(name)[0] for name in ("t1", "t2"))
    inside = np.flatnonzero((time >= (first or 0.0)) & (time < (last or time[-1])))
    if evidence.model != "R" or not evidence.flow or evidence.lags > MOST_LAGS or not inside.size:
        return None
    near = Derivatives(evidence.law, evidence.start, evidence.run.spec["dynamics"].get("rates", {}))
    packed = [near.layout.pack(evidence.curves.at(frame)) for frame in inside.tolist()]
    slowest = int(np.argmin([np.linalg.norm(near.velocity(each)) for each in packed]))
    wanted = float(v[0, 1] + np.log(effective_lags(v[0])))
    place, begin = near.layout.slices()["v"].start + 1, float(time[inside[slowest]])

    def goal(vector: np.ndarray) -> float:
        return float(vector[place] - wanted)

    after = [carried(near, packed[slowest], order, goal, float(time[-1])) for order in ORDERS]
    predicted = tuple(None if each is None else begin + each for each in after)
    return TaylorLaws(int(inside[slowest]), predicted, first_crossing(time, v[:, 1], wanted, rising=True))


def _taylor_words(evidence: Evidence) -> str:
    found = taylor_laws(evidence)
    if found is None:
        return ""
    said = ", ".join("never" if when is None else f"{when:.4g}" for when in found.predicted)
    seen = "not" if found.measured is None else f"at {found.measured:.4g}"
    begin = f"By the field at the slowest frame (t = {evidence.curves.time[found.frame]:.4g}) to order 1, 2, 3"
    return f". {begin}, v at lag 1 has grown by ln D at {said}; in the run {seen}"


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
