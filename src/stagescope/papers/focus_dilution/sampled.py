"""Focus and dilution on sampled sequences, kept as counts, last token and the token after it."""

from functools import cached_property

import numpy as np
from pydantic import Field as Limits
from pydantic import model_validator

from stagescope.keys import key
from stagescope.papers.focus_dilution.counts import Contexts, TokenCounts
from stagescope.processes.markov_chain import Start


class TokenSampled(TokenCounts):
    """Mean cross-entropy of the token after each of `sequences` contexts of `length` tokens, drawn once [FD:sampled].

    With `batch`, each step of a descent sees that many of the sequences, drawn without repetition from (seed, step); `value`
    and `grad`, and so the recorded loss, are always over all of them. A flow has no steps and refuses a batch.

    Args:
        model: the attention.
        process: the chain.
        sequences: contexts that are drawn.
        length: tokens of a context.
        seed: of the draw.
        batch: contexts in a step; None takes all.
        start: law of the first token.

    Examples:
        >>> law = ss.TokenSampled(model=model, process=chain, sequences=20, length=8)
        >>> print(f"{law.value(model.init(seed=0, scale=1e-3)):.4f}")
        1.0986
    """

    sequences: int = Limits(ge=1)
    length: int = Limits(ge=1)
    seed: int = Limits(default=0, ge=0, lt=2**63)
    batch: int | None = Limits(default=None, ge=1)
    start: Start = "stationary"

    @model_validator(mode="after")
    def _sizes(self) -> "TokenSampled":
        if self.batch is not None and self.batch > self.sequences:
            raise ValueError(f"batch {self.batch} is larger than the {self.sequences} sequences; lower it or draw more sequences")
        numbers, draws = 2**24, 2**32  # about 1 GB while equal contexts are merged; about two minutes
        if self.sequences * self.process.vocab > numbers:
            most, d = numbers // self.process.vocab, self.process.vocab
            raise ValueError(f"{self.sequences} sequences of {d} tokens are too many to keep in memory; use at most {most}")
        at_once = max(self.sequences, 1000)  # a place of few sequences takes as long as one of a thousand
        if at_once * self.length > draws:
            asked, most = f"{self.sequences:,} sequences of length {self.length:,}", draws // at_once
            raise ValueError(f"{asked} would take long to draw; use a length of at most {most:,}, or fewer sequences")
        return self

    @cached_property
    def sample(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Counts (N, d), last token and target (N,) of every sequence."""
        return self.process.sample_counts(key(self.seed, "sequences"), self.sequences, self.length, self.start)

    @cached_property
    def contexts(self) -> Contexts:
        """Equal contexts are one, with the share of each token that follows them as weights."""
        counts, last, target = self.sample
        rows, where = np.unique(np.column_stack([last, counts]), axis=0, return_inverse=True)
        weights = np.zeros((len(rows), self.process.vocab))
        np.add.at(weights, (where, target), 1 / self.sequences)
        return Contexts.of(rows[:, 1:], rows[:, 0], weights)

    def minibatch(self, step: int) -> Contexts | None:
        if self.batch is None:
            return None
        chosen = key(self.seed, "batch", step).choice(self.sequences, self.batch, replace=False, shuffle=False)
        counts, last, target = (values[chosen] for values in self.sample)
        weights = np.zeros((self.batch, self.process.vocab))
        weights[np.arange(self.batch), target] = 1 / self.batch
        return Contexts.of(counts, last, weights)
