"""exp of whole arrays, for Numba kernels: exp(x) = 2^k e^r with |r| <= ln(2)/2, in loops without branches that vectorise.

x/ln(2) is rounded to k by adding a number whose last bit stands for one. Then r = x - k ln(2), with ln(2) in two parts so that
nothing is lost, e^r is a Taylor series, and 2^k is written as exponent bits.
"""

import math

import numpy as np

from stagescope.kernels import njit

_ROUND, _ROUND_SINGLE = 1.5 * 2.0**52, np.float32(1.5 * 2.0**23)
_C3, _C4, _C5, _C6, _C7, _C8, _C9, _C10, _C11 = (1.0 / math.factorial(k) for k in range(3, 12))
_S1, _S2, _S3, _S4, _S5, _S6, _S7 = (np.float32(1.0 / math.factorial(k)) for k in range(1, 8))
_LOG2E, _LN2_HIGH, _LN2_LOW = np.float32(1.4426950408889634), np.float32(0.693359375), np.float32(-2.1219444005469057e-4)


@njit(cache=True, fastmath={"contract", "reassoc"})
def exp_double(x, bits):
    """x <- exp(x) for float64 with |x| <= 700, relative error below 1e-14; `bits` is room for as many int64."""
    rounded, exponents = bits.view(np.float64), x.view(np.int64)
    for j in range(x.size):
        rounded[j] = x[j] * 1.4426950408889634 + _ROUND
        k = rounded[j] - _ROUND
        r = (x[j] - k * 0.6931471803691238) - k * 1.9082149292705877e-10
        r2 = r * r
        r4 = r2 * r2
        low = (1.0 + r) + (0.5 + _C3 * r) * r2
        middle = (_C4 + _C5 * r) + (_C6 + _C7 * r) * r2
        high = (_C8 + _C9 * r) + (_C10 + _C11 * r) * r2
        x[j] = low + (middle + high * r4) * r4
    for j in range(x.size):
        exponents[j] += bits[j] << 52


@njit(cache=True, fastmath={"contract"})
def exp_single(x, work):
    """x <- exp(x) for float32 with |x| <= 87, relative error below 1e-7; `work` is room for as many float32."""
    bits = work.view(np.int32)
    for j in range(x.size):
        work[j] = x[j] * _LOG2E + _ROUND_SINGLE
    for j in range(x.size):
        k = work[j] - _ROUND_SINGLE
        r = (x[j] - k * _LN2_HIGH) - k * _LN2_LOW
        r2 = r * r
        x[j] = (_S1 + r) + r2 * ((_S2 + _S3 * r) + r2 * ((_S4 + _S5 * r) + r2 * (_S6 + _S7 * r)))
    for j in range(x.size):
        bits[j] = np.int32((bits[j] << 23) + (127 << 23))
    for j in range(x.size):
        x[j] *= work[j]
