"""Figures 7 and 10 in miniature, on the text every machine has, and the topical classes."""

import json

import numpy as np

from stagescope.figures import text_snap
from stagescope.figures.figure import Figure, reproduce
from stagescope.figures.scan_snap import FIGURES
from stagescope.progress import Progress

SMALL = {"vocab": 100, "width": 8, "window": 8, "steps": 500, "corpus": "topics", "batch": 4}


def made(name, compute, folder):
    """A figure's numbers, after it was written whole."""
    whole = FIGURES[name]
    assert whole.needs == "wikitext-2"
    path = reproduce(Figure(whole.name, whole.title, compute, whole.draw), folder, Progress())
    assert path.read_bytes().startswith(b"\x89PNG")
    return json.loads(path.with_suffix(".json").read_text())


def test_figure_7_maps_and_curves(tmp_path):
    numbers = made("7", text_snap.maps("figure-7", **SMALL), tmp_path)
    assert numbers["steps"] == [0, 167, 333, 500] or np.allclose(numbers["steps"], [0, 167, 333, 500], atol=25)
    maps = np.array(numbers["maps"])
    assert maps.shape == (4, 8, 8)
    np.testing.assert_allclose(maps.sum(axis=2), 1, atol=1e-3)
    np.testing.assert_allclose(np.triu(maps, 1), 0)
    assert len(numbers["words"]) == 8
    assert numbers["curves"]["decaying"]["final_motion"] < numbers["curves"]["constant"]["final_motion"]


def test_figure_10_rates_and_seeds(tmp_path):
    compute = text_snap.entropies("figure-10", rates=(0.1, 5.0), seeds=2, **SMALL)
    numbers = made("10", compute, tmp_path)
    assert [(row["rate"], row["decay"]) for row in numbers["rows"]] == [(0.1, None), (5.0, None), (5.0, 0.01)]
    assert numbers["largest_sparser_than_smallest"] == [True, True]


def test_topical_figure(tmp_path):
    numbers = made("topics", text_snap.topics("topics", steps=600), tmp_path)
    types = numbers["types"]
    assert len(types["words"]) == len(types["score"]) == len(types["distinctness"]) > 30
    assert len(numbers["masses"]["common"]) == len(numbers["step"])
    assert {row["tag"] for row in numbers["claims"]} >= {"SnS:text-distinct", "SnS:text-snap"}
