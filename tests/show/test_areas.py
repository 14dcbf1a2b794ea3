"""The areas of cells: together they tile the diagram, each around its own cell, and holes stay blank."""

import math
from itertools import product

import pytest

from stagescope.show.diagram_areas import Rect, Ruler, areas
from stagescope.sweeping.axes import Scale
from stagescope.sweeping.refine import refine

LINEAR = Ruler(Scale("linear", (0.0, 0.25, 0.5, 1.0)))
LOG = Ruler(Scale("log", (0.001, 0.01, 0.1, 1.0)))


def total(found):
    return sum((r.right - r.left) * (r.top - r.bottom) for rects in found.values() for r in rects)


def whole(x, y):
    return math.prod(stop - start for start, stop in (x.reach, y.reach))


def refined(x, y, says, rounds, cells=None):
    known = {cell: says(*cell) for cell in (product(x.scale.values, y.scale.values) if cells is None else cells)}
    for _ in range(rounds):
        known |= {cell: says(*cell) for cell in refine((x.scale, y.scale), known)}
    return known


def test_a_plain_grid_gives_each_cell_one_rectangle_between_its_neighbours():
    found = areas(LINEAR, LOG, list(product(LINEAR.scale.values, LOG.scale.values)))
    assert all(len(rects) == 1 for rects in found.values())
    assert found[0.25, 0.1][0] == pytest.approx(Rect(0.125, 0.375, -1.5, -0.5))
    assert found[0.0, 0.001][0] == pytest.approx(Rect(-0.125, 0.125, -3.5, -2.5))
    assert total(found) == pytest.approx(whole(LINEAR, LOG))


@pytest.mark.parametrize("rounds", [1, 2, 4])
def test_a_refined_grid_is_tiled_and_every_cell_lies_in_its_area(rounds):
    known = refined(LINEAR, LOG, lambda x, y: x + math.log10(y) / 4 > 0.1, rounds)
    found = areas(LINEAR, LOG, known)
    assert found.keys() == known.keys()
    assert total(found) == pytest.approx(whole(LINEAR, LOG))
    for (x, y), rects in found.items():
        at = (LINEAR.place(x), LOG.place(y))
        assert any(r.left <= at[0] <= r.right and r.bottom <= at[1] <= r.top for r in rects)


def test_a_hole_of_the_grid_stays_blank():
    cells = [cell for cell in product(LINEAR.scale.values, LOG.scale.values) if cell != (0.25, 0.1)]
    found = areas(LINEAR, LOG, cells)
    assert total(found) == pytest.approx(whole(LINEAR, LOG) - 0.25 * 1.0)


def test_cells_of_a_round_that_was_cut_short_are_stood_in_for():
    known = refined(LINEAR, LINEAR, lambda x, y: x < 0.3, 1)
    partly = [cell for cell in known if cell != (0.375, 0.25)]
    assert total(areas(LINEAR, LINEAR, partly)) == pytest.approx(whole(LINEAR, LINEAR))


def test_categories_and_single_values_have_a_width():
    names = Ruler(Scale("categorical", ("sgd", "adam")))
    found = areas(names, Ruler(Scale("linear", (2.0,))), [("sgd", 2.0), ("adam", 2.0)])
    assert found["adam", 2.0] == [pytest.approx(Rect(0.5, 1.5, 1.8, 2.2))]
    assert areas(Ruler(Scale("log", (1.0,))), Ruler(Scale("integer", (0,))), [(1.0, 0)])[1.0, 0] == [Rect(-0.15, 0.15, -0.5, 0.5)]


@pytest.mark.parametrize(
    ("kind", "values", "log"),
    [
        ("linear", (0.001, 0.01, 0.1), True),
        ("integer", (1, 2, 4, 8, 16), True),
        ("linear", (0.1, 0.5, 0.9), False),
        ("integer", (1, 2, 3, 4, 5, 6, 7, 8, 9), False),
        ("linear", (0.0, 0.01, 1.0), False),
        ("log", (0.5, 0.6), True),
        ("categorical", ("a", "b", "c"), False),
    ],
)
def test_which_axes_are_logarithmic(kind, values, log):
    assert Ruler(Scale(kind, values)).log is log
