"""What is trained."""

import numpy as np

from stagescope.params import key
from stagescope.spec import Described


class Bias(Described):
    """Output logits b (V,) and nothing else."""

    vocab: int

    @property
    def axes(self) -> dict[str, tuple[str, ...]]:
        return {"b": ("output",)}

    @property
    def shapes(self) -> dict[str, tuple[int, ...]]:
        return {"b": (self.vocab,)}

    def init(self, seed: int = 0, scale: float = 0.0) -> dict[str, np.ndarray]:
        return {"b": scale * key(seed, "init", "b").normal(size=self.vocab)}
