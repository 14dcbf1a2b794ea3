"""The runs behind the figures of arXiv 2605.01199: as published where the paper says how, else as these lines say.

Everything goes through the public API: `ss.run_study` for what a study has options for, `ss.evolve` for the rest.
"""

import gc
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

import stagescope as ss
from stagescope.papers.focus_dilution import TokenCurves, token_curves

PRESET: dict[str, Any] = dict(ss.study("focus-dilution").presets["published"])
PI, WIDTH, RATE, START = PRESET["pi"], PRESET["width"], PRESET["lr"], PRESET["init_scale"]
QUICK = {"sequences": 10_000, "steps": 1500, "frames": 501}
QUICK_NOTE = "quick version: 10,000 sequences, 1500 steps, fewer settings"
FLOW_UNTIL = 200.0
TEXTS = {"wikitext-2": "published-wikitext", "tinystories": "published-tinystories"}
QUICK_TEXT = {"batch": 64, "steps": 300, "frames": 50, "watched": 256}


def published_run(quick: bool = False, seed: int = 0, **changes: Any) -> TokenCurves:
    """Adam on sampled contexts, at the published setting with changes.

    A run of 1000 frames takes 1 GB. It may be held by a cycle of references, so what is not needed any more is freed first.
    """
    gc.collect()
    given = {**(QUICK if quick else {}), **changes}
    return token_curves(ss.run_study("focus-dilution", "published", seed=seed, progress=False, **given))


@cache
def published(quick: bool = False) -> TokenCurves:
    """The published run of seed 0; the figures share it."""
    return published_run(quick)


@cache
def flow(quick: bool = False) -> TokenCurves:
    """Gradient flow of the population loss from the same start: what the theorems are about."""
    until = FLOW_UNTIL / 2 if quick else FLOW_UNTIL
    return token_curves(
        ss.run_study("focus-dilution", "published-flow", progress=False, until=until, frames=401 if quick else 801)
    )


def descended(
    steps: int, chain: Any = None, *, eps: float = 1e-8, lr: float = RATE, start: float = START, every: int = 2
) -> TokenCurves:
    """Adam on infinitely long contexts from the start of seed 0, at the published setting but for what is given."""
    gc.collect()
    model = ss.TokenAttention(vocab=len(PI), width=WIDTH, scale=PRESET["scale"])
    loss = ss.population_loss(model, chain or ss.LazyChain(pi=PI, persistence=PRESET["persistence"]))
    descent = ss.Descent(optimizer=ss.Adam(eps=eps), lr=lr, steps=steps)
    return token_curves(ss.evolve(loss, model.init(0, start), descent, record=ss.Every(n=every), progress=False))


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
    options: Mapping[str, Any]


SAMPLE = 16
"""Words of the test sample."""


@cache
def text_run(corpus: str, quick: bool = False) -> TextRun:
    """Adam on windows of a text; the test sample is the beginning of its held-out part."""
    given: dict[str, Any] = QUICK_TEXT if quick else {"frames": 90, "watched": 1024}
    run = ss.run_study("text-focus", TEXTS[corpus], progress=False, **given)
    options = {**ss.study("text-focus").presets[TEXTS[corpus]], **given}
    read = ss.read_corpus(corpus, tokens=options["tokens"], vocab=options["vocab"])
    labels = [read.label(token) for token in range(read.vocab)]
    probes = [read.token(word) for word in options["probe"]]
    sample = test_sample(read.held_out, labels)
    blocks = {name: run.params[name] for name in ("W0", "WQ", "WK")}

    def scores(tokens: list[int]) -> np.ndarray:
        rows = np.array([w0[tokens] for w0 in blocks["W0"]])
        return options["scale"] * (rows @ blocks["WQ"]) @ np.swapaxes(rows @ blocks["WK"], 1, 2)

    norms = np.linalg.norm(np.array([w0[probes] for w0 in blocks["W0"]]), axis=2)
    words = tuple(labels[token] for token in sample)
    probe = tuple(word.strip() or "whitespace" for word in options["probe"])
    return TextRun(corpus, probe, run.time, run.series["loss"], scores(probes), norms, words, scores(sample), options)


def test_sample(tokens: np.ndarray, labels: list[str]) -> list[int]:
    """The first stretch of held-out text whose words are all in the vocabulary."""
    outside = {number for number, label in enumerate(labels) if label.startswith("<") or label in ("unk", "endoftext")}
    inside = ~np.isin(tokens, list(outside))
    length = np.convolve(inside, np.ones(SAMPLE, dtype=int), "valid")
    start = int(np.argmax(length == SAMPLE))
    return tokens[start : start + SAMPLE].tolist()
