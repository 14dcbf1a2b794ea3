"""Sixteen numbers side by side, for Numba kernels on rows that are gathered by their number.

A loop over a short row costs more in checks than in arithmetic when it is compiled by itself. Here a stretch of a row is one
value that stays in registers: it is loaded from a place of a contiguous array, multiplied, added and stored.
"""

import math
from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import models, register_model

from stagescope.kernels import intrinsic

LANES = 16
_FAST = ("contract",)
_INDEX = ir.IntType(32)
LOG2E, LN2_HIGH, LN2_LOW, LARGE = (float(np.float32(x)) for x in (1.4426950408889634, 0.693359375, -2.1219444e-4, 1.5 * 2**23))
"""1 / ln(2), ln(2) in two parts, and the number whose last bit stands for one: adding it rounds."""
TAYLOR = tuple(float(np.float32(1 / math.factorial(k))) for k in range(8))


def padded(width: int) -> int:
    """The least multiple of `LANES` that is not below a width."""
    return -(-width // LANES) * LANES


class Lanes(types.Type):
    """The Numba type of `LANES` numbers."""

    def __init__(self, dtype: Any) -> None:
        self.dtype = dtype
        super().__init__(name=f"Lanes({dtype})")


@register_model(Lanes)
class _Model(models.PrimitiveModel):
    def __init__(self, manager: Any, kind: Lanes) -> None:
        super().__init__(manager, kind, ir.VectorType(manager.lookup(kind.dtype).get_value_type(), LANES))


def _place(context: Any, builder: Any, kind: Any, array: Any, place: Any) -> Any:
    return builder.gep(context.make_array(kind)(context, builder, array).data, [place], inbounds=True)


def lanes_pointer(context: Any, builder: Any, kind: Any, array: Any, place: Any) -> Any:
    """Where the lanes from a place of an array on are, for an intrinsic."""
    first = _place(context, builder, kind, array, place)
    return builder.bitcast(first, context.get_value_type(Lanes(kind.dtype)).as_pointer())


@intrinsic
def load(typing: Any, array: Any, place: Any) -> Any:
    """The lanes from a place of a contiguous array on; places of an array of several axes are counted in order."""

    def made(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        found = builder.load(lanes_pointer(context, builder, array, *values))
        found.align = array.dtype.bitwidth // 8
        return found

    return Lanes(array.dtype)(array, types.intp), made


@intrinsic
def load_as(typing: Any, array: Any, place: Any, number: Any) -> Any:
    """The lanes of a contiguous array of integers, from a place on, as numbers of the kind of `number`."""

    def made(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        found = builder.load(lanes_pointer(context, builder, array, *values[:2]))
        found.align = array.dtype.bitwidth // 8
        return builder.sitofp(found, context.get_value_type(Lanes(number)))

    return Lanes(number)(array, types.intp, number), made


@intrinsic
def store(typing: Any, array: Any, place: Any, lanes: Any) -> Any:
    """Put lanes into a contiguous array, from a place on."""

    def made(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        builder.store(values[2], lanes_pointer(context, builder, array, *values[:2])).align = array.dtype.bitwidth // 8
        return context.get_dummy_value()

    return types.void(array, types.intp, lanes), made


@intrinsic
def prefetch(typing: Any, array: Any, place: Any) -> Any:
    """Ask for the line of memory with a place of a contiguous array, which is needed soon."""

    def made(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        first = builder.bitcast(_place(context, builder, array, *values), ir.IntType(8).as_pointer())
        kind = ir.FunctionType(ir.VoidType(), [first.type, _INDEX, _INDEX, _INDEX])
        asked = cgutils.get_or_insert_function(builder.module, kind, "llvm.prefetch.p0")
        builder.call(asked, [first, _INDEX(0), _INDEX(3), _INDEX(1)])  # to read, into all caches, data
        return context.get_dummy_value()

    return types.void(array, types.intp), made


def spread_value(builder: Any, number: Any) -> Any:
    """A value in all lanes, for an intrinsic."""
    one = builder.insert_element(ir.Constant(ir.VectorType(number.type, LANES), ir.Undefined), number, _INDEX(0))
    return builder.shuffle_vector(one, one, ir.Constant(ir.VectorType(_INDEX, LANES), [0] * LANES))


@intrinsic
def spread(typing: Any, number: Any) -> Any:
    """The same number in all lanes."""
    return Lanes(number)(number), lambda context, builder, signature, values: spread_value(builder, values[0])


@intrinsic
def spread_from(typing: Any, array: Any, place: Any) -> Any:
    """The number at a place of a contiguous array in all lanes."""

    def made(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        return spread_value(builder, builder.load(_place(context, builder, array, *values)))

    return Lanes(array.dtype)(array, types.intp), made


@intrinsic
def reaching(typing: Any, array: Any, place: Any, least: Any, number: Any) -> Any:
    """A number in lanes where the unsigned integer of a contiguous array is at least so large, 0 in the others."""

    def made(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        numbers = builder.load(lanes_pointer(context, builder, array, *values[:2]))
        numbers.align = array.dtype.bitwidth // 8
        kept = builder.icmp_unsigned(">=", numbers, spread_value(builder, values[2]))
        chosen = spread_value(builder, values[3])
        return builder.select(kept, chosen, ir.Constant(chosen.type, None))

    return Lanes(number)(array, types.intp, array.dtype, number), made


@intrinsic
def multiply_add(typing: Any, x: Any, y: Any, z: Any) -> Any:
    """x y + z, lane by lane, rounded once where the processor can."""

    def made(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        return builder.fadd(builder.fmul(values[0], values[1], flags=_FAST), values[2], flags=_FAST)

    return z(x, y, z), made


@intrinsic
def plus(typing: Any, x: Any, y: Any) -> Any:
    """x + y, lane by lane."""
    return x(x, y), lambda context, builder, signature, values: builder.fadd(*values)


@intrinsic
def times(typing: Any, x: Any, y: Any) -> Any:
    """x y, lane by lane."""
    return x(x, y), lambda context, builder, signature, values: builder.fmul(*values)


@intrinsic
def larger(typing: Any, x: Any, y: Any) -> Any:
    """The larger of x and y, lane by lane; y where one is no number."""

    def made(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        return builder.select(builder.fcmp_ordered(">", *values), *values)

    return x(x, y), made


@intrinsic
def first_lanes(typing: Any, x: Any, count: Any, y: Any) -> Any:
    """The first lanes of x, as many as counted, and those of y after them."""

    def made(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        places = ir.Constant(ir.VectorType(_INDEX, LANES), list(range(LANES)))
        first = builder.icmp_signed("<", places, spread_value(builder, builder.trunc(values[1], _INDEX)))
        return builder.select(first, values[0], values[2])

    return x(x, types.intp, y), made


def _halved(combine: Any) -> Any:
    """Combine both halves of all lanes until one number is left."""

    def made(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        found, size = values[0], LANES
        while size > 1:
            size //= 2
            halves = (list(range(size)), list(range(size, 2 * size)))
            kind = ir.VectorType(_INDEX, size)
            found = combine(builder, *(builder.shuffle_vector(found, found, ir.Constant(kind, half)) for half in halves))
        return builder.extract_element(found, _INDEX(0))

    return made


@intrinsic
def total(typing: Any, x: Any) -> Any:
    """The sum of all lanes."""
    return x.dtype(x), _halved(lambda builder, low, high: builder.fadd(low, high))


@intrinsic
def largest(typing: Any, x: Any) -> Any:
    """The largest of all lanes."""
    return x.dtype(x), _halved(lambda builder, low, high: builder.select(builder.fcmp_ordered(">", low, high), low, high))


@intrinsic
def exponential(typing: Any, x: Any) -> Any:
    """exp(x) of lanes of float32 with |x| <= 87, relative error below 2e-7: `exp_single` of exp_kernel, sixteen at once.

    Not in a kernel with fastmath, which holds for all that is inside it: "reassoc" takes the rounding away.
    """
    if x.dtype != types.float32:
        raise TypeError(f"exponential is for lanes of float32, not {x.dtype}")

    def made(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        kind = context.get_value_type(x)
        word = ir.VectorType(_INDEX, LANES)

        def fused(a: Any, b: float | Any, c: float | Any) -> Any:
            b, c = (ir.Constant(kind, [each] * LANES) if isinstance(each, float) else each for each in (b, c))
            return builder.fadd(builder.fmul(a, b, flags=_FAST), c, flags=_FAST)

        moved = fused(values[0], LOG2E, LARGE)
        k = builder.fsub(moved, ir.Constant(kind, [LARGE] * LANES))
        rest, power = fused(k, -LN2_LOW, fused(k, -LN2_HIGH, values[0])), ir.Constant(kind, [TAYLOR[-1]] * LANES)
        for coefficient in TAYLOR[-2::-1]:
            power = fused(power, rest, coefficient)
        bits = builder.shl(builder.bitcast(moved, word), ir.Constant(word, [23] * LANES))
        return builder.fmul(power, builder.bitcast(builder.add(bits, ir.Constant(word, [127 << 23] * LANES)), kind))

    return x(x), made
