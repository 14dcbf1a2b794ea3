"""The bifurcation diagram: lines change where a branch does, and a colour means one thing."""

import pytest

from stagescope.landscape.continuation import Branch, BranchPoint, Crossing
from stagescope.show.bifurcation import KINDS, _figure, _parts
from stagescope.views.figure import COLORS


def point(value, loss, index, share=0.5):
    return BranchPoint(value, loss, index, (0.1,), {"embedding": (0.1,)}, {"logits": (share, 1 - share)}, {})


def ends(branch):
    return [(part[-1].value, part[-1].loss, stable) for part, stable in _parts(branch)]


def test_a_line_changes_at_the_bifurcation():
    points = (point(0.0, 1.0, 0, 0.5), point(0.4, 1.4, 1, 0.9), point(0.8, 1.8, 1))
    branch = Branch(points, (), (Crossing(0.1, 1.09, "bifurcation", ""), Crossing(0.2, 1.2, "opening", "")))
    assert ends(branch) == [(0.1, 1.09, True), (0.8, 1.8, False)]
    (first, _), (second, _) = _parts(branch)
    assert first[-1].measures["logits"] == pytest.approx((0.6, 0.4))
    assert second[0] is first[-1]


def test_a_line_changes_at_the_fold():
    """v = 1 - u^2 at u = -.2 and .1: the fold is at two thirds of the way."""
    points = (point(0.5, 1.5, 0), point(0.96, 1.2, 0, 0.2), point(0.99, 0.9, 1, 0.5), point(0.6, 0.5, 1))
    branch = Branch(points, (Crossing(0.2, 3.0, "fold", ""), Crossing(1.0, 1.0, "fold", "")), ())
    assert ends(branch) == [(1.0, 1.0, True), (0.6, 0.5, False)]
    assert next(iter(_parts(branch)))[0][-1].measures["logits"] == pytest.approx((0.4, 0.6))


def test_a_change_without_a_place_is_at_the_next_point():
    assert ends(Branch((point(0.0, 1.0, 0), point(0.4, 1.4, 1)), (), ())) == [(0.4, 1.4, True), (0.4, 1.4, False)]


def test_what_opens_has_colours_of_its_own():
    assert not set(KINDS.values()) & set(COLORS)
    drawing = _figure(Branch((point(0.0, 1.0, 0), point(0.4, 1.4, 0)), (), ()), "", "v")
    assert drawing.axes[0].get_ylabel() == "share of the logits\nafter each token"
