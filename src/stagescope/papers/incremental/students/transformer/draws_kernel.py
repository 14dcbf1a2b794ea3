"""Random numbers of dropout: a hash of (key, row) starts a sequence whose steps are mixed, sixteen at once."""

from typing import Any

import numpy as np
from llvmlite import ir
from numba import types

from stagescope.fields.lanes_kernel import LANES, lanes_pointer, spread_value
from stagescope.kernels import intrinsic, njit

_GOLDEN, _MIX_A, _MIX_B = (
    np.uint64(0x9E3779B97F4A7C15),
    np.uint64(0xBF58476D1CE4E5B9),
    np.uint64(0x94D049BB133111EB),
)  # SplitMix64
_WEYL, _MIX_C, _MIX_D = np.uint32(0x9E3779B9), 0x21F0AAAD, 0xD35A2D97  # a mixer of 32 bits


@intrinsic
def _store_words(typing: Any, words: Any, place: Any, start: Any, salt: Any) -> Any:
    """Put mixed numbers of 32 bits into a contiguous array, from a place on: those of start, start + _WEYL, .."""

    def made(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        kind = ir.VectorType(ir.IntType(32), LANES)

        def constant(number: int) -> Any:
            return ir.Constant(kind, [number] * LANES)

        def shifted(word: Any, bits: int) -> Any:
            return builder.xor(word, builder.lshr(word, constant(bits)))

        steps = ir.Constant(kind, [lane * int(_WEYL) % 2**32 for lane in range(LANES)])
        word = builder.add(spread_value(builder, values[2]), steps)
        word = builder.mul(shifted(word, 16), constant(_MIX_C))
        word = builder.mul(builder.xor(shifted(word, 15), spread_value(builder, values[3])), constant(_MIX_D))
        builder.store(shifted(word, 15), lanes_pointer(context, builder, words, *values[:2])).align = 4
        return context.get_dummy_value()

    return types.void(words, types.intp, types.uint32, types.uint32), made


@njit(cache=True, error_model="numpy")
def draw_numbers(key, first, width, numbers):
    """Random numbers of 16 bits for rows `first`, first + 1, ..

    A step has 32 bits: the low ones are for an entry of the first half of the width, the high ones for one of the second half.
    """
    half = (width + 1) // 2
    words = np.empty((half + LANES - 1) // LANES * LANES, np.uint32)
    for i in range(numbers.shape[0]):
        z = key + np.uint64(first + i + 1) * _GOLDEN
        z = (z ^ (z >> np.uint64(30))) * _MIX_A
        z = (z ^ (z >> np.uint64(27))) * _MIX_B
        z = z ^ (z >> np.uint64(31))
        line = numbers[i]
        for j in range(0, half, LANES):
            _store_words(words, j, np.uint32(z + np.uint64(j) * np.uint64(_WEYL)), np.uint32(z >> np.uint64(32)))
        for j in range(half):
            line[j] = np.uint16(words[j])
        for j in range(width - half):
            line[half + j] = np.uint16(words[j] >> np.uint32(16))
