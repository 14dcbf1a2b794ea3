"""Focus and dilution at a finite context length, exactly: the sum over all counts and last tokens of a chain."""

from functools import cached_property

import numpy as np
from pydantic import Field as Limits
from pydantic import model_validator

from stagescope.papers.focus_dilution.context_law import check_size, context_law
from stagescope.papers.focus_dilution.counts import Contexts, TokenCounts
from stagescope.processes.markov_chain import Start


class TokenFinite(TokenCounts):
    """L = - sum_(n,i) p(n, i) sum_k P_ik log softmax(A(n, i) W0 W1)_k over contexts of `length` tokens [FD:finite].

    p is the law of counts and last token of a context started from the stationary or the uniform law; A_j ~ n_j exp(Phi_ij).

    Args:
        model: the attention.
        process: the chain.
        length: tokens of a context.
        start: law of the first token.

    Examples:
        >>> short = ss.TokenFinite(model=model, process=chain, length=4)
        >>> print(f"{short.value(model.init(seed=0, scale=1e-3)):.4f}")
        1.0986
    """

    length: int = Limits(ge=1)
    start: Start = "stationary"

    @model_validator(mode="after")
    def _small_enough(self) -> "TokenFinite":
        check_size(self.process.vocab, self.length)
        return self

    @cached_property
    def contexts(self) -> Contexts:
        law, d = context_law(self.process, self.length, self.start), self.process.vocab
        p = law.probability.T
        kept = p > 0  # a chain with forbidden steps never has some of its counts
        counts, weights = (np.empty((d, np.count_nonzero(kept))) for _ in range(2))
        starts = np.concatenate([[0], np.cumsum(np.count_nonzero(kept, axis=1))])
        for i in range(d):
            own = slice(starts[i], starts[i + 1])
            counts[:, own] = law.others[kept[i]].T
            counts[i, own] += 1
            weights[:, own] = self.process.transition[i][:, None] * p[i, kept[i]]
        return Contexts(counts, weights, starts)
