"""Claims of focus and dilution on the whole run: order, dilution, recurrence, and the saddle path from its start."""

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from stagescope.claims.comparison import Comparison, Regime, agreement, not_applicable, regime_of, undecided
from stagescope.detect.events import around, first_crossing
from stagescope.detect.noise import flutter
from stagescope.landscape.saddle_path import SaddlePath, plain_time
from stagescope.papers.focus_dilution.claims_saddles import claim, flow_claim, redistribution
from stagescope.papers.focus_dilution.evidence import Evidence, reaching_second, small_flow, visited
from stagescope.papers.focus_dilution.head_prediction import rows_named
from stagescope.papers.focus_dilution.limits import LIMITS
from stagescope.papers.focus_dilution.loss import MOST_BY_LOOPS
from stagescope.papers.focus_dilution.model import LazyChain
from stagescope.papers.focus_dilution.stages import RowCycle, row_cycles, row_turns

# Focus and dilution: claims on the order of the openings, on dilution, and on whether the cycle repeats.


@flow_claim("FD:stages", small_flow)
def _order(evidence: Evidence) -> Comparison:
    """Attention opens at Q1, or at its onset where a weakly driven chain never reaches .1."""
    first, second = evidence.openings["E1"], evidence.second
    attention_time = min((t for t in (evidence.openings["Q1"], evidence.onset) if t is not None), default=None)
    if first is None or second is None or attention_time is None:
        absent = "E1" if first is None else "E2" if second is None else "the opening of attention"
        return undecided(f"{absent} was not reached", "E1 < onset of attention < E2", "order", "t")
    times = f"E1 {first:.4g}, attention {attention_time:.4g}, E2 {second:.4g}"
    return Comparison("E1 < onset of attention < E2", times, "order", first < attention_time < second, times, unit="t")


def _cycles(evidence: Evidence) -> list[RowCycle]:
    """Focus and dilution of every rare row between E1 and E2, however small its gain."""
    curves = evidence.curves
    first, second = evidence.openings["E1"], evidence.second
    assert first is not None
    window = (first, float(curves.time[-1]) if second is None else second)
    return [cycle for cycle in row_cycles(curves, LIMITS.flow_noise, window=window) if cycle.row != curves.frequent]


def _driven(evidence: Evidence) -> np.ndarray | None:
    """By how much second order changes the embedding of each row along the condensed direction, relative to the largest.

    Negative is towards zero. Read where D is smallest above the start; None where D does not come so far.
    """
    visit = evidence.visit(1, 0)
    if visit is None or evidence.linear is None:
        return None
    after = np.flatnonzero(np.abs(redistribution(evidence, visit)) >= LIMITS.mark)
    if not after.size:
        return None
    w = evidence.linear.second_order(visit.trajectory.at(int(after[0])))["W0"] @ visit.place.S[0]
    share = w / (evidence.curves.params["W0"][visit.frame] @ visit.place.S[0])
    return share / np.abs(share).max()


def _both(evidence: Evidence) -> Regime:
    """The paper's setting: a flow from a small start on a lazy chain that stays at (1,0) and lasts until E2."""
    base = visited(1, 0)(evidence)
    if base.holds and not isinstance(evidence.law.process, LazyChain):
        return Regime(False, "not a lazy chain: on others rows keep their focus beyond E2 more often than not")
    base = reaching_second(evidence) if base.holds else base
    driven = _driven(evidence) if base.holds else None
    if driven is not None and not any(driven[cycle.row] < 0 for cycle in _cycles(evidence)):
        return Regime(False, "second order moves no rare row towards zero: there is nothing to dilute")
    return base


@flow_claim("FD:dilution", _both)
def _dilution(evidence: Evidence) -> Comparison:
    """Rows that should be diluted before E2, those whose embedding second order moves towards zero, and rows that were.

    A row that returns to its base must do so when its embedding crosses zero. A mismatch in a row that second order moves
    less than half as fast as the fastest decides nothing: its time is that of the others, and it may need twice as long.
    """
    second, driven, unit = evidence.second, _driven(evidence), "rows"
    if second is None or driven is None or evidence.openings["E1"] is None:
        return undecided("E2 was not reached, or the embeddings did not move", "-", 0.0, unit)
    cycles = _cycles(evidence)
    gone = {cycle.row for cycle in cycles if cycle.half is not None and cycle.half <= second}
    should = {cycle.row for cycle in cycles if driven[cycle.row] < 0}
    wrong = sorted(gone ^ should)
    meetings = [_meeting(evidence, cycle, second) for cycle in cycles]
    gap, doubt = (max((meeting[i] for meeting in meetings), default=0.0) for i in (0, 1))
    reason = f"{len(should & gone)} of {len(should)} rows that second order moves towards zero lost half of their gain before E2"
    reason += f", and {len(gone - should)} of {len(cycles) - len(should)} others"
    reason += f"; rows return to their base within {gap:.2%} of the time at which gamma_i crosses zero"
    clear = [row for row in wrong if abs(driven[row]) >= LIMITS.clear_dilution]
    holds = False if clear or gap - doubt > LIMITS.meeting else None if wrong or gap + doubt > LIMITS.meeting else True
    reason += f"; second order moves {rows_named(wrong)} too slowly to decide" if holds is None and wrong else ""
    reason += f"; a second direction moves these times by up to {doubt:.1%}" if holds is None and doubt >= 0.0005 else ""
    return Comparison(float(len(should)), float(len(gone)), 0.0, holds, reason, unit=unit)


def _meeting(evidence: Evidence, cycle: RowCycle, second: float) -> tuple[float, float]:
    """The time between a row's return to its base and the zero of its embedding, relative, and its error; 0 without a return.

    The error: a second direction of size sv_2(W0) moves the return by about sv_2 over the speed of the embedding.
    """
    if cycle.focus is None or cycle.complete is None or cycle.complete > second:
        return 0.0, 0.0
    curves, first = evidence.curves, evidence.openings["E1"]
    assert first is not None
    time, w0 = curves.time, curves.params["W0"]
    # The embedding of the row along the condensed direction, in every frame.
    gamma = w0[:, cycle.row] @ np.linalg.svd(w0[int(np.searchsorted(time, first))], full_matrices=False)[2][0]
    sign = float(np.sign(np.interp(cycle.focus, time, gamma)))
    zero = first_crossing(time, sign * gamma, 0.0, rising=False, after=cycle.focus)
    if zero is None:
        return 1.0, 0.0
    speed = abs(float(np.interp(zero, time, np.gradient(gamma, time))))
    shift = float(np.interp(zero, time, curves.embedding_values[:, 1])) / max(speed, np.finfo(float).tiny)
    return abs(cycle.complete - zero) / cycle.complete, shift / cycle.complete


def _repeated(evidence: Evidence, token: int) -> set[int]:
    """Rows whose attention on a token rises and then falls after E2, each by more than .03.

    On the most frequent token it falls first where c < 0. Attention on the others moves the other way in the first cycle.
    """
    curves, frequent = evidence.curves, evidence.curves.frequent
    first = curves.sign * (1 if token == frequent else -1)
    up = first > 0 or token != frequent
    turns = list(row_turns(curves, curves.attention[:, :, token], evidence.openings["E1"], evidence.second, first))
    moves = {row: [turn.rising == up for turning_row, turn in turns if turning_row == row] for row, _ in turns}
    return {row for row, rises in moves.items() if any(one and not following for one, following in pairwise(rises))}


def _diluted_before(evidence: Evidence) -> Regime:
    """E2 was reached, some rare row had focused and lost half of its gain by then, and a third direction can still open.

    Logits have d - 1 directions, since a constant does not change them: with three tokens all are open at E2.
    """
    base, model = reaching_second(evidence), evidence.law.model
    if not base.holds:
        return base
    directions = min(model.width, model.vocab - 1)
    if directions < 3:
        return Regime(False, f"{directions} embedding directions are possible: after E2 none is left to open")
    second = evidence.second or 0.0
    cycles = [cycle for cycle in _cycles(evidence) if cycle.half is not None and cycle.half <= second]
    return base if cycles else Regime(False, "no rare row focused and lost half of its gain before E2")


@flow_claim("FD:recurrence", _diluted_before)
def _recurrence(evidence: Evidence) -> Comparison:
    """Rows that focus on some token and dilute after E2. A later direction need not single out the most frequent token."""
    curves, unit = evidence.curves, "rows"
    if evidence.second is None:
        return undecided("E2 was not reached", 1.0, "at least", unit)
    again = sorted(set().union(*(_repeated(evidence, token) for token in range(len(curves.pi)))))
    end, over = float(curves.time[-1]), _gained(evidence) >= 1 - LIMITS.negligible
    verb = "focus and dilute" if len(again) > 1 else "focuses and dilutes"
    reason = f"{rows_named(again)} {verb} again between E2 and {evidence.run.clock} = {end:.4g}"
    holds = True if again else False if over else None
    reason += "" if holds is not None else "; the loss still falls, so a second cycle may come"
    return Comparison(1.0, float(len(again)), "at least", holds, reason, unit=unit)


def _focus_on(evidence: Evidence, token: int, rows: np.ndarray) -> tuple[int, float, float] | None:
    """The row that gains most attention on a token and then loses half of the gain, with its gain and the time of its peak."""
    curves, best = evidence.curves, None
    on_token = curves.attention[:, :, token]
    for row in rows.tolist():
        gain = on_token[:, row] - curves.pi[token]
        top = int(np.argmax(gain))
        noisy = getattr(curves.law, "batch", None) is not None
        least = max(LIMITS.turn, LIMITS.records * float(flutter(curves.time, gain)[top]) if noisy else 0.0)
        if gain[top] > least and gain[top:].min() < gain[top] / 2 and (best is None or gain[top] > best[1]):
            best = row, float(gain[top]), float(curves.time[top])
    return best


def _many_tokens(evidence: Evidence) -> Regime:
    """A lazy chain, each token twice as frequent as the next, and a run of any optimiser from attention at these frequencies."""
    pi, chain = np.sort(evidence.pi)[::-1], evidence.law.process
    if not isinstance(chain, LazyChain) or len(pi) < 3 or chain.persistence <= 0:
        return not_applicable("applies only to lazy chains of three tokens or more that repeat more often than chance")
    if len(pi) > MOST_BY_LOOPS:
        return not_applicable(f"with more than {MOST_BY_LOOPS} tokens attention on each of them is not kept")
    nearest = float(np.min(pi[:-1] / pi[1:]))
    separate = nearest >= LIMITS.separated, f"a token is {nearest:.3g} times as frequent as the next, below {LIMITS.separated:g}"
    off = float(np.abs(evidence.curves.attention[0] - evidence.pi).max())
    flat = off <= LIMITS.level, f"attention at the start is {off:.2g} from the frequencies of the tokens"
    return regime_of(
        separate,
        flat,
        holds=f"each token is at least {nearest:.3g} times as frequent as the next; attention starts at these frequencies",
    )


@claim("FD:token-cycles", _many_tokens)
def _token_cycles(evidence: Evidence) -> Comparison:
    """For each token but the most frequent and the rarest: some rarer row focuses on it and lets go, later for rarer tokens."""
    order, unit = np.argsort(-evidence.pi, kind="stable"), "tokens"
    by_token = {token: _focus_on(evidence, token, order[place + 2 :]) for place, token in enumerate(order[1:-1].tolist())}
    cycles = {token: cycle for token, cycle in by_token.items() if cycle is not None}
    parts = [f"token {token} by row {row}, +{gain:.2f} at {time:.4g}" for token, (row, gain, time) in cycles.items()]
    reason = f"focus and dilution on {'; on '.join(parts)}" if parts else "no row focuses on a token but the most frequent"
    absent = [str(token) for token in by_token if token not in cycles]
    swapped = any(late[2] <= early[2] for early, late in pairwise(cycles.values()))
    reason += f"; not on {', '.join(absent)}" if absent else ""
    reason += "; not in the order of frequency" if swapped else ""
    good, gained = not absent and not swapped, _gained(evidence)
    learned = gained >= 1 - LIMITS.negligible
    holds = True if good and gained >= LIMITS.learned_share else False if not good and learned else None
    reason += "" if good or learned else "; the loss still falls, so more may come"
    reason += "; the loss has not fallen, so nothing was learned in turn" if good and holds is None else ""
    return Comparison(float(len(by_token)), float(len(cycles)), "all, in order", holds, reason, unit=unit)


def _gained(evidence: Evidence) -> float:
    """The share of what the context can tell that the loss has gained: 1 at the entropy rate, 0 without context."""
    chain, curves = evidence.law.process, evidence.curves
    final = evidence.law.value({name: block[-1] for name, block in curves.params.items()})
    return (chain.unigram_loss() - final) / (chain.unigram_loss() - chain.floor())


# Focus and dilution before the run: the saddle path from its start against what it did.


def room(start: float) -> float:
    """The relative tolerance of a time: .05 at 1e-3, a fifth of it at 1e-4 and below, and a power of the start between them."""
    return float(np.clip(LIMITS.path_times * (start / 1e-3) ** 0.7, LIMITS.path_times / 5, LIMITS.path_times))


@dataclass(frozen=True)
class Beside:
    """A path beside the openings of a run that ends at `end`.

    `due` are events that must have come by then, `possible` those that may have; both with their intervals and tolerance.
    """

    path: SaddlePath
    times: dict[str, float]
    end: float
    room: float

    @classmethod
    def of(cls, evidence: Evidence) -> "Beside | None":
        path = evidence.predicted[0] if evidence.scale <= LIMITS.path_start else None
        if path is None:
            return None
        times = {name: time for name, time in evidence.openings.items() if time is not None}
        return cls(path, times, evidence.end, room(evidence.scale))

    def predicted(self, name: str) -> tuple[float, float, float] | None:
        """Time, low and high; None for an event that is not predicted."""
        event = self.path.events[name]
        return None if event.t is None or event.low is None or event.high is None else (event.t, event.low, event.high)

    @property
    def due(self) -> list[str]:
        return [
            name
            for name in self.path.sequence
            if (interval := self.predicted(name)) and interval[2] + self.room * interval[0] < self.end
        ]

    @property
    def possible(self) -> list[str]:
        return [
            name
            for name in self.path.sequence
            if (interval := self.predicted(name)) and interval[1] - self.room * interval[0] <= self.end
        ]

    @property
    def came(self) -> list[str]:
        """Events of the run, in order of time."""
        return sorted(self.times, key=lambda name: self.times[name])

    @property
    def missing(self) -> list[str]:
        """Events that must have come and did not."""
        return [name for name in self.due if name not in self.times]

    @property
    def excluded(self) -> list[str]:
        """Events that came though the path says that they never come, or later; in order of time."""
        early = {name for name, time in self.times.items() if time < (1 - self.room) * self.path.events[name].beyond}
        return [name for name in self.came if name not in self.possible and (self.predicted(name) or name in early)]

    @property
    def ahead(self) -> str:
        """What is predicted after the end of the run."""
        late = [f"{name} at {self.path.events[name].t:.4g}" for name in self.path.sequence if name not in self.possible]
        return f"; not reached yet, predicted after the end: {', '.join(late)}" if late else ""


def _regime(further: Callable[[Beside], str]) -> Callable[[Evidence], Regime]:
    """A population flow from a start of rms 1e-3 or less that has a path, and what `further` asks: a sentence where it fails."""

    def regime(evidence: Evidence) -> Regime:
        small = f"initial rms {evidence.scale:.1e} is above {LIMITS.path_start:g}, where directions open together"
        base = small_flow(evidence)
        if not base.holds or evidence.scale > LIMITS.path_start:
            return Regime(False, small) if base.holds else base
        pair = Beside.of(evidence)
        reason = evidence.predicted[1] if pair is None else further(pair)
        return Regime(not reason, reason or f"flow from a start of rms {evidence.scale:.1e}")

    return regime


def _long_enough(pair: Beside) -> str:
    if len(pair.due) >= LIMITS.events or pair.excluded:
        return ""
    return f"{len(pair.due)} events are predicted before the end of the run, and a sequence needs {LIMITS.events}{pair.ahead}"


def _two_due(pair: Beside) -> str:
    """E1 alone shows the rate at the origin, which does not depend on how tokens follow each other."""
    few = len(pair.due) < 2 and not pair.excluded
    return f"fewer than 2 events are predicted before the end of the run{pair.ahead}" if few else ""


@flow_claim("FD:predicted-sequence", _regime(_long_enough))
def _sequence(evidence: Evidence) -> Comparison:
    """Exactly the events that are predicted by the end of the run, in their order; intervals that overlap leave it open."""
    pair = Beside.of(evidence)
    assert pair is not None
    order = [name for name in pair.came if pair.predicted(name)]
    expected = [name for name in pair.path.sequence if name in pair.due or name in order]
    swapped = [(a, b) for i, a in enumerate(order) for b in order[i + 1 :] if expected.index(a) > expected.index(b)]
    ends = {
        name: (-np.inf if event.low is None else event.low, np.inf if event.high is None else event.high)
        for name, event in pair.path.events.items()
    }
    clear = [(a, b) for a, b in swapped if ends[a][0] > ends[b][1]]
    faults = [f"{name} did not come" for name in pair.missing]
    faults += [f"{name} came, which is not predicted by then" for name in pair.excluded]
    faults += [f"{a} came before {b}" for a, b in clear]
    holds = False if faults else None if swapped else True
    doubt = [f"the intervals of {b} and {a} overlap, and they came the other way round" for a, b in swapped]
    reason = "; ".join(faults or doubt) or f"{len(order)} events in the order predicted"
    return Comparison(" ".join(expected), " ".join(pair.came), "the same sequence", holds, f"{reason}{pair.ahead}")


@flow_claim("FD:predicted-times", _regime(_two_due))
def _times(evidence: Evidence) -> Comparison:
    """The event that is furthest off, in tolerances; all must be within theirs, and one that is missing has not come in time."""
    pair = Beside.of(evidence)
    assert pair is not None
    compared = {name: _time(evidence, pair, name) for name in pair.path.sequence if name in pair.times}
    for name in pair.missing:
        t, low, high = pair.predicted(name) or (0.0, 0.0, 0.0)
        words = f"{name}, predicted at {t:.4g}, has not come by {pair.end:.4g}"
        compared[name] = Comparison(t, None, pair.room * t, False, words, (high - low) / 2, unit="t")
    for name in pair.excluded:
        words = f"{name} came at {pair.times[name]:.4g}, and is not predicted by then"
        compared[name] = Comparison(None, pair.times[name], None, False, words, unit="t")
    worst = max(compared, key=lambda name: _off(compared[name]))
    verdicts = {result.holds for result in compared.values()}
    holds = False if False in verdicts else None if None in verdicts else True
    listed = ", ".join(f"{name} {_number(result.measured)} ({_number(result.predicted)})" for name, result in compared.items())
    worst_result = compared[worst]
    reason = f"worst at {worst}: {worst_result.reason}; measured (predicted): {listed}{pair.ahead}"
    return Comparison(
        worst_result.predicted,
        worst_result.measured,
        worst_result.tolerance,
        holds,
        reason,
        worst_result.predicted_error,
        worst_result.measured_error,
        "t",
    )


def _time(evidence: Evidence, pair: Beside, name: str) -> Comparison:
    measured, (t, low, high) = pair.times[name], pair.predicted(name) or (0.0, 0.0, 0.0)
    before, after = around(evidence.time, measured)
    errors: Any = {"predicted_error": (high - low) / 2, "measured_error": (after - before) / 2}
    return agreement(t, measured, pair.room * t, f"measured/predicted = {measured / t:.4f}", **errors, unit="t")


def _off(compared: Comparison) -> float:
    """By how many tolerances a time is off; without a measurement by more than any."""
    if not isinstance(compared.measured, float) or not isinstance(compared.predicted, float):
        return np.inf
    return abs(compared.measured - compared.predicted) / float(compared.tolerance or 1.0)


def _number(value: float | str | None) -> str:
    return f"{value:.4g}" if isinstance(value, float) else "-"


def _stops(evidence: Evidence) -> Regime:
    """The path ends above the floor of the loss with events that are absent, and the run is long enough to show it."""
    pair, chain = Beside.of(evidence), evidence.law.process
    if pair is not None and not any(event.absent for event in pair.path.events.values()):
        return not_applicable("applies only where the path says of an event that it does not come")
    if pair is not None and pair.path.legs[-1].loss - chain.floor() <= LIMITS.negligible * (chain.unigram_loss() - chain.floor()):
        return not_applicable("applies only to paths that end above the floor of the loss")
    return _regime(_short)(evidence)


def _short(pair: Beside) -> str:
    last = max([0.0, *(event.t or 0.0 for event in pair.path.events.values())])
    horizon = min(event.beyond for event in pair.path.events.values() if event.absent)
    bound = f"before {LIMITS.no_further_event:g} times that of the last event, {last:.4g}"
    if horizon < LIMITS.no_further_event * last:
        return f"the end of the path is known up to t={plain_time(horizon)}, {bound}"
    return "" if pair.end >= LIMITS.no_further_event * last else f"the run ends at t={plain_time(pair.end)}, {bound}"


@flow_claim("FD:critical-scale", _stops)
def _critical(evidence: Evidence) -> Comparison:
    """Of the events that are absent none has come while the path is known, and all others have."""
    pair = Beside.of(evidence)
    assert pair is not None
    absent = [name for name, event in pair.path.events.items() if event.absent]
    expected, events = (" ".join(names) or "no event" for names in (pair.due, pair.came))
    reason = next(event.reason for event in pair.path.events.values() if event.absent)
    kinds = ((pair.excluded, "came"), (pair.missing, "did not come"))
    faults = [f"{', '.join(names)} {verb}" for names, verb in kinds if names]
    words = "; ".join(faults) or f"none of {', '.join(absent)} has come by t={plain_time(pair.end)}"
    return Comparison(expected, events, "the same events", not faults, f"{words}; the path ends: {reason}")
