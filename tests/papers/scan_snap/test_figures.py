"""Numbers of the figures and of the table against published and independently measured ones, and that every figure is written."""

import importlib
import json
from functools import partial

import numpy as np
import pytest

import stagescope as ss
from stagescope.core.progress import Progress
from stagescope.papers.scan_snap import forms
from stagescope.papers.scan_snap.observables import Supports
from stagescope.readings.published import published
from stagescope.readings.study import reproduction
from stagescope.views import figure
from stagescope.views.figure import reproduce
from tests.readings.drawing import drawn

scripts = reproduction("scan_snap")
figures, tables = scripts.figures, importlib.import_module(f"{scripts.__name__}.distances")
FIGURES = figures.FIGURES
QUIET = Progress()
REFERENCE = published("stagescope.papers.scan_snap")


@pytest.mark.parametrize("name", ["4", "5"])
def test_maps_of_figures_4_and_5(name):
    """Seven iterations of attention that sums to one; tokens of the other class have none; it ends on distinct tokens."""
    compute = {"4": figures.syn_small, "5": figures.adam}[name]
    for panel in drawn(FIGURES[name], partial(compute, seeds=1))["panels"]:
        maps, common = np.array(panel["attention"]), np.array(panel["common"])
        assert panel["iterations"] == [0, 2, 4, 6, 8, 10, 100]
        assert maps.shape == (7, 2, 30)
        np.testing.assert_allclose(maps.sum(axis=2), 1, atol=1e-4)
        assert common.tolist() == [True] * 10 + [False] * 20
        assert np.all(maps[:, 0, 20:] == 0)
        assert np.all(maps[:, 1, 10:20] == 0)
        np.testing.assert_allclose(maps[0, 0, :10], 1 / 15.5, atol=1e-6)
        assert np.all(maps[-1][:, common].sum(axis=1) < maps[0][:, common].sum(axis=1))


@pytest.mark.long
def test_figure_4_entropies():
    panels, start = figures.syn_small(QUIET)["panels"], REFERENCE["start_entropy"]
    expected, onsets = REFERENCE["figure_4_entropy"], REFERENCE["figure_4_onset"]
    for panel in panels:
        rate = f"{panel['rate_y']:g}"
        assert panel["entropy_at_99"][0] == pytest.approx(expected.value[rate], abs=expected.tolerance)
        assert panel["onset"] == pytest.approx(onsets.value[rate], abs=onsets.tolerance)
    assert len(panels) == len(expected.value)
    assert panels[0]["start_entropy"] == pytest.approx(start.value, abs=start.tolerance)


@pytest.mark.long
def test_figure_5_selects_different_tokens():
    panels, expected = figures.adam(QUIET, 2)["panels"], REFERENCE["figure_5_leading_token"].value
    assert len(panels) == len(expected)
    for panel in panels:
        first, last = expected[f"{panel['lr']:g}"]
        assert first <= panel["top"] <= last


@pytest.mark.long
def test_figure_6_is_near_the_published_means():
    """With half of the runs; the figure has twice as many."""
    found = figures.entropy_grid(QUIET, 5)
    assert len(found["published"]) == len(found["cells"]) == 64
    assert found["mean_abs_difference"] <= REFERENCE["figure_6_entropy"].tolerance
    gaps = np.array([found["cells"][k][0] - found["published"][k][0] for k in found["published"]])
    spread = np.array([found["published"][k][1] for k in found["published"]])
    assert np.mean(np.abs(gaps) <= 3 * np.hypot(spread, spread) / np.sqrt(10) + 0.005) > 0.9


STARTS = {".pdf": b"%PDF", ".png": b"\x89PNG", ".svg": b"<?xml"}


@pytest.mark.long
@pytest.mark.parametrize("name", [pytest.param("2", marks=pytest.mark.all_formats), "3", "8", "9"])
def test_figures_are_written_with_their_numbers(name, tmp_path):
    reproduce(FIGURES[name], tmp_path, QUIET)
    written = {path.suffix: path for path in tmp_path.glob(f"figure{FIGURES[name].name}.*")}
    assert set(written) == {".json", *(f".{kind}" for kind in figure.FORMATS)}
    assert name != "2" or set(STARTS) < set(written), "one of them in every format"
    assert json.loads(written.pop(".json").read_text())["title"] == FIGURES[name].title
    for kind, path in written.items():
        assert path.read_bytes().startswith(STARTS[kind])
        assert kind != ".svg" or b"<svg" in path.read_bytes()


def test_figure_3_orders_knees_and_the_printed_axis():
    """Slower decoders grow further; each curve has made most of its growth by t0; as printed the slowest ends at the axis."""
    numbers = drawn(FIGURES["3"])
    curves = numbers["curves"]
    assert numbers["largest_chi"] == max(max(curve["chi"]) for curve in curves)
    assert np.all(np.diff([curve["chi"][-1] for curve in curves]) < 0)
    for curve in curves:
        chi = np.array(curve["chi"])
        assert np.all(chi <= np.array(curve["upper"]) + 1e-6)
        assert np.interp(curve["t0"], curve["t"], chi) - 1 > 0.6 * (chi[-1] - 1)
        assert curve["printed"][0] == 1
    assert (curves[0]["t0'"], curves[0]["t0"]) == pytest.approx((138.2, 364.7), abs=0.1)
    np.testing.assert_allclose([curve["printed"][-1] for curve in curves], [596, 457, 346, 237], atol=0.6)  # the science page


def test_the_axis_of_figure_3_needs_other_rates():
    """chi <= e^{2B}: with the least C0 and the eta_Z that is named, the bound is just the end of the axis."""
    axis = figures.axis_of_figure_three()
    drive = forms.driving(700.0, 1000, 10, 0.5, axis["rate_z_needed"]) / 10
    assert np.exp(2 * forms.growth(drive, forms.start_constant(1.0, 1.0, 10))) == pytest.approx(axis["reaches"], rel=1e-9)
    assert axis["ratio_needed"] > 1000


def test_figure_2_has_both_classes():
    numbers = drawn(FIGURES["2"])
    assert list(numbers["times"]) == ["start", "winner", "slow", "snap", "end"]
    assert np.all(np.diff(list(numbers["times"].values())) > 0)
    for classes in numbers["attention"].values():
        first, second = np.array(classes)
        np.testing.assert_allclose(first[:20], [*second[:10], *second[20:]], atol=1e-5)  # symmetric classes
        assert first.sum() == pytest.approx(1, abs=1e-4)


def test_figure_8_has_five_rates_on_either_side():
    panels = drawn(FIGURES["8"])["panels"]
    assert [[curve["rate_y"] for curve in panel["curves"]] for panel in panels] == [[0.1, 0.2, 0.5, 1, 2], [0.2, 0.5, 1, 2, 4]]
    for panel, last in zip(panels, (80, 70), strict=True):
        for curve in panel["curves"]:
            low, high = curve["gap_over_bound"]
            assert -1e-12 < low < high < 1
            assert len(curve["steps"]) == last + 1
            assert curve["last_gap"] < high


def test_figure_9_growth_at_t0_does_not_depend_on_the_rate():
    times, heights = REFERENCE["figure_9_t0"], REFERENCE["figure_9_growth"]
    for panel in drawn(FIGURES["9"])["panels"]:
        outputs = str(panel["M"])
        np.testing.assert_allclose([curve["t0"] for curve in panel["curves"]], times.value[outputs], rtol=times.tolerance)
        for curve in panel["curves"]:
            assert curve["B(t0)"] == pytest.approx(heights.value[outputs], abs=heights.tolerance)


def test_recall_is_of_a_softmax_over_all_tokens():
    """Scores of a query sum to less than one over the tokens of a class, and to what a softmax by hand gives; recall falls."""
    runs = figures.medium_runs(1, 1)
    on = runs["supports"]
    assert isinstance(on, Supports)
    assert runs["scores"].shape == (16, 40)
    assert np.all(on.sums(runs["scores"]) < 1)
    # the classes share a query: common tokens have one score in both
    np.testing.assert_allclose(runs["scores"][:, :10], runs["scores"][:, 20:30])
    # c_{l|n} ~ P(l|n) e^z, so it is these scores times P, up to a factor of the class
    attention = runs["scores"] * on.chance
    np.testing.assert_allclose(runs["attention"], attention / on.sums(attention)[:, on.of], rtol=1e-5)
    for by in ("rate_z", "ratio"):
        (row, *_) = drawn(FIGURES["11"], partial(figures.recall, panels_by=by, seeds=2))["rows"]
        assert np.shape(row["curves"]) == (4, 4, 41)
        assert np.all(np.diff(row["curves"], axis=2) <= 0)


@pytest.mark.long
def test_orderings_of_figures_11_and_12():
    assert figures.recall(QUIET)["ordered"] >= 46
    assert figures.recall(QUIET, "ratio")["ordered"] == 48


def test_every_figure_has_a_quick_version_that_says_what_is_left_out():
    for name in ("2", "3", "4", "5", "6", "8", "9", "11", "12"):
        assert FIGURES[name].quick is not None
    assert "2 seeds" in figures.adam(QUIET, 2)["quick"]
    assert "quick" not in figures.discrete(QUIET)


# The table.


def test_every_statement_is_judged_by_a_claim_or_a_number_or_says_what_was_tried():
    tags = {claim.tag for claim in ss.study("scan-snap").claims()}
    items = tables.read_statements()
    assert len({item.name for item in items}) == len(items)
    for item in items:
        assert not (item.claim and item.measure)
        assert not item.claim or item.claim in tags
        assert not item.claim or item.preset in ss.study("scan-snap").presets
        assert not item.measure or callable(getattr(tables.statements, item.measure))
        assert item.claim or item.measure or "tried" in item.cause
        assert not item.measure or item.reference is not None


CONTRADICTED = {
    "assumption 2: eigenvalues",
    "lemma 11: error of 1/(M-1+e^(Mh)) below",
    "lemma 3: the modified decoder is a small change",
    "theorem 1b: gamma = O(K",
    "remark 1: true decoder",
    "remark 2: h* - h falls",
}
"""Statements that fail by the science page or by the argument in their cause; all others hold where they can be decided."""


def test_a_row_names_its_run_as_the_command_line_takes_it():
    assert tables.options_text({"residual": True, "num_common": 0}) == " --residual --num-common 0"


def test_statements_of_the_paper():
    rows = [tables.claim_row(item) if item.claim else tables.measured_row(item) for item in tables.read_statements()]
    failed = {row.quantity for row in rows if row.verdict == "contradicted"}
    assert {start for start in CONTRADICTED if any(name.startswith(start) for name in failed)} == CONTRADICTED
    assert len(failed) == len(CONTRADICTED)
    assert all(row.cause for row in rows if row.verdict in ("contradicted", "not decidable"))
    assert all(row.change for row in rows if row.verdict == "reproduced with a stated change")
    assert {row.section for row in rows if row.ours is None} == {"Extensions (sections 5, 7 and 9)"}


def test_a_bound_is_shown_with_what_it_bounds():
    item = tables.Statement("S", "name", measure="omega_0", reference=0.01, bound="at most", unit="at M = 100")
    row = tables.measured_row(item)
    assert (row.verdict, row.at, row.distance) == ("reproduced", "at most 0.01: at M = 100", 0.0)
    broken = tables.measured_row(tables.Statement("S", "name", measure="omega_0", reference=0.001, bound="at most"))
    assert (broken.verdict, broken.reference) == ("contradicted", 0.001)


@pytest.mark.long
def test_the_quick_table_has_every_figure():
    rows = scripts.distances(QUIET, True)
    assert {row.section for row in rows if row.section.startswith("Figure")} == {f"Figure {n}" for n in range(1, 13)}
    assert all(row.cause for row in rows if row.verdict == "not decidable")
    failed = {row.section for row in rows if row.verdict == "contradicted" and row.section.startswith("Figure")}
    assert failed == {"Figure 3"}, "its axis; two seeds contradict nothing"
