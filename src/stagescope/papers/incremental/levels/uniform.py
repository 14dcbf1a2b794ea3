"""The best loss of attention that has not moved yet: one matrix on the sum of all tokens before a target [ISA:levels]."""

import numpy as np
from scipy.optimize import minimize

from stagescope.fields.softmax import log_sum_exp, softmax
from stagescope.keys import key
from stagescope.papers.incremental.process import LaggedChain

SEQUENCES = 1500
"""Sequences of the sample: the loss above Bayes is then known to about 2 %."""


def uniform_excess(process: LaggedChain, targets: int, pad: int) -> float:
    """Least cross-entropy above Bayes of softmax(W sum_{s < t} e_{x_s}) for the first target.

    Values learn this while attention is still uniform. Where it is below level 1 the first plateau is not that of class 1.
    """
    context = process.reach + pad
    tokens = process.sample(key(0, "uniform attention"), SEQUENCES, targets, pad)[:, : context + 1]
    true = process.predictive(tokens, context)[:, 0]
    seen = np.zeros((len(tokens), process.vocab))
    np.add.at(seen, (np.arange(len(tokens))[:, None], tokens[:, :context]), 1.0)
    wanted = true.T @ seen / len(seen)

    def value(flat: np.ndarray) -> tuple[float, np.ndarray]:
        matrix = flat.reshape(process.vocab, process.vocab)
        scores = seen @ matrix.T
        grad = softmax(scores).T @ seen / len(seen) - wanted
        return float(np.mean(log_sum_exp(scores)) - np.sum(matrix * wanted)), grad.ravel()

    found = minimize(value, np.zeros(process.vocab**2), jac=True, method="L-BFGS-B", options={"maxiter": 300})
    entropy = -float(np.mean(np.sum(true * np.log(np.maximum(true, 1e-300)), axis=1)))
    return float(found.fun) - entropy
