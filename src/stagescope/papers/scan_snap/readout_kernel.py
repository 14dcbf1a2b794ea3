"""A Numba kernel of what class attention reads from the decoder, entry by entry of the supports."""

import numpy as np

from stagescope.kernels import njit


@njit(cache=True)
def read_decoder(y, start, key, f, target, rival, multiplicity, directions, pulls):
    """directions: y_l of the class's own output minus its mean over the rivals; pulls: g = Y (e - alpha), on the tokens.

    Returns, of the probability that a class gives wrongly, the share on targets of other classes, mean over classes: `rival`
    is 1 for the outputs that count, and 2 if they are targets.
    """
    odds, shares = np.empty(y.shape[1]), 0.0
    for n in range(target.size):
        odds[:] = 0.0
        for e in range(start[n], start[n + 1]):
            for j in range(odds.size):
                odds[j] += f[e] * y[key[e], j]
        top, total = odds.max(), 0.0
        for j in range(odds.size):
            odds[j] = np.exp(odds[j] - top) * multiplicity[j]
            total += odds[j]
        wrong, elsewhere, rivals = 0.0, 0.0, 0
        for j in range(odds.size):
            odds[j] /= total
            if j != target[n]:
                wrong += odds[j]
                rivals += rival[j] > 0
                elsewhere += odds[j] if rival[j] == 2 else 0.0
        shares += elsewhere / max(wrong, 2.2250738585072014e-308)  # the least normal number: it can underflow
        odds[target[n]] -= 1.0
        for e in range(start[n], start[n + 1]):
            pull, others = 0.0, 0.0
            for j in range(odds.size):
                pull -= odds[j] * y[key[e], j]
                if rival[j] > 0 and j != target[n]:
                    others += y[key[e], j]
            pulls[e] = pull
            directions[e] = y[key[e], target[n]] - others / rivals if rivals else np.nan
    return shares / target.size
