"""The stages of focus and dilution on a text [FD:text-stages]. Curves are noisy here: every one is a running median.

E_k, Q_k           the k-th singular value of W0, of Phi, passes the larger of .1 and three times its largest initial value
focused, diluted   the mean entropy of attention rows is lowest, then highest, by more than .1 nat
focus:WORD         the top of the first rise, by more than .05, of the attention of WORD's row on the most frequent type
dilution:WORD      after it, that row has lost half of what it gained
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from stagescope.detect.extrema import Turn, turns
from stagescope.detect.stage import Stage, Stages, first_crossing
from stagescope.papers.focus_dilution.stages import RowCycle, passes

if TYPE_CHECKING:
    from stagescope.papers.focus_dilution.text.observables import TextCurves

LEVEL, NOISE_FLOOR = 0.1, 3.0
MEDIAN = 9
"""Frames of the running median."""
LEAST_ATTENTION, LEAST_ENTROPY, LEAST_NORM = 0.05, 0.1, 0.2
"""Prominence of a turn: of attention mass, of entropy in nats, of the logarithm of a row norm."""
NAMED = 5
"""Openings that have events of their own."""


def smoothed(curve: np.ndarray) -> np.ndarray:
    """The running median of a curve, or of many side by side (frames, .)."""
    from scipy.ndimage import median_filter

    return median_filter(curve, size=(MEDIAN, *(1,) * (curve.ndim - 1)), mode="nearest")


def openings(time: np.ndarray, values: np.ndarray) -> list[float | None]:
    """When singular values open: a start that is not small beside .1 is a floor of noise, to be left by a factor."""
    return passes(time, values, opening_level(values))


def opening_level(values: np.ndarray) -> float:
    """What a singular value must pass to be open."""
    return max(LEVEL, NOISE_FLOOR * float(values[0, 0]))


def row_cycles(time: np.ndarray, attention: np.ndarray) -> list[RowCycle]:
    """The first rise of every row (frames, d), and when half of it was lost again; a row that never rises has no focus."""
    return [_cycle(time, attention[:, row], row) for row in range(attention.shape[1])]


def _cycle(time: np.ndarray, curve: np.ndarray, row: int) -> RowCycle:
    rise = next((turn for turn in _turns(time, curve, LEAST_ATTENTION) if turn.rising), None)
    if rise is None:
        return RowCycle(row, 0.0, None, None, None)
    gain = rise.after - rise.before
    if rise.stop is None:
        return RowCycle(row, gain, None, None, None)
    after = [first_crossing(time, curve, rise.after - share * gain, rising=False, after=rise.stop) for share in (0.5, 1.0)]
    return RowCycle(row, gain, rise.stop, *after)


def _turns(time: np.ndarray, curve: np.ndarray, least: float) -> list[Turn]:
    return turns(time, curve, least, least)


def under_way(time: np.ndarray, curve: np.ndarray, found: Sequence[Turn], least: float) -> bool:
    """Whether the last turn of a curve came near its end only in the latter half of the run: more may follow it."""
    if not found or found[-1].stop is not None:
        return False
    near = (time >= found[-1].start) & (np.abs(curve - found[-1].after) <= least)
    return bool(time[near][0] > (time[0] + time[-1]) / 2)


@dataclass(frozen=True)
class TextStory:
    """What happened in a run on a text, measured once for stages and claims."""

    curves: "TextCurves"

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
        return {f"{letter}{k + 1}": when for letter, times in named for k, when in enumerate(times[:NAMED])}

    @cached_property
    def direction(self) -> float | None:
        """cos(Phi, pi pi^T) when Phi opens; None where it does not."""
        when = self.attentions[0]
        return None if when is None else float(np.interp(when, self.curves.time, self.curves.alignment))

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
        """Whether attention opened in the latter half of the run only, or not at all."""
        time, first = self.curves.time, self.attentions[0]
        return bool(first is None or first > (time[0] + time[-1]) / 2)

    @cached_property
    def on_their_way(self) -> list[int]:
        """Rows that have not lost half of their gain but may still: they came to their focus in the latter half of the run."""
        time, middle, found = self.curves.time, (self.curves.time[0] + self.curves.time[-1]) / 2, []
        for cycle in (cycle for cycle in self.rows if cycle.half is None):
            curve = self.attention[:, cycle.row]
            rising = under_way(time, curve, _turns(time, curve, LEAST_ATTENTION), LEAST_ATTENTION)
            late = cycle.focus is not None and cycle.focus > middle
            found += [cycle.row] if late or (cycle.focus is None and rising) else []
        return found

    def mass(self, rows: Sequence[int]) -> float:
        """The frequency of rows together."""
        return float(np.sum(self.curves.pi[list(rows)]))

    @cached_property
    def entropy(self) -> list[Turn]:
        """Falls and rises of the mean entropy."""
        return _turns(self.curves.time, smoothed(self.curves.mean_entropy), LEAST_ENTROPY)

    @cached_property
    def norms(self) -> list[Turn]:
        """Rises and falls of the logarithm of the mean norm of rare rows."""
        return _turns(self.curves.time, smoothed(np.log(self.curves.rare_norm)), LEAST_NORM)

    def entropy_moves(self, least: float) -> bool:
        """Whether the mean entropy was still on its way in the latter half of the run, in turns of at least so much."""
        curve = smoothed(self.curves.mean_entropy)
        return under_way(self.curves.time, curve, _turns(self.curves.time, curve, least), least)

    def norms_move(self, least: float) -> bool:
        """The same of the logarithm of the mean norm of rare rows."""
        curve = smoothed(np.log(self.curves.rare_norm))
        return under_way(self.curves.time, curve, _turns(self.curves.time, curve, least), least)

    def swings(self, least: float) -> tuple[float, float, float] | None:
        """How far the mean entropy first falls, then rises, then falls again, in turns of at least so much; None if not."""
        found = _turns(self.curves.time, smoothed(self.curves.mean_entropy), least)
        first = next((i for i, turn in enumerate(found) if not turn.rising), None)
        if first is None or len(found) < first + 3:
            return None
        fall, rise, again = found[first : first + 3]
        return fall.before - fall.after, rise.after - rise.before, again.before - again.after

    def retraction(self, least: float) -> tuple[Turn, Turn, Turn] | None:
        """The first growth, retraction and growth of the logarithm of rare norms by turns of at least so much."""
        found = _turns(self.curves.time, smoothed(np.log(self.curves.rare_norm)), least)
        first = next((i for i, turn in enumerate(found) if turn.rising), None)
        return None if first is None or len(found) < first + 3 else (found[first], found[first + 1], found[first + 2])


def detect(curves: "TextCurves", probes: Mapping[str, int], *, clock: str, status: str) -> Stages:
    """Stages of a run on a text; `probes` are words with their tokens."""
    story = TextStory(curves)
    fall = next((turn for turn in story.entropy if not turn.rising), None)
    rise = next((turn for turn in story.entropy if turn.rising and fall is not None and turn.start >= fall.start), None)
    events: dict[str, float | None] = {**story.opened}
    events |= {"focused": fall.stop if fall else None, "diluted": rise.stop if rise else None}
    for word, token in probes.items():
        events |= {f"focus:{word}": story.rows[token].focus, f"dilution:{word}": story.rows[token].half}
    notes = _notes(story, probes, f"by {clock}={curves.time[-1]:.4g}")
    missing = {name: notes[name] for name, when in events.items() if when is None}
    return Stages(status, clock, events, stages_of(story, probes), missing)


def stages_of(story: TextStory, probes: Mapping[str, int]) -> tuple[Stage, ...]:
    """Condensation, focus or defocus, one stage for each later opening; then rows, entropy, rare norms and probe words.

    Each of these is a track, in this order.
    """
    found = [*sorted(_openings(story), key=lambda stage: stage.start), *_row_stages(story)]
    found += [_turned("entropy", turn, "mean entropy", "falls", "rises", "nat") for turn in story.entropy]
    found += [_turned("rare norms", turn, "log of the mean norm of rare rows", "retract", "grow", "") for turn in story.norms]
    found += [stage for word, token in probes.items() for stage in _probe_stage(story, word, token)]
    return tuple(found)


def _openings(story: TextStory) -> list[Stage]:
    curves, first, opened = story.curves, story.embeddings[0], story.attentions[0]
    said = "no embedding direction has opened"
    if first is not None:
        said = f"E1 at {first:.4g}: |W0^T pi|/|pi| {np.interp(first, curves.time, curves.condensed):.2f}"
        for second in curves.embedding_values.T[1:2]:  # an embedding may have one direction only
            said += f", sv_2/sv_1 {np.interp(first, curves.time, second / curves.embedding_values[:, 0]):.2f}"
    found = [Stage("condensation", float(curves.time[0]), opened, said)]
    later = [when for when in story.embeddings[1:] if when is not None]
    if opened is not None and story.direction is not None:
        name = "focus" if story.direction > 0 else "defocus"
        stop = later[0] if later and later[0] > opened else None
        found.append(Stage(name, opened, stop, f"Phi opens with cos(Phi, pi pi^T) {story.direction:+.4f}"))
    for k, when in enumerate(later):
        stop = later[k + 1] if k + 1 < len(later) else None
        if k + 2 <= NAMED:
            open_now = sum(q is not None and q <= when for q in story.attentions)
            said = f"embedding direction {k + 2} opens, {open_now} of attention are open"
            found.append(Stage("lifting" if k == 0 else f"cycle {k + 2}", when, stop, said))
    return found


def _row_stages(story: TextStory) -> list[Stage]:
    """When the typical row focused and when it had lost half of it, with how many rows did and how frequent they are."""
    peaks = [cycle.focus for cycle in story.rows if cycle.focus is not None]
    halves = [cycle.half for cycle in story.rows if cycle.half is not None]
    if not peaks:
        return []
    count, middle = len(story.rows), float(np.median(peaks))
    gains = [cycle.gain for cycle in story.rows if cycle.focus is not None]
    said = f"{len(peaks)} of {count} rows (mass {story.mass(story.focused):.3f}) focus on the frequent type"
    said += f", by {np.median(gains):.3f} in the middle"
    lost = f"{len(halves)} of them (mass {story.mass(story.diluted):.3f}) lose half of it"
    end = float(np.median(halves)) if halves else None
    start = float(story.curves.time[0])
    return [Stage("rows focus", start, middle, said, "rows"), Stage("rows dilute", middle, end, lost, "rows")]


def _probe_stage(story: TextStory, word: str, token: int) -> list[Stage]:
    """All turns of a probe word's row as one stage: it may focus and dilute many times."""
    own = _turns(story.curves.time, story.attention[:, token], LEAST_ATTENTION)
    if not own:
        return []
    path = " -> ".join(f"{level:.3f}" for level in (own[0].before, *(turn.after for turn in own)))
    name = f"row {word!r}"
    return [Stage(name, own[0].start, own[-1].stop, f"attention on the frequent type {path}", name)]


def _turned(name: str, turn: Turn, what: str, down: str, up: str, unit: str) -> Stage:
    still = ", not turned yet" if turn.stop is None else ""
    text = f"{what} {turn.before:.3f} -> {turn.after:.3f}{' ' + unit if unit else ''}{still}"
    return Stage(f"{name} {up if turn.rising else down}", turn.start, turn.stop, text, name)


def _notes(story: TextStory, probes: Mapping[str, int], by: str) -> dict[str, str]:
    curves, notes = story.curves, {}
    for letter, values in (("E", curves.embedding_values), ("Q", curves.score_values)):
        level = opening_level(values)
        for k, most in enumerate(values.max(axis=0)[:NAMED]):
            notes[f"{letter}{k + 1}"] = f"its singular value reached {most:.2e} {by}, below {level:.2g}"
    notes |= {"focused": f"the mean entropy did not fall by more than {LEAST_ENTROPY} nat and turn {by}"}
    notes |= {"diluted": f"the mean entropy did not rise by more than {LEAST_ENTROPY} nat after its low and turn {by}"}
    for word, token in probes.items():
        cycle = story.rows[token]
        rose = f"it was still rising, by {cycle.gain:.3f}, {by}" if cycle.gain else f"it never rose by {LEAST_ATTENTION} {by}"
        notes[f"focus:{word}"] = rose
        notes[f"dilution:{word}"] = rose if cycle.focus is None else f"it kept more than half of its gain {cycle.gain:.3f} {by}"
    return notes
