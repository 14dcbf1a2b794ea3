"""The detector of transitions on curves whose events are known: precision, recall, coverage, spikes, shifts of the clock.

python -m validation transitions
"""

import os
import time

import numpy as np

from stagescope.detect.transitions import transitions
from validation.transition_curves import EVENTS, KINDS, SPIKES, Synthetic, synthetic

FIRST, EACH = int(os.environ.get("FIRST", "910000")), int(os.environ.get("EACH", "40"))
"""First seed, and curves of each kind."""
NEAR = 0.25
"""A transition is true if a planted one lies in its interval, or within this distance in ln time."""
SHIFT = 1e5


def main() -> bool:
    began = time.process_time()
    rows, reported, true, spikes, shifted = [], 0, 0, 0, 0
    for kind in KINDS:
        curves = [synthetic(kind, FIRST + n) for n in range(EACH)]
        answers = [transitions(each.time, each.curve) for each in curves]
        reported += sum(map(len, answers))
        true += sum(
            _true(each, answer) for curve, found in zip(curves, answers, strict=True) for answer in found for each in [curve]
        )
        alarms = sum(any(not _true(curve, each) for each in found) for curve, found in zip(curves, answers, strict=True))
        spikes += alarms if kind in SPIKES else 0
        hits = [_hit(curve, found, k) for curve, found in zip(curves, answers, strict=True) for k in range(len(curve.centres))]
        good = [each for each in hits if each is not None]
        ratios = [each[1] for each in good if each[1] is not None]
        rows.append((kind, alarms, len(hits), len(good), sum(each[0] for each in good), ratios))
        moved = transitions(SHIFT + curves[0].time, curves[0].curve)
        shifted += [round((each.t - SHIFT) / curves[0].time[-1], 6) for each in moved] != [
            round(each.t / curves[0].time[-1], 6) for each in answers[0]
        ]
    print(f"{'kind':<22} {'false':>6} {'planted':>8} {'recall':>7} {'covered':>8}  change reported / true: median, worst")
    holds = True
    for kind, alarms, planted, found, covered, ratios in rows:
        share = covered / found if found else np.nan
        sizes = f"{np.median(ratios):.3f} {max(ratios, key=lambda r: abs(np.log(max(r, 1e-9)))):.3f}" if ratios else ""
        print(f"{kind:<22} {alarms:>6} {planted:>8} {found / planted if planted else np.nan:>7.2f} {share:>8.3f}  {sizes}")
        holds &= kind not in EVENTS or share >= 0.9
    precision, alarm = true / max(reported, 1), spikes / (EACH * len(SPIKES))
    print(
        f"precision {precision:.3f} of {reported}; spikes as transitions {alarm:.3f}; moved by a shift {shifted} of {len(KINDS)}"
    )
    print(f"{1000 * (time.process_time() - began) / EACH / len(KINDS):.0f} ms of CPU a curve")
    return holds and precision >= 0.97 and alarm <= 0.03 and not shifted


def _true(curve: Synthetic, found) -> bool:
    return any(found.low <= at <= found.high or abs(np.log(max(found.t, 1e-300) / at)) < NEAR for at in curve.centres)


def _hit(curve: Synthetic, answers, k: int) -> tuple[bool, float | None] | None:
    """Whether the interval of the nearest transition holds the planted one, and its change over the true one; None if missed."""
    at = curve.centres[k]
    near = [each for each in answers if abs(np.log(max(each.t, 1e-300) / at)) < NEAR or each.low <= at <= each.high]
    if not near:
        return None
    best = min(near, key=lambda each: abs(np.log(max(each.t, 1e-300) / at)))
    ratio = best.amplitude / curve.heights[k] if curve.heights else None
    return bool(best.low <= at <= best.high), ratio
