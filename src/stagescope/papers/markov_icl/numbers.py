"""Final numbers of a run, for sweeps."""

import numpy as np

from stagescope.papers.markov_icl.evidence import Evidence
from stagescope.papers.markov_icl.observables import match_curves
from stagescope.papers.study import final_loss
from stagescope.runs.run import Run


def numbers(run: Run) -> dict[str, float]:
    """Final loss, match and attention on the token before; t_2 over its law where it has one."""
    if not run.frames:
        return {}
    evidence = Evidence(run, match_curves(run))
    curves = evidence.curves
    found = {**final_loss(run), "match": float(curves.match[-1]), "previous": float(curves.previous[-1])}
    when = evidence.time("t2")[0]
    if evidence.flow and when is not None and evidence.model in ("R", "S"):
        law = evidence.two_step if evidence.doubly or evidence.model == "S" else evidence.plateau_time
        if np.isfinite(law):
            found["t2_over_law"] = when / law
    return found
