"""Where the tokens come from."""

import numpy as np
from pydantic import model_validator

from stagescope.processes.markov_chain import Process
from stagescope.spec import Numbers


class Unigram(Process):
    """Tokens drawn independently from pi."""

    pi: Numbers

    @model_validator(mode="after")
    def _valid(self) -> "Unigram":
        if not self.pi or min(self.pi) <= 0 or abs(sum(self.pi) - 1) > 1e-9:
            raise ValueError(f"pi must be positive and sum to 1, got {self.pi}")
        return self

    @classmethod
    def ramp(cls, top: float, vocab: int) -> "Unigram":
        """Token 0 with probability `top`; the others share the rest, with weights that fall linearly."""
        weights = np.arange(vocab, 1, -1)
        return cls(pi=(top, *((1 - top) * weights / weights.sum()).tolist()))

    def floor(self) -> float:
        """The entropy of pi."""
        return float(-np.dot(self.pi, np.log(self.pi)))
