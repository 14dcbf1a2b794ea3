"""Read a run: stages and claims, chosen from a written table by what the run says it is."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from stagescope.detect import focus_dilution as focus_dilution_stages
from stagescope.detect import scan_snap as scan_snap_stages
from stagescope.detect.stage import Stages
from stagescope.dynamics.record import AtTimes, Every, LogSpaced
from stagescope.errors import InputError
from stagescope.observables.pairwise import ClassAttention, class_attention, law_of
from stagescope.observables.token import TokenCurves, token_curves
from stagescope.reopen import as_flow, replay, variant
from stagescope.runs.run import Run
from stagescope.theory import focus_dilution as focus_dilution_theory
from stagescope.theory import scan_snap as scan_snap_theory
from stagescope.theory.focus_dilution_forms import attention_rate
from stagescope.theory.ledger import Ledger
from stagescope.theory.scan_snap_evidence import MOVED, Beside, Evidence

FINE_MOVE, FINE_SPEED = 0.02, 0.05
"""A run is read as it is if between frames attention moves less than 2 % and its speed changes less than 5 % of its peak."""
DENSE_FRAMES, FRAMES_PER_DECADE = 3000, 400
NAMED = 3
FINE_GAP = 1 / 900
EARLY_LEVEL, EARLY_FRAMES = 0.1, 50
"""A focus-dilution run is read as it is if no two frames are further apart than this share of its length and there are
enough of them before the first embedding direction opens."""


@dataclass(frozen=True)
class Rules:
    """How to read runs of one kind."""

    stages: Callable[[Run], Stages]
    check: Callable[[Run], Ledger]


def stages(run: Run) -> Stages:
    """Events and stages of a run; an event that was not reached is None."""
    return _rules(run).stages(run)


def check(run: Run) -> Ledger:
    """The ledger: every claim that speaks of this kind of run, with its verdict."""
    return _rules(run).check(run)


def dense_attention(run: Run) -> ClassAttention:
    """Class attention at a resolution that does not depend on how densely the run was recorded.

    A run recorded too coarsely is replayed from its first frame, which is exact: the spec and the frame decide it.
    """
    curves = class_attention(run)
    if _fine(curves) or run.frames < 2:
        return curves
    if run.clock == "t" and "step" not in run.series:
        return class_attention(replay(run, _natural_grid(run)))
    if np.all(np.diff(run.step) == 1):
        return curves
    last = int(run.step[-1])
    return class_attention(replay(run, Every() if last <= DENSE_FRAMES else LogSpaced(frames=DENSE_FRAMES)))


def _natural_grid(run: Run) -> LogSpaced:
    """Frames from well before the first thing that can happen, K / rate, to the end, equally many for every decade."""
    last = float(run.t[-1])
    rates = [rate for rate in (1.0, *run.spec["dynamics"]["rates"].values()) if rate > 0]
    first = min(1e-4 * last, 1e-3 / max(rates))
    return LogSpaced(frames=max(100, int(FRAMES_PER_DECADE * np.log10(last / first))), first=first)


def _fine(curves: ClassAttention) -> bool:
    moved = curves.mean(np.abs(np.diff(curves.attention, axis=0)).sum(axis=2))
    speed = curves.mean(curves.speed)
    changed = np.abs(np.diff(speed)) / (speed.max() or 1.0)
    return bool(np.max(moved, initial=0) < FINE_MOVE and np.max(changed, initial=0) < FINE_SPEED)


def _scan_snap_stages(run: Run) -> Stages:
    curves = dense_attention(run)
    named = ("common_mass", "top_distinct", "top_common", "speed")
    averaged = {name: curves.mean(getattr(curves, name)) for name in named}
    moved = bool(np.max(np.abs(curves.scores - curves.scores[:1])) > MOVED)
    facts = {"moved": moved, "winners": _winners(run, curves), "clock": run.clock, "status": run.status}
    return scan_snap_stages.detect(curves.time, **averaged, **facts)


def _winners(run: Run, curves: ClassAttention) -> str:
    """The strongest distinct token of each class at the end, by name, for the first few classes."""
    law = law_of(run)
    tops = np.argmax(np.where(curves.distinct, curves.attention[-1], 0.0), axis=1)[:NAMED]
    names = [law.process.label(law.model.keys[column]) for column in tops]
    more = ", ..." if len(curves.prior) > NAMED else ""
    return f"strongest tokens {', '.join(names)}{more}"


def _scan_snap_check(run: Run) -> Ledger:
    beside = Beside(
        rates=lambda rates, until: variant(run, rates, until),
        flow=lambda until: as_flow(run, until),
    )
    evidence = Evidence.of(run, dense_attention(run), beside if run.frames > 1 else None)
    return Ledger.of(run, scan_snap_theory.CLAIMS, evidence)


def dense_token(run: Run) -> TokenCurves:
    """Curves of a focus-dilution run, replayed on a grid that is fine in time and in log-time unless it is one already."""
    curves, last = token_curves(run), float(run.time[-1])
    if run.spec["dynamics"]["type"] != "GradientFlow" or run.frames < 2:
        return curves
    early = int(np.sum(curves.embedding_values[:, 0] < EARLY_LEVEL))
    if np.diff(run.time).max() <= FINE_GAP * last and early >= EARLY_FRAMES:
        return curves
    grid = np.union1d(np.linspace(0, last, 2001), np.geomspace(1e-4 * last, last, 500))
    return token_curves(replay(run, AtTimes(at=tuple(grid[1:].tolist()))))


def _focus_dilution_stages(run: Run) -> Stages:
    curves = dense_token(run)
    law = curves.law
    sign = float(np.sign(attention_rate(curves.pi, law.process.transition, law.model.scale)))
    return focus_dilution_stages.detect(
        curves.time,
        curves.embedding_values,
        curves.score_values,
        curves.key_values,
        curves.attention[:, :, curves.frequent],
        curves.pi,
        sign,
        clock=run.clock,
        status=run.status,
    )


def _focus_dilution_check(run: Run) -> Ledger:
    evidence = focus_dilution_theory.Evidence(run, dense_token(run))
    return Ledger.of(run, focus_dilution_theory.CLAIMS, evidence)


_FOCUS_DILUTION = Rules(_focus_dilution_stages, _focus_dilution_check)
_SCAN_SNAP = Rules(_scan_snap_stages, _scan_snap_check)
TABLE: dict[str, Rules] = {
    "TokenPopulation": _FOCUS_DILUTION,
    "PairwisePopulation": _SCAN_SNAP,
    "PairwisePinv": _SCAN_SNAP,
    "PairwiseSampled": _SCAN_SNAP,
}


def _rules(run: Run) -> Rules:
    kind: Any = run.spec["field"]["type"]
    if kind not in TABLE:
        known = ", ".join(TABLE)
        raise InputError(f"no stages or claims are written for runs of {kind!r}; they are for: {known}")
    return TABLE[kind]
