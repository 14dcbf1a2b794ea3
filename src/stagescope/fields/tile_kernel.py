"""A small product of matrices for Numba kernels: its sums stay in registers.

A loop of Numba's would read and write the sums at each term, and ask before each whether the arrays overlap.
"""

from typing import Any

from llvmlite import ir
from numba.core import cgutils, types

from stagescope.kernels import intrinsic

ROWS, LANES, REGISTERS = 4, 4, 2
"""Rows of a tile, float64 in a register of 32 bytes, and registers in a row: with the factors they fill all sixteen."""
COLUMNS = LANES * REGISTERS


@intrinsic
def add_tile(typing, out, at, stride, fresh, a, first, down, across, b, begin, inner):
    """out[at + i stride + j] <- sum of a[first + i down + k across] b[begin + k stride + j] over k < inner, or added to it.

    i < ROWS, j < COLUMNS; the arrays are flat, of float64, and `out` is none of the others.
    """
    signature = types.void(out, at, stride, fresh, a, first, down, across, b, begin, inner)

    def codegen(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        arrays = {i: context.make_array(signature.args[i])(context, builder, values[i]).data for i in (0, 4, 8)}
        _, at, stride, fresh, _, first, down, across, _, begin, inner = values
        kind = ir.VectorType(ir.DoubleType(), LANES)
        fresh = builder.trunc(fresh, ir.IntType(1)) if fresh.type.width > 1 else fresh

        def place(array: int, base: Any, *steps: tuple[int | Any, Any]) -> Any:
            for count, step in steps:
                base = builder.add(base, builder.mul(ir.Constant(step.type, count) if isinstance(count, int) else count, step))
            return builder.gep(arrays[array], [base])

        def registers(pointer: Any) -> list[Any]:
            ends = [builder.gep(pointer, [ir.Constant(ir.IntType(64), LANES * c)]) for c in range(REGISTERS)]
            return [builder.bitcast(end, kind.as_pointer()) for end in ends]

        targets = [registers(place(0, at, (i, stride))) for i in range(ROWS)]
        zero, fma = ir.Constant(kind, None), ir.FunctionType(kind, [kind] * 3)
        fused = cgutils.get_or_insert_function(builder.module, fma, f"llvm.fma.v{LANES}f64")
        sums = [
            [cgutils.alloca_once_value(builder, builder.select(fresh, zero, builder.load(t, align=8))) for t in row]
            for row in targets
        ]
        with cgutils.for_range(builder, inner) as loop:
            factors = [builder.load(t, align=8) for t in registers(place(8, begin, (loop.index, stride)))]
            for i in range(ROWS):
                one = builder.load(place(4, first, (i, down), (loop.index, across)))
                lanes = ir.Constant(kind, ir.Undefined)
                for lane in range(LANES):
                    lanes = builder.insert_element(lanes, one, ir.Constant(ir.IntType(32), lane))
                for total, factor in zip(sums[i], factors, strict=True):
                    builder.store(builder.call(fused, (lanes, factor, builder.load(total))), total)
        for row, totals in zip(targets, sums, strict=True):
            for target, total in zip(row, totals, strict=True):
                builder.store(builder.load(total), target, align=8)
        return context.get_dummy_value()

    return signature, codegen
