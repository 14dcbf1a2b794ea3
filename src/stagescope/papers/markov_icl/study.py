"""In-context Markov chains (arXiv 2402.11004, 2508.12837): from unigrams to bigrams by two layers of attention."""

from typing import Any, Literal

from pydantic import Field

from stagescope.claims.words import read_words
from stagescope.core.errors import InputError
from stagescope.core.options import Options, refuse_unused
from stagescope.papers import markov_icl as parts
from stagescope.readings import motion
from stagescope.readings.paper import Kind, Paper
from stagescope.readings.study import NamedSweep, Study, reproduction

WORDS = read_words("stagescope.papers.markov_icl")

MOST_LAGS = 5000
"""Lags that a run may have: their scores are parameters, and every one has a row in the table of powers."""
LARGEST = 100.0
"""Largest noise of initial scores: their exponentials must be finite."""


class MarkovOptions(Options):
    """In-context Markov chains: layer 1 attends by lag, layer 2 by match."""

    model: Literal["R", "S", "S3", "F", "T"] = Field(
        "R",
        description="R: linear layer 2, infinite context; S: softmax layer 2, window of lags; S3: S with two heads on chains of "
        "order 2; F: finite sequences, linear layer 2; T: finite sequences, softmax layer 2 and a readout",
    )
    tokens: int = Field(2, ge=2, le=20)
    """number of tokens k"""
    prior: float = Field(1.0, ge=1e-3, le=1e4)
    """concentration of the Dirichlet law of the rows of a chain"""
    doubly_stochastic: bool = False
    """chains whose stationary law is uniform, so that unigrams are useless"""
    lags: int | None = Field(None, ge=2, le=MOST_LAGS)
    """lags D of layer 1; default: R 100, S 8, S3 4; F, T --length"""
    ratio: float = Field(0.1, ge=1e-6, le=1e6)
    """rate of the scores of the lags over that of the match, rho"""
    length: int | None = Field(None, ge=3)
    """tokens of a sequence (F, T); default: F 12, with --batch 100; T 64"""
    batch: int | None = Field(None, ge=1)
    """fresh sequences a step sees (F, T); default: F all sequences, T 64"""
    watched: int = Field(1000, ge=2)
    """sequences of the recorded loss (with --batch)"""
    whole_match: bool = False
    """move all entries of the match W of R or F (default: two numbers for all)"""
    nodes: int | None = Field(None, ge=2, le=200)
    """nodes of the quadrature for each row of a chain of two tokens; default: R 24, S 16, S3 5"""
    draws: int = Field(1500, ge=1)
    """chains drawn from the prior where there are more than two tokens"""
    chain_seed: int = Field(0, ge=0)
    """draw of these chains"""
    init_scale: motion.InitScale = Field(0.0, le=LARGEST, description="standard deviation of the initial scores of the lags")
    init_match: float = Field(0.0, ge=0, le=LARGEST)
    """standard deviation of the initial match, and the readout of T"""
    optimizer: motion.Optimizer = "flow"
    until: float | None = Field(None, gt=0)
    """end time of the flow; default: some times the law of t_2"""
    steps: motion.Steps = 1000
    lr: motion.StepSize = Field(1.0, description="step size of the match; that of the lags is --ratio times this")
    momentum: motion.Momentum = 0.9
    method: motion.Method = "auto"
    rtol: motion.Tolerance = 1e-9
    record: motion.AutoSpacing = "auto"
    frames: motion.Frames = 400


LAGS = {"R": 100, "S": 8, "S3": 4}
NODES = {"R": 24, "S": 16, "S3": 5, "F": 24, "T": 24}
FINITE = ("F", "T")


def sampled(options: MarkovOptions) -> bool:
    """Whether steps see batches: T always, F where a batch is given."""
    return options.model == "T" or (options.model == "F" and options.batch is not None)


def length(options: MarkovOptions) -> int:
    """Tokens of a sequence."""
    usual = 64 if options.model == "T" else 100 if options.batch is not None else 12
    return options.length or usual


def lags(options: MarkovOptions) -> int:
    if options.lags is None and options.model in FINITE and length(options) > MOST_LAGS:
        tokens = f"--length {length(options):,} asks for as many lags, more than {MOST_LAGS:,}"
        raise InputError(f"{tokens}; give fewer with --lags, or shorter sequences")
    return options.lags or (length(options) if options.model in FINITE else LAGS[options.model])


def check_use(options: MarkovOptions) -> None:
    """Refuse what would have no effect."""
    motion.refuse_unused_motion(options, options.optimizer)
    if options.model not in FINITE:
        refuse_unused(options, ("length", "batch"), f"model {options.model} has an infinite context; choose --model F or T")
    if not sampled(options):
        refuse_unused(options, ("watched",), "the loss is exact; sequences are sampled with --batch")
    if options.model in FINITE:
        refuse_unused(options, ("nodes", "draws", "chain_seed"), "chains of finite sequences are integrated out or sampled")
    elif options.tokens > 2:
        refuse_unused(options, ("nodes",), "chains of three tokens or more are drawn: --draws")
    else:
        refuse_unused(options, ("draws", "chain_seed"), "chains of two tokens are a quadrature: --nodes")
    if options.model not in ("R", "F"):
        refuse_unused(options, ("whole_match",), f"model {options.model} has its own match; it is for R and F")
    if options.model == "S3":
        refuse_unused(options, ("doubly_stochastic",), "it is a prior of chains of order 1")


_READOUT: dict[str, Any] = {"model": "T", "ratio": 1.0, "optimizer": "gd", "init_scale": 0.01, "init_match": 0.01}
PRESETS: dict[str, dict[str, Any]] = {
    "ref": {},
    "doubly-stochastic": {"doubly_stochastic": True},
    "fast-lags": {"lags": 50, "ratio": 100.0},
    "three": {"tokens": 3, "lags": 50, "ratio": 0.02},
    "adam": {"ratio": 1.0, "optimizer": "adam", "lr": 0.02, "steps": 400},
    "softmax": {"model": "S", "ratio": 1.0},
    "trigram": {"model": "S3", "ratio": 1.0},
    "finite": {"model": "F", "length": 10, "ratio": 1.0},
    "minimal": {
        "model": "F",
        "batch": 128,
        "length": 100,
        "whole_match": True,
        "init_match": 0.01,
        "optimizer": "gd",
        "lr": 0.001,
        "ratio": 1000.0,
        "steps": 800,
    },
    "readout": {**_READOUT, "steps": 1200},
    "readout-doubly": {**_READOUT, "steps": 1200, "doubly_stochastic": True},
}
FORMS = {
    form: tuple(f"{parts.__name__}.{name}" for name in names)
    for form, names in {
        "population": ("loss:LinearPopulation", "loss:SoftmaxPopulation", "loss:TwoHeadPopulation"),
        "finite": ("finite:FiniteExact",),
        "sampled": ("finite:FiniteSampled",),
    }.items()
}
"""Types of the losses by what they average over."""
STUDY = Study(
    name="markov-icl",
    types=("stagescope.papers.markov_icl.setup",),
    title="In-context Markov chains: uniform, then unigrams, then bigrams by an induction head",
    options=MarkovOptions,
    presets=PRESETS,
    setup=lambda options, seed: parts.study_setup(options, seed),
    check_use=check_use,
    kinds=(
        Kind(
            fields=tuple(field for fields in FORMS.values() for field in fields),
            read=lambda run: parts.MarkovReading(run),
            claims=lambda: parts.CLAIMS,
            views=lambda reading: parts.markov_views(reading),
            explain=lambda reading: parts.explain_run(reading),
        ),
    ),
    tags=("MIC:task", "MIC:model", "MIC:stages"),
    figures=lambda: reproduction("markov_icl").FIGURES,
    ledger=("ref", "doubly-stochastic", "fast-lags", "softmax", "trigram", "finite"),
    numbers=lambda run: parts.run_numbers(run),
    sweeps={
        "phases": NamedSweep(
            "t_2 over the ratio of rates and the number of lags: where the plateau law ends",
            preset="ref",
            grid={"ratio": ".01:10:7:log", "lags": "12,25,50,100"},
            color="t2_over_law",
        ),
    },
    tour={"ref": "Two layers, chains of two tokens: the match, a plateau, then lag 1."},
)
PAPER = Paper("markov-icl", WORDS.reference, WORDS.tags, studies=(STUDY,), forms=FORMS)
