"""Blocks come back from an independent decoder: bit for bit, or within the precision a page states."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays

from stagescope.show.bundle import Blocks
from tests.show.decode import decoded, levels, precision

SHAPES = array_shapes(min_dims=1, max_dims=4, min_side=0, max_side=6)
ANY = st.floats(allow_nan=True, allow_infinity=True, width=64)


def both(kind: str, values: np.ndarray, *range_: float) -> tuple[dict, np.ndarray]:
    blocks = Blocks()
    block = getattr(blocks, kind)(values, *range_)
    return block, decoded(block, blocks.payloads[block["id"]])


@given(arrays(np.float64, SHAPES, elements=ANY))
def test_f64_is_bit_for_bit(values):
    block, found = both("f64", values)
    assert found.shape == values.shape == tuple(block["shape"])
    assert found.tobytes() == values.tobytes()


@given(arrays(np.float32, SHAPES, elements=st.floats(width=32)))
def test_f32_is_bit_for_bit(values):
    _, found = both("f32", values)
    assert found.shape == values.shape
    np.testing.assert_array_equal(found, values)
    np.testing.assert_array_equal(np.signbit(found), np.signbit(values))


@pytest.mark.parametrize("order", range(4))
def test_f32_takes_as_many_differences_as_compress_best(order):
    """Noise that was summed up so often is small again after as many differences, and grows with one more."""
    bits = np.random.default_rng(order).integers(-99, 99, size=(200, 500))
    for _ in range(order):
        bits = np.cumsum(bits, axis=0)
    values = (bits + 0x3F008080).astype(np.uint32).view(np.float32)
    block, found = both("f32", values)
    assert block["order"] == order
    assert found.tobytes() == values.tobytes()


def test_f32_says_infinite_where_a_number_is_too_large_for_it():
    _, found = both("f32", np.array([1e300, -1e300, 0.5]))
    np.testing.assert_array_equal(found, [np.inf, -np.inf, 0.5])


@given(arrays(np.int32, SHAPES), arrays(np.uint8, SHAPES))
def test_integers_are_bit_for_bit(wide, narrow):
    np.testing.assert_array_equal(both("i32", wide)[1], wide)
    np.testing.assert_array_equal(both("u8", narrow)[1], narrow)


@given(arrays(np.float64, SHAPES, elements=st.floats(-1e6, 1e6) | st.sampled_from([np.nan, np.inf, -np.inf])), st.sampled_from(
    [(0.0, 1.0), (-1.0, 1.0), (0.2, 0.3), (-5.0, 1.0), (0.0, 0.0)]))  # fmt: skip
def test_companded_values_are_within_the_stated_precision(values, range_):
    block, found = both("companded", values, *range_)
    finite = np.isfinite(values)
    np.testing.assert_array_equal(np.isnan(found), ~finite)
    size = max(abs(block["low"]), abs(block["high"]))
    assert np.all(np.abs(found - values)[finite] <= precision(block, found[finite]) + 1e-12 * size)
    if finite.any():
        assert block["low"] <= values[finite].min()
        assert block["high"] >= values[finite].max()


@given(st.floats(-1e9, 1e9), st.sampled_from([(0.0, 1.0), (-1.0, 1.0)]))
def test_a_constant_matrix_is_exact(value, range_):
    block, found = both("companded", np.full((3, 2, 2), value), *range_)
    np.testing.assert_allclose(found, value, rtol=1e-12, atol=0)
    assert block["low"] <= value <= block["high"]


def test_every_level_is_a_fixed_point():
    """What a page shows, companded again, is shown the same: no drift from rounding."""
    for range_ in ((0.0, 1.0), (-2.0, 2.0), (-1.0, 3.0)):
        shown = levels({"low": range_[0], "high": range_[1]})[:255].reshape(1, 255)
        _, found = both("companded", shown, *range_)
        np.testing.assert_allclose(found, shown, atol=1e-12)


def test_a_symmetric_range_keeps_zero_and_signs():
    values = np.array([[-3.0, -1e-4, 0.0, 1e-4, 2.0]])
    block, found = both("companded", values, -1.0, 1.0)
    assert (block["low"], block["high"]) == (-3.0, 3.0)
    assert found[0, 2] == 0
    np.testing.assert_array_equal(np.sign(found[0, [0, 4]]), [-1, 1])


def test_ids_count_up_and_payloads_stand_in_any_html():
    blocks = Blocks()
    made = [blocks.f64(np.arange(3.0)), blocks.u8(np.arange(3)), blocks.companded(np.ones((2, 1)), 0, 1)]
    assert [block["id"] for block in made] == [0, 1, 2]
    assert all(set(text) <= set("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/=") for text in blocks.payloads)


def test_smooth_attention_is_small():
    """At the rate of six megabytes for 1,000 frames of four heads over 100 tokens, also for fewer tokens and frames."""
    rng = np.random.default_rng(0)
    time = np.linspace(0, 1, 500)[:, None, None]
    target, when, width = 2 * rng.normal(size=(40, 40)), rng.uniform(0.1, 0.9, (40, 40)), rng.uniform(0.03, 0.15, (40, 40))
    weights = np.exp(target / (1 + np.exp(-(time - when) / width)))
    blocks = Blocks()
    values = (weights / weights.sum(axis=-1, keepdims=True))[:, None]
    blocks.companded(values, 0.0, 1.0)
    assert len(blocks.payloads[0]) / values.size < 6e6 / 40e6
