"""The induction score of layer 2: that of watched transformers, for the models here [MIC:induction].

It is the attention to places after earlier occurrences of the current token (`prefix_match`). With few tokens many places are
such, so it is given between chance, 0, and attention on nothing else, 1.
"""

import numpy as np

from stagescope.fields.softmax import softmax
from stagescope.papers.markov_icl.finite import FiniteLoss
from stagescope.papers.markov_icl.sequences import causal
from stagescope.papers.markov_icl.windows import SoftmaxPopulation
from stagescope.params import Params
from stagescope.watching.heads import even_patterns, prefix_match

SEQUENCES = 100
"""Sequences on which finite models are scored: the error is about .01."""


def induction_score(law: SoftmaxPopulation | FiniteLoss, params: Params) -> float:
    """Share of the way from chance, 0, to attention on such places alone, 1."""
    value, chance = _windows(law, params) if isinstance(law, SoftmaxPopulation) else _sequences(law, params)
    return (value - chance) / (1 - chance)


def _windows(law: SoftmaxPopulation, params: Params) -> tuple[float, float]:
    """On an infinite context: windows whose token at lag 1 is the current one; even attention gives them sum_i pi_i^2."""
    tables, digits = law.tables, law.tables["digits"]
    h = digits @ law.model.attention(params)
    scores = float(params["W"][0]) * h
    weights = np.exp(scores - scores.max(axis=1, keepdims=True))
    windows = tables["windows"].reshape(len(tables["windows"]), -1)
    whole = windows @ weights.T
    after = windows @ (weights * digits[:, :, 1]).T
    return float(np.sum(tables["mass"] * after / whole)), float(np.sum(tables["mass"] * law.process.marginal))


def _sequences(law: FiniteLoss, params: Params) -> tuple[float, float]:
    tokens = law.data["tokens"][:SEQUENCES]
    weights = layer_two(law, params, tokens)
    attended = prefix_match(weights, tokens)
    alone = prefix_match(_alone(tokens), tokens)
    return attended / alone, prefix_match(even_patterns(*tokens.shape), tokens) / alone


def _alone(tokens: np.ndarray) -> np.ndarray:
    """Attention on places after the current token alone, where there are some: the largest score there is."""
    before = np.roll(tokens, 1, axis=1)
    same = (tokens[:, :, None] == before[:, None, :]) & np.tri(tokens.shape[1], dtype=bool)
    same[:, :, 0] = False
    return same / np.maximum(same.sum(axis=2, keepdims=True), 1)


def layer_two(law: FiniteLoss, params: Params, tokens: np.ndarray) -> np.ndarray:
    """Causal attention of layer 2 of model T (sequences, query, key)."""
    length = tokens.shape[1]
    first = causal(np.asarray(params["v"], dtype=float), length)
    h = np.einsum("ts,nsm->ntm", first, (tokens[..., None] == np.arange(law.model.tokens)).astype(float))
    scores = np.einsum("ntm,nsm->nts", np.asarray(params["W"], dtype=float)[tokens], h)
    return softmax(np.where(np.tri(length, dtype=bool), scores, -np.inf))
