"""What a run shows."""

import numpy as np

from stagescope.runs.run import Run
from unigram_paper.loss import BiasPopulation


def least_loss(law: BiasPopulation) -> float:
    """The entropy of the frequencies that the loss sees: those of the process, or of the sample."""
    seen = law.data[law.data > 0]
    return float(-np.dot(seen, np.log(seen)))


def excess(run: Run, law: BiasPopulation) -> np.ndarray:
    """Loss above its least value at every frame."""
    return run.series["loss"] - least_loss(law)


def slowest_rate(pi: np.ndarray) -> float:
    """lambda: the least positive eigenvalue of diag(pi) - pi pi^T, the Hessian at the optimum [unigram:rate]."""
    return float(np.linalg.eigvalsh(np.diag(pi) - np.outer(pi, pi))[1])
