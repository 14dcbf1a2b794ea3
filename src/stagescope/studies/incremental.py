"""Incremental learning of sparse attention patterns (arXiv 2602.19143): one lag group at a time, by competing heads."""

from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from pydantic import Field

from stagescope.studies.study import Options, Setup, Study, refuse_unused

if TYPE_CHECKING:
    from collections.abc import Mapping

    from stagescope.dynamics.dynamics import Dynamics
    from stagescope.dynamics.record import Record
    from stagescope.figures.figure import Figure
    from stagescope.processes.lagged_chain import LaggedChain
    from stagescope.theory.claim import Claim


class IncrementalOptions(Options):
    """Incremental learning: attention heads on a chain whose next token depends on lag groups of falling importance."""

    model: Literal["heads"] = Field("heads", description="positional attention and a value matrix per head")
    vocab: int = Field(20, ge=2, description="number of tokens d")
    spans: tuple[int, ...] = Field((2, 2, 2), description="lags in each group, nearest group first")
    stride: int | None = Field(None, ge=1, description="lags between the starts of groups, which may overlap; default: disjoint")
    reverse: bool = Field(False, description="the farthest group is the most important one, not the nearest")
    span_weights: tuple[float, ...] = Field((), description="weight of each lag inside a group, nearest first; default: all 1")
    features: Path | None = Field(
        None, description="feature matrices (NPY or NPZ, groups x d x d, most important first) in place of random ones"
    )
    feature_kind: Literal["orthogonal", "centred", "gram-schmidt"] = Field(
        "orthogonal", description="random features: orthogonal, rows and columns summing to zero, or those made orthogonal"
    )
    feature_seed: int = Field(0, ge=0, description="draw of the random features; --seed draws sequences and initial scores")
    importance_ratio: float = Field(1.7, ge=1, description="importance of each group over that of the next")
    scale: float = Field(5.0, gt=0, description="importance of the least important group")
    heads: int = Field(3, ge=1, description="attention heads")
    sequences: int = Field(3000, ge=1, description="training sequences, drawn once; with --fresh those of the recorded loss")
    targets: int = Field(10, ge=1, description="predicted tokens per sequence")
    pad: int = Field(0, ge=0, description="tokens before the farthest lag of the first target")
    labels: Literal["hard", "soft"] = Field("hard", description="train on the tokens drawn, or on the true law of each target")
    batch: int | None = Field(None, ge=1, description="sequences a step sees; default: all")
    fresh: bool = Field(False, description="new sequences at every step")
    optimizer: Literal["gd", "heavy-ball", "adam", "adamw"] = Field("adam", description="rule of the steps")
    steps: int = Field(1000, ge=1, description="steps of the descent")
    rate_values: float = Field(0.05, gt=0, description="step size of the values V")
    rate_attention: float = Field(0.01, ge=0, description="step size of the attention scores a")
    momentum: float = Field(0.9, ge=0, lt=1, description="momentum of heavy-ball")
    weight_decay: float = Field(0.01, ge=0, description="weight decay of adamw")
    clip: float | None = Field(None, gt=0, description="longest gradient; default: any")
    init_scale: float = Field(1e-3, ge=0, description="standard deviation of the initial attention scores; values start at 0")
    record: Literal["log", "uniform", "every-step"] = Field("log", description="spacing of the recorded frames")
    frames: int = Field(300, ge=3, description="number of recorded frames (log and uniform)")


_SINGLE_LAGS: dict[str, Any] = {"vocab": 10, "spans": (1, 1, 1), "pad": 5, "targets": 1, "feature_kind": "gram-schmidt"}
_GD: dict[str, Any] = {"optimizer": "gd", "rate_values": 10.0, "rate_attention": 10.0, "steps": 3000, "init_scale": 1e-2}
PRESETS: dict[str, dict[str, Any]] = {
    "ladder": {"clip": 1.0},
    "gd-ladder": {**_SINGLE_LAGS, **_GD, "scale": 1.0, "labels": "soft", "sequences": 6000},
}


def setup(options: IncrementalOptions, seed: int) -> Setup:
    from stagescope.models.positional_heads import PositionalHeads
    from stagescope.objectives.heads import HeadsLoss

    _check_use(options)
    chain, facts = _chain(options)
    sizes = {"context": chain.reach + options.pad, "targets": options.targets}
    model = PositionalHeads(vocab=options.vocab, heads=options.heads, **sizes)
    data = {name: getattr(options, name) for name in ("sequences", "labels", "batch", "fresh")}
    return Setup(
        what=HeadsLoss(model=model, process=chain, seed=seed, **data),
        params=model.init(seed, options.init_scale),
        dynamics=_dynamics(options),
        record=_record(options),
        facts=facts,
    )


def _check_use(options: IncrementalOptions) -> None:
    """Refuse what would have no effect."""
    if options.optimizer != "heavy-ball":
        refuse_unused(options, ("momentum",), f"{options.optimizer} has none to set; choose --optimizer heavy-ball")
    if options.optimizer != "adamw":
        refuse_unused(options, ("weight_decay",), f"{options.optimizer} has none; choose --optimizer adamw")
    if options.features is not None:
        refuse_unused(options, ("feature_kind", "feature_seed"), "the features come from --features")
    if options.record == "every-step":
        refuse_unused(options, ("frames",), "every step is recorded")


def _chain(options: IncrementalOptions) -> tuple["LaggedChain", dict[str, Any]]:
    from stagescope.processes.lag_features import RandomFeatures, read_features
    from stagescope.processes.lagged_chain import LaggedChain

    facts: dict[str, Any] = {}
    if options.features is None:
        features = RandomFeatures(kind=options.feature_kind, seed=options.feature_seed)
    else:
        from stagescope.described import digest

        features = read_features(options.features)
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

    chosen = {
        "gd": GD(),
        "heavy-ball": HeavyBall(momentum=options.momentum),
        "adam": Adam(),
        "adamw": AdamW(weight_decay=options.weight_decay),
    }[options.optimizer]
    rates = {"V": 1.0, "a": options.rate_attention / options.rate_values}
    return Descent(optimizer=chosen, lr=options.rate_values, rates=rates, steps=options.steps, clip=options.clip)


def _record(options: IncrementalOptions) -> "Record":
    """Log-spaced from the first step on: the first transition can come within ten steps."""
    from stagescope.dynamics.record import Every, LogSpaced, Uniform

    if options.record == "every-step":
        return Every()
    return LogSpaced(frames=options.frames) if options.record == "log" else Uniform(frames=options.frames)


def _claims() -> "tuple[Claim, ...]":
    return ()


def _figures() -> "Mapping[str, Figure]":
    return {}


STUDY = Study(
    name="incremental",
    paper="incremental",
    title="Incremental learning: attention patterns are learned one at a time, most important first",
    options=IncrementalOptions,
    presets=PRESETS,
    setup=setup,
    tags=("ISA:task", "ISA:positional-heads", "ISA:loss"),
    claims=_claims,
    figures=_figures,
    ledger=(),
)
