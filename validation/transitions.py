"""The paper-free detector on planted transitions and on curves without any: precision, recall, coverage, false alarms.

    python -m validation transitions

The rules of `detect/transitions.py` were frozen before the seeds used here were drawn.
"""

import time

import numpy as np

from stagescope.detect.transitions import transitions
from tests.detect.curves import NULLS, null, planted

FIRST, CURVES, EACH = 50_000, 400, 60
"""First seed, curves with planted transitions, curves of each null."""
NEAR = 0.25
"""A transition is found if one is reported within this distance of it, in ln step."""


def main() -> bool:
    began = time.process_time()
    rows = _planted(range(FIRST, FIRST + CURVES))
    milliseconds = 1000 * (time.process_time() - began) / CURVES
    alarms = {name: np.mean([bool(transitions(*null(name, FIRST + n))) for n in range(EACH)]) for name in NULLS}
    rows += [("false alarms, mean over nulls", float(np.mean(list(alarms.values()))), 0.0, 0.05)]
    rows += [(f"false alarms: {name}", float(value), 0.0, 0.2) for name, value in alarms.items()]
    for what, value, low, high in rows:
        print(f"{what:<44} {value:>7.3f}  [{low:.2f}, {high:.2f}]{'' if low <= value <= high else '   DOES NOT HOLD'}")
    print(f"{milliseconds:.0f} ms of CPU a curve")
    return all(low <= value <= high for _, value, low, high in rows)


def _planted(seeds):
    found = real = hits = covered = strong = strong_hits = 0
    errors = []
    for seed in seeds:
        step, curve, centres, ratio = planted(seed)
        seen = transitions(step, curve)
        found, real = found + len(seen), real + len(centres)
        for centre, clear in zip(centres, ratio >= 8, strict=True):
            near = [each for each in seen if abs(np.log(max(each.t, 1e-9) / centre)) < NEAR]
            strong, strong_hits = strong + clear, strong_hits + (clear and bool(near))
            if near:
                best = min(near, key=lambda each: abs(np.log(each.t / centre)))
                hits, covered = hits + 1, covered + (best.low <= centre <= best.high)
                errors.append(abs(np.log(best.t / centre)))
    return [
        ("precision", hits / found, 0.95, 1.0),
        ("recall", hits / real, 0.7, 1.0),
        ("recall, amplitude at least 8 times the noise", strong_hits / strong, 0.7, 1.0),
        ("coverage of the intervals", covered / hits, 0.9, 1.0),
        ("median error in ln step", float(np.median(errors)), 0.0, 0.02),
    ]
