"""Sums of listed rows, for Numba kernels: the sums stay in registers while the rows go by.

A loop of Numba's would read and write the sums at each row, and ask before each whether the two overlap.
"""

from typing import Any

from llvmlite import ir
from numba.core import cgutils, types
from numba.extending import intrinsic

_literal: Any = intrinsic(prefer_literal=True)
BYTES = 32
"""Of a register: LLVM takes two or more of the processor's for it where those are smaller."""


@_literal
def sum_rows(typing, out, p, table, q, stride, rows, first, last, registers, pairs, keep):
    """out[p + j] <- sum of table[rows[i] stride + q + j] for first <= i < last, j in as many registers as the literal says.

    All arrays are flat. With `pairs`, four rows at a time are added as (a + b) + (c + d), and last - first is a multiple of
    four. With `keep` the sums begin with what is in `out`. These three are constants. No sum is taken in another order.
    """
    count, four, begun = registers.literal_value, pairs.literal_value, keep.literal_value
    item = out.dtype.bitwidth // 8
    signature = types.void(out, p, table, q, stride, rows, first, last, registers, pairs, keep)

    def codegen(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        _, p, _, q, stride, _, first, last = values[:8]
        data = [context.make_array(kind)(context, builder, array).data for kind, array in _arrays(signature, values)]
        lanes = BYTES // item
        kind = ir.VectorType(context.get_value_type(signature.args[0].dtype), lanes)
        size = first.type

        def vector(pointer: Any, at: Any, k: int) -> Any:
            place = builder.gep(pointer, [builder.add(at, ir.Constant(size, k * lanes))])
            return builder.bitcast(place, kind.as_pointer())

        def row(i: Any) -> list[Any]:
            at = builder.add(builder.mul(builder.zext(builder.load(builder.gep(data[2], [i])), size), stride), q)
            return [builder.load(vector(data[1], at, k), align=item) for k in range(count)]

        targets = [vector(data[0], p, k) for k in range(count)]
        start = [builder.load(t, align=item) if begun else ir.Constant(kind, None) for t in targets]
        sums = [cgutils.alloca_once_value(builder, value) for value in start]
        with cgutils.for_range_slice(builder, first, last, ir.Constant(size, 4 if four else 1), inc=True) as (i, _):
            terms = row(i)
            if four:
                a, b, c, d = terms, *(row(builder.add(i, ir.Constant(size, k))) for k in (1, 2, 3))
                terms = [builder.fadd(builder.fadd(w, x), builder.fadd(y, z)) for w, x, y, z in zip(a, b, c, d, strict=True)]
            for place, term in zip(sums, terms, strict=True):
                builder.store(builder.fadd(builder.load(place), term), place)
        for place, target in zip(sums, targets, strict=True):
            builder.store(builder.load(place), target, align=item)
        return context.get_dummy_value()

    return signature, codegen


def _arrays(signature: Any, values: Any) -> Any:
    return ((signature.args[i], values[i]) for i in (0, 2, 5))
