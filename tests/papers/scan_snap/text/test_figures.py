"""Figures 7 and 10 in miniature, on the text every machine has, and the topical classes."""

from functools import partial

import numpy as np
import pytest

from stagescope.papers.study import reproduction
from tests.papers.drawing import drawn

figures = reproduction("scan_snap").figures
SMALL = {"vocab": 100, "width": 8, "window": 8, "steps": 500, "corpus": "topics", "batch": 4}


def made(name, compute):
    assert figures.FIGURES[name].needs == "wikitext-2"
    return drawn(figures.FIGURES[name], compute)


@pytest.mark.long
def test_figure_7_maps_and_curves():
    numbers = made("7", partial(figures.maps, **SMALL))
    assert numbers["steps"] == [0, 167, 333, 500] or np.allclose(numbers["steps"], [0, 167, 333, 500], atol=25)
    attention = np.array(numbers["maps"])
    assert attention.shape == (4, 8, 8)
    np.testing.assert_allclose(attention.sum(axis=2), 1, atol=1e-3)
    np.testing.assert_allclose(np.triu(attention, 1), 0)
    assert len(numbers["words"]) == 8
    assert numbers["curves"]["decaying"]["final_motion"] < numbers["curves"]["constant"]["final_motion"]


@pytest.mark.long
def test_figure_10_rates_and_seeds():
    compute = partial(figures.entropies, rates=(0.1, 5.0), seeds=1, **SMALL)
    numbers = made("10", compute)
    assert [(row["rate"], row["decay"]) for row in numbers["rows"]] == [(0.1, None), (5.0, None), (5.0, 0.01)]
    assert numbers["largest_sparser_than_smallest"] == [True]
    assert numbers["falls_at_every_rate"] == [True]
