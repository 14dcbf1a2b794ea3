"""Incremental learning on a text: does it show, and in the order of the importance measured on the text?

The paper speaks of chains whose groups of lags have features of their own. These claims carry its sentences over to text,
where nothing promises them: a verdict says what a run of a student on this text shows.
"""

from dataclasses import dataclass
from functools import cached_property
from itertools import combinations

import numpy as np

from stagescope.claims.claim import Claim, Comparison, Regime
from stagescope.papers.incremental.evidence import ALIKE_AT_FIRST, BEFORE, DISTINCT
from stagescope.papers.incremental.stages import ALIKE
from stagescope.papers.incremental.text.information import LagInformation
from stagescope.papers.incremental.text.stages import MOST, LagHeads, acquired
from stagescope.papers.incremental.transitions import CLOSE
from stagescope.runs.run import Run

SETTLED, LATE = 0.05, 0.2
"""A run has settled if no head's attention on a lag moves by more than this over its last fifth, and rests if besides the last
lag was acquired within its first fifth: what comes next may take several times as long as what came before."""
_MORE = "take more --steps"


@dataclass(frozen=True)
class Evidence:
    """A run of heads on a text, the importance of the lags it sees, and the losses of the best predictors that see nothing and
    the first lag alone."""

    run: Run
    heads: LagHeads
    information: LagInformation
    levels: np.ndarray

    @cached_property
    def acquired(self) -> tuple[tuple[int, float], ...]:
        """Lags and times, earliest first."""
        return acquired(self.heads)

    @property
    def count(self) -> int:
        return self.heads.mass.shape[1]

    @property
    def settled(self) -> bool:
        return self._still(self.heads.mass)

    @property
    def long(self) -> bool:
        """Whether the last lag was acquired early enough for another one to have come."""
        return bool(self.acquired) and self.acquired[-1][1] <= LATE * self.heads.time[-1]

    @property
    def loss_settled(self) -> bool:
        """The same as `settled`, of the loss in units of the step that the first lag makes."""
        return self._still(self.heads.loss / (self.levels[0] - self.levels[1]))

    def _still(self, curve: np.ndarray) -> bool:
        late = curve[self.heads.time >= (1 - LATE) * self.heads.time[-1]]
        return bool(len(late) > 2 and np.max(np.ptp(late, axis=0)) <= SETTLED)

    @property
    def shown(self) -> str:
        """The acquired lags with their times."""
        clock = self.run.clock
        return ", ".join(f"lag {lag} at {clock} = {when:.4g}" for lag, when in self.acquired) or "no lag was acquired"


def _seen(evidence: Evidence) -> Regime:
    """One lag is clearly the most important, and the run was watched from before it was acquired."""
    found, added = evidence.information, evidence.information.added
    second = max(np.delete(added, found.first - 1), default=0.0)
    first = evidence.acquired[0][1] if evidence.acquired else np.inf
    before = int(np.sum(evidence.heads.time < first))
    failed = [
        (added[found.first - 1] < DISTINCT * second, f"the first lag tells less than {DISTINCT:g} times the next"),
        (before < BEFORE, f"{before} frames before t1; at least {BEFORE} are needed"),
        (added[found.first - 1] <= 3 * found.errors[found.first - 1], "no lag tells anything of the next token"),
    ]
    sentences = [sentence for bad, sentence in failed if bad]
    told = f"lag {found.first} tells {found.alone.max():.3g} nats, the next one adds {second:.3g}"
    return Regime(not sentences, "; ".join(sentences) or told)


def _several(evidence: Evidence) -> Regime:
    """The same, of two heads or more that begin alike."""
    if evidence.count == 1:
        return Regime(False, "there is one head", applies=False)
    base, alike = _seen(evidence), float(evidence.heads.agreement[0])
    if alike < ALIKE_AT_FIRST:
        return Regime(False, f"heads agree to {alike:.2f} only at the start, below {ALIKE_AT_FIRST:g}")
    return base


def _order(evidence: Evidence) -> Comparison:
    """Every pair of acquired lags whose importances differ by more than their error came in the order of importance."""
    lags = [lag for lag, _ in evidence.acquired]
    expected = " ".join(map(str, evidence.information.order[: max(len(lags), 1)]))
    if len(lags) < 2:
        return Comparison(expected, " ".join(map(str, lags)) or None, "order", None, f"fewer than two lags: {evidence.shown}")
    wrong = [pair for pair in combinations(lags, 2) if evidence.information.above(pair[1], pair[0])]
    skipped = _skipped(evidence, lags)
    reason = evidence.shown + (f"; lag {skipped} is more important than lag {lags[-1]} but was not acquired" if skipped else "")
    return Comparison(expected, " ".join(map(str, lags)), "order", not wrong and skipped is None, reason)


def _skipped(evidence: Evidence, lags: list[int]) -> int | None:
    """A lag that is clearly more important than one that was acquired, and was not acquired itself."""
    others = (lag for lag in evidence.information.order if lag not in lags)
    return next((lag for lag in others if any(evidence.information.above(lag, taken) for taken in lags)), None)


def _competition(evidence: Evidence) -> Comparison:
    """When the first lag is acquired all heads look at it."""
    if not evidence.acquired:
        return Comparison(f">= {ALIKE}", None, ALIKE, None, evidence.shown)
    lag, when = evidence.acquired[0]
    frame = evidence.heads.frame(when)
    agree, tops = float(evidence.heads.agreement[frame]), evidence.heads.tops(frame)
    reason = f"{evidence.shown}; at t1 heads agree to {agree:.3f} and look most at lag {' '.join(map(str, tops))}"
    holds = agree >= ALIKE and set(tops) == {lag} == {evidence.information.first}
    return Comparison(f">= {ALIKE}", agree, ALIKE, holds, reason)


def _level(evidence: Evidence) -> Comparison:
    """Between t1 and t2 the loss is flattest, on a logarithmic clock, near the best that the first lag alone can give."""
    if not evidence.acquired:
        return Comparison(0.0, None, CLOSE, None, evidence.shown)
    start = evidence.acquired[0][1]
    stop = evidence.acquired[1][1] if len(evidence.acquired) > 1 else evidence.heads.time[-1]
    inside = np.flatnonzero((evidence.heads.time > start) & (evidence.heads.time < stop))
    if len(inside) < 3:
        return Comparison(0.0, None, CLOSE, None, f"fewer than three frames between t1 and t2: {evidence.shown}")
    if len(evidence.acquired) == 1 and not (evidence.long and evidence.loss_settled):
        why = "no second lag yet, and the loss has not come to rest"
        return Comparison(0.0, None, CLOSE, None, f"{why}: {evidence.shown}; {_MORE}")
    clock, loss = evidence.heads.time[inside], evidence.heads.loss[inside]
    at = int(np.argmin(np.abs(np.gradient(loss, np.log(clock)))))
    above, below = evidence.levels
    gap = float((loss[at] - below) / (above - below))
    told = f"flattest at {evidence.run.clock} = {clock[at]:.4g} with loss {loss[at]:.4g}"
    reason = f"{told}; lag {evidence.information.first} alone gives {below:.4g}, nothing {above:.4g} ({gap:+.0%} of the step)"
    return Comparison(0.0, gap, CLOSE, abs(gap) <= CLOSE, reason)


def _parting(evidence: Evidence) -> Comparison:
    """At t2 one head has left the first lag, and all others still look at it."""
    if len(evidence.acquired) < 2:
        return Comparison("one head", None, "exact", None, f"no second lag: {evidence.shown}")
    first, (second, when) = evidence.acquired[0][0], evidence.acquired[1]
    tops = evidence.heads.tops(evidence.heads.frame(when))
    left = sum(lag != first for lag in tops)
    reason = f"{evidence.shown}; at t2 heads look most at lag {' '.join(map(str, tops))}"
    return Comparison("one head", f"{left} of {len(tops)}", "exact", left == 1 and second in tops, reason)


def _reach(evidence: Evidence) -> Comparison:
    """At the end so many lags have most of some head's attention as there are heads; heads may instead share or pool lags."""
    last = evidence.heads.mass[-1]
    expected, held = min(last.shape), int(np.sum(last.max(axis=0) >= MOST))
    looks = " ".join(f"{lag} ({share:.2f})" for lag, share in zip(evidence.heads.tops(-1), last.max(axis=1), strict=True))
    reason = f"{evidence.shown}; at the end heads look most at lag {looks}"
    if not evidence.settled:
        return Comparison(expected, held, 0, None, f"{reason}, and attention still moves")
    if held != expected and (len(evidence.acquired) < 2 or not evidence.long):
        why = "heads have not parted" if len(evidence.acquired) < 2 else "the last lag came late in the run"
        return Comparison(expected, held, 0, None, f"{reason}; {why}, so more may follow: {_MORE}")
    return Comparison(expected, held, 0, held == expected, reason)


CLAIMS = (
    Claim(
        tag="ISA:text-order",
        statement="on a text, lags are acquired in the order of the information they add",
        regime=_seen,
        compare=_order,
        shown=("t1", "t*"),
    ),
    Claim(
        tag="ISA:text-competition",
        statement="all heads first look at the most informative lag",
        regime=_several,
        compare=_competition,
        shown=("t1",),
    ),
    Claim(
        tag="ISA:text-level",
        statement="before the second lag the loss rests where the first lag alone leaves it",
        regime=_seen,
        compare=_level,
        shown=("t1", "t2"),
    ),
    Claim(
        tag="ISA:text-parting",
        statement="heads leave the first lag one at a time",
        regime=_several,
        compare=_parting,
        shown=("t1", "t2"),
    ),
    Claim(
        tag="ISA:text-reach", statement="every head ends with a lag of its own", regime=_several, compare=_reach, shown=("end",)
    ),
)
