"""Watched runs made by hand: heads that go from even attention to a known pattern, and what `ss.watch` would record of them."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from stagescope.runs.recorder import Recorder
from stagescope.runs.run import Run

LENGTH, PERIOD, SEQUENCES, TYPES, SHOWN = 32, 16, 5, 6, 8
AXES = {
    "lag_mass": ("layer", "head", "lag"),
    **dict.fromkeys(("entropy", "sink", "prefix_match", "induction", "duplicate", "content"), ("layer", "head")),
    "type_mass": ("layer", "head", "type"),
    "type_mass_mean": ("layer", "head", "type"),
    "agreement": ("layer", "head", "other"),
    "sketch": ("layer", "head", "sketch"),
    "score_values": ("layer", "head", "score_value"),
    "pattern": ("layer", "head", "query", "key"),
    "embedding_values": ("value",),
    "group_norms": ("group",),
}
DRAW = np.random.default_rng(5)
TEXT = DRAW.integers(0, 12, (SEQUENCES, LENGTH))
TWICE = np.tile(np.stack([DRAW.permutation(40)[:PERIOD] for _ in range(2)]), (1, 2))
PROBE = [*TEXT, *TWICE]
SIGNS = DRAW.choice([-1.0, 1.0], (SEQUENCES * LENGTH**2, 16)) / np.sqrt(16 * SEQUENCES * LENGTH)
VISIBLE = np.tril(np.ones((LENGTH, LENGTH)))
EVEN = VISIBLE / VISIBLE.sum(axis=1, keepdims=True)


def at(choose: Callable[[np.ndarray, int], int]) -> np.ndarray:
    """A pattern (sequence, query, key) that gives all attention of a query to one key."""
    found = np.zeros((len(PROBE), LENGTH, LENGTH))
    for s, ids in enumerate(PROBE):
        for q in range(LENGTH):
            found[s, q, choose(ids, q)] = 1.0
    return found


def _earlier(ids: np.ndarray, q: int, more: int) -> int:
    """The place `more` after the last earlier occurrence of the query's token; the first place where there is none."""
    places = np.flatnonzero(ids[:q] == ids[q])
    return int(places[-1]) + more if len(places) else 0


def softmax(scores: np.ndarray) -> np.ndarray:
    found = np.exp(np.where(VISIBLE > 0, scores, -np.inf))
    return found / found.sum(axis=-1, keepdims=True)


PATTERNS = {
    "even": np.broadcast_to(EVEN, (len(PROBE), LENGTH, LENGTH)),
    "previous token": at(lambda ids, q: max(0, q - 1)),
    "induction": at(lambda ids, q: _earlier(ids, q, 1)),
    "duplicate": at(lambda ids, q: _earlier(ids, q, 0)),
    "sink": at(lambda ids, q: 0),
    "positional": softmax(
        np.broadcast_to(-np.abs(np.subtract.outer(np.arange(LENGTH), np.arange(LENGTH)) - 4) * 1.5, (7, 32, 32))
    ),
    "by lag": at(lambda ids, q: q - PERIOD + 1 if q >= PERIOD - 1 else q),
    "random": softmax(2.0 * DRAW.standard_normal((len(PROBE), LENGTH, LENGTH))),
    "random mild": softmax(0.5 * DRAW.standard_normal((len(PROBE), LENGTH, LENGTH))),
}


@dataclass(frozen=True)
class Plant:
    """A head that goes to a pattern around a step, in `width` of ln step, and stays there unless it leaves at `until`.

    `amount` is the share of its attention it gives to the pattern; `noise` the standard deviation of that share from record to
    record, and `drift` of the random walk it does over the run.
    """

    what: str
    step: float = 300.0
    width: float = 0.05
    amount: float = 0.9
    until: float | None = None
    noise: float = 0.0
    drift: float = 0.0

    def weights(self, steps: np.ndarray, draw: np.random.Generator) -> np.ndarray:
        rise = 1 / (1 + np.exp(np.clip(-np.log((steps + 1) / self.step) / self.width, -50, 50)))
        if self.until is not None:
            rise = rise * (steps < self.until)
        walk = np.cumsum(draw.standard_normal(len(steps)) * np.sqrt(np.diff(steps, prepend=0) / steps[-1]))
        return np.clip(self.amount * rise + self.noise * draw.standard_normal(len(steps)) + self.drift * walk, 0.0, 1.0)


def numbers(patterns: np.ndarray) -> dict[str, np.ndarray]:
    """What is recorded of patterns (layer, head, sequence, query, key)."""
    text, twice = patterns[:, :, :SEQUENCES], patterns[:, :, SEQUENCES:]
    mean, later = text.mean(2), np.arange(PERIOD, LENGTH)
    others = (mean[:, :, None] * SEQUENCES - text) / (SEQUENCES - 1)
    before = np.roll(TEXT, 1, axis=1)
    same = (TEXT[:, :, None] == before[:, None, :]) & (VISIBLE > 0)
    same[:, :, 0] = False
    kinds = np.eye(TYPES + 1)[np.minimum(TEXT, TYPES)]
    flat = text.reshape(*text.shape[:2], -1)
    unit = flat / np.linalg.norm(flat, axis=-1, keepdims=True)
    logs = np.log(np.where(text > 0, text, 1.0))
    return {
        "lag_mass": np.stack([np.diagonal(mean, -lag, axis1=-2, axis2=-1).mean(-1) for lag in range(LENGTH)], axis=-1),
        "entropy": -(text * logs).sum(-1).mean((-2, -1)),
        "sink": mean[..., 4:, 0].mean(-1),
        "prefix_match": (text * same).sum((-3, -2, -1)) / same.any(-1).sum(),
        "induction": twice[..., later, later - PERIOD + 1].mean((-2, -1)),
        "duplicate": twice[..., later, later - PERIOD].mean((-2, -1)),
        "content": 0.5 * np.abs(text - others)[..., 8:, :].sum(-1).mean((-2, -1)),
        "type_mass": np.einsum("lhsqk,skt->lht", text, kinds) / (SEQUENCES * LENGTH),
        "type_mass_mean": np.einsum("lhqk,skt->lht", mean, kinds) / (SEQUENCES * LENGTH),
        "agreement": unit @ unit.swapaxes(-1, -2),
        "sketch": flat @ SIGNS,
        "score_values": np.ones((*patterns.shape[:2], 4)),
        "pattern": text[:, :, 0, :SHOWN, :SHOWN],
    }


def schedule(steps: int, frames: int) -> np.ndarray:
    """Steps of records: half of them even in ln step, half even."""
    even, log = np.linspace(0, steps, frames // 2), np.geomspace(1, steps, frames // 2)
    return np.unique(np.concatenate([even, log]).astype(int))


def falling(steps: np.ndarray, step: float = 300.0, first: float = 4.0, last: float = 2.0) -> np.ndarray:
    """A loss that falls around a step."""
    return last + (first - last) / (1 + ((steps + 1) / step) ** 8)


def warm(steps: np.ndarray, until: float = 100.0, decay: float = 700.0) -> np.ndarray:
    """A rate that rises until a step, is constant, and falls in a line."""
    return 1e-3 * np.minimum(np.minimum(1, (steps + 1) / until), 1 - np.clip((steps - decay) / (steps[-1] - decay), 0, 1) * 0.9)


def forged(
    plants: Mapping[tuple[int, int], Plant] | None = None,
    *,
    layers: int = 2,
    heads: int = 3,
    steps: int = 1000,
    frames: int = 120,
    seed: int = 0,
    loss: Callable[[np.ndarray], np.ndarray] = falling,
    rate: Callable[[np.ndarray], np.ndarray] | None = None,
    gain: tuple[float, float] = (0.5, 0.05),
    without: tuple[str, ...] = (),
    status: str = "finished",
    source: Mapping[str, Any] | None = None,
) -> Run:
    """A run of `frames` records in which the planted heads do what is planted, and the others attend evenly."""
    draw, when = np.random.default_rng(seed), schedule(steps, frames)
    share = {place: plant.weights(when, draw) for place, plant in (plants or {}).items()}
    series = {"loss": loss(when), "learning_rate": np.full(len(when), np.nan) if rate is None else rate(when)}
    facts = {
        "kind": "watched",
        "model": "Forged",
        "parameters": 7,
        "vocabulary": 40,
        "causal": True,
        "layers": [f"h.{layer}" for layer in range(layers)],
        "heads": [heads] * layers,
        "unigram_entropy": 3.2,
        "probe": {"sequences": SEQUENCES, "length": LENGTH, "shown": list("The cat.")[:SHOWN], "repeated": 2, "period": PERIOD},
        "types": [f"type{k}" for k in range(TYPES)],
        "groups": ["wte", "head"],
        "embedding": "wte.weight",
        "steps": steps,
    }
    recorder = Recorder(
        None, axes={name: axes for name, axes in AXES.items() if name not in without}, source=facts | dict(source or {})
    )
    for i, step in enumerate(when):
        patterns = np.broadcast_to(PATTERNS["even"], (layers, heads, *PATTERNS["even"].shape)).copy()
        for (layer, head), plant in (plants or {}).items():
            patterns[layer, head] += share[layer, head][i] * (PATTERNS[plant.what] - PATTERNS["even"])
        measured = i == len(when) - 1
        record = numbers(patterns) | {
            **{name: values[i] for name, values in series.items()},
            "train_loss": series["loss"][i] + 0.1,
            "repeat_loss": 4.0,
            "gradient_norm": 1.0,
            "embedding_rank": 20.0,
            "context_gain": gain[0] if measured else np.nan,
            "context_gain_error": gain[1] if measured else np.nan,
            "embedding_values": np.arange(4.0, 0.0, -1.0),
            "group_norms": np.array([1.0, 2.0]),
        }
        recorder.record(
            int(step), **{name: np.asarray(value, np.float32) for name, value in record.items() if name not in without}
        )
    recorder.finish(status)
    return recorder.run
