"""The noise of a run from its own curve: how far other draws of the data would have moved the curve and its events.

A descent on batches leaves the smooth motion like a random walk. Its quadratic variation is the variance that is gathered up
to an event; divided by the slope there, it is the interval of the event in time. Quantities that grow exponentially are read
in their logarithm, where a deviation stays. Noise that comes back, such as that of attention on a plateau, is averaged out.
"""

from dataclasses import dataclass

import numpy as np

TWO_SIDED = 1.96
"""Standard deviations of the half-width of a 95 % interval."""

FLUTTER = 31
"""Records of the running median of `flutter`."""
MEDIAN_SQUARE = 0.4549
"""The median of the square of a standard normal number."""


@dataclass(frozen=True)
class Averaging:
    """Over which records a noisy curve is averaged."""

    width: float = 0.2  # of a window, in ln time: a rise or a fall of a noisy curve that is shorter is not resolved
    blocks: int = 8  # of a window: their means show noise that is correlated over less than an eighth of it
    quantile: float = 2.45  # half-width of a 95 % interval in standard errors: Student's t, blocks - 2 degrees of freedom


AVERAGING = Averaging()


def flutter(time: np.ndarray, curve: np.ndarray) -> np.ndarray:
    """The standard deviation of noise that differs from record to record, around each record: a running median.

    Each record is compared with the line through its neighbours, from which noise alone makes it differ.
    """
    if len(time) < 3:
        return np.zeros(len(time))
    share = (time[1:-1] - time[:-2]) / (time[2:] - time[:-2])
    deviation = curve[1:-1] - (1 - share) * curve[:-2] - share * curve[2:]
    square = np.pad(deviation**2 / (1 + (1 - share) ** 2 + share**2), 1, mode="edge")
    padded = np.pad(square, FLUTTER // 2, mode="edge")
    middle = np.median(np.lib.stride_tricks.sliding_window_view(padded, FLUTTER), axis=1)
    return np.sqrt(middle / MEDIAN_SQUARE)


def variation(time: np.ndarray, curve: np.ndarray, apart: float = 0.0) -> np.ndarray:
    """The variance of a random walk in the curve that is gathered up to each record.

    Slopes between records are compared with the line through their neighbours: what is smooth cancels to second order, and
    for a walk the expected square is known. `apart` is the least spacing of records to use: steps that remember earlier ones
    are correlated over about 1/(1 - momentum) steps.
    """
    places = _thinned(time, apart)
    t, length = time[places], np.diff(time[places])
    if len(length) < 3:
        return np.zeros(len(time))
    middle, slope = (t[1:] + t[:-1]) / 2, np.diff(curve[places]) / length
    share = (middle[1:-1] - middle[:-2]) / (middle[2:] - middle[:-2])
    bend = slope[1:-1] - (1 - share) * slope[:-2] - share * slope[2:]
    expected = 1 / length[1:-1] + (1 - share) ** 2 / length[:-2] + share**2 / length[2:]
    roughness = length[1:-1] * bend**2 / expected
    gathered = np.cumsum(np.concatenate([[0.0, roughness[0]], roughness, [roughness[-1]]]))
    return np.interp(time, t, gathered)


def delay(time: np.ndarray, curve: np.ndarray, level: float, when: float, *, since: float = 0.0, apart: float = 0.0) -> float:
    """The 95 % half-width in time of a crossing of `level` at `when`, from the noise gathered between `since` and it.

    The slope is the mean one from where the curve was furthest from the level after `since`: a curve that creeps towards its
    event and then jumps has gathered its delay while it crept.
    """
    inside = (time >= since) & (time <= when)
    if np.count_nonzero(inside) < 2:
        return 0.0
    gathered, t, y = variation(time, curve, apart)[inside], time[inside], curve[inside]
    far = int(np.argmax(np.abs(level - y)))
    slope = abs(level - y[far]) / max(when - t[far], np.finfo(float).tiny)
    return TWO_SIDED * float(np.sqrt(gathered[-1] - gathered[0])) / max(slope, np.finfo(float).tiny)


def averaged(time: np.ndarray, curve: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The local mean of a curve, and its 95 % half-width from the means of blocks of each window, less their trend.

    A window is as wide as a share of the time that has passed; near the ends of the run it is narrower, and its error larger.
    Where it has fewer than two records a block, nothing is known of its noise, and the error is infinite.
    """
    index = np.arange(len(time))
    before = index - np.searchsorted(time, time * np.exp(-AVERAGING.width / 2))
    after = np.searchsorted(time, time * np.exp(AVERAGING.width / 2), side="right") - 1 - index
    side = np.minimum(before, after)  # as many records on both sides: a window that hangs over an end would lean
    edges = (index - side)[:, None] + np.rint(
        np.arange(AVERAGING.blocks + 1) / AVERAGING.blocks * (2 * side + 1)[:, None]
    ).astype(int)
    wide = 2 * side + 1 >= 2 * AVERAGING.blocks
    mean, error = np.array(curve, dtype=float), np.full(len(curve), np.inf)
    if not wide.any():
        return mean, error
    place, blocks = (_block_means(np.asarray(values, dtype=float), edges[wide]) for values in (time, curve))
    place = place - place.mean(axis=1, keepdims=True)
    trend = np.sum(place * blocks, axis=1) / np.sum(place**2, axis=1)
    residual = blocks - blocks.mean(axis=1, keepdims=True) - trend[:, None] * place
    mean[wide] = _block_means(np.asarray(curve, dtype=float), edges[wide][:, [0, -1]])[:, 0]
    records = 2 * side[wide] + 1
    square = np.sum(residual**2, axis=1) / (AVERAGING.blocks - 2) / AVERAGING.blocks * records
    error[wide] = AVERAGING.quantile * np.sqrt(_pooled(time[wide], square) / records)
    return mean, error


def _pooled(time: np.ndarray, square: np.ndarray) -> np.ndarray:
    """The variance of a record, averaged over the windows that touch: those of one window are few and would be too small by
    chance somewhere."""
    first = np.searchsorted(time, time * np.exp(-AVERAGING.width))
    last = np.searchsorted(time, time * np.exp(AVERAGING.width), side="right")
    return _block_means(square, np.column_stack([first, last]))[:, 0]


def _block_means(values: np.ndarray, edges: np.ndarray) -> np.ndarray:
    """Means of the records between neighbouring edges, by row of `edges`."""
    total = np.concatenate([[0.0], np.cumsum(values - values[0])])
    return np.diff(total[edges], axis=1) / np.diff(edges, axis=1) + values[0]


def _thinned(time: np.ndarray, apart: float) -> np.ndarray:
    """Records that are at least `apart` from the one before."""
    if apart <= 0:
        return np.arange(len(time))
    places = [0]
    for i in range(1, len(time)):
        if time[i] - time[places[-1]] >= apart * (1 - 1e-9):
            places.append(i)
    return np.array(places)
