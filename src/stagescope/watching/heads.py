"""Heads of a watched model by what they do, and when they began to. NumPy on recorded arrays alone.

A head is named by the first of these that it does: *induction* (attends to what followed an earlier occurrence of the token),
*duplicate* (to the earlier occurrence), *previous token*, *sink* (the first token), *positional* (a narrow row that is the same
in every sequence); otherwise *none*. See `Thresholds` for when it does. A name counts only if it lasts.

Each number stands beside what chance gives: attention that is even over all keys a query sees. The query at place q gives each
of them 1/(q + 1), or 1/length where the model is not causal.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import Any

import numpy as np

from stagescope.core.errors import InputError
from stagescope.detect.noise import TWO_SIDED, flutter
from stagescope.detect.stage import span_text
from stagescope.runs.run import Run
from stagescope.runs.store import load
from stagescope.watching.source import LIMITS, gate_of, head_name, model_of

SEEN_FROM = 4
"""Place of the first query that counts for a sink: as recorded, earlier ones see too few keys."""


@dataclass(frozen=True, eq=False)
class Score:
    """A number of each head at each record (record, layer, head), from 0 to 1, and what chance gives, of the same shape.

    `strength` is 1 where a head just deserves the name, and larger beyond.
    """

    value: np.ndarray
    chance: np.ndarray
    strength: np.ndarray


@dataclass(frozen=True)
class Thresholds:
    """When a head has a name.

    share: of its attention that a head must give to the keys of its name, beyond what chance gives there. Two such shares
        nearly fill a row, so that hardly two names compete. In the trainings of validation/watched_tasks.py heads that settled
        on one of them ended between .45 and 1, other heads below .32, heads of models with nothing to learn below .05.
    content: how far a row of a positional head may be from the mean row at the same place of other sequences, in total
        variation: at least two thirds of its attention lie where position alone puts them.
    narrow: nats by which a positional head's entropy is below that of even attention: as if it left out half of its keys.
    keep: of the strength that gives a name, what keeps it: a head at the threshold does not flicker.
    records: how long a name must last, and how many records a running median takes, as for the gate: two odd ones change nothing.
    """

    share: float = 0.4
    content: float = 1 / 3
    narrow: float = float(np.log(2))
    keep: float = 0.75
    records: int = LIMITS.records


THRESHOLDS = Thresholds()


@dataclass(frozen=True)
class Chance:
    """What even attention gives on a probe of some length."""

    length: int
    causal: bool = True

    @property
    def shares(self) -> np.ndarray:
        """Of each key, by the place of the query."""
        return 1 / np.arange(1, self.length + 1) if self.causal else np.full(self.length, 1 / self.length)

    def mean(self, first: int) -> float:
        """Mean share of one key over the queries from place `first` on."""
        return float(self.shares[first:].mean()) if first < self.length else 1.0

    @property
    def entropy(self) -> float:
        """Mean entropy of a row, nats."""
        return float(-np.log(self.shares).mean())


def scores(run: Run, thresholds: Thresholds = THRESHOLDS) -> dict[str, Score]:
    """The scores by name, in the order in which names go before each other; without those whose arrays were not recorded.

    What depends on tokens goes before what depends on place: a head that copies from an earlier occurrence may rest on the
    first token where there is none, and is an induction head all the same.
    """
    model, arrays = model_of(run), run.series
    chance, half = Chance(model.length, model.causal), model.period
    by_name: dict[str, Score] = {}
    if "induction" in arrays:
        matched = _numbers(arrays["prefix_match"]) if "prefix_match" in arrays else 0.0
        by_name["induction"] = _share(arrays["induction"], _at_lag(arrays, half - 1, chance.mean(half), matched), thresholds)
    if "duplicate" in arrays:
        by_name["duplicate"] = _share(arrays["duplicate"], _at_lag(arrays, half, chance.mean(half)), thresholds)
    if "lag_mass" in arrays and arrays["lag_mass"].shape[-1] > 1:
        # it must be more than the attention to any other lag
        mass = _numbers(arrays["lag_mass"])
        before, largest_other = mass[..., 1], np.max(np.delete(mass, 1, axis=-1), axis=-1)
        share = _share(before, chance.mean(1), thresholds)
        by_name["previous token"] = replace(share, strength=np.minimum(share.strength, before / np.maximum(largest_other, 1e-9)))
    if "sink" in arrays:
        by_name["sink"] = _share(arrays["sink"], chance.mean(SEEN_FROM), thresholds)
    if "content" in arrays and "entropy" in arrays:
        # rows that are narrow and the same in all sequences: share that position gives, times share of keys that is left out
        content, narrower = _numbers(arrays["content"]), chance.entropy - _numbers(arrays["entropy"])
        value = (1 - content) * (1 - np.exp(np.minimum(-narrower, 0.0)))
        strength = np.minimum(narrower / thresholds.narrow, thresholds.content / np.maximum(content, 1e-9))
        by_name["positional"] = Score(value, np.zeros_like(value), strength)
    return by_name


def _numbers(values: np.ndarray) -> np.ndarray:
    return np.asarray(values, dtype=float)


def _at_lag(arrays: Mapping[str, np.ndarray], lag: int, even: float, matched: np.ndarray | float = 0.0) -> np.ndarray | float:
    """What a head gives to a key at a fixed lag whatever the tokens are: even attention, or more where text shows it.

    On the repeated probe the earlier occurrence is always at one lag, so a head that looks there by position would pass for
    one that looks for tokens. On text that repeats itself at this lag the two are the same: what is `matched` there is not
    by position. Lags that are not recorded count as even.
    """
    mass = arrays.get("lag_mass")
    return even if mass is None or lag >= mass.shape[-1] else np.fmax(_numbers(mass[..., lag]) * (1 - matched), even)


def _share(values: np.ndarray, chance: np.ndarray | float, thresholds: Thresholds) -> Score:
    value = _numbers(values)
    level = np.broadcast_to(np.asarray(chance, dtype=float), value.shape)
    return Score(value, level, (value - level) / thresholds.share)


def prefix_keys(tokens: np.ndarray) -> np.ndarray:
    """Which keys stand right after an earlier occurrence of the query's token (sequence, query, key)."""
    matches = (tokens[:, :, None] == np.roll(tokens, 1, axis=1)[:, None, :]) & np.tri(tokens.shape[1], dtype=bool)
    matches[:, :, 0] = False
    return matches


def prefix_match(weights: np.ndarray, tokens: np.ndarray) -> float:
    """Mean attention to `prefix_keys`, of causal patterns (sequence, query, key); the mean is over the queries that have one.

    The number that is recorded of every head of a watched model. `even_patterns` gives what chance gives.
    """
    matches = prefix_keys(tokens)
    return float(np.sum(weights * matches) / max(int(matches.any(axis=-1).sum()), 1))


def even_patterns(count: int, length: int) -> np.ndarray:
    """Causal attention that is even over all keys a query sees (sequence, query, key)."""
    return np.broadcast_to(np.tri(length) / np.arange(1, length + 1)[:, None], (count, length, length))


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
        spells = [spell for head in self.heads for spell in head.spells if spell.name == name]
        return min(spells, key=lambda spell: -1.0 if spell.step is None else spell.step, default=None)

    def __str__(self) -> str:
        return "\n".join([*map(str, self.heads), *(f"{name}: {note}" for name, note in self.notes.items())])

    def json(self) -> dict[str, Any]:
        return {**vars(self), "heads": [head.json() for head in self.heads], "notes": dict(self.notes)}


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
    by_name = scores(run, thresholds)
    notes = {} if by_name else {"heads": "no array says what heads do: the attention of this model was not recorded"}
    if by_name and run.frames < thresholds.records:
        notes["heads"] = f"a name must last {thresholds.records} records, and the run has {run.frames}: no head is named"
    if not model.causal:
        notes["causal"] = "attention looks both ways, so there are no induction and no duplicate heads"
    notes["gate"] = gate_of(run).sentence
    named_heads, least = [], thresholds.records
    for layer, head in model.head_places():
        curves = {name: _Curve.of(run.time, score, layer, head, thresholds) for name, score in by_name.items()}
        spells = tuple(_spells(run.time, curves, thresholds))
        last = spells[-1].name if spells and spells[-1].stop is None else NONE
        module = model.layers[layer] if layer < len(model.layers) else ""
        at_end = {name: (_median(one.value[-least:]), _median(one.chance[-least:])) for name, one in curves.items()}
        named_heads.append(Head(layer, head, module, last, at_end, spells))
    return Heads(run.status, run.clock, tuple(named_heads), notes)


@dataclass(frozen=True, eq=False)
class _Curve:
    """One score of one head over the records: `smooth` is the running median of its strength, `named` where it has the name."""

    value: np.ndarray
    chance: np.ndarray
    smooth: np.ndarray
    noise: np.ndarray
    named: np.ndarray

    @classmethod
    def of(cls, time: np.ndarray, score: Score, layer: int, head: int, rules: Thresholds) -> "_Curve":
        value, chance, strength = (values[:, layer, head] for values in (score.value, score.chance, score.strength))
        plain = np.where(np.isfinite(strength), strength, 0.0)
        smooth = plain
        if len(plain) >= rules.records:  # a running median
            padded = np.pad(plain, rules.records // 2, mode="edge")
            smooth = np.median(np.lib.stride_tricks.sliding_window_view(padded, rules.records), axis=1)
        named = np.zeros(len(smooth), bool)  # from where the strength reaches 1 until it falls below `keep`
        for i, size in enumerate(smooth.tolist()):
            named[i] = size >= 1 or (size >= rules.keep and i > 0 and named[i - 1])
        return cls(value, chance, smooth, TWO_SIDED * flutter(time, plain), named)


def _median(values: np.ndarray) -> float:
    good = values[np.isfinite(values)]
    return float(np.median(good)) if len(good) else float("nan")


def _spells(time: np.ndarray, curves: Mapping[str, _Curve], rules: Thresholds) -> Iterator[Spell]:
    names = np.full(len(time), NONE, dtype=object)
    for name in reversed(list(curves)):  # earlier ones overwrite later ones
        names[curves[name].named] = name
    stretches = _stretches(list(names), rules.records)
    begins = [_began(time, curves[name], first, after) if first and name != NONE else None for name, first, after in stretches]
    for i, (name, first, after) in enumerate(stretches):
        if name == NONE:
            continue
        value, chance = (_median(values[first:after]) for values in (curves[name].value, curves[name].chance))
        step, low, high = begins[i] or (None, None, None)
        following = begins[i + 1] if i + 1 < len(stretches) else None
        stop = following[0] if following else None if after == len(time) else float(time[after])
        yield Spell(name, step, low, high, stop, value, chance)


def _stretches(names: list[str], least: int) -> list[tuple[str, int, int]]:
    """Runs of equal names (name, first, after); the shortest of those below `least` records goes to the stretch before it."""
    stretches = [[name, len(list(group))] for name, group in groupby(names)]
    while len(stretches) > 1 and min(count for _, count in stretches) < least:
        i = min(range(len(stretches)), key=lambda k: stretches[k][1])
        stretches[i][0] = stretches[i - 1][0] if i else stretches[1][0]
        stretches = [[name, sum(count for _, count in group)] for name, group in groupby(stretches, key=itemgetter(0))]
    ends = np.cumsum([0, *(count for _, count in stretches)])
    return [(name, int(ends[i]), int(ends[i + 1])) for i, (name, _) in enumerate(stretches)] if len(names) >= least else []


def _began(time: np.ndarray, curve: _Curve, first: int, after: int) -> tuple[float, float, float]:
    """When a stretch began: where the strength passed 1, with the records around it that its noise leaves open."""
    before, after_crossing = curve.smooth[first - 1], curve.smooth[first]
    crossed = before < 1 <= after_crossing
    share = (1 - before) / (after_crossing - before) if crossed else 1.0  # otherwise another name ended here
    begin = float(time[first - 1] + share * (time[first] - time[first - 1]))
    low, high = first - 1, first
    while crossed and low > 0 and curve.smooth[low] + curve.noise[low] >= 1:
        low -= 1
    while crossed and high < after - 1 and curve.smooth[high] - curve.noise[high] < 1:
        high += 1
    return begin, float(time[low]), float(time[high])
