"""Incremental learning on a real text: do heads learn one lag after another, the most informative first?"""

from typing import TYPE_CHECKING, Any, Literal

from pydantic import Field

from stagescope.corpora.options import TextOptions, text_facts
from stagescope.papers.study import Setup, Study, refuse_unused

if TYPE_CHECKING:
    from collections.abc import Mapping

    from stagescope.claims.claim import Claim
    from stagescope.dynamics.dynamics import Dynamics
    from stagescope.views.figure import Figure


class TextIncrementalOptions(TextOptions):
    """Incremental learning on a text: positional heads that predict the next word from the few before it."""

    window: int = Field(8, ge=2, description="tokens before the next one that heads can look at: lags 1 to this")
    heads: int = Field(3, ge=1, description="attention heads")
    batch: int = Field(2048, ge=1, description="windows a step sees, drawn anew for each")
    watched: int = Field(20_000, ge=1, description="windows of the recorded loss, at equal distances in the train part")
    optimizer: Literal["sgd", "heavy-ball", "adam"] = Field("adam", description="how steps are made from gradients of batches")
    rate_values: float | None = Field(None, gt=0, description="step size of the values V; default: .01 for adam, 5 for sgd")
    rate_attention: float | None = Field(None, ge=0, description="step size of the scores a; default: that of the values")
    momentum: float = Field(0.9, ge=0, lt=1, description="momentum of heavy-ball")
    steps: int = Field(3000, ge=1, description="steps")
    init_scale: float = Field(1e-2, ge=0, description="standard deviation of the initial attention scores; values start at 0")
    frames: int = Field(250, ge=12, description="recorded frames, log-spaced")


RATES = {"adam": 0.01, "sgd": 5.0, "heavy-ball": 0.5}
PRESETS: dict[str, dict[str, Any]] = {
    "topics": {},
    "tinystories": {"corpus": "tinystories"},
    "wikitext-2": {"corpus": "wikitext-2", "heads": 4},
    "characters": {"tokens": "char", "vocab": 60},
    "tinystories-sgd": {"corpus": "tinystories", "optimizer": "sgd", "steps": 4000},
}


def setup(options: TextIncrementalOptions, seed: int) -> Setup:
    from stagescope.dynamics.record import LogSpaced
    from stagescope.memory import numbers, require_memory
    from stagescope.papers.incremental.students.positional import PositionalHeads
    from stagescope.papers.incremental.text.loss import TextHeads

    _check_use(options)
    corpus = options.read()
    model = PositionalHeads(vocab=corpus.vocab, heads=options.heads, context=options.window, targets=1)
    require_memory("the recorded frames", "record fewer --frames", min(options.frames, options.steps + 1), numbers(model.shapes))
    loss = TextHeads(model=model, process=corpus, batch=options.batch, seed=seed, watched=options.watched)
    for part in ("train", "held-out"):
        corpus.windows(options.window + 1, part)  # a part shorter than one window is refused here
    return Setup(
        what=loss,
        params=model.init(seed, options.init_scale),
        dynamics=_dynamics(options),
        record=LogSpaced(frames=options.frames),
        facts=text_facts(corpus),
    )


def _check_use(options: TextIncrementalOptions) -> None:
    if options.optimizer != "heavy-ball":
        refuse_unused(options, ("momentum",), f"{options.optimizer} has none; choose --optimizer heavy-ball")


def _dynamics(options: TextIncrementalOptions) -> "Dynamics":
    """Rates are relative to that of the values, so that t, where there is one, is its sum."""
    from stagescope.dynamics.descent import GD, Adam, Descent, HeavyBall

    chosen = {"sgd": GD(), "heavy-ball": HeavyBall(momentum=options.momentum), "adam": Adam()}[options.optimizer]
    rate = options.rate_values or RATES[options.optimizer]
    attention = rate if options.rate_attention is None else options.rate_attention
    return Descent(optimizer=chosen, lr=rate, rates={"V": 1.0, "a": attention / rate}, steps=options.steps)


def _claims() -> "tuple[Claim, ...]":
    from stagescope.papers.incremental.text.claims import CLAIMS

    return CLAIMS


def _figures() -> "Mapping[str, Figure]":
    from stagescope.papers.incremental.text.figures import FIGURES

    return FIGURES


STUDY = Study(
    name="text-incremental",
    paper="incremental",
    title="Incremental learning on real text: heads turn to one lag after another, the most informative first",
    options=TextIncrementalOptions,
    presets=PRESETS,
    setup=setup,
    check_use=_check_use,
    tags=("ISA:text-heads", "ISA:text-importance", "ISA:text-stages", "ISA:mass"),
    claims=_claims,
    figures=_figures,
    ledger=("topics", "tinystories", "wikitext-2", "characters", "tinystories-sgd"),
)
