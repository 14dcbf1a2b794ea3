"""Inputs of incremental learning on a text: runs on real text drawn widely, and runs on which its claims are false."""

from dataclasses import replace
from typing import Any

import numpy as np

from stagescope.claims.inputs import Inputs
from stagescope.core.params import key
from stagescope.corpora.known import TOPICS, locate
from stagescope.readings.registry import study
from stagescope.runs.run import Run

CORPORA = (TOPICS, "wikitext-2", "tinystories", "tiny-shakespeare")


def make(seed: int, **changes: Any) -> Run:
    """Heads on a corpus, its tokens, vocabulary, window, rate and batch drawn from a seed."""
    draw = key(seed, "text-incremental")
    corpus, characters = changes.get("corpus", str(draw.choice(CORPORA))), bool(draw.random() < 0.25)
    if corpus != TOPICS:
        locate(corpus)  # says how to get it, where it is not here
    options: dict[str, Any] = {
        "corpus": corpus,
        "tokens": "char" if characters else None,
        "vocab": int(draw.integers(25, 40) if characters else draw.integers(40, 90)),
        "window": int(draw.integers(6, 11)),
        "heads": int(draw.integers(3, 5)),
        "rate_values": float(draw.uniform(0.008, 0.015)),
        "batch": int(draw.choice([256, 512])),
        "steps": int(draw.integers(1000, 1800)),
        "watched": 4000,
        "frames": 150,
        **changes,
    }
    made = study("text-incremental")
    return made.run(made.configured(**options), seed=seed, progress=False)


def shuffled(seed: int) -> Run:
    return make(seed, shuffle=seed)


def other_lags(seed: int) -> Run:
    """A run on real text; each lag has the attention of another, the nearest never its own, in all frames but the last.

    What was learned by the end stays as it is, so that the claim itself must tell.
    """
    run = make(seed)
    scores = np.asarray(run.params["a"])  # (frames, heads, targets, lags), the nearest lag last
    many = scores.shape[-1]
    order = key(seed, "lags").permutation(many)
    while order[-1] == many - 1:
        order = np.roll(order, 1)
    return replace(run, params={**run.params, "a": np.concatenate([scores[:-1][..., order], scores[-1:]])})


def equal_heads(seed: int) -> Run:
    """A run on real text; all heads have the attention of the one that leaves the nearest lag, in all frames but the last."""
    run = make(seed)
    scores = np.asarray(run.params["a"])
    one = int(np.argmin(scores[-1, :, 0, -1]))
    equal = np.repeat(scores[:-1, one : one + 1], scores.shape[1], axis=1)
    return replace(run, params={**run.params, "a": np.concatenate([equal, scores[-1:]])})


def other_units(seed: int) -> Run:
    """A run on real text whose recorded loss is too large by a factor of 1.25 or more, as if in other units."""
    run = make(seed)
    factor = float(key(seed, "units").uniform(1.25, 1.5))
    return replace(run, series={**run.series, "loss": factor * np.asarray(run.series["loss"])})


SHUFFLED = Inputs("shuffled words", "words in random order: no lag has information about the next word", shuffled)
LAGS = Inputs("permuted lags", "the attention on lags in random order: that order is not of importance", other_lags)
EQUAL = Inputs("equal heads", "heads that are equal leave the first lag together", equal_heads)
UNITS = Inputs("other units", "a loss that is not that of the levels", other_units)
REAL = Inputs("real text", "texts, words or characters, vocabularies, windows, heads, rates, batches", make)
INPUTS = {"text-incremental": (REAL,)}
"""By study: runs on real text."""
NULLS = {
    "text-incremental": {
        "ISA:text-order": (SHUFFLED, LAGS),
        "ISA:text-competition": (SHUFFLED, LAGS),
        "ISA:text-level": (SHUFFLED, UNITS),
        "ISA:text-parting": (SHUFFLED, EQUAL),
    }
}
"""By study and claim: runs on which the claim is false."""
