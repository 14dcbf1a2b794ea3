"""Numbers of the figures against published and independently measured ones, and that every figure is written."""

import json

import numpy as np
import pytest

import stagescope as ss
from stagescope.papers.published import published
from stagescope.papers.scan_snap import forms
from stagescope.papers.study import reproduction
from stagescope.progress import Progress
from stagescope.views import figure
from stagescope.views.figure import reproduce

figures = reproduction("scan_snap").figures
FIGURES = figures.FIGURES
QUIET = Progress()
REFERENCE = published("stagescope.papers.scan_snap")


def test_figure_4_entropies():
    panels, expected, start = figures.syn_small(QUIET)["panels"], REFERENCE["figure_4_entropy"], REFERENCE["start_entropy"]
    for panel in panels:
        value = expected.value[f"{panel['rate_y']:g}"]
        assert panel["entropy_at_99"][0] == pytest.approx(value, abs=expected.tolerance)
    assert len(panels) == len(expected.value)
    assert panels[0]["entropy"][0][0] == pytest.approx(start.value, abs=start.tolerance)


@pytest.mark.long
def test_figure_5_selects_different_tokens(monkeypatch):
    monkeypatch.setattr(figures, "SEEDS", 2)
    panels, expected = figures.adam(QUIET)["panels"], REFERENCE["figure_5_leading_token"].value
    assert len(panels) == len(expected)
    for panel in panels:
        first, last = expected[f"{panel['lr']:g}"]
        assert first <= panel["top"] <= last


@pytest.mark.long
def test_figure_6_is_near_the_published_means(monkeypatch):
    """With half of the runs; the figure has twice as many."""
    monkeypatch.setattr(figures, "SEEDS", figures.SEEDS // 2)
    monkeypatch.setattr(figures, "medium_runs", figures.medium_runs.__wrapped__)
    found = figures.entropy_grid(QUIET)
    assert len(found["published"]) == len(found["cells"]) == 64
    assert found["mean_abs_difference"] <= REFERENCE["figure_6_entropy"].tolerance
    gaps = np.array([found["cells"][k][0] - found["published"][k][0] for k in found["published"]])
    spread = np.array([found["published"][k][1] for k in found["published"]])
    assert np.mean(np.abs(gaps) <= 3 * np.hypot(spread, spread) / np.sqrt(10) + 0.005) > 0.9


def _entropy(**options):
    run = ss.run_study("scan-snap", optimizer="heavy-ball", steps=100, record="uniform", frames=3, progress=False, **options)
    curves = ss.class_attention(run)
    return float(curves.mean(curves.entropy)[-1])


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


def test_figure_3_orders_and_knees():
    """Slower decoders grow further; each curve has made most of its growth by 2 t0."""
    found = figures.growth_factors(QUIET)
    curves = found["curves"]
    assert found["largest_chi"] == max(max(curve["chi"]) for curve in curves)
    assert np.all(np.diff([curve["chi"][-1] for curve in curves]) < 0)
    for curve in curves:
        chi = np.array(curve["chi"])
        assert np.all(chi <= np.array(curve["upper"]) + 1e-9)
        assert np.interp(2 * curve["t0"], curve["t"], chi) - 1 > 0.6 * (chi[-1] - 1)


def test_the_axis_of_figure_3_needs_other_rates():
    """chi <= e^{2B}: with the least C0 and the eta_Z that is named, the bound is just the end of the axis."""
    axis = figures.axis_of_figure_three()
    drive = forms.driving(700.0, 1000, 10, 0.5, axis["rate_z_needed"]) / 10
    assert np.exp(2 * forms.growth(drive, forms.start_constant(1.0, 1.0, 10))) == pytest.approx(axis["reaches"], rel=1e-9)
    assert axis["ratio_needed"] > 1000
