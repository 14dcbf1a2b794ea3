"""Inputs of focus and dilution on a text: runs on real text drawn widely, and runs on which its claims are false."""

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
    """Plain steps on a corpus, with sizes and windows drawn from a seed; long enough for a second embedding direction."""
    draw = key(seed, "text-focus")
    options = _drawn(draw) | {"steps": int(draw.integers(5000, 8000)), "lr": float(draw.uniform(0.15, 0.25))}
    return _run(seed, **{**options, **changes})


def adam(seed: int, **changes: Any) -> Run:
    """The same by Adam."""
    draw = key(seed, "text-focus adam")
    options = _drawn(draw) | {"steps": int(draw.integers(2500, 4000)), "lr": float(draw.uniform(3e-3, 6e-3))}
    return _run(seed, optimizer="adam", **{**options, **changes})


def _drawn(draw: np.random.Generator) -> dict[str, Any]:
    return {
        "corpus": str(draw.choice(CORPORA)),
        "vocab": int(draw.integers(20, 41)),
        "width": int(draw.choice([8, 12])),
        "window": int(draw.choice([128, 192])),
        "batch": int(draw.choice([192, 256])),
        "watched": 512,
        "frames": 200,
    }


def _run(seed: int, **options: Any) -> Run:
    if options["corpus"] != TOPICS:
        locate(options["corpus"])  # says how to get it, where it is not here
    made = study("text-focus")
    return made.run(made.configured(**options), seed=seed, progress=False)


def shuffled(seed: int) -> Run:
    return make(seed, shuffle=seed)


def shuffled_adam(seed: int) -> Run:
    return adam(seed, shuffle=seed)


def cut(seed: int) -> Run:
    """Adam on real text, cut while rows still look at the most frequent type."""
    return adam(seed, steps=int(key(seed, "cut").integers(40, 100)))


def other_frequencies(seed: int) -> Run:
    """A short run on real text that keeps, in place of its frequencies, sharper ones in another order."""
    run = make(seed, steps=1500)
    assert run.config is not None
    draw, pi = key(seed, "frequencies"), np.array(run.config["frequencies"])
    other = draw.permutation(pi ** draw.uniform(1.4, 2.0))
    return replace(run, config={**run.config, "frequencies": (other / other.sum()).tolist()})


def other_clock(seed: int) -> Run:
    """A run on real text whose clock is too fast by a factor of 1.6 or more."""
    run = make(seed)
    faster = float(key(seed, "clock").uniform(1.6, 2.5))
    return replace(run, series={**run.series, "t": faster * np.asarray(run.series["t"])})


SHUFFLED = Inputs("shuffled words", "words in random order: nothing opens after the first embedding direction", shuffled)
SHUFFLED_ADAM = Inputs("shuffled words, Adam", "words in random order: rows turn, but no context is used", shuffled_adam)
CUT = Inputs("cut", "the run ends while rows still look at the most frequent type: nothing has turned", cut)
OTHER_FREQUENCIES = Inputs("other frequencies", "frequencies that are not those of the text", other_frequencies)
OTHER_CLOCK = Inputs("other clock", "times that are not those of the run", other_clock)
INPUTS: dict[str, tuple[Inputs, ...]] = {
    "text-focus": (
        Inputs("plain steps", "real texts, vocabularies, windows, widths, rates, batches", make),
        Inputs("Adam", "real texts, vocabularies, windows, widths, rates, batches, by Adam", adam),
    ),
}
NULLS: dict[str, dict[str, tuple[Inputs, ...]]] = {
    "text-focus": {
        "FD:text-origin": (OTHER_FREQUENCIES,),
        "FD:text-order": (SHUFFLED,),
        "FD:text-bigram": (SHUFFLED, OTHER_CLOCK),
        "FD:text-sign": (OTHER_FREQUENCIES,),
        "FD:text-separability": (SHUFFLED,),
        "FD:text-entropy": (SHUFFLED_ADAM, CUT),
        "FD:text-norms": (SHUFFLED_ADAM, CUT),
    },
}
