"""The reading of a run of linear attention: curves, stages, what its claims need, companion runs, the path from a start."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from stagescope.claims.comparison import Comparison, Regime
from stagescope.detect.stage import Stages
from stagescope.dynamics.evolve import evolve
from stagescope.dynamics.flow import GradientFlow
from stagescope.dynamics.record import AtTimes
from stagescope.errors import InputError, StagescopeError
from stagescope.landscape.saddle_path import SOLVER, AtRest, Leg, Predicted, SaddlePath, unsure
from stagescope.papers.linear_icl import forms
from stagescope.papers.linear_icl.cascade import Drop, SilentHead, cascade, growing_part
from stagescope.papers.linear_icl.loss import LinearLoss, LinearSampled
from stagescope.papers.linear_icl.model import LinearAttention
from stagescope.papers.linear_icl.process import RegressionTask
from stagescope.papers.linear_icl.setup import expected_drops, flow_frames
from stagescope.papers.linear_icl.stages import LinearCurves, detect, drops, plateau
from stagescope.papers.reading import Reading
from stagescope.papers.rebuild import ended, forked, replay
from stagescope.params import Params
from stagescope.runs.run import Run


@dataclass(frozen=True)
class Limits:
    """Regimes and tolerances (science page, section 7).

    Sizes of starts are in units of the final value of a head on direction 1, because lambda -> c lambda changes nothing but
    units: on the page that value is 1.31, and the scales are .03 and .01.
    """

    small: float = 0.023  # largest rms of a start for levels and for the first drop to 1 %
    first: float = 0.06  # for the first drop to 3 %: two heads of equal T come earlier by a third of the rms
    course: float = 0.0075  # for the time course of a head
    purity: float = 0.2  # largest share of the next direction in a head
    apart: float = 1.15  # least ratio of the waits of two heads: nearer ones disturb each other
    level: float = 1e-3  # of tr Lambda
    short_level: float = 0.012  # of tr Lambda, on a plateau that is short
    short: float = 0.1  # a plateau is short if it lasts less than this share of its end time
    settled: float = 7.5  # e-folds of a plateau after which a head is pure: twice ln(.2/.005), because it is read in its middle
    later: float = 0.15  # relative error of a later drop
    right: float = 0.9  # least share of later drops by the right head
    rate: float = 0.05  # of an opening inside a head
    steady: float = 0.02  # v of a head must be this close to v_S while a direction opens
    end: float = 1e-6  # of tr Lambda
    spread: float = 1.25  # the rms of a start of 20 numbers or more may be this many times the scale that it was drawn at


LIMITS = Limits()
Scaled = Callable[[float], "Evidence"]
"""factor -> evidence of the flow from the same start times the factor, up to well after its first drop."""
Seeded = Callable[[tuple[int, ...]], list["Evidence"]]
"""seeds -> evidence of flows from other starts of the same size; those that failed are left out."""


@dataclass(frozen=True)
class Evidence:
    """A run with its curves, and what its start predicts."""

    run: Run
    curves: LinearCurves
    scaled: Scaled | None = None
    seeded: Seeded | None = None

    @property
    def task(self) -> RegressionTask:
        return self.curves.task

    @property
    def model(self) -> LinearAttention:
        return self.curves.model

    @property
    def trace(self) -> float:
        return float(self.task.spectrum.sum())

    @cached_property
    def start(self) -> Params:
        return {name: np.asarray(block[0]) for name, block in self.curves.params.items()}

    @cached_property
    def scale(self) -> float:
        """s: the root mean square of the initial parameters."""
        return float(np.sqrt(np.mean(np.concatenate([block.ravel() for block in self.start.values()]) ** 2)))

    @cached_property
    def size(self) -> float:
        """The rms of the start in units of the final value of a head on direction 1 [LIN:scaling]."""
        return self.scale / forms.start_unit(self.task, self.model.merged)

    @cached_property
    def purity(self) -> float:
        """The largest of all directions that the heads reach [LIN:purity]."""
        return forms.purity(self.task, self.scale, self.model.reach)

    @cached_property
    def times(self) -> list[float | None]:
        """d1, d2, ... of the run."""
        return [event.time for event in drops(self.curves).values()]

    @property
    def reached(self) -> int:
        """How many drops came, one after the other."""
        return next((m for m, when in enumerate(self.times) if when is None), len(self.times))

    @cached_property
    def predicted(self) -> list[Drop]:
        """The cascade from the start [LIN:cascade]."""
        return [] if self.model.merged else cascade(self.task, SilentHead.all_of(self.start), self.model.rank or 1)

    @cached_property
    def owners(self) -> list[int]:
        """The head that ends with each direction."""
        return [self.curves.owner(i) for i in range(self.task.dim)]

    @cached_property
    def signs(self) -> np.ndarray:
        """The sign of v of each head at the end: for a negative one k - q grows, not k + q."""
        return np.where(np.asarray(self.curves.params["v"])[-1] < 0, -1.0, 1.0)

    @cached_property
    def mixed(self) -> float:
        """What the first winner has of other directions when its value is half of its end, over what it has of its own.

        By the law of silent heads, from the start: `purity` is the same for a start without chance.
        """
        drop = self.predicted[0]
        grown = growing_part(SilentHead.all_of(self.start)[drop.head], self.task.spectrum)
        rates, d = self.task.spectrum**2, drop.direction
        if grown[d] == 0:
            return np.inf
        tau = np.log(forms.head_value(self.task, (d,)) / 2 / np.sqrt(grown[d])) / rates[d]
        parts = np.sqrt(grown / grown[d]) * np.exp((rates - rates[d]) * tau)
        return float(np.linalg.norm(np.delete(parts, d)))

    def plateau(self, m: int) -> int | None:
        """The frame of plateau m: where the loss falls least between two drops, or after the last."""
        times = [0.0, *self.times]
        begin, end = times[m], times[m + 1] if m + 1 < len(times) else None
        if begin is None:
            return None
        return plateau(self.curves.time, self.curves.loss, begin, float(self.curves.time[-1]) if end is None else end)

    def is_short(self, m: int) -> bool:
        """Whether plateau m lasts less than a tenth of its end time, or is one inside a head."""
        begin, end = ([0.0, *self.times][place] for place in (m, m + 1))
        return self.is_inside(m) or begin is None or end is None or end - begin < LIMITS.short * end

    def is_inside(self, m: int) -> bool:
        """Whether a head of rank above one still has room on plateau m, so that the next direction opens exponentially."""
        return m % (self.model.rank or 1) != 0

    def is_settled(self, m: int) -> bool:
        """Whether plateau m is so long that heads have lost what they had of directions that are not learned."""
        begin, end = ([0.0, *self.times][place] for place in (m, m + 1))
        if self.is_inside(m):
            return False
        return begin is not None and end is not None and (end - begin) * forms.settling_rate(self.task, m) >= LIMITS.settled

    def failures(self) -> list[str]:
        """Why the theory of the flow does not apply to this run; empty where it does."""
        dynamics = self.run.spec["dynamics"]
        kinds = (
            (dynamics["type"] == "GradientFlow", "not a gradient flow"),
            (set(dynamics.get("rates", {}).values()) <= {1.0}, "block rates differ"),
            (not isinstance(self.curves.law, LinearSampled), "sequences are sampled"),
        )
        return [sentence for good, sentence in kinds if not good]


def of_flow(evidence: Evidence, merged: bool, *conditions: tuple[bool, str], holds: str) -> Regime:
    """A flow of merged or of separate heads under some conditions; not applicable to heads of the other kind or to steps."""
    if evidence.model.merged != merged:
        return Regime(False, f"the claim is about {'merged' if merged else 'separate'} heads", applies=False)
    if failed := evidence.failures():
        return Regime(False, f"the claim is about the exact flow: {'; '.join(failed)}", applies=False)
    failed = [sentence for good, sentence in conditions if not good]
    return Regime(not failed, "; ".join(failed) or holds)


def small_start(evidence: Evidence, largest: float) -> tuple[bool, str]:
    return (
        0 < evidence.size <= LIMITS.spread * largest,
        f"the start has rms {evidence.scale:.2g}, which is {evidence.size:.2g} of the final value of a head; "
        f"the claim is about starts above 0 and up to about {largest:g} of it",
    )


def separated(evidence: Evidence) -> tuple[bool, str]:
    found = evidence.purity
    return found <= LIMITS.purity, f"eigenvalues are not separated at this scale: purity {found:.2g} is above {LIMITS.purity:g}"


def all_drops(evidence: Evidence) -> tuple[bool, str]:
    """Whether the run lasts until the last drop that its heads can make."""
    return evidence.reached == len(evidence.times), f"{evidence.reached} of {len(evidence.times)} drops came"


def undecided(reason: str, predicted: float | str = "-", tolerance: float | str | None = None) -> Comparison:
    """A comparison that this run cannot make."""
    return Comparison(predicted, None, tolerance, None, reason)


MOVE = 0.01
"""Between two frames a loss may fall by this share of the whole; a run that falls faster is replayed with more frames there."""
GROWTH, FLOOR = 0.4, 1e-4
"""Between two frames ln(M_ii + FLOOR of its end) may change by this: openings are seen while they are small."""
REPLAYS, MOST_FRAMES = 3, 8000
SAME_LOSS, SAME_PLACE = 1e-3, 0.05
"""Largest difference between a run and its replay at a frame, of the loss at the start and of the largest parameters: a run that
differs by more was not made by its law, and is read as it is."""


def refined(run: Run, law: LinearLoss) -> LinearCurves:
    """Curves of a run; a flow is replayed, which is exact, with more frames where its loss or its map moves between two."""
    curves = LinearCurves.of(run, law)
    if run.clock != "t" or "step" in run.series or run.frames < 2 or forked(run) is not None:
        return curves
    for _ in range(REPLAYS):
        pieces = np.ceil(_moves(curves)).astype(int)
        cut = np.flatnonzero(pieces > 1)
        if not cut.size or len(curves.time) + pieces[cut].sum() > MOST_FRAMES:
            break
        more = [np.linspace(curves.time[i], curves.time[i + 1], min(int(pieces[i]), 50) + 1) for i in cut]
        wanted = np.unique(np.concatenate([curves.time, *more]))
        again = replay(run, AtTimes(at=tuple(wanted[wanted > 0].tolist())))
        if not _same(run, again):
            return LinearCurves.of(run, law)
        curves = LinearCurves.of(again, law)
    return curves


def _moves(curves: LinearCurves) -> np.ndarray:
    """How far the curves go between two frames, in units of what they may."""
    falls = np.abs(np.diff(curves.loss)) / (MOVE * float(curves.levels[0]))
    grown = np.abs(np.diff(np.log(np.abs(curves.learned) + FLOOR), axis=0)).max(axis=1) / GROWTH
    return np.maximum(falls, grown)


def _same(run: Run, again: Run) -> bool:
    """Whether a replay has the losses and the parameters of the run at the run's own frames."""
    places = np.searchsorted(again.t, run.t)
    apart = np.abs(np.asarray(again.series["loss"])[places] - np.asarray(run.series["loss"]))
    if np.max(apart) > SAME_LOSS * float(run.series["loss"][0]):
        return False
    far = [np.max(np.abs(again.params[name][places] - run.params[name])) for name in run.params]
    return max(far) <= SAME_PLACE * max(float(np.max(np.abs(run.params[name]))) for name in run.params)


class LinearReading(Reading):
    """Curves with frames where they move, the plateaus and drops, and companion runs from other starts."""

    @cached_property
    def curves(self) -> LinearCurves:
        return refined(self.run, self.law)

    @cached_property
    def stages(self) -> Stages:
        return detect(self.curves, clock=self.run.clock, status=self.run.status)

    @cached_property
    def evidence(self) -> Evidence:
        def seeded(seeds: tuple[int, ...]) -> list[Evidence]:
            found = self.companions(self.from_seed, seeds)
            return [each for each in found if not isinstance(each, StagescopeError)]

        return Evidence(self.run, self.curves, lambda factor: self.companion(self.from_scaled, factor), seeded)

    def from_scaled(self, factor: float) -> Evidence:
        """The flow from the same start times a factor, to a fifth after its first drop is predicted."""
        start = {name: factor * np.asarray(block) for name, block in self.run.at(0).items()}
        first = min(expected_drops(self.law.task, self.law.model, start)[0])
        return self._flow(start, 1.2 * first)

    def from_seed(self, seed: int) -> Evidence:
        """The flow from another start of the same size; seeds do not meet those of other runs of the study."""
        size = self.evidence.scale
        start = self.law.model.init(10_000 + 100 * (self.run.seed or 0) + seed, size)
        return self._flow(start, None)

    def _flow(self, start: Params, until: float | None) -> Evidence:
        law = self.law
        end, record = flow_frames(law.task, law.model, start, until)
        made = ended(evolve(law, start, GradientFlow(rtol=1e-11), until=end, record=record, progress=False))
        return Evidence(made, refined(made, law))


FIRST, MERGED = 0.01, 5e-3
"""Half of the interval of the first drop, and of the drop of merged heads, relatively; of later drops it is `LIMITS.later`."""


def linear_path(law: LinearLoss, start: Params, until: float, seen: float = np.inf) -> SaddlePath:
    """Events d1, d2, ...: the loss is halfway between two levels, as for runs [LIN:stages]. All of them, whatever was `seen`."""
    if isinstance(law, LinearSampled):
        raise InputError("this loss draws a batch for every step, so it has no flow to predict; leave out --batch")
    scale = float(np.sqrt(np.mean(np.concatenate([np.ravel(block) for block in start.values()]) ** 2)))
    most = LIMITS.spread * LIMITS.first * forms.start_unit(law.task, law.model.merged)
    if not 0 < scale <= most:
        raise InputError(f"the start has rms {scale:.3g}; a path begins near the origin, above 0 and up to {most:.2g} here")
    return _of_merged(law, start, until) if law.model.merged else _of_separate(law, start, until, scale)


def _of_merged(law: LinearLoss, start: Params, until: float) -> SaddlePath:
    task = law.task
    when, levels = forms.merged_drop_time(task, start), forms.levels(task)
    event = _event(when, MERGED, until)
    rate = forms.merged_rate(task)
    legs = [Leg("plateau 0", 0.0, event.t, float(levels[0]), "all directions", rate, lambda: ("settled", (rate,)))]
    if event.t is not None:
        legs.append(Leg(f"plateau {task.dim}", event.t, None, float(levels[-1]), None, None, _settled))
    middle = float(levels[0] + levels[-1]) / 2
    return SaddlePath(tuple(legs), {"d1": event}, tuple(unsure({"d1": event})), 0.0, np.zeros(0), {}, {"d1": middle})


def _of_separate(law: LinearLoss, start: Params, until: float, scale: float) -> SaddlePath:
    task, reach, levels = law.task, law.model.reach, forms.levels(law.task)
    found = cascade(task, SilentHead.all_of(start), law.model.rank or 1)
    room = f"{law.model.heads} heads of rank {law.model.rank} hold {reach} directions"
    events: dict[str, Predicted] = {}
    for m in range(task.dim):
        if m < len(found):
            events[f"d{m + 1}"] = _event(found[m].time, LIMITS.later if m else FIRST, until)
        else:
            events[f"d{m + 1}"] = Predicted(None, reason=room if m >= reach else "no head can grow", beyond=until, absent=True)
    middles = {f"d{m + 1}": float(levels[m] + levels[m + 1]) / 2 for m in range(task.dim)}
    notes = (*unsure(events), *_doubts(task, found, scale, law.model.rank or 1))
    return SaddlePath(tuple(_legs(events, levels)), events, notes, 0.0, np.zeros(0), {}, middles)


def _event(when: float, error: float, until: float) -> Predicted:
    if not when <= until:
        return Predicted(None, reason=f"it does not come by t={until:g}", beyond=until)
    half = (error + SOLVER) * when
    return Predicted(when, when - half, when + half)


def _legs(events: dict[str, Predicted], levels: np.ndarray) -> list[Leg]:
    """Plateaus between drops. None is left at a linear rate: a silent head blows up at a finite time."""
    times = [0.0, *(event.t for event in events.values() if event.t is not None)]
    return [
        Leg(
            f"plateau {m}",
            begin,
            times[m + 1] if m + 1 < len(times) else None,
            float(levels[m]),
            f"direction {m + 1}" if m + 1 < len(times) else None,
            None,
            _settled,
        )
        for m, begin in enumerate(times)
    ]


def _settled() -> AtRest:
    """A plateau at a fixed point that has no linear rate."""
    return "settled", ()


def _doubts(task: RegressionTask, found: list[Drop], scale: float, rank: int) -> list[str]:
    """Where the intervals of later drops are not to be believed."""
    said = []
    if close := [f"d{m + 1}" for m, drop in enumerate(found) if drop.ratio < LIMITS.apart]:
        said.append(f"two heads are close to each other at {', '.join(close)}: drops after it may be off by a fifth or more")
    share = forms.purity(task, scale, len(found))
    if share > LIMITS.purity:
        said.append(f"eigenvalues are not separated at this scale (purity {share:.2g}): directions may come in another order")
    if rank > 1:
        said.append("times of directions that open inside a head are estimates: their intervals were not tried")
    return said
