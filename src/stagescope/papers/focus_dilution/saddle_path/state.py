"""A small model (r, rq) of TokenAttention and what lies outside it, as a saddle path carries them.

With E = [W0; W1^T; WQ^T; WK^T] stacked on the width axis, the flow is E' = N(E) E with N = [[0, B], [B^T, 0]], an identity.
So what lies outside a small model obeys a linear law along the small model's path, up to second order in its own size:

embedding stack   rows W0, W1^T and WQ^T, WK^T inside U; columns outside S; N from B
attention stack   rows WQ, WK inside S; columns outside U; N from F
far block         WQ, WK outside both: it stays as it started, and its rows enter the other stack when a direction opens
"""

from dataclasses import dataclass, replace

import numpy as np

from stagescope.landscape.graded import Graded
from stagescope.params import Params


@dataclass(frozen=True)
class State:
    """`small` are the blocks of the small model, `s` (r, m) and `u` (rq, mk) the orthonormal rows that embed it."""

    small: dict[str, np.ndarray]
    s: np.ndarray
    u: np.ndarray
    embedding: Graded
    attention: Graded
    start: Params

    @classmethod
    def at(cls, start: Params) -> "State":
        """A start near the origin: the small model is (0, 0), and everything is outside it."""
        (d, m), keys = start["W0"].shape, start["WQ"].shape[1]
        empty = {"W0": np.zeros((d, 0)), "W1": np.zeros((0, d)), "WQ": np.zeros((0, 0)), "WK": np.zeros((0, 0))}
        attention = Graded(np.zeros(0), np.zeros((0, 0)), np.zeros((0, keys)))
        return cls(empty, np.zeros((0, m)), np.zeros((0, keys)), Graded.of(np.vstack([start["W0"], start["W1"].T])), attention, start)

    @property
    def r(self) -> int:
        return len(self.s)

    @property
    def rq(self) -> int:
        return len(self.u)

    @property
    def label(self) -> str:
        return f"({self.r},{self.rq})"

    def opened(self, block: str) -> "State":
        """The state after the largest pattern of a stack has joined the small model."""
        return self._embedding_opened() if block == "embedding" else self._attention_opened()

    def _embedding_opened(self) -> "State":
        x, column, rest = self.embedding.split()
        d, r, rq, old = len(self.small["W0"]), self.r, self.rq, self.small
        parts = np.split(column, [d, 2 * d, 2 * d + rq])
        small = {"W0": np.column_stack([old["W0"], parts[0]])}
        small |= {name: np.vstack([old[name], part]) for name, part in zip(("W1", "WQ", "WK"), parts[1:], strict=True)}
        rows = [_scaled(_without(x @ self.start[name], self.u)) for name in ("WQ", "WK")]
        attention = self.attention.with_rows([r, 2 * r], rows)
        return replace(self, small=small, s=np.vstack([self.s, x]), embedding=rest, attention=attention)

    def _attention_opened(self) -> "State":
        y, column, rest = self.attention.split()
        d, r, rq, old = len(self.small["W0"]), self.r, self.rq, self.small
        small = old | {name: np.column_stack([old[name], column[i * r : (i + 1) * r]]) for i, name in enumerate(("WQ", "WK"))}
        rows = [_scaled(_without(self.start[name] @ y, self.s)) for name in ("WQ", "WK")]
        embedding = self.embedding.with_rows([2 * d + rq, 2 * d + 2 * rq], rows)
        return replace(self, small=small, u=np.vstack([self.u, y]), attention=rest, embedding=embedding)


def _without(row: np.ndarray, basis: np.ndarray) -> np.ndarray:
    for _ in range(2):
        row = row - (basis @ row) @ basis
    return row


def _scaled(row: np.ndarray) -> tuple[float, np.ndarray]:
    """A row as (log of its size, unit row)."""
    size = float(np.max(np.abs(row), initial=0.0))
    return (float(np.log(size)), row / size) if size > 0 else (0.0, row)
