"""At which training steps a watched model is recorded."""

import numpy as np

from stagescope.dynamics.record import Graded, Record
from stagescope.errors import InputError

DEFAULT = Graded(frames=240, early=60)
"""About 300 records: evenly spaced, and closer together up to the tenth of the even ones. Stages are found from 60 records on."""
RATIO = 1.03
"""Where nobody knows how long a training lasts, each record is at this ratio of the one before."""


class Schedule:
    """Which steps are due; `steps` is the planned number of training steps, or None where it is not known."""

    def __init__(self, steps: int | None = None, record: Record | None = None) -> None:
        if steps is not None and (isinstance(steps, bool) or not isinstance(steps, int) or steps < 1):
            raise InputError(
                f"steps is {steps!r}, expected the number of training steps, 1 or more; leave it out if it is not known"
            )
        if record is not None and not isinstance(record, Record):
            raise InputError(f"record is {record!r}, expected a value such as ss.LogSpaced(frames=200) or ss.Every(n=10)")
        if steps is None and record is not None:
            raise InputError("a record needs the number of training steps; give steps=...")
        self.steps = steps
        self.value = None if steps is None else record or DEFAULT
        self._due = frozenset(self.value.steps(steps).tolist()) if self.value is not None and steps is not None else None
        self._next, self._mark = 0, 16

    def due(self, step: int) -> bool:
        if self._due is not None:
            return step in self._due
        if step < self._next:
            return False
        self._next = max(step + 1, int(np.ceil(RATIO * step)))
        return True

    def milestone(self, step: int) -> bool:
        """Whether a record is the first one after a doubling of the steps, where what takes longer is measured too."""
        if step < self._mark:
            return False
        self._mark = 2 * step
        return True
