"""Incremental learning of sparse attention patterns (arXiv 2602.19143): one lag group at a time, by competing heads."""

from pathlib import Path
from typing import Any, Literal

from pydantic import Field

from stagescope.claims.words import read_words
from stagescope.core.errors import InputError
from stagescope.core.options import Options, refuse_unused
from stagescope.papers import incremental as lazy
from stagescope.papers.incremental.text.study import TEXT_STUDY
from stagescope.readings import motion
from stagescope.readings.paper import Cost, Kind, Paper
from stagescope.readings.study import NamedSweep, Study, reproduction

WORDS = read_words("stagescope.papers.incremental")


STUDENTS = ("heads", "content", "transformer")
OF_TRANSFORMERS = ("student", "layers", "width", "mlp", "dropout", "places")


class IncrementalOptions(Options):
    """Incremental learning: attention heads on a chain whose next token depends on lag groups of falling importance."""

    model: Literal["heads", "content", "transformer", "regression", "mirror", "regression-transformer"] = Field(
        "heads",
        description="positional attention and a value matrix per head; heads that read tokens and positions; a full transformer; "
        "the regression flow in their place, or its mirror law; or a transformer on vector tokens, the flow being its average",
    )
    vocab: int = Field(20, ge=2)
    """number of tokens d"""
    spans: tuple[int, ...] = (2, 2, 2)
    """lags in each group, most important group first: the nearest, with --reverse the farthest"""
    stride: int | None = Field(None, ge=1)
    """lags between the starts of groups, which may overlap; default: disjoint"""
    reverse: bool = False
    """the farthest group is the most important one, not the nearest"""
    span_weights: tuple[float, ...] = ()
    """weight of each lag inside a group, nearest first; default: all 1"""
    features: Path | None = None
    """feature matrices (NPY or NPZ, groups x d x d, most important first) in place of random ones"""
    feature_order: Literal["important-first", "farthest-first"] = "important-first"
    """order of the matrices in --features: most important group first, or farthest group first"""
    feature_kind: Literal["orthogonal", "centred", "gram-schmidt"] = "orthogonal"
    """random features: orthogonal, rows and columns summing to zero, or those made orthogonal"""
    feature_seed: int = Field(0, ge=0)
    """draw of the random features; --seed draws sequences and initial scores"""
    importance_ratio: float = Field(1.7, ge=1)
    """importance of each group over that of the next"""
    scale: float = Field(5.0, gt=0)
    """importance of the least important group"""
    heads: int = Field(3, ge=1)
    """attention heads"""
    student: Literal["published", "pre-norm"] = "published"
    """the paper's transformer (norms after heads and MLP, Xavier's ranges, dropout on inputs and attention too); or norms before
    them, normal embeddings, dropout on what they add"""
    layers: Literal[1, 2] = 1
    """layers of content heads or of the transformer"""
    ngram: int | None = Field(None, ge=1)
    """a learned n-gram in place of the student: the same model on windows of the nearest spans, so many"""
    width: int = Field(255, ge=1)
    """width of the transformer's stream, a multiple of --heads"""
    mlp: int = Field(64, ge=0)
    """hidden units of the transformer's MLP; 0: none"""
    dropout: float = Field(0.1, ge=0, lt=1)
    """share that a step of the transformer drops"""
    dropout_steps: Literal["all", "first-of-pass"] = "all"
    """steps with dropout: all, or the first of each pass over the sequences, as in the authors' loop"""
    places: Literal["learned", "sinusoidal", "one-hot", "rotary", "relative"] = "learned"
    """position encoding of the transformer"""
    precision: Literal["float32", "float64"] | None = None
    """of steps of heads, of passes of content heads (both: float64 by default) and of the transformer (float32)"""
    sequences: int = Field(3000, ge=1)
    """training sequences, drawn once; with --fresh those of the recorded loss"""
    targets: int = Field(10, ge=1)
    """predicted tokens per sequence"""
    pad: int = Field(0, ge=0)
    """tokens before the farthest lag of the first target"""
    labels: Literal["hard", "soft"] = "hard"
    """train on the tokens drawn, or on the true law of each target"""
    batch: int | None = Field(None, ge=1)
    """sequences a step sees; default: all"""
    fresh: bool = False
    """new sequences at every step"""
    watched: int | None = Field(None, ge=1)
    """sequences of the recorded loss and speed; default: all"""
    positions: int = Field(10, ge=1)
    """positions N of the regression models"""
    gains: tuple[float, ...] = (2.89, 1.7, 1.0)
    """gains g_i of the regression models, largest first"""
    dim: int = Field(8, ge=2)
    """length d of the tokens of the regression transformer"""
    noise: Literal["logits", "weights"] = "logits"
    """what the initial noise of the regression models is on: attention logits, or weights"""
    until: motion.Until = Field(3000.0, description="end time of the regression flows")
    rtol: motion.Tolerance = Field(1e-12, description="relative tolerance of the regression flows")
    optimizer: Literal["gd", "heavy-ball", "adam", "adamw"] | None = None
    """rule of the steps; default: adam, gd for the regression transformer; flows have none"""
    steps: motion.Steps = Field(1000, description="steps of the descent")
    rate_values: motion.StepSize = Field(0.05, description="step size of the values V")
    rate_attention: motion.Rate = Field(0.01, description="step size of the attention scores a")
    momentum: motion.Momentum = 0.9
    weight_decay: motion.WeightDecay = 0.01
    clip: motion.Clip = None
    init_scale: motion.InitScale = Field(
        1e-3, description="standard deviation of the initial attention scores; values start at 0"
    )
    init: Literal["scale", "xavier"] = "scale"
    """start of content heads: queries within +- --init-scale and values 0, or both in Xavier's range"""
    init_seed: int | None = Field(None, ge=0)
    """draw of the initial scores; default: --seed; unused at --init-scale 0"""
    record: motion.Spacing = "log"
    frames: motion.Frames = 300


FLOWS = ("regression", "mirror")
_SINGLE_LAGS: dict[str, Any] = {"vocab": 10, "spans": (1, 1, 1), "pad": 5, "targets": 1, "feature_kind": "gram-schmidt"}
_GD: dict[str, Any] = {"optimizer": "gd", "rate_values": 5.0, "rate_attention": 5.0, "steps": 2400, "init_scale": 1e-2}
_FIGURE_TEN: dict[str, Any] = {"positions": 40, "init_scale": 1e-6, "noise": "weights", "frames": 800}
# the paper's settings: AdamW has its default weight decay, .01
_PAPER: dict[str, Any] = {"vocab": 50, "scale": 10.0, "targets": 20, "sequences": 9000, "batch": 3000}
_ADAMW: dict[str, Any] = {"optimizer": "adamw", "clip": 1.0, "watched": 500, "precision": "float32"}
_MINIMAL: dict[str, Any] = {"model": "content", **_PAPER, **_ADAMW, "rate_values": 0.08, "rate_attention": 0.08, "frames": 200}
_SMALL: dict[str, Any] = {**_MINIMAL, "init_scale": 1e-9}
_XAVIER: dict[str, Any] = {**_MINIMAL, "init": "xavier"}
_FULL: dict[str, Any] = {"model": "transformer", "spans": (4, 4, 4), **_PAPER, **_ADAMW, "rate_values": 0.003, "frames": 60}
_OVERLAP: dict[str, Any] = {**_XAVIER, "spans": (4, 4, 4), "stride": 2, "steps": 1900}
PRESETS: dict[str, dict[str, Any]] = {
    "ladder": {"clip": 1.0},
    "gd-ladder": {**_SINGLE_LAGS, **_GD, "scale": 1.0, "labels": "soft", "sequences": 6000, "feature_seed": 6, "init_seed": 2},
    "ode-exact": {"model": "regression", **_FIGURE_TEN, "until": 30000.0},
    "published-flow": {"model": "mirror", **_FIGURE_TEN, "until": 1000.0},
    "regression-transformer": {
        "model": "regression-transformer",
        "positions": 8,
        "batch": 128,
        "init_scale": 1e-2,
        "rate_values": 0.03,
        "rate_attention": 0.03,
        "steps": 5000,
    },
    "published": _SMALL,  # figure 1, and figure 4 left with other --init-scale
    "published-transformer": _FULL,  # figures 2 and 3
    "published-xavier": _XAVIER,  # figure 4 with other --importance-ratio; figure 5 with fewer --sequences
    # of the authors' reply to reviewers: features made orthogonal, alignment of values with them
    "published-orthogonal": {**_SMALL, "feature_kind": "gram-schmidt", "steps": 1950},
    "published-online": {**_SMALL, "fresh": True, "steps": 2000},  # figures 6 and 7
    # figures 8 and 9; scale, ratio and rate are read off the published curves: the teacher's entropy .200, and steps 10 to 60
    "published-reversed": {
        **_FULL,
        "spans": (2, 4, 8),
        "reverse": True,
        "scale": 12.5,
        "importance_ratio": 2.5,
        "rate_values": 0.002,
    },
    # figure 11: content heads of two layers, three times as many sequences
    "published-two-layers": {
        **_XAVIER,
        "layers": 2,
        "spans": (4, 4, 4),
        "importance_ratio": 1.8,
        "sequences": 27000,
        "rate_values": 0.04,
        "rate_attention": 0.04,
    },
    "published-transformer-2": {**_FULL, "layers": 2, "rate_values": 0.001},  # figure 12
    # figures 13 and 14: the farther lag of a span has the weight .7
    "published-weighted": {**_XAVIER, "span_weights": (0.3, 0.7)},
    "published-overlapping": {**_OVERLAP, "heads": 4},  # figures 15 and 17
    "published-overlapping-3": _OVERLAP,  # figure 16
    # figures 18 and 19
    "published-sgd": {
        **{name: value for name, value in _FULL.items() if name != "optimizer"},
        "optimizer": "heavy-ball",
        "rate_values": 0.2,
        "importance_ratio": 2.0,
        "steps": 7000,
    },
}
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


def rule(options: IncrementalOptions) -> str:
    """The rule of the steps."""
    return options.optimizer or ("gd" if options.model == "regression-transformer" else "adam")


def check_use(options: IncrementalOptions) -> None:
    """Refuse what would have no effect."""
    if options.model != "transformer":
        transformer_options = tuple(name for name in OF_TRANSFORMERS if name != "layers" or options.model != "content")
        refuse_unused(options, (*transformer_options, "dropout_steps"), "it belongs to --model transformer")
    else:
        refuse_unused(options, ("rate_attention",), "the transformer has one step size, --rate-values")
        refuse_unused(options, ("init_scale",), "the transformer starts at the scale of its layers")
    if options.model not in STUDENTS:
        refuse_unused(options, ("precision",), "the regression models are float64; choose --model heads, content or transformer")
    if options.model != "content":
        refuse_unused(options, ("init",), "it belongs to --model content")
    elif options.layers == 2 and options.init == "scale":
        raise InputError("values that start at 0 hide all tokens from a second layer; give --init xavier")
    if options.model not in ("content", "transformer"):
        refuse_unused(options, ("ngram",), "it belongs to --model content or transformer")
    elif options.ngram is not None:
        refuse_unused(options, ("pad", "labels"), "a learned n-gram sees the nearest spans and the tokens drawn")
        if options.ngram > len(options.spans):
            raise InputError(f"--ngram is {options.ngram}, but there are {len(options.spans)} spans")
    if options.init == "xavier" and options.model == "content":
        refuse_unused(options, ("init_scale",), "the scale is that of --init xavier")
    if options.model in FLOWS:
        reason = f"{options.model} is a flow"
        refuse_unused(options, (*_OF_CHAINS, *_OF_SEQUENCES, *_OF_STEPS, "dim", "feature_seed"), reason)
    elif options.model == "regression-transformer":
        refuse_unused(options, (*_OF_CHAINS, *_OF_SEQUENCES, *_OF_FLOWS), "the regression transformer descends on vector tokens")
    else:
        refuse_unused(options, (*_OF_REGRESSION, *_OF_FLOWS, "dim"), "it belongs to the regression models")
    motion.refuse_unused_motion(options, "flow" if options.model in FLOWS else rule(options))
    if options.features is not None:
        refuse_unused(options, ("feature_kind", "feature_seed"), "the features come from --features")
    else:
        refuse_unused(options, ("feature_order",), "the features are random; give a file with --features")
    if options.model in STUDENTS and len(options.spans) == 1:
        refuse_unused(options, ("stride", "reverse", "importance_ratio", "feature_order"), "there is one group of lags")
    if options.record == "every-step":
        refuse_unused(options, ("frames",), "every step is recorded")


_HERE = "stagescope.papers.incremental"
_STUDENTS: dict[str, Any] = {
    "read": lambda run: lazy.StudentReading(run),
    "claims": lambda: lazy.CLAIMS,
    "views": lambda reading: lazy.lag_views(reading),
    "explain": lambda reading: lazy.explain_run(reading),
    "path": lambda *options: lazy.no_path(*options),
}
_REGRESSION = {
    **_STUDENTS,
    "read": lambda run: lazy.RegressionReading(run),
    "views": lambda reading: lazy.regression_views(reading),
}
STUDY = Study(
    name="incremental",
    types=(f"{_HERE}.setup",),
    title="Incremental learning: attention patterns are learned one at a time, most important first",
    options=IncrementalOptions,
    presets=PRESETS,
    setup=lambda options, seed: lazy.study_setup(options, seed),
    check_use=check_use,
    kinds=(
        Kind(fields=(f"{_HERE}.students:HeadsLoss",), **_STUDENTS, cost=Cost(slow_ladder=True)),
        Kind(
            fields=(f"{_HERE}.students:ContentLoss", f"{_HERE}.transformer_passes:TransformerLoss"),
            **_STUDENTS,
            cost=Cost(slow_claims=True, slow_ladder=True),
        ),
        Kind(
            fields=(f"{_HERE}.regression:RegressionLoss", f"{_HERE}.regression:MirrorFlow"),
            **{**_REGRESSION, "path": lambda *options: lazy.regression_path(*options)},
        ),
        Kind(fields=(f"{_HERE}.regression:RegressionSampled",), **_REGRESSION),
    ),
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
    figures=lambda: reproduction("incremental").FIGURES,
    distances=lambda progress, quick: reproduction("incremental").distances(progress, quick),
    ledger=("ladder", "gd-ladder", "ode-exact", "published-flow", "regression-transformer"),
    measures={"stopping": lambda run: lazy.stopping_measure(run)},
    sweeps={
        "early-stopping": NamedSweep(
            "where four rules stop training on few sequences, what that costs, and which class the model then is",
            preset="ladder",
            grid={"sequences": "50:3200:7:log"},
            seeds=5,
            measures=("numbers", "stopping"),
            color="stopping.gain",
        ),
        "escape": NamedSweep(
            "when heads leave plateau 1, over heads, importance ratio and initial scale",
            preset="gd-ladder",
            grid={"heads": "2,3,4", "importance_ratio": "1.3,1.7,2.2", "init_scale": "1e-4:1e-1:4:log"},
            color="t2",
        ),
    },
    tour={"published-flow": "Three heads over forty positions each find one, largest gain first."},
)
PAPER = Paper(
    name="incremental",
    reference=WORDS.reference,
    tags=WORDS.tags,
    studies=(STUDY, TEXT_STUDY),
    about_text=lambda *options, **named: lazy.about_text(*options, **named),
    watched=lambda: lazy.watched_claims(),
)
