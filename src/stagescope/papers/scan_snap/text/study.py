"""Scan and snap on a real text (arXiv 2305.16380): topical classes of a query word, and the one-layer transformer."""

import math
from typing import TYPE_CHECKING, Any, Literal

from pydantic import Field

from stagescope.corpora.options import TextOptions, text_facts
from stagescope.errors import InputError
from stagescope.papers.study import Setup, Study, refuse_unused

if TYPE_CHECKING:
    from collections.abc import Mapping

    from stagescope.claims.claim import Claim
    from stagescope.corpora.corpus import TextCorpus
    from stagescope.dynamics.dynamics import Dynamics
    from stagescope.views.figure import Figure


class TextSnapOptions(TextOptions):
    """Scan and snap on a text: Y and Z on the windows before a query word, or a one-layer transformer on all of it."""

    model: Literal["topics", "transformer"] = Field(
        "topics", description="Y and Z on topical classes of a query word, or the one-layer transformer"
    )
    vocab: int = Field(1000, ge=2, description="tokens: the most frequent types, and one for all others")
    window: int | None = Field(None, ge=2, description="tokens before a query, or of a window; default: 32, for transformer 35")
    query: str = Field("the", description="query word of the topical classes")
    nexts: tuple[str, ...] = Field((), description="words after the query, one class each; default: those that bear most content")
    topics: int = Field(8, ge=2, description="how many next words are chosen where none are named")
    least: int = Field(20, ge=1, description="training windows that a type must be in to count")
    width: int = Field(64, ge=1, description="width of the transformer")
    hidden: int | None = Field(None, ge=1, description="units of its MLP; default: twice the width")
    places: Literal["none", "sinusoidal"] = Field("none", description="whether it knows positions")
    optimizer: Literal["sgd", "adam"] = Field("sgd", description="how steps are made from gradients of batches")
    lr: float | None = Field(None, gt=0, description="step size; default: 1, for transformer 5, for adam .01")
    decay: float | None = Field(None, gt=0, lt=1, description="the step size falls to this share of itself over the steps")
    clip: float | None = Field(None, gt=0, description="longest gradient; default: none, for transformer .5")
    rate_y: float = Field(1.0, ge=0, description="rate of the decoder Y, relative to lr")
    rate_z: float = Field(1.0, ge=0, description="rate of the attention scores Z, relative to lr")
    steps: int | None = Field(None, ge=1, description="steps; default: 3000, for transformer 1500")
    batch: int | None = Field(None, ge=1, description="windows a step sees; default: 256, for transformer 20")


_TRANSFORMER: dict[str, Any] = {"model": "transformer"}
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
    "figure-7": {**_TRANSFORMER, "corpus": "wikitext-2", "width": 200},
    "figure-10": {**_TRANSFORMER, "corpus": "wikitext-2", "lr": 1.0},
}
_OF_TOPICS = ("query", "nexts", "topics", "least", "rate_y", "rate_z")
_OF_TRANSFORMER = ("width", "hidden", "places")
FINE, MOST_FRAMES = 10, 1000
"""Frames of topical runs are this many steps apart, further where there would be more frames than that."""


def setup(options: TextSnapOptions, seed: int) -> Setup:
    from stagescope.dynamics.record import Every
    from stagescope.memory import require_memory

    _check_use(options)
    topical = options.model == "topics"
    corpus = options.read()
    what, params, facts = (_topics if topical else _transformer)(options, corpus, seed)
    facts, apart = {**text_facts(corpus), **facts}, _apart(options)
    size = sum(block.size for block in params.values())
    require_memory("the recorded frames", "take fewer --steps or a smaller model", _steps(options) // apart + 2, size)
    return Setup(what=what, params=params, dynamics=_dynamics(options), record=Every(n=apart), facts=facts)


def _check_use(options: TextSnapOptions) -> None:
    topical = options.model == "topics"
    refused = _OF_TRANSFORMER if topical else _OF_TOPICS
    refuse_unused(options, refused, f"it belongs to --model {'transformer' if topical else 'topics'}")
    if options.nexts:
        refuse_unused(options, ("topics",), "the next words are named by --nexts")


def _topics(options: TextSnapOptions, corpus: "TextCorpus", seed: int) -> tuple[Any, Any, dict[str, Any]]:
    from stagescope.papers.scan_snap.model import PairwiseAttention
    from stagescope.papers.scan_snap.text.loss import PairwiseWindows
    from stagescope.papers.scan_snap.text.process import topic_windows

    window = options.window or 32
    process = topic_windows(corpus, options.query, options.nexts, topics=options.topics, window=window, least=options.least)
    model = PairwiseAttention.on_windows(process)
    loss = PairwiseWindows(model=model, process=process, batch=options.batch or 256, seed=seed)
    kinds = {"common": process.common, "distinct": process.distinct}
    named = {
        f"{kind}_words": [process.corpus.words[process.keys[i]] for i in where.nonzero()[0]] for kind, where in kinds.items()
    }
    windows = {f"{part.replace('-', '_')}_windows": len(process.part(part)) for part in ("train", "held-out")}
    return loss, model.init(), {"next_words": list(process.nexts), **windows, **named}


def _transformer(options: TextSnapOptions, corpus: "TextCorpus", seed: int) -> tuple[Any, Any, dict[str, Any]]:
    from stagescope.papers.scan_snap.text.model import TextTransformer
    from stagescope.papers.scan_snap.text.transformer import TextTransformerLoss

    length, hidden = options.window or 35, options.hidden or 2 * options.width
    for part in ("train", "held-out"):
        corpus.windows(length + 1, part)  # a corpus shorter than one window is refused here
    model = TextTransformer(vocab=corpus.vocab, length=length, width=options.width, hidden=hidden, places=options.places)
    loss = TextTransformerLoss(model=model, process=corpus, length=length, batch=options.batch or 20, seed=seed)
    return loss, model.init(seed), {}


def _steps(options: TextSnapOptions) -> int:
    return options.steps or (3000 if options.model == "topics" else 1500)


def _dynamics(options: TextSnapOptions) -> "Dynamics":
    from stagescope.dynamics.descent import GD, Adam, Descent

    topical, steps = options.model == "topics", _steps(options)
    rate = options.lr or (0.01 if options.optimizer == "adam" else 1.0 if topical else 5.0)
    half_life = None if options.decay is None else steps * math.log(2) / -math.log(options.decay)
    clip = options.clip if topical else options.clip or 0.5
    rates = {"Y": options.rate_y, "Z": options.rate_z} if topical else {}
    if topical and not options.rate_y:
        raise InputError("--rate-y 0 leaves Y at zero, and then Z never moves: take a rate above 0")
    chosen = GD() if options.optimizer == "sgd" else Adam()
    return Descent(optimizer=chosen, rates=rates, lr=rate, steps=steps, clip=clip, half_life=half_life)


def _apart(options: TextSnapOptions) -> int:
    """Steps between frames, which hold every 50th step: between those the motion of attention is measured."""
    return FINE if options.model == "topics" and _steps(options) <= FINE * MOST_FRAMES else 5 * FINE


def _claims() -> "tuple[Claim, ...]":
    from stagescope.papers.scan_snap.text.claims import CLAIMS

    return CLAIMS


def _figures() -> "Mapping[str, Figure]":
    from stagescope.papers.scan_snap.text.figures import FIGURES

    return FIGURES


STUDY = Study(
    name="text-snap",
    paper="scan-snap",
    title="Scan and snap on real text: topical classes of a query word, and the one-layer transformer",
    options=TextSnapOptions,
    presets=PRESETS,
    setup=setup,
    check_use=_check_use,
    tags=("SnS:model", "SnS:merged-columns", "SnS:text-windows", "SnS:text-transformer", "SnS:text-stages"),
    claims=_claims,
    figures=_figures,
    ledger=("topics", "wikitext-2", "tinystories", "wikitext-2-transformer", "wikitext-2-decay"),
)
