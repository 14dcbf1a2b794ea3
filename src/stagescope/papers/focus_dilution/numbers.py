"""Final numbers of focus-dilution runs, for sweeps."""

from stagescope.papers.focus_dilution.forms import attention_rate
from stagescope.papers.focus_dilution.observables import token_curves
from stagescope.papers.focus_dilution.stages import first_move
from stagescope.papers.study import final_loss
from stagescope.runs.run import Run


def numbers(run: Run) -> dict[str, float]:
    """Also which way attention first goes, and the rate in theory: the signs of both say focus or defocus [FD:attention-rate]."""
    curves = token_curves(run)
    chain, scale = curves.law.process, curves.law.model.scale
    moved = first_move(curves)
    measured = {"first_move": float("nan") if moved is None else moved}
    return {**final_loss(run), **measured, "attention_rate": attention_rate(chain.stationary, chain.transition, scale)}
