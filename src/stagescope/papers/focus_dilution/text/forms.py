"""Predictions for training on a text from its counts alone: rates and separability."""

from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from stagescope.core.errors import InputError
from stagescope.core.params import key
from stagescope.corpora.corpus import LARGE, TextCorpus
from stagescope.corpora.kernel import window_pairs
from stagescope.flow.softmax import softmax
from stagescope.papers.focus_dilution.family import condensation_rate, opening_rate, plateau_amplitude
from stagescope.papers.focus_dilution.limits import LIMITS


@dataclass(frozen=True)
class Predictions:
    """Predictions for windows of `window` tokens, attention at scale one: multiply c by the model's scale.

    `mu0` is the first growth rate, `c_bigram` and `c_windows` (with its standard error) the attention rate at the condensed
    point on the bigram chain and on real windows, `separability` = sigma_2 / sigma_1 of E[h (y - 1/d)^T] for h the window's
    frequencies, and with the last token added to them by a residual connection.
    """

    window: int
    mu0: float
    c_bigram: float
    c_windows: float
    c_error: float
    separability: float
    separability_residual: float

    @property
    def sign(self) -> int:
        """Sign of attention along pi pi^T when it opens: +1 focuses on the frequent token, -1 moves away, 0 undecided.

        Undecided within three standard errors.
        """
        return 0 if abs(self.c_windows) < LIMITS.noise * self.c_error else int(np.sign(self.c_windows))


def predict(corpus: TextCorpus, window: int) -> Predictions:
    """All predictions from one pass over the train part."""
    mean, error = window_attention_rate(corpus, window)
    attention, residual = separability(corpus, window)
    pi = corpus.stationary
    bigram = opening_rate(pi, corpus.sparse_pairs @ np.log(pi) / corpus.counts - pi @ np.log(pi), 1.0)
    return Predictions(window, condensation_rate(pi), bigram, mean, error, attention, residual)


def window_attention_rate(corpus: TextCorpus, window: int) -> tuple[float, float]:
    """c = E[ g_q Var_u(g) w . (y - p) ] over all windows, at scale one, and its standard error [FD:text-sign].

    u are a window's frequencies, q its last token, y the next one; g = a pi / |pi| and w = a lc / |lc| are W0 and W1 at the
    condensed point, p = softmax((u . g) w) what it predicts, lc = log pi less its mean. With infinitely long windows of the
    bigram chain this is `attention_rate`.
    """
    _refuse_short(corpus, window)
    pi, stream = corpus.stationary, corpus.train
    size = plateau_amplitude(pi)
    centred = np.log(pi) - np.mean(np.log(pi))
    g, w = size * pi / np.linalg.norm(pi), size * centred / np.linalg.norm(centred)
    grid = np.linspace(g.min(), g.max(), 20001)  # linear interpolation errs by less than 1e-6
    # w . softmax(x w) at each reading x = u . g, with at most about 2^22 logits in memory.
    readings = np.array_split(grid, len(grid) * len(w) // 2**22 + 1)
    table, count = np.concatenate([softmax(x[:, None] * w) @ w for x in readings]), len(stream) - window
    cuts = np.linspace(0, count, min(LIMITS.stretches, count) + 1).round().astype(int)

    def total(start: int, stop: int) -> float:
        """The sum over windows that begin from `start` on, before `stop`; only one stretch of the text is in memory."""
        part = stream[start : stop + window]
        values = g[part]
        first, second = (_sliding_mean(power, window) for power in (values, values**2))
        pull = w[part[window:]] - np.interp(first, grid, table)
        return float(np.sum(values[window - 1 : -1] * (second - first**2) * pull))

    sums = np.array([total(start, stop) for start, stop in pairwise(cuts.tolist())])
    means = sums / np.diff(cuts)
    error = float(np.std(means, ddof=1) / np.sqrt(len(means))) if len(means) > 1 else float("inf")
    return float(sums.sum() / count), error


def _refuse_short(corpus: TextCorpus, window: int) -> None:
    if window < 1:
        raise InputError(f"--window {window} has no token to look at; take 1 or more")
    corpus.windows(window + 1)  # refuses a text that is too short


def _sliding_mean(values: np.ndarray, window: int) -> np.ndarray:
    """Means of all windows that have a next token."""
    total = np.concatenate([[0.0], np.cumsum(values)])
    return (total[window:-1] - total[: -window - 1]) / window


def separability(corpus: TextCorpus, window: int) -> tuple[float, float]:
    """sigma_2 / sigma_1 of E[h (y - 1/d)^T], h = u, and h = u + e_q with a residual connection [FD:text-separability].

    Small: the first mode grows alone, and a plateau follows. Large: modes grow together, and there are no stages.
    """
    _refuse_short(corpus, window)
    if corpus.vocab >= LARGE:
        return _large_ratio(corpus, window, 0.0), _large_ratio(corpus, window, 1.0)
    last = corpus.pairs / corpus.pairs.sum()
    joint = window_pairs(corpus.train, window, corpus.vocab) / (window * (len(corpus.train) - window))
    attention = _excess(joint)
    return _ratio(attention), _ratio(attention + _excess(last))


def _excess(joint: np.ndarray) -> np.ndarray:
    return joint - joint.sum(axis=1, keepdims=True) / len(joint)


def _ratio(matrix: np.ndarray) -> float:
    """sigma_2 / sigma_1."""
    values = np.linalg.svd(matrix, compute_uv=False)
    return float(values[1] / values[0])


def _large_ratio(corpus: TextCorpus, window: int, residual: float) -> float:
    """The same of E[h (y - 1/d)^T], h = u + residual e_q, which is only multiplied with vectors: sums slide along the text."""
    from scipy.sparse.linalg import LinearOperator, svds

    stream, size = corpus.train, corpus.vocab
    last, count = corpus.sparse_pairs / len(stream), len(stream) - window
    covered = np.minimum(np.arange(len(stream)), count - 1)

    def times(x: np.ndarray) -> np.ndarray:
        y = x.ravel() - x.mean()
        sums = np.concatenate([[0.0], np.cumsum(y[stream[window:]])])
        position_sums = sums[covered + 1] - sums[np.maximum(np.arange(len(stream)) - window + 1, 0)]
        position_sums[len(stream) - 1] = 0.0  # no window has the last token: there is none after it
        return np.bincount(stream, position_sums, minlength=size) / (window * count) + residual * (last @ y)

    def times_turned(x: np.ndarray) -> np.ndarray:
        means = np.bincount(stream[window:], _sliding_mean(x.ravel()[stream], window), minlength=size) / count
        means += residual * (last.T @ x.ravel())
        return means - means.mean()

    operator: Any = LinearOperator
    product = operator((size, size), matvec=times, rmatvec=times_turned, dtype=float)
    start = key(0, "separability").standard_normal(size)
    largest: Any = svds(product, k=2, v0=start, return_singular_vectors=False)
    values = np.sort(largest)
    return float(values[0] / values[1])
