"""What can be said of training on a text before it begins: rates and separability from its counts"""

from dataclasses import dataclass

import numpy as np

from stagescope.objectives.token_family import plateau_amplitude
from stagescope.processes.text_corpus import TextCorpus
from stagescope.processes.text_kernel import window_pairs
from stagescope.theory.focus_dilution_forms import attention_rate, condensation_rate

STRETCHES = 100
"""Overlapping windows are not independent: standard errors are those of means over this many stretches of the text."""
GRID = 20001
"""Points at which the prediction of a condensed model is tabulated; linear interpolation errs by less than 1e-6 of it."""


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

        Undecided within two standard errors.
        """
        return 0 if abs(self.c_windows) < 2 * self.c_error else int(np.sign(self.c_windows))


def predict(corpus: TextCorpus, window: int) -> Predictions:
    """All predictions from one pass over the train part."""
    mean, error = window_attention_rate(corpus, window)
    attention, residual = separability(corpus, window)
    pi = corpus.stationary
    bigram = attention_rate(pi, corpus.transition, 1.0)
    return Predictions(window, condensation_rate(pi), bigram, mean, error, attention, residual)


def window_attention_rate(corpus: TextCorpus, window: int) -> tuple[float, float]:
    """c = E[ g_q Var_u(g) w . (y - p) ] over all windows, at scale one, and its standard error [FD:text-sign].

    u are a window's frequencies, q its last token, y the next one; g = a pi / |pi| and w = a lc / |lc| are W0 and W1 at the
    condensed point, p = softmax((u . g) w) what it predicts, lc = log pi less its mean. With infinitely long windows of the
    bigram chain this is `attention_rate`.
    """
    corpus.windows(window + 1)  # refuses a text that is too short
    pi, stream = corpus.stationary, corpus.train
    size = plateau_amplitude(pi)
    centred = np.log(pi) - np.mean(np.log(pi))
    g, w = size * pi / np.linalg.norm(pi), size * centred / np.linalg.norm(centred)
    values = g[stream]
    first, second = (_sliding_mean(power, window) for power in (values, values**2))
    pull = w[stream[window:]] - _predicted(w, first)
    each = values[window - 1 : -1] * (second - first**2) * pull
    means = np.array([part.mean() for part in np.array_split(each, min(STRETCHES, len(each)))])
    error = float(np.std(means, ddof=1) / np.sqrt(len(means))) if len(means) > 1 else float("inf")
    return float(each.mean()), error


def _sliding_mean(values: np.ndarray, window: int) -> np.ndarray:
    """Means of all windows that have a next token."""
    total = np.concatenate([[0.0], np.cumsum(values)])
    return (total[window:-1] - total[: -window - 1]) / window


def _predicted(w: np.ndarray, reading: np.ndarray) -> np.ndarray:
    """w . softmax(x w) at each reading x = u . g, from a table over their range."""
    grid = np.linspace(reading.min(), reading.max(), GRID)
    logits = grid[:, None] * w
    law = np.exp(logits - logits.max(axis=1, keepdims=True))
    return np.interp(reading, grid, (law @ w) / law.sum(axis=1))


def separability(corpus: TextCorpus, window: int) -> tuple[float, float]:
    """sigma_2 / sigma_1 of E[h (y - 1/d)^T], h = u, and h = u + e_q with a residual connection [FD:text-separability].

    Small: the first mode grows alone, and a plateau follows. Large: modes grow together, and there are no stages.
    """
    corpus.windows(window + 1)
    joint = window_pairs(corpus.train, window, corpus.vocab) / (window * (len(corpus.train) - window))
    attention = _excess(joint)
    last = corpus.pairs / corpus.pairs.sum()
    return _ratio(attention), _ratio(attention + _excess(last))


def _excess(joint: np.ndarray) -> np.ndarray:
    return joint - joint.sum(axis=1, keepdims=True) / len(joint)


def _ratio(matrix: np.ndarray) -> float:
    values = np.linalg.svd(matrix, compute_uv=False)
    return float(values[1] / values[0])
