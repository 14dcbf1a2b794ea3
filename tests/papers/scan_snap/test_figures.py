"""Numbers of the figures against published and independently measured ones, and that every figure is written."""

import json

import numpy as np
import pytest

import stagescope as ss
from stagescope.papers.scan_snap.figures import FIGURES, numbers
from stagescope.progress import Progress
from stagescope.views import figure
from stagescope.views.figure import reproduce

QUIET = Progress()


def test_figure_4_entropies():
    panels = numbers.syn_small(QUIET)["panels"]
    assert panels[0]["entropy_at_99"][0] == pytest.approx(1.936, abs=0.03)
    assert panels[1]["entropy_at_99"][0] == pytest.approx(2.087, abs=0.03)
    assert panels[0]["entropy"][0][0] == pytest.approx(2.151, abs=0.001)


def test_figure_5_selects_different_tokens(monkeypatch):
    monkeypatch.setattr(numbers, "SEEDS", 2)
    tops = [panel["top"] for panel in numbers.adam(QUIET)["panels"]]
    assert tops[0] in (2, 3, 4)
    assert tops[1] in (4, 5, 6)
    assert tops[2] in (7, 8, 9)


def test_figure_6_is_near_the_published_means(monkeypatch):
    """With half of the runs; the figure has twice as many."""
    monkeypatch.setattr(numbers, "SEEDS", numbers.SEEDS // 2)
    monkeypatch.setattr(numbers, "medium_runs", numbers.medium_runs.__wrapped__)
    found = numbers.entropy_grid(QUIET)
    assert len(found["published"]) == len(found["cells"]) == 64
    assert found["mean_abs_difference"] <= 0.02
    gaps = np.array([found["cells"][k][0] - found["published"][k][0] for k in found["published"]])
    spread = np.array([found["published"][k][1] for k in found["published"]])
    assert np.mean(np.abs(gaps) <= 3 * np.hypot(spread, spread) / np.sqrt(10) + 0.005) > 0.9


def test_finite_step_effect():
    """Independently measured: 1.871, 1.979, 2.033, 2.067 at rates 3, 1, .3, .1; flow 2.066."""
    curve = numbers.finite_step(QUIET)["curves"][0]
    assert curve["flow"] == pytest.approx(2.066, abs=0.002)
    for rate, value in ((3.0, 1.871), (1.0, 1.979), (0.3, 2.033), (0.1, 2.067)):
        assert curve["heavy_ball"][curve["rate"].index(rate)] == pytest.approx(value, abs=0.003)


def test_length_gap_closes():
    """Entropy gap to infinite length .126, .044, .015 for L = 32, 128, 512; finite contexts are sparser."""
    limit = _entropy()
    for length, gap, seeds in ((32, 0.126, 20), (128, 0.044, 20), (512, 0.015, 30)):
        mean = np.mean([_entropy(length=length, seed=seed) for seed in range(seeds)])
        assert limit - mean == pytest.approx(gap, rel=0.3), length


def _entropy(**options):
    run = ss.run_study("scan-snap", optimizer="heavy-ball", steps=100, record="uniform", frames=3, progress=False, **options)
    curves = ss.class_attention(run)
    return float(curves.mean(curves.entropy)[-1])


STARTS = {".pdf": b"%PDF", ".png": b"\x89PNG", ".svg": b"<?xml"}


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


def test_collapse_slopes_and_band(monkeypatch):
    """With a third of the frames: the peak between them is a parabola's."""
    monkeypatch.setattr(numbers, "run_study", lambda *words, **options: ss.run_study(*words, **{**options, "frames": 100}))
    found = numbers.collapse(QUIET)
    assert found["slopes"]["eta_Y"] == pytest.approx(-1, abs=0.1)
    assert found["slopes"]["K"] == pytest.approx(1, abs=0.1)
    assert 0.75 <= found["ratio"][0] <= found["ratio"][1] <= 1.15


def test_figure_3_orders_and_knees():
    """Slower decoders grow further; each curve has most of its growth behind it at 2 t0."""
    curves = numbers.growth_factors(QUIET)["curves"]
    assert np.all(np.diff([curve["chi"][-1] for curve in curves]) < 0)
    for curve in curves:
        chi = np.array(curve["chi"])
        assert np.all(chi <= np.array(curve["upper"]) + 1e-9)
        assert np.interp(2 * curve["t0"], curve["t"], chi) - 1 > 0.6 * (chi[-1] - 1)
