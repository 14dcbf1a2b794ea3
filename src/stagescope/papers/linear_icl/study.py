"""Linear attention in context (arXiv 2501.16265): merged heads learn at once, separate heads one direction at a time."""

from typing import Any, Literal

from pydantic import Field

from stagescope.claims.words import read_words
from stagescope.core.options import Options, refuse_unused
from stagescope.papers import linear_icl as parts
from stagescope.readings import motion
from stagescope.readings.paper import Kind, Paper
from stagescope.readings.playable import Playable, Slider
from stagescope.readings.study import NamedSweep, Study, reproduction

WORDS = read_words("stagescope.papers.linear_icl")


class LinearOptions(Options):
    """Linear attention on in-context linear regression: heads with merged or separate keys and queries."""

    eigenvalues: tuple[float, ...] = (0.4, 0.3, 0.2, 0.1)
    """of the covariance of the inputs, largest first"""
    context: int = Field(31, ge=1)
    """pairs (x, y) in a context"""
    contexts: tuple[int, ...] = ()
    """several lengths, equally likely, in place of --context"""
    heads: int = Field(5, ge=1)
    """attention heads"""
    rank: int = Field(1, ge=1)
    """rows of the keys and queries of a head"""
    merged: bool = False
    """one key-query matrix for each head, in place of keys and queries"""
    init_scale: motion.InitScale = 0.01
    optimizer: motion.Optimizer = "flow"
    until: float | None = Field(None, gt=0)
    """end time of the flow; default: 1.5 times the last drop predicted"""
    method: motion.Method = "auto"
    rtol: motion.Tolerance = 1e-11
    steps: motion.Steps = 3000
    lr: motion.StepSize = 0.02
    momentum: motion.Momentum = 0.9
    batch: int | None = Field(None, ge=1)
    """new sequences a step sees; default: the exact loss"""
    record: Literal["auto"] = "auto"
    """where frames are: at equal ratios, and around each drop predicted"""
    frames: motion.Frames = Field(200, description="frames at equal ratios; a flow has about 100 more around each drop predicted")


_HIGHEST = tuple(k / 36 for k in range(8, 0, -1))
PRESETS: dict[str, dict[str, Any]] = {
    "ref": {},
    "flat": {"eigenvalues": (0.35, 0.3, 0.2, 0.15), "heads": 6},
    "three": {"eigenvalues": (1.0, 0.5, 0.25), "context": 10, "heads": 4},
    "white": {"eigenvalues": (0.25, 0.25, 0.25, 0.25), "heads": 8},
    "eight": {"eigenvalues": _HIGHEST, "heads": 9, "init_scale": 0.02},
    "merged": {"merged": True, "heads": 8, "init_scale": 1e-3},
}


def check_use(options: LinearOptions) -> None:
    """Refuse what would have no effect."""
    motion.refuse_unused_motion(options, options.optimizer)
    if options.merged:
        refuse_unused(options, ("rank",), "merged heads have no rank")
    if options.contexts:
        refuse_unused(options, ("context",), "the lengths come from --contexts")
    if options.optimizer == "flow":
        refuse_unused(options, ("batch",), "a flow has no steps; choose an --optimizer")


POPULATION, SAMPLED = (f"{parts.__name__}.loss:{name}" for name in ("LinearPopulation", "LinearSampled"))
PLAY = Playable(
    script=f"{parts.__name__}:play.js",
    sliders=(
        Slider("eigenvalues.*", 0.02, 1),
        Slider("context", 1, 1000, 200, log=True, whole=True),
        Slider("heads", 1, 10, 1, whole=True),
        Slider("rank", 1, 4, 1, whole=True, where={"merged": False}),
        Slider("init_scale", 1e-4, 0.3, 200, log=True),
        Slider("seed", 0, 9, 1, whole=True),
        Slider("until", 10, 1e5, 200, log=True),
    ),
    fixed={"optimizer": "flow", "batch": None, "contexts": ()},
    draws=lambda seed: parts.play_draws(seed),
)
STUDY = Study(
    name="linear-icl",
    types=("stagescope.papers.linear_icl.setup",),
    title="Linear attention in context: abrupt or in stages, by how keys and queries are parametrised",
    options=LinearOptions,
    presets=PRESETS,
    setup=lambda options, seed: parts.study_setup(options, seed),
    check_use=check_use,
    kinds=(
        Kind(
            fields=(POPULATION, SAMPLED),
            read=lambda run: parts.LinearReading(run),
            claims=lambda: parts.CLAIMS,
            views=lambda reading: parts.linear_views(reading),
            explain=lambda reading: parts.explain_run(reading),
            path=lambda law, start, until, seen: parts.linear_path(law, start, until, seen),
            flow=lambda: parts.LINEAR_FLOW,
        ),
    ),
    tags=("LIN:task", "LIN:model", "LIN:loss", "LIN:flow", "LIN:levels", "LIN:stages"),
    figures=lambda: reproduction("linear_icl").FIGURES,
    ledger=("ref", "flat", "three", "white", "eight", "merged"),
    sweeps={
        "scale": NamedSweep(
            "when the drops come over the initial scale: the first as 1/s",
            preset="ref",
            grid={"init_scale": "1e-3:1e-1:7:log"},
            seeds=5,
            color="d1",
        ),
        "spectrum": NamedSweep(
            "when the drops come over the second eigenvalue: order is lost where it nears the first",
            preset="ref",
            grid={"eigenvalues.1": ".21:.39:7"},
            seeds=5,
            color="d2",
        ),
    },
    tour={"ref": "Directions are learned one after another, each a drop of the loss."},
    play=PLAY,
)
PAPER = Paper(
    "linear-icl", WORDS.reference, WORDS.tags, studies=(STUDY,), forms={"population": (POPULATION,), "sampled": (SAMPLED,)}
)
