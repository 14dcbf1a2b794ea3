"""Named strategies on fixed contexts, and how far a model is from each of them: KL(strategy || model)."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from stagescope.core.errors import InputError


@dataclass(frozen=True, eq=False)
class Strategies:
    """What some predictors say of the next token on contexts that stay the same.

    Args:
        laws: by name, the probabilities of a strategy (contexts, places, tokens): places are those of one sequence at which
            a token is predicted, or the states of one chain.
        weights: of contexts and places (contexts, places), with sum one. They make the mean exact, such as by a quadrature.
            None: the contexts are a sample, and all count alike.
    """

    laws: Mapping[str, np.ndarray]
    weights: np.ndarray | None = None

    def __post_init__(self) -> None:
        shapes = {np.shape(law) for law in self.laws.values()}
        if len(shapes) != 1 or len(next(iter(shapes))) != 3:
            raise InputError(f"the laws of strategies have shapes {sorted(shapes)}; give one (contexts, places, tokens) for all")

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(self.laws)

    @cached_property
    def _laws(self) -> np.ndarray:
        return np.array([np.asarray(law, dtype=float) for law in self.laws.values()])

    @cached_property
    def _negative_entropies(self) -> np.ndarray:
        """sum p log p of each strategy at each place (strategies, contexts, places)."""
        return np.sum(self._laws * np.log(np.maximum(self._laws, 1e-300)), axis=-1)

    def each(self, logs: np.ndarray) -> np.ndarray:
        """KL(strategy || model) in each context (strategies, contexts), from the model's log probabilities.

        Of a sample it is the mean over places; with `weights` the contexts sum to the whole.
        """
        divergence = self._negative_entropies - np.einsum("snpk,npk->snp", self._laws, logs)
        return divergence.mean(axis=2) if self.weights is None else np.sum(divergence * self.weights, axis=2)

    def divergences(self, logs: np.ndarray) -> np.ndarray:
        """KL(strategy || model), mean over all contexts (strategies,)."""
        by_context = self.each(logs)
        return by_context.mean(axis=1) if self.weights is None else by_context.sum(axis=1)

    def nearest(self, logs: np.ndarray) -> tuple[int, bool]:
        """The place of the strategy with the least divergence, and whether it is least beyond doubt.

        Of a sample that is: by more than two standard errors of the difference to every other one.
        """
        means, by_context = self.divergences(logs), self.each(logs)
        best = int(np.argmin(means))
        if self.weights is not None:
            return best, True
        leads = np.delete(by_context, best, axis=0) - by_context[best]
        error = 2 * leads.std(axis=1, ddof=1) / np.sqrt(leads.shape[1])
        return best, bool(np.all(leads.mean(axis=1) > error))
