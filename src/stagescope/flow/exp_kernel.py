"""exp for Numba kernels: exp(x) = 2^k e^r with |r| <= ln(2)/2, of whole arrays or of one number, without branches, so that
loops vectorise.

x/ln(2) is rounded to k by adding a number whose last bit stands for one. Then r = x - k ln(2), with ln(2) in two parts so that
nothing is lost, e^r is a Taylor series, and 2^k is written as exponent bits.
"""

import math

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import overload

from stagescope.flow.kernels import intrinsic, njit

_C3, _C4, _C5, _C6, _C7, _C8, _C9, _C10, _C11 = (1.0 / math.factorial(k) for k in range(3, 12))
_S1, _S2, _S3, _S4, _S5, _S6, _S7 = (np.float32(1.0 / math.factorial(k)) for k in range(1, 8))
_LOG2E, _LN2_HIGH, _LN2_LOW = np.float32(1.4426950408889634), np.float32(0.693359375), np.float32(-2.1219444005469057e-4)


class _Kind:
    """What the two precisions differ in: the type of numbers, that of their bits, and how many bits stand after the point."""

    def __init__(self, x):
        self.single = x == types.float32
        self.number, self.after = (ir.FloatType(), 23) if self.single else (ir.DoubleType(), 52)
        self.word, self.bits = (ir.IntType(32), types.int32) if self.single else (ir.IntType(64), types.int64)


@intrinsic
def _rounded(typing, x):
    """k = x/ln(2) rounded, and k as exponent bits. No flag lets the compiler undo the rounding."""
    kind = _Kind(x)

    def emit(context, builder, signature, values):
        to_two = ir.Constant(kind.number, float(_LOG2E) if kind.single else 1.4426950408889634)
        large = ir.Constant(kind.number, 1.5 * 2.0**kind.after)
        shifted = builder.fadd(builder.fmul(values[0], to_two, flags=("contract",)), large, flags=("contract",))
        power = builder.shl(builder.bitcast(shifted, kind.word), ir.Constant(kind.word, kind.after))
        return context.make_tuple(builder, signature.return_type, [builder.fsub(shifted, large), power])

    return types.Tuple([x, kind.bits])(x), emit


@intrinsic
def _raised(typing, x, power):
    """x 2^k, with k as exponent bits; of float32 by a product."""
    kind = _Kind(x)

    def emit(context, builder, signature, values):
        if kind.single:
            one = ir.Constant(kind.word, 127 << kind.after)
            return builder.fmul(values[0], builder.bitcast(builder.add(values[1], one), kind.number))
        return builder.bitcast(builder.add(builder.bitcast(values[0], kind.word), values[1]), kind.number)

    return x(x, kind.bits), emit


@njit(cache=True, fastmath={"contract", "reassoc"})
def exp_double(x):
    """x <- exp(x) for float64 with |x| <= 700, relative error below 1e-14."""
    for j in range(x.size):
        k, power = _rounded(x[j])
        r = (x[j] - k * 0.6931471803691238) - k * 1.9082149292705877e-10
        r2 = r * r
        r4 = r2 * r2
        low = (1.0 + r) + (0.5 + _C3 * r) * r2
        middle = (_C4 + _C5 * r) + (_C6 + _C7 * r) * r2
        high = (_C8 + _C9 * r) + (_C10 + _C11 * r) * r2
        x[j] = _raised(low + (middle + high * r4) * r4, power)


@njit(cache=True, fastmath={"contract"})
def exp_single(x):
    """x <- exp(x) for float32 with |x| <= 87, relative error below 2e-7."""
    for j in range(x.size):
        k, power = _rounded(x[j])
        r = (x[j] - k * _LN2_HIGH) - k * _LN2_LOW
        r2 = r * r
        x[j] = _raised((_S1 + r) + r2 * ((_S2 + _S3 * r) + r2 * ((_S4 + _S5 * r) + r2 * (_S6 + _S7 * r))), power)


@njit(cache=True)
def exp_any(x):
    """x <- exp(x) in the precision of x."""
    if x.itemsize == 8:
        exp_double(x)
    else:
        exp_single(x)


@intrinsic
def _float_of(typing, bits):
    """The float32 that has these 32 bits."""

    def emit(context, builder, signature, values):
        return builder.bitcast(values[0], ir.FloatType())

    return types.float32(types.int32), emit


def exp_number(x):
    """exp(x); of a float32 |x| <= 87, relative error below 2e-7, in a form that vectorises inside any loop."""
    raise NotImplementedError("only inside compiled code")


@overload(exp_number, jit_options={"fastmath": {"contract"}})
def _exp_number_for(x):
    if x != types.float32:
        return lambda x: np.exp(x)

    def single(x):
        k = np.float32(np.rint(x * _LOG2E))
        r = (x - k * _LN2_HIGH) - k * _LN2_LOW
        r2 = r * r
        power = (_S1 + r) + r2 * ((_S2 + _S3 * r) + r2 * ((_S4 + _S5 * r) + r2 * (_S6 + _S7 * r)))
        return power * _float_of(np.int32((np.int32(k) + np.int32(127)) << np.int32(23)))

    return single
