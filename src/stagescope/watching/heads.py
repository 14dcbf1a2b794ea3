"""Heads of a watched model by what they do, and when they began to. NumPy on recorded arrays alone.

A head is named by the first of these that it does: *induction* (attends to what followed an earlier occurrence of the token),
*duplicate* (to the earlier occurrence), *previous token*, *sink* (the first token), *positional* (a narrow row that is the same
in every sequence); otherwise *none*. See `Thresholds` for when it does. A name counts only if it lasts.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from itertools import groupby
from pathlib import Path
from typing import Any

import numpy as np

from stagescope.detect.noise import TWO_SIDED, flutter
from stagescope.detect.stage import span_text
from stagescope.errors import InputError
from stagescope.runs.run import Run
from stagescope.runs.store import load
from stagescope.watching.gate import gate_of
from stagescope.watching.head_scores import THRESHOLDS, Score, Thresholds, scores
from stagescope.watching.source import Model, head_name, model_of

NONE = "none"


@dataclass(frozen=True)
class Spell:
    """A stretch of records in which a head has one name.

    `step` is when it began, with the ends of its interval; None where it was so at the first record. `stop` is when the next
    name began, or the first record without one; None where it lasts. `score` is the median in between, `chance` what even
    attention gives.
    """

    name: str
    step: float | None
    low: float | None
    high: float | None
    stop: float | None
    score: float
    chance: float

    def __str__(self) -> str:
        begin = "the start" if self.step is None else f"{self.step:.5g} [{span_text(self.low or 0.0, self.high or 0.0)}]"
        return f"{self.name} from {begin}" + ("" if self.stop is None else f" to {self.stop:.5g}")


@dataclass(frozen=True)
class Head:
    """One head: its name at the last record, its scores there with what chance gives, and its names so far."""

    layer: int
    head: int
    module: str
    name: str
    scores: Mapping[str, tuple[float, float]]
    spells: tuple[Spell, ...]

    @property
    def label(self) -> str:
        return head_name(self.layer, self.head)

    @property
    def score(self) -> float | None:
        """The score of its name; None for a head without one."""
        return None if self.name == NONE else self.scores[self.name][0]

    @property
    def chance(self) -> float | None:
        return None if self.name == NONE else self.scores[self.name][1]

    @property
    def since(self) -> Spell | None:
        """The spell that lasts."""
        return None if self.name == NONE else self.spells[-1]

    def __str__(self) -> str:
        return f"{self.label:<18} {self.name:<15}" + "; ".join(map(str, self.spells))

    def json(self) -> dict[str, Any]:
        rows = {name: {"score": value, "chance": chance} for name, (value, chance) in self.scores.items()}
        facts = {name: getattr(self, name) for name in ("layer", "head", "module", "name", "score", "chance")}
        return {**facts, "scores": rows, "spells": [vars(spell) for spell in self.spells]}


@dataclass(frozen=True)
class Heads:
    """The heads of a run; iterate over it, print it, or take its `json()`.

    Examples:
        >>> ss.Heads("finished", "step", ()).named("previous token")
        ()
    """

    status: str
    clock: str
    heads: tuple[Head, ...]
    notes: Mapping[str, str] = field(default_factory=dict)

    def __iter__(self) -> Iterator[Head]:
        return iter(self.heads)

    def __len__(self) -> int:
        return len(self.heads)

    def named(self, name: str) -> tuple[Head, ...]:
        """The heads that have a name at the last record."""
        return tuple(head for head in self.heads if head.name == name)

    def first(self, name: str) -> Spell | None:
        """The earliest spell of a name among all heads; None where no head has had it."""
        found = [spell for head in self.heads for spell in head.spells if spell.name == name]
        return min(found, key=lambda spell: -1.0 if spell.step is None else spell.step, default=None)

    def __str__(self) -> str:
        return "\n".join([*map(str, self.heads), *(f"{name}: {note}" for name, note in self.notes.items())])

    def json(self) -> dict[str, Any]:
        return {
            "status": self.status,
            "clock": self.clock,
            "heads": [head.json() for head in self.heads],
            "notes": dict(self.notes),
        }


def heads(run: Run | str | Path, thresholds: Thresholds = THRESHOLDS) -> Heads:
    """What each head of a watched model does, with scores, what chance gives, and when it began.

    Args:
        run: a run of `ss.watch` or `ss.read_checkpoints`, or its folder.
        thresholds: when a head has a name.

    Returns:
        Each head with its name, scores and the spells in which it had the name.

    Examples:
        >>> with ss.watch(net, probe=probe, steps=6, record=ss.Every(n=1)) as watcher:
        ...     for step in range(6):
        ...         watcher.step(net(probe).mean())
        >>> [head.label for head in ss.heads(watcher.run)]
        ['layer 0 head 0', 'layer 0 head 1']
    """
    run = load(run) if isinstance(run, str | Path) else run
    if not isinstance(run, Run):
        raise InputError(f"expected a run or its folder, got {type(run).__name__}")
    model = model_of(run)
    if run.frames == 0:
        raise InputError("the run has no frames")
    found = scores(run, thresholds)
    notes = {} if found else {"heads": "no array says what heads do: the attention of this model was not recorded"}
    if found and run.frames < thresholds.records:
        notes["heads"] = f"a name must last {thresholds.records} records, and the run has {run.frames}: no head is named"
    if not model.causal:
        notes["causal"] = "attention looks both ways, so there are no induction and no duplicate heads"
    notes["gate"] = gate_of(run).sentence
    read = partial(_head, run.time, found, model, thresholds)
    return Heads(run.status, run.clock, tuple(read(layer, head) for layer, head in model.each()), notes)


def _head(time: np.ndarray, found: Mapping[str, Score], model: Model, rules: Thresholds, layer: int, head: int) -> Head:
    own = {name: _Curve.of(time, score, layer, head, rules) for name, score in found.items()}
    spells = tuple(_spells(time, own, rules))
    last = spells[-1].name if spells and spells[-1].stop is None else NONE
    module = model.layers[layer] if layer < len(model.layers) else ""
    return Head(layer, head, module, last, {name: curve.at_end(rules.records) for name, curve in own.items()}, spells)


@dataclass(frozen=True, eq=False)
class _Curve:
    """One score of one head over the records: `smooth` is the running median of its strength, `on` where it has the name."""

    value: np.ndarray
    chance: np.ndarray
    smooth: np.ndarray
    noise: np.ndarray
    on: np.ndarray

    @classmethod
    def of(cls, time: np.ndarray, score: Score, layer: int, head: int, rules: Thresholds) -> "_Curve":
        value, chance, strength = (each[:, layer, head] for each in (score.value, score.chance, score.strength))
        plain = np.where(np.isfinite(strength), strength, 0.0)
        smooth = _running_median(plain, rules.records)
        return cls(value, chance, smooth, TWO_SIDED * flutter(time, plain), _lasting(smooth, rules.kept))

    def at_end(self, records: int) -> tuple[float, float]:
        return _median(self.value[-records:]), _median(self.chance[-records:])


def _median(values: np.ndarray) -> float:
    good = values[np.isfinite(values)]
    return float(np.median(good)) if len(good) else float("nan")


def _running_median(values: np.ndarray, width: int) -> np.ndarray:
    if len(values) < width:
        return values
    padded = np.pad(values, width // 2, mode="edge")
    return np.median(np.lib.stride_tricks.sliding_window_view(padded, width), axis=1)


def _lasting(strength: np.ndarray, kept: float) -> np.ndarray:
    """Where a name holds: from where the strength reaches 1 until it falls below `kept`."""
    on = np.zeros(len(strength), bool)
    for i, value in enumerate(strength.tolist()):
        on[i] = value >= 1 or (value >= kept and i > 0 and on[i - 1])
    return on


def _spells(time: np.ndarray, own: Mapping[str, _Curve], rules: Thresholds) -> Iterator[Spell]:
    names = np.full(len(time), NONE, dtype=object)
    for name in reversed(list(own)):  # earlier ones overwrite later ones
        names[own[name].on] = name
    found = _stretches(list(names), rules.records)
    begins = [_began(time, own[name], first, after) if first and name != NONE else None for name, first, after in found]
    for i, (name, first, after) in enumerate(found):
        if name == NONE:
            continue
        value, chance = (_median(each[first:after]) for each in (own[name].value, own[name].chance))
        step, low, high = begins[i] or (None, None, None)
        following = begins[i + 1] if i + 1 < len(found) else None
        stop = following[0] if following else None if after == len(time) else float(time[after])
        yield Spell(name, step, low, high, stop, value, chance)


def _stretches(names: list[str], least: int) -> list[tuple[str, int, int]]:
    """Runs of equal names (name, first, after); the shortest of those below `least` records goes to the stretch before it."""
    found = [[name, len(list(group))] for name, group in groupby(names)]
    while len(found) > 1 and min(count for _, count in found) < least:
        i = min(range(len(found)), key=lambda k: found[k][1])
        found[i][0] = found[i - 1][0] if i else found[1][0]
        found = [[name, sum(count for _, count in group)] for name, group in groupby(found, key=lambda each: each[0])]
    ends = np.cumsum([0, *(count for _, count in found)])
    return [(name, int(ends[i]), int(ends[i + 1])) for i, (name, _) in enumerate(found)] if len(names) >= least else []


def _began(time: np.ndarray, curve: _Curve, first: int, after: int) -> tuple[float, float, float]:
    """When a stretch began: where the strength passed 1, with the records around it that its noise leaves open."""
    before, here = curve.smooth[first - 1], curve.smooth[first]
    crossed = before < 1 <= here
    share = (1 - before) / (here - before) if crossed else 1.0  # otherwise another name ended here
    when = float(time[first - 1] + share * (time[first] - time[first - 1]))
    low, high = first - 1, first
    while crossed and low > 0 and curve.smooth[low] + curve.noise[low] >= 1:
        low -= 1
    while crossed and high < after - 1 and curve.smooth[high] - curve.noise[high] < 1:
        high += 1
    return when, float(time[low]), float(time[high])
