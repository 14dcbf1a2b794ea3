"""Refinement: finds boundaries to a hundredth of an axis with few cells, and asks for nothing twice."""

import math
from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stagescope.sweeping.axes import Scale, leaves
from stagescope.sweeping.refine import refine, sharpness


def grid(*scales):
    return list(product(*(scale.values for scale in scales)))


def rounds(scales, says, count, cells=None):
    """Signatures after some rounds; every new cell must be new and inside the axes."""
    known = {cell: says(*cell) for cell in (grid(*scales) if cells is None else cells)}
    for _ in range(count):
        new = refine(scales, known)
        assert len(set(new)) == len(new)
        assert not known.keys() & set(new)
        known |= {cell: says(*cell) for cell in new}
    return known


def even(n, low=0.0, high=1.0):
    return Scale("linear", tuple(low + (high - low) * i / (n - 1) for i in range(n)))


def widest_mixed(scales, known):
    """The longest side of a box whose cells differ, as a share of its axis."""
    mixed = [box for box, cells in leaves(scales, known) if len({known[cell] for cell in cells}) > 1]
    assert mixed
    return max((high - low) / (scale.values[-1] - scale.values[0])
               for box in mixed for (low, high), scale in zip(box, scales, strict=True))  # fmt: skip


@given(st.floats(0.001, 0.999), st.integers(3, 10))
def test_a_threshold_to_a_hundredth_with_a_fifth_of_the_runs(edge, n):
    scale = even(n)
    known = rounds([scale], lambda x: x < edge, math.ceil(math.log2(100 / (n - 1))))
    inside = sorted(x for (x,), below in known.items() if below)
    outside = sorted(x for (x,), below in known.items() if not below)
    assert inside[-1] < edge <= outside[0]
    assert outside[0] - inside[-1] <= 0.01
    assert len(known) <= 101 / 5


@pytest.mark.long
@settings(max_examples=6, deadline=None)
@given(st.floats(0.2, 0.8), st.floats(0.2, 0.8), st.floats(-0.6, 0.6), st.integers(7, 12))
def test_a_curve_to_a_hundredth_with_a_fifth_of_the_runs(x0, y0, bend, n):
    scales = (even(n), even(n, 3.0, 5.0))

    def says(x, y):
        return (y - 3) / 2 - y0 > (x - x0) * math.tan(bend) + 0.1 * math.sin(5 * x)

    known = rounds(scales, says, math.ceil(math.log2(100 / (n - 1))))
    assert widest_mixed(scales, known) <= 0.01
    assert len(known) <= 101**2 / 5
    for i in range(0, 101, 4):  # the boundary itself, wherever it is inside, lies in a box that has both kinds
        x = i / 100
        y = 3 + 2 * (y0 + (x - x0) * math.tan(bend) + 0.1 * math.sin(5 * x))
        if 3.0 <= y <= 5.0:
            near = {says(*cell) for cell in known if abs(cell[0] - x) <= 0.0101 and abs(cell[1] - y) <= 0.0202}
            assert near == {True, False}


def test_an_island_and_a_hole_in_it_are_followed_all_around():
    scales = (even(9), even(9))

    def says(x, y):
        r = math.hypot(x - 0.5, y - 0.52)
        return "ring" if 0.18 < r < 0.36 else "else"

    known = rounds(scales, says, 4)
    assert widest_mixed(scales, known) <= 0.01
    assert len(known) <= 129**2 / 5
    for angle in range(0, 360, 9):
        for r in (0.18, 0.36):
            x, y = 0.5 + r * math.cos(math.radians(angle)), 0.52 + r * math.sin(math.radians(angle))
            assert {known[cell] for cell in known if math.dist(cell, (x, y)) <= 0.012} == {"ring", "else"}


def test_a_boundary_that_leaves_through_an_unsuspected_side_is_followed():
    """Corners of the box to the right agree; the cells that the left one puts on their common side do not."""
    scales = (even(3), even(3))
    known = rounds(scales, lambda x, y: x < 0.3 or (x < 0.62 and 0.15 < y < 0.35), 5)
    assert widest_mixed(scales, known) <= 1 / 32  # what is first seen on a side is one round behind
    assert max(x for (x, _), inside in known.items() if inside) > 0.58


def test_a_surface_in_three_dimensions():
    scales = (even(4), even(4), even(4))

    def says(x, y, z):
        return x + 0.6 * y - 0.4 * z > 0.55

    coarse, fine, finest = (rounds(scales, says, count) for count in (1, 2, 3))
    assert widest_mixed(scales, finest) <= 1 / 24 + 1e-9
    assert len(finest) <= 25**3 / 3
    assert len(finest) - len(fine) <= 4.6 * (len(fine) - len(coarse))  # as a surface grows, not as the space around it (8)


def test_log_axes_are_halved_at_the_geometric_mean():
    scale = Scale("log", (1e-4, 1e-2, 1.0))
    known = rounds([scale], lambda x: x < 3e-3, 6)
    (below,), (above,) = max(cell for cell in known if known[cell]), min(cell for cell in known if not known[cell])
    assert math.log10(above / below) == pytest.approx(2 / 2**6)
    assert sharpness([scale], known) == pytest.approx([1 / 2**7])
    assert (1e-3,) in {(round(x, 12),) for (x,) in known}


def test_half_way_has_no_digits_that_only_rounding_made():
    assert Scale("log", (0.0316227766017, 31.6227766017)).middle(0.0316227766017, 31.6227766017) == 1.0


def test_how_well_a_boundary_is_known():
    scales = (Scale("categorical", ("a", "b")), even(5, 1.0, 3.0), even(3))
    known = rounds(scales, lambda name, x, y: name == "b" and x + y < 2.9, 3)
    assert sharpness(scales, known) == [None, 1 / 32, 1 / 16]
    assert widest_mixed(scales[1:], {cell[1:]: said for cell, said in known.items() if cell[0] == "b"}) == 1 / 16
    assert sharpness(scales, dict.fromkeys(known, "same")) is None


@pytest.mark.parametrize("kind", ["integer", "log integer"])
def test_integers_stay_integers_and_end(kind):
    scale = Scale(kind, (1, 8, 64))
    known = rounds([scale], lambda x: x < 23, 20)
    assert all(isinstance(x, int) for (x,) in known)
    assert {(22,), (23,)} <= known.keys()
    assert refine([scale], known) == []
    assert len(known) <= 3 + 6


@given(st.lists(st.sampled_from("ab"), min_size=6, max_size=6))
def test_categories_are_never_halved_and_never_compared(says):
    """Each category is refined by itself: cells that differ in it alone are no neighbours."""
    scales = (Scale("categorical", ("gd", "adam", "flow")), even(2))
    known = dict(zip(grid(*scales), says, strict=True))
    new = refine(scales, known)
    expected = [name for name in scales[0].values if known[name, 0.0] != known[name, 1.0]]
    assert new == [(name, 0.5) for name in scales[0].values if name in expected]


def test_an_integer_side_without_a_middle_does_not_halve_its_neighbour():
    scales = (Scale("integer", (0, 1, 2)), even(2))
    known = rounds(scales, lambda n, x: n == 0 and x < 0.3, 3)
    assert {n for n, _ in known} == {0, 1, 2}
    assert [n for n, x in known if x not in (0.0, 1.0)].count(2) == 0
    assert rounds(scales, lambda n, x: x < 0.3, 1).keys() - set(grid(*scales)) == {(0, 0.5), (1, 0.5), (2, 0.5)}


def test_holes_of_the_grid_stay_holes():
    scales = (even(3), even(3))
    cells = [cell for cell in grid(*scales) if cell != (0.5, 0.5)]
    known = rounds(scales, lambda x, y: x < 0.3, 4, cells)
    assert (0.5, 0.5) not in known
    assert widest_mixed(scales, known) <= 1 / 32


def test_a_round_that_was_cut_short_is_completed():
    """A cell of a round that is missing where cells differ is asked for again."""
    scales = (even(3), even(3))

    def says(x, y):
        return x + y < 0.9

    first = {cell: says(*cell) for cell in grid(*scales)}
    new = refine(scales, first)
    missing = (0.25, 0.5)
    assert missing in new
    partly = first | {cell: says(*cell) for cell in new if cell != missing}
    assert missing in refine(scales, partly)


@pytest.mark.parametrize(
    ("scales", "known"),
    [
        ([even(3)], {}),
        ([Scale("linear", (0.5,))], {(0.5,): "a"}),
        ([Scale("linear", (0.5,)), Scale("log", (1.0,))], {(0.5, 1.0): "a"}),
        ([even(3)], {(0.0,): "a", (0.5,): "a", (1.0,): "a"}),
        ([Scale("categorical", ("a", "b"))], {("a",): 1, ("b",): 2}),
        ([Scale("integer", (1, 2))], {(1,): "a", (2,): "b"}),
        ([Scale("linear", (1.0, math.nextafter(1.0, 2)))], {(1.0,): "a", (math.nextafter(1.0, 2),): "b"}),
        ([even(2)], {(0.0,): "a"}),
        ([even(2)], {(0.0,): "a", (7.0,): "b"}),
    ],
)
def test_nothing_to_add(scales, known):
    assert refine(scales, known) == []


def test_a_single_value_beside_an_axis_is_kept():
    assert refine([Scale("linear", (2.0,)), even(2)], {(2.0, 0.0): "a", (2.0, 1.0): "b"}) == [(2.0, 0.5)]
