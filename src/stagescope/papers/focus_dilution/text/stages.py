"""The stages of focus and dilution on a text [FD:text-stages]. Curves are noisy here, so each is a running median.

E_k, Q_k           the k-th singular value of W0 or of Phi passes .1, or three times its largest initial value if that is more
focused, diluted   the mean entropy of attention rows is lowest, then highest, by more than .1 nat
focus:WORD         the top of the first rise, by more than .05, of the attention of WORD's row on the most frequent type
dilution:WORD      after it, that row has lost half of what it gained
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from stagescope.detect.events import Turn, first_crossing, turns
from stagescope.detect.stage import Event, Stage, Stages
from stagescope.papers.focus_dilution.limits import LIMITS
from stagescope.papers.focus_dilution.observables import by_event, opening_levels
from stagescope.papers.focus_dilution.stages import RowCycle, passes
from stagescope.papers.focus_dilution.text import observables as intervals
from stagescope.papers.focus_dilution.text.observables import TextCurves


def smoothed(curve: np.ndarray) -> np.ndarray:
    """The running median of a curve, or of many side by side (frames, .)."""
    from scipy.ndimage import median_filter

    return median_filter(curve, size=(LIMITS.median, *(1,) * (curve.ndim - 1)), mode="nearest")


def openings(time: np.ndarray, values: np.ndarray) -> list[float | None]:
    """When singular values open: each must rise above the noise floor of the start as well as above .1."""
    return passes(time, values, opening_level(values))


def opening_level(values: np.ndarray) -> float:
    """The level above which a singular value is open."""
    return float(opening_levels(values[0])[0])


def row_cycles(time: np.ndarray, attention: np.ndarray) -> list[RowCycle]:
    """The first rise of every row (frames, d), and when half of it was lost again; a row that never rises has no focus."""
    cycles = []
    for row, curve in enumerate(attention.T):
        rise = _first_rise(time, curve)
        gain, focus = (0.0, None) if rise is None else (rise.after - rise.before, rise.stop)
        if rise is None or focus is None:
            cycles.append(RowCycle(row, gain, None, None, None))
            continue
        half, back = (first_crossing(time, curve, rise.after - share * gain, rising=False, after=focus) for share in (0.5, 1.0))
        cycles.append(RowCycle(row, gain, focus, half, back))
    return cycles


def _first_rise(time: np.ndarray, curve: np.ndarray) -> Turn | None:
    return next((turn for turn in _turns(time, curve, LIMITS.attention) if turn.rising), None)


def _turns(time: np.ndarray, curve: np.ndarray, least: float) -> list[Turn]:
    return turns(time, curve, least, least, intervals.noise(time, curve))


@dataclass(frozen=True)
class TextHistory:
    """When things opened, rose and fell in a run on a text: measured once, for stages and claims."""

    curves: TextCurves

    @cached_property
    def embeddings(self) -> list[float | None]:
        """E1, E2, ..."""
        return openings(self.curves.time, self.curves.embedding_values)

    @cached_property
    def attentions(self) -> list[float | None]:
        """Q1, Q2, ..."""
        return openings(self.curves.time, self.curves.score_values)

    @cached_property
    def opened(self) -> dict[str, float | None]:
        """E1 ... and Q1 ..., the first few."""
        named = (("E", self.embeddings), ("Q", self.attentions))
        return {f"{letter}{k + 1}": time for letter, times in named for k, time in enumerate(times[: LIMITS.openings])}

    @cached_property
    def estimates(self) -> dict[str, Event]:
        """The same with their intervals."""
        time, values = self.curves.time, self.directions
        return {name: intervals.opening(time, values[name], self.level(name), moment) for name, moment in self.opened.items()}

    @cached_property
    def directions(self) -> dict[str, np.ndarray]:
        """Singular values by the name of their event."""
        return by_event(self.curves.embedding_values, self.curves.score_values)

    def level(self, event: str) -> float:
        """The level that an opening passes."""
        return opening_level(self.curves.embedding_values if event[0] == "E" else self.curves.score_values)

    @cached_property
    def direction(self) -> float | None:
        """cos(Phi, pi pi^T) when Phi opens; None where it does not."""
        time = self.attentions[0]
        return None if time is None else float(np.interp(time, self.curves.time, self.curves.alignment))

    @cached_property
    def rows(self) -> list[RowCycle]:
        return row_cycles(self.curves.time, self.attention)

    @cached_property
    def attention(self) -> np.ndarray:
        """Attention of every row on the most frequent type, smoothed (frames, d)."""
        return smoothed(self.curves.on_frequent)

    @cached_property
    def focused(self) -> list[int]:
        """Rows that focused."""
        return [cycle.row for cycle in self.rows if cycle.focus is not None]

    @cached_property
    def diluted(self) -> list[int]:
        """Rows that focused and then lost half of their gain."""
        return [cycle.row for cycle in self.rows if cycle.half is not None]

    @property
    def opened_late(self) -> bool:
        """Whether attention opened only in the second half of the run, or not at all."""
        time, first = self.curves.time, self.attentions[0]
        return bool(first is None or first > (time[0] + time[-1]) / 2)

    def mass(self, rows: Sequence[int]) -> float:
        """The frequency of rows together."""
        return float(np.sum(self.curves.pi[list(rows)]))

    @cached_property
    def mean_entropy(self) -> np.ndarray:
        """The mean entropy of attention rows, smoothed (frames,)."""
        return smoothed(self.curves.mean_entropy)

    @cached_property
    def log_norm(self) -> np.ndarray:
        """The logarithm of the mean norm of rare rows, smoothed (frames,)."""
        return smoothed(np.log(self.curves.rare_norm))

    @cached_property
    def entropy(self) -> list[Turn]:
        """Falls and rises of the mean entropy."""
        return _turns(self.curves.time, self.mean_entropy, LIMITS.entropy)

    @cached_property
    def norms(self) -> list[Turn]:
        """Rises and falls of the logarithm of the mean norm of rare rows."""
        return _turns(self.curves.time, self.log_norm, LIMITS.norm)

    def moves(self, curve: np.ndarray, least: float) -> bool:
        """Whether a curve came near its last value only in the second half of the run, so that more turns may follow.

        Turns of `least` or more count.
        """
        time = self.curves.time
        turns = _turns(time, curve, least)
        if not turns or turns[-1].stop is not None:
            return False
        near = (time >= turns[-1].start) & (np.abs(curve - turns[-1].after) <= least)
        return bool(time[near][0] > (time[0] + time[-1]) / 2)

    def three_turns(self, curve: np.ndarray, least: float, *, rising: bool) -> list[Turn]:
        """The first rise (or fall) of a curve and the two turns after it, of `least` or more; empty where there are fewer."""
        turns = _turns(self.curves.time, curve, least)
        first = next((i for i, turn in enumerate(turns) if turn.rising == rising), len(turns))
        return turns[first : first + 3] if len(turns) >= first + 3 else []

    def swings(self, least: float) -> list[float] | None:
        """How far the mean entropy falls, rises and falls again, in turns of `least` or more; None where it does not."""
        return [abs(turn.after - turn.before) for turn in self.three_turns(self.mean_entropy, least, rising=False)] or None

    def retraction(self, least: float) -> list[Turn] | None:
        """The first growth, retraction and growth of the logarithm of rare norms, in turns of `least` or more."""
        return self.three_turns(self.log_norm, least, rising=True) or None


def detect(curves: TextCurves, probes: Mapping[str, int], *, clock: str, status: str) -> Stages:
    """Stages of a run on a text; `probes` are words with their tokens."""
    history = TextHistory(curves)
    fall = next((turn for turn in history.entropy if not turn.rising), None)
    rise = next((turn for turn in history.entropy if turn.rising and fall is not None and turn.start >= fall.start), None)
    events = {**history.estimates, "focused": intervals.turned(fall), "diluted": intervals.turned(rise)}
    for word, token in probes.items():
        row = history.attention[:, token]
        up = _first_rise(curves.time, row)
        level, focus = 0.0 if up is None else (up.before + up.after) / 2, history.rows[token].focus
        events[f"focus:{word}"] = intervals.turned(up)
        events[f"dilution:{word}"] = intervals.halved(curves.time, row, level, focus)
    notes = _notes(history, probes, f"by {clock}={curves.time[-1]:.4g}")
    reasons = {name: notes[name] for name, event in events.items() if event.time is None}
    return Stages.of(status, clock, events, stages_of(history, probes), reasons)


def stages_of(history: TextHistory, probes: Mapping[str, int]) -> tuple[Stage, ...]:
    """Condensation, focus or defocus, one stage for each later opening; then rows, entropy, rare norms and probe words.

    Each of these is a track, in this order.
    """
    stages = [*sorted(_openings(history), key=lambda stage: stage.start), *_row_stages(history)]
    stages += [_turned("entropy", turn, "mean entropy (nat)", "falls", "rises") for turn in history.entropy]
    stages += [_turned("rare norms", turn, "log of the mean norm of rare rows", "retract", "grow") for turn in history.norms]
    stages += [stage for word, token in probes.items() for stage in _probe_stage(history, word, token)]
    return tuple(stages)


def _openings(history: TextHistory) -> list[Stage]:
    """Condensation; focus or defocus with the cosine of Phi; then one stage for each later embedding direction."""
    attention_time = history.attentions[0]
    stages = [_condensation(history)]
    later = [time for time in history.embeddings[1:] if time is not None]
    if attention_time is not None and history.direction is not None:
        name = "focus" if history.direction > 0 else "defocus"
        stop = later[0] if later and later[0] > attention_time else None
        sentence = f"Phi opens with cos(Phi, pi pi^T) = {history.direction:+.4f}"
        stages.append(Stage(name, attention_time, stop, sentence, facts={"cosine": history.direction}))
    for k, start in enumerate(later[: LIMITS.openings - 1], start=2):
        stop = later[k - 1] if k - 1 < len(later) else None
        open_now = sum(q is not None and q <= start for q in history.attentions)
        count_text = "1 attention direction is open" if open_now == 1 else f"{open_now} attention directions are open"
        sentence = f"embedding direction {k} opens; {count_text}"
        facts = {"direction": k, "attention_directions": open_now}
        stages.append(Stage("lifting" if k == 2 else f"cycle {k}", start, stop, sentence, facts=facts))
    return stages


def _condensation(history: TextHistory) -> Stage:
    """Facts at E1: the size of W0 along pi, and sv_2/sv_1 of W0 where it has two directions."""
    curves, first = history.curves, history.embeddings[0]
    facts: dict[str, Any] = {"E1": first}
    sentence = "E1 not reached: no embedding direction has opened"
    if first is not None:
        facts["condensed"] = float(np.interp(first, curves.time, curves.condensed))
        sentence = f"E1 at {first:.4g}: |W0^T pi|/|pi| {facts['condensed']:.2f}"
        if curves.embedding_values.shape[1] > 1:
            top, second = curves.embedding_values.T[:2]
            facts["second_over_first"] = float(np.interp(first, curves.time, second / top))
            sentence += f", sv_2/sv_1 of W0 {facts['second_over_first']:.2f}"
    return Stage("condensation", float(curves.time[0]), history.attentions[0], sentence, facts=facts)


def _row_stages(history: TextHistory) -> list[Stage]:
    """Median times at which rows focused and had lost half of their gain, with the numbers and frequencies of such rows."""
    peaks = [cycle.focus for cycle in history.rows if cycle.focus is not None]
    halves = [cycle.half for cycle in history.rows if cycle.half is not None]
    if not peaks:
        return []
    count, middle = len(history.rows), float(np.median(peaks))
    gain = float(np.median([cycle.gain for cycle in history.rows if cycle.focus is not None]))
    focused = {"rows": len(peaks), "of_rows": count, "mass": history.mass(history.focused), "median_gain": gain}
    diluted = {"rows": len(halves), "of_rows": len(peaks), "mass": history.mass(history.diluted)}
    gained = (
        f"{len(peaks)} of {count} rows (frequency {focused['mass']:.3f}) focus on the most frequent type, median gain {gain:.3f}"
    )
    lost = f"{len(halves)} of {len(peaks)} rows (frequency {diluted['mass']:.3f}) lose half of their gain"
    end = float(np.median(halves)) if halves else None
    start = float(history.curves.time[0])
    return [
        Stage("rows focus", start, middle, gained, "rows", focused),
        Stage("rows dilute", middle, end, lost, "rows", diluted),
    ]


def _probe_stage(history: TextHistory, word: str, token: int) -> list[Stage]:
    """All turns of a probe word's row as one stage: it may focus and dilute many times."""
    turns = _turns(history.curves.time, history.attention[:, token], LIMITS.attention)
    if not turns:
        return []
    levels = [turns[0].before, *(turn.after for turn in turns)]
    path, name = " -> ".join(f"{level:.3f}" for level in levels), f"row {word!r}"
    facts = {"word": word, "attention": levels}
    return [Stage(name, turns[0].start, turns[-1].stop, f"attention on the most frequent type {path}", name, facts)]


def _turned(name: str, turn: Turn, what: str, down: str, up: str) -> Stage:
    still = ", not turned yet" if turn.stop is None else ""
    facts = {"before": turn.before, "after": turn.after, "turned": turn.stop is not None}
    sentence = f"{what} {turn.before:.3f} -> {turn.after:.3f}{still}"
    return Stage(f"{name} {up if turn.rising else down}", turn.start, turn.stop, sentence, name, facts)


def _notes(history: TextHistory, probes: Mapping[str, int], by: str) -> dict[str, str]:
    values, notes = history.directions, {}
    for name in history.opened:
        notes[name] = f"its singular value reached {values[name].max():.2e} {by}, below {history.level(name):.2g}"
    notes |= {"focused": f"the mean entropy did not fall by more than {LIMITS.entropy} nat and turn {by}"}
    notes |= {"diluted": f"the mean entropy did not rise by more than {LIMITS.entropy} nat after its low and turn {by}"}
    for word, token in probes.items():
        cycle = history.rows[token]
        least = LIMITS.attention
        rose = (
            f"the row had risen by {cycle.gain:.3f} {by} and not turned" if cycle.gain else f"no rise by more than {least} {by}"
        )
        notes[f"focus:{word}"] = rose
        notes[f"dilution:{word}"] = (
            rose if cycle.focus is None else f"the row kept more than half of its gain {cycle.gain:.3f} {by}"
        )
    return notes
