"""What a sample of pairs leaves open: the same model on infinitely long contexts, with other draws of (last token, next)."""

from functools import cached_property

import numpy as np
from pydantic import Field as Limits

from stagescope.keys import key
from stagescope.papers.focus_dilution.counts import Contexts, TokenCounts


class TokenPairs(TokenCounts):
    """L = - sum_ik J_ik log softmax(A_i W0 W1)_k with counts replaced by pi; J is the law of `sequences` pairs drawn from P.

    Of a sample of long contexts, the pairs (last token, token after it) vary most from draw to draw [FD:sampled].
    """

    sequences: int = Limits(ge=1)
    seed: int = Limits(default=0, ge=0, lt=2**63)

    @cached_property
    def contexts(self) -> Contexts:
        pi, d = self.process.stationary, self.process.vocab
        joint = (pi[:, None] * self.process.transition).ravel()
        drawn = key(self.seed, "pairs").multinomial(self.sequences, joint / joint.sum()).reshape(d, d)
        return Contexts.of(np.tile(pi, (d, 1)), np.arange(d), drawn / self.sequences)
