"""Derivatives of the population gradient along lines [FD:population]."""

import numpy as np

from stagescope.flow.field import TaylorField
from stagescope.flow.series import Recipe
from stagescope.flow.softmax import softmax
from stagescope.papers.focus_dilution.blocked_kernel import tangents

# Derivatives of the population gradient along lines, by the steps of its kernel [FD:population].


def along_lines(sizes: tuple[int, int, int], scale: float, pi: np.ndarray, transition: np.ndarray) -> TaylorField:
    """Taylor terms of -grad L with blocks W0, W1, WQ and WK of d tokens, width m and key width mk."""
    d, m, mk = sizes
    recipe = Recipe()
    w0, w1, wq, wk = (recipe.parameter(*shape) for shape in ((d, m), (m, d), (m, mk), (m, mk)))
    logs, none, law = recipe.constant(np.log(pi)), recipe.constant(np.zeros(d)), recipe.constant(pi[:, None] * transition)
    query, key = recipe.times(w0, wq), recipe.times(w0, wk)
    attention = recipe.softmax(recipe.times(query, key.T, scale), logs)
    hidden = recipe.times(attention, w0)
    predicted = recipe.softmax(recipe.times(hidden, w1), none)
    surprise = recipe.weighted(predicted, recipe.constant(pi * transition.sum(axis=1)), less=law)
    lower = recipe.times(surprise, w1.T)
    slope = recipe.softmax_slope(recipe.times(lower, w0.T), attention, scale)
    by_query, by_key = recipe.times(slope, key), recipe.times(slope.T, query)
    embedding = recipe.times(attention.T, lower)
    recipe.times(by_query, wq.T, add_to=embedding)
    recipe.times(by_key, wk.T, add_to=embedding)
    return recipe.field(embedding, recipe.times(hidden.T, surprise), recipe.times(w0.T, by_query), recipe.times(w0.T, by_key))


# Derivatives of the population gradient for many tokens: the first order by a kernel, others by a recipe [FD:population].

Sizes = tuple[int, int, int]
AT_ONCE = 64
"""Lines that are carried out at once: what they take is then small beside the whole Jacobian."""


class _Point:
    """What the products with the Hessian at one point have in common."""

    def __init__(self, sizes: Sizes, scale: float, pi: np.ndarray, transition: np.ndarray, vector: np.ndarray) -> None:
        self.sizes, self.scale, self.vector = sizes, scale, vector.copy()
        w0, w1, wq, wk = self.blocks = tuple(block[0] for block in _blocks(vector[None], sizes))
        query, key = scale * w0 @ wq, w0 @ wk
        attention = softmax(query @ key.T + np.log(pi))
        hidden, mass = attention @ w0, pi * transition.sum(axis=1)
        predicted = mass[:, None] * softmax(hidden @ w1)
        surprise = predicted - pi[:, None] * transition
        low = surprise @ w1.T
        centred = low @ w0.T - np.sum(low * hidden, axis=1)[:, None]
        slope = attention * centred
        by_query, by_key = slope @ key, slope.T @ query
        self.by_query, self.by_key = by_query, by_key
        self.gradient = (
            attention.T @ low + scale * by_query @ wq.T + by_key @ wk.T,
            hidden.T @ surprise,
            scale * w0.T @ by_query,
            w0.T @ by_key,
        )
        self.along_tokens = _turned(w0), w1.copy(), _turned(key)
        self.by_row = query, hidden, low, mass
        self.tables = attention, predicted, surprise, centred

    def products(self, lines: np.ndarray) -> np.ndarray:
        """-H times every line."""
        (w0, _, wq, wk), scale, (d, m, mk) = self.blocks, self.scale, self.sizes
        dw0, dw1, dwq, dwk = _blocks(lines, self.sizes)
        directions = _turned(dw0), np.ascontiguousarray(dw1), scale * (dw0 @ wq + w0 @ dwq), _turned(dw0 @ wk + w0 @ dwk)
        out = tuple(np.zeros((len(lines), *shape)) for shape in ((m, d), (m, d), (d, mk), (mk, d)))
        tangents(self.along_tokens, self.by_row, self.tables, directions, out)
        by_w0, by_w1, by_q, by_k = _turned(out[0]), out[1], out[2], _turned(out[3])
        by_w0 = by_w0 + scale * (by_q @ wq.T + self.by_query @ _turned(dwq)) + by_k @ wk.T + self.by_key @ _turned(dwk)
        by_wq = scale * (w0.T @ by_q + _turned(dw0) @ self.by_query)
        by_wk = w0.T @ by_k + _turned(dw0) @ self.by_key
        return -_flat(by_w0, by_w1, by_wq, by_wk)


def many_lines(sizes: Sizes, scale: float, pi: np.ndarray, transition: np.ndarray) -> TaylorField:
    """Taylor terms of -grad L, as `along_lines` gives them; the point of the last call is kept for products with J there."""
    recipe, last_point = along_lines(sizes, scale, pi, transition), []

    @np.errstate(over="ignore", invalid="ignore")
    def taylor(vector: np.ndarray, lines: np.ndarray, order: int) -> np.ndarray:
        if order > 1:
            return recipe(vector, lines, order)
        if not last_point or not np.array_equal(last_point[0].vector, vector):
            last_point[:] = [_Point(sizes, scale, pi, transition, vector)]
        out = np.empty((order + 1, *np.shape(lines)))
        out[0] = -_flat(*(block[None] for block in last_point[0].gradient))
        for first in range(0, len(lines) * order, AT_ONCE):
            out[1, first : first + AT_ONCE] = last_point[0].products(lines[first : first + AT_ONCE])
        return out

    return taylor


def _blocks(lines: np.ndarray, sizes: Sizes) -> tuple[np.ndarray, ...]:
    """W0, W1, WQ and WK of every line."""
    d, m, mk = sizes
    parts = np.split(lines, np.cumsum([d * m, d * m, m * mk]), axis=1)
    return tuple(part.reshape(len(lines), *shape) for part, shape in zip(parts, ((d, m), (m, d), (m, mk), (m, mk)), strict=True))


def _flat(*blocks: np.ndarray) -> np.ndarray:
    return np.concatenate([block.reshape(len(block), -1) for block in blocks], axis=1)


def _turned(matrices: np.ndarray) -> np.ndarray:
    return np.ascontiguousarray(np.swapaxes(matrices, -1, -2))
