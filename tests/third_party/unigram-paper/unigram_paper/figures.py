"""The figure of the paper: one function computes its numbers, the other draws them."""

from typing import Any

import numpy as np

from stagescope.progress import Progress
from stagescope.views.figure import Figure, Numbers
from unigram_paper.observables import slowest_rate
from unigram_paper.process import Unigram

TOPS = np.linspace(0.1, 0.95, 18)


def rates(progress: Progress) -> Numbers:
    found = [slowest_rate(np.array(Unigram.ramp(float(top), 3).pi)) for top in TOPS]
    return {"top": TOPS.tolist(), "rate": found}


def draw(numbers: Numbers) -> Any:
    from matplotlib import pyplot

    drawing, axes = pyplot.subplots(figsize=(4, 3), layout="constrained")
    axes.plot(numbers["top"], numbers["rate"])
    axes.set(xlabel="probability of token 0", ylabel="slowest rate")
    return drawing


FIGURES = {"1": Figure("1", "The slowest rate over the probability of token 0", rates, draw)}
