"""Scan and snap on a real text (arXiv 2305.16380): topical classes of a query word, and a transformer."""

from typing import Any, Literal

from pydantic import Field

from stagescope.core.options import refuse_unused
from stagescope.corpora.options import TextOptions
from stagescope.papers import scan_snap as parts
from stagescope.readings import motion
from stagescope.readings.paper import Kind
from stagescope.readings.study import Study, reproduction


class TextSnapOptions(TextOptions):
    """Scan and snap on a text: Y and Z on the windows before a query word, or a transformer on all of it."""

    model: Literal["topics", "transformer"] = "topics"
    """Y and Z on topical classes of a query word, or a transformer of one to three layers"""
    vocab: int = Field(1000, ge=2)
    """tokens: the most frequent types, and one for all others"""
    window: int | None = Field(None, ge=2)
    """tokens before a query, or of a window; default: 32, for transformer 35"""
    query: str = "the"
    """query word of the topical classes"""
    nexts: tuple[str, ...] = ()
    """words after the query, one class each; default: those that bear most content"""
    topics: int = Field(8, ge=2)
    """how many next words are chosen where none are named"""
    least: int = Field(20, ge=1)
    """training windows that a type must be in to count"""
    width: int = Field(64, ge=1)
    """width of the transformer"""
    hidden: int | None = Field(None, ge=1)
    """units of its MLP; default: twice the width"""
    places: Literal["none", "sinusoidal"] = "none"
    """whether it knows positions"""
    layers: int = Field(1, ge=1, le=3)
    """its layers; stages and claims are those of the lowest"""
    dropout: float = Field(0.0, ge=0, lt=1)
    """share that its steps drop: of inputs, attention weights, units, and what attention and MLP add"""
    student: Literal["plain", "published"] = "plain"
    """published: biases in attention too, PyTorch's initial ranges, layers that start as copies of each other"""
    streams: int | None = Field(None, ge=1)
    """read so many parallel streams of the text in order, a window of each in a step; default: windows drawn at random"""
    optimizer: Literal["sgd", "adam"] = "sgd"
    """how steps are made from gradients of batches"""
    lr: float | None = Field(None, gt=0)
    """step size; default: 1, for transformer 5, for adam .01"""
    decay: float | None = Field(None, gt=0, lt=1)
    """the step size falls to this share of itself over the steps"""
    clip: motion.Clip = Field(None, description="longest gradient; default: none, for transformer .5")
    rate_y: motion.Rate = Field(1.0, description="rate of the decoder Y, relative to lr")
    rate_z: motion.Rate = Field(1.0, description="rate of the attention scores Z, relative to lr")
    rate_mlp: motion.Rate = Field(1.0, description="rate of the lowest MLP of the transformer, relative to lr")
    steps: int | None = Field(None, ge=1)
    """steps; default: 3000, for transformer 1500"""
    batch: int | None = Field(None, ge=1)
    """windows a step sees; default: 256, for transformer 20"""


_TRANSFORMER: dict[str, Any] = {"model": "transformer"}
_PUBLISHED: dict[str, Any] = {
    **_TRANSFORMER,
    "corpus": "wikitext-2",
    "tokens": "basic",
    "vocab": 28782,
    "streams": 20,
    "width": 200,
    "hidden": 200,
    "places": "sinusoidal",
    "dropout": 0.3,
    "student": "published",
    "rate_mlp": 2.0,
}
PRESETS: dict[str, dict[str, Any]] = {
    "topics": {},
    "wikitext-2": {"corpus": "wikitext-2"},
    "tinystories": {"corpus": "tinystories"},
    "wikitext-2-named": {
        "corpus": "wikitext-2",
        "nexts": ("game", "season", "song", "episode", "storm", "album", "film", "church"),
    },
    "topics-transformer": _TRANSFORMER,
    "wikitext-2-transformer": {**_TRANSFORMER, "corpus": "wikitext-2"},
    "wikitext-2-decay": {**_TRANSFORMER, "corpus": "wikitext-2", "decay": 0.01},
    "published-figure-7": _PUBLISHED,
    "published-figure-7-deep": {**_PUBLISHED, "layers": 3},
    "published-figure-10": {**_PUBLISHED, "lr": 1.0, "rate_mlp": 1.0},
}
PRESET_NOTES = {
    "published-figure-7-deep": "the authors' script is stored with one layer: that three layers change nothing else is assumed",
    "published-figure-10": "published: both corpora, one layer, one rate from 1 to 5, five seeds; the rest is that of figure 7",
}
_OF_TOPICS = ("query", "nexts", "topics", "least", "rate_y", "rate_z")
_OF_TRANSFORMER = ("width", "hidden", "places", "layers", "dropout", "student", "streams", "rate_mlp")


def check_use(options: TextSnapOptions) -> None:
    topical = options.model == "topics"
    refused = _OF_TRANSFORMER if topical else _OF_TOPICS
    refuse_unused(options, refused, f"it belongs to --model {'transformer' if topical else 'topics'}")
    if options.streams is not None:
        refuse_unused(options, ("batch",), "a step reads one window of each of the --streams")
    if options.nexts:
        refuse_unused(options, ("topics",), "the next words are named by --nexts")


_HERE = "stagescope.papers.scan_snap.text"
_READING: dict[str, Any] = {
    "read": lambda run: parts.TextSnapReading(run),
    "claims": lambda: parts.TEXT_CLAIMS,
    "explain": lambda reading: parts.explain_text(reading),
}
STUDY = Study(
    name="text-snap",
    types=(f"{_HERE}.setup",),
    title="Scan and snap on real text: topical classes of a query word, and a transformer",
    options=TextSnapOptions,
    presets=PRESETS,
    preset_notes=PRESET_NOTES,
    setup=lambda options, seed: parts.text_setup(options, seed),
    check_use=check_use,
    kinds=(
        Kind((f"{_HERE}.loss:PairwiseWindows",), **_READING, views=lambda reading: parts.topic_views(reading)),
        Kind((f"{_HERE}.loss:TextTransformerLoss",), **_READING, views=lambda reading: parts.transformer_views(reading)),
    ),
    tags=("SnS:model", "SnS:merged-columns", "SnS:text-windows", "SnS:text-transformer", "SnS:text-stages"),
    figures=lambda: reproduction("scan_snap").TEXT_FIGURES,
    distances=lambda progress, quick: reproduction("scan_snap").text_distances(progress, quick),
    ledger=("topics", "wikitext-2", "tinystories", "wikitext-2-transformer", "wikitext-2-decay"),
)
