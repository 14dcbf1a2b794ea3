"""What a focus-dilution run shows: singular values, attention rows, entropies, embedding norms.

Attention of all frames is (frames, d, d), too much for many tokens. What is read off it there, is read frame by frame.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from stagescope.flow.softmax import softmax
from stagescope.papers.focus_dilution.family import attention_rate, plateau_amplitude
from stagescope.papers.focus_dilution.limits import LIMITS
from stagescope.papers.focus_dilution.loss import MOST_BY_LOOPS, TokenLoss
from stagescope.readings.rebuild import rebuilt
from stagescope.runs.run import Run


def by_event(embedding_values: np.ndarray, score_values: np.ndarray) -> dict[str, np.ndarray]:
    """The singular values of W0 and of Phi (frames,) by the name of their event: E1, E2, ..., Q1, Q2, ..."""
    both = (("E", embedding_values), ("Q", score_values))
    return {f"{letter}{k + 1}": column for letter, values in both for k, column in enumerate(values.T)}


def opening_levels(start: np.ndarray, size: float = np.inf) -> np.ndarray:
    """The level above which each singular value (k,) is open, from those at the start.

    It is .1, or three times the largest value at the start where that is more: what was there is no opening. A value that
    starts above a third of `size`, the one it goes to, cannot grow threefold; it keeps .1, and is open at the start.
    """
    grows = LIMITS.start_multiple * start < size
    return np.where(grows, max(LIMITS.level, LIMITS.start_multiple * float(np.max(start[grows], initial=0.0))), LIMITS.level)


def triangle(matrices: np.ndarray) -> np.ndarray:
    """The triangular factor of tall matrices (..., d, m): small, with the same singular values."""
    return np.asarray(np.linalg.qr(matrices, mode="r"))


def spectra(matrices: np.ndarray) -> np.ndarray:
    """Of matrices (frames, n, m), largest first; nan where one has numbers that are not finite."""
    good = np.asarray(np.isfinite(matrices).all(axis=(1, 2)))[:, None]
    values = np.linalg.svd(np.where(good[..., None], matrices, 0.0), compute_uv=False)
    return np.where(good, values, np.nan)


@dataclass(frozen=True)
class TokenCurves:
    """A run of TokenAttention on a chain, frame by frame; rows are query types, `pi` is the chain's stationary law."""

    time: np.ndarray
    params: dict[str, np.ndarray]
    law: TokenLoss

    @property
    def pi(self) -> np.ndarray:
        return self.law.process.stationary

    @property
    def frequent(self) -> int:
        """The most frequent token."""
        return int(np.argmax(self.pi))

    @cached_property
    def rate(self) -> float:
        """c, the rate of attention at (1,0), with its sign."""
        return attention_rate(self.pi, self.law.process.transition, self.law.model.scale)

    @property
    def sign(self) -> float:
        """That of c: 1 where attention first focuses on the most frequent token, -1 where it moves away."""
        return float(np.sign(self.rate))

    @cached_property
    def scores(self) -> np.ndarray:
        """Phi (frames, d, d)."""
        return self.law.model.scores(self.params)

    @cached_property
    def attention(self) -> np.ndarray:
        """A (frames, d, d): attention of an infinitely long context."""
        return self.law.model.attention(self.params, self.pi)

    @cached_property
    def _rows(self) -> tuple[np.ndarray, np.ndarray] | None:
        """Of rows of attention, without the matrices: what `attention_rows` gives of each frame, and the largest changes from
        frame to frame. None for few tokens."""
        if len(self.pi) <= MOST_BY_LOOPS:
            return None
        from stagescope.papers.focus_dilution.blocked_kernel import attention_rows

        blocks, count = [self.params[name] for name in ("W0", "WQ", "WK")], len(self.pi)
        rows, changes, before = np.empty((len(blocks[0]), 4, count)), [], np.zeros((count, count))
        with np.errstate(over="ignore", invalid="ignore"):  # rows that are not finite are nan
            for out, w0, wq, wk in zip(rows, *blocks, strict=True):
                key = np.ascontiguousarray(self.law.model.scale * (w0 @ wk).T)
                changes.append(attention_rows(w0 @ wq, key, self.pi, self.frequent, before, out))
        finite = np.all(np.isfinite(rows[:, 0]), axis=1)
        return rows, np.where(finite[1:] & finite[:-1], changes[1:], np.nan)

    @property
    def on_frequent(self) -> np.ndarray:
        """Attention of each query type on the most frequent token (frames, d)."""
        return self.attention[:, :, self.frequent] if self._rows is None else self._rows[0][:, 0]

    @property
    def on_self(self) -> np.ndarray:
        """Attention of each query type on its own type (frames, d)."""
        return np.diagonal(self.attention, axis1=1, axis2=2) if self._rows is None else self._rows[0][:, 1]

    def on_token(self, token: int) -> np.ndarray | None:
        """Attention of each query type on a token (frames, d); None where there are too many tokens to keep it for all."""
        return self.on_frequent if token == self.frequent else self.attention[:, :, token] if self._rows is None else None

    @cached_property
    def embedding_values(self) -> np.ndarray:
        """Singular values of W0 (frames, .)."""
        return spectra(self.params["W0"])

    @cached_property
    def levels(self) -> dict[str, float]:
        """The level of each opening E1, E2, ..., Q1, Q2, ... by name [FD:stages].

        Embeddings go to the plateau amplitude; scores of 1 change the odds of attention by a factor e.
        """
        sizes = plateau_amplitude(self.pi) if np.ptp(self.pi) > LIMITS.equal else np.inf, 1.0
        both = zip((self.embedding_values, self.score_values), sizes, strict=True)
        embedding, scores = (opening_levels(np.nan_to_num(values[0]), size)[None] for values, size in both)
        return {name: float(level[0]) for name, level in by_event(embedding, scores).items()}

    @cached_property
    def norms(self) -> np.ndarray:
        """Row norms of W0 (frames, d)."""
        return np.linalg.norm(self.params["W0"], axis=2)

    @cached_property
    def score_values(self) -> np.ndarray:
        """Singular values of Phi (frames, .), as many as its factors allow; of two small factors where there are many tokens."""
        w0, scale = self.params["W0"], self.law.model.scale
        q, k = w0 @ self.params["WQ"], w0 @ self.params["WK"]
        rank = min(w0.shape[1], *q.shape[1:])
        if q.shape[1] <= q.shape[2]:
            return spectra(self.scores)[:, :rank]
        return scale * spectra(triangle(q) @ np.swapaxes(triangle(k), 1, 2))[:, :rank]

    @cached_property
    def key_values(self) -> np.ndarray:
        """Singular values of WQ WK^T (frames, .), of its small factors where there are few columns; of wide ones the largest."""
        q, k = self.params["WQ"], self.params["WK"]
        if q.shape[2] < q.shape[1] and np.isfinite(q).all() and np.isfinite(k).all():
            q, k = triangle(q), triangle(k)
        if min(q.shape[1], k.shape[1]) <= MOST_BY_LOOPS:
            return np.linalg.svd(q @ np.swapaxes(k, 1, 2), compute_uv=False)
        return _largest_singular_values(q, k)[:, None]

    @cached_property
    def entropy(self) -> np.ndarray:
        """Entropy of each attention row (frames, d), in nats."""
        return _entropy(self.attention) if self._rows is None else self._rows[0][:, 2]

    @cached_property
    def probe_entropy(self) -> np.ndarray:
        """Entropy of softmax(Phi) rows (frames, d): log d where a row is flat."""
        return _entropy(softmax(self.scores)) if self._rows is None else self._rows[0][:, 3]

    @cached_property
    def stable_rank(self) -> np.ndarray:
        """|W0|^2 / sv_1(W0)^2 (frames,): 1 where the embedding is condensed."""
        square = self.embedding_values**2
        return square.sum(axis=1) / np.maximum(square[:, 0], np.finfo(float).tiny)

    def moves(self) -> np.ndarray:
        """How far things move from frame to frame, in units of .01 of attention or 5 % of a singular value.

        Growth of a singular value below 1e-3, or of WQ WK^T below its start, does not count.
        """
        # The largest change of an entry of attention from frame to frame (frames - 1,).
        changes = np.abs(np.diff(self.attention, axis=0)).max(axis=(1, 2)) if self._rows is None else self._rows[1]
        keys = self.key_values[:, :1]
        grown = [np.log(np.maximum(values, 1e-3)) for values in (self.embedding_values, self.score_values)]
        grown.append(np.log(np.maximum(keys, max(keys[0, 0], np.finfo(float).tiny))))
        return np.maximum(changes / 0.01, np.abs(np.diff(np.hstack(grown), axis=0)).max(axis=1) / 0.05)


LANCZOS = 10
"""Vectors of Lanczos: 6, 10 and 20 take .5, .6 and 1.1 ms a frame at width 256, and 6 most where nothing stands out."""
VECTOR = 1e-8
"""Its relative tolerance."""


def _largest_singular_values(left: np.ndarray, right: np.ndarray) -> np.ndarray:
    """sv_1 of left right^T in each frame (frames,), by Lanczos from the vector of the frame before; nan where not finite.

    An error e of the vector is one of e^2 of the value: at e = `VECTOR` it is lost to rounding. Noise of a hundredth is added to
    each start, because another direction may have grown largest since.
    """
    from scipy.sparse.linalg import ArpackError, LinearOperator, eigsh

    noise = np.random.default_rng(0).normal(size=len(right[0])) / np.sqrt(len(right[0]))
    vector, largest = np.zeros_like(noise), np.full(len(left), np.nan)
    for frame, (first, second) in enumerate(zip(left, right, strict=True)):
        if not (np.isfinite(first).all() and np.isfinite(second).all()):
            continue
        sizes = np.abs(first).max(), np.abs(second).max()
        if 0 in sizes:
            largest[frame] = 0.0
            continue
        q, k = first / sizes[0], second / sizes[1]  # ARPACK stops at 4e-11, however small all values are
        square = LinearOperator(2 * noise.shape, matvec=lambda x, q=q, k=k: k @ (q.T @ (q @ (k.T @ np.ravel(x)))), dtype=float)
        try:
            values, vectors = eigsh(square, k=1, ncv=LANCZOS, tol=VECTOR, v0=vector + 0.01 * noise)
            vector, largest[frame] = vectors[:, 0], sizes[0] * sizes[1] * max(float(values[0]), 0.0) ** 0.5
        except ArpackError:  # of a product that is zero
            largest[frame] = np.linalg.svd(first @ second.T, compute_uv=False)[0]
    return largest


def _entropy(rows: np.ndarray) -> np.ndarray:
    """In nats, over the last axis."""
    return -np.sum(rows * np.log(np.where(rows > 0, rows, 1.0)), axis=-1)


def token_curves(run: Run) -> TokenCurves:
    """The curves of a focus-dilution run."""
    law = rebuilt(run.spec["field"])
    assert isinstance(law, TokenLoss)
    return TokenCurves(run.time, {name: run.params[name] for name in run.params}, law)
