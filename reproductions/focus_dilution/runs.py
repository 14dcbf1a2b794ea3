"""The runs behind the figures of arXiv 2605.01199: as published where the paper says how, else as these lines say.

Everything goes through the public API: `ss.run_study` for what a study has options for, `ss.evolve` for the rest.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

import stagescope as ss
from stagescope.papers.focus_dilution import TokenCurves, token_curves

PI, PERSISTENCE = (0.75, 0.19, 0.05, 0.01), 0.8
WIDTH, RATE = 256, 1.5e-4
PUBLISHED: dict[str, Any] = {
    "pi": PI,
    "persistence": PERSISTENCE,
    "form": "sampled",
    "sequences": 100_000,
    "length": 19,
    "start": "uniform",
    "optimizer": "adam",
    "lr": RATE,
    "steps": 3000,
    "width": WIDTH,
    "scale": 1.0,
    "init_scale": 1 / WIDTH,
}
"""Section 4.1 and appendix E.1. Batch, steps and seeds are not in the paper: all sequences at once, 3000 steps, seed 0."""
QUICK = {"sequences": 10_000, "steps": 1500, "frames": 501}
QUICK_NOTE = "quick version: 10,000 sequences, 1500 steps, fewer settings"
FLOW_UNTIL = 200.0
TEXT: dict[str, Any] = {
    "tokens": "lower",
    "vocab": 1000,
    "window": 64,
    "width": WIDTH,
    "scale": 1.0,
    "init_scale": 1 / WIDTH,
    "optimizer": "adam",
    "lr": RATE,
    "batch": 256,
    "steps": 1500,
    "frames": 90,
    "watched": 1024,
}
"""Width, scale, start, optimiser and rate are the paper's; words in lower case, vocabulary, window and batch are ours."""
QUICK_TEXT = {"batch": 64, "steps": 400, "frames": 50, "watched": 256}
PROBES = {"wikitext-2": ("the", ",", "a", "end", "continued"), "tinystories": ("the", ",", "a", "full", "been")}
"""Words of the probe sequences. TinyStories: the paper's. WikiText: without the authors' tokeniser there is no 'whitespace' or
'ter', and no 'continue' among 1000 words; 'continued' takes its place."""


def published_run(quick: bool = False, seed: int = 0, **changes: Any) -> ss.Run:
    """Adam on sampled contexts, at the published setting with changes."""
    return ss.run_study("focus-dilution", seed=seed, progress=False, **{**PUBLISHED, **(QUICK if quick else {}), **changes})


@cache
def published(quick: bool = False) -> TokenCurves:
    """The curves of the published run of seed 0; the figures share them."""
    return token_curves(published_run(quick))


@cache
def flow(quick: bool = False, persistence: float = PERSISTENCE) -> TokenCurves:
    """Gradient flow of the population loss from the same start: what the theorems are about."""
    run = ss.run_study(
        "focus-dilution",
        progress=False,
        pi=PI,
        persistence=persistence,
        width=WIDTH,
        scale=1.0,
        init_scale=1 / WIDTH,
        until=FLOW_UNTIL / 2 if quick else FLOW_UNTIL,
        frames=401 if quick else 801,
    )
    return token_curves(run)


@dataclass(frozen=True)
class Descended:
    """Settings of a descent on infinitely long contexts from the start of seed 0, the published ones unless they are given."""

    steps: int
    eps: float = 1e-8
    lr: float = RATE
    init_scale: float = 1 / WIDTH
    every: int = 2


@cache
def descended(settings: Descended, chain: Any = None) -> TokenCurves:
    """The curves of such a descent."""
    model = ss.TokenAttention(vocab=len(PI), width=WIDTH, scale=1.0)
    loss = ss.population_loss(model, chain or ss.LazyChain(pi=PI, persistence=PERSISTENCE))
    steps = ss.Descent(optimizer=ss.Adam(eps=settings.eps), lr=settings.lr, steps=settings.steps)
    record = ss.Every(n=settings.every)
    return token_curves(ss.evolve(loss, model.init(0, settings.init_scale), steps, record=record, progress=False))


def chain_with_law(seed: int) -> ss.MarkovChain:
    """A random chain that is not lazy, with the published law: row and column sums of pi_i P_ij are scaled to pi in turn."""
    pi = np.array(PI)
    joint = np.random.default_rng(seed).dirichlet(np.ones(len(pi)), size=len(pi)) + 1e-3
    for _ in range(2000):
        joint *= (pi / joint.sum(axis=1))[:, None]
        joint *= pi / joint.sum(axis=0)
    rows = joint / joint.sum(axis=1, keepdims=True)
    return ss.MarkovChain(rows=tuple(tuple(row) for row in rows.tolist()))


@dataclass(frozen=True)
class TextRun:
    """What the figures need of a run on a text: words of the probe sequence, its scores Phi and norms, and a test sample."""

    corpus: str
    words: tuple[str, ...]
    step: np.ndarray
    loss: np.ndarray
    scores: np.ndarray
    norms: np.ndarray
    sample: tuple[str, ...]
    sample_scores: np.ndarray
    settings: Mapping[str, Any]


SAMPLE = 16
"""Words of the test sample."""


@cache
def text_run(corpus: str, quick: bool = False) -> TextRun:
    """Adam on windows of a text; the test sample is the beginning of its held-out part."""
    settings = {**TEXT, **(QUICK_TEXT if quick else {})}
    run = ss.run_study("text-focus", corpus=corpus, probe=PROBES[corpus], progress=False, **settings)
    read = ss.read_corpus(corpus, tokens="lower", vocab=TEXT["vocab"])
    labels = [read.label(token) for token in range(read.vocab)]
    probes = [labels.index(word) for word in PROBES[corpus]]
    sample = test_sample(read.held_out, labels)
    blocks = {name: run.params[name] for name in ("W0", "WQ", "WK")}

    def scores(tokens: list[int]) -> np.ndarray:
        rows = np.array([w0[tokens] for w0 in blocks["W0"]])
        return TEXT["scale"] * (rows @ blocks["WQ"]) @ np.swapaxes(rows @ blocks["WK"], 1, 2)

    norms = np.linalg.norm(np.array([w0[probes] for w0 in blocks["W0"]]), axis=2)
    words = tuple(labels[token] for token in sample)
    return TextRun(corpus, PROBES[corpus], run.time, run.series["loss"], scores(probes), norms, words, scores(sample), settings)


def test_sample(tokens: np.ndarray, labels: list[str]) -> list[int]:
    """The first stretch of held-out text whose words are all in the vocabulary."""
    outside = {number for number, label in enumerate(labels) if label.startswith("<") or label in ("unk", "endoftext")}
    inside = ~np.isin(tokens, list(outside))
    length = np.convolve(inside, np.ones(SAMPLE, dtype=int), "valid")
    start = int(np.argmax(length == SAMPLE))
    return tokens[start : start + SAMPLE].tolist()
