"""When to stop training: rules on curves, each with the frame it hands back [ISA:stopping-rules].

`held` is a held-out loss, the only thing besides the training loss that the rules a user can follow look at.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from stagescope.detect.shoulders import transitions_so_far

Difference = Callable[[int, int], tuple[float, float]]
"""Mean and standard error of the held-out loss at one frame minus that at another, sequence by sequence."""


@dataclass(frozen=True)
class Stop:
    """The frame a rule hands back, and the frame at which it knows: training goes on until then."""

    frame: int
    decided: int


def oracle_stop(validation: np.ndarray) -> Stop:
    """The frame of least loss to the true law: nobody can follow this rule, and no rule does better."""
    return Stop(int(np.argmin(validation)), len(validation) - 1)


def patient_stop(step: np.ndarray, held: np.ndarray, patience: float) -> Stop:
    """Stop once the held-out loss has had no new least value for `patience` steps; hand back the frame of the least."""
    best = 0
    for i in range(len(step)):
        if held[i] < held[best]:
            best = i
        elif step[i] - step[best] >= patience:
            return Stop(best, i)
    return Stop(best, len(step) - 1)


def adaptive_stop(step: np.ndarray, training: np.ndarray, held: np.ndarray, difference: Difference) -> Stop:
    """Stop when a stage does not lower the held-out loss [ISA:stopping-rules].

    Stages are those of the training loss (`transitions_so_far`). As soon as a transition is over, the least held-out loss
    since the shoulder before it is compared with the least up to that shoulder: unless it is lower by more than one standard
    error of the difference, training stops and the older frame is handed back. It is patience counted in stages, not in steps:
    it waits on a plateau however long it lasts. A run that ends first is treated as if its last transition were over.
    """
    last = len(step) - 1
    for transition in transitions_so_far(step, training):
        now = last if transition.over is None else transition.over
        known = int(np.argmin(held[: transition.shoulder + 1]))
        if now == transition.shoulder:
            continue
        new = transition.shoulder + 1 + int(np.argmin(held[transition.shoulder + 1 : now + 1]))
        mean, error = difference(new, known)
        if not mean < -error:
            return Stop(known, now)
    return Stop(int(np.argmin(held)), last)
