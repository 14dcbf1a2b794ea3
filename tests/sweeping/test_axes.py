"""Grids as people write them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stagescope.core.errors import InputError
from stagescope.readings.registry import study
from stagescope.sweeping.axes import grid_axis, merged

FD = study("focus-dilution")


@pytest.mark.parametrize(
    ("name", "given", "kind", "values"),
    [
        ("pi.0", ".3,.4", "linear", (0.3, 0.4)),
        ("persistence", "-.1:.2:4", "linear", (-0.1, 0.0, 0.1, 0.2)),
        ("persistence", ".1:.9:9", "linear", (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9)),
        ("pi0", ".3:.5:2", "linear", (0.3, 0.5)),
        ("init-scale", "1e-4:1e-1:4:log", "log", (1e-4, 1e-3, 1e-2, 1e-1)),
        ("width", "2:32:5:log", "log integer", (2, 4, 8, 16, 32)),
        ("width", "1:3:9", "integer", (1, 2, 3)),
        ("form", "finite,population", "categorical", ("finite", "population")),
        ("length", "none,8", "categorical", (None, 8)),
        ("until", [5, 2.5], "linear", (2.5, 5.0)),
    ],
)
def test_axes(name, given, kind, values):
    axis = grid_axis(FD, name, given)
    assert (axis.kind, axis.values) == (kind, values)
    assert axis.name == name.replace("-", "_")


@pytest.mark.parametrize(
    ("name", "given", "words"),
    [
        ("nope", "1", "unknown option"),
        ("pi", ".5", "pi is a list"),
        ("pi.x", ".5", "pi is a list"),
        ("persistence.0", ".5", "is no list"),
        ("transition", "a.csv", "is a file"),
        ("width", "", "is empty"),
        ("width", [], "is empty"),
        ("width", "1:5:0", "is empty"),
        ("width", "1:5", "none of"),
        ("width", "1:5:3:lin", "none of"),
        ("width", "1.5,2", "integer"),
        ("width", "0,1", "greater than or equal to 1, got '0'"),
        ("form", "finit", "'finite'"),
        ("until", "inf", "finite"),
        ("until", "-1:5:3:log", "above 0"),
        ("until", "5,5", "given twice"),
        ("until", "1:1:3", "3 values from 1 to 1"),
        ("until", "1:2:9999999", "more than 1,000,000 values; .* from 1 to 1,000,000"),
    ],
)
def test_bad_axes(name, given, words):
    with pytest.raises(InputError, match=words):
        grid_axis(FD, name, given)


@given(st.floats(-5, 5), st.floats(0.01, 10), st.integers(2, 40))
def test_equal_spacing_includes_both_ends(low, width, count):
    axis = grid_axis(FD, "delta", f"{low!r}:{low + width!r}:{count}")
    assert len(axis.values) == count
    assert (axis.values[0], axis.values[-1]) == (low, low + width)
    gaps = [b - a for a, b in zip(axis.values, axis.values[1:], strict=False)]
    assert max(gaps) - min(gaps) < 1e-9 * (abs(low) + width)


def test_merged_axes_hold_all_values():
    axes = [grid_axis(FD, "until", "1:3:2"), grid_axis(FD, "until", "2,3")]
    assert merged(axes).values == (1.0, 2.0, 3.0)
