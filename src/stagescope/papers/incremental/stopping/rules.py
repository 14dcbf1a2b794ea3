"""When to stop training: rules on curves, each with the frame it hands back [ISA:stopping-rules].

`held` is a held-out loss, the only thing besides the training loss that the rules a user can follow look at.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from stagescope.detect.stage import Transition
from stagescope.detect.transitions import RULES, transitions

LOOK = 0.1
"""How often the adaptive rule looks, in ln step: a transition is then seen at most a tenth of its time late."""
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

    Stages are those that the paper-free detector finds in the training loss so far: every tenth of ln step it looks at the
    records up to now, and at no other. A transition is found once it is over. Then the least held-out loss since its beginning
    is compared with the least before: unless it is lower by more than one standard error of the difference, training stops and
    the older frame is handed back. It is patience counted in stages, not in steps: it waits on a plateau however long it lasts.
    """
    judged = 0.0
    for now in looks(step):
        falls = [found for found in transitions(step[: now + 1], training[: now + 1]) if found.amplitude < 0]
        if not falls or falls[-1].t <= judged:
            continue
        judged, begin = falls[-1].high, _beginning(falls[-1], step, now)
        known, new = int(np.argmin(held[: begin + 1])), begin + 1 + int(np.argmin(held[begin + 1 : now + 1]))
        mean, error = difference(new, known)
        if not mean < -error:
            return Stop(known, now)
    return Stop(int(np.argmin(held)), len(step) - 1)


def looks(step: np.ndarray) -> list[int]:
    """The frames at which the rule looks: the first with enough records, then every tenth of ln step, and the last."""
    found, due = [], 0.0
    for i in range(RULES.fewest - 1, len(step)):
        if step[i] >= due or i == len(step) - 1:
            found.append(i)
            due = float(step[i]) * np.exp(LOOK)
    return found


def _beginning(found: Transition, step: np.ndarray, now: int) -> int:
    """The last frame before a transition: two widths before its centre, on the clock of the detector."""
    early = step[now] / 300
    at = (found.t + early) * np.exp(-2 * found.width) - early
    return int(np.clip(np.searchsorted(step, at, side="right") - 1, 0, now - 1))
