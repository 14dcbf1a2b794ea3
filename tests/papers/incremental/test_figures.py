"""Figures of incremental learning: the table, what they cost, what they need, and their numbers and drawings on tiny runs."""

import json

import numpy as np
import pytest

from stagescope.cli.main import run as command
from stagescope.errors import InputError
from stagescope.papers.incremental import figures_numbers
from stagescope.papers.incremental.figures import FIGURES
from stagescope.papers.incremental.figures_numbers import (
    FILE,
    NOT_COMPARABLE,
    REFERENCE,
    TRIALS,
    Trial,
    _aligned,
    _compared,
    _family,
    at,
    by_step,
    crossing,
    measured,
    minimal,
    panels,
    reference_features,
    value,
)
from stagescope.papers.incremental.figures_own import flow
from stagescope.papers.registry import study
from stagescope.progress import Progress
from stagescope.views import figure
from stagescope.views.figure import chosen, store

QUIET = Progress()
FULL = {"11", "12", "18", "19"}
TINY = {"vocab": 5, "sequences": 60, "batch": None, "targets": 3, "watched": None, "scale": 3.0}


def tiny(label="tiny", levels=True, **changes):
    chosen = {**TINY, "spans": (2, 1, 1), **changes}
    return Trial(label, "published", 40, 8, tuple(sorted(chosen.items())), levels=levels, reference=False)


@pytest.fixture
def alone(monkeypatch):
    monkeypatch.setattr(figures_numbers, "WORKERS", 1)
    monkeypatch.delenv("STAGESCOPE_DATA", raising=False)


@pytest.fixture(scope="module")
def panel():
    return measured(tiny())


def test_all_figures_are_listed():
    assert tuple(FIGURES) == (*map(str, range(1, 20)), "stopping")
    assert study("incremental").figures() == FIGURES
    assert {name for name, figure in FIGURES.items() if figure.full} == FULL
    assert all("on 2 cores" in FIGURES[name].cost for name in map(str, range(1, 20)))


def test_figures_that_take_long_are_made_with_full_only(tmp_path, capsys):
    assert {figure.name for figure in chosen(FIGURES, None)} == {figure.name for figure in FIGURES.values()} - FULL
    assert len(chosen(FIGURES, None, full=True)) == len(FIGURES)
    assert chosen(FIGURES, "18", full=True) == [FIGURES["18"]]
    assert command(["reproduce", "incremental", "--figure", "18", "--out", str(tmp_path)]) == 2
    message = capsys.readouterr().err
    assert "figure 18 takes about" in message
    assert "--full" in message
    assert not list(tmp_path.iterdir())


def test_a_data_folder_without_the_features(monkeypatch, tmp_path):
    monkeypatch.setenv("STAGESCOPE_DATA", str(tmp_path))
    with pytest.raises(InputError, match="does not exist; put the file there, or unset STAGESCOPE_DATA"):
        minimal(QUIET)
    path = tmp_path / FILE
    path.parent.mkdir()
    np.savez(path, features=np.stack([np.eye(5)] * 3))
    assert reference_features() == path
    (item,) = TRIALS["minimal"]["minimal"]
    assert item.options()["features"] == path
    monkeypatch.delenv("STAGESCOPE_DATA")
    assert reference_features() is None
    assert "features" not in item.options()


def test_settings_of_every_figure_are_options_of_the_study(alone):
    trials = {item for variants in TRIALS.values() for draws in variants.values() for item in draws}
    assert len(trials) == 32
    for item in trials:
        options = study("incremental").configured(item.preset, **item.options())
        assert options.steps % item.every == 0
        assert options.frames == options.steps // item.every + 1
    for item in (*TRIALS["sgd"].values(), TRIALS["overlapping"]["4"], TRIALS["sizes"]["600"]):
        study("incremental").setup(study("incremental").configured(item[0].preset, **item[0].options()), 0)


def test_a_panel_adds_up(panel):
    """Excess is a divergence from the true law, on another sample; mass is a sum over lags; loss is excess and Bayes."""
    excess, kl = np.array(panel["excess"]), np.array(panel["kl_teachers"])
    assert kl[:, -1] == pytest.approx(excess, rel=0.15)
    assert np.array(panel["kl_classes"])[:, -1] == pytest.approx(kl[:, -1], abs=1e-4)
    assert np.array(panel["loss"]) == pytest.approx(excess + panel["bayes"], abs=1e-4)
    assert panel["levels"][-1] == pytest.approx(panel["bayes"], abs=1e-4)
    lags, mass = np.array(panel["lags"]), np.array(panel["mass"])
    for place, group in enumerate(panel["groups"]):
        assert mass[:, :, place] == pytest.approx(lags[:, :, [lag - 1 for lag in group]].sum(axis=2), abs=1e-3)
    assert panel["step"] == [0, 8, 16, 24, 32, 40]
    assert not panel["comparable"]
    json.dumps(panel)


def test_reading_a_panel():
    found = {"step": [0, 10, 20], "loss": [3.0, 2.0, 0.0], "pair": [[0, 1], [2, 3], [4, 5]]}
    assert at(found, "loss", 15) == pytest.approx(1.0)
    assert at(found, "pair", 5) == pytest.approx([1.0, 2.0])
    assert crossing(found, "loss", 1.0) == pytest.approx(15.0)
    assert crossing(found, "loss", -1.0) is None


def test_a_published_curve_that_is_only_late_is_at_no_distance():
    """Shifted by 60 steps, plateaus 2 and 3 agree exactly when counted from their transitions; unshifted they do not."""
    read = by_step("figure-1-loss")
    steps, values = np.array(list(read)), np.array(list(read.values()))
    grid = np.arange(0, 1101, 10)
    late = {"step": grid.tolist(), "loss": np.interp(grid - 60, steps, values).tolist(), "comparable": True}
    found = _aligned(late, read)
    assert {row["plateau"] for row in found["aligned"]} == {2, 3}
    assert max(abs(row["distance"]) for row in found["aligned"]) < 0.02
    assert np.array(found["transitions"]["ours"]) - found["transitions"]["published"] == pytest.approx([60, 60], abs=6)
    assert max(map(abs, _compared(late, "loss", read)["distance"])) > 0.2


def test_the_nearest_draw_comes_with_the_range_of_all():
    read = by_step("figure-4-xavier")
    grid = [0, *read]
    curves = [[3.0, *(value + shift for value in read.values())] for shift in (0.3, 0.02, -0.1)]
    drawn = [{"step": grid, "excess": curve, "comparable": True} for curve in curves]
    found = _family(drawn, read)
    assert found["nearest"] == 1
    assert found["largest_distance"] == pytest.approx([0.3, 0.02, 0.1])
    assert found["compared"]["distance"] == pytest.approx([0.02] * 5)
    assert found["range"][0] == pytest.approx([value - 0.1 for value in read.values()])


@pytest.mark.long
def test_every_figure_of_a_student_is_written(alone, monkeypatch, tmp_path):
    """With tiny runs in place of the real ones: there is no distance, the note says why, and all files are there."""
    one, other = tiny(), tiny("other", init_scale=0.1)
    small = {
        name: {variant: (one, other)[: len(draws)] for variant, draws in variants.items()} for name, variants in TRIALS.items()
    }
    small["weighted"] = {"weighted": (tiny("weighted", spans=(2, 2, 2)),)}
    small["overlapping"] = {"3": (one,), "4": (tiny("4 heads", levels=False, heads=4, stride=1),)}
    monkeypatch.setattr(figures_numbers, "TRIALS", small)
    for name in (name for name in map(str, range(1, 20)) if name != "10"):
        found = FIGURES[name].compute(QUIET)
        assert found["note"] == NOT_COMPARABLE
        assert not found["comparable"]
        assert all(row["distance"] is None for row in found.get("compared", {}).values())
        if name in ("1", "3", "4", "5", "14", "15", "17"):  # every kind of drawing once
            path = store(FIGURES[name], found, tmp_path)
            assert json.loads(path.with_suffix(".json").read_text())["title"] == FIGURES[name].title
            assert all(path.with_suffix(f".{kind}").stat().st_size > 2000 for kind in figure.FORMATS)


def test_a_run_that_ends_early_is_no_figure(alone, monkeypatch):
    from stagescope.errors import StagescopeError

    wild = tiny("wild", init_scale=1e300)
    with pytest.raises(StagescopeError):
        panels((wild,), QUIET)


def test_figures_of_the_flow(tmp_path):
    found = flow(QUIET, draws=1, until=300.0)
    assert found["levels"] == pytest.approx([6.12105, 1.945, 0.5, 0])
    levels = REFERENCE["figure-10-levels"]
    assert found["panels"][0]["plateaus"] == pytest.approx(levels.value, abs=levels.tolerance)
    low, high = value("figure-10-drops")[0]
    assert low <= found["panels"][0]["drops"][0] <= high
    assert found["solver_difference"]["loss"] < 1e-6
    store(FIGURES["10"], found, tmp_path)
