"""Figures of focus and dilution: their numbers against independently measured ones, and that every figure is written."""

import json

import numpy as np
import pytest

from stagescope.papers.focus_dilution import figures as numbers
from stagescope.papers.focus_dilution.figures import FIGURES, REFERENCE
from stagescope.papers.registry import study
from stagescope.progress import Progress
from stagescope.views.figure import reproduce

QUIET = Progress()
NAMES = (
    "embedding",
    "singular-values",
    "attention",
    "entropy",
    "norms",
    "loss",
)


def by_preset(found):
    return {panel["preset"]: panel for panel in found["panels"]}


def test_all_figures_are_listed():
    assert tuple(FIGURES) == (*NAMES, "wikitext", "tinystories")
    assert study("focus-dilution").figures() == FIGURES


def test_one_component_explains_the_embedding_until_the_second_opens():
    found = numbers.embedding(QUIET)
    shares = {name: values[0] for name, values in found["explained"].items()}
    assert shares["E1"] > 0.99
    assert shares["(1,0)"] > 0.999
    assert shares["E2"] > 0.99
    assert shares["Q2"] < 0.8
    assert set(found["points"]) == set(found["moments"])
    assert np.array(found["path"]).shape == (len(found["t"]), 4, 2)
    condensed = np.array(found["points"]["(1,0)"])
    assert np.abs(condensed[:, 1]).max() < 0.01
    assert condensed[:, 0] / condensed[0, 0] == pytest.approx(np.array(found["pi"]) / found["pi"][0], abs=0.01)


def test_singular_values_open_in_turn_within_the_measured_ranges():
    for panel in by_preset(numbers.singular_values(QUIET)).values():
        assert max(panel["outside_measured_range"].values()) < REFERENCE["events"].tolerance
        assert [label for label, _ in panel["ladder"]] == ["(0,0)", "(1,0)", "(1,1)", "(2,1)", "(2,2)", "(3,2)"]
        for values in panel["values"].values():
            assert np.all(np.diff(np.array(values), axis=0) <= 1e-9)


def test_attention_peaks_and_troughs_are_those_measured():
    found = by_preset(numbers.attention(QUIET))
    for panel in found.values():
        for name in ("peak", "trough"):
            assert panel[name] == pytest.approx(panel["measured"][name], abs=REFERENCE[f"{name}s"].tolerance)
        assert panel["mean_abs_difference"] < 0.003
        assert panel["refocus1"]["difference"] < REFERENCE["refocus_to"].tolerance
    assert found["flow-skewed"]["refocus1"]["t"] == pytest.approx(REFERENCE["refocus_time"].value["flow-skewed"], rel=0.02)
    assert {turn["name"] for turn in found["flow-skewed"]["turns"]} == {"refocus", "redilution"}


def test_entropy_falls_rises_and_falls():
    for panel in by_preset(numbers.entropy(QUIET)).values():
        for turning in panel["turning"].values():
            assert turning["start"] == pytest.approx(panel["base"], abs=1e-3)
            assert turning["focused"] < turning["start"] < turning["diluted"] <= panel["largest"]
    assert all(turning["end"] < turning["diluted"] for turning in by_preset(numbers.entropy(QUIET))["ref"]["turning"].values())


def test_norms_sit_on_the_predicted_plateau():
    found, rare = by_preset(numbers.norms(QUIET)), REFERENCE["plateau_norms"]
    assert found["ref"]["predicted"][1:] == pytest.approx(rare.value, abs=rare.tolerance)
    for panel in found.values():
        assert panel["measured"] == pytest.approx(panel["predicted"], rel=0.02)
        assert np.min(panel["rows"], axis=1)[1:].max() < 0.02


def test_loss_rests_at_the_critical_points():
    for panel in by_preset(numbers.loss(QUIET)).values():
        rungs = {rung["label"]: rung for rung in panel["rungs"]}
        assert rungs["(0,0)"]["loss"] == pytest.approx(np.log(4))
        assert rungs["(1,0)"]["loss"] == pytest.approx(panel["unigram"], abs=1e-9)
        assert np.all(np.diff(panel["loss"]) <= 1e-8)
        assert 0 <= panel["end_above_floor"] < REFERENCE["largest_final_loss"].value
        for label in ("(1,0)", "(1,1)"):
            assert rungs[label]["near"]
            assert np.interp(rungs[label]["t"], panel["t"], panel["loss"]) == pytest.approx(rungs[label]["loss"], abs=0.005)


@pytest.mark.long
@pytest.mark.parametrize("name", NAMES)
def test_figures_are_written_with_their_numbers(name, tmp_path):
    reproduce(FIGURES[name], tmp_path, QUIET)
    body = json.loads((tmp_path / f"figure-{name}.json").read_text())
    assert body["title"] == FIGURES[name].title
    assert (tmp_path / f"figure-{name}.png").read_bytes().startswith(b"\x89PNG")
