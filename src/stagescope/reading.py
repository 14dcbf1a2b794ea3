"""Read a run: stages and claims, chosen from a written table by what the run says it is."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from stagescope import reading_text_focus as text_focus
from stagescope import reading_text_snap as text_snap
from stagescope.beside import beside, clock
from stagescope.detect import focus_dilution as focus_dilution_stages
from stagescope.detect import incremental_stages
from stagescope.detect import scan_snap as scan_snap_stages
from stagescope.detect import text_incremental as text_incremental_stages
from stagescope.detect.focus_dilution import Visit
from stagescope.detect.incremental import no_ladder, transitions
from stagescope.detect.stage import Stages
from stagescope.dynamics.evolve import evolve
from stagescope.dynamics.flow import GradientFlow
from stagescope.dynamics.record import AtTimes, Every, LogSpaced, Uniform
from stagescope.errors import InputError, StagescopeError
from stagescope.landscape.ladder import Ladder, Rung, field_ladder, search_cost
from stagescope.landscape.token_ladder import rung as token_rung
from stagescope.objectives.field import Field
from stagescope.objectives.objective import Objective
from stagescope.objectives.token import TokenPopulation
from stagescope.observables.lags import LagCurves, lag_curves
from stagescope.observables.learned import learned_lags, learned_places
from stagescope.observables.pairwise import ClassAttention, class_attention, law_of
from stagescope.observables.regression import HeadCurves, head_curves
from stagescope.observables.text_lags import TextLagCurves, text_lag_curves
from stagescope.observables.token import TokenCurves, token_curves
from stagescope.reopen import as_flow, field_of, replay, variant
from stagescope.runs.run import Run
from stagescope.theory import focus_dilution as focus_dilution_theory
from stagescope.theory import incremental as incremental_theory
from stagescope.theory import scan_snap as scan_snap_theory
from stagescope.theory import text_incremental as text_incremental_theory
from stagescope.theory.focus_dilution_evidence import Evidence as TokenEvidence
from stagescope.theory.focus_dilution_forms import attention_rate
from stagescope.theory.incremental_evidence import BEFORE, Task
from stagescope.theory.incremental_evidence import Evidence as HeadsEvidence
from stagescope.theory.incremental_forms import RegressionForms
from stagescope.theory.ledger import Ledger
from stagescope.theory.scan_snap_evidence import MOVED, Beside, Evidence

FINE_MOVE, FINE_SPEED = 0.02, 0.05
"""A run is read as it is if between frames attention moves less than 2 % and its speed changes less than 5 % of its peak."""
DENSE_FRAMES, FRAMES_PER_DECADE = 3000, 400
NAMED = 3
LONGEST_FRAME, SHORTEST_FRAME, NEXT_FRAME = 1e-3, 1e-4, 0.03
"""Frames of a focus-dilution run are no further apart than 3 % of the time passed, within these shares of its length."""
COARSE, HEAD_FRAMES = 0.1, 800
"""A run of heads is replayed where its loss falls by more than this share of its ladder between two frames."""
FINE_PIECES, REPLAYS, MOST_FRAMES, MOST_ENTRIES = 2.0, 3, 6000, 4e7
"""It is replayed while a stretch between frames should be cut into more pieces than this, a few times, within memory."""


@dataclass(frozen=True)
class Rules:
    """How to read runs of one kind; a ladder of its own where the model has a reduced family."""

    stages: Callable[[Run], Stages]
    check: Callable[[Run], Ledger] | None
    ladder: Callable[[Run], Ladder] | None = None


def stages(run: Run) -> Stages:
    """Events and stages of a run; an event that was not reached is None."""
    return _rules(run).stages(run)


def check(run: Run) -> Ledger:
    """The ledger: every claim that speaks of this kind of run, with its verdict."""
    judge = _rules(run).check
    if judge is None:
        raise InputError(f"no claims are written for runs of {run.spec['field']['type']!r}; `stages` reads them")
    return judge(run)


def saddle_ladder(run: Run, what: Objective | Field | None = None, progress: bool | None = False) -> Ladder:
    """The critical points a run passed, what opens at each, and when it was and should have been left.

    Runs of TokenAttention at equal rates use the small models (r, rq) inside it. Any other run, also of your own objective,
    which then is given as `what`, is searched for critical points where it is slow: `progress` shows how far that is.
    """
    own = _own_ladder(run) if what is None else None
    return own(run) if own is not None else field_ladder(run, field_of(run.spec, what), progress=progress)


def ladder_cost(run: Run) -> tuple[float, str]:
    """Seconds that the search for critical points of a run may take, and the sentence that says what is searched."""
    return (0.0, "") if _own_ladder(run) is not None else search_cost(run, field_of(run.spec))


def _own_ladder(run: Run) -> Callable[[Run], Ladder] | None:
    """The ladder by small models, where the model of a run has them."""
    rules = TABLE.get(run.spec["field"]["type"])
    return rules.ladder if rules is not None and set(run.spec["dynamics"]["rates"].values()) <= {1.0} else None


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
    """Curves of a focus-dilution run at a resolution that does not depend on how densely it was recorded.

    A run is replayed, which is exact, until little moves between two frames, be it a flow or a descent.
    """
    seen, curves = run, token_curves(run)
    for _ in range(REPLAYS):
        position = seen.step.astype(float) if "step" in seen.series else seen.t
        pieces = _pieces(position, curves)
        if np.max(pieces, initial=1) <= FINE_PIECES:
            break
        stretches = zip(position[:-1], position[1:], np.ceil(pieces).astype(int), strict=True)
        wanted = np.concatenate([np.linspace(a, b, n + 1) for a, b, n in stretches])
        wanted = np.unique(np.rint(wanted) if "step" in seen.series else wanted)
        if len(wanted) == len(position):
            break
        seen = replay(run, AtTimes(at=tuple(wanted.tolist())))
        curves = token_curves(seen)
    return curves


def _pieces(position: np.ndarray, curves: TokenCurves) -> np.ndarray:
    """Into how many pieces to cut each stretch between frames, so that in each, short in time or log-time, little moves."""
    length, last = np.diff(position), position[-1]
    short = np.clip(NEXT_FRAME * position[1:], SHORTEST_FRAME * last, LONGEST_FRAME * last)
    pieces = np.maximum(1.0, np.maximum(curves.moves(), length / short))
    most = min(MOST_FRAMES, MOST_ENTRIES / curves.attention[0].size)
    return np.maximum(1.0, pieces * min(1.0, most / max(1.0, float(pieces.sum()))))


def _focus_dilution_stages(run: Run) -> Stages:
    curves = dense_token(run)
    law = curves.law
    sign = float(np.sign(attention_rate(curves.pi, law.process.transition, law.model.scale)))
    tolerance = float(run.spec["dynamics"].get("rtol", 0.0))
    return focus_dilution_stages.detect(curves, sign, tolerance=tolerance, clock=run.clock, status=run.status)


def _focus_dilution_check(run: Run) -> Ledger:
    evidence = TokenEvidence(run, dense_token(run), lambda factor, until: dense_token(_scaled_start(run, factor, until)))
    return Ledger.of(run, focus_dilution_theory.CLAIMS, evidence)


def _scaled_start(run: Run, factor: float, until: float) -> Run:
    start = {name: factor * block for name, block in run.at(0).items()}
    made = evolve(field_of(run.spec), start, GradientFlow(), until=until, record=Uniform(frames=1000), progress=False)
    if not made.done:
        raise StagescopeError(f"the flow from a start scaled by {factor:g} ended {made.status}: {made.reason}")
    return made


def _token_rung(evidence: TokenEvidence, visit: Visit) -> Rung:
    """One rung; where it cannot be computed it says why, and the others stand."""
    try:
        return token_rung(evidence.at(visit))
    except StagescopeError as error:
        note = f"not computed: {error}"
        return Rung(visit.label, visit.start, residual=math.inf, distance=math.inf, loss=None, opening=None, rates=(), note=note)


def _focus_dilution_ladder(run: Run) -> Ladder:
    evidence = TokenEvidence(run, dense_token(run))
    rungs = [_token_rung(evidence, visit) for visit in evidence.visits]
    if not isinstance(evidence.curves.law, TokenPopulation):
        rungs = [rung.noted("critical point and rates are those of infinitely long contexts") for rung in rungs]
    return Ladder(run.status, run.clock, tuple(rung.timeless() if run.clock != "t" else rung for rung in rungs))


_FOCUS_DILUTION = Rules(_focus_dilution_stages, _focus_dilution_check, _focus_dilution_ladder)


def _lag_heads(curves: LagCurves) -> incremental_stages.Heads:
    return incremental_stages.Heads(
        curves.time,
        curves.excess,
        curves.steps,
        curves.agreement,
        curves.contrast,
        curves.mass,
        nearest=lambda frame: int(np.argmin(curves.divergences(frame))),
    )


def _heads_stages(run: Run) -> Stages:
    return incremental_stages.detect(_lag_heads(lag_curves(run)), clock=run.clock, status=run.status)


def _heads_check(run: Run) -> Ledger:
    """The claims on a student of a lagged chain; runs beside it where it has them."""
    cheap = run.spec["field"]["type"] == "HeadsLoss"  # a replay costs as much as the run did
    seen = _dense_heads(run, lambda made: _lag_heads(lag_curves(made))) if cheap else run
    curves = lag_curves(seen)
    law, levels = curves.law, curves.levels
    known = law.fresh or law.labels == "soft"
    task = Task(
        law.process.importances,
        law.model.heads,
        span=max(map(len, law.process.groups)),
        parameters=len(law.process.groups) * law.process.vocab**2,
        disjoint=law.process.disjoint,
        targets=None if known else law.sequences * law.model.targets,
        fitted=levels.converged,
        predicts=True,
        errors=tuple(np.abs((levels.losses - levels.losses[-1]) - (levels.training - levels.training[-1])).tolist()),
    )
    evidence = HeadsEvidence(seen, _lag_heads(curves), task, learned_lags(curves), beside(seen), clock(seen))
    return incremental_theory.ledger(run, evidence)


def _regression_forms(curves: HeadCurves) -> RegressionForms:
    model = curves.model
    return RegressionForms(model.gains, model.positions, model.heads * model.copies, curves.mirror)


def _flow_heads(curves: HeadCurves) -> incremental_stages.Heads:
    parts = (curves.agreement, curves.contrast, curves.mass)
    return incremental_stages.Heads(curves.time, curves.loss, _regression_forms(curves).levels, *parts, nearest=lambda _: None)


def _regression_stages(run: Run) -> Stages:
    return incremental_stages.detect(_flow_heads(head_curves(run)), clock=run.clock, status=run.status)


def _regression_check(run: Run) -> Ledger:
    seen = _dense_heads(run, lambda made: _flow_heads(head_curves(made)))
    curves = head_curves(seen)
    forms = None if "batch" in seen.spec["field"] else _regression_forms(curves)
    task = Task(curves.model.gains, curves.model.heads, forms=forms)
    evidence = HeadsEvidence(seen, _flow_heads(curves), task, learned_places(curves), beside(seen), clock(seen))
    return incremental_theory.ledger(run, evidence)


def _dense_heads(run: Run, heads_of: Callable[[Run], incremental_stages.Heads]) -> Run:
    """A run, replayed from its first frame where it was recorded so coarsely that a transition falls between two frames."""
    heads = heads_of(run)
    if no_ladder(heads.levels) is not None:  # there are no transitions to resolve; the claims say so
        return run
    first = transitions(heads.time, heads.loss, heads.levels)[0]
    jump = np.max(np.abs(np.diff(heads.loss)), initial=0) / (heads.levels[0] - heads.levels[-1])
    early = run.frames if first is None else int(np.sum(heads.time < first))
    if run.frames < 2 or (jump <= COARSE and early >= BEFORE):
        return run
    return replay(run, LogSpaced(frames=HEAD_FRAMES, first=None if "step" in run.series else float(run.t[-1]) * 1e-5))


def _text_heads(curves: TextLagCurves) -> text_incremental_stages.LagHeads:
    return text_incremental_stages.LagHeads(curves.time, curves.loss, curves.mass, curves.mass_agreement)


def _text_incremental_stages(run: Run) -> Stages:
    return text_incremental_stages.detect(_text_heads(text_lag_curves(run)), clock=run.clock, status=run.status)


def _text_incremental_check(run: Run) -> Ledger:
    curves = text_lag_curves(run)
    evidence = text_incremental_theory.Evidence(run, _text_heads(curves), curves.information, curves.levels)
    return Ledger.of(run, text_incremental_theory.CLAIMS, evidence)


_HEADS = Rules(_heads_stages, _heads_check)
_REGRESSION = Rules(_regression_stages, _regression_check)
_SCAN_SNAP = Rules(_scan_snap_stages, _scan_snap_check)
_TEXT_SNAP = Rules(text_snap.stages, text_snap.check, text_snap.ladder)
_TEXT_FOCUS = Rules(text_focus.stages, text_focus.check, text_focus.ladder)
TABLE: dict[str, Rules] = {
    "TokenPopulation": _FOCUS_DILUTION,
    "TokenFinite": _FOCUS_DILUTION,
    "TokenSampled": _FOCUS_DILUTION,
    "TextCounts": _TEXT_FOCUS,
    "TextCausal": _TEXT_FOCUS,
    "TextVariant": _TEXT_FOCUS,
    "PairwiseWindows": _TEXT_SNAP,
    "TextTransformerLoss": _TEXT_SNAP,
    "HeadsLoss": _HEADS,
    "TextHeads": Rules(_text_incremental_stages, _text_incremental_check),
    "ContentLoss": _HEADS,
    "TransformerLoss": _HEADS,
    "RegressionLoss": _REGRESSION,
    "MirrorFlow": _REGRESSION,
    "RegressionSampled": _REGRESSION,
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
