"""What the figures of arXiv 2605.01199 plot, for Python users: losses by last token, cosines of neurons, norms, entropies."""

from dataclasses import dataclass

import numpy as np
from scipy.cluster.hierarchy import leaves_list, linkage

from stagescope.core.errors import InputError
from stagescope.core.params import key
from stagescope.flow.softmax import softmax
from stagescope.papers.focus_dilution.loss import Contexts, TokenFinite, TokenLoss, TokenPopulation, TokenSampled
from stagescope.papers.focus_dilution.observables import TokenCurves

TINY = np.finfo(float).tiny


@dataclass(frozen=True)
class LastTokenLosses:
    """Loss of unseen sequences by the last token k of the context: `by_token` (frames, d) is that of the paper's sets S_k.

    `total` (frames,) is their mean with `shares` (d,), the probability of each set; `floor` (d,) is the entropy of the
    token that follows k, the least that each can reach.
    """

    total: np.ndarray
    by_token: np.ndarray
    shares: np.ndarray
    floor: np.ndarray


def last_token_losses(curves: TokenCurves, sequences: int | None = None, seed: int = 0) -> LastTokenLosses:
    """Losses of all frames by the last token of the context, on sequences that training has not seen [FD:sampled].

    Args:
        curves: a run, from `token_curves(run)`.
        sequences: how many fresh sequences are drawn; None takes the exact law of contexts, that is all of them.
        seed: of the draw. It never gives the sequences of the training.

    Examples:
        >>> from stagescope.papers.focus_dilution import last_token_losses, token_curves
        >>> losses = last_token_losses(token_curves(ss.run_study("focus-dilution", "ref", until=1.0)))
        >>> print(losses.by_token[0].round(3))
        [1.386 1.386 1.386 1.386]
    """
    contexts, transition = unseen_contexts(curves.law, sequences, seed), curves.law.process.transition
    shares = np.array([contexts.mass[contexts.query == k].sum() for k in range(len(transition))])
    logits = curves.params["W0"] @ curves.params["W1"]
    with np.errstate(divide="ignore"):
        logs = np.log(contexts.counts.T)
    rows = []
    for scores, table in zip(curves.scores, logits, strict=True):
        predicted = softmax(scores[contexts.query] + logs) @ table
        predicted -= predicted.max(axis=1, keepdims=True)
        predicted -= np.log(np.exp(predicted).sum(axis=1, keepdims=True))
        losses = -np.einsum("ks,sk->s", contexts.weights, predicted)
        rows.append(np.bincount(contexts.query, losses, minlength=len(transition)))
    sums = np.array(rows)
    with np.errstate(divide="ignore", invalid="ignore"):  # a sample may lack a token: its loss is nan
        return LastTokenLosses(sums.sum(axis=1), sums / shares, shares, -np.sum(transition * np.log(transition), axis=1))


def unseen_contexts(law: TokenLoss, sequences: int | None = None, seed: int = 0) -> Contexts:
    """Contexts with the probability of each next token: of a law's own length, exact or of fresh sequences."""
    chain = law.process
    if isinstance(law, TokenPopulation):
        pi = chain.stationary
        return Contexts.of(np.tile(pi, (len(pi), 1)), np.arange(len(pi)), pi[:, None] * chain.transition)
    if not isinstance(law, TokenFinite | TokenSampled):
        raise InputError(f"a {type(law).__name__} has no sequences to draw; take a run on the population, finite or sampled loss")
    if sequences is None:
        return TokenFinite(model=law.model, process=chain, length=law.length, start=law.start).contexts
    counts, last, target = chain.sample_counts(key(seed, "unseen sequences"), sequences, law.length, law.start)
    weights = np.zeros((sequences, chain.vocab))
    weights[np.arange(sequences), target] = 1 / sequences
    return Contexts.of(counts, last, weights)


def position_entropies(curves: TokenCurves, sequences: int | None = None, seed: int = 0) -> np.ndarray:
    """Entropy of attention over the positions of a context, by its last token (frames, d), in nats: log length where flat.

    The mean over the exact law of contexts, or over fresh `sequences`; a population run has no positions.
    """
    law = curves.law
    if not isinstance(law, TokenFinite | TokenSampled):
        raise InputError("contexts of this run are infinitely long and have no positions; `curves.entropy` is over token types")
    contexts = unseen_contexts(law, sequences, seed)
    counts, share = contexts.counts.T, contexts.mass
    total = np.bincount(contexts.query, share, minlength=len(contexts.counts))
    entropies = []
    for scores in curves.scores:
        raw = scores[contexts.query]
        raw = raw - np.max(np.where(counts > 0, raw, -np.inf), axis=1, keepdims=True)
        weights = counts * np.exp(np.minimum(raw, 0.0))  # of all positions with one token; absent tokens have none
        norm = weights.sum(axis=1)
        # H = -sum_j n_j a_j log a_j with a_j = exp(s_j)/Z, so H = log Z - sum_j n_j a_j s_j
        entropy = np.log(norm) - np.sum(weights * np.where(counts > 0, raw, 0.0), axis=1) / norm
        entropies.append(np.bincount(contexts.query, share * entropy, minlength=len(total)) / total)
    return np.array(entropies)


def perpendicular_norms(embedding: np.ndarray, token: int = 0) -> np.ndarray:
    """Norms of the rows of W0 (..., d, m) perpendicular to the row of one token (..., d); its own is zero."""
    axis = embedding[..., token, :]
    axis = axis / np.maximum(np.linalg.norm(axis, axis=-1, keepdims=True), TINY)
    along = np.einsum("...im,...m->...i", embedding, axis)
    return np.linalg.norm(embedding - along[..., None] * axis[..., None, :], axis=-1)


def neuron_cosines(weights: np.ndarray) -> np.ndarray:
    """C(i, j), the cosine of the input weights of neurons i and j: of columns of a matrix (inputs, neurons) of this package."""
    columns = weights / np.maximum(np.linalg.norm(weights, axis=0), TINY)
    return columns.T @ columns


def neuron_order(cosines: np.ndarray) -> np.ndarray:
    """Neurons so that those with similar input weights are neighbours: leaves of a tree by average distance 1 - C."""
    if len(cosines) < 3:
        return np.arange(len(cosines))
    distance = np.maximum(1.0 - cosines, 0.0)
    return leaves_list(linkage(distance[np.triu_indices(len(cosines), 1)], "average"))


def mean_cosine(weights: np.ndarray) -> float:
    """The mean of |C(i, j)| over pairs of different neurons: 1 where all lie on one line."""
    cosines = np.abs(neuron_cosines(weights))
    count = len(cosines)
    return float((cosines.sum() - np.trace(cosines)) / (count * (count - 1)))


def probe_attention(scores: np.ndarray, sequence: tuple[int, ...]) -> np.ndarray:
    """Attention of every position of a sequence of tokens over all its positions (..., n, n), from Phi (..., d, d)."""
    tokens = np.array(sequence)
    if not len(tokens):
        raise InputError("the probe sequence has no tokens; name at least one")
    if tokens.min() < 0 or tokens.max() >= scores.shape[-1]:
        raise InputError(f"the sequence {sequence} names tokens that are not among 0 to {scores.shape[-1] - 1}")
    return softmax(scores[..., tokens[:, None], tokens])


def principal_paths(embedding: np.ndarray, parts: int = 2) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """PCA of all rows of all snapshots of W0 (frames, d, m): paths of the rows (frames, d, parts), shares of variance (parts,),
    and the place of the zero vector (parts,)."""
    frames, tokens, width = embedding.shape
    rows = embedding.reshape(-1, width)
    centred = rows - rows.mean(axis=0)
    values, vectors = np.linalg.eigh(centred.T @ centred)
    axes = vectors[:, ::-1][:, :parts]
    axes = axes * np.where(axes.T @ (embedding[-1, 0] - rows.mean(axis=0)) < 0, -1.0, 1.0)  # token 0 ends on the positive side
    shares = values[::-1][:parts] / max(float(values.sum()), TINY)
    return (centred @ axes).reshape(frames, tokens, parts), shares, -rows.mean(axis=0) @ axes
