"""Figures 7 and 10 in miniature, on the text every machine has, and the table of their published numbers."""

import importlib
from functools import partial

import numpy as np
import pytest

import stagescope as ss
from stagescope.core.progress import Progress
from stagescope.papers.scan_snap.limits import LIMITS
from stagescope.papers.scan_snap.text.observables import text_attention
from stagescope.readings.study import reproduction
from tests.readings.drawing import drawn

reproduction("scan_snap")
figures = importlib.import_module("stagescope.reproductions.scan_snap.text_figures")
SMALL = {"vocab": 100, "width": 8, "hidden": 8, "window": 8, "steps": 150, "corpus": "topics", "tokens": "lower", "streams": 4}


@pytest.fixture(autouse=True)
def cache(tmp_path_factory, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.getbasetemp() / "panels"))  # the tests share what they make


def test_a_panel_has_the_numbers_of_the_run_and_of_its_window():
    found = figures.panel("published-figure-7-deep", **SMALL)
    run = ss.run_study("text-snap", "published-figure-7-deep", progress=False, **SMALL)
    curves = text_attention(run)
    assert found["step"] == curves.step.tolist() == [0, 50, 100, 150]
    for i, layer in enumerate(curves.layers):
        for name in figures.CURVES:
            np.testing.assert_allclose(found[name][i], getattr(layer, name), atol=1e-4)
    np.testing.assert_allclose(found["variation"][0], curves.motion.variation, atol=1e-4)
    maps = np.array(found["maps"])
    assert maps.shape == (4, 8, 8)
    np.testing.assert_allclose(maps.sum(axis=2), 1, atol=1e-3)
    np.testing.assert_allclose(np.triu(maps, 1), 0)
    rows = maps[:, 1:]
    by_hand = [
        -np.sum(rows * np.log(np.where(rows > 0, rows, 1)), axis=2).mean(axis=1),
        0.5 * np.abs(np.diff(rows, axis=0)).sum(axis=2).mean(axis=1),
        (rows.argmax(axis=2)[1:] == rows.argmax(axis=2)[:-1]).mean(axis=1),
    ]
    for name, numbers in zip(figures.CURVES, by_hand, strict=True):
        np.testing.assert_allclose(np.array(found["batch"][name])[:, 0], numbers, atol=2e-3)
    stream = ss.read_corpus("topics", vocab=100, tokens="lower")
    assert found["words"] == [stream.label(token) for token in stream.train[: 8 * 101][-8:]]


def test_figure_7_has_a_row_for_each_depth_and_is_kept():
    assert figures.TEXT_FIGURES["7"].needs == "wikitext-2"
    numbers = drawn(figures.TEXT_FIGURES["7"], partial(figures.maps, **SMALL))
    assert list(numbers["runs"]) == ["1 layer", "3 layers"]
    assert figures.panel("published-figure-7", make=False, **SMALL) == numbers["runs"]["1 layer"]
    assert figures.panel("published-figure-7", make=False, **{**SMALL, "steps": 149}) is None


def test_figure_10_rates_and_seeds(monkeypatch):
    monkeypatch.setattr(figures, "files_here", lambda name: {})
    compute = partial(figures.entropies, rates=(0.1, 5.0), seeds=2, **SMALL)
    numbers = drawn(figures.TEXT_FIGURES["10"], compute)
    ends = np.array(numbers["texts"]["WikiText-2"])
    assert ends.shape == (2, 2)
    assert np.all(ends[1] < ends[0])
    assert numbers["texts"]["WikiText-103"].startswith("WikiText-103 is not on this machine")


def stand_in(entropy, variation, held_loss=3.0):
    batch = {"entropy": [[value, value + 0.2] for value in (2.61, 0.86, 0.9, 0.01)]}
    batch |= {"variation": [[0.76, 0.7]] * 3, "argmax_kept": [[0.1, 0.2]] * 3}
    return {"batch": batch, "entropy": [entropy], "variation": [variation], "held_loss": held_loss, "prior_loss": 5.0}


@pytest.mark.parametrize(
    ("run", "sentences"),
    [
        (stand_in([2.6, 0.1], [0.7, 0.4]), (0.0, 1.0)),
        (stand_in([2.6, 2.5], [0.7, LIMITS.small / 2]), (1.0, 0.0)),
        (stand_in([2.6, 0.1], [0.7, 0.01], held_loss=4.9), (None, None)),
        (stand_in([2.6, 0.1], [0.7, 0.4], held_loss=4.9), (0.0, 1.0)),
        (None, (None, None)),
    ],
)
def test_rows_of_the_table_are_made_from_runs_alone(monkeypatch, run, sentences):
    """Numbers of a run that was made, and none where it was not, or where attention rests because nothing was learned."""
    monkeypatch.setattr(figures, "panel", lambda preset, seed=0, make=True, **changes: run)
    rows = [row for row in figures.text_distances(Progress()) if row.section == "Figure 7"]
    entropies = [row.ours for row in rows if row.quantity == "entropy"]
    assert entropies == ([2.61, 0.86, 0.9, 0.01] if run else [None] * 4)
    assert [row.reference for row in rows[:10]] == [2.61, 0.86, 0.35, 0.01, 0.76, 0.8, 0.8, 0.09, 0.18, 0.21]
    said = [row.ours for row in rows if row.quantity.startswith("section 8") and row.at == "1 layer"]
    assert said == list(sentences)
    assert all("--figure 7 --full" in row.cause for row in rows) == (run is None)
