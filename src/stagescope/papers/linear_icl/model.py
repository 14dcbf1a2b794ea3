"""Linear attention with several heads, reduced to the blocks that move: values, and key-query matrices [LIN:model]."""

from typing import Any

import numpy as np
from pydantic import Field as Limits
from pydantic import model_validator

from stagescope.core.errors import InputError
from stagescope.core.memory import require_parameters
from stagescope.core.params import Params, key
from stagescope.core.spec import Described


class LinearAttention(Described):
    """yhat = beta^T M x_q with beta = sum_n y_n x_n / N and M = sum_h v_h U_h [LIN:model].

    Separate heads have U_h = K_h^T Q_h with K_h and Q_h of `rank` rows; merged heads have U_h itself, and no rank.

    The blocks that are left out, values that read x and keys that read y, stay 0: their gradient is odd in w.

    Args:
        dim: length D of the inputs.
        heads: number H of heads.
        rank: rows R of keys and queries of a head; None for merged heads.
    """

    dim: int = Limits(ge=1)
    heads: int = Limits(ge=1)
    rank: int | None = Limits(default=1, ge=1)

    @model_validator(mode="after")
    def _valid(self) -> "LinearAttention":
        require_parameters(self.shapes, "take fewer heads or directions")
        return self

    @property
    def merged(self) -> bool:
        return self.rank is None

    @property
    def shapes(self) -> dict[str, tuple[int, ...]]:
        if self.rank is None:
            return {"v": (self.heads,), "U": (self.heads, self.dim, self.dim)}
        rows = (self.heads, self.rank, self.dim)
        return {"v": (self.heads,), "K": rows, "Q": rows}

    @property
    def axes(self) -> dict[str, tuple[str, ...]]:
        if self.merged:
            return {"v": ("head",), "U": ("head", "direction", "query direction")}
        return {"v": ("head",), "K": ("head", "row", "direction"), "Q": ("head", "row", "query direction")}

    @property
    def reach(self) -> int:
        """Directions that all heads together can hold."""
        return self.dim if self.rank is None else min(self.heads * self.rank, self.dim)

    def init(self, seed: int = 0, scale: float = 1e-2) -> dict[str, np.ndarray]:
        """Every entry normal with standard deviation `scale`."""
        if not (np.isfinite(scale) and scale >= 0):
            raise InputError(f"the initial scale is {scale}, but must be finite and >= 0")
        return {name: scale * key(seed, "init", name).normal(size=shape) for name, shape in self.shapes.items()}

    def maps(self, params: Params) -> np.ndarray:
        """v_h U_h of every head (..., H, D, D)."""
        v = np.asarray(params["v"])[..., None, None]
        if self.merged:
            return v * params["U"]
        return v * np.einsum("...hri,...hrj->...hij", params["K"], params["Q"])

    def map(self, params: Params) -> np.ndarray:
        """M = sum_h v_h U_h (..., D, D) [LIN:model]."""
        return self.maps(params).sum(axis=-3)

    def conserved(self, params: Params) -> Any:
        """v_h^2 - |block of head h|^2 for each other block (..., blocks, H): the flow keeps them [LIN:conserved]."""
        squares = [np.sum(np.square(params[name]), axis=(-2, -1)) for name in self.shapes if name != "v"]
        return np.stack([np.square(params["v"]) - square for square in squares], axis=-2)
