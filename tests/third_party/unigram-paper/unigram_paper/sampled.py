"""The same loss on a sample."""

import numpy as np

from stagescope.params import key
from unigram_paper.loss import BiasPopulation


class BiasSampled(BiasPopulation):
    """The loss on `length` tokens that are drawn once, from the seed [unigram:loss]."""

    length: int
    seed: int = 0

    @property
    def data(self) -> np.ndarray:
        return key(self.seed, "tokens").multinomial(self.length, self.process.pi) / self.length
