"""What the page that plays linear attention is given: random numbers of starts, of separate and of merged heads."""

import numpy as np

from stagescope.papers.linear_icl.model import LinearAttention

DIM, HEADS, RANK = 8, 10, 4
"""The largest model that the sliders reach. A smaller one has the first numbers of each block: a stream is read in order."""


def draws(seed: int) -> dict[str, np.ndarray]:
    models = LinearAttention(dim=DIM, heads=HEADS, rank=RANK), LinearAttention(dim=DIM, heads=HEADS, rank=None)
    return {name: block.ravel() for model in models for name, block in model.init(seed, 1.0).items()}
