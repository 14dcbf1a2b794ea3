"""Two layers of attention in few numbers: layer 1 attends by lag, layer 2 by match [MIC:model].

Layer 1 gives h_s = sum_d A_d e_{x_{s-d}}, A = softmax(v) over the lags. Layer 2 scores place s by W[x_t] . h_s. Relabelling
tokens leaves W = a 11^T + b I as it is: two numbers stand for k^2.
"""

from typing import Any, ClassVar, Literal, get_args

import numpy as np
from pydantic import Field as Limits

from stagescope.core.errors import InputError
from stagescope.core.params import Params, key
from stagescope.core.spec import Described
from stagescope.flow.softmax import softmax
from stagescope.papers.markov_icl.study import LARGEST, MOST_LAGS


class MatchModel(Described):
    """What the models share: scores v of the lags, and a match W that begins at zero."""

    tokens: int = Limits(ge=2)
    lags: int = Limits(ge=2, le=MOST_LAGS)
    match_axes: ClassVar[dict[str, int]] = {"part": 2}

    @property
    def blocks(self) -> dict[str, dict[str, int]]:
        """The axes of each block by name, with their lengths."""
        return {"W": self.match_axes, "v": {"lag": self.lags}}

    @property
    def shapes(self) -> dict[str, tuple[int, ...]]:
        return {name: tuple(axes.values()) for name, axes in self.blocks.items()}

    @property
    def axes(self) -> dict[str, tuple[str, ...]]:
        return {name: tuple(axes) for name, axes in self.blocks.items()}

    def init(self, seed: int = 0, sigma: float = 0.0, match: float = 0.0) -> dict[str, np.ndarray]:
        """v = sigma n with n normal; W = 0, or `match` times its own normal numbers."""
        for name, value in (("sigma", sigma), ("match", match)):
            if not 0 <= value <= LARGEST:
                raise InputError(f"{name} is {value}, but must be from 0 to {LARGEST:g}")
        scales = {"v": sigma}
        return {name: scales.get(name, match) * key(seed, "init", name).normal(size=shape) for name, shape in self.shapes.items()}

    def attention(self, params: Params) -> np.ndarray:
        """A (..., lags): layer 1 by lag."""
        return softmax(np.asarray(params["v"], dtype=float))

    def match(self, params: Params) -> np.ndarray:
        """b (...,): the score of a match, the mean of the diagonal of W less that of the rest."""
        return np.asarray(params["W"], dtype=float)[..., -1]


Form = Literal["parts", "entries", "free"]
"""How W is written: a and b, each moving at the rate of W; one entry off the diagonal and one on it, moving as all those that
are equal to it do; or all entries."""


class LinearMatch(MatchModel):
    """Layer 2 is linear: logits are sum_s W[x_t] . h_s e_{x_s}; models R and F [MIC:model-r], [MIC:model-f]."""

    form: Form = "parts"

    @property
    def blocks(self) -> dict[str, dict[str, int]]:
        return {**super().blocks, **({"W": {"query": self.tokens, "key": self.tokens}} if self.form == "free" else {})}

    @property
    def multiplicity(self) -> dict[str, np.ndarray]:
        """Entries of W that each number stands for."""
        k = self.tokens
        return {"W": np.array([k * k - k, k], dtype=float)} if self.form == "entries" else {}

    @property
    def place_of_form(self) -> int:
        """The form as kernels know it."""
        return get_args(Form).index(self.form)

    def square(self, w: Any) -> Any:
        """W as a matrix (k, k), also of JAX arrays."""
        eye = np.eye(self.tokens)
        if self.form == "free":
            return w
        return w[0] + w[1] * eye if self.form == "parts" else w[0] * (1 - eye) + w[1] * eye

    def moved_parts(self, slope: np.ndarray) -> np.ndarray:
        """(a', b') from -dL/d(a, b): the same for parts; entries of W each have the rate of W, so a and b move more slowly."""
        if self.form == "parts":
            return slope
        total, diagonal = slope
        off = (total - diagonal) / (self.tokens**2 - self.tokens)
        return np.array([off, diagonal / self.tokens - off])

    def parts(self, w: np.ndarray) -> np.ndarray:
        """a and b of recorded W (..., 2)."""
        if self.form == "free":
            b = matched(w)
            return np.stack([w.mean(axis=(-2, -1)) - b / self.tokens, b], axis=-1)
        return w if self.form == "parts" else np.stack([w[..., 0], w[..., 1] - w[..., 0]], axis=-1)

    def in_form(self, a: float, b: float) -> np.ndarray:
        """W = a 11^T + b I in the model's own form."""
        if self.form == "free":
            return a + b * np.eye(self.tokens)
        return np.array([a, b] if self.form == "parts" else [a, a + b])

    def match(self, params: Params) -> np.ndarray:
        return self.parts(np.asarray(params["W"], dtype=float))[..., 1]


class SoftmaxMatch(MatchModel):
    """Layer 2 is a softmax and gives its average of tokens itself, with b alone: model S [MIC:model-s]."""

    match_axes: ClassVar = {"part": 1}


class TwoHeadMatch(MatchModel):
    """Two heads in layer 1, score b_1 <x_t, h1_s> + b_2 <h1_t, h2_s>: model S3 [MIC:model-s3]."""

    @property
    def blocks(self) -> dict[str, dict[str, int]]:
        return {"W": {"match": 2}, "v": {"head": 2, "lag": self.lags}}

    def match(self, params: Params) -> np.ndarray:
        """b_1: that of the current token."""
        return np.asarray(params["W"], dtype=float)[..., 0]


class ReadoutMatch(MatchModel):
    """Causal softmax in layer 2 and a readout U, logits U o_t; all begin small: model T [MIC:model-t]."""

    @property
    def blocks(self) -> dict[str, dict[str, int]]:
        k = self.tokens
        return {"W": {"query": k, "key": k}, "v": {"lag": self.lags}, "U": {"token": k, "logit": k}}

    def match(self, params: Params) -> np.ndarray:
        return matched(np.asarray(params["W"], dtype=float))


def matched(square: np.ndarray) -> np.ndarray:
    """Mean of the diagonal less mean of the other entries (...,)."""
    k = square.shape[-1]
    diagonal = np.trace(square, axis1=-2, axis2=-1)
    return diagonal / k - (square.sum(axis=(-2, -1)) - diagonal) / (k * (k - 1))
