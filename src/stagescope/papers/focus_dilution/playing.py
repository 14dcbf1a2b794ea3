"""What the page that plays focus and dilution is given: random numbers of starts, and the level of an open direction."""

import numpy as np

from stagescope.papers.focus_dilution.model import TokenAttention
from stagescope.papers.focus_dilution.stages.rows import THRESHOLDS

TOKENS, WIDTH = 8, 12
"""The largest model that the sliders reach. A smaller one has the first numbers of each block: a stream is read in order."""


def draws(seed: int) -> dict[str, np.ndarray]:
    return {name: block.ravel() for name, block in TokenAttention(vocab=TOKENS, width=WIDTH, scale=1.0).init(seed, 1.0).items()}


def constants() -> dict[str, float]:
    return {"level": THRESHOLDS.level}
