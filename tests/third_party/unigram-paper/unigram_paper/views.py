"""What the page shows of a run."""

from functools import partial

import numpy as np

from stagescope.views.any_run import excess_view, loss_view, speed_view
from stagescope.views.curves import curves, many_curves
from stagescope.views.view import Level, Maker, View
from unigram_paper.observables import least_loss
from unigram_paper.reading import UnigramReading


def views(reading: UnigramReading) -> list[Maker]:
    run, law = reading.run, reading.law
    return [
        partial(loss_view, run, (Level("least loss", least_loss(law)),)),
        partial(_probabilities, reading),
        partial(excess_view, reading.curves, "its least value"),
        partial(speed_view, run),
    ]


def _probabilities(reading: UnigramReading) -> View:
    b = reading.run.params["b"]
    weights = np.exp(b - b.max(axis=1, keepdims=True))
    shares = weights / weights.sum(axis=1, keepdims=True)
    names = [f"token {i}" for i in range(b.shape[1])]
    levels = [Level(f"pi of {name}", value) for name, value in zip(names, reading.law.data, strict=True)]
    about = "Softmax of b: what the model predicts for each token. The levels are the frequencies it sees."
    return curves("probabilities", "Predicted probabilities", about, "probability", many_curves(shares, names), levels=levels)
