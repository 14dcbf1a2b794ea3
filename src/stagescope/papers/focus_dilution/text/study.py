"""Focus and dilution on a real text (arXiv 2605.01199): windows of a corpus in place of a Markov chain."""

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
    from stagescope.papers.focus_dilution.model import TokenAttention
    from stagescope.papers.focus_dilution.text.window_loss import TextLoss
    from stagescope.views.figure import Figure


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
    init_scale: float = Field(1e-2, ge=0, description="standard deviation of the initial parameters")
    optimizer: Literal["sgd", "heavy-ball", "adam"] = Field("sgd", description="how steps are made from gradients of batches")
    lr: float | None = Field(None, gt=0, description="step size; default: .2 for sgd, .02 for heavy-ball, .001 for adam")
    momentum: float = Field(0.9, ge=0, lt=1, description="momentum of heavy-ball")
    steps: int | None = Field(None, ge=1, description="steps; default: 22000, for adam 10000")
    batch: int | None = Field(None, ge=1, description="windows a step sees; default: 1024, for adam 512, for --form causal 32")
    watched: int = Field(4096, ge=1, description="windows of the recorded loss, at equal distances in the text")
    frames: int = Field(441, ge=12, description="recorded frames, equally spaced; some early ones are added")


PRESETS: dict[str, dict[str, Any]] = {
    "topics": {},
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
RATES = {"sgd": 0.2, "heavy-ball": 0.02, "adam": 1e-3}
STEPS = {"sgd": 22000, "heavy-ball": 22000, "adam": 10000}
PARTS = ("positions", "residual", "norm")


def setup(options: TextFocusOptions, seed: int) -> Setup:
    from stagescope.dynamics.record import Graded

    _check_use(options)
    corpus = options.read()
    for word in options.probe:
        corpus.token(word)
    window = options.window or (256 if options.form == "last" else 128)
    corpus.windows(window + 1)  # a corpus shorter than one window is refused here
    model = _model(options, corpus, window)
    return Setup(
        what=_loss(options, model, corpus, window, seed),
        params=model.init(seed, options.init_scale),
        dynamics=_dynamics(options),
        record=Graded(frames=options.frames),
        facts={**text_facts(corpus), "frequencies": corpus.stationary.tolist(), "last_token_loss": corpus.floor()},
    )


def _check_use(options: TextFocusOptions) -> None:
    if options.optimizer != "heavy-ball":
        refuse_unused(options, ("momentum",), f"{options.optimizer} has none; choose --optimizer heavy-ball")
    if options.form == "causal":
        refuse_unused(options, PARTS, "--form causal is for attention alone; choose --form last")
    if options.init_scale == 0:
        raise InputError("every block starts at 0, a critical point where nothing ever moves; take an --init-scale above 0")


def _model(options: TextFocusOptions, corpus: "TextCorpus", window: int) -> "TokenAttention":
    from stagescope.papers.focus_dilution.model import TokenAttention
    from stagescope.papers.focus_dilution.text.model import AttentionVariant

    scale = options.scale or (options.key_width or options.width) ** -0.5
    sizes = {"vocab": corpus.vocab, "width": options.width, "key_width": options.key_width, "scale": scale}
    parts = {name: getattr(options, name) for name in PARTS}
    return AttentionVariant(**sizes, length=window, **parts) if any(parts.values()) else TokenAttention(**sizes)


def _loss(options: TextFocusOptions, model: Any, corpus: "TextCorpus", window: int, seed: int) -> "TextLoss":
    from stagescope.papers.focus_dilution.text.loss import TextCausal, TextCounts
    from stagescope.papers.focus_dilution.text.model import AttentionVariant
    from stagescope.papers.focus_dilution.text.variant import TextVariant

    batch = options.batch or (32 if options.form == "causal" else 512 if options.optimizer == "adam" else 1024)
    kind = TextVariant if isinstance(model, AttentionVariant) else TextCausal if options.form == "causal" else TextCounts
    watched = options.watched if kind is not TextCausal else max(1, options.watched // window)
    return kind(model=model, process=corpus, length=window, batch=batch, seed=seed, watched=watched)


def _dynamics(options: TextFocusOptions) -> "Dynamics":
    from stagescope.dynamics.descent import GD, Adam, Descent, HeavyBall

    chosen = {"sgd": GD(), "heavy-ball": HeavyBall(momentum=options.momentum), "adam": Adam()}[options.optimizer]
    rate, steps = options.lr or RATES[options.optimizer], options.steps or STEPS[options.optimizer]
    return Descent(optimizer=chosen, lr=rate, steps=steps)


def _claims() -> "tuple[Claim, ...]":
    from stagescope.papers.focus_dilution.text.claims import CLAIMS

    return CLAIMS


def _figures() -> "Mapping[str, Figure]":
    from stagescope.papers.focus_dilution.text.figures import FIGURES

    return FIGURES


STUDY = Study(
    name="text-focus",
    paper="focus-dilution",
    title="Focus and dilution on real text: the same stages on windows of a corpus",
    options=TextFocusOptions,
    presets=PRESETS,
    setup=setup,
    check_use=_check_use,
    tags=("FD:model", "FD:text-loss", "FD:text-counts", "FD:text-causal", "FD:text-stages", "FD:origin"),
    claims=_claims,
    figures=_figures,
    ledger=("tinystories", "wikitext-2", "tinystories-adam", "wikitext-2-adam", "transformer"),
)
