"""Incremental learning on a real text: do heads learn one lag after another, the most informative first?"""

from typing import Any

from pydantic import Field

from stagescope.corpora.options import TextOptions
from stagescope.papers import incremental as lazy
from stagescope.readings import motion
from stagescope.readings.paper import Kind
from stagescope.readings.study import Study, reproduction


class TextIncrementalOptions(TextOptions):
    """Incremental learning on a text: positional heads that predict the next word from the few before it."""

    window: int = Field(8, ge=2)
    """tokens before the next one that heads can look at: lags 1 to this"""
    heads: int = Field(3, ge=1)
    """attention heads"""
    batch: int = Field(2048, ge=1)
    """windows a step sees, drawn anew for each"""
    watched: int = Field(20_000, ge=1)
    """windows of the recorded loss, at equal distances in the train part"""
    optimizer: motion.BatchOptimizer = "adam"
    rate_values: float | None = Field(None, gt=0)
    """step size of the values V; default: .01 for adam, 5 for sgd"""
    rate_attention: float | None = Field(None, ge=0)
    """step size of the scores a; default: that of the values"""
    momentum: motion.Momentum = 0.9
    steps: motion.Steps = Field(3000, description="steps")
    init_scale: motion.InitScale = Field(
        1e-2, description="standard deviation of the initial attention scores; values start at 0"
    )
    frames: int = Field(250, ge=12)
    """recorded frames, log-spaced"""


PRESETS: dict[str, dict[str, Any]] = {
    "topics": {},
    "tinystories": {"corpus": "tinystories"},
    "wikitext-2": {"corpus": "wikitext-2", "heads": 4},
    "characters": {"tokens": "char", "vocab": 60},
    "tinystories-sgd": {"corpus": "tinystories", "optimizer": "sgd", "steps": 4000},
}


def check_use(options: TextIncrementalOptions) -> None:
    motion.refuse_unused_motion(options, options.optimizer)


TEXT_STUDY = Study(
    name="text-incremental",
    types=("stagescope.papers.incremental.text.loss",),
    title="Incremental learning on real text: heads turn to one lag after another, the most informative first",
    options=TextIncrementalOptions,
    presets=PRESETS,
    setup=lambda options, seed: lazy.text_setup(options, seed),
    check_use=check_use,
    kinds=(
        Kind(
            fields=("stagescope.papers.incremental.text.loss:TextHeads",),
            read=lambda run: lazy.TextIncrementalReading(run),
            claims=lambda: lazy.TEXT_CLAIMS,
            views=lambda reading: lazy.text_lag_views(reading),
            explain=lambda reading: lazy.explain_text(reading),
        ),
    ),
    tags=("ISA:text-heads", "ISA:text-importance", "ISA:text-stages", "ISA:mass"),
    figures=lambda: reproduction("incremental").TEXT_FIGURES,
    ledger=("topics", "tinystories", "wikitext-2", "characters", "tinystories-sgd"),
)
