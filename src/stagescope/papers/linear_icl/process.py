"""In-context linear regression: inputs with a covariance, weights drawn for each sequence, contexts of some length [LIN:task]."""

from itertools import pairwise

import numpy as np
from pydantic import Field as Limits
from pydantic import model_validator

from stagescope.core.spec import Described, Integers, Numbers

LARGEST = 1e20
"""Largest eigenvalue, and one over the smallest: closed forms have powers of it up to the fifth."""


class RegressionTask(Described):
    """x_1 .. x_N and x_q from N(0, Lambda), w from N(0, I), y = w.x; the model sees (x_n, y_n) and is asked for y_q [LIN:task].

    Everything is in the eigenbasis of Lambda. A normal start looks the same in every basis, so nothing is lost.

    Args:
        eigenvalues: of Lambda, largest first; equal ones are allowed.
        contexts: lengths N of contexts, each equally likely. One entry is a fixed length.
    """

    eigenvalues: Numbers
    contexts: Integers = Limits(default=(31,))

    @model_validator(mode="after")
    def _valid(self) -> "RegressionTask":
        if not self.eigenvalues or min(self.eigenvalues) <= 0:
            raise ValueError(f"eigenvalues are {self.eigenvalues}; give at least one, all above 0")
        if min(self.eigenvalues) < 1 / LARGEST or max(self.eigenvalues) > LARGEST:
            raise ValueError(
                f"eigenvalues are {self.eigenvalues}; take them from {1 / LARGEST:g} to {LARGEST:g}, others overflow"
            )
        if any(one < following for one, following in pairwise(self.eigenvalues)):
            raise ValueError(f"eigenvalues are {self.eigenvalues}; list the largest first")
        if not self.contexts or min(self.contexts) < 1:
            raise ValueError(f"contexts are {self.contexts}; give at least one length, each 1 or more")
        return self

    @property
    def dim(self) -> int:
        return len(self.eigenvalues)

    @property
    def spectrum(self) -> np.ndarray:
        """lambda_1 >= ... >= lambda_D."""
        return np.array(self.eigenvalues)

    @property
    def per_length(self) -> float:
        """The mean of 1/N: what the loss knows of the lengths, because each output is divided by its own [LIN:loss]."""
        return float(np.mean(1.0 / np.array(self.contexts)))

    @property
    def amplification(self) -> np.ndarray:
        """a_i = 1 + (1 + tr Lambda / lambda_i) mean(1/N): how much a finite context inflates second moments [LIN:loss]."""
        return 1 + (1 + self.spectrum.sum() / self.spectrum) * self.per_length

    @property
    def second(self) -> np.ndarray:
        """The diagonal of E[hatLambda^2]: lambda_i^2 a_i [LIN:loss]."""
        return self.spectrum**2 * self.amplification
