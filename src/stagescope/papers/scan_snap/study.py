"""Scan and snap (arXiv 2305.16380): attention in token-pair logits drops common tokens, then freezes."""

from functools import partial
from itertools import product
from pathlib import Path
from typing import Any, Literal

from pydantic import Field

from stagescope.claims.words import read_words
from stagescope.core.errors import InputError
from stagescope.core.options import Options, refuse_unused
from stagescope.papers import scan_snap as parts
from stagescope.papers.scan_snap.limits import LIMITS
from stagescope.papers.scan_snap.text.study import STUDY as TEXT
from stagescope.readings import motion
from stagescope.readings.paper import Kind, Paper
from stagescope.readings.playable import Playable, Slider
from stagescope.readings.study import NamedSweep, Study, reproduction

WORDS = read_words("stagescope.papers.scan_snap")


class ScanSnapOptions(Options):
    """Scan and snap: Y and Z on sequence classes, in the long-sequence limit."""

    classes: Path | None = None
    """table of classes (JSON or CSV, see docs/scan-snap.md) in place of the generator"""
    num_last: int = Field(2, ge=1)
    """query tokens"""
    num_next_per_last: int = Field(1, ge=1)
    """classes per query token"""
    num_common: int = Field(10, ge=0)
    """tokens common to all classes"""
    num_common_per_last: int = Field(0, ge=0)
    """tokens common to the classes of one query"""
    num_unique: int = Field(10, ge=1)
    """distinct tokens per class"""
    common_p: float = Field(1.0, gt=0)
    """weight of a common token"""
    umin: float = Field(0.1, gt=0)
    """weight of the rarest distinct token"""
    umax: float = Field(1.0, gt=0)
    """weight of the most frequent distinct token"""
    vocab: int | None = Field(None, ge=1)
    """vocabulary size M of the softmax; default: the tokens in use"""
    rate_y: motion.Rate = Field(1.0, description="rate of the decoder Y")
    rate_z: motion.Rate = Field(1.0, description="rate of the attention scores Z")
    decoder: Literal["gradient", "pinv"] = "gradient"
    """step of Y: the gradient, or the theorems' modified decoder"""
    columns: Literal["merged", "all"] = "merged"
    """keep one column for all outputs that are never targets, or all"""
    init_scale: motion.InitScale = Field(0.0, description="initial Y and Z uniform in +- this; needs --columns all unless 0")
    start_scores: motion.InitScale = Field(0.0, description="standard deviation of normal initial scores Z; Y starts at zero")
    residual: bool = False
    """add the query token to what the decoder reads: f = (f, e_query) / sqrt(2)"""
    heads: int = Field(1, ge=1)
    """heads, each with its own Y and Z; they stay equal unless --start-scores differ"""
    optimizer: motion.Optimizer = "flow"
    until: motion.Until = 1000.0
    steps: motion.Steps = 100
    lr: motion.StepSize = Field(1.0, description="step size of a descent; rates are relative to it")
    length: int | None = Field(None, ge=2)
    """tokens per sampled context; default: the long-sequence limit, exact"""
    batch: int = Field(128, ge=1)
    """contexts per step (with --length)"""
    precision: Literal["float64", "float32"] = "float64"
    """of steps of gd and heavy-ball (with --length); the batches are the same"""
    momentum: motion.Momentum = 0.9
    method: motion.Method = "auto"
    rtol: motion.Tolerance = 1e-10
    record: motion.AutoSpacing = "auto"
    frames: motion.Frames = 400


_SMALL: dict[str, Any] = {"length": 128, "batch": 128, "steps": 100, "optimizer": "heavy-ball"}
_ONE_COMMON: dict[str, Any] = {"num_common": 1, "vocab": 1000}
_ONE_QUERY: dict[str, Any] = {"num_last": 1, "num_common": 1, "decoder": "pinv"}
_ONE_CLASS: dict[str, Any] = {"num_last": 1, "num_common": 0, "num_unique": 1, "rate_z": 0.0, "optimizer": "gd"}
NOTES = {
    "published-small": "figure 4, left",
    "published-small-10": "figure 4, right",
    "published-adam-tenth": "figure 5, left",
    "published-adam-half": "figure 5, middle",
    "published-adam-one": "figure 5, right",
    "published-medium": "figures 6, 11 and 12 at three queries and rates of 1; `sweep scan-snap --preset figure-6` makes all",
    "published-growth": "figure 3 at eta_Y = 5; the other curves are --rate-y .5, 1 and 2. The decoder is not published",
    "published-steps-50": "figure 8, left, at eta_Y = .5; the other curves are --rate-y .1, .2, 1 and 2",
    "published-steps-1000": "figure 8, right, at eta_Y = 1; the other curves are --rate-y .2, .5, 2 and 4",
    "published-ratio-10": "figure 9, left, at eta_Z = 1; the paper draws the closed form with K = 1, this is a flow with K = 2",
    "published-ratio-1": "figure 9, right, at eta_Z = 1; the paper draws the closed form with K = 1, this is a flow with K = 2",
    "published-two-phases": "the setting of theorem 4, one query for all classes, through t0' and t0; rates are ours",
}
PRESETS: dict[str, dict[str, Any]] = {
    "syn-small-flow": {},
    "syn-small-flow-10": {"rate_y": 10.0},
    "syn-small-heavy-ball": {"optimizer": "heavy-ball"},
    "syn-small-adam": {"optimizer": "adam", "lr": 0.5},
    "single-common-pinv": {**_ONE_COMMON, "num_last": 5, "rate_y": 100.0, "decoder": "pinv", "until": 10.0},
    "published-small": _SMALL,
    "published-small-10": {**_SMALL, "rate_y": 10.0},
    "published-adam-tenth": {**_SMALL, "optimizer": "adam", "lr": 0.1},
    "published-adam-half": {**_SMALL, "optimizer": "adam", "lr": 0.5},
    "published-adam-one": {**_SMALL, "optimizer": "adam", "lr": 1.0},
    "published-medium": {**_SMALL, "num_last": 3, "num_next_per_last": 2, "init_scale": 79**-0.5},
    "published-growth": {**_ONE_COMMON, "num_last": 10, "rate_z": 0.5, "rate_y": 5.0, "decoder": "pinv", "until": 700.0},
    "published-steps-50": {**_ONE_CLASS, "vocab": 50, "rate_y": 0.5, "steps": 80},
    "published-steps-1000": {**_ONE_CLASS, "vocab": 1000, "rate_y": 1.0, "steps": 70},
    "published-ratio-10": {**_ONE_QUERY, "num_next_per_last": 2, "vocab": 100, "rate_y": 10.0, "until": 5.0},
    "published-ratio-1": {**_ONE_QUERY, "num_next_per_last": 2, "vocab": 10_000, "until": 50.0},
    "published-two-phases": {**_ONE_QUERY, "num_next_per_last": 10, "vocab": 1000, "rate_y": 1000.0, "until": 20.0},
    "collapse": {**_ONE_COMMON, "num_last": 5, "rate_y": 100.0, "until": 1.5},
}
SEEDS = 10
MEDIUM_LAST, MEDIUM_Z, MEDIUM_RATIO = (1, 3, 5, 10), (0.5, 1, 2, 3), (1, 2, 5, 10)
"""Figure 6: query tokens, eta_Z and eta_Y/eta_Z; ten runs of each."""
MEDIUM_CELLS = tuple(product(MEDIUM_Z, MEDIUM_RATIO))


GENERATOR = ("num_last", "num_next_per_last", "num_common", "num_common_per_last", "num_unique", "common_p", "umin", "umax")


def check_use(options: ScanSnapOptions) -> None:
    motion.refuse_unused_motion(options, options.optimizer)
    if options.length is None:
        refuse_unused(options, ("batch", "precision"), "contexts are sampled only with --length")
    if options.init_scale and options.start_scores:
        raise InputError("--init-scale and --start-scores both give the initial scores: choose one")
    if options.classes is not None:
        refuse_unused(options, GENERATOR, "the classes come from --classes")


_HERE = "stagescope.papers.scan_snap"
_log, _integer = partial(Slider, step=200, log=True), partial(Slider, step=1, whole=True)
PLAY = Playable(
    script=f"{_HERE}:play.js",
    sliders=(
        _log("rate_y", 0.1, 100),
        _log("rate_z", 0.1, 100),
        _integer("num_last", 1, 5),
        _integer("num_next_per_last", 1, 2),
        _integer("num_common", 0, 20),
        _integer("num_unique", 1, 20),
        _log("common_p", 0.1, 10),
        Slider("umin", 0.01, 1),
        Slider("umax", 0.01, 2),
        _log("until", 1, 1e4),
        _integer("num_common_per_last", 0, 10, more=True),
        _log("vocab", 10, 5000, whole=True, more=True),
    ),
    fixed={
        "classes": None,
        "decoder": "gradient",
        "columns": "merged",
        "init_scale": 0.0,
        "start_scores": 0.0,
        "residual": False,
        "heads": 1,
        "optimizer": "flow",
        "length": None,
    },
    constants=lambda: {"onset_loss": LIMITS.onset_loss, "winner_ratio": LIMITS.winner_ratio},
)
STUDY = Study(
    name="scan-snap",
    types=(f"{_HERE}.setup",),
    title="Scan and snap: common tokens are dropped, distinct ones win, attention freezes",
    options=ScanSnapOptions,
    presets=PRESETS,
    preset_notes=NOTES,
    setup=lambda options, seed: parts.study_setup(options, seed),
    check_use=check_use,
    kinds=(
        Kind(
            fields=(f"{_HERE}.loss:PairwisePopulation", f"{_HERE}.loss:PairwisePinv", f"{_HERE}.loss:PairwiseSampled"),
            read=lambda run: parts.ScanSnapReading(run),
            claims=lambda: parts.CLAIMS,
            views=lambda reading: parts.pairwise_views(reading),
            explain=lambda reading: parts.explain_run(reading),
        ),
        Kind(
            fields=(f"{_HERE}.loss:PairwiseResidual",),
            read=lambda run: parts.ScanSnapReading(run),
            claims=lambda: parts.RESIDUAL_CLAIMS,
            views=lambda reading: parts.pairwise_views(reading),
            explain=lambda reading: parts.explain_run(reading),
        ),
        Kind(
            fields=(f"{_HERE}.loss:PairwiseHeads",),
            read=lambda run: parts.HeadsReading(run),
            claims=lambda: parts.HEADS_CLAIMS,
        ),
    ),
    tags=("SnS:data", "SnS:model", "SnS:lemma-1", "SnS:lemma-2", "SnS:stages"),
    figures=lambda: reproduction("scan_snap").FIGURES,
    distances=lambda progress, quick: reproduction("scan_snap").distances(progress, quick),
    ledger=(
        "syn-small-flow",
        "published-small",
        "published-adam-half",
        "published-medium",
        "published-growth",
        "published-two-phases",
        "single-common-pinv",
        "collapse",
    ),
    numbers=lambda run: parts.final_numbers(run),
    many=lambda options, seeds: parts.many_numbers(options, seeds),
    sweeps={
        "figure-6": NamedSweep(
            "entropy on distinct tokens over rates and number of classes: the 640 runs of figure 6",
            preset="published-medium",
            table=lambda: parts.figure_six_options(),
            measures=("numbers",),
            color="entropy",
        ),
    },
    tour={
        "syn-small-flow": "Two classes with ten common and ten distinct tokens each.",
        "syn-small-flow-10": "The same with a decoder ten times as fast: it ends less sparse.",
    },
    play=PLAY,
)
PAPER = Paper(
    name="scan-snap",
    reference=WORDS.reference,
    tags=WORDS.tags,
    studies=(STUDY, TEXT),
    forms={"population": (f"{_HERE}.loss:PairwisePopulation",), "sampled": (f"{_HERE}.loss:PairwiseSampled",)},
)
