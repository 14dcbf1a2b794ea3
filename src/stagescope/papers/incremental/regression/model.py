"""Heads that fit a linear map by positional attention: the simplified model of incremental learning [ISA:heads]."""

from functools import cached_property
from itertools import pairwise
from typing import Literal

import numpy as np
from pydantic import Field as Limits
from pydantic import model_validator

from stagescope.errors import InputError, unknown
from stagescope.fields.softmax import softmax
from stagescope.keys import key
from stagescope.memory import require_parameters
from stagescope.params import Params
from stagescope.spec import Described, Integers, Numbers

Noise = Literal["logits", "weights"]


class RegressionHeads(Described):
    """Logits a (H, N) and values V (H, k) that fit G = sum_i g_i f_i x e_{p_i} by P = sum_h V_h x softmax(a_h) [ISA:heads].

    The features f_i are orthonormal and V_h is written in their basis: V_h' = (G - P) s_h lies in the span of the f_i and of
    the V's themselves, so components orthogonal to all f_i that start at zero stay zero. Positions count from 0; `places` are
    the p_i, by default 0..k-1 (positions are exchangeable: the choice only decides which noise they get). The model
    may stand for a larger one in which every head occurs `copies` times: equal heads stay equal, P = copies sum_h V_h x s_h,
    and each listed head moves as each of its copies does [ISA:symmetric].

    Args:
        positions: number N of positions.
        gains: a positive number for each feature, largest first.
        heads: number H of heads.
        places: the position of each feature.
        copies: how often each head occurs.

    Examples:
        >>> heads = ss.RegressionHeads(positions=3, gains=(2.0, 1.0), heads=2)
        >>> {name: block.shape for name, block in heads.init(seed=0).items()}
        {'a': (2, 3), 'V': (2, 2)}
    """

    positions: int = Limits(ge=1)
    gains: Numbers
    heads: int = Limits(ge=1)
    places: Integers | None = None
    copies: int = Limits(default=1, ge=1)

    @model_validator(mode="after")
    def _valid(self) -> "RegressionHeads":
        gains, places = self.gains, self.at.tolist()
        if not gains or min(gains) <= 0 or any(a < b for a, b in pairwise(gains)):
            raise ValueError(f"gains must be positive and not increase, at least one, got {gains}")
        if len(places) != len(gains) or len(set(places)) != len(places):
            raise ValueError(f"{len(gains)} gains need as many different places, got {places}")
        if self.places is None and len(gains) > self.positions:
            way = f"raise positions (--positions) to {len(gains)} or more, or list fewer gains (--gains)"
            raise ValueError(f"{len(gains)} gains need at least {len(gains)} positions, got {self.positions}; {way}")
        if min(places) < 0 or max(places) >= self.positions:
            raise ValueError(f"places must be among the positions 0..{self.positions - 1}, got {places}")
        try:
            require_parameters(self.shapes, "take fewer positions or heads")
        except InputError as error:
            raise ValueError(str(error)) from None
        return self

    @property
    def at(self) -> np.ndarray:
        """The positions p_i of the features."""
        return np.arange(len(self.gains)) if self.places is None else np.array(self.places, dtype=int)

    @property
    def shapes(self) -> dict[str, tuple[int, int]]:
        return {"a": (self.heads, self.positions), "V": (self.heads, len(self.gains))}

    @property
    def axes(self) -> dict[str, tuple[str, ...]]:
        return {"a": ("head", "position"), "V": ("head", "feature")}

    @property
    def multiplicity(self) -> dict[str, np.ndarray]:
        return {name: np.array(float(self.copies)) for name in self.shapes}

    @cached_property
    def target(self) -> np.ndarray:
        """G (k, N)."""
        target = np.zeros((len(self.gains), self.positions))
        target[np.arange(len(self.gains)), self.at] = self.gains
        return target

    def symmetric(self) -> "RegressionHeads":
        """One head for all: the exact motion of this model from equal heads, which rounding cannot split [ISA:symmetric]."""
        return self.model_copy(update={"heads": 1, "copies": self.heads * self.copies})

    def init(self, seed: int = 0, sigma: float = 1e-2, noise: Noise = "logits") -> dict[str, np.ndarray]:
        """V = 0 and a = sigma n, n normal; or attention 1/N + sigma n, scaled to sum 1, where the noise is on the weights.

        Logits are then log weights less their mean, which changes no attention. It keeps them small: the tolerance of a flow
        is measured by the initial parameters, and log(1/N) would make it coarser than the noise that decides the escape.
        """
        if not (np.isfinite(sigma) and sigma >= 0):
            raise InputError(f"sigma is {sigma}, but must be finite and >= 0")
        draw = sigma * key(seed, "init", "a").normal(size=self.shapes["a"])
        if noise == "weights":
            weights = 1 / self.positions + draw
            if np.min(weights) <= 0:
                raise InputError(f"noise {sigma:g} makes attention weights negative: they are 1/{self.positions} without it")
            logs = np.log(weights)
            draw = logs - logs.mean(axis=1, keepdims=True)
        elif noise != "logits":
            raise unknown("noise", noise, ("logits", "weights"))
        return {"a": draw, "V": np.zeros(self.shapes["V"])}

    def reduce(self, params: Params) -> Params:
        """Values in the basis of the features: unchanged here."""
        return params

    def attention(self, params: Params) -> np.ndarray:
        """s = softmax(a) (..., H, N)."""
        return softmax(params["a"])

    def residual(self, params: Params) -> np.ndarray:
        """R = G - P (..., k, N)."""
        return self.target - self.copies * np.einsum("...hi,...hn->...in", params["V"], self.attention(params))

    def losses(self, params: Params) -> np.ndarray:
        """|R|^2/2 of each frame: also of a run whose law has no objective."""
        return np.sum(self.residual(params) ** 2, axis=(-2, -1)) / 2
