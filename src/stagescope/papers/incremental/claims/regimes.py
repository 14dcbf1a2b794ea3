"""Regimes that several claims share: the ladder of levels, and heads that start alike."""

from stagescope.claims.comparison import Regime
from stagescope.papers.incremental.evidence import LADDER, Evidence


def on_the_ladder(evidence: Evidence) -> Regime:
    """The regime of the ladder of levels."""
    if len(evidence.task.gains) == 1:
        return Regime(False, "there is one group: a ladder needs two", applies=False)
    failed = evidence.failures().values()
    words = "single lags" if evidence.task.span == 1 else f"spans of up to {evidence.task.span} lags"
    return Regime(not failed, "; ".join(failed) or f"distinct importances, {words}")


def several_heads(evidence: Evidence) -> Regime:
    """The same for at least two heads that start alike, and at least two groups."""
    if evidence.task.heads == 1:
        return Regime(False, "there is one head", applies=False)
    if len(evidence.task.gains) == 1:
        return Regime(False, "there is one group: heads cannot compete or divide groups", applies=False)
    base, apart = on_the_ladder(evidence), evidence.unlike(LADDER.alike_at_start).values()
    if apart:
        return Regime(False, "; ".join(apart if base.holds else [base.sentence, *apart]))
    return Regime(base.holds, f"{base.sentence}, heads alike at the start" if base.holds else base.sentence)


def parts(evidence: Evidence) -> Regime:
    """Heads that differ at the start: those that are exactly equal stay so."""
    if evidence.identical and evidence.task.heads > 1:
        return Regime(False, "heads start exactly equal and stay so", applies=False)
    return on_the_ladder(evidence)
