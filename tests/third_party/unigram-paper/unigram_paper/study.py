"""The study: options, presets, and functions that import everything else when it is used. It imports nothing heavy."""

from importlib import import_module
from typing import Any

from pydantic import Field

from stagescope.options import Options
from stagescope.papers.paper import Kind
from stagescope.papers.playable import Playable, Slider
from stagescope.papers.study import NamedSweep, Study


class UnigramOptions(Options):
    """Output logits on independent tokens."""

    top: float = Field(0.5, gt=0, lt=1, description="probability of token 0")
    vocab: int = Field(3, ge=2, description="number of tokens")
    length: int | None = Field(None, ge=1, description="tokens in the sample; default: the exact loss")
    until: float = Field(20.0, gt=0, description="end time of the flow")


PLAY = Playable(
    script="unigram_paper:play.js",
    sliders=(Slider("top", 0.05, 0.95), Slider("vocab", 2, 8, 1, whole=True), Slider("until", 1, 100, 200, log=True)),
    fixed={"length": None},
)


def part(module: str) -> Any:
    """A module of this package, imported now."""
    return import_module(f"unigram_paper.{module}")


STUDY = Study(
    name="unigram",
    title="Logits learn the frequencies of tokens",
    options=UnigramOptions,
    presets={"small": {}, "skewed": {"top": 0.9}, "sampled": {"length": 1000}},
    setup=lambda options, seed: part("setup").setup(options, seed),
    kinds=(
        Kind(
            fields=("unigram_paper.loss:BiasPopulation", "unigram_paper.sampled:BiasSampled"),
            read=lambda run: part("reading").UnigramReading(run),
            claims=lambda: part("claims").CLAIMS,
            views=lambda reading: part("views").views(reading),
        ),
    ),
    tags=("unigram:loss",),
    figures=lambda: part("figures").FIGURES,
    ledger=("small", "skewed"),
    inputs=lambda: part("nulls").INPUTS,
    types=("unigram_paper.setup",),
    sweeps={
        "half-time": NamedSweep(
            "when half of the excess loss is gone, over the probability of token 0",
            preset="small",
            grid={"top": ".4:.8:5"},
            color="half",
        ),
    },
    play=PLAY,
)
