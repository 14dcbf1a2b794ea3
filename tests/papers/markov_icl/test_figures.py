"""Figures are drawn from numbers of the shape that they compute."""

import pytest

from stagescope.readings.study import reproduction
from tests.readings.drawing import drawn

FIGURES = reproduction("markov_icl").FIGURES
CURVES = {
    "time": [0.0, 1.0, 2.0],
    "loss": [0.7, 0.6, 0.5],
    "match": [0.0, 1.0, 2.0],
    "score": [0.0, 1.0, 2.0],
    "previous": [0.1, 0.2, 0.9],
    "first": [0.1, 0.2, 0.9],
    "second": [0.1, 0.1, 0.9],
    "levels": {"uniform": 0.7, "bigram": 0.5},
    "compared": [0.0, 1.0, 2.0],
    "kl": [[0.0, 0.2], [0.1, 0.1], [0.2, 0.0]],
    "strategies": ["uniform", "bigram"],
}
ROWS = [{"ratio": 0.1, "lags": n, "doubly": d, "t2": 10.0 * n, "law": 11.0 * n} for n in (12, 25) for d in (False, True)]
NUMBERS = {
    "minimal": {**CURVES, "moments": [{"t": float(t), "attention": [0.5, 0.3, 0.2]} for t in range(3)]},
    "strategies": {"full": CURVES, "doubly stochastic": CURVES},
    "n-grams": CURVES,
}


@pytest.mark.parametrize("name", list(FIGURES))
def test_figures_are_drawn(name):
    assert drawn(FIGURES[name], lambda progress: NUMBERS[name])
