"""Numba kernel that carries out a recipe on Taylor series of matrices, see series.py.

The recipe is a table: each kind of step is compiled once, however often a recipe has it. All numbers are in one array: the
terms of a matrix one after the other, each with its rows one after the other.
"""

import numpy as np

from stagescope.flow.flat_kernel import FAST
from stagescope.flow.kernels import njit

PRODUCT, SOFTMAX, SLOPE, ROWS = range(4)


@njit(cache=True, fastmath=FAST)
def _product(first, last, step, weight, room):
    """out = weight a b, or out += weight a b. A matrix that is turned has its rows as columns; at most one of both is."""
    a, b, out, rows, inner, columns, a_last, b_last, a_turned, b_turned, adds = step[1:12]
    count = last + 1
    for k in range(first, count):
        goal = out * count + k * rows * columns
        for j in range(0 if adds else rows * columns):
            room[goal + j] = 0.0
        for p in range(max(0, k - b_last), min(k, a_last) + 1):
            a_place, b_place = a * count + p * rows * inner, b * count + (k - p) * inner * columns
            for i in range(rows):
                to = goal + i * columns
                if b_turned:
                    row = a_place + i * inner
                    for j in range(columns):
                        b_row, total = b_place + j * inner, 0.0
                        for n in range(inner):
                            total += room[row + n] * room[b_row + n]
                        room[to + j] += weight * total
                else:
                    row, along = (a_place + i, rows) if a_turned else (a_place + i * inner, 1)
                    for n in range(inner):
                        x, b_row = weight * room[row + n * along], b_place + n * columns
                        for j in range(columns):
                            room[to + j] += x * room[b_row + j]


@njit(cache=True, fastmath=FAST)
def _slope(k, y, size, columns, lift, centred, room, weight, goal):
    """Term k of weight y (x - y . x) for a row y, with x in `lift`; `centred` keeps the terms of x - y . x."""
    mean = 0.0
    for p in range(k + 1):
        for j in range(columns):
            mean += room[y + p * size + j] * lift[k - p, j]
    for j in range(columns):
        centred[k, j] = lift[k, j] - mean
        room[goal + j] = 0.0
    for p in range(k + 1):
        for j in range(columns):
            room[goal + j] += weight * room[y + p * size + j] * centred[k - p, j]


@njit(cache=True, fastmath=FAST)
def _softmax(first, last, step, lift, centred, room):
    """Rows y = softmax(x + shift) obey y' = y (x' - y . x'), so that each term follows from those before it."""
    x, shift, out, rows, columns, count = step[1], step[2] * (last + 1), step[3], step[4], step[6], last + 1
    size = rows * columns
    for i in range(rows):
        source, to = x * count + i * columns, out * count + i * columns
        if first == 0:
            top, total = -np.inf, 0.0
            for j in range(columns):
                top = max(top, room[source + j] + room[shift + j])
            for j in range(columns):
                room[to + j] = np.exp(room[source + j] + room[shift + j] - top)
                total += room[to + j]
            for j in range(columns):
                room[to + j] /= total
        for k in range(last):
            for j in range(columns):
                lift[k, j] = (k + 1) * room[source + (k + 1) * size + j]
            _slope(k, to, size, columns, lift, centred, room, 1.0 / (k + 1), to + (k + 1) * size)


@njit(cache=True, fastmath=FAST)
def _slopes(last, step, weight, lift, centred, room):
    """out = weight y (x - y . x), row by row."""
    x, y, out, rows, columns, count = step[1], step[2], step[3], step[4], step[6], last + 1
    size = rows * columns
    for i in range(rows):
        for k in range(count):
            for j in range(columns):
                lift[k, j] = room[x * count + k * size + i * columns + j]
            goal = out * count + k * size + i * columns
            _slope(k, y * count + i * columns, size, columns, lift, centred, room, weight, goal)


@njit(cache=True, fastmath=FAST)
def _rows(first, last, step, room):
    """out = y, each row times a number, less a constant matrix."""
    y, weights, out, rows, constant, columns, count = step[1], step[2], step[3], step[4], step[5], step[6], last + 1
    for k in range(first, count):
        for i in range(rows):
            for j in range(columns):
                place = k * rows * columns + i * columns + j
                less = room[constant * count + i * columns + j] if k == 0 else 0.0
                room[out * count + place] = room[weights * count + i] * room[y * count + place] - less


@njit(cache=True)
def _placed(numbers, k, table, count, room):
    """Numbers become term k of the matrices of a table: place, size."""
    read = 0
    for row in range(len(table)):
        for j in range(table[row, 1]):
            room[table[row, 0] * count + k * table[row, 1] + j] = numbers[read]
            read += 1


@njit(cache=True)
def _gathered(table, k, count, room, out):
    """The opposite of `_placed`, with the other sign."""
    place = 0
    for row in range(len(table)):
        for j in range(table[row, 1]):
            out[place] = -room[table[row, 0] * count + k * table[row, 1] + j]
            place += 1


@njit(cache=True)
def carried_out(steps, weights, inputs, constants, outputs, numbers, size, theta, lines, order):
    """Terms (order + 1, lines, parameters) of -outputs along lines through theta; those of power 0 are computed once."""
    count = order + 1
    room, widest = np.zeros(size * count), 0
    for row in range(len(steps)):
        widest = max(widest, steps[row, 6])
    lift, centred = np.empty((count, widest)), np.empty((count, widest))
    out = np.empty((count, len(lines), len(theta)))
    _placed(numbers, 0, constants, count, room)
    _placed(theta, 0, inputs, count, room)
    for line in range(len(lines)):
        first = min(line, 1)
        if order > 0:
            _placed(lines[line], 1, inputs, count, room)
        for row in range(len(steps)):
            step, kind = steps[row], steps[row, 0]
            if kind == PRODUCT:
                _product(first, order, step, weights[row], room)
            elif kind == SOFTMAX:
                _softmax(first, order, step, lift, centred, room)
            elif kind == SLOPE:
                _slopes(order, step, weights[row], lift, centred, room)
            else:
                _rows(first, order, step, room)
        for k in range(count):
            _gathered(outputs, k, count, room, out[k, line])
    return out
