"""Read a run of focus and dilution: its stages, its ladder, and the companion runs that its claims need."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any, cast

import numpy as np

from stagescope.core.errors import StagescopeError
from stagescope.core.params import Layout, Params
from stagescope.detect.stage import Stages
from stagescope.flow.dynamics import SolveFailed
from stagescope.flow.evolve import evolve, frames
from stagescope.flow.gradient_flow import GradientFlow
from stagescope.flow.record import Uniform
from stagescope.landscape.ladder import Ladder, Rung
from stagescope.papers.focus_dilution.evidence import Evidence
from stagescope.papers.focus_dilution.head_model import HeadModel, normalised
from stagescope.papers.focus_dilution.ladder import rung
from stagescope.papers.focus_dilution.limits import LIMITS
from stagescope.papers.focus_dilution.loss import TokenLoss, TokenPairs, TokenPopulation, TokenSampled
from stagescope.papers.focus_dilution.model import LazyChain
from stagescope.papers.focus_dilution.observables import TokenCurves, token_curves
from stagescope.papers.focus_dilution.stages import EXACT, Draws, Stay, detect, first_move
from stagescope.readings.reading import Reading
from stagescope.readings.rebuild import ended, forked, last_motion
from stagescope.readings.replay import Replay, read_refined
from stagescope.readings.study import final_loss
from stagescope.runs.run import Run


@dataclass(frozen=True)
class Refinement:
    """The refinement grid: how near the frames of a run must be for its stages and saddle visits."""

    next: float = 0.03  # frames are at most this share of the time passed apart, because events are spaced in log-time
    longest: float = 1e-3  # and at most this share of the run's length
    shortest: float = 1e-4  # but need not be nearer than this share
    pieces: float = 2.0  # a run is replayed while some stretch between frames should be cut into more pieces than this
    most_frames: int = 6000  # at most so many frames
    most_entries: float = 4e7  # and at most so many numbers of attention in all frames: a tenth of a second or more of reading
    most_numbers: float = 2.0**27  # and of parameters: one gigabyte


REFINEMENT = Refinement()


@dataclass(frozen=True)
class Samples:
    """Other samples of a sampled run, for the spread of its events.

    Narrow models make flows on other pairs (last token, next). Wide ones, and steps without flow time, make the same steps in
    the head model [FDA:head], whose difference from the run is far smaller than that between samples.
    """

    count: int = 8
    quantile: float = 2.36  # half-width of a 95 % interval in standard deviations: Student's t, count - 1 degrees of freedom
    rtol: float = 1e-6  # of their flows: spreads are per cents
    columns: int = 4  # head columns: one for each direction of attention that opens in the cycles of four tokens
    narrow: int = 16  # models with up to so many head columns are as fast as the head model
    contexts: float = 1e8  # contexts in all steps of all samples, about ten seconds; beyond it samples are smaller
    least: float = 1 / 16  # of the sample: spreads of smaller ones cannot be scaled to it by the root of their size


SAMPLES = Samples()


def _refined(run: Run, replay: Callable[[np.ndarray], Run | None]) -> TokenCurves:
    """Curves of a run, replayed until little moves between two frames.

    What batches move between two frames is noise, and more frames would not make it less.
    """
    return read_refined(run, replay, token_curves, partial(_pieces, timed=run.clock == "t"))


def _pieces(position: np.ndarray, curves: TokenCurves, timed: bool = True) -> np.ndarray:
    """Into how many pieces to cut each stretch between frames, so that each is short and little moves in it.

    A run that has as many frames as are read already is not cut: a replay takes as long as the run. Steps without a flow time
    move at a bounded speed, so their events are not spaced in log-time: a thousandth of the run is near enough.
    """
    length, last = np.diff(position), position[-1]
    numbers = sum(block[0].size for block in curves.params.values())
    limit = min(REFINEMENT.most_frames, REFINEMENT.most_entries / len(curves.pi) ** 2, REFINEMENT.most_numbers / numbers)
    if len(position) >= limit:
        return np.ones(len(length), int)
    if not timed:
        pieces = np.maximum(1.0, length / (REFINEMENT.longest * last))
        few = np.max(pieces, initial=1) <= REFINEMENT.pieces
        return np.ones(len(length), int) if few else np.ceil(pieces * min(1.0, limit / float(pieces.sum())) - 1e-9).astype(int)
    short = np.clip(REFINEMENT.next * position[1:], REFINEMENT.shortest * last, REFINEMENT.longest * last)
    noisy = getattr(curves.law, "batch", None) is not None
    pieces = np.maximum(1.0, length / short if noisy else np.maximum(curves.moves(), length / short))
    pieces = np.maximum(1.0, pieces * min(1.0, limit / max(1.0, float(pieces.sum()))))
    few = np.max(pieces, initial=1) <= REFINEMENT.pieces
    return np.ones(len(length), int) if few else np.ceil(pieces).astype(int)


class FocusDilutionReading(Reading):
    """Curves at a fine resolution, the stages of rows and embeddings, and the ladder of small models (r, rq)."""

    @cached_property
    def curves(self) -> TokenCurves:
        return _refined(self.run, self.replay)

    @cached_property
    def stages(self) -> Stages:
        curves, run = self.curves, self.run
        tolerance = float(last_motion(run.spec).get("rtol", 0.0))
        return detect(
            curves,
            tolerance=tolerance,
            clock=run.clock,
            status=run.status,
            draws=self.draws,
            normalised=normalised(self.dynamics),
        )

    @cached_property
    def draws(self) -> Draws:
        """How far other draws of the data would move the events, from eight companion runs where a sample is drawn.

        They take about .4 s each as flows of narrow models, and up to ten seconds together in the head model.
        """
        law = self.curves.law
        if not isinstance(law, TokenSampled):
            return EXACT
        first = law.seed * SAMPLES.count % 2**62  # other samples for each run: one unlucky set would mislead all of them alike
        seeds = range(first, first + SAMPLES.count) if self.run.done else ()
        draw, share = self._other_sample
        samples = [] if share == 0 else [self.companion(draw, seed) for seed in seeds]
        names = {name for events in samples for name in events}
        times = {name: [time for events in samples if (time := events.get(name)) is not None] for name in names}
        scale = SAMPLES.quantile * share**0.5
        spread = {
            name: scale * float(np.std(values, ddof=1)) for name, values in times.items() if len(values) > SAMPLES.count / 2
        }
        # Time over which steps remember earlier ones, three times 1/(1 - momentum) steps; 0 without memory.
        optimizer = last_motion(self.run.spec).get("optimizer", {})
        decay = float(optimizer.get("momentum", optimizer.get("b1", 0.0)))
        steps = float(self.run.step[-1]) if "step" in self.run.series else 0.0
        memory = 3 / (1 - decay) * float(self.run.time[-1]) / steps if decay and steps else 0.0
        return Draws(law.batch is not None, memory, spread, self._companions_in_words if seeds else "")

    @cached_property
    def _other_sample(self) -> tuple[Callable[[int], dict[str, float | None]], float]:
        """How a companion run on another sample is made, and the size of that sample as a share of this one; 0 for none."""
        law, run = self.curves.law, self.run
        assert isinstance(law, TokenSampled)
        narrow = law.model.shapes["WQ"][1] <= SAMPLES.narrow
        if narrow and (run.clock == "t" or forked(run) is not None):
            return self.on_other_pairs, 1.0
        steps = float(run.step[-1]) if "step" in run.series else 0.0
        share = min(1.0, SAMPLES.contexts / max(1.0, SAMPLES.count * steps * len(law.contexts.mass)))
        return self.on_other_sample, share if forked(run) is None and steps and share >= SAMPLES.least else 0.0

    @property
    def _companions_in_words(self) -> str:
        draw, share = self._other_sample
        if share == 0:
            return "but not of other samples, which would take longer than the run"
        if draw == self.on_other_pairs:
            return "flows on other samples of pairs"
        size = "" if share == 1 else f" of {share:.2g} of the size, scaled by its root"
        return f"the same steps in the head model on {SAMPLES.count} other samples{size}"

    def on_other_sample(self, seed: int) -> dict[str, float | None]:
        """Events of the same steps from the same start in the head model, on other sequences."""
        law, run, share = self.curves.law, self.run, self._other_sample[1]
        assert isinstance(law, TokenSampled)
        size = {"sequences": max(1, round(share * law.sequences)), "length": law.length, "start": law.start}
        sample = TokenSampled(model=law.model, process=law.process, seed=seed + SAMPLES.count, **size)  # never that of the run
        head = HeadModel(law=sample, columns=min(SAMPLES.columns, law.model.shapes["WQ"][1]))
        start = head.start(run.at(0), normalised(self.dynamics))
        layout, status = Layout.of(start), "finished"
        times: list[float] = []
        vectors: list[np.ndarray] = []
        try:
            for clock, vector in frames(head, start, self.dynamics, record=Uniform(frames=1000)):  # without loss and speed
                times.append(clock[run.clock])
                vectors.append(vector)
        except SolveFailed as failure:
            status = failure.status
        curves = TokenCurves(np.array(times), layout.unpack(np.array(vectors)), cast(TokenLoss, head))
        return dict(detect(curves, clock=run.clock, status=status, normalised=normalised(self.dynamics)).events)

    def on_other_pairs(self, seed: int) -> dict[str, float | None]:
        """Events of the same start on another draw of as many pairs: a flow, or the same motion where that is a fork
        or steps without flow time."""
        law, run = self.curves.law, self.run
        assert isinstance(law, TokenSampled)
        pairs = TokenPairs(model=law.model, process=law.process, sequences=law.sequences, seed=seed)
        timed = run.clock == "t" and forked(run) is None
        motion = GradientFlow(rtol=SAMPLES.rtol) if timed else self.dynamics
        companion_run = evolve(
            pairs,
            run.at(0),
            motion,
            until=float(run.time[-1]) if timed or "step" not in run.series else None,
            record=Uniform(frames=1000),
            progress=False,
        )
        curves = TokenCurves(companion_run.time, {name: companion_run.params[name] for name in companion_run.params}, law)
        return dict(
            detect(
                curves, tolerance=SAMPLES.rtol, clock=run.clock, status=companion_run.status, normalised=normalised(motion)
            ).events
        )

    @cached_property
    def evidence(self) -> Evidence:
        return Evidence(self.run, self.curves, reading=self)

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
        other_law = TokenPopulation(model=law.model, process=chain)
        return self._flow(other_law, self.run.at(0), until, "the flow on a chain with another asymmetry")

    def _flow(self, law: Any, start: Params, until: float, what: str) -> TokenCurves:
        # So near that no stretch between frames is cut for its length, and most flows need no second integration; where so many
        # are too many to read, no late one.
        near, late = (round(1 / share) + 2 for share in (REFINEMENT.pieces * REFINEMENT.shortest, REFINEMENT.longest))
        frames = Uniform(frames=max(late, min(near, int(REFINEMENT.most_entries / len(self.curves.pi) ** 2))))
        flow = ended(evolve(law, start, GradientFlow(rtol=LIMITS.settled), until=until, record=frames, progress=False), what)
        return _refined(flow, Replay(flow, law).refined)

    @property
    def has_own_ladder(self) -> bool:
        """Critical points of the small models (r, rq) are those of the flow only where all blocks have the same rate."""
        return forked(self.run) is None and set(self.run.spec["dynamics"]["rates"].values()) <= {1.0}

    def own_ladder(self) -> Ladder:
        if normalised(self.dynamics):  # points and rates of the flow, a minute of search at width 256, say nothing of such steps
            reason = "labels alone: steps that divide by the history of each entry do not go from one critical point to the next"
            rungs = tuple(_without_point(stay, "" if k else reason) for k, stay in enumerate(self.evidence.stays))
            return Ladder(self.run.status, self.run.clock, rungs)
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
        return _without_point(stay, f"not computed: {error}")


def _without_point(stay: Stay, reason: str) -> Rung:
    return Rung(stay.label, stay.start, residual=math.inf, distance=math.inf, loss=None, opening=None, rates=(), note=reason)


# Final numbers of focus-dilution runs, for sweeps.


def run_numbers(run: Run) -> dict[str, float]:
    """Also which way attention first goes, and the rate in theory: the signs of both say focus or defocus [FD:attention-rate]."""
    curves = token_curves(run)
    change = first_move(curves)
    return {**final_loss(run), "first_move": float("nan") if change is None else change, "attention_rate": curves.rate}
