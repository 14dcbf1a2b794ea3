"""Sixteen numbers side by side, for Numba kernels: rows that are gathered by their number, and products of narrow matrices.

A loop over a short row costs more in checks than in arithmetic when it is compiled by itself. Here a stretch of a row is one
value that stays in registers: it is loaded from a place of a contiguous array, multiplied, added and stored.

BLAS packs both factors of a product before it multiplies. Where one side is only 16 to 100 wide this costs as much as a fifth of
the work, and a sum that goes on over several products passes through memory. `add_product` keeps 4 x 16 sums in registers, and
packs and copies nothing.
"""

import math

import numpy as np
from llvmlite import ir
from numba import types, uintp
from numba.core import cgutils
from numba.extending import models, register_model

from stagescope.flow.kernels import intrinsic, njit

LANES = 16
_FAST = ("contract",)
_INDEX = ir.IntType(32)
LOG2E, LN2_HIGH, LN2_LOW, LARGE = (float(np.float32(x)) for x in (1.4426950408889634, 0.693359375, -2.1219444e-4, 1.5 * 2**23))
"""1 / ln(2), ln(2) in two parts, and the number whose last bit stands for one: adding it rounds."""
TAYLOR = tuple(float(np.float32(1 / math.factorial(k))) for k in range(8))


def padded(width):
    """The least multiple of `LANES` that is not below a width."""
    return -(-width // LANES) * LANES


class Lanes(types.Type):
    """The Numba type of `LANES` numbers."""

    def __init__(self, dtype):
        self.dtype = dtype
        super().__init__(name=f"Lanes({dtype})")


@register_model(Lanes)
class _Model(models.PrimitiveModel):
    def __init__(self, manager, kind):
        super().__init__(manager, kind, ir.VectorType(manager.lookup(kind.dtype).get_value_type(), LANES))


def _place(context, builder, kind, array, place):
    return builder.gep(context.make_array(kind)(context, builder, array).data, [place], inbounds=True)


def lanes_pointer(context, builder, kind, array, place):
    """Where the lanes from a place of an array on are, for an intrinsic."""
    first = _place(context, builder, kind, array, place)
    return builder.bitcast(first, context.get_value_type(Lanes(kind.dtype)).as_pointer())


@intrinsic
def load(typing, array, place):
    """The lanes from a place of a contiguous array on; places of an array of several axes are counted in order."""

    def emit(context, builder, signature, values):
        return builder.load(lanes_pointer(context, builder, array, *values), align=array.dtype.bitwidth // 8)

    return Lanes(array.dtype)(array, types.intp), emit


@intrinsic
def load_as(typing, array, place, number):
    """The lanes of a contiguous array of integers, from a place on, as numbers of the kind of `number`."""

    def emit(context, builder, signature, values):
        loaded = builder.load(lanes_pointer(context, builder, array, *values[:2]), align=array.dtype.bitwidth // 8)
        return builder.sitofp(loaded, context.get_value_type(Lanes(number)))

    return Lanes(number)(array, types.intp, number), emit


@intrinsic
def store(typing, array, place, lanes):
    """Put lanes into a contiguous array, from a place on."""

    def emit(context, builder, signature, values):
        builder.store(values[2], lanes_pointer(context, builder, array, *values[:2]), align=array.dtype.bitwidth // 8)
        return context.get_dummy_value()

    return types.void(array, types.intp, lanes), emit


@intrinsic
def prefetch(typing, array, place):
    """Ask for the line of memory with a place of a contiguous array, which is needed soon."""

    def emit(context, builder, signature, values):
        first = builder.bitcast(_place(context, builder, array, *values), ir.IntType(8).as_pointer())
        kind = ir.FunctionType(ir.VoidType(), [first.type, _INDEX, _INDEX, _INDEX])
        function = cgutils.get_or_insert_function(builder.module, kind, "llvm.prefetch.p0")
        builder.call(function, [first, _INDEX(0), _INDEX(3), _INDEX(1)])  # to read, into all caches, data
        return context.get_dummy_value()

    return types.void(array, types.intp), emit


def spread_value(builder, number):
    """A value in all lanes, for an intrinsic."""
    one = builder.insert_element(ir.Constant(ir.VectorType(number.type, LANES), ir.Undefined), number, _INDEX(0))
    return builder.shuffle_vector(one, one, ir.Constant(ir.VectorType(_INDEX, LANES), [0] * LANES))


@intrinsic
def spread(typing, number):
    """The same number in all lanes."""
    return Lanes(number)(number), lambda context, builder, signature, values: spread_value(builder, values[0])


@intrinsic
def spread_from(typing, array, place):
    """The number at a place of a contiguous array in all lanes."""

    def emit(context, builder, signature, values):
        return spread_value(builder, builder.load(_place(context, builder, array, *values)))

    return Lanes(array.dtype)(array, types.intp), emit


@intrinsic
def reaching(typing, array, place, least, number):
    """A number in lanes where the unsigned integer of a contiguous array is at least so large, 0 in the others."""

    def emit(context, builder, signature, values):
        numbers = builder.load(lanes_pointer(context, builder, array, *values[:2]), align=array.dtype.bitwidth // 8)
        mask = builder.icmp_unsigned(">=", numbers, spread_value(builder, values[2]))
        lanes = spread_value(builder, values[3])
        return builder.select(mask, lanes, ir.Constant(lanes.type, None))

    return Lanes(number)(array, types.intp, array.dtype, number), emit


@intrinsic
def multiply_add(typing, x, y, z):
    """x y + z, lane by lane, rounded once where the processor can."""

    def emit(context, builder, signature, values):
        return builder.fadd(builder.fmul(values[0], values[1], flags=_FAST), values[2], flags=_FAST)

    return z(x, y, z), emit


@intrinsic
def plus(typing, x, y):
    """x + y, lane by lane."""
    return x(x, y), lambda context, builder, signature, values: builder.fadd(*values)


@intrinsic
def times(typing, x, y):
    """x y, lane by lane."""
    return x(x, y), lambda context, builder, signature, values: builder.fmul(*values)


@intrinsic
def larger(typing, x, y):
    """The larger of x and y, lane by lane; y where one is no number."""

    def emit(context, builder, signature, values):
        return builder.select(builder.fcmp_ordered(">", *values), *values)

    return x(x, y), emit


@intrinsic
def first_lanes(typing, x, count, y):
    """The first lanes of x, as many as counted, and those of y after them."""

    def emit(context, builder, signature, values):
        places = ir.Constant(ir.VectorType(_INDEX, LANES), list(range(LANES)))
        first = builder.icmp_signed("<", places, spread_value(builder, builder.trunc(values[1], _INDEX)))
        return builder.select(first, values[0], values[2])

    return x(x, types.intp, y), emit


def _halved(combine):
    """Combine both halves of all lanes until one number is left."""

    def emit(context, builder, signature, values):
        sums, size = values[0], LANES
        while size > 1:
            size //= 2
            halves = (list(range(size)), list(range(size, 2 * size)))
            kind = ir.VectorType(_INDEX, size)
            sums = combine(builder, *(builder.shuffle_vector(sums, sums, ir.Constant(kind, half)) for half in halves))
        return builder.extract_element(sums, _INDEX(0))

    return emit


@intrinsic
def total(typing, x):
    """The sum of all lanes."""
    return x.dtype(x), _halved(lambda builder, low, high: builder.fadd(low, high))


@intrinsic
def largest(typing, x):
    """The largest of all lanes."""
    return x.dtype(x), _halved(lambda builder, low, high: builder.select(builder.fcmp_ordered(">", low, high), low, high))


@intrinsic
def exponential(typing, x):
    """exp(x) of lanes of float32 with |x| <= 87, relative error below 2e-7: `exp_single` of exp_kernel, sixteen at once.

    Not in a kernel with fastmath, which holds for all that is inside it: "reassoc" takes the rounding away.
    """
    if x.dtype != types.float32:
        raise TypeError(f"exponential is for lanes of float32, not {x.dtype}")

    def emit(context, builder, signature, values):
        kind = context.get_value_type(x)
        word = ir.VectorType(_INDEX, LANES)

        def fused(a, b, c):
            b, c = (ir.Constant(kind, [factor] * LANES) if isinstance(factor, float) else factor for factor in (b, c))
            return builder.fadd(builder.fmul(a, b, flags=_FAST), c, flags=_FAST)

        shifted = fused(values[0], LOG2E, LARGE)
        k = builder.fsub(shifted, ir.Constant(kind, [LARGE] * LANES))
        remainder, power = fused(k, -LN2_LOW, fused(k, -LN2_HIGH, values[0])), ir.Constant(kind, [TAYLOR[-1]] * LANES)
        for coefficient in TAYLOR[-2::-1]:
            power = fused(power, remainder, coefficient)
        bits = builder.shl(builder.bitcast(shifted, word), ir.Constant(word, [23] * LANES))
        return builder.fmul(power, builder.bitcast(builder.add(bits, ir.Constant(word, [127 << 23] * LANES)), kind))

    return x(x), emit


_NONE, _ONE, _TWO, _THREE, _GROUP = map(uintp, range(5))
_LANES = uintp(LANES)
GROUP = int(_GROUP)
"""Rows that are summed together."""


@njit(cache=True)
def add_product(sizes, left, right, out, fresh):
    """out[i] += sum_(o, k) left[i, o, k] right[o, k], or = where `fresh`.

    `sizes` are (rows, columns, outer, inner): columns in whole lanes, o < outer and k < inner. `left` is (array, place, step of
    i, step of o, step of k); `right` and `out` are (array, place, step of a row), and rows of `right` are in the order of (o, k).
    All arrays are contiguous. Nothing is checked. The last group begins earlier where it would go over the end, and stores only
    what is new; fewer rows than a group are taken one by one.
    """
    (rows, columns, outer, inner), (a, a_place, a_row, a_outer, a_inner) = sizes, left
    (b, b_place, b_row), (c, c_place, c_row) = right, out
    rows = uintp(rows)
    few = rows < _GROUP
    a_next, c_next, last = (_NONE, _NONE, rows) if few else (a_row, c_row, rows - _GROUP)
    for first in range(_NONE, rows, _ONE if few else _GROUP):
        i = min(first, last)
        done = first - i
        for column in range(_NONE, uintp(columns), _LANES):
            target, source = c_place + i * c_row + column, b_place + column
            if fresh:
                x = y = u = v = spread(c.dtype.type(0))
            else:
                x, y = load(c, target), load(c, target + c_next)
                u, v = load(c, target + _TWO * c_next), load(c, target + _THREE * c_next)
            for o in range(uintp(outer)):
                place = a_place + i * a_row + o * a_outer
                for _ in range(uintp(inner)):
                    lanes = load(b, source)
                    x = multiply_add(spread_from(a, place), lanes, x)
                    y = multiply_add(spread_from(a, place + a_next), lanes, y)
                    u = multiply_add(spread_from(a, place + _TWO * a_next), lanes, u)
                    v = multiply_add(spread_from(a, place + _THREE * a_next), lanes, v)
                    place += a_inner
                    source += b_row
            if done < _ONE:
                store(c, target, x)
            if done < _TWO:
                store(c, target + c_next, y)
            if done < _THREE:
                store(c, target + _TWO * c_next, u)
            store(c, target + _THREE * c_next, v)
