"""Incremental learning of sparse attention patterns (arXiv 2602.19143): one lag group at a time, by competing heads."""

from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from pydantic import Field

from stagescope.papers.incremental.students import options as students
from stagescope.papers.study import Options, Setup, Study, refuse_unused

if TYPE_CHECKING:
    from collections.abc import Mapping

    from stagescope.claims.claim import Claim
    from stagescope.dynamics.dynamics import Dynamics
    from stagescope.dynamics.record import Record
    from stagescope.papers.incremental.process import LaggedChain
    from stagescope.views.figure import Figure


class IncrementalOptions(Options):
    """Incremental learning: attention heads on a chain whose next token depends on lag groups of falling importance."""

    model: Literal["heads", "content", "transformer", "regression", "mirror", "regression-transformer"] = Field(
        "heads",
        description="positional attention and a value matrix per head; heads that read tokens and positions; a full transformer; "
        "the regression flow in their place, or its mirror law; or a transformer on vector tokens, the flow being its average",
    )
    vocab: int = Field(20, ge=2, description="number of tokens d")
    spans: tuple[int, ...] = Field(
        (2, 2, 2), description="lags in each group, most important group first: the nearest, with --reverse the farthest"
    )
    stride: int | None = Field(None, ge=1, description="lags between the starts of groups, which may overlap; default: disjoint")
    reverse: bool = Field(False, description="the farthest group is the most important one, not the nearest")
    span_weights: tuple[float, ...] = Field((), description="weight of each lag inside a group, nearest first; default: all 1")
    features: Path | None = Field(
        None, description="feature matrices (NPY or NPZ, groups x d x d, most important first) in place of random ones"
    )
    feature_order: Literal["important-first", "farthest-first"] = Field(
        "important-first", description="order of the matrices in --features: most important group first, or farthest group first"
    )
    feature_kind: Literal["orthogonal", "centred", "gram-schmidt"] = Field(
        "orthogonal", description="random features: orthogonal, rows and columns summing to zero, or those made orthogonal"
    )
    feature_seed: int = Field(0, ge=0, description="draw of the random features; --seed draws sequences and initial scores")
    importance_ratio: float = Field(1.7, ge=1, description="importance of each group over that of the next")
    scale: float = Field(5.0, gt=0, description="importance of the least important group")
    heads: int = Field(3, ge=1, description="attention heads")
    layers: Literal[1, 2] = Field(1, description="layers of the transformer")
    width: int = Field(255, ge=1, description="width of the transformer's stream, a multiple of --heads")
    mlp: int = Field(64, ge=0, description="hidden units of the transformer's MLP; 0: none")
    dropout: float = Field(0.1, ge=0, lt=1, description="share of the stream that each step of the transformer drops")
    places: Literal["learned", "sinusoidal", "one-hot"] = Field("learned", description="position encoding of the transformer")
    precision: Literal["float32", "float64"] | None = Field(
        None, description="of the passes of content heads (default: float64) and of the transformer (default: float32)"
    )
    sequences: int = Field(3000, ge=1, description="training sequences, drawn once; with --fresh those of the recorded loss")
    targets: int = Field(10, ge=1, description="predicted tokens per sequence")
    pad: int = Field(0, ge=0, description="tokens before the farthest lag of the first target")
    labels: Literal["hard", "soft"] = Field("hard", description="train on the tokens drawn, or on the true law of each target")
    batch: int | None = Field(None, ge=1, description="sequences a step sees; default: all")
    fresh: bool = Field(False, description="new sequences at every step")
    watched: int | None = Field(None, ge=1, description="sequences of the recorded loss and speed; default: all")
    positions: int = Field(10, ge=1, description="positions N of the regression models")
    gains: tuple[float, ...] = Field((2.89, 1.7, 1.0), description="gains g_i of the regression models, largest first")
    dim: int = Field(8, ge=2, description="length d of the tokens of the regression transformer")
    noise: Literal["logits", "weights"] = Field(
        "logits", description="what the initial noise of the regression models is on: attention logits, or weights"
    )
    until: float = Field(3000.0, gt=0, description="end time of the regression flows")
    rtol: float = Field(1e-12, gt=0, lt=1, description="relative tolerance of the regression flows")
    optimizer: Literal["gd", "heavy-ball", "adam", "adamw"] | None = Field(
        None, description="rule of the steps; default: adam, gd for the regression transformer; flows have none"
    )
    steps: int = Field(1000, ge=1, description="steps of the descent")
    rate_values: float = Field(0.05, gt=0, description="step size of the values V")
    rate_attention: float = Field(0.01, ge=0, description="step size of the attention scores a")
    momentum: float = Field(0.9, ge=0, lt=1, description="momentum of heavy-ball")
    weight_decay: float = Field(0.01, ge=0, description="weight decay of adamw")
    clip: float | None = Field(None, gt=0, description="longest gradient; default: any")
    init_scale: float = Field(1e-3, ge=0, description="standard deviation of the initial attention scores; values start at 0")
    init: Literal["scale", "xavier"] = Field(
        "scale", description="initial query matrices of content heads: uniform within +- --init-scale, or Xavier's range"
    )
    init_seed: int | None = Field(None, ge=0, description="draw of the initial scores; default: --seed; unused at --init-scale 0")
    record: Literal["log", "uniform", "every-step"] = Field("log", description="spacing of the recorded frames")
    frames: int = Field(300, ge=3, description="number of recorded frames (log and uniform)")


FLOWS = ("regression", "mirror")
_SINGLE_LAGS: dict[str, Any] = {"vocab": 10, "spans": (1, 1, 1), "pad": 5, "targets": 1, "feature_kind": "gram-schmidt"}
_GD: dict[str, Any] = {"optimizer": "gd", "rate_values": 5.0, "rate_attention": 5.0, "steps": 2400, "init_scale": 1e-2}
_FIGURE_TEN: dict[str, Any] = {"positions": 40, "init_scale": 1e-6, "noise": "weights", "frames": 800}
PRESETS: dict[str, dict[str, Any]] = {
    "ladder": {"clip": 1.0},
    "gd-ladder": {**_SINGLE_LAGS, **_GD, "scale": 1.0, "labels": "soft", "sequences": 6000, "feature_seed": 6, "init_seed": 2},
    "ode-exact": {"model": "regression", **_FIGURE_TEN, "until": 30000.0},
    "ode-mirror": {"model": "mirror", **_FIGURE_TEN, "until": 1000.0},
    "regression-transformer": {
        "model": "regression-transformer",
        "positions": 8,
        "batch": 128,
        "init_scale": 1e-2,
        "rate_values": 0.03,
        "rate_attention": 0.03,
        "steps": 5000,
        "frames": 800,
    },
}
PRESETS |= students.PRESETS
_OF_STEPS = ("batch", "optimizer", "steps", "rate_values", "rate_attention", "momentum", "weight_decay", "clip")
_OF_CHAINS = (
    "vocab",
    "spans",
    "stride",
    "reverse",
    "span_weights",
    "features",
    "feature_order",
    "feature_kind",
    "importance_ratio",
    "scale",
)
_OF_SEQUENCES = ("sequences", "targets", "pad", "labels", "fresh", "watched")
_OF_REGRESSION = ("positions", "gains", "noise")
_OF_FLOWS = ("until", "rtol")


def setup(options: IncrementalOptions, seed: int) -> Setup:
    _check_use(options)
    if options.model in FLOWS or options.model == "regression-transformer":
        return _regression(options, seed)
    chain, facts = _chain(options)
    loss = students.student(options, chain, seed)
    _check_frames(options, loss.shapes)
    return Setup(
        what=loss,
        params=students.initial(options, loss.model, _init_seed(options, seed)),
        dynamics=_dynamics(options),
        record=_record(options),
        facts=facts,
    )


def _init_seed(options: IncrementalOptions, seed: int) -> int:
    return seed if options.init_seed is None else options.init_seed


def _regression(options: IncrementalOptions, seed: int) -> Setup:
    """The flows, and the transformer on sampled contexts that they are the average of."""
    from stagescope.dynamics.flow import GradientFlow
    from stagescope.papers.incremental.regression.loss import MirrorFlow, RegressionLoss
    from stagescope.papers.incremental.regression.model import RegressionHeads
    from stagescope.papers.incremental.regression.sampled import RegressionSampled
    from stagescope.papers.incremental.regression.transformer import RegressionTransformer

    heads = RegressionHeads(positions=options.positions, gains=options.gains, heads=options.heads)
    start = (_init_seed(options, seed), options.init_scale, options.noise)
    if options.model == "regression-transformer":
        model = RegressionTransformer(reduced=heads, dim=options.dim, feature_seed=options.feature_seed)
        loss = RegressionSampled(model=model, batch=options.batch, seed=seed)
        _check_frames(options, loss.shapes)
        return Setup(what=loss, params=model.init(*start), dynamics=_dynamics(options), record=_record(options))
    law = MirrorFlow(model=heads) if options.model == "mirror" else RegressionLoss(model=heads)
    _check_frames(options, law.shapes)
    flow = GradientFlow(rtol=options.rtol)
    return Setup(what=law, params=heads.init(*start), dynamics=flow, until=options.until, record=_record(options))


def _check_use(options: IncrementalOptions) -> None:
    """Refuse what would have no effect."""
    rule = _rule(options)
    students.check_student(options)
    if options.model in FLOWS:
        why = f"{options.model} is a flow"
        refuse_unused(options, (*_OF_CHAINS, *_OF_SEQUENCES, *_OF_STEPS, "dim", "feature_seed"), why)
    elif options.model == "regression-transformer":
        refuse_unused(options, (*_OF_CHAINS, *_OF_SEQUENCES, *_OF_FLOWS), "the regression transformer descends on vector tokens")
    else:
        refuse_unused(options, (*_OF_REGRESSION, *_OF_FLOWS, "dim"), "it belongs to the regression models")
    if rule != "heavy-ball":
        refuse_unused(options, ("momentum",), f"{rule} has none to set; choose --optimizer heavy-ball")
    if rule != "adamw":
        refuse_unused(options, ("weight_decay",), f"{rule} has none; choose --optimizer adamw")
    if options.features is not None:
        refuse_unused(options, ("feature_kind", "feature_seed"), "the features come from --features")
    else:
        refuse_unused(options, ("feature_order",), "the features are random; give a file with --features")
    if options.model in students.STUDENTS and len(options.spans) == 1:
        refuse_unused(options, ("stride", "reverse", "importance_ratio", "feature_order"), "there is one group of lags")
    if options.record == "every-step":
        refuse_unused(options, ("frames",), "every step is recorded")


def _chain(options: IncrementalOptions) -> tuple["LaggedChain", dict[str, Any]]:
    from stagescope.papers.incremental.features import RandomFeatures, read_features
    from stagescope.papers.incremental.process import LaggedChain

    facts: dict[str, Any] = {}
    if options.features is None:
        features = RandomFeatures(kind=options.feature_kind, seed=options.feature_seed)
    else:
        from stagescope.spec import digest

        far = options.feature_order == "farthest-first"
        features = read_features(options.features, reverse=far and not options.reverse)
        facts["features_digest"] = digest(features.describe())
    chain = LaggedChain.spans(
        vocab=options.vocab,
        spans=options.spans,
        ratio=options.importance_ratio,
        scale=options.scale,
        stride=options.stride,
        reverse=options.reverse,
        span_weights=options.span_weights or None,
        features=features,
    )
    return chain, facts


def _dynamics(options: IncrementalOptions) -> "Dynamics":
    """Rates are relative to that of the values, so that t, where there is one, is its sum."""
    from stagescope.dynamics.descent import GD, Adam, AdamW, Descent, HeavyBall

    chosen: Any = {
        "gd": GD(),
        "heavy-ball": HeavyBall(momentum=options.momentum),
        "adam": Adam(),
        "adamw": AdamW(weight_decay=options.weight_decay),
    }[_rule(options)]
    rates = students.student_rates(options)
    return Descent(optimizer=chosen, lr=options.rate_values, rates=rates, steps=options.steps, clip=options.clip)


def _rule(options: IncrementalOptions) -> str:
    return options.optimizer or ("gd" if options.model == "regression-transformer" else "adam")


def _record(options: IncrementalOptions) -> "Record":
    """Log-spaced from the first step on: the first transition can come within ten steps."""
    from stagescope.dynamics.record import Every, LogSpaced, Uniform

    if options.record == "every-step":
        return Every()
    return LogSpaced(frames=options.frames) if options.record == "log" else Uniform(frames=options.frames)


def _check_frames(options: IncrementalOptions, shapes: "Mapping[str, tuple[int, ...]]") -> None:
    """Refuse more recorded numbers than fit in memory, before the first parameter is drawn."""
    from stagescope.memory import numbers, require_memory

    remedy = "record fewer --frames" if options.record != "every-step" else "choose --record log"
    asked = options.steps + 1 if options.record == "every-step" else options.frames
    frames = asked if options.model in FLOWS else min(asked, options.steps + 1)
    require_memory("the times of the frames", remedy, asked)
    require_memory("the recorded frames", remedy, frames, numbers(shapes))


def _claims() -> "tuple[Claim, ...]":
    from stagescope.papers.incremental.claims import CLAIMS

    return CLAIMS


def _figures() -> "Mapping[str, Figure]":
    from stagescope.papers.incremental.figures import FIGURES

    return FIGURES


STUDY = Study(
    name="incremental",
    paper="incremental",
    title="Incremental learning: attention patterns are learned one at a time, most important first",
    options=IncrementalOptions,
    presets=PRESETS,
    setup=setup,
    check_use=_check_use,
    tags=(
        "ISA:task",
        "ISA:positional-heads",
        "ISA:content-heads",
        "ISA:transformer",
        "ISA:loss",
        "ISA:flow",
        "ISA:mirror",
        "ISA:plateaus",
        "ISA:stages",
    ),
    claims=_claims,
    figures=_figures,
    ledger=("ladder", "gd-ladder", "ode-exact", "ode-mirror", "regression-transformer"),
)
