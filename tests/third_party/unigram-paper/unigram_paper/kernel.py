"""The velocity of the logits as a Numba kernel. This module never imports JAX."""

import numpy as np
from numba import njit


@njit(cache=True)
def descend(b, out, pi, rate):
    """out = rate (pi - softmax(b)); returns the loss."""
    top = b.max()
    total = 0.0
    for i in range(b.size):
        out[i] = np.exp(b[i] - top)
        total += out[i]
    loss = top + np.log(total)
    for i in range(b.size):
        loss -= pi[i] * b[i]
        out[i] = rate * (pi[i] - out[i] / total)
    return loss
