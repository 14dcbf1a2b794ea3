"""The exact law of a finite context of a chain: (token counts, last token), by a dynamic programme over counts [FD:finite].

Counts other than the last token's own run over the compositions of s - 1 into d parts. They are listed by their tails
r_k = n_k + ... + n_d, smallest r_2 first, then r_3, ...: the place of a composition depends on its tails alone, so those of
every shorter context are the first rows of the list, and the place after one more token is the own place plus binomials.
"""

import math
from dataclasses import dataclass

import numpy as np

from stagescope.errors import InputError
from stagescope.processes.markov_chain import Chain, Start

MOST_NUMBERS = 2**24
"""Largest states x tokens: two such arrays of float64 are kept, .27 GB."""


@dataclass(frozen=True)
class ContextLaw:
    """p(n, i): `others` (C, d) are the counts of the tokens before the last one, `probability` (C, d) is that of
    counts others + e_i with last token i."""

    others: np.ndarray
    probability: np.ndarray


def state_count(vocab: int, length: int) -> int:
    """d x C(s + d - 2, d - 1): the pairs (n, i) with sum n = s and n_i >= 1."""
    return vocab * math.comb(length + vocab - 2, vocab - 1)


def context_law(chain: Chain, length: int, start: Start = "stationary") -> ContextLaw:
    """p_1(0, i) = start_i; p_{t+1}(m, j) = sum_i p_t(m - e_i, i) P_ij, where m counts the tokens before the last [FD:finite]."""
    check_size(chain.vocab, length)
    tails = _tails(length - 1, chain.vocab)
    after = _places(tails, length)
    p = chain.initial(start)[None, :]
    for t in range(1, length):
        longer = np.zeros((math.comb(t + chain.vocab - 1, chain.vocab - 1), chain.vocab))
        for i, row in enumerate(chain.transition):
            longer[after[: len(p), i]] += p[:, i, None] * row
        p = longer
    ends = np.hstack([np.full((len(tails), 1), length - 1), tails, np.zeros((len(tails), 1), dtype=int)])
    return ContextLaw(ends[:, :-1] - ends[:, 1:], p)


def check_size(vocab: int, length: int) -> None:
    """Refuse a law that would not fit in memory or take too long, before anything is made."""
    if _fits(vocab, length):
        return
    longest = 0
    while _fits(vocab, longest + 1):
        longest += 1 + longest // 64
    while longest and not _fits(vocab, longest):
        longest -= 1
    size = math.log10(state_count(vocab, length))
    states = f"{10**size:.3g}" if size < 15 else f"1e{size:.0f}"
    limit = f"at most {MOST_NUMBERS // vocab:.3g} states" + (f" and length {longest}" if longest else "")
    remedy = "use a shorter length" if longest else "use fewer tokens"
    has = f"the exact law of contexts of length {length} has {states} states"
    raise InputError(f"{has}, but {limit} are summed for {vocab} tokens; {remedy} or the sampled form")


def _fits(vocab: int, length: int) -> bool:
    numbers = state_count(vocab, length) * vocab if length else 0
    return numbers <= MOST_NUMBERS and numbers // vocab * length <= 8e8  # the programme takes about ten seconds


def _tails(total: int, parts: int) -> np.ndarray:
    """(r_2, ..., r_d) with total >= r_2 >= ... >= r_d >= 0, in lexicographic order."""
    tails = np.arange(total + 1)[:, None]
    for _ in range(parts - 2):
        many = tails[:, -1] + 1
        begin = np.repeat(np.cumsum(many) - many, many)
        tails = np.hstack([np.repeat(tails, many, axis=0), (np.arange(many.sum()) - begin)[:, None]])
    return tails


def _places(tails: np.ndarray, length: int) -> np.ndarray:
    """Where each composition goes when token i joins it (C, d).

    A composition is preceded by sum_k C(r_k + d - k, d - k + 1) others; token i raises r_2 ... r_i by one, and each of
    these terms by C(r_k + d - k, d - k).
    """
    vocab = tails.shape[1] + 1
    steps = [np.array([math.comb(r + vocab - k, vocab - k) for r in range(length)]) for k in range(2, vocab + 1)]
    raised = np.stack([np.zeros(len(tails), dtype=int), *(step[tails[:, k]] for k, step in enumerate(steps))], axis=1)
    return np.arange(len(tails))[:, None] + np.cumsum(raised, axis=1)
