"""Focus and dilution on a real text (arXiv 2605.01199): windows of a corpus in place of a Markov chain."""

from typing import Any, Literal

from pydantic import Field

from stagescope.core.errors import InputError
from stagescope.core.options import refuse_unused
from stagescope.corpora.options import TextOptions
from stagescope.papers.focus_dilution import text as parts
from stagescope.readings import motion
from stagescope.readings.paper import Kind
from stagescope.readings.study import Study, reproduction


class TextFocusOptions(TextOptions):
    """Focus and dilution on a text: one attention layer between the most frequent words, on windows of a corpus."""

    vocab: int = Field(200, ge=2, description="tokens: the most frequent types, and one for all others")
    probe: tuple[str, ...] = Field((), description="words whose attention rows are followed; default: the most frequent ones")
    window: int | None = Field(None, ge=1, description="tokens per window; default: 256, for --form causal 128")
    form: Literal["last", "causal"] = Field(
        "last", description="loss of the token after each window (count form), or after every position (prefix attention)"
    )
    positions: bool = Field(False, description="learned positions are added to the embedding")
    residual: bool = Field(False, description="the last token's embedding is added to what attention gives")
    norm: bool = Field(False, description="LayerNorm before the output")
    width: int = Field(32, ge=1, description="width m of the embedding")
    key_width: int | None = Field(None, ge=1, description="width of queries and keys; default: that of the embedding")
    scale: float | None = Field(None, gt=0, description="factor of the attention scores; default: 1/sqrt(width of keys)")
    init_scale: motion.InitScale = 1e-2
    optimizer: motion.BatchOptimizer = "sgd"
    lr: float | None = Field(None, gt=0, description="step size; default: .2 for sgd, .02 for heavy-ball, .001 for adam")
    momentum: motion.Momentum = 0.9
    steps: int | None = Field(None, ge=1, description="steps; default: 22000, for adam 10000")
    batch: int | None = Field(None, ge=1, description="windows a step sees; default: 1024, for adam 512, for --form causal 32")
    watched: int = Field(4096, ge=1, description="windows of the recorded loss, at equal distances in the text")
    frames: int = Field(441, ge=12, description="recorded frames, equally spaced; some early ones are added")


_PUBLISHED = {
    "vocab": 1000,
    "window": 64,
    "width": 256,
    "scale": 1.0,
    "init_scale": 1 / 256,
    "optimizer": "adam",
    "lr": 1.5e-4,
    "batch": 256,
    "steps": 1500,
    "frames": 200,
}
PRESETS: dict[str, dict[str, Any]] = {
    "topics": {},
    "published-tinystories": {
        "corpus": "tinystories",
        "tokens": "lower",
        "probe": ("the", ",", "a", "full", "been"),
        **_PUBLISHED,
    },
    "published-wikitext": {
        "corpus": "wikitext-2",
        "tokens": "bpe",
        "probe": (" the", " ,", " ", "ter", " end"),
        **_PUBLISHED,
    },
    "tinystories": {"corpus": "tinystories"},
    "wikitext-2": {"corpus": "wikitext-2"},
    "topics-adam": {"optimizer": "adam"},
    "tinystories-adam": {"corpus": "tinystories", "optimizer": "adam"},
    "wikitext-2-adam": {"corpus": "wikitext-2", "optimizer": "adam", "lr": 2e-3, "steps": 6000},  # at 1e-3 rare rows dilute later
    "causal": {"corpus": "wikitext-2", "form": "causal", "steps": 8000},
    "residual": {"corpus": "tinystories", "residual": True, "steps": 2500, "batch": 512, "watched": 1024},
    "transformer": {
        "corpus": "tinystories",
        "positions": True,
        "residual": True,
        "norm": True,
        "steps": 2500,
        "batch": 512,
        "watched": 1024,
    },
}
PRESET_NOTES = {
    "published-tinystories": "width, start, scale and step size as published; ours: lower-case words, 1000 types, windows of 64, "
    "loss at the last position, batches of 256, a fifth of an epoch",
    "published-wikitext": "the same on WikiText-2, with sub-words (BPE) as in the published figure",
}
PARTS = ("positions", "residual", "norm")
RATES = {"sgd": 0.2, "heavy-ball": 0.02, "adam": 1e-3}
STEPS = {"sgd": 22000, "heavy-ball": 22000, "adam": 10000}
"""Step sizes and numbers of steps by default."""


def check_use(options: TextFocusOptions) -> None:
    motion.refuse_unused_motion(options, options.optimizer)
    if options.form == "causal":
        refuse_unused(options, PARTS, "--form causal is for attention alone; choose --form last")
    if options.init_scale == 0:
        raise InputError("every block starts at 0, a critical point where nothing ever moves; take an --init-scale above 0")


_HERE = "stagescope.papers.focus_dilution.text"
STUDY = Study(
    name="text-focus",
    types=(f"{_HERE}.setup",),
    title="Focus and dilution on real text: the same stages on windows of a corpus",
    options=TextFocusOptions,
    presets=PRESETS,
    preset_notes=PRESET_NOTES,
    setup=lambda options, seed: parts.study_setup(options, seed),
    check_use=check_use,
    kinds=(
        Kind(
            fields=tuple(f"{_HERE}.model:{name}" for name in ("TextCounts", "TextCausal", "TextVariant")),
            read=lambda run: parts.TextFocusReading(run),
            claims=lambda: parts.CLAIMS,
            views=lambda reading: parts.text_focus_views(reading),
            explain=lambda reading: parts.explain_run(reading),
        ),
    ),
    tags=("FD:model", "FD:text-loss", "FD:text-counts", "FD:text-causal", "FD:text-stages", "FD:origin"),
    figures=lambda: reproduction("focus_dilution").TEXT_FIGURES,
    ledger=("tinystories", "wikitext-2", "tinystories-adam", "wikitext-2-adam", "transformer"),
)
