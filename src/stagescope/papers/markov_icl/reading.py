"""The reading of a run of in-context chains: its stages, near-stationary rungs, companion runs, final numbers.

At the unigram point of S the gradient is C/D: with many lags it is small, and never zero. The same holds on the unigram plateau
of R, where only the scores of the lags move. Such a rung is a plateau that no critical point makes: it has no linear rate.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from stagescope.core.params import Params
from stagescope.detect.events import first_crossing
from stagescope.detect.stage import Stages
from stagescope.flow.softmax import softmax
from stagescope.landscape.derivatives import Derivatives
from stagescope.landscape.escape import carried
from stagescope.landscape.ladder import Ladder, Rung
from stagescope.papers.markov_icl.evidence import Evidence
from stagescope.papers.markov_icl.forms import class_of, effective_lags
from stagescope.papers.markov_icl.limits import LIMITS
from stagescope.readings.reading import Reading
from stagescope.readings.study import final_loss
from stagescope.runs.run import Run


class MarkovReading(Reading):
    """A run of R, S, S3, F or T."""

    @cached_property
    def curves(self) -> Evidence:
        return Evidence(self.run, reading=self)

    @cached_property
    def evidence(self) -> Evidence:
        return self.curves

    @cached_property
    def stages(self) -> Stages:
        return self.curves.stages(self.run.status)

    def changed(self, changes: dict[str, Any]) -> Evidence:
        """The evidence of the same run with options changed."""
        return self.rerun_with(changes).evidence

    @property
    def has_own_ladder(self) -> bool:
        return self.evidence.model in ("R", "S") or (self.evidence.model == "F" and self.evidence.exact)

    def own_ladder(self) -> Ladder:
        """The unigram rung and the bigram rung, as far as the run came."""
        rungs = [rung for rung in (_unigram(self.evidence), _bigram(self.evidence)) if rung is not None]
        timed = rungs if self.run.clock == "t" else [rung.timeless() for rung in rungs]
        return Ladder(self.run.status, self.run.clock, tuple(timed))


def run_numbers(run: Run) -> dict[str, float]:
    """Final loss, match and attention on the token before; t_2 over its law where it has one."""
    if not run.frames:
        return {}
    evidence = Evidence(run)
    numbers = {**final_loss(run), "match": float(evidence.match[-1]), "previous": float(evidence.previous[-1])}
    if evidence.flow and evidence.t2 is not None and evidence.model in ("R", "S"):
        law = evidence.two_step if evidence.doubly or evidence.model == "S" else evidence.plateau_time
        if np.isfinite(law):
            numbers["t2_over_law"] = evidence.t2 / law
    return numbers


def _unigram(evidence: Evidence) -> Rung | None:
    """Where the plateau lies: its frame, the point of its class, the level, and when the law says that it is left."""
    levels, point = evidence.levels, evidence.start
    if evidence.model == "S" or evidence.doubly:
        # at b = 0 softmax layer 2 is the unigram estimator, and under a doubly stochastic prior the uniform one
        frame, level = 0, float(levels.losses[levels.names.index("bigram") - 1])
        leaves = evidence.two_step if evidence.model in ("R", "S") else np.nan
        reason = "the match grows from zero, then attention with it"
    elif (plateau := evidence.plateau_between) is None:
        return None
    else:
        level, parts = class_of(evidence.law, softmax(point["v"])).least()
        frame = int(np.argmin(np.abs(evidence.time - plateau.t)))
        leaves = evidence.plateau_time if evidence.model == "R" else np.nan
        point, reason = {**point, "W": evidence.law.model.in_form(*parts)}, "only the scores of the lags move"
    drift = _speed(evidence, point)
    size = f"|F| = {drift:.3g} = {drift * evidence.lags:.3g}/D with D = {evidence.lags} lags"
    return Rung(
        label=levels.names[-2],  # "uniform" under a doubly stochastic prior
        t=float(evidence.time[frame]),
        residual=drift,
        distance=_distance(evidence.run.at(frame), point),
        loss=level,
        opening="lag 1",
        rates=(),
        predicted_escape=leaves if np.isfinite(leaves) else None,
        measured_escape=evidence.t2,
        note=f"near-stationary, no critical point: {size}; {reason}; no linear rate{_taylor_words(evidence)}",
        law="drift",
        order=1,
    )


@dataclass(frozen=True)
class TaylorLaws:
    """When v at lag 1 has grown by ln D, so that lag 1 has as much attention as all others: by the Taylor polynomials of F at the
    slowest frame before t_2, which is no critical point, and in the run. None where it does not come."""

    frame: int
    predicted: tuple[float | None, ...]
    measured: float | None


def taylor_laws(evidence: Evidence) -> TaylorLaws | None:
    """Orders 1, 2 and 3 at the slowest frame between t_1 and t_2 of a flow of R; None where there is none, or are many lags.

    The third differs from the second by a few per cent (science page, section 6).
    """
    time, v = evidence.time, np.asarray(evidence.run.params["v"], dtype=float)
    first = evidence.event_time("t1")[0] or 0.0
    inside = np.flatnonzero((time >= first) & (time < (evidence.t2 or time[-1])))
    if evidence.model != "R" or not evidence.flow or evidence.lags > LIMITS.taylor_lags or not inside.size:
        return None
    near = Derivatives(evidence.law, evidence.start, evidence.run.spec["dynamics"].get("rates", {}))
    packed = [near.layout.pack(evidence.run.at(frame)) for frame in inside.tolist()]
    slowest = int(np.argmin([np.linalg.norm(near.velocity(vector)) for vector in packed]))
    target = float(v[0, 1] + np.log(effective_lags(v[0])))
    place, begin = near.layout.slices()["v"].start + 1, float(time[inside[slowest]])
    after = [
        carried(near, packed[slowest], order, lambda vector: float(vector[place] - target), float(time[-1]))
        for order in (1, 2, 3)
    ]
    predicted = tuple(None if wait is None else begin + wait for wait in after)
    return TaylorLaws(int(inside[slowest]), predicted, first_crossing(time, v[:, 1], target, rising=True))


def _taylor_words(evidence: Evidence) -> str:
    laws = taylor_laws(evidence)
    if laws is None:
        return ""
    times = ", ".join("never" if time is None else f"{time:.4g}" for time in laws.predicted)
    measured = "not" if laws.measured is None else f"at {laws.measured:.4g}"
    begin = f"By the field at the slowest frame (t = {evidence.time[laws.frame]:.4g}) to order 1, 2, 3"
    return f". {begin}, v at lag 1 has grown by ln D at {times}; in the run {measured}"


def _bigram(evidence: Evidence) -> Rung | None:
    """The end, where the match and the scores go on growing."""
    if evidence.t2 is None:
        return None
    level = float(evidence.levels.losses[evidence.levels.names.index("bigram")])
    return Rung(
        label="bigram",
        t=float(evidence.time[-1]),
        residual=_speed(evidence, evidence.run.at(-1)),
        distance=0.0,
        loss=level,
        opening=None,
        rates=(),
        note=f"the loss ends {evidence.loss[-1] - level:+.2g} from its level, which scores reach at infinity",
    )


def _speed(evidence: Evidence, point: Params) -> float:
    """|F| at unit rates."""
    return evidence.law.field().speed(evidence.law.field().rhs(point))


def _distance(position: Params, point: Params) -> float:
    distance = np.sqrt(sum(float(np.sum((position[name] - point[name]) ** 2)) for name in position))
    size = np.sqrt(sum(float(np.sum(np.square(point[name]))) for name in point))
    return float(distance / size) if size > 0 else float(distance)
