"""A small model (r, rq) of TokenAttention and what lies outside it, as a saddle path carries them.

With E = [W0; W1^T; WQ^T; WK^T] stacked on the width axis, the flow is E' = N(E) E with N = [[0, B], [B^T, 0]], an identity;
so is A' = [[0, F], [F^T, 0]] A for A = [WQ; WK]. N depends on what lies outside a small model to second order only. So this
part obeys two linear laws along the small model's path:

embedding stack   all rows of E, columns outside S; B = [-GM, -GP K, -GP^T Q] with all of Q and K
attention stack   all rows of A, columns outside U; F = -W0^T GP W0 with all of W0

What of WQ and WK lies outside both S and U is in both stacks. It is as small as the start, so products of two patterns
move it, and each stack reads the other in its law.
"""

from dataclasses import dataclass, replace

import numpy as np

from stagescope.landscape.graded import Graded
from stagescope.papers.focus_dilution.counts import TokenCounts
from stagescope.papers.focus_dilution.loss import BLOCKS, TokenLoss
from stagescope.papers.focus_dilution.saddle_path.laws_kernel import laws, population_slopes
from stagescope.params import Params

Laws = tuple[np.ndarray, np.ndarray]
"""B (d, d + 2 mk) and F (m, m)."""


@dataclass(frozen=True)
class State:
    """`small` are the blocks of the small model, `s` (r, m) and `u` (rq, mk) the orthonormal rows that embed it."""

    small: Params
    s: np.ndarray
    u: np.ndarray
    embedding: Graded
    attention: Graded

    @classmethod
    def at(cls, start: Params) -> "State":
        """A start near the origin: the small model is (0, 0), and everything is outside it."""
        (d, m), keys = start["W0"].shape, start["WQ"].shape[1]
        small = {"W0": np.zeros((d, 0)), "W1": np.zeros((0, d)), "WQ": np.zeros((0, 0)), "WK": np.zeros((0, 0))}
        rows = np.vstack([start["W0"], start["W1"].T, start["WQ"].T, start["WK"].T])
        scores = Graded.of(np.vstack([start["WQ"], start["WK"]]))
        return cls(small, np.zeros((0, m)), np.zeros((0, keys)), Graded.of(rows), scores)

    @property
    def r(self) -> int:
        return len(self.s)

    @property
    def rq(self) -> int:
        return len(self.u)

    @property
    def label(self) -> str:
        return f"({self.r},{self.rq})"

    def laws(self, loss: TokenLoss, small: Params) -> Laws:
        """The laws beside a point of the small model, with the stacks as they are here."""
        w0, w1, wq, wk = (np.ascontiguousarray(small[name]) for name in BLOCKS)
        if isinstance(loss, TokenCounts):
            found = loss.slopes(small)
        else:
            found = population_slopes(loss.process.stationary, loss.process.transition, loss.model.scale, w0, w1, wq, wk)
        return laws(found, (w0, wq, wk), (self.s, self.u), self.embedding.arrays, self.attention.arrays)

    def opened(self, block: str) -> "State":
        """The state after the largest pattern of a stack has joined the small model."""
        return self._embedding_opened() if block == "embedding" else self._attention_opened()

    def _embedding_opened(self) -> "State":
        x, column, rest = self.embedding.split()
        d, keys, old = len(self.small["W0"]), self.u.shape[1], self.small
        w0, w1, wq, wk = np.split(column, [d, 2 * d, 2 * d + keys])
        new = {"W1": w1, "WQ": self.u @ wq, "WK": self.u @ wk}
        small = {"W0": np.column_stack([old["W0"], w0]), **{name: np.vstack([old[name], row]) for name, row in new.items()}}
        return replace(self, small=small, s=np.vstack([self.s, x]), embedding=rest)

    def _attention_opened(self) -> "State":
        y, column, rest = self.attention.split()
        m, old = self.s.shape[1], self.small
        new = {"WQ": self.s @ column[:m], "WK": self.s @ column[m:]}
        small = {**old, **{name: np.column_stack([old[name], part]) for name, part in new.items()}}
        return replace(self, small=small, u=np.vstack([self.u, y]), attention=rest)
