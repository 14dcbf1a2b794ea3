"""A one-row transformer that regresses on vector tokens: the simplified model before its average is taken [ISA:regression]."""

from functools import cached_property

import numpy as np
from pydantic import Field as Limits
from pydantic import model_validator

from stagescope.errors import InputError
from stagescope.memory import require_memory, require_parameters
from stagescope.papers.incremental.features import RandomFeatures
from stagescope.papers.incremental.regression.model import Noise, RegressionHeads
from stagescope.params import Params
from stagescope.spec import Described


class RegressionTransformer(Described):
    """y = sum_i g_i F_i x_{p_i} of tokens x_1 .. x_N in R^d, predicted by sum_h V_h sum_n softmax(a_h)_n x_n [ISA:regression].

    V_h is d x d and the F_i are random with <F_i, F_j> = delta_ij, centred. For i.i.d. tokens with E x x^T = I the mean of
    |error|^2/2 is |G - P|^2/2 of `reduced`, whose features are the F_i: V_h = sum_i V_hi F_i stays of this form on average.

    Args:
        reduced: the heads that it is on average.
        dim: dimension of the tokens.
        feature_seed: of the features.

    Examples:
        >>> whole = ss.RegressionTransformer(reduced=ss.RegressionHeads(positions=3, gains=(2.0, 1.0), heads=2), dim=4)
        >>> {name: block.shape for name, block in whole.init(seed=0).items()}
        {'a': (2, 3), 'V': (2, 4, 4)}
    """

    reduced: RegressionHeads
    dim: int = Limits(ge=2)
    feature_seed: int = Limits(default=0, ge=0)

    @model_validator(mode="after")
    def _valid(self) -> "RegressionTransformer":
        if self.reduced.copies != 1:
            raise ValueError(f"the reduced model stands for {self.reduced.copies} copies of a head; list every head here")
        try:
            require_parameters(self.shapes, "take fewer heads or shorter tokens")
            require_memory("the target map", "take fewer positions or shorter tokens", self.positions, self.dim, self.dim)
            _ = self.features
        except InputError as error:
            raise ValueError(str(error)) from None
        return self

    @property
    def gains(self) -> tuple[float, ...]:
        return self.reduced.gains

    @property
    def positions(self) -> int:
        return self.reduced.positions

    @property
    def heads(self) -> int:
        return self.reduced.heads

    @property
    def copies(self) -> int:
        """Every head is listed."""
        return 1

    @property
    def at(self) -> np.ndarray:
        """The positions p_i of the features."""
        return self.reduced.at

    @cached_property
    def features(self) -> np.ndarray:
        """F_i (k, d, d), orthonormal in the Frobenius product."""
        stack = RandomFeatures(kind="gram-schmidt", seed=self.feature_seed).stack(len(self.gains), self.dim)
        return stack / np.sqrt(self.dim)

    @cached_property
    def target(self) -> np.ndarray:
        """G (N, d, d): g_i F_i at p_i."""
        found = np.zeros((self.positions, self.dim, self.dim))
        found[self.at] = np.array(self.gains)[:, None, None] * self.features
        return found

    @property
    def shapes(self) -> dict[str, tuple[int, ...]]:
        return {"a": (self.heads, self.positions), "V": (self.heads, self.dim, self.dim)}

    @property
    def axes(self) -> dict[str, tuple[str, ...]]:
        return {"a": ("head", "position"), "V": ("head", "output", "input")}

    def init(self, seed: int = 0, sigma: float = 1e-2, noise: Noise = "logits") -> dict[str, np.ndarray]:
        """The same logits as those of `reduced`, and V = 0."""
        return {"a": self.reduced.init(seed, sigma, noise)["a"], "V": np.zeros(self.shapes["V"])}

    def reduce(self, params: Params) -> dict[str, np.ndarray]:
        """Parameters of `reduced`: the logits, and V_hi = <V_h, F_i>."""
        return {"a": np.asarray(params["a"]), "V": np.einsum("...hyx,iyx->...hi", params["V"], self.features)}

    def attention(self, params: Params) -> np.ndarray:
        """s = softmax(a) (..., H, N)."""
        return self.reduced.attention(params)

    def residual(self, params: Params) -> np.ndarray:
        """R = G - P (..., N, d, d)."""
        return self.target - np.einsum("...hyx,...hn->...nyx", params["V"], self.attention(params))

    def losses(self, params: Params) -> np.ndarray:
        """|R|^2/2 of each frame, the mean over all contexts."""
        return np.sum(self.residual(params) ** 2, axis=(-3, -2, -1)) / 2
