"""The flow of a small model, one step of the solver at a time, and the linear laws beside it."""

from collections.abc import Iterator

import numpy as np

from stagescope.dynamics.solver import TOLERANCES, steps
from stagescope.papers.focus_dilution.counts import TokenCounts
from stagescope.papers.focus_dilution.loss import BLOCKS, TokenLoss, TokenPopulation
from stagescope.papers.focus_dilution.model import TokenAttention
from stagescope.params import Layout, Params


class SmallModel:
    """The same loss of the model of width r and key width rq, r at least 1; at rq = 0 its one query and key are zeros."""

    def __init__(self, loss: TokenLoss, r: int, rq: int) -> None:
        self.r, self.rq = r, rq
        model = TokenAttention(vocab=loss.model.vocab, width=r, key_width=max(rq, 1), scale=loss.model.scale)
        if isinstance(loss, TokenCounts):
            self.loss = loss.model_copy(update={"model": model})  # the contexts stay
        else:
            self.loss = TokenPopulation(model=model, process=loss.process)
        self.layout = Layout(tuple((name, model.shapes[name]) for name in BLOCKS))
        self.flat = self.loss.flat(self.layout, dict.fromkeys(BLOCKS, 1.0))

    def packed(self, small: Params) -> np.ndarray:
        none = {} if self.rq else {name: np.zeros((self.r, 1)) for name in ("WQ", "WK")}
        return self.layout.pack({**small, **none})

    def unpacked(self, vector: np.ndarray) -> dict[str, np.ndarray]:
        """The blocks of one vector, or of several along leading axes."""
        small = self.layout.unpack(vector)
        return small if self.rq else small | {name: small[name][..., :0] for name in ("WQ", "WK")}

    def velocity(self, vector: np.ndarray) -> tuple[np.ndarray, float]:
        """The velocity and the loss."""
        out = np.empty_like(vector)
        value = self.flat(vector, out)
        return out, float(self.loss.value(self.layout.unpack(vector)) if value is None else value)

    def steps(
        self, vector: np.ndarray, start: float, until: float, tolerances: tuple[float, float] = TOLERANCES
    ) -> Iterator[tuple[float, np.ndarray]]:
        """Times and points, one for each step that the solver takes."""
        return steps(self.flat, vector, (start, until), tolerances)
