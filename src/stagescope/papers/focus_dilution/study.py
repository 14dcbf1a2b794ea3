"""Focus and dilution (arXiv 2605.01199): embeddings condense, attention focuses on the frequent token, then dilutes."""

from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any, Literal

from pydantic import Field

from stagescope.claims.words import read_words
from stagescope.core.errors import InputError
from stagescope.core.options import Options, refuse_unused
from stagescope.papers import focus_dilution as parts
from stagescope.papers.focus_dilution.text import study as text_study
from stagescope.readings import motion
from stagescope.readings.paper import Cost, Kind, Paper
from stagescope.readings.playable import Playable, Slider
from stagescope.readings.study import Boundary, NamedSweep, Study, reproduction


class FocusDilutionOptions(Options):
    """Focus and dilution: one attention layer on a Markov chain, on contexts that are infinitely long, finite or sampled."""

    pi: tuple[float, ...] = Field((0.5, 0.25, 0.15, 0.10), description="stationary law of the lazy chain")
    persistence: float = Field(
        0.6, description="probability of repeating the last token, below 1; negative: less often than chance"
    )
    pi0: float | None = Field(None, description="probability of the first token, the others nearly equal, in place of --pi")
    tokens: int = Field(4, ge=2, description="number of tokens (with --pi0)")
    delta: float = Field(0.0, description="asymmetry of the other tokens (with --pi0): pi_i = (1 - pi0)/(d - 1) + c_i delta")
    shape: tuple[float, ...] = Field((), description="c_1 ... c_{d-1}, summing to 0 (with --pi0); default: 1 0 ... 0 -1")
    transition: Path | None = Field(None, description="transition matrix (CSV, one row per line) in place of the lazy chain")
    scale: float = Field(4.0, gt=0, description="factor of the attention scores")
    width: int = Field(8, ge=1, description="width m of the embedding")
    key_width: int | None = Field(None, ge=1, description="width of queries and keys; default: that of the embedding")
    init_scale: motion.InitScale = 1e-3
    init_scale_w0: float | None = Field(None, ge=0, description="the same for the embedding W0 alone")
    init_scale_w1: float | None = Field(None, ge=0, description="the same for the output W1 alone")
    init_scale_wq: float | None = Field(None, ge=0, description="the same for the queries WQ alone")
    init_scale_wk: float | None = Field(None, ge=0, description="the same for the keys WK alone")
    form: Literal["population", "finite", "sampled"] = Field(
        "population", description="contexts of the loss: infinitely long, all of --length (both exact), or sampled"
    )
    length: int | None = Field(None, ge=1, description="tokens per context; default: 16 for --form finite, 256 for sampled")
    start: Literal["stationary", "uniform"] = Field("stationary", description="law of a finite context's first token")
    sequences: int = Field(8192, ge=1, description="contexts drawn, once (--form sampled)")
    batch: int | None = Field(None, ge=1, description="contexts a step sees, drawn anew; default: 128 for sgd, else all")
    optimizer: Literal["flow", "gd", "heavy-ball", "sgd", "adam", "rmsprop", "sign"] = Field(
        "flow", description="gradient flow, or steps; rmsprop and sign are adam with --beta1 0, and without any memory or eps"
    )
    until: motion.Until = 800.0
    steps: motion.Steps = 8000
    lr: motion.StepSize = 0.1
    momentum: motion.Momentum = 0.9
    eps: motion.Eps = 1e-8
    beta1: motion.Beta1 = 0.9
    beta2: motion.Beta2 = 0.999
    lr_per_eps: float = Field(
        0.0, ge=0, description="step size added for each unit of --eps: with it adam goes over into gradient descent as eps grows"
    )
    method: motion.Method = "auto"
    rtol: motion.Tolerance = 1e-10
    record: Literal["uniform"] = Field("uniform", description="spacing of the recorded frames")
    frames: motion.Frames = Field(1000, description="number of recorded frames")

    def with_elements(self, name: str, elements: Mapping[int, Any]) -> tuple[Any, ...]:
        """The other probabilities of pi keep their proportions, so that it still sums to 1."""
        listed = super().with_elements(name, elements)
        if name != "pi":
            return listed
        changed, unchanged = sum(elements.values()), sum(value for place, value in enumerate(listed) if place not in elements)
        share = (1 - changed) / unchanged if unchanged > 0 else 1.0
        return tuple(value if place in elements else value * share for place, value in enumerate(listed))


_MODEL = {"persistence": 0.8, "scale": 1.0, "width": 256, "init_scale": 1 / 256}
_CHAIN = {"pi": (0.75, 0.19, 0.05, 0.01), **_MODEL}
_ADAM = {
    "form": "sampled",
    "sequences": 100_000,
    "length": 19,
    "start": "uniform",
    "optimizer": "adam",
    "lr": 1.5e-4,
    "steps": 3000,
}
PRESETS: dict[str, dict[str, Any]] = {
    "ref": {},
    "published": {**_CHAIN, **_ADAM},
    "published-halving": {"pi": (8 / 15, 4 / 15, 2 / 15, 1 / 15), **_MODEL, **_ADAM},
    "published-flow": {**_CHAIN, "until": 1500.0},
    "flow-skewed": {"pi": (0.75, 0.19, 0.05, 0.01), "persistence": 0.5, "scale": 8**-0.5, "until": 6000.0},
    "near-symmetric": {"pi": (0.4, 0.22, 0.2, 0.18), "persistence": 0.6, "until": 3000.0},
    "zipf": {"pi": (0.4081, 0.2041, 0.1361, 0.102, 0.0816, 0.0681), "persistence": 0.5, "until": 1500.0},
    "delta": {"pi0": 0.55, "tokens": 4, "delta": 0.02, "persistence": 0.6, "until": 1500.0},
    "stall": {"pi0": 0.4, "tokens": 4, "delta": 0.0, "persistence": 0.3, "until": 4000.0},
    "sampled": {"form": "sampled", "sequences": 8192, "length": 256, "optimizer": "gd", "lr": 0.1, "steps": 3000},
}
PRESET_NOTES = {
    "published": "the experiment of section 4 and appendix E; ours: 3000 steps of all sequences, Adam's default betas and eps",
    "published-halving": "the same with the law of appendix E.1, pi_k ~ 2^-k, which differs from that of section 4.1",
    "published-flow": "the same chain and start by gradient flow on infinitely long contexts, of which the theorems speak",
    "flow-skewed": "ours: the published pi with persistence .5, width 8 and scale 1/sqrt(8), by flow from 1e-3",
}
FAMILY = ("pi0", "tokens", "delta", "shape")


def check_use(options: FocusDilutionOptions) -> None:
    """Refuse what would have no effect, and combinations that mean nothing."""
    motion.refuse_unused_motion(options, options.optimizer)
    if options.optimizer not in ("adam", "rmsprop"):
        refuse_unused(options, ("lr_per_eps",), f"{options.optimizer} has no eps; choose --optimizer adam")
    if options.transition is not None:
        refuse_unused(options, ("pi", "persistence", *FAMILY), "the chain comes from --transition")
    elif options.pi0 is not None:
        refuse_unused(options, ("pi",), "the stationary law comes from --pi0")
    else:
        refuse_unused(options, FAMILY, "they belong to --pi0, which is not given")
    if options.form == "population":
        refuse_unused(options, ("length", "start"), "contexts are infinitely long; choose --form finite or sampled")
    if options.form != "sampled":
        refuse_unused(options, ("sequences", "batch"), "nothing is drawn; choose --form sampled")
    if options.optimizer == "sgd" and options.form != "sampled":
        raise InputError(f"sgd draws batches, and nothing is drawn with --form {options.form}; choose --form sampled, or gd")
    if options.optimizer in ("flow", "gd"):
        refuse_unused(options, ("batch",), f"{options.optimizer} sees all sequences; choose --optimizer sgd, heavy-ball or adam")


_HERE = "stagescope.papers.focus_dilution"
WORDS = read_words(_HERE)
FORMS = {
    "population": (f"{_HERE}.loss:TokenPopulation",),
    "finite": (f"{_HERE}.loss:TokenFinite",),
    "sampled": (f"{_HERE}.loss:TokenSampled",),
}
_GIVEN, _FAMILY = {"pi0": False}, {"pi0": True}
_SCALES = ("init_scale_w0", "init_scale_w1", "init_scale_wq", "init_scale_wk")
_log, _integer = partial(Slider, step=200, log=True), partial(Slider, step=1, whole=True)
PLAY = Playable(
    script=f"{_HERE}:play.js",
    sliders=(
        Slider("persistence", -0.3, 0.95),
        Slider("pi.*", 0.01, 0.95, where=_GIVEN),
        Slider("pi0", 0.1, 0.9, where=_FAMILY),
        _integer("tokens", 2, 8, where=_FAMILY),
        Slider("delta", -0.1, 0.1, 0.001, where=_FAMILY),
        _log("scale", 0.1, 20),
        _integer("width", 1, 12),
        _log("init_scale", 1e-6, 0.3),
        _integer("seed", 0, 9),
        _log("until", 10, 1e4),
        _integer("key_width", 1, 12, like="width", more=True),
        *(_log(name, 1e-6, 0.3, like="init_scale", more=True) for name in _SCALES),
    ),
    fixed={"form": "population", "optimizer": "flow", "transition": None, "shape": ()},
    draws=lambda seed: parts.play_draws(seed),
    constants=lambda: parts.play_constants(),
)
_READING = {
    "read": lambda run: parts.FocusDilutionReading(run),
    "claims": lambda: parts.CLAIMS,
    "views": lambda reading: parts.token_views(reading),
    "explain": lambda reading: parts.explain_run(reading),
    "path": lambda loss, start, until, seen: parts.token_path(loss, start, until, seen),
    "flow": lambda: parts.TOKEN_FLOW,
    "descent": lambda loss, start, descent: parts.head_prediction(loss, start, descent),
    "rung": lambda family, label, value: parts.token_rung(family, label, value),
}
STUDY = Study(
    name="focus-dilution",
    types=(f"{_HERE}.setup",),
    title="Focus and dilution: embeddings condense, attention focuses on the frequent token, then dilutes",
    options=FocusDilutionOptions,
    presets=PRESETS,
    preset_notes=PRESET_NOTES,
    setup=lambda options, seed: parts.study_setup(options, seed),
    check_use=check_use,
    kinds=(
        Kind(fields=FORMS["population"], **_READING),
        Kind(fields=(*FORMS["finite"], *FORMS["sampled"]), **_READING, cost=Cost(slow_claims=True)),
    ),
    tags=("FD:model", "FD:population", "FD:finite", "FD:sampled", "FD:origin", "FD:attention-rate", "FD:stages"),
    figures=lambda: reproduction("focus_dilution").FIGURES | reproduction("focus_dilution").TEXT_FIGURES,
    distances=lambda progress, quick: reproduction("focus_dilution").distances(progress, quick),
    ledger=("ref", "flow-skewed", "near-symmetric", "zipf", "delta", "stall"),
    numbers=lambda run: parts.run_numbers(run),
    sweeps={
        "focus-defocus": NamedSweep(
            "where attention first focuses on the frequent token, and where it turns away from it",
            preset=None,
            options={"until": 3000.0},
            grid={"pi0": "0.3:0.6:7", "persistence": "-0.12:0.6:10", "delta": "0,0.02"},
            color="first_move",
        ),
        "stalls": NamedSweep(
            "where the second embedding direction has not opened by t = 1e5",
            preset="stall",
            options={"until": 1e5, "frames": 400},
            grid={"pi0": "0.35:0.65:7", "persistence": "0.2:0.7:6", "delta": "0,0.001,0.01"},
            color="E2",
        ),
        "linearisation": NamedSweep(
            "where linearising at the saddles predicts what a run does",
            preset=None,
            options={"until": 2000.0},
            grid={"init_scale": "1e-4:1e-1:7:log", "pi.0": "0.3:0.7:5", "persistence": "0.3,0.6"},
            measures=("events", "verdicts", "numbers"),
            color="FD:linear-condensed",
        ),
        "adam-to-flow": NamedSweep(
            "from the experiment to the theorem: focus of the published chain by eps of Adam and by the start, with 64 neurons",
            preset=None,
            options={
                "pi": (0.75, 0.19, 0.05, 0.01),
                "persistence": 0.8,
                "scale": 1.0,
                "width": 64,
                "optimizer": "adam",
                "lr": 1.5e-4 * (256 / 64) ** (2 / 3),
                "lr_per_eps": 0.05,
                "steps": 3000,
                "frames": 500,
            },
            grid={"eps": "1e-10:1:11:log", "init_scale": "1.25e-4:3.2e-2:9:log"},
            measures=("focus",),
            color="focus.outcome",
        ),
    },
    measures={"focus": lambda run: parts.focus_measure(run)},
    boundaries={
        "stall": Boundary(
            "lambda_c: above it the symmetric (1,1) of equal rare tokens is unstable",
            ("pi0", "persistence"),
            lambda options, values: parts.stall_line(options, values),
        ),
    },
    tour={"ref": "Gradient flow of one attention layer on a chain of four tokens."},
    play=PLAY,
)
PAPER = Paper(
    name="focus-dilution",
    reference=WORDS.reference,
    tags=WORDS.tags,
    studies=(STUDY, text_study.STUDY),
    about_text=lambda *given: text_study.parts.about_text(*given),
    forms=FORMS,
    watched=lambda: parts.watched_claims(),
)
