"""Fewer frames: evenly, with the first and the last, and said. Points: a plane that does not depend on the frame."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stagescope.readings.reading import reading
from stagescope.views import curves as thin
from stagescope.views.any_run import any_views, singular_values
from stagescope.views.curves import MOST, curves, many_curves, plane
from stagescope.views.view import Curve
from tests.runs.samples import memory_run, stacked


@given(st.integers(1, 10**6), st.integers(2, 3000))
def test_spread_keeps_the_ends(frames, most):
    found = thin.spread(frames, most)
    if frames <= most:
        assert found is None
        return
    assert found is not None
    assert (found[0], found[-1]) == (0, frames - 1)
    assert len(found) == most
    assert np.ptp(np.diff(found)) <= 1, "evenly"


def test_only_some_frames_of_a_run():
    run, chosen = memory_run(frames=9), np.array([0, 3, 8])
    seen = run.only(chosen)
    assert seen.frames == 3
    np.testing.assert_array_equal(seen.params["W"], stacked(9)["W"][chosen])
    np.testing.assert_array_equal(seen.t, run.t[chosen])
    assert (seen.spec, seen.status) == (run.spec, run.status)


def test_matrices_beyond_the_budget_are_thinned_and_say_so(monkeypatch):
    monkeypatch.setattr("stagescope.views.any_run.CELLS", 30)
    run = memory_run(frames=40)
    views = {view.slot: view for make in any_views(reading(run)) if (view := make()) is not None}
    found = views["block-W"]
    assert len(found.frames) == 5
    assert (found.frames[0], found.frames[-1]) == (0, 39)
    np.testing.assert_array_equal(found.values[:, 0], run.params["W"][found.frames])
    assert views["loss"].frames is None


def test_curves_beyond_the_budget(monkeypatch):
    monkeypatch.setattr("stagescope.views.curves.NUMBERS", 20)
    made = [Curve("a", np.arange(100.0)), Curve("b", -np.arange(100.0))]
    found = curves("s", "t", "about.", "axis", made, frames=2 * np.arange(100))
    assert found.frames is not None
    assert len(found.frames) == len(found.curves[0].values) == 10
    np.testing.assert_array_equal(found.curves[1].values, -found.frames / 2)


def test_a_crowd_names_its_first():
    made = many_curves(np.arange(200.0)[None], [str(i) for i in range(200)], first=range(199, -1, -1))
    assert [curve.name for curve in made[:3]] == ["199", "198", "197"]
    assert (len(made), sum(not curve.faint for curve in made)) == (MOST, 8)


def test_the_plane_is_that_of_all_frames():
    """Points on a fixed plane of a larger space, growing and turning in it: coordinates are right up to one rotation for all."""
    rng = np.random.default_rng(0)
    basis = np.linalg.qr(rng.normal(size=(6, 2)))[0].T
    flat = np.linspace(0.1, 1, 20)[:, None, None] * rng.normal(size=(1, 5, 2)) * [3.0, 1.0]
    places, shares = plane(flat @ basis)
    np.testing.assert_allclose(shares.sum(axis=1), 1.0)
    np.testing.assert_allclose(np.linalg.norm(places, axis=2), np.linalg.norm(flat, axis=2))
    turn = np.linalg.lstsq(flat[-1], places[-1], rcond=None)[0]
    np.testing.assert_allclose(flat @ turn, places, atol=1e-12)
    largest = np.abs(places[-1]).argmax(axis=0)
    assert (places[-1][largest, [0, 1]] > 0).all(), "signs are fixed"


def test_the_plane_of_a_last_frame_is_its_principal_one():
    """A single frame: axes and shares are those of its singular values, by a second way."""
    rows = np.random.default_rng(1).normal(size=(1, 7, 4))
    places, shares = plane(rows)
    values = np.linalg.svd(rows[0] - rows[0].mean(axis=0), compute_uv=False)
    np.testing.assert_allclose(shares[0], values[:2] ** 2 / np.sum(values**2))
    assert places.shape == (1, 7, 2)


@pytest.mark.parametrize("width", [1, 2, 500])
def test_frames_that_are_not_finite_have_no_place(width):
    rows = np.random.default_rng(2).normal(size=(4, 3, width))
    rows[2, 1, 0] = np.inf
    places, shares = plane(rows)
    assert np.isnan(places[2]).all()
    assert np.isnan(shares[2]).all()
    assert np.isfinite(places[[0, 1, 3]]).all()
    nothing = plane(np.full((2, 3, width), np.nan))
    assert np.isnan(nothing[0]).all()


def test_singular_values_of_broken_frames():
    block = np.random.default_rng(3).normal(size=(3, 4, 2))
    block[1, 0, 0] = np.nan
    found = singular_values(block)
    assert np.isnan(found[1]).all()
    np.testing.assert_allclose(found[2], np.linalg.svd(block[2], compute_uv=False))


def test_the_plane_of_equal_variances_does_not_depend_on_rounding():
    """Four directions of one variance: any plane in them is as wide, so one is chosen that rounding does not turn."""
    simplex = np.linspace(0, 1, 30)[:, None, None] * (np.eye(5) - 1 / 5)
    noise = np.random.default_rng(0).standard_normal((9, *simplex.shape))
    places, shares = plane(simplex)
    assert shares[-1] == pytest.approx([0.25, 0.25])
    for rounding in noise:
        assert plane(simplex * (1 + 1e-15 * rounding))[0] == pytest.approx(places, abs=1e-6)
