"""Inputs of scan and snap on a text: runs on real text drawn widely, and runs on which claims are false."""

from dataclasses import replace
from typing import Any

import numpy as np

from stagescope.claims.inputs import Inputs
from stagescope.core.errors import InputError
from stagescope.core.params import key
from stagescope.corpora.known import TOPICS, locate
from stagescope.readings.registry import study
from stagescope.runs.run import Run

QUERIES = {
    "wikitext-2": ("the", "of", "in", "a", "and", "to"),
    "tinystories": ("the", "to", "a", "was", "and", "her"),
    "tiny-shakespeare": ("the", "my", "to", "and", "i"),
    TOPICS: ("the", "a", "of", "is", "to"),
}
"""Query words of each corpus: frequent ones, with more than two frequent next words."""
SMALL = ("tiny-shakespeare", TOPICS)
"""Corpora so small that types must count from fewer windows on."""


def make(seed: int, **changes: Any) -> Run:
    """Topical classes of a corpus, a query, sizes and rates drawn from a seed; a query that the text refuses is left out."""
    draw = key(seed, "text-snap")
    corpus = changes.get("corpus", str(draw.choice(list(QUERIES))))
    if corpus != TOPICS:
        locate(corpus)  # says how to get it, where it is not here
    options: dict[str, Any] = {
        "corpus": corpus,
        "vocab": int(draw.integers(600, 1500)),
        "window": int(draw.integers(16, 41)),
        "topics": int(draw.integers(4, 10)),
        "least": int(draw.integers(5, 9) if corpus in SMALL else draw.integers(12, 25)),
        "lr": float(draw.uniform(0.7, 1.5)),
        "batch": int(draw.choice([128, 256])),
        "steps": int(draw.integers(1500, 3000)),
        **changes,
    }
    refused = InputError(f"no query word is known for the corpus {corpus}")
    for query in draw.permutation(QUERIES[corpus]):
        try:
            return _run(seed, query=str(query), **options)
        except InputError as error:
            refused = error
    raise refused


def _run(seed: int, **options: Any) -> Run:
    made = study("text-snap")
    return made.run(made.configured(**options), seed=seed, progress=False)


def shuffled(seed: int) -> Run:
    """The embedded topics are left out: in random order no pair of their words is frequent enough for a class."""
    corpus = str(key(seed, "shuffled corpus").choice([name for name in QUERIES if name != TOPICS]))
    return make(seed, corpus=corpus, shuffle=seed)


def permuted(seed: int) -> Run:
    """A run on real text; each type has the scores of another."""
    run = make(seed)
    scores = np.asarray(run.params["Z"])
    order = key(seed, "permuted types").permutation(scores.shape[2])
    return replace(run, params={**run.params, "Z": scores[:, :, order]})


def transformer(seed: int, **changes: Any) -> Run:
    """The one-layer transformer, small; its shape stays, so that it is compiled once."""
    draw = key(seed, "text-snap transformer")
    corpus = changes.get("corpus", str(draw.choice(["wikitext-2", "tinystories", "tiny-shakespeare"])))
    locate(corpus)
    options = {
        "corpus": corpus,
        "vocab": 200,
        "window": 20,
        "width": 32,
        "steps": 1000,
        "lr": float(draw.uniform(3, 6)),
        **changes,
    }
    return _run(seed, model="transformer", **options)


def shuffled_transformer(seed: int) -> Run:
    return transformer(seed, shuffle=seed)


SHUFFLED = Inputs("shuffled words", "words in random order: windows say nothing about the next word of held-out text", shuffled)
PERMUTED = Inputs("permuted types", "the scores of types in random order: they rank nothing", permuted)
SHUFFLED_TRANSFORMER = Inputs(
    "shuffled words, transformer",
    "words in random order: no token before helps, and no attention is better",
    shuffled_transformer,
)
INPUTS: dict[str, tuple[Inputs, ...]] = {
    "text-snap": (
        Inputs("topical classes", "real texts, queries, windows, vocabularies, rates, batches", make),
        Inputs("transformer", "real texts, rates and seeds of the one-layer transformer", transformer),
    )
}
"""Settings the paper is about, by study."""
NULLS: dict[str, dict[str, tuple[Inputs, ...]]] = {
    "text-snap": {
        "SnS:text-frequency": (SHUFFLED, PERMUTED),
        "SnS:text-rate": (SHUFFLED_TRANSFORMER,),
        "SnS:text-freezing": (SHUFFLED_TRANSFORMER,),
    }
}
"""Runs on which a claim is false, by study and tag of the claim."""
