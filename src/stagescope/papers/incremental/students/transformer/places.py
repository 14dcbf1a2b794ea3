"""Positions in the transformer's pass: what is added to tokens, what turns queries and keys, what is added to scores."""

import numpy as np

from stagescope.papers.incremental.students.transformer.model import Transformer
from stagescope.params import Params

Blocks = dict[str, np.ndarray]


def added_places(model: Transformer, params: Params) -> np.ndarray:
    """What is added to the tokens (positions, width)."""
    return params["P"] if model.places == "learned" else model.fixed_places.astype(params["E"].dtype)


def inputs(model: Transformer, params: Params) -> np.ndarray:
    """What enters the first layer, by pair (positions x vocab, width), ordered by position, then token."""
    return (added_places(model, params)[:, None] + params["E"]).reshape(-1, model.width)


def add_inputs(found: Blocks, model: Transformer, d: np.ndarray) -> None:
    """Back through `inputs`."""
    by_place = d.reshape(model.positions, model.vocab, model.width)
    found["E"] += by_place.sum(axis=0)
    if model.places == "learned":
        found["P"] += by_place.sum(axis=1)


def turn(model: Transformer, block: np.ndarray, rows: np.ndarray, back: bool = False) -> None:
    """Turn queries or keys (..., rows, inner) by their positions, in place; only where positions are rotary."""
    if model.places != "rotary":
        return
    cos, sin = (table[rows].astype(block.dtype) for table in model.turns)
    half = cos.shape[-1]
    one, two = block[..., :half].copy(), block[..., half : 2 * half].copy()
    sin = -sin if back else sin
    block[..., :half] = one * cos - two * sin
    block[..., half : 2 * half] = two * cos + one * sin


def lag_bias(model: Transformer, params: Params, layer: int) -> np.ndarray | None:
    """What is added to the scores (head, row, position) where positions are relative: a number for each head and lag."""
    if model.places != "relative":
        return None
    return np.asarray(params[f"B{layer}"])[:, _lags(model, layer)]


def add_lag_bias(found: Blocks, model: Transformer, layer: int, d: np.ndarray) -> None:
    """Back through `lag_bias`."""
    if model.places == "relative":
        for head in range(model.heads):
            np.add.at(found[f"B{layer}"][head], _lags(model, layer), d[head])


def _lags(model: Transformer, layer: int) -> np.ndarray:
    """Row minus position; 0 for positions that the row does not see, where nothing is read."""
    return np.maximum(model.rows(layer)[:, None] - np.arange(model.positions), 0)
