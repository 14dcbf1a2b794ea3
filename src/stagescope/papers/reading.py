"""Read a run: stages and claims, chosen from a written table by what the run says it is."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from stagescope.claims.ledger import Ledger
from stagescope.detect.stage import Stages
from stagescope.errors import InputError
from stagescope.fields.field import Field
from stagescope.fields.objective import Objective
from stagescope.landscape.ladder import Ladder, field_ladder, search_cost
from stagescope.papers.focus_dilution import reading as focus_dilution
from stagescope.papers.focus_dilution.text import reading as text_focus
from stagescope.papers.incremental import reading as incremental
from stagescope.papers.incremental.text import reading as text_incremental
from stagescope.papers.rebuild import field_of
from stagescope.papers.scan_snap import reading as scan_snap
from stagescope.papers.scan_snap.text import reading as text_snap
from stagescope.runs.run import Run


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


_FOCUS_DILUTION = Rules(focus_dilution.stages, focus_dilution.check, focus_dilution.ladder)
_SCAN_SNAP = Rules(scan_snap.stages, scan_snap.check)
_HEADS = Rules(incremental.heads_stages, incremental.heads_check)
_REGRESSION = Rules(incremental.regression_stages, incremental.regression_check)
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
    "TextHeads": Rules(text_incremental.stages, text_incremental.check),
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
