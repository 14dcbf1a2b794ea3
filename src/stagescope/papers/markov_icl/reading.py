"""The reading of a run of in-context chains: what its claims need, near-stationary rungs, companion runs.

At the unigram point of S the gradient is C/D: with many lags it is small, and never zero. The same holds on the unigram plateau
of R, where only the scores of the lags move. Such a rung is a plateau that no critical point makes: it has no linear rate.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from stagescope.detect.events import first_crossing
from stagescope.detect.levels import Plateau as Rest
from stagescope.detect.levels import no_ladder, plateaus
from stagescope.detect.stage import Event, Stages
from stagescope.fields.softmax import softmax
from stagescope.landscape.derivatives import Derivatives
from stagescope.landscape.ladder import Ladder, Rung
from stagescope.landscape.local_law import carried
from stagescope.papers.markov_icl.finite import FiniteExact, FiniteLoss
from stagescope.papers.markov_icl.forms import Plateau, chi_squares, class_of, effective_lags, lag_gains, two_step
from stagescope.papers.markov_icl.loss import LinearPopulation, SoftmaxPopulation, TwoHeadPopulation
from stagescope.papers.markov_icl.model import LinearMatch
from stagescope.papers.markov_icl.stages import MatchCurves, detect, half_steps, layer_events, match_curves
from stagescope.papers.reading import Reading
from stagescope.papers.study import final_loss
from stagescope.params import Params
from stagescope.runs.run import Run


@dataclass(frozen=True)
class Evidence:
    """A run of one of the models. `t2_of(changes)` is t_2 of the same run with some options changed."""

    run: Run
    curves: MatchCurves
    others: Callable[[list[dict[str, Any]]], list[Any]] = field(default=lambda _: [])

    @property
    def law(self) -> Any:
        return self.curves.law

    @property
    def model(self) -> str:
        """R, S, S3, F or T."""
        kinds = {LinearPopulation: "R", SoftmaxPopulation: "S", TwoHeadPopulation: "S3"}
        found = next((name for kind, name in kinds.items() if isinstance(self.law, kind)), None)
        return found or ("F" if isinstance(self.law.model, LinearMatch) else "T")

    @property
    def exact(self) -> bool:
        """Whether the recorded loss is the population's."""
        return not isinstance(self.law, FiniteLoss) or isinstance(self.law, FiniteExact)

    @property
    def flow(self) -> bool:
        """Whether the run is a gradient flow, whose times closed forms give."""
        return "step" not in self.run.series

    @property
    def doubly(self) -> bool:
        return bool(self.law.process.doubly_stochastic)

    @property
    def lags(self) -> int:
        return int(self.law.model.lags)

    @cached_property
    def ratio(self) -> float:
        """rho: the rate of the lags over that of the match."""
        rates = self.run.spec["dynamics"].get("rates", {})
        return float(rates.get("v", 1.0) / rates.get("W", 1.0))

    @cached_property
    def rate(self) -> float:
        """The rate of the match: the clock of the closed forms has it at one."""
        return float(self.run.spec["dynamics"].get("rates", {}).get("W", 1.0))

    @cached_property
    def start(self) -> dict[str, np.ndarray]:
        return self.curves.at(0)

    @property
    def from_zero(self) -> bool:
        """Whether the match begins at zero."""
        return bool(np.all(self.start["W"] == 0))

    @cached_property
    def events(self) -> Mapping[str, Event]:
        return half_steps(self.curves, self.flow) | layer_events(self.curves)

    def time(self, name: str) -> tuple[float | None, float]:
        """When an event was, and half of its interval."""
        event = self.events.get(name, Event.missing())
        half = 0.0 if event.interval is None else (event.interval[1] - event.interval[0]) / 2
        return event.time, half

    @cached_property
    def rest(self) -> Rest | None:
        """The plateau between t_1 and t_2: where the loss falls least in a unit of ln t."""
        names, losses = self.curves.levels.names, self.curves.levels.losses
        if "unigram" not in names or no_ladder(losses) is not None:
            return None
        return plateaus(self.curves.time, self.curves.loss, losses)[names.index("unigram") - 1]

    @cached_property
    def plateau(self) -> Plateau:
        """The closed forms of the unigram plateau of R."""
        return Plateau(self.law, self.start["v"])

    @cached_property
    def gains(self) -> np.ndarray:
        """g_d of R, c_d of S."""
        return (lag_gains if self.model == "R" else chi_squares)(self.law.process, self.lags)

    @property
    def two_step(self) -> float:
        return two_step(self.gains, self.start["v"], self.ratio) / self.rate

    @property
    def plateau_time(self) -> float:
        return self.plateau.time(self.ratio) / self.rate


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


class MarkovReading(Reading):
    """A run of R, S, S3, F or T."""

    @cached_property
    def curves(self) -> MatchCurves:
        return match_curves(self.run)

    @cached_property
    def stages(self) -> Stages:
        return detect(self.curves, clock=self.run.clock, status=self.run.status)

    @cached_property
    def evidence(self) -> Evidence:
        return Evidence(self.run, self.curves, self.other_runs)

    def other_runs(self, changes: list[dict[str, Any]]) -> list[Any]:
        """The evidence of the same run with options changed, one for each; an error where one could not be made."""
        return self.companions(self.changed, changes)

    def changed(self, changes: dict[str, Any]) -> Any:
        return self.beside(changes).evidence

    @property
    def has_own_ladder(self) -> bool:
        return self.evidence.model in ("R", "S") or (self.evidence.model == "F" and self.evidence.exact)

    def own_ladder(self) -> Ladder:
        rungs = near_stationary(self.evidence)
        timed = rungs if self.run.clock == "t" else tuple(rung.timeless() for rung in rungs)
        return Ladder(self.run.status, self.run.clock, timed)


def run_numbers(run: Run) -> dict[str, float]:
    """Final loss, match and attention on the token before; t_2 over its law where it has one."""
    if not run.frames:
        return {}
    evidence = Evidence(run, match_curves(run))
    curves = evidence.curves
    found = {**final_loss(run), "match": float(curves.match[-1]), "previous": float(curves.previous[-1])}
    when = evidence.time("t2")[0]
    if evidence.flow and when is not None and evidence.model in ("R", "S"):
        law = evidence.two_step if evidence.doubly or evidence.model == "S" else evidence.plateau_time
        if np.isfinite(law):
            found["t2_over_law"] = when / law
    return found
