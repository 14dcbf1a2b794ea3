"""What focus and dilution says of a transformer that somebody trains: the forms that are not confirmed where nothing is learned.

The evidence is the reading of a watched run (`readings/watched.py`). All claims ask for an open gate: the model must have learned
from context. Bars and their controls are in docs/watched-claims.md.
"""

from typing import Any

import numpy as np

from stagescope.claims.claim import Claim, ClaimTable
from stagescope.claims.comparison import Comparison, Regime, at_least, not_applicable
from stagescope.papers.focus_dilution.limits import LIMITS
from stagescope.papers.focus_dilution.study import WORDS
from stagescope.watching.events import first_above, moves

claim = ClaimTable(WORDS.claims)


def _regime(evidence: Any, *needed: str) -> Regime:
    series = evidence.run.series
    applies = all(name in series and np.isfinite(np.asarray(series[name][-1])).any() for name in needed)
    if not applies:
        return not_applicable(f"asks for {' and '.join(needed)}, which were not recorded")
    return Regime(evidence.gate.open, evidence.gate.sentence)


def _reopening(run: Any) -> tuple[float, float]:
    """Rank of the embedding at the end over its minimum, and half of the 95 % interval from the noise between records."""
    rank = np.asarray(run.series["embedding_rank"], dtype=float)
    rank = rank[np.isfinite(rank)]
    noise = float(np.std(np.diff(rank[-20:], 2))) / np.sqrt(6) if len(rank) > 4 else 0.0  # second differences of white noise
    return float(rank[-1] / rank.min()), 1.96 * noise / float(rank.min())


@claim("FD:watched-rank", lambda evidence: _regime(evidence, "embedding_rank"))
def _reopens(evidence: Any) -> Comparison:
    value, error = _reopening(evidence.run)
    rank = np.asarray(evidence.run.series["embedding_rank"], dtype=float)
    reason = f"the effective rank goes from {rank[0]:.1f} to {np.nanmin(rank):.1f} and ends at {rank[-1]:.1f}"
    control = None if evidence.control is None else _reopening(evidence.control.run)[0]
    if np.nanmin(rank) > LIMITS.condensed * rank[0]:
        sentence = f"{reason}: it never falls to {LIMITS.condensed:g} of its start"
        return Comparison(LIMITS.margin, value, "at least", False, sentence, None, error, "of the smallest rank")
    return at_least(value, LIMITS.margin, reason, measured_error=error, control=control, unit="of the smallest rank")


def times(run: Any) -> dict[str, int | None]:
    """Records of E1, Q1 and E2: the first and second direction of the embedding have grown, attention has moved."""
    values = np.asarray(run.series["embedding_values"], dtype=float)
    away = np.linalg.norm(moves(run), axis=-1).reshape(run.frames, -1)
    grown = LIMITS.margin * values[0, 0]
    return {
        "E1": first_above(values[:, 0], grown),
        "Q1": first_above(np.nanmax(away, axis=1), LIMITS.attention),
        "E2": first_above(values[:, 1], grown),
    }


def _in_order(run: Any) -> bool | None:
    """Whether E1 comes before Q1 and Q1 before E2, each by more than one record; None where the run ended too early."""
    events = times(run)
    if events["E1"] is None or (events["Q1"] is None and events["E2"] is None):
        return None
    if events["Q1"] is None or events["Q1"] <= events["E1"]:
        return False
    if events["E2"] is None:
        return None
    return events["E2"] > events["Q1"] if abs(events["E2"] - events["Q1"]) > 1 else None


@claim("FD:watched-order", lambda evidence: _regime(evidence, "embedding_values", "sketch"))
def _ordered(evidence: Any) -> Comparison:
    run = evidence.run
    steps = {name: "not reached" if record is None else f"{run.time[record]:.5g}" for name, record in times(run).items()}
    holds, reason = _in_order(run), ", ".join(f"{name} at {step}" for name, step in steps.items())
    if evidence.control is not None:
        in_order = _in_order(evidence.control.run)
        reason += f"; the control is {'in' if in_order else 'not in'} this order"
        holds = None if holds and in_order else holds
    order = sorted((record, name) for name, record in times(run).items() if record is not None)
    return Comparison("E1 < Q1 < E2", " < ".join(name for _, name in order), "more than one record apart", holds, reason)


def watched_claims() -> tuple[Claim, ...]:
    return claim.claims
