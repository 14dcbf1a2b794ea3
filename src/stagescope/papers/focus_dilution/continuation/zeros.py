"""Critical points of a small model (r, rq) of TokenAttention over a number that the loss depends on [FD:ladder].

Rows besides F are what the flow conserves and what is 0 at the origin: W0^T W0 - W1 W1^T - WQ WQ^T - WK WK^T,
WQ^T WQ - WK^T WK and W1 1. They pick the member of an orbit that runs from small starts approach.
"""

from collections.abc import Callable
from functools import lru_cache

import numpy as np

from stagescope.landscape.follower import Zeros
from stagescope.papers.focus_dilution.family import escape_matrices
from stagescope.papers.focus_dilution.loss import TokenLoss
from stagescope.papers.focus_dilution.saddle_path.small_flow import SmallModel

STEP = 1e-4
"""Of differences of fourth order: their error is about 1e-12 of what they differentiate."""
WEIGHTS = ((2, -1 / 12), (1, 8 / 12), (-1, -8 / 12), (-2, 1 / 12))


class TokenZeros(Zeros):
    """The zeros of the small model (r, rq) of `family(value)`; at rq = 0 it has no queries and keys."""

    def __init__(self, family: Callable[[float], TokenLoss], r: int, rq: int, loss: TokenLoss) -> None:
        self.r, self.rq = r, rq
        width, keys = loss.model.shapes["WQ"]
        self._pairs = np.triu_indices(r), np.triu_indices(rq)
        self.room = ("embedding",) * (r < width) + ("attention",) * (rq < keys)
        self.model = lru_cache(maxsize=16)(lambda value: SmallModel(family(value), r, rq))

    def _whole(self, vectors: np.ndarray) -> np.ndarray:
        none = np.zeros((*vectors.shape[:-1], 2 * self.r))
        return vectors if self.rq else np.concatenate([vectors, none], axis=-1)

    def vector(self, small: dict[str, np.ndarray], value: float) -> np.ndarray:
        whole = self.model(value).packed(small)
        return whole if self.rq else whole[: -2 * self.r]

    def params(self, vector: np.ndarray, value: float) -> dict[str, np.ndarray]:
        return self.model(value).unpacked(self._whole(vector))

    def rows(self, vector: np.ndarray, value: float) -> np.ndarray:
        velocity = self.model(value).velocity(self._whole(vector))[0][: len(vector)]
        return np.concatenate([velocity, self._conserved(vector, value)])

    def _conserved(self, vectors: np.ndarray, value: float) -> np.ndarray:
        """Of one vector, or of several along the first axis."""
        w0, w1, wq, wk = (self.params(vectors, value)[name] for name in ("W0", "W1", "WQ", "WK"))
        widths = _square(w0) - _square(w1.swapaxes(-1, -2)) - _square(wq.swapaxes(-1, -2)) - _square(wk.swapaxes(-1, -2))
        keys = _square(wq) - _square(wk)
        return np.concatenate([widths[..., *self._pairs[0]], keys[..., *self._pairs[1]], w1.sum(axis=-1)], axis=-1)

    def slopes(self, vector: np.ndarray, value: float) -> np.ndarray:
        """Differences of F; the other rows are of second degree, and their differences over any step are exact."""
        model, whole, units = self.model(value), self._whole(vector), np.eye(len(vector))
        shifts = [STEP * self._whole(unit) for unit in units]
        columns = [sum(weight * model.velocity(whole + times * shift)[0] for times, weight in WEIGHTS) for shift in shifts]
        others = (self._conserved(vector + units, value) - self._conserved(vector - units, value)) / 2
        return np.hstack([np.array(columns)[:, : len(vector)] / STEP, others]).T

    def loss(self, vector: np.ndarray, value: float) -> float:
        return self.model(value).velocity(self._whole(vector))[1]

    def openings(self, vector: np.ndarray, value: float) -> dict[str, np.ndarray]:
        found = escape_matrices(self.model(value).loss, self.params(vector, value))
        return {name: found[name] for name in self.room}

    def measures(self, vector: np.ndarray, value: float) -> dict[str, tuple[float, ...]]:
        """The size of the logits after each token as a share of all: the same for all members of a family of equal loss."""
        loss, small = self.model(value).loss, self.params(vector, value)
        logits = loss.model.attention(small, loss.process.stationary) @ small["W0"] @ small["W1"]
        return {"logits": tuple((np.linalg.norm(logits, axis=1) / np.linalg.norm(logits)).tolist())}


def _square(matrices: np.ndarray) -> np.ndarray:
    return matrices.swapaxes(-1, -2) @ matrices
