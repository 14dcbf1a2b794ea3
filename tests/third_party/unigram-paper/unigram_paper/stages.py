"""The stages of a run: the excess loss falls, then settles."""

import numpy as np

from stagescope.detect.events import first_crossing
from stagescope.detect.stage import Stage, Stages


def detect(time: np.ndarray, excess: np.ndarray, *, clock: str, status: str) -> Stages:
    """`half` is when the excess loss is half of what it was at the start."""
    first, last = float(excess[0]), float(excess[-1])
    half = first_crossing(time, excess, 0.5 * first, rising=False)
    notes = {} if half is not None else {"half": f"the excess loss ended at {last / first:.0%} of its start"}
    stages = [Stage("falling", float(time[0]), half, f"excess starts at {first:.3g}", facts={"excess": first})]
    if half is not None:
        stages.append(Stage("settling", half, None, f"excess ends at {last:.3g}", facts={"excess": last}))
    return Stages(status, clock, {"half": half}, tuple(stages), notes)
