"""The scale by change: places of frames are arc lengths, whatever the frames are."""

import numpy as np
import pytest

from stagescope.views.axes import EVEN, change_of
from stagescope.views.view import Matrices
from tests.browser.samples import run

TIME = np.array([0.0, 1.0, 2.0, 5.0, 6.0, 10.0])
FAR = np.array([0.0, 0.0, 3.0, 3.5, 9.0, 10.0])
"""How far attention has gone along a straight line, so that its arc length is known."""
PLACES = (1 - EVEN) * FAR / FAR[-1] + EVEN * TIME / TIME[-1]


def view(slot: str, values: np.ndarray, frames: np.ndarray | None = None) -> Matrices:
    names = tuple("ab")
    return Matrices(slot, slot, "", values[:, None], ("",), names, names, frames=frames)


def along(far: np.ndarray) -> np.ndarray:
    return far[:, None, None] * np.array([[0.6, -0.8], [0.0, 0.0]])


def test_places_are_arc_lengths():
    found = change_of(run(TIME, np.ones(6)), [view("scores", along(TIME)), view("attention", along(FAR))])
    assert found is not None
    assert found.of == "attention"
    assert found.at == pytest.approx(PLACES)


def test_panels_and_thinned_views_count_together():
    """Two maps at a right angle: lengths add as in Pythagoras. One keeps only some frames, and is even between them."""
    kept = np.array([0, 2, 5])
    even = np.interp(TIME, TIME[kept], [0.0, 4.0, 12.0])
    found = change_of(run(TIME, np.ones(6)), [view("attention", along(FAR)), view("attention-2", along(even[kept]), kept)])
    lengths = np.hypot(np.diff(FAR), np.diff(even))
    assert found is not None
    assert found.at[1:] - EVEN * TIME[1:] / TIME[-1] == pytest.approx((1 - EVEN) * np.cumsum(lengths) / lengths.sum())


def test_without_attention_predictions_and_then_parameters_count():
    moving = run(TIME, FAR)  # its one block of parameters is its loss
    predicted = change_of(moving, [view("predictions", along(FAR)), view("attention", 0 * along(FAR))])
    assert predicted is not None
    assert predicted.of == "predictions"
    assert predicted.at == pytest.approx(PLACES)
    bare = change_of(moving, [])
    assert bare is not None
    assert bare.of == "the parameters"
    assert bare.at == pytest.approx(PLACES)


def test_what_does_not_move_has_no_scale_and_what_is_not_finite_no_length():
    assert change_of(run(TIME, np.ones(6)), [view("attention", along(np.ones(6)))]) is None
    assert change_of(run(TIME[:1], np.ones(1)), []) is None
    broken = np.where(np.arange(6)[:, None, None] == 3, np.nan, along(FAR))
    found = change_of(run(TIME, np.ones(6)), [view("attention", broken)])
    assert found is not None
    assert np.all(np.diff(found.at) > 0)
