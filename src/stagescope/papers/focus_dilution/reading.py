"""Read a run of focus and dilution: its stages, its ladder, and the companion runs that its claims need."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from stagescope.claims.comparison import Regime
from stagescope.detect.stage import Stages
from stagescope.dynamics.evolve import evolve
from stagescope.dynamics.flow import GradientFlow
from stagescope.dynamics.record import AtTimes, Uniform
from stagescope.errors import StagescopeError
from stagescope.landscape.ladder import Ladder, Rung
from stagescope.landscape.linearise import Linearisation, linearise
from stagescope.landscape.saddle_path import SaddlePath
from stagescope.papers.focus_dilution import family
from stagescope.papers.focus_dilution.family import attention_rate
from stagescope.papers.focus_dilution.ladder import SaddleVisit, Trajectory, rung, saddle_visit, trajectory
from stagescope.papers.focus_dilution.loss import TokenPairs, TokenPopulation, TokenSampled
from stagescope.papers.focus_dilution.model import LazyChain
from stagescope.papers.focus_dilution.observables import TokenCurves, token_curves
from stagescope.papers.focus_dilution.stages import EXACT, Draws, Stay, detect, first_move, onset, opening_times, stays
from stagescope.papers.focus_dilution.study import FocusDilutionOptions
from stagescope.papers.reading import Reading
from stagescope.papers.rebuild import ended, forked, last_motion, replay
from stagescope.papers.study import final_loss
from stagescope.params import Params
from stagescope.runs.run import Run
from stagescope.spec import build

# What the claims of focus and dilution need: a run's curves, its saddle visits, and companion runs.

SMALL_START = 3e-3
"""Largest rms of the initial parameters: below it a start is at most .1 of the level of E1 in norm (8 entries a row)."""
UNIFORM = 1e-12
"""A stationary law whose probabilities differ by no more is uniform."""
DEFAULT_UNTIL = float(FocusDilutionOptions.model_fields["until"].default)
"""How long a flow of the study is by default."""
LONGER = 4.0
"""How much longer the run beside one that was too short is; it has at least the default length."""
POPULATION_FLOW: dict[str, Any] = {
    "form": "population",
    "optimizer": "flow",
    "init_scale": 1e-3,
    **{f"init_scale_{block}": None for block in ("w0", "w1", "wq", "wk")},
    "length": None,
    "start": "stationary",
    "sequences": 8192,
    "batch": None,
    "steps": 8000,
    "lr": 0.1,
    "momentum": 0.9,
}
"""The options of a population flow from a small start, with those that only other forms and optimizers use at their defaults."""
Companion = Callable[[float, float], TokenCurves]
"""(factor, end time) -> curves of the flow from the same start times the factor."""
OtherLaw = Callable[[np.ndarray, float], TokenCurves]
"""(change of pi, end time) -> curves of the flow from the same start on the chain whose pi is changed."""
Predict = Callable[[], tuple[SaddlePath | None, str]]
"""The saddle path from the run's start, computed when first called, or why there is none."""


@dataclass(frozen=True)
class Evidence:
    """A run with its curves, at a resolution that does not depend on how it was recorded."""

    run: Run
    curves: TokenCurves
    companion: Companion | None = None
    other_law: OtherLaw | None = None
    predict: Predict | None = None

    @cached_property
    def law(self) -> TokenPopulation:
        """The loss of infinitely long contexts, for which the theory is made."""
        return TokenPopulation(model=self.curves.law.model, process=self.curves.law.process)

    @property
    def pi(self) -> np.ndarray:
        return self.curves.pi

    @cached_property
    def start(self) -> float:
        return initial_rms(self.run)

    @cached_property
    def rate(self) -> float:
        """c, with its sign."""
        return family.attention_rate(self.pi, self.law.process.transition, self.law.model.scale)

    @cached_property
    def openings(self) -> dict[str, float | None]:
        """E1, E2, ..., Q1, Q2, ... by name."""
        return opening_times(self.curves.time, self.curves.embedding_values, self.curves.score_values)

    @cached_property
    def predicted(self) -> tuple[SaddlePath | None, str]:
        """The saddle path from the start, where the theory of the flow applies; otherwise why there is none."""
        failed = self.failures()
        if failed or self.predict is None:
            return None, "; ".join(failed) or "nothing is predicted beside another run"
        return self.predict()

    @cached_property
    def onset(self) -> float | None:
        """When sv_1(WQ WK^T) last passes ten times its start before E2."""
        end = float(self.curves.time[-1])
        return onset(self.curves.time, self.curves.key_values[:, 0], end if self.second is None else self.second)

    @property
    def second(self) -> float | None:
        """E2, None where it was not reached or does not exist."""
        return self.openings.get("E2")

    @cached_property
    def stays(self) -> tuple[Stay, ...]:
        return stays(self.curves.time, self.curves.embedding_values, self.curves.score_values)

    @cached_property
    def trajectory(self) -> Trajectory:
        return trajectory(self.curves, self.law)

    @cached_property
    def _visits(self) -> dict[Stay, SaddleVisit]:
        return {}

    def at(self, stay: Stay) -> SaddleVisit:
        """The saddle visit of a stay, found once."""
        if stay not in self._visits:
            self._visits[stay] = saddle_visit(self.trajectory, self.law, stay)
        return self._visits[stay]

    def visit(self, r: int, rq: int) -> SaddleVisit | None:
        """The saddle visit of the first stay at a label; None where the run has no such stay."""
        found = next((stay for stay in self.stays if (stay.r, stay.rq) == (r, rq)), None)
        return None if found is None else self.at(found)

    @cached_property
    def linear(self) -> Linearisation | None:
        """The linearisation of the whole model at the point (1,0) that the run visits."""
        visit = self.visit(1, 0)
        return None if visit is None else linearise(self.law, visit.place.params)

    def failures(self) -> list[str]:
        """Why the theory of the flow from a small start does not apply to this run; empty where it does."""
        kinds = (
            (self.run.spec["dynamics"]["type"] == "GradientFlow", "not a gradient flow"),
            (set(self.run.spec["dynamics"]["rates"].values()) <= {1.0}, "block rates differ"),
            (isinstance(self.curves.law, TokenPopulation), "contexts are not infinitely long"),
            (self.start <= SMALL_START, f"initial rms {self.start:.1e} is above {SMALL_START:g}"),
            (np.ptp(self.pi) > UNIFORM, "the stationary law is uniform: mu0 = 0, and nothing grows at the origin"),
        )
        return [sentence for good, sentence in kinds if not good]


def initial_rms(run: Run) -> float:
    """The root mean square of the initial parameters."""
    return float(np.sqrt(np.mean(np.concatenate([run.params[name][0].ravel() for name in run.params]) ** 2)))


def small_flow(evidence: Evidence) -> Regime:
    failed = evidence.failures()
    return Regime(not failed, "; ".join(failed) or "flow from a small start")


def visited(r: int, rq: int) -> Callable[[Evidence], Regime]:
    """The regime of what a critical point (r, rq) predicts: a flow from a small start that stays at its label.

    How near the run comes is no part of it: the error of the prediction says what the distance does to it.
    """

    def regime(evidence: Evidence) -> Regime:
        failed, visit = evidence.failures(), evidence.visit(r, rq)
        if visit is None:
            failed.append(f"the run has no stay at (r, rq) = ({r},{rq})")
        elif not visit.small.of_its_label:
            failed.append(f"no critical point ({r},{rq}) was found: the search ended at |F| = {visit.small.point.residual:.1e}")
        near = "-" if visit is None else f"{visit.distance:.3f}"
        return Regime(not failed, "; ".join(failed) or f"relative distance {near} from ({r},{rq})")

    return regime


def opening(r: int, rq: int) -> Callable[[Evidence], Regime]:
    """The regime of what opens at a critical point (r, rq): a visit of it, and a direction that grows there."""

    def regime(evidence: Evidence) -> Regime:
        found, visit = visited(r, rq)(evidence), evidence.visit(r, rq)
        if not found.holds or visit is None or visit.small.opening is not None:
            return found
        return Regime(False, f"nothing opens at ({r},{rq})")

    return regime


def reaching_second(evidence: Evidence) -> Regime:
    """A flow from a small start that lasts until E2."""
    failed = evidence.failures()
    if evidence.second is None:
        failed.append("E2 was not reached")
    elif evidence.second <= float(evidence.curves.time[0]):
        failed.append("two embedding directions are open at the start")
    return Regime(not failed, "; ".join(failed) or f"flow from a small start, E2 at {evidence.second:.4g}")


def beside(evidence: Evidence) -> dict[str, Any] | None:
    """Options with which a claim out of regime is decided: the flow of the population loss from 1e-3, or a longer one.

    The longer one has at least the default length: a short run, or steps without a flow time, say little about it.
    """
    config = evidence.run.config
    if config is None or np.ptp(evidence.pi) <= UNIFORM:
        return None
    end = float(evidence.curves.time[-1]) if evidence.run.clock == "t" else 0.0
    longer = {"until": max(DEFAULT_UNTIL, float(f"{LONGER * end:.4g}"))}
    wanted = POPULATION_FLOW | longer if evidence.failures() else longer if evidence.second is None else {}
    return {name: value for name, value in wanted.items() if config.get(name) != value} or None


@dataclass(frozen=True)
class Refinement:
    """The refinement grid: how near the frames of a run must be for its stages and saddle visits."""

    next: float = 0.03  # frames are at most this share of the time passed apart, because events are spaced in log-time
    longest: float = 1e-3  # and at most this share of the run's length
    shortest: float = 1e-4  # but need not be nearer than this share
    pieces: float = 2.0  # a run is replayed while some stretch between frames should be cut into more pieces than this
    replays: int = 3  # at most so often
    most_frames: int = 6000  # at most so many frames
    most_entries: float = 4e7  # and at most so many numbers of attention in all frames: a tenth of a second or more of reading


REFINEMENT = Refinement()


BESIDE = 1e-8
"""Relative tolerance of flows beside a run: claims read times off them, to a part in a thousand."""


@dataclass(frozen=True)
class Samples:
    """Other samples of a sampled run, for the spread of its events."""

    count: int = 8
    quantile: float = 2.36  # half-width of a 95 % interval in standard deviations: Student's t, count - 1 degrees of freedom
    rtol: float = 1e-6  # of their flows: spreads are per cents


SAMPLES = Samples()


def _refined(run: Run) -> TokenCurves:
    """Curves of a run, replayed until little moves between two frames.

    A replay of a descent is exact; one of a flow is within its tolerance, as a restart falls on the next frame.
    What batches move between two frames is noise, and more frames would not make it less.
    """
    seen, curves = run, token_curves(run)
    for _ in range(REFINEMENT.replays):
        position = seen.step.astype(float) if "step" in seen.series else seen.t
        pieces = _pieces(position, curves)
        if np.max(pieces, initial=1) <= REFINEMENT.pieces:
            break
        cut, counts = pieces > 1, np.ceil(pieces).astype(int)
        stretches = zip(position[:-1][cut], position[1:][cut], counts[cut], strict=True)
        wanted = np.concatenate([position, *(np.linspace(a, b, n + 1) for a, b, n in stretches)])
        wanted = np.unique(np.rint(wanted) if "step" in seen.series else wanted)
        if len(wanted) == len(position):
            break
        seen = replay(run, AtTimes(at=tuple(wanted.tolist())))
        if not _same_motion(run, seen):
            return token_curves(run)
        curves = token_curves(seen)
    return curves


def _same_motion(run: Run, again: Run) -> bool:
    """Whether a replay ends where the run ended; if not, the run was not made by its law, and its own frames are read."""
    room = 0.01 + 10 * float(last_motion(run.spec).get("rtol", 0.0))
    ends = [(run.params[name][-1], again.params[name][-1]) for name in run.params]
    apart = sum(float(np.sum((one - other) ** 2)) for one, other in ends)
    return apart <= room**2 * sum(float(np.sum(one**2)) for one, _ in ends)


def _pieces(position: np.ndarray, curves: TokenCurves) -> np.ndarray:
    """Into how many pieces to cut each stretch between frames, so that each is short and little moves in it.

    A run that has as many frames as are read already is not cut: a replay takes as long as the run.
    """
    length, last = np.diff(position), position[-1]
    most = min(REFINEMENT.most_frames, REFINEMENT.most_entries / len(curves.pi) ** 2)
    if len(position) >= most:
        return np.ones(len(length))
    short = np.clip(REFINEMENT.next * position[1:], REFINEMENT.shortest * last, REFINEMENT.longest * last)
    noisy = getattr(curves.law, "batch", None) is not None
    pieces = np.maximum(1.0, length / short if noisy else np.maximum(curves.moves(), length / short))
    return np.maximum(1.0, pieces * min(1.0, most / max(1.0, float(pieces.sum()))))


class FocusDilutionReading(Reading):
    """Curves at a fine resolution, the stages of rows and embeddings, and the ladder of small models (r, rq)."""

    @cached_property
    def curves(self) -> TokenCurves:
        return _refined(self.run)

    @cached_property
    def stages(self) -> Stages:
        curves, run = self.curves, self.run
        law = curves.law
        sign = float(np.sign(attention_rate(curves.pi, law.process.transition, law.model.scale)))
        tolerance = float(last_motion(run.spec).get("rtol", 0.0))
        return detect(curves, sign, tolerance=tolerance, clock=run.clock, status=run.status, draws=self.draws)

    @cached_property
    def draws(self) -> Draws:
        """How far other draws of the data would move the events: eight flows, about .4 s each, where a sample is drawn."""
        law = self.curves.law
        if not isinstance(law, TokenSampled):
            return EXACT
        first = law.seed * SAMPLES.count % 2**62  # other samples for each run: one unlucky set would mislead all of them alike
        seeds = range(first, first + SAMPLES.count) if self.run.done else ()
        found = [self.companion(self.on_other_pairs, seed) for seed in seeds]
        names = {name for events in found for name in events}
        times = {name: [when for events in found if (when := events.get(name)) is not None] for name in names}
        spread = {name: SAMPLES.quantile * float(np.std(at, ddof=1)) for name, at in times.items() if len(at) > SAMPLES.count / 2}
        return Draws(law.batch is not None, self._memory(), spread)

    def _memory(self) -> float:
        """Time over which steps remember earlier ones, three times 1/(1 - momentum) steps; 0 without memory."""
        optimizer = last_motion(self.run.spec).get("optimizer", {})
        decay = float(optimizer.get("momentum", optimizer.get("b1", 0.0)))
        steps = float(self.run.step[-1]) if "step" in self.run.series else 0.0
        return 3 / (1 - decay) * float(self.run.time[-1]) / steps if decay and steps else 0.0

    def on_other_pairs(self, seed: int) -> dict[str, float | None]:
        """Events of the same start on another draw of as many pairs: a flow, or the same motion where that is a fork
        or steps without flow time."""
        law, run = self.curves.law, self.run
        assert isinstance(law, TokenSampled)
        pairs = TokenPairs(model=law.model, process=law.process, sequences=law.sequences, seed=seed)
        timed = run.clock == "t" and forked(run) is None
        how = GradientFlow(rtol=SAMPLES.rtol) if timed else build(run.spec["dynamics"])
        made = evolve(
            pairs,
            run.at(0),
            how,
            until=float(run.time[-1]) if timed or "step" not in run.series else None,
            record=Uniform(frames=1000),
            progress=False,
        )
        curves = TokenCurves(made.time, {name: made.params[name] for name in made.params}, law)
        sign = float(np.sign(attention_rate(curves.pi, law.process.transition, law.model.scale)))
        return dict(detect(curves, sign, tolerance=SAMPLES.rtol, clock=run.clock, status=made.status).events)

    @cached_property
    def evidence(self) -> Evidence:
        return Evidence(
            self.run,
            self.curves,
            lambda factor, until: self.companion(self.from_scaled, factor, until),
            lambda change, until: self.companion(self.on_other_law, change.tolist(), until),
            lambda: (self.prediction, self.unpredicted),
        )

    def from_scaled(self, factor: float, until: float) -> TokenCurves:
        """Curves of the flow from the same start times a factor."""
        start = {name: factor * block for name, block in self.run.at(0).items()}
        return self._flow(self.field, start, until, f"the flow from a start scaled by {factor:g}")

    def on_other_law(self, change: list[float], until: float) -> TokenCurves:
        """Curves of the flow from the same start on the lazy chain whose pi differs by `change`."""
        law = self.field.objective
        assert isinstance(law, TokenPopulation)
        assert isinstance(law.process, LazyChain)
        pi = law.process.stationary + change
        chain = LazyChain(pi=tuple((pi / pi.sum()).tolist()), persistence=law.process.persistence)
        moved = TokenPopulation(model=law.model, process=chain)
        return self._flow(moved, self.run.at(0), until, "the flow on a chain with another asymmetry")

    def _flow(self, law: Any, start: Params, until: float, what: str) -> TokenCurves:
        frames = Uniform(frames=round(1 / REFINEMENT.longest) + 2)  # so near that no late stretch between frames is cut
        made = evolve(law, start, GradientFlow(rtol=BESIDE), until=until, record=frames, progress=False)
        return _refined(ended(made, what))

    @property
    def has_own_ladder(self) -> bool:
        """Critical points of the small models (r, rq) are those of the flow only where all blocks have the same rate."""
        return forked(self.run) is None and set(self.run.spec["dynamics"]["rates"].values()) <= {1.0}

    def own_ladder(self) -> Ladder:
        rungs = [_rung(self.evidence, stay) for stay in self.evidence.stays]
        if not isinstance(self.law, TokenPopulation):
            rungs = [rung.noted("critical point and rates are those of infinitely long contexts") for rung in rungs]
        clock = self.run.clock
        return Ladder(self.run.status, clock, tuple(rung.timeless() if clock != "t" else rung for rung in rungs))


def _rung(evidence: Evidence, stay: Stay) -> Rung:
    """One rung; where it cannot be computed its note says why, and the other rungs are not affected."""
    try:
        return rung(evidence.at(stay))
    except StagescopeError as error:
        note = f"not computed: {error}"
        return Rung(stay.label, stay.start, residual=math.inf, distance=math.inf, loss=None, opening=None, rates=(), note=note)


# Final numbers of focus-dilution runs, for sweeps.


def run_numbers(run: Run) -> dict[str, float]:
    """Also which way attention first goes, and the rate in theory: the signs of both say focus or defocus [FD:attention-rate]."""
    curves = token_curves(run)
    chain, scale = curves.law.process, curves.law.model.scale
    moved = first_move(curves)
    measured = {"first_move": float("nan") if moved is None else moved}
    return {**final_loss(run), **measured, "attention_rate": attention_rate(chain.stationary, chain.transition, scale)}
