"""The study: options, presets, and the names of everything else. It imports nothing heavy."""

from pydantic import Field

from stagescope.later import Later
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
STUDY = Study(
    name="unigram",
    title="Logits learn the frequencies of tokens",
    options=UnigramOptions,
    presets={"small": {}, "skewed": {"top": 0.9}, "sampled": {"length": 1000}},
    setup=Later("unigram_paper.setup:setup"),
    kinds=(
        Kind(
            fields=("unigram_paper.loss:BiasPopulation", "unigram_paper.sampled:BiasSampled"),
            read=Later("unigram_paper.reading:UnigramReading"),
            claims=Later("unigram_paper.claims:CLAIMS").load,
            views=Later("unigram_paper.views:views"),
        ),
    ),
    tags=("unigram:loss",),
    figures=Later("unigram_paper.figures:FIGURES").load,
    ledger=("small", "skewed"),
    inputs=Later("unigram_paper.nulls:INPUTS").load,
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
