"""Sums and products in registers, for Numba kernels: what Numba's own loops leave in memory, and BLAS is slow at.

A loop of Numba's would read and write the sums at each term, and ask before each whether the arrays overlap. `sum_rows` adds
listed rows, `add_tile` multiplies flat matrices, and `add_products` and `inner_products` take rows by their addresses, so that
they are read, and sums added, where they are.
"""

from typing import Any

import numpy as np
from llvmlite import ir
from numba.core import cgutils, types

from stagescope.flow.kernels import intrinsic, njit

_literal: Any = intrinsic(prefer_literal=True)
BYTES = 32
"""Of a register: LLVM takes two or more of the processor's for it where those are smaller."""
LANES = BYTES // 8
"""float64 in a register."""
ROWS, REGISTERS = 4, 2
"""Rows of a tile, and registers in a row: eight sums, as many as a processor needs under way."""
COLUMNS = LANES * REGISTERS
ASKED = 3
"""Rows on the other side of a tile of inner products: twelve sums."""


@_literal
def sum_rows(typing, out, p, table, q, stride, rows, first, last, registers, pairs, keep):
    """out[p + j] <- sum of table[rows[i] stride + q + j] for first <= i < last, j in as many registers as the literal says.

    All arrays are flat. With `pairs`, four rows at a time are added as (a + b) + (c + d), and last - first is a multiple of
    four. With `keep` the sums begin with what is in `out`. These three are constants. No sum is taken in another order.
    """
    count, four, begun = registers.literal_value, pairs.literal_value, keep.literal_value
    item = out.dtype.bitwidth // 8
    signature = types.void(out, p, table, q, stride, rows, first, last, registers, pairs, keep)

    def emit(context, builder, signature, values):
        _, p, _, q, stride, _, first, last = values[:8]
        data = [context.make_array(signature.args[i])(context, builder, values[i]).data for i in (0, 2, 5)]
        lanes = BYTES // item
        kind = ir.VectorType(context.get_value_type(signature.args[0].dtype), lanes)
        size = first.type

        def vector(pointer, at, k):
            place = builder.gep(pointer, [builder.add(at, ir.Constant(size, k * lanes))])
            return builder.bitcast(place, kind.as_pointer())

        def row(i):
            index = builder.add(builder.mul(builder.zext(builder.load(builder.gep(data[2], [i])), size), stride), q)
            return [builder.load(vector(data[1], index, k), align=item) for k in range(count)]

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

    return signature, emit


@intrinsic
def add_tile(typing, out, start, stride, fresh, a, first, down, across, b, begin, inner):
    """out[start + i stride + j] <- sum of a[first + i down + k across] b[begin + k stride + j] over k < inner, or added to it.

    i < ROWS, j < COLUMNS; the arrays are flat, of float64, and `out` is none of the others.
    """
    signature = types.void(out, start, stride, fresh, a, first, down, across, b, begin, inner)

    def emit(context, builder, signature, values):
        arrays = {i: context.make_array(signature.args[i])(context, builder, values[i]).data for i in (0, 4, 8)}
        _, start, stride, fresh, _, first, down, across, _, begin, inner = values
        kind = ir.VectorType(ir.DoubleType(), LANES)
        fresh = builder.trunc(fresh, ir.IntType(1)) if fresh.type.width > 1 else fresh

        def place(array, base, *steps):
            for count, step in steps:
                base = builder.add(base, builder.mul(ir.Constant(step.type, count) if isinstance(count, int) else count, step))
            return builder.gep(arrays[array], [base])

        def registers(pointer):
            ends = [builder.gep(pointer, [ir.Constant(ir.IntType(64), LANES * c)]) for c in range(REGISTERS)]
            return [builder.bitcast(end, kind.as_pointer()) for end in ends]

        targets = [registers(place(0, start, (i, stride))) for i in range(ROWS)]
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

    return signature, emit


class _Maker:
    """The code of one tile: vectors of one kind of number."""

    def __init__(self, builder, kind):
        self.builder, self.number = builder, ir.FloatType() if kind == types.float32 else ir.DoubleType()
        self.vector, self.word = ir.VectorType(self.number, BYTES // self.size), ir.IntType(64)

    @property
    def size(self):
        return 4 if isinstance(self.number, ir.FloatType) else 8

    def at(self, address, kind):
        return self.builder.inttoptr(address, kind.as_pointer())

    def load(self, address, kind):
        return self.builder.load(self.at(address, kind), align=min(self.size, 8))

    def save(self, value, address):
        self.builder.store(value, self.at(address, value.type), align=self.size)

    def split(self, values, count):
        return [self.builder.extract_value(values, i) for i in range(count)]

    def plus(self, address, count, each):
        return self.builder.add(address, self.builder.mul(count, each))

    def all(self, number):
        """A vector of one number."""
        first = self.builder.insert_element(ir.Constant(self.vector, ir.Undefined), number, ir.IntType(32)(0))
        mask = ir.Constant(ir.VectorType(ir.IntType(32), self.vector.count), [0] * self.vector.count)
        return self.builder.shuffle_vector(first, ir.Constant(self.vector, ir.Undefined), mask)

    def room(self, count):
        """Sums, all zero; the compiler keeps them in registers."""
        places = [cgutils.alloca_once(self.builder, self.vector) for _ in range(count)]
        for place in places:
            self.builder.store(ir.Constant(self.vector, [0.0] * self.vector.count), place)
        return places

    def add(self, place, one, two):
        name = f"llvm.fma.v{self.vector.count}f{8 * self.size}"
        fused = cgutils.get_or_insert_function(self.builder.module, ir.FunctionType(self.vector, [self.vector] * 3), name)
        self.builder.store(self.builder.call(fused, [one, two, self.builder.load(place)]), place)

    def totals(self, places):
        """The sums of the numbers of four vectors of float32, as one vector: neighbours first, halves last."""
        first, second = (self._neighbours(*places[i : i + 2]) for i in (0, 2))
        both, word = self._neighbours(first, second), ir.VectorType(ir.IntType(32), 4)
        halves = (self.builder.shuffle_vector(both, both, ir.Constant(word, list(range(i, i + 4)))) for i in (0, 4))
        return self.builder.fadd(*halves)

    def _neighbours(self, a, b):
        """a0 + a1, a2 + a3, b0 + b1, b2 + b3 in each half: what a processor adds without crossing its halves."""
        word = ir.VectorType(ir.IntType(32), 8)
        masks = ([i, i + 2, i + 8, i + 10, i + 4, i + 6, i + 12, i + 14] for i in (0, 1))
        return self.builder.fadd(*(self.builder.shuffle_vector(a, b, ir.Constant(word, mask)) for mask in masks))


@intrinsic
def add_products(typing, kind, out, fresh, weights, along, rows, count, column):
    """out[i] += sum_k weights[i, k] rows[k], or = where `fresh`, on the width of two vectors, with i < ROWS.

    out, weights: the addresses of out[i] and weights[i, 0]; along: bytes from k to k + 1; rows: the address of the first row's
    address, count: of rows; column: bytes that are added to all addresses of out and rows. `kind` is any array of these numbers.
    """
    del typing

    def emit(context, builder, signature, arguments):
        make = _Maker(builder, signature.args[0].dtype)
        _, out, fresh, weights, along, rows, count, column = arguments
        sides, firsts = (make.word(0), make.word(BYTES)), make.split(weights, ROWS)
        ends = [builder.add(builder.add(end, column), side) for end in make.split(out, ROWS) for side in sides]
        sums = make.room(len(ends))
        with builder.if_then(builder.not_(fresh)):
            for place, end in zip(sums, ends, strict=True):
                builder.store(make.load(end, make.vector), place)
        with cgutils.for_range(builder, count) as loop:
            row = builder.add(make.load(make.plus(rows, loop.index, make.word(8)), make.word), column)
            parts = [make.load(builder.add(row, side), make.vector) for side in sides]
            for i, first in enumerate(firsts):
                weight = make.all(make.load(make.plus(first, loop.index, along), make.number))
                for place, part in zip(sums[2 * i : 2 * i + 2], parts, strict=True):
                    make.add(place, weight, part)
        for place, end in zip(sums, ends, strict=True):
            make.save(builder.load(place), end)
        return context.get_dummy_value()

    return types.void(kind, out, fresh, weights, along, rows, count, column), emit


@intrinsic
def inner_products(typing, kind, asks, asked, vectors, out):
    """out[j] <- rows asks[0 .. ROWS - 1] of float32 times row asked[j], over so many vectors; all are addresses."""
    del typing

    def emit(context, builder, signature, arguments):
        make = _Maker(builder, signature.args[0].dtype)
        _, asks, asked_rows, vectors, out = arguments
        queries, keys = make.split(asks, ROWS), make.split(asked_rows, ASKED)
        sums = make.room(ROWS * ASKED)
        with cgutils.for_range(builder, vectors) as loop:
            step = builder.mul(loop.index, make.word(BYTES))
            key_parts = [make.load(builder.add(row, step), make.vector) for row in keys]
            for i, row in enumerate(queries):
                query_part = make.load(builder.add(row, step), make.vector)
                for j in range(ASKED):
                    make.add(sums[ROWS * j + i], query_part, key_parts[j])
        for j, target in enumerate(make.split(out, ASKED)):
            make.save(make.totals([builder.load(place) for place in sums[ROWS * j : ROWS * (j + 1)]]), target)
        return context.get_dummy_value()

    return types.void(kind, asks, asked, vectors, out), emit


@njit(cache=True, error_model="numpy")
def address(block, row):
    """Of a row of the last axis, counted through all axes before it."""
    return np.int64(block.ctypes.data) + row * block.shape[block.ndim - 1] * block.itemsize
