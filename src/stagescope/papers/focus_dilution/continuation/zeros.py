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
        self.room = ("embedding",) * (r < width) + ("attention",) * (rq < keys)
        self.model = lru_cache(maxsize=16)(lambda value: SmallModel(family(value), r, rq))

    def _whole(self, vector: np.ndarray) -> np.ndarray:
        return vector if self.rq else np.append(vector, np.zeros(2 * self.r))

    def vector(self, small: dict[str, np.ndarray], value: float) -> np.ndarray:
        whole = self.model(value).packed(small)
        return whole if self.rq else whole[: -2 * self.r]

    def params(self, vector: np.ndarray, value: float) -> dict[str, np.ndarray]:
        return self.model(value).unpacked(self._whole(vector))

    def rows(self, vector: np.ndarray, value: float) -> np.ndarray:
        velocity = self.model(value).velocity(self._whole(vector))[0][: len(vector)]
        return np.concatenate([velocity, self._conserved(self.params(vector, value))])

    def _conserved(self, small: dict[str, np.ndarray]) -> np.ndarray:
        w0, w1, wq, wk = (small[name] for name in ("W0", "W1", "WQ", "WK"))
        widths = w0.T @ w0 - w1 @ w1.T - wq @ wq.T - wk @ wk.T
        keys = wq.T @ wq - wk.T @ wk
        return np.concatenate([widths[np.triu_indices(self.r)], keys[np.triu_indices(self.rq)], w1.sum(axis=1)])

    def slopes(self, vector: np.ndarray, value: float) -> np.ndarray:
        def column(unit: np.ndarray) -> np.ndarray:
            return np.sum([weight * self.rows(vector + times * unit, value) for times, weight in WEIGHTS], axis=0) / STEP

        return np.array([column(STEP * unit) for unit in np.eye(len(vector))]).T

    def loss(self, vector: np.ndarray, value: float) -> float:
        return self.model(value).velocity(self._whole(vector))[1]

    def openings(self, vector: np.ndarray, value: float) -> dict[str, np.ndarray]:
        found = escape_matrices(self.model(value).loss, self.params(vector, value))
        return {name: found[name] for name in self.room}

    def measures(self, vector: np.ndarray, value: float) -> dict[str, float]:
        """|Phi|, the largest singular value of the attention scores."""
        scores = self.model(value).loss.model.scores(self.params(vector, value))
        return {"scores": float(np.linalg.norm(scores, 2))}
