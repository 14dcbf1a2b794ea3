"""The detector of transitions on curves whose events are known: precision, recall, coverage, spikes, shifts of the clock.

python -m validation transitions

Two generators that know nothing of each other: kinds of curves (`transition_curves`), and drops by depth over the noise and
width in records (`transition_drops`). FIRST and EACH in the environment choose seeds.
"""

import os
import time
from itertools import pairwise

import numpy as np

from stagescope.detect.transitions import transitions
from validation import transition_drops as drops
from validation.transition_curves import EVENTS, KINDS, SPIKES, Synthetic, synthetic

FIRST, EACH = int(os.environ.get("FIRST", "910000")), int(os.environ.get("EACH", "40"))
"""First seed, and curves of each kind."""
NEAR = 0.25
"""A transition is true if a planted one lies in its interval, or within this distance in ln time."""
SHIFT = 1e5


DEPTHS, WIDTHS = (3, 5, 10, 20, 50, 200, np.inf), (0, 2, 5, 10, 30, np.inf)


def main() -> bool:
    return all([by_kind(), by_depth()])


def by_depth() -> bool:
    """Drops by depth and width: what is promised is found, and little else is reported."""
    reported, true, alarms, rows = 0, 0, dict.fromkeys(drops.FAMILIES, 0), []
    for family in drops.FAMILIES:
        for seed in range(FIRST, FIRST + EACH * (6 if family == "drop" else 2)):
            curve = drops.drawn(family, seed)
            left = list(transitions(curve.time, curve.values))
            reported += len(left)
            for planted in curve.planted:
                place = int(np.clip(np.searchsorted(curve.time, planted.centre), 1, len(curve.time) - 1))
                gap = curve.time[place] - curve.time[place - 1]
                near = [e for e in left if min(e.low, e.start - gap) <= planted.centre <= max(e.high, e.stop + gap)]
                best = min(near, key=lambda e: abs(e.t - planted.centre), default=None)
                rows.append((planted, best))
                if best is not None:
                    left.remove(best)
                    true += 1
            alarms[family] += bool(left)
    promised = [(planted, best) for planted, best in rows if planted.promised]
    print(f"{'promised':<18} {'planted':>8} {'recall':>7} {'covered':>8}")
    holds = True
    for kind in (*drops.KINDS, "all"):
        of_kind = [(planted, best) for planted, best in promised if kind in (planted.kind, "all")]
        hits = [best.low <= planted.centre <= best.high for planted, best in of_kind if best is not None]
        recall, share = len(hits) / max(len(of_kind), 1), np.mean(hits)
        print(f"{kind:<18} {len(of_kind):>8} {recall:>7.3f} {share:>8.3f}")
        holds &= share >= 0.9 and (kind != "all" or recall >= 0.9)
    print("recall by depth over the noise (rows) and records between 15 % and 85 % (columns), of changes above 6 % of the range")
    print(f"{'':<8}" + "".join(f"{f'{low:g}-{high:g}':>12}" for low, high in pairwise(WIDTHS)))
    for low, high in pairwise(DEPTHS):
        deep = [(p, best) for p, best in rows if low <= p.depth < high and p.share >= 0.06]
        cells = [[best is not None for p, best in deep if least <= p.width < most] for least, most in pairwise(WIDTHS)]
        print(f"{f'{low:g}-{high:g}':<8}" + "".join(f"{np.mean(c) if c else np.nan:>7.2f} {len(c):>4}" for c in cells))
    precision = true / max(reported, 1)
    print(f"precision {precision:.3f} of {reported}; curves with a false one: {alarms}", flush=True)
    return bool(holds and precision >= 0.97 and alarms["spike"] <= 0.03 * 2 * EACH)


def by_kind() -> bool:
    """Kinds of curves: precision, recall and coverage by kind, spikes, shifts of the clock."""
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
