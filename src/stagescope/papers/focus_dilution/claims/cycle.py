"""Focus and dilution: claims on the order of the openings, on dilution, and on whether the cycle repeats."""

from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from stagescope.claims.claim import claim
from stagescope.claims.comparison import Comparison, Regime
from stagescope.detect.events import first_crossing
from stagescope.papers.focus_dilution.claims.second_order import MARKS, redistribution
from stagescope.papers.focus_dilution.evidence import Evidence, beside, reaching_second, small_flow, visited
from stagescope.papers.focus_dilution.process import LazyChain
from stagescope.papers.focus_dilution.stages import RowCycle, row_cycles
from stagescope.papers.focus_dilution.stages.rows import row_turns


@dataclass(frozen=True)
class CycleTolerances:
    """How far the stages of the first cycle may be from what is predicted."""

    meeting: float = 0.02  # of the time: a row's return to its base and the zero of its embedding
    smallest: float = 1e-6  # gain that a row must have, far above the error of a flow (1e-10), so that small rows count too
    clear: float = 0.5  # a row clearly dilutes or not if second order moves it at least half as fast as the fastest
    floor: float = 0.01  # a run is over when its loss is this share of H(pi) - H above its floor


LIMITS = CycleTolerances()


def _order(evidence: Evidence) -> Comparison:
    """Attention opens at Q1, or at its onset where a weakly driven chain never reaches .1."""
    first, second = evidence.embeddings[0], evidence.second
    opened = min((t for t in (evidence.attentions[0], evidence.onset) if t is not None), default=None)
    if first is None or second is None or opened is None:
        missing = "E1" if first is None else "E2" if second is None else "the opening of attention"
        return Comparison("E1 < onset of attention < E2", None, "order", None, f"{missing} was not reached", unit="t")
    shown = f"E1 {first:.4g}, attention {opened:.4g}, E2 {second:.4g}"
    return Comparison("E1 < onset of attention < E2", shown, "order", first < opened < second, shown, unit="t")


def _cycles(evidence: Evidence) -> list[RowCycle]:
    """Focus and dilution of every rare row between E1 and E2, however small its gain."""
    curves = evidence.curves
    first, second = evidence.embeddings[0], evidence.second
    assert first is not None
    window = (first, float(curves.time[-1]) if second is None else second)
    base, attention = float(curves.pi[curves.frequent]), curves.on_frequent
    return row_cycles(curves.time, attention, base, window, float(np.sign(evidence.rate)), curves.frequent, LIMITS.smallest)


def _gamma(evidence: Evidence, row: int) -> np.ndarray:
    """The embedding of a row along the condensed direction, in every frame."""
    curves, first = evidence.curves, evidence.embeddings[0]
    assert first is not None
    return (
        curves.params["W0"][:, row]
        @ np.linalg.svd(curves.params["W0"][int(np.searchsorted(curves.time, first))], full_matrices=False)[2][0]
    )


def _driven(evidence: Evidence) -> np.ndarray | None:
    """By how much second order changes the embedding of each row along the condensed direction, relative to the largest.

    Negative is towards zero. Read where D is smallest above the start; None where D does not come so far.
    """
    visit = evidence.visit(1, 0)
    if visit is None or evidence.linear is None:
        return None
    after = np.flatnonzero(np.abs(redistribution(evidence, visit)) >= MARKS[0])
    if not after.size:
        return None
    w = evidence.linear.second_order(visit.trajectory.at(int(after[0])))["W0"] @ visit.place.S[0]
    share = w / (evidence.curves.params["W0"][visit.frame] @ visit.place.S[0])
    return share / np.abs(share).max()


def _dilution(evidence: Evidence) -> Comparison:
    """Rows that should be diluted before E2, those whose embedding second order moves towards zero, and rows that were.

    A row that returns to its base must do so when its embedding crosses zero. A mismatch in a row that second order moves
    less than half as fast as the fastest decides nothing: its time is that of the others, and it may need twice as long.
    """
    second, driven, unit = evidence.second, _driven(evidence), "rows"
    if second is None or driven is None or evidence.embeddings[0] is None:
        return Comparison("-", None, 0.0, None, "E2 was not reached, or the embeddings did not move", unit=unit)
    cycles = _cycles(evidence)
    gone = {cycle.row for cycle in cycles if cycle.half is not None and cycle.half <= second}
    should = {cycle.row for cycle in cycles if driven[cycle.row] < 0}
    wrong = sorted(gone ^ should)
    meetings = [_meeting(evidence, cycle, second) for cycle in cycles]
    gap, doubt = (max((each[i] for each in meetings), default=0.0) for i in (0, 1))
    reason = f"{len(should & gone)} of {len(should)} rows that second order moves towards zero lost half of their gain before E2"
    reason += f", and {len(gone - should)} of {len(cycles) - len(should)} others"
    reason += f"; rows return to their base within {gap:.2%} of the time at which gamma_i crosses zero"
    clear = [row for row in wrong if abs(driven[row]) >= LIMITS.clear]
    holds = False if clear or gap - doubt > LIMITS.meeting else None if wrong or gap + doubt > LIMITS.meeting else True
    reason += f"; second order moves {_named(wrong)} too slowly to decide" if holds is None and wrong else ""
    reason += f"; a second direction moves these times by up to {doubt:.1%}" if holds is None and doubt >= 0.0005 else ""
    return Comparison(float(len(should)), float(len(gone)), 0.0, holds, reason, unit=unit)


def _named(rows: list[int]) -> str:
    """Such as "row 1" or "rows 1, 2"."""
    return f"row{'s' if len(rows) != 1 else ''} {', '.join(map(str, rows))}"


def _meeting(evidence: Evidence, cycle: RowCycle, second: float) -> tuple[float, float]:
    """The time between a row's return to its base and the zero of its embedding, relative, and its error; 0 without a return.

    The error: a second direction of size sv_2(W0) moves the return by about sv_2 over the speed of the embedding.
    """
    if cycle.focus is None or cycle.complete is None or cycle.complete > second:
        return 0.0, 0.0
    time, gamma = evidence.curves.time, _gamma(evidence, cycle.row)
    sign = float(np.sign(np.interp(cycle.focus, time, gamma)))
    zero = first_crossing(time, sign * gamma, 0.0, rising=False, after=cycle.focus)
    if zero is None:
        return 1.0, 0.0
    speed = abs(float(np.interp(zero, time, np.gradient(gamma, time))))
    moved = float(np.interp(zero, time, evidence.curves.embedding_values[:, 1])) / max(speed, np.finfo(float).tiny)
    return abs(cycle.complete - zero) / cycle.complete, moved / cycle.complete


def _recurrence(evidence: Evidence) -> Comparison:
    """Rows with a rise and then a fall (away from the frequent token first where c < 0) after E2, each by more than .03."""
    curves, sign, unit = evidence.curves, float(np.sign(evidence.rate)), "rows"
    if evidence.second is None:
        return Comparison(1.0, None, "at least", None, "E2 was not reached", unit=unit)
    attention = curves.on_frequent
    found = list(row_turns(curves.time, attention, evidence.embeddings[0], evidence.second, sign, curves.frequent))
    again = []
    for row in range(len(curves.pi)):
        moves = [turn.rising == (sign > 0) for at, turn in found if at == row]
        if any(one and not other for one, other in pairwise(moves)):
            again.append(row)
    end, over = float(curves.time[-1]), _over(evidence)
    verb = "focus and dilute" if len(again) > 1 else "focuses and dilutes"
    reason = f"{_named(again) if again else 'no row'} {verb} again between E2 and {evidence.run.clock} = {end:.4g}"
    holds = True if again else False if over else None
    reason += "" if holds is not None else "; the loss still falls, so a second cycle may come"
    return Comparison(1.0, float(len(again)), "at least", holds, reason, unit=unit)


def _over(evidence: Evidence) -> bool:
    """Whether nothing is left to learn: the loss is at the entropy rate, relative to what the context can tell."""
    chain = evidence.law.process
    floor, unigram = chain.floor(), chain.unigram_loss()
    final = evidence.law.value({name: block[-1] for name, block in evidence.curves.params.items()})
    return final - floor <= LIMITS.floor * (unigram - floor)


def _both(evidence: Evidence) -> Regime:
    """The paper's setting: a flow from a small start on a lazy chain that stays at (1,0) and lasts until E2."""
    found = visited(1, 0)(evidence)
    if found.holds and not isinstance(evidence.law.process, LazyChain):
        return Regime(False, "not a lazy chain: on others rows keep their focus beyond E2 more often than not")
    found = reaching_second(evidence) if found.holds else found
    driven = _driven(evidence) if found.holds else None
    if driven is not None and not any(driven[cycle.row] < 0 for cycle in _cycles(evidence)):
        return Regime(False, "second order moves no rare row towards zero: there is nothing to dilute")
    return found


def _diluted_before(evidence: Evidence) -> Regime:
    """E2 was reached, some rare row had focused and lost half of its gain by then, and a third direction can still open.

    Logits have d - 1 directions, since a constant does not change them: with three tokens all are open at E2.
    """
    base, model = reaching_second(evidence), evidence.law.model
    if not base.holds:
        return base
    directions = min(model.width, model.vocab - 1)
    if directions < 3:
        return Regime(False, f"{directions} embedding directions are possible: after E2 none is left to open")
    second = evidence.second or 0.0
    cycles = [cycle for cycle in _cycles(evidence) if cycle.half is not None and cycle.half <= second]
    return base if cycles else Regime(False, "no rare row focused and lost half of its gain before E2")


CLAIMS = (
    claim(
        "FD:dilution",
        "Rows whose embedding second order moves towards zero are diluted before E2, at its zero; the others are not",
        _both,
        _dilution,
        "focus*",
        "dilution*",
        kind="prediction",
        rules=3,
        elsewhere=beside,
    ),
    claim(
        "FD:stages",
        "Embedding, attention, embedding open in this order",
        small_flow,
        _order,
        "E1",
        "E2",
        kind="pattern",
        rules=2,
        elsewhere=beside,
    ),
    claim(
        "FD:recurrence",
        "After E2 the cycle repeats: some row focuses and dilutes again",
        _diluted_before,
        _recurrence,
        "E2",
        "end",
        kind="pattern",
        rules=4,
        elsewhere=beside,
    ),
)
