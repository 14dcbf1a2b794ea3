"""Figures and the table of published numbers: what is made of which run, on tiny runs and on made-up panels."""

import importlib
import json
import math

import numpy as np
import pytest

from stagescope.cli.main import run as command
from stagescope.core.errors import InputError, StagescopeError
from stagescope.core.progress import Progress
from stagescope.papers.incremental import panels as measuring
from stagescope.papers.incremental.panels import (
    FILE,
    REFERENCE,
    Trial,
    at,
    at_published,
    by_step,
    cached,
    crossing,
    measured,
    panels,
    reference_features,
    value,
)
from stagescope.readings.published import distance_table
from stagescope.readings.registry import study
from stagescope.readings.study import reproduction
from stagescope.views import figure
from stagescope.views.figure import chosen, store

scripts = reproduction("incremental")
FIGURES = scripts.FIGURES
runs, figures, tables = (importlib.import_module(f"{scripts.__name__}.{name}") for name in ("runs", "figures", "distances"))
QUIET = Progress()
FULL = {"2", "3", "8", "9", "11", "12", "18", "19"}
TINY = {"vocab": 5, "sequences": 60, "batch": None, "targets": 3, "watched": None, "scale": 3.0}


def tiny(label="tiny", preset="published", levels=True, **changes):
    own = {name: changes.pop(name) for name in ("maps", "ngrams") if name in changes}
    chosen = {**TINY, "spans": (2, 1, 1), **changes}
    return Trial(label, preset, 40, 8, tuple(sorted(chosen.items())), levels=levels, reference=False, **own)


@pytest.fixture
def alone(monkeypatch):
    monkeypatch.setattr(measuring, "WORKERS", 1)
    monkeypatch.delenv("STAGESCOPE_DATA", raising=False)


@pytest.fixture(scope="module")
def panel():
    return measured(tiny(maps=(0, 40), ngrams=30, preset="published-xavier"))


def test_all_figures_are_listed():
    assert tuple(FIGURES) == (*map(str, range(1, 20)), "stopping")
    assert study("incremental").figures() == FIGURES
    assert {name for name, item in FIGURES.items() if item.full} == FULL
    assert all("of one core" in FIGURES[name].cost for name in map(str, range(1, 20)))
    assert {name for name, item in FIGURES.items() if item.quick} == {"1", "8", "9", "10", "13", "14"}


def test_figures_that_take_long_are_made_with_full_only(tmp_path, capsys):
    assert {item.name for item in chosen(FIGURES, None)} == {item.name for item in FIGURES.values()} - FULL
    assert command(["reproduce", "incremental", "--figure", "18", "--out", str(tmp_path)]) == 2
    message = capsys.readouterr().err
    assert "figure 18 takes about" in message
    assert "--full" in message
    assert not list(tmp_path.iterdir())


def test_a_data_folder_without_the_features(monkeypatch, tmp_path):
    monkeypatch.setenv("STAGESCOPE_DATA", str(tmp_path))
    with pytest.raises(InputError, match="does not exist; put the file there, or unset STAGESCOPE_DATA"):
        FIGURES["1"].compute(QUIET)
    path = tmp_path / FILE
    path.parent.mkdir()
    np.savez(path, features=np.stack([np.eye(5)] * 3))
    assert reference_features() == path
    (item,) = runs.TRIALS["minimal"]["minimal"]
    assert item.options()["features"] == path
    monkeypatch.delenv("STAGESCOPE_DATA")
    assert reference_features() is None
    assert "features" not in item.options()


def test_settings_of_every_figure_are_options_of_the_study(alone):
    trials = {item for variants in runs.TRIALS.values() for draws in variants.values() for item in draws}
    for item in (*trials, *runs.QUICK.values()):
        options = study("incremental").configured(item.preset, **item.options())
        assert options.steps % item.every == 0
        assert options.frames == options.steps // item.every + 1
        assert all(step <= item.steps for step in item.maps)
    for item in (*runs.TRIALS["sgd"].values(), runs.TRIALS["overlapping"]["4"], runs.TRIALS["sizes"]["600"]):
        study("incremental").setup(study("incremental").configured(item[0].preset, **item[0].options()), 0)


def test_a_panel_adds_up(panel):
    """Excess is a divergence from the true law, on another sample; mass is a sum over lags; loss is excess and Bayes."""
    excess, kl = np.array(panel["excess"]), np.array(panel["kl_teachers"])
    assert kl[:, -1] == pytest.approx(excess, rel=0.15)
    assert np.array(panel["kl_classes"])[:, -1] == pytest.approx(kl[:, -1], abs=1e-4)
    assert np.array(panel["kl_learned"])[:, -1] == pytest.approx(kl[:, -1], abs=1e-4)
    assert np.array(panel["loss"]) == pytest.approx(excess + panel["bayes"], abs=1e-4)
    lags, mass = np.array(panel["lags"]), np.array(panel["mass"])
    for place, group in enumerate(panel["groups"]):
        assert mass[:, :, place] == pytest.approx(lags[:, :, [lag - 1 for lag in group]].sum(axis=2), abs=1e-3)
    assert panel["step"] == [0, 8, 16, 24, 32, 40]
    assert np.array(panel["maps"]["40"]).sum(axis=2) == pytest.approx(1, abs=0.01)
    assert not panel["comparable"]
    json.dumps(panel)


def test_a_panel_is_kept(panel, monkeypatch):
    item = tiny(maps=(0, 40), ngrams=30, preset="published-xavier")
    assert cached(item) == panel
    monkeypatch.setattr(measuring, "measured", lambda item: pytest.fail("measured again"))
    assert panels((item, item), QUIET) == [panel, panel]
    assert cached(tiny("another")) is None


def test_a_learned_ngram_is_nearer_to_its_class_than_to_the_truth(alone):
    """On many sequences a learned n-gram of the nearest span predicts like the best of F_1."""
    item = tiny("more", ngrams=400, preset="published-xavier", sequences=2000, spans=(1, 1, 1))
    found = measured(item)
    learned, classes = np.array(found["kl_learned"]), np.array(found["kl_classes"])
    assert np.abs(learned[:, 0] - classes[:, 0]).max() < 0.12
    assert np.abs(learned[:, 0] - classes[:, 2]).max() > 0.3


def test_reading_a_panel():
    found = {"step": [0, 10, 20], "loss": [3.0, 2.0, 0.0], "pair": [[0, 1], [2, 3], [4, 5]]}
    assert at(found, "loss", 15) == pytest.approx(1.0)
    assert at_published(found, "loss", 14) == pytest.approx(1.0), "published step s is after s + 1 updates"
    assert at(found, "pair", 5) == pytest.approx([1.0, 2.0])
    assert crossing(found, "loss", 1.0) == pytest.approx(15.0)
    assert crossing(found, "loss", -1.0) is None


def test_a_published_curve_that_is_only_late_is_at_no_distance():
    """Shifted by 60 steps, plateaus 2 and 3 agree exactly when counted from their transitions; unshifted they do not."""
    read = by_step("figure-1-loss")
    steps, values = np.array(list(read)), np.array(list(read.values()))
    grid = np.arange(0, 1101, 10)
    late = {"step": grid.tolist(), "loss": np.interp(grid - 60, steps, values).tolist()}
    found = list(tables.aligned(late, read))
    assert {plateau for plateau, *_ in found} == {2, 3}
    assert max(abs(ours - published) for *_, published, ours in found) < 0.02
    assert max(abs(float(at(late, "loss", step)) - number) for step, number in read.items()) > 0.2


def test_the_nearest_draw_comes_with_the_range_of_all():
    read = by_step("figure-4-xavier")
    grid = [0, *(step + 1 for step in read)]
    curves = [[3.0, *(number + shift for number in read.values())] for shift in (0.3, 0.02, -0.1)]
    found = figures.family([{"step": grid, "excess": curve} for curve in curves], read)
    assert found["nearest"] == 1
    assert found["largest_distance"] == pytest.approx([0.3, 0.02, 0.1])
    assert found["range"][0] == pytest.approx([number - 0.1 for number in read.values()])


def test_verdicts_of_rows():
    def row(ours, tolerance, change=""):
        return tables.Row("Figure 3", "loss", "step 1", 1.0, ours, tolerance, change=change)

    assert row(1.05, 0.1).verdict == "reproduced"
    assert row(1.05, 0.1, "another dropout").verdict == "reproduced with a stated change"
    assert row(1.2, 0.1, "another dropout").verdict == "contradicted"
    assert row(None, 0.1).verdict == row(1.0, None).verdict == "not decidable"
    table = distance_table([row(1.05, 0.1), row(1.2, 0.1, "another dropout")])
    assert "1 of 2 numbers are within their tolerance" in table
    assert "contradicted" in table
    assert "change: another dropout" in table


def test_a_curve_of_the_table():
    """Ours is read one update later; steps beyond our run, and runs that were not made, are not decidable."""
    read = by_step("figure-9-kl")
    steps = [0, *(step + 1 for step in read if step < 400)]
    kl = [[4.0] * 3, *([9.0 if number is None else number for number in row] for step, row in read.items() if step < 400)]
    found = list(tables.curve_rows("9", "figure-9-kl", {"step": steps, "kl_teachers": kl}, "why"))
    assert len(found) == 3 * len(read) - 2, "two numbers of the published curve could not be read"
    assert all(row.distance < 1e-9 for row in found if row.ours is not None)
    assert {row.verdict for row in found} == {"reproduced", "not decidable"}
    assert all(math.isinf(row.distance) for row in tables.curve_rows("9", "figure-9-kl", None, "not run"))


def test_the_table_without_the_features_says_so(alone):
    found = scripts.distances(QUIET, True)
    assert {row.section for row in found if row.ours is not None} == {"Figure 10"}
    assert all("STAGESCOPE_DATA" in row.cause for row in found if row.ours is None)


@pytest.mark.long
def test_every_figure_of_a_student_is_written(alone, monkeypatch, tmp_path):
    """With tiny runs in place of the real ones: the note says that they are not comparable, and all files are there."""
    more = {"maps": (0, 40), "ngrams": 20, "preset": "published-xavier"}
    one, other = tiny(**more), tiny("other", **more, importance_ratio=2.0)
    small = {
        name: {variant: (one, other)[: len(draws)] for variant, draws in variants.items()}
        for name, variants in runs.TRIALS.items()
    }
    monkeypatch.setattr(runs, "TRIALS", small)
    for name in (name for name in map(str, range(1, 20)) if name != "10"):
        found = FIGURES[name].compute(QUIET)
        assert found["note"] == figures.NOT_COMPARABLE
        assert not found["comparable"]
        if name in ("1", "3", "4", "5", "6", "15", "17"):  # every kind of drawing once
            path = store(FIGURES[name], found, tmp_path)
            assert json.loads(path.with_suffix(".json").read_text())["title"] == FIGURES[name].title
            assert all(path.with_suffix(f".{kind}").stat().st_size > 2000 for kind in figure.FORMATS)


def test_a_run_that_ends_early_is_no_figure(alone):
    with pytest.raises(StagescopeError):
        panels((tiny("wild", init_scale=1e300),), QUIET)


def test_figures_of_the_flow(tmp_path):
    found = scripts.own.flow(QUIET, draws=1, until=300.0)
    assert found["levels"] == pytest.approx([6.12105, 1.945, 0.5, 0])
    levels = REFERENCE["figure-10-levels"]
    assert found["panels"][0]["plateaus"] == pytest.approx(levels.value, abs=levels.tolerance)
    low, high = value("figure-10-drops")[0]
    assert low <= found["panels"][0]["drops"][0] <= high
    assert found["solver_difference"]["loss"] < 1e-6
    store(FIGURES["10"], found, tmp_path)


def test_a_quick_figure_is_marked_and_compared_with_nothing(panel, monkeypatch):
    monkeypatch.setattr(figures, "panels", lambda trials, progress: [panel])
    for name in ("1", "9", "13"):
        numbers = FIGURES[name].quick(QUIET)
        assert numbers["published"] == {}
        assert "of 1010 steps" in numbers["quick"]
