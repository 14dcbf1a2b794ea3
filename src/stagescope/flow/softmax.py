"""softmax and its logarithm over the last axis, in NumPy; scores are shifted by the largest, so that nothing overflows."""

import numpy as np


def softmax(scores: np.ndarray) -> np.ndarray:
    """exp(z) / sum exp(z)."""
    weights = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return weights / weights.sum(axis=-1, keepdims=True)


def log_softmax(scores: np.ndarray) -> np.ndarray:
    """z - log sum exp(z)."""
    return scores - log_sum_exp(scores)[..., None]


def log_sum_exp(scores: np.ndarray) -> np.ndarray:
    """log sum exp(z), without the last axis."""
    top = scores.max(axis=-1)
    return top + np.log(np.exp(scores - top[..., None]).sum(axis=-1))
