"""What the claims about linear attention need: a run's curves, what is predicted from its start, and companion runs."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from stagescope.claims.comparison import Comparison, Regime
from stagescope.papers.linear_icl import forms
from stagescope.papers.linear_icl.blow_up import SilentHead, growing_part
from stagescope.papers.linear_icl.cascade import Drop, cascade
from stagescope.papers.linear_icl.model import LinearAttention
from stagescope.papers.linear_icl.observables import LinearCurves, plateau
from stagescope.papers.linear_icl.process import RegressionTask
from stagescope.papers.linear_icl.sampled import LinearSampled
from stagescope.papers.linear_icl.stages import drops
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
    conserved: float = 1e-7
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
        return forms.worst_purity(self.task, self.scale, self.model.reach)

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
