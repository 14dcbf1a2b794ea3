"""The stages of focus and dilution [FD:stages]. Row I is the attention of query type I on the most frequent token, of law pi.

E_k, Q_k          the k-th singular value of W0 or of Phi passes .1, or three times the largest at the start where that is more:
                  an embedding or attention direction opens (`opening_levels`)
onset             sv_1(WQ WK^T) last passes ten times its initial value before E2; weakly driven chains have an onset but no Q1
upI               row I passes pi + (1 - pi)/2, half of what it can gain: a total focus, which gradient flow does not reach
focusI            row I is largest between E1 and E2 (smallest where attention first moves away), above the noise; a row that
                  still rises at E2 is followed until it has lost half of its gain. Under Adam and its like, which take every row
                  a way of its own: where row I is farthest from pi before it has lost half of that, whenever E2 comes
dilutionI         after its focus, row I has lost half of its gain
returnI           after its focus, row I is back at its base pi
refocusI          after E2 and the return: the top of a rise of row I by more than .03 and the noise
redilutionI       the bottom of such a fall; the frequent token's own row can have one, it has none in the first cycle
refocusI.2, ...   the second and later ones of a row
selfK             token K gives itself more than half of its attention
onKupI, onKfocusI, onKdilutionI, onKreturnI
                  the same of the attention of row I on another token K, where it passes pi_K + (1 - pi_K)/2: a cycle on token K
onKupI.2, ...     the second and later ones, each after a return of the row to pi_K
"""

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from stagescope.core.params import Params
from stagescope.detect.events import BRIEF, Turn, around, first_crossing, peak, turns
from stagescope.detect.noise import TWO_SIDED, averaged, delay, flutter
from stagescope.detect.stage import Event, Stage, Stages
from stagescope.papers.focus_dilution.limits import LIMITS
from stagescope.papers.focus_dilution.loss import TokenLoss
from stagescope.papers.focus_dilution.observables import TokenCurves, by_event

# Rows of attention: focus and dilution of each in the first cycle, and their turns after it [FD:stages].


@dataclass(frozen=True)
class RowCycle:
    """Focus and dilution of one query row in the first cycle; times are None where not reached.

    `half` is when half of the gain is lost, `complete` when the row is back at its base, `up` when its focus became total.
    `sign` is -1 where the row moves away from the frequent token; `gain` is counted that way, `height` is its largest attention.
    """

    row: int
    gain: float
    focus: float | None
    half: float | None
    complete: float | None
    up: float | None = None
    sign: float = 1.0
    height: float = math.nan


@dataclass(frozen=True)
class TokenCycle:
    """A total focus of one row on one token, and its end; `turn` counts those of this row and token from 1.

    `peak` is the time at which the row gives the token most, `height`; then it has lost half of its gain (`down`), gives it less
    than half of its attention (`half`), and is back at the frequency of the token (`back`). None where not reached.
    """

    row: int
    token: int
    turn: int
    up: float
    peak: float | None
    height: float
    down: float | None
    half: float | None
    back: float | None

    @property
    def end(self) -> float | None:
        """When the row looks at other tokens."""
        return self.half if self.half is not None else self.back


@dataclass(frozen=True)
class Stay:
    """A stay with r open embedding and rq open attention directions; `stop` is None where the run ended in it."""

    r: int
    rq: int
    start: float
    stop: float | None

    @property
    def label(self) -> str:
        return f"({self.r},{self.rq})"

    @property
    def brief(self) -> bool:
        """Whether it lasted less than a hundredth of the time passed."""
        return self.stop is not None and self.stop - self.start < BRIEF * self.stop


def row_cycles(
    curves: TokenCurves, least: float = LIMITS.gain, noisy: bool = False, window: tuple[float, float] | None = None
) -> list[RowCycle]:
    """First-cycle focus and dilution of every row, the frequent token's own included, from its attention on that token.

    With a window (E1, E2), of flows: all rows go the way of c, and a focus is the largest move inside by more than `least`; a
    row that still rises at E2 is followed until it has lost half of its gain. Without one, of steps that divide by the history
    of each entry: a row goes its own way, and its focus is the largest move until half of it is lost. Where steps see batches,
    a focus must also stand above the noise between records.
    """
    time, base = curves.time, float(curves.pi[curves.frequent])
    cycles, begin = [], -np.inf if window is None else window[0]
    since = np.flatnonzero(time >= begin)
    for row, attention in enumerate(curves.on_frequent.T):
        noise = LIMITS.records * flutter(time, attention) if noisy else np.zeros(len(time))
        up = first_crossing(time, attention, total_level(base), rising=True, after=max(begin, float(time[0])))
        if window is None:
            sign, lowest, up = _own_way(time, attention, base, up, least, noise)
        else:
            sign, lowest, up = curves.sign, least, up if curves.sign > 0 and since.size else None
        gains = sign * (attention - base)
        inside = since if window is None else since[time[since] <= window[1]]
        if window is None or noisy:
            inside = inside[: _first_fall(gains, inside, np.maximum(lowest, noise))]
        top = int(inside[np.argmax(gains[inside])]) if inside.size else 0
        if window is not None and inside.size and top == inside[-1]:  # the second direction opens while the row still rises
            inside = since[: _first_fall(gains, since, np.maximum(lowest, noise))]
            top = int(inside[np.argmax(gains[inside])])
        gain = float(gains[top]) if inside.size else 0.0
        turned = inside.size > 0 and inside[0] < top < len(time) - 1 and gain > max(least, noise[top])
        refined = peak(time[top - 1 : top + 2], gains[top - 1 : top + 2]) if turned else None
        height = float(attention[inside].max()) if inside.size else base
        if refined is None:
            cycles.append(RowCycle(row, gain, None, None, None, up, sign, height))
            continue
        half, back = (first_crossing(time, gains, level, rising=False, after=refined[0]) for level in (gain / 2, 0.0))
        up = up if up is not None and up <= refined[0] else None
        cycles.append(RowCycle(row, gain, refined[0], half, back, up, sign, height))
    return cycles


def _own_way(
    time: np.ndarray, attention: np.ndarray, base: float, up: float | None, least: float, noise: np.ndarray
) -> tuple[float, float, float | None]:
    """Which way a row first goes, the least move that counts, and when its focus became total, if it did.

    A row that passes half of what it can gain before it has lost half of its base goes up, and what it did before is no focus of
    its own; the other way round it goes away. One that does neither goes where it first moves clearly.
    """
    away = first_crossing(time, attention, (1 - LIMITS.total) * base, rising=False)
    if up is not None and (away is None or up < away):
        return 1.0, LIMITS.total * (1 - base), up
    shift = attention - base
    clear = np.flatnonzero(np.abs(shift) > np.maximum(LIMITS.turn, noise))
    record = int(clear[0]) if clear.size else int(np.argmax(np.abs(shift)))
    sign = -1.0 if shift[record] < 0 else 1.0
    return sign, LIMITS.total * base if sign < 0 and away is not None else least, None


def _first_fall(moved: np.ndarray, inside: np.ndarray, floor: np.ndarray) -> int:
    """How many of the records lie before a gain above the floor is first lost by half: it may later be exceeded again."""
    highest = np.maximum.accumulate(np.where(moved[inside] > floor[inside], moved[inside], 0.0))
    fallen = np.flatnonzero((highest > 0) & (moved[inside] < highest / 2))
    return int(fallen[0]) if fallen.size else len(inside)


def total_level(base: float) -> float:
    """The attention from which a focus is total: half of what a row can gain above the frequency of the token."""
    return base + LIMITS.total * (1 - base)


def token_cycles(curves: TokenCurves) -> list[TokenCycle]:
    """Every total focus of a row on another token, by the time at which it begins.

    With more tokens than are kept in matrices, of the most frequent token alone.
    """
    cycles = []
    for token, base in enumerate(curves.pi.tolist()):
        attention = curves.on_token(token)
        rows = () if attention is None else range(attention.shape[1])
        for row in rows:
            if attention is not None and row != token:
                cycles += _cycles_on(curves.time, attention[:, row], base, row, token)
    return sorted(cycles, key=lambda cycle: cycle.up)


def _cycles_on(time: np.ndarray, curve: np.ndarray, base: float, row: int, token: int) -> Iterator[TokenCycle]:
    """The total focuses of one row on one token, each after a return to the frequency of the token."""
    since, turn = float(time[0]), 1
    while since is not None and (up := first_crossing(time, curve, total_level(base), rising=True, after=since)) is not None:
        gain = curve[(records := np.flatnonzero(time >= up))] - base
        fallen = np.flatnonzero(gain < np.maximum.accumulate(gain) / 2)
        top = int(records[np.argmax(gain[: fallen[0] if fallen.size else len(gain)])])
        near = slice(max(top - 1, 0), top + 2)
        peak_time, height = peak(time[near], curve[near]) or (None, float(curve[top]))
        after = up if peak_time is None else peak_time
        levels = base + (height - base) / 2, LIMITS.total, base
        down, half, back = (first_crossing(time, curve, level, rising=False, after=after) for level in levels)
        yield TokenCycle(row, token, turn, up, peak_time, height, down, half, back)
        since, turn = back, turn + 1


def row_turns(
    curves: TokenCurves,
    attention: np.ndarray,
    first: float | None,
    second: float | None,
    sign: float,
    noisy: bool = False,
    rows: Sequence[RowCycle] = (),
) -> Iterator[tuple[int, Turn]]:
    """Rises and falls of every row after E2 (`second`), by row; where steps see batches, those of its local mean.

    Rows first go the way of their cycle in `rows`, and of `sign` where they have none there.

    A return that began before E2 belongs to the first cycle, except in the frequent token's own row, which has none in it. So
    does all up to the return of one of `rows` that has its focus only after E2.
    """
    if first is None or second is None:
        return
    time = curves.time
    since, second_time = max(0, int(np.searchsorted(time, first)) - 1), second
    late = {cycle.row: cycle for cycle in rows if cycle.focus is not None and cycle.focus > second_time}
    signs = {cycle.row: cycle.sign for cycle in rows}
    for row in range(attention.shape[1]):
        second = second_time
        if row in late:
            if (returned := late[row].complete) is None:
                continue
            second = returned
        curve, error = averaged(time, attention[:, row]) if noisy else (attention[:, row], None)
        inside = np.arange(len(time)) >= since if error is None else time >= max(time[since], second)
        if not inside.any():
            continue
        inside_error = None if error is None else error[inside]
        for turn in turns(time[inside], curve[inside], LIMITS.turn, LIMITS.gain, inside_error):
            begun = turn.start < second
            if (turn.stop is not None and turn.stop <= second) or (
                begun and row != curves.frequent and turn.rising == (signs.get(row, sign) < 0)
            ):
                continue
            level = float(np.interp(second, time, curve))
            later = replace(turn, start=second, before=level) if begun else turn
            if abs(later.after - later.before) > LIMITS.turn:
                yield row, later


# Events of focus and dilution as estimates: how far the recording, and other draws of the data, would move them [FD:stages].
#
# An opening starts where the one before it ended, so its delay adds to theirs: along the openings in order of time variances
# add. An event of a row is as late as the last opening before it, and has an error of its own. Focus and dilution of a row are
# reached while the first score grows: their error is that of its walk up to them, not only up to Q1.

Times = Mapping[str, float | None]
Turns = Mapping[str, tuple[int, Turn]]
"""Turns of rows after E2 by the name of their event, each with its row."""
FIRST_CYCLE = ("up", "focus", "dilution", "return")


@dataclass(frozen=True)
class Draws:
    """What other draws of the data would change.

    Args:
        batches: each step sees a batch, so the curves themselves are noisy.
        memory: records nearer than this in time see steps that remember each other.
        sample: 95 % half-widths by event, from runs on other samples of the same size; empty where nothing is drawn.
        companions: what these runs are, in words.
    """

    batches: bool = False
    memory: float = 0.0
    sample: Mapping[str, float] = field(default_factory=dict)
    companions: str = ""

    @property
    def how(self) -> str:
        parts = ["the spacing of records"]
        parts += ["the noise of batches in this run"] if self.batches else []
        parts += [self.companions] if self.companions else []
        return "interval from " + " and ".join(parts)


EXACT = Draws()


def _estimates(
    curves: TokenCurves, times: Times, begun: set[str], rows: Sequence[RowCycle], named: Turns, draws: Draws
) -> dict[str, Event]:
    """Every event with its interval; `begun` are openings that are there at the start.

    Errors from batches and from the sample are the event's own, or those of the last opening before it.
    """
    chain: dict[str, float] = {}
    errors: dict[str, float] = {}
    if draws.batches:
        # 95 % half-widths of the openings from the noise of batches, added along the openings.
        since, total = 0.0, 0.0
        for time, name in sorted((time, name) for name, time in times.items() if time is not None and _opening(name)):
            late = delay(curves.time, _logs(curves, name), math.log(curves.levels[name]), time, since=since, apart=draws.memory)
            total = math.hypot(total, late)
            chain[name], since = total, time
        errors = {**_hovering(curves, times), **_own_errors(curves, times, rows, named, draws), **_passing_errors(curves, times)}
    estimates = {}
    for name, time in times.items():
        if name in begun:
            estimates[name] = Event.missing("at the start", _at_start(name, curves))
        elif time is None:
            estimates[name] = Event.missing(how=draws.how)
        else:
            last = name if _opening(name) else _last_opening(times, time)[1]
            sample = draws.sample.get(name, draws.sample.get(last, 0.0))
            if name.startswith(FIRST_CYCLE):
                last = _last_opening(times, time, but="Q1")[1]
            half = math.hypot(chain.get(last, 0.0), errors.get(name, 0.0), sample)
            low, high = around(curves.time, time)
            estimates[name] = Event(time, max(0.0, min(low, time - half)), max(high, time + half), how=draws.how)
    return estimates


def _at_start(name: str, curves: TokenCurves) -> str:
    return f"above {curves.levels[name]:.3g} at the start" if _opening(name) else "attention was there at the start"


def _opening(name: str) -> bool:
    return name[0] in "EQ"


def _logs(curves: TokenCurves, name: str) -> np.ndarray:
    """The logarithm of the singular value of an opening."""
    values = by_event(curves.embedding_values, curves.score_values)[name]
    return np.log(np.maximum(values, 1e-300))


def _hovering(curves: TokenCurves, times: Times) -> dict[str, float]:
    """95 % half-widths of openings from noise that comes back: when the value could first have been at the level, and when
    its noise leaves it above."""
    widths = {}
    for name, time in times.items():
        if time is None or not _opening(name):
            continue
        logs = _logs(curves, name)
        noise, level = TWO_SIDED * flutter(curves.time, logs), math.log(curves.levels[name])
        early, late = (first_crossing(curves.time, logs + sign * noise, level, rising=True) for sign in (1, -1))
        widths[name] = max(time - (time if early is None else early), (time if late is None else late) - time)
    return widths


def _last_opening(times: Times, when: float, but: str = "") -> tuple[float, str]:
    """The last opening until then, with its time; the beginning of the run where there is none."""
    earlier = [
        (time, name) for name, time in times.items() if time is not None and _opening(name) and time <= when and name != but
    ]
    return max(earlier, default=(0.0, ""))


def _own_errors(curves: TokenCurves, times: Times, rows: Sequence[RowCycle], named: Turns, draws: Draws) -> dict[str, float]:
    """95 % half-widths of the onset, from its own walk, and of the events of rows, from noise between records.

    Near a top of height g that falls to half within h, noise s moves the top by h (2 s/g)^(1/2) and the half by 2 h s/g. The
    walk of the first score up to there moves both.
    """
    widths = {name: max((turn.stop or 0.0) - turn.low, turn.high - (turn.stop or 0.0)) for name, (_, turn) in named.items()}
    if (onset := times["onset"]) is not None:
        keys = np.log(np.maximum(curves.key_values[:, 0], 1e-300))
        since = _last_opening(times, onset)[0]
        widths["onset"] = _walk(curves.time, keys, onset, since, draws.memory)
    for cycle in rows:
        if cycle.focus is None:
            continue
        row = curves.on_frequent[:, cycle.row]
        noise = TWO_SIDED * float(np.interp(cycle.focus, curves.time, flutter(curves.time, row))) / cycle.gain
        fall = (float(curves.time[-1]) if cycle.half is None else cycle.half) - cycle.focus
        near = {"focus": (cycle.focus, fall * min(1.0, 2 * noise) ** 0.5), "dilution": (cycle.half, fall * 2 * noise)}
        for kind, (time, error) in near.items():
            if time is not None:
                walk = _walk(curves.time, _logs(curves, "Q1"), time, _last_opening(times, time, but="Q1")[0], draws.memory)
                widths[f"{kind}{cycle.row}"] = math.hypot(error, walk)
    return widths


def _passing_errors(curves: TokenCurves, times: Times) -> dict[str, float]:
    """95 % half-widths of the times at which a row of attention passes a level or turns, from noise between records."""
    widths = {}
    for name, time in times.items():
        kind, row, token = _row_event(name, curves.frequent)
        values = curves.on_self if kind == "self" else curves.on_token(token) if kind else None
        if time is None or values is None or (kind in ("focus", "dilution") and token == curves.frequent):
            continue
        curve = values[:, row]
        slope = abs(float(np.interp(time, curves.time, np.gradient(curve, curves.time))))
        noise = TWO_SIDED * float(np.interp(time, curves.time, flutter(curves.time, curve)))
        widths[name] = min(noise / max(slope, np.finfo(float).tiny), float(curves.time[-1])) if noise else 0.0
    return widths


def _row_event(name: str, frequent: int) -> tuple[str, int, int]:
    """Kind, row and token of the event of a row, such as on1up2.2; "" for every other event."""
    matched = re.fullmatch(r"(?:on(\d+))?(up|focus|dilution|return|self)(\d+)(?:\.\d+)?", name)
    if matched is None:
        return "", 0, 0
    token, kind, row = matched.groups()
    return kind, int(row), frequent if token is None else int(token)


def _walk(time: np.ndarray, logs: np.ndarray, when: float, since: float, apart: float) -> float:
    """The 95 % half-width of the time at which a growing quantity has the value that it has at `when`."""
    return delay(time, logs, float(np.interp(when, time, logs)), when, since=since, apart=apart)


# Why an event of focus and dilution was not reached, one sentence for each.


def _missing_notes(
    curves: TokenCurves,
    rows: Sequence[RowCycle],
    named: Turns,
    cycles: Mapping[str, TokenCycle],
    least: float,
    second: float | None,
    by: str,
) -> dict[str, str]:
    """A note for every event, for the case that it is missing."""
    notes = {"onset": f"attention never grew tenfold {by if second is None else 'before the second embedding direction opened'}"}
    for name, values in by_event(curves.embedding_values, curves.score_values).items():
        notes[name] = f"its singular value reached {values.max():.2e} {by}, below {curves.levels[name]:.3g}"
    total = total_level(float(curves.pi[curves.frequent]))
    for cycle in rows:
        name, largest = str(cycle.row), float(curves.on_frequent[:, cycle.row].max())
        no_focus = f"no focus: the gain {cycle.gain:.2e} of row {name} is not above {least:g} and the noise"
        if cycle.gain > least:
            no_focus = f"row {name} was still moving {by}"
        lasting = f"row {name} kept more than half of its gain {cycle.gain:.3f} {by}"
        notes |= {f"focus{name}": no_focus, f"dilution{name}": no_focus if cycle.focus is None else lasting}
        notes[f"return{name}"] = no_focus if cycle.focus is None else f"row {name} is not back at its base {by}"
        notes[f"up{name}"] = f"no total focus: row {name} reached {largest:.3f} {by}, not {total:.3f} in its first cycle"
    for row, largest in enumerate(curves.on_self.max(axis=0).tolist()):
        notes[f"self{row}"] = f"token {row} gave itself {largest:.3f} at most {by}"
    for name, cycle in cycles.items():
        notes[name] = f"row {cycle.row} gave token {cycle.token} {cycle.height:.3f} and has not come to this {by}"
    no_turn = f"no such turn by more than {LIMITS.turn} after E2 {by}"
    reason = "no second embedding direction opened" if second is None else no_turn
    notes |= {f"{kind}{row}": reason for row in range(len(curves.pi)) for kind in ("refocus", "redilution")}
    for name, (_, turn) in named.items():
        notes[name] = f"in progress: the row moved from {turn.before:.3f} to {turn.after:.3f} {by} and has not turned"
    return notes


# The stages of focus and dilution: when each began and ended, the numbers behind it, and a sentence with them [FD:stages].


def stages_of(
    curves: TokenCurves,
    events: Times,
    ladder: Sequence[Stay],
    rows: Sequence[RowCycle],
    later: Sequence[tuple[int, Turn]],
    cycles: Sequence[TokenCycle] = (),
) -> tuple[Stage, ...]:
    """Condensation, focus, dilution, of the run and of each row; then lifting, one cycle for every further direction, turns.

    The stages of the run come first, then total focuses, with the token as their track, then those of rows, with the row.
    """
    attention_time = events["Q1"] if events["Q1"] is not None else events["onset"]
    stages = [_condensation(curves, events["E1"], attention_time)]
    if attention_time is None:
        return tuple(stages)
    stages += _first_cycle(curves, events, rows, attention_time)
    after = [*_openings(events, ladder), *_total_focuses(cycles), *(_turned(row, turn) for row, turn in later)]
    after.sort(key=lambda stage: stage.start)
    lasting = [stage for stage in stages + after if stage.stop is None or stage.stop > stage.start]
    return tuple(sorted(lasting, key=lambda stage: (stage.track.startswith("row"), stage.track)))


def _condensation(curves: TokenCurves, first: float | None, attention_time: float | None) -> Stage:
    """Facts: at E1 sv_2/sv_1 of W0 and the growth of sv_1(WQ WK^T); the stable rank of W0 midway on the plateau."""
    if first is None:
        return Stage("condensation", 0.0, attention_time, "E1 not reached: no embedding direction has opened", facts={"E1": None})
    time, values, keys = curves.time, curves.embedding_values, curves.key_values[:, 0]
    facts: dict[str, Any] = {"E1": first}
    parts = []
    if values.shape[1] > 1:
        ratio = float(np.interp(first, time, values[:, 1] / np.maximum(values[:, 0], 1e-300)))
        facts["second_over_first"] = ratio
        parts.append(f"sv_2/sv_1 of W0 {ratio:.1e}")
    if keys[0] > 0:
        facts["attention_growth"] = float(np.interp(first, time, keys) / keys[0])
        parts.append(f"sv_1(WQ WK^T) {facts['attention_growth']:.3f} of its start")
    facts["stable_rank"] = float(np.interp(_midway(curves, first, attention_time), time, curves.stable_rank))
    parts.append(f"stable rank {facts['stable_rank']:.3f} midway")
    return Stage("condensation", 0.0, attention_time, f"E1 at {first:.4g}: {', '.join(parts)}", facts=facts)


def _midway(curves: TokenCurves, first: float, attention_time: float | None) -> float:
    """The middle between E1 and the opening of attention, on the plateau of stage I."""
    end = float(curves.time[-1]) if attention_time is None else attention_time
    return (first + max(first, end)) / 2


def _first_cycle(curves: TokenCurves, events: Times, rows: Sequence[RowCycle], attention_time: float) -> list[Stage]:
    """Focus and dilution of the run where its rows agree, otherwise one stage that says so; then those of each row."""
    focused = [cycle for cycle in rows if cycle.focus is not None]
    ways = sorted({cycle.sign for cycle in focused or rows})
    name = _way(ways[-1]) if ways else "focus"
    gains = {str(cycle.row): cycle.sign * cycle.gain for cycle in focused}
    unfocused = [cycle.row for cycle in rows if cycle.focus is None]
    facts = {"gains": gains, "rows_without": unfocused}
    if not focused:
        return [Stage(name, attention_time, events.get("E2"), f"no row has a {name}", facts=facts)]
    peaks = [cycle.focus for cycle in focused if cycle.focus is not None]
    listed = _listed([f"row {row} {gain:+.3f}" for row, gain in gains.items()])
    without = (
        f"; no {name} in row{'s' if len(unfocused) > 1 else ''} {_listed([str(row) for row in unfocused])}" if unfocused else ""
    )
    gained = f"gain of attention on the frequent token: {listed}{without}"
    row_stages = [stage for cycle in focused for stage in _row_stages(cycle, attention_time)]
    halves = [cycle.half for cycle in focused]
    end = None if None in halves else max(half or 0.0 for half in halves)
    sentence, diluted = _diluted(curves, events, focused, attention_time)
    begun = min((half for half in halves if half is not None), default=np.inf)
    orders = []
    if len(ways) > 1:
        up, away = (_listed([str(cycle.row) for cycle in focused if cycle.sign == sign]) for sign in (1.0, -1.0))
        orders.append(f"attention of rows {up} moves to the frequent token, of rows {away} away from it")
    if max(peaks) - begun > BRIEF * max(peaks):
        soonest = min(focused, key=lambda cycle: np.inf if cycle.half is None else cycle.half)
        last = max(focused, key=lambda cycle: cycle.focus or 0.0)
        ends = f"before row {last.row} has its {_way(last.sign)} at {max(peaks):.4g}"
        orders.append(f"row {soonest.row} is diluted at {begun:.4g}, {ends}")
    if orders:
        words = f"rows differ: {'; '.join([*orders, gained, sentence])}"
        return [Stage("rows differ", min(attention_time, *peaks), end, words, facts={**facts, **diluted}), *row_stages]
    return [
        Stage(name, min(attention_time, *peaks), max(peaks), gained, facts=facts),
        Stage("dilution", max(peaks), end, sentence, facts=diluted),
        *row_stages,
    ]


def _way(sign: float) -> str:
    return "focus" if sign > 0 else "defocus"


def _row_stages(cycle: RowCycle, attention_time: float) -> list[Stage]:
    """Focus and dilution of one row, until it has lost half of its gain."""
    assert cycle.focus is not None
    name, gain, track = _way(cycle.sign), cycle.sign * cycle.gain, f"row {cycle.row}"
    facts = {"row": cycle.row, "gain": gain}
    back = "keeps more than half of its gain" if cycle.half is None else "loses half of its gain"
    return [
        Stage(name, min(attention_time, cycle.focus), cycle.focus, f"row {cycle.row} gains {gain:+.3f}", track, facts),
        Stage("dilution", cycle.focus, cycle.half, f"row {cycle.row} {back}", track, {**facts, "back_at_base": cycle.complete}),
    ]


def _diluted(
    curves: TokenCurves, events: Times, focused: Sequence[RowCycle], attention_time: float
) -> tuple[str, dict[str, Any]]:
    """Rows that lost half of their gain; smallest norms of their embeddings and largest entropies of their scores before E2."""
    lost = [cycle for cycle in focused if cycle.half is not None]
    facts: dict[str, Any] = {"rows_diluted": len(lost), "rows_focused": len(focused)}
    sentence = f"{len(lost)} of {len(focused)} rows lost half of their gain"
    first, second = events["E1"], events.get("E2")
    if not lost or first is None:
        return sentence, facts
    time = curves.time
    until = float(time[-1]) if second is None else max(second, *(cycle.half or 0.0 for cycle in lost))
    midway = int(np.searchsorted(time, _midway(curves, first, attention_time)))
    inside = np.flatnonzero((time >= min(cycle.focus or 0.0 for cycle in lost)) & (time <= until))
    rows = [cycle.row for cycle in lost]
    if len(inside) < 2:
        return sentence, facts
    # Of the length on the plateau of stage I, or at the focus where rows grow until then, as they do under Adam.
    norms = [(curves.norms[midway, c.row], np.interp(c.focus or 0.0, time, curves.norms[:, c.row])) for c in lost]
    lengths, before = (
        [float(max(pair)) for pair in norms],
        "stage I" if all(one >= at_focus for one, at_focus in norms) else "their focus",
    )
    dips = [_nearest(curves.params["W0"][inside, c.row]) / max(n, 1e-300) for c, n in zip(lost, lengths, strict=True)]
    flat = (curves.probe_entropy[inside][:, rows].max(axis=0) / np.log(len(curves.pi))).tolist()
    names = [str(row) for row in rows]
    facts |= {"norm_dips": dict(zip(names, dips, strict=True)), "probe_entropies": dict(zip(names, flat, strict=True))}
    dipped, returned = (_listed([f"{value:.3f}" for value in values]) for values in (dips, flat))
    return f"{sentence}; smallest norms {dipped} of {before}, largest entropies of softmax(Phi) {returned} log d", facts


def _nearest(path: np.ndarray) -> float:
    """The smallest distance of a path of vectors (frames, width) from zero, straight between frames: dips are narrow."""
    start, step = path[:-1], np.diff(path, axis=0)
    square = np.maximum(np.sum(step**2, axis=1), np.finfo(float).tiny)
    share = np.clip(-np.sum(start * step, axis=1) / square, 0.0, 1.0)
    return float(np.min(np.linalg.norm(start + share[:, None] * step, axis=1)))


def _openings(events: Times, ladder: Sequence[Stay]) -> list[Stage]:
    """Lifting at E2 and a cycle at every later E_k, each until the next. Facts: k, and the labels (r,rq) before and after."""
    number = {f"E{k}": k for k in range(2, 1 + sum(name[0] == "E" for name in events))}
    openings = sorted((time, k) for name, k in number.items() if (time := events[name]) is not None)
    stages = []
    for place, (time, k) in enumerate(openings):
        stop = openings[place + 1][0] if place + 1 < len(openings) else None
        after = next((i for i, stay in enumerate(ladder) if stay.r >= k), None)
        facts: dict[str, Any] = {"direction": k}
        sentence = f"embedding direction {k} opens"
        if after:
            facts |= {"label_before": ladder[after - 1].label, "label_after": ladder[after].label}
            sentence += f": (r,rq) goes from {facts['label_before']} to {facts['label_after']}"
        stages.append(Stage("lifting" if k == 2 else f"cycle {k}", time, stop, sentence, facts=facts))
    return stages


def _total_focuses(cycles: Sequence[TokenCycle]) -> Iterator[Stage]:
    """One stage for each cycle on a token: from where the first row focuses on it totally to where the last one looks elsewhere.

    Rows of one token are in one cycle where their focuses overlap in time.
    """
    groups: list[list[TokenCycle]] = []
    for cycle in cycles:
        of_token = (group for group in reversed(groups) if group[0].token == cycle.token)
        latest = next(of_token, None)
        if latest is None or all(focus.end is not None and focus.end < cycle.up for focus in latest):
            groups.append([cycle])
        else:
            latest.append(cycle)
    for rows in groups:
        rows.sort(key=lambda cycle: cycle.row)
        token, names, ends = rows[0].token, [str(cycle.row) for cycle in rows], [cycle.end for cycle in rows]
        facts: dict[str, Any] = {"token": token, "rows": [cycle.row for cycle in rows]}
        kinds = ("up", "peak", "height", "down", "half", "back")
        facts |= {kind: dict(zip(names, (getattr(cycle, kind) for cycle in rows), strict=True)) for kind in kinds}
        tops = _listed([f"{cycle.height:.3f}" + ("" if cycle.peak is None else f" at {cycle.peak:.4g}") for cycle in rows])
        halves = _listed(["not yet" if cycle.half is None else f"{cycle.half:.4g}" for cycle in rows])
        title = f"cycle on token {token}: row{'s' if len(rows) > 1 else ''} {_listed(names)}"
        sentence = f"{title}; most attention {tops}; less than half of it from {halves}"
        stop = None if None in ends else max(end or 0.0 for end in ends)
        yield Stage("total focus", min(cycle.up for cycle in rows), stop, sentence, f"token {token}", facts)


def _turned(row: int, turn: Turn) -> Stage:
    name, still = "refocus" if turn.rising else "redilution", ", not turned yet" if turn.stop is None else ""
    facts = {"row": row, "before": turn.before, "after": turn.after, "turned": turn.stop is not None}
    return Stage(name, turn.start, turn.stop, f"row {row}: {turn.before:.3f} -> {turn.after:.3f}{still}", f"row {row}", facts)


def _listed(names: Sequence[str]) -> str:
    """The first six, and how many more there are."""
    remaining = len(names) - 6
    return ", ".join(names[:6]) + (f" and {remaining} more" if remaining > 0 else "")


def passes(time: np.ndarray, values: np.ndarray, level: float = LIMITS.level) -> list[float | None]:
    """When each singular value first passes a level, interpolated in its logarithm, because it grows exponentially."""
    logs = np.log(np.maximum(values, 1e-300))
    return [first_crossing(time, logs[:, k], float(np.log(level)), rising=True) for k in range(values.shape[1])]


def open_directions(loss: TokenLoss, params: Params) -> tuple[int, int]:
    """(r, rq): how many singular values of W0 and of Phi are above the level."""
    values = (np.linalg.svd(matrix, compute_uv=False) for matrix in (params["W0"], loss.model.scores(params)))
    r, rq = (int(np.sum(sizes > LIMITS.level)) for sizes in values)
    return r, rq


def opening_times(
    time: np.ndarray, embedding_values: np.ndarray, score_values: np.ndarray, levels: Mapping[str, float] | None = None
) -> dict[str, float | None]:
    """E1, E2, ..., Q1, Q2, ...: when the k-th singular value of W0 or of Phi passes its level, .1 unless given, by name."""
    values = by_event(embedding_values, score_values)
    return {name: passes(time, column[:, None], (levels or {}).get(name, LIMITS.level))[0] for name, column in values.items()}


def openings_of(curves: TokenCurves) -> dict[str, float | None]:
    """The openings of a run, at levels relative to its start."""
    return opening_times(curves.time, curves.embedding_values, curves.score_values, curves.levels)


def stays(
    time: np.ndarray, embedding_values: np.ndarray, score_values: np.ndarray, levels: Mapping[str, float] | None = None
) -> tuple[Stay, ...]:
    """The ladder (r, rq): how many singular values of W0 and of Phi are above their level, .1 unless given [FD:stages].

    A change is where the logarithm of a singular value crosses the level, so changes are the events E_k and Q_k. A brief stay
    between two stays at one label is flicker and left out. Brief is relative to the time passed, not to frames.
    """
    values = by_event(embedding_values, score_values)
    heights = {name: np.log(np.maximum(x, 1e-300) / (levels or {}).get(name, LIMITS.level)) for name, x in values.items()}
    changes = sorted(change for name, height in heights.items() for change in _changes(time, height, _COUNTS[name[0]]))
    count = {kind: sum(height[0] > 0 for name, height in heights.items() if _COUNTS[name[0]] == kind) for kind in ("r", "rq")}
    count = {kind: int(number) for kind, number in count.items()}
    ladder, since = [], float(time[0])
    for moment, step, kind in changes:
        ladder.append(Stay(**count, start=since, stop=moment))
        count[kind] += step
        since = moment
    return _joined([*ladder, Stay(**count, start=since, stop=None)])


_COUNTS = {"E": "r", "Q": "rq"}


def _changes(time: np.ndarray, height: np.ndarray, kind: str) -> list[tuple[float, int, str]]:
    """Every crossing of zero, upwards (+1) or downwards (-1)."""
    frames = np.flatnonzero((height[:-1] > 0) != (height[1:] > 0))
    before, after = height[frames], height[frames + 1]
    crossings = time[frames] + before / (before - after) * (time[frames + 1] - time[frames])
    return [(float(t), 1 if up else -1, kind) for t, up in zip(crossings, after > 0, strict=True)]


def _joined(ladder: list[Stay]) -> tuple[Stay, ...]:
    """Stays without flicker: the shortest is joined to its neighbours first. Two changes at one time have no stay between."""
    ladder = [stay for stay in ladder if stay.stop != stay.start]
    while True:
        inner = range(1, len(ladder) - 1)
        flicker = [i for i in inner if ladder[i].brief and ladder[i - 1].label == ladder[i + 1].label]
        if not flicker:
            return tuple(ladder)
        i = min(flicker, key=lambda i: (ladder[i].stop or 0.0) - ladder[i].start)
        ladder[i - 1 : i + 2] = [replace(ladder[i - 1], stop=ladder[i + 1].stop)]


def detect(
    curves: TokenCurves,
    *,
    tolerance: float = 0.0,
    clock: str,
    status: str = "finished",
    draws: Draws = EXACT,
    normalised: bool = False,
) -> Stages:
    """Stages of a run, or of the head model in its place; `tolerance` is the relative error of the solver.

    `draws` says how far other draws of the data would move its events. `normalised` steps divide by the history of each entry:
    they move rows without knowing c, so each goes its own way, and a first cycle ends with the row's own dilution.
    """
    time, end = curves.time, float(curves.time[-1])
    times = openings_of(curves)
    first, second = times["E1"], times.get("E2")
    begun = {name for name, moment in times.items() if moment == time[0]}
    times["onset"] = onset(time, curves.key_values[:, 0], end if second is None else second)
    least = max(LIMITS.gain, LIMITS.solver_errors * tolerance)
    # From a large start attention may open before embeddings have grown threefold.
    begins = min((moment for moment in (first, times["Q1"]) if moment is not None), default=np.inf)
    cycles_of_rows = row_cycles(curves, least, draws.batches, None if normalised else (begins, end if second is None else second))
    if normalised:  # a flow takes the frequent token's own row up with all others, too late for a cycle of its own
        times[f"up{curves.frequent}"] = cycles_of_rows[curves.frequent].up
    rows = [cycle for cycle in cycles_of_rows if cycle.row != curves.frequent]
    for cycle in rows:
        row_times = zip(FIRST_CYCLE, (cycle.up, cycle.focus, cycle.half, cycle.complete), strict=True)
        times |= {f"{kind}{cycle.row}": moment for kind, moment in row_times}
    lifted = None if "E2" in begun else second  # a start with two open directions has no first cycle to repeat
    later, named = list(row_turns(curves, curves.on_frequent, first, lifted, curves.sign, draws.batches, rows)), {}
    for row, turn in later:  # a row may have more than one: refocusI, refocusI.2 and so on
        stem = f"{'refocus' if turn.rising else 'redilution'}{row}"
        before = sum(name.partition(".")[0] == stem for name in named)
        named[stem if before == 0 else f"{stem}.{before + 1}"] = (row, turn)
    times |= {f"{kind}{row}": None for row in range(len(curves.pi)) for kind in ("refocus", "redilution")}
    times |= {name: turn.stop for name, (_, turn) in named.items()}
    times |= {f"self{row}": first_crossing(time, x, LIMITS.total, rising=True) for row, x in enumerate(curves.on_self.T)}
    cycles = token_cycles(curves)
    on_others = {
        name: (cycle, moment) for cycle in cycles if cycle.token != curves.frequent for name, moment in _events_of(cycle)
    }
    times |= {name: moment for name, (_, moment) in on_others.items()}
    begun |= {name for name, moment in times.items() if moment == time[0]}
    estimates = _estimates(curves, times, begun, rows, named, draws)
    by_name = {name: cycle for name, (cycle, _) in on_others.items()}
    notes = _missing_notes(curves, cycles_of_rows, named, by_name, least, lifted, f"by {clock}={end:.4g}")
    reasons = {
        name: notes[name] if event.state == "not reached" else event.how
        for name, event in estimates.items()
        if event.time is None
    }
    ladder = stays(time, curves.embedding_values, curves.score_values, curves.levels)
    events = {name: event.time for name, event in estimates.items()}
    return Stages.of(status, clock, estimates, stages_of(curves, events, ladder, rows, later, cycles), reasons)


def _events_of(cycle: TokenCycle) -> Iterator[tuple[str, float | None]]:
    """The events of a cycle on a token that is not the most frequent one."""
    turn = "" if cycle.turn == 1 else f".{cycle.turn}"
    for kind, time in {"up": cycle.up, "focus": cycle.peak, "dilution": cycle.down, "return": cycle.back}.items():
        yield f"on{cycle.token}{kind}{cycle.row}{turn}", time


def first_move(curves: TokenCurves) -> float | None:
    """How far attention first moves, measured: above 0 it focuses on the frequent token, below 0 it moves away.

    This is the largest change of the mean attention on that token (queries weighted by pi), from the middle of the plateau of
    stage I until E2 or the end. There d(uq.uk)/dt has the sign of c whatever the start was [FD:attention-rate], so a run that
    ends long before attention opens shows it too. None where there is no such plateau.
    """
    time, times = curves.time, openings_of(curves)
    first, second = times["E1"], times.get("E2")
    if first is None:
        return None
    stop = float(time[-1]) if second is None else second
    midway = _midway(curves, first, stop if times["Q1"] is None else min(stop, times["Q1"]))
    inside = (time > midway) & (time <= stop)
    if not inside.any():
        return None
    mean = curves.on_frequent @ curves.pi
    change = mean[inside] - np.interp(midway, time, mean)
    return float(change[np.argmax(np.abs(change))])


def onset(time: np.ndarray, top: np.ndarray, before: float) -> float | None:
    """The last upward crossing of ten times the initial value."""
    level = LIMITS.growth * top[0]
    up = np.flatnonzero((top[:-1] < level) & (top[1:] >= level) & (time[1:] <= before))
    if not up.size:
        return None
    i = int(up[-1])
    share = np.log(level / top[i]) / np.log(top[i + 1] / top[i]) if top[i] > 0 else 1.0
    return float(time[i] + share * (time[i + 1] - time[i]))
