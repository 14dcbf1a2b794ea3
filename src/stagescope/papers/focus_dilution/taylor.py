"""Derivatives of the population gradient along lines, by the steps of its kernel [FD:population]."""

import numpy as np

from stagescope.fields.field import TaylorField
from stagescope.fields.series import Recipe


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
