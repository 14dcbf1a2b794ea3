"""Options of the study with which claims are decided that a run cannot decide."""

from typing import Any

import numpy as np

from stagescope.papers.focus_dilution.evidence import Evidence, small_flow
from stagescope.papers.focus_dilution.limits import LIMITS
from stagescope.papers.focus_dilution.study import FocusDilutionOptions

POPULATION_FLOW = (
    *("form", "optimizer", "init_scale", "init_scale_w0", "init_scale_w1", "init_scale_wq", "init_scale_wk"),
    *("length", "start", "sequences", "batch", "steps", "lr", "momentum", "eps", "beta1", "beta2", "lr_per_eps"),
)
"""Options at their defaults make the population flow from a small start."""


def another_flow(evidence: Evidence) -> dict[str, Any] | None:
    """Options with which a claim out of regime is decided: the flow of the population loss from 1e-3, or a longer one.

    The longer one has at least the default length: a short run, or steps without a flow time, say little about it.
    """
    if np.ptp(evidence.pi) <= LIMITS.equal:
        return None
    end = evidence.end if evidence.run.clock == "t" else 0.0
    fields = FocusDilutionOptions.model_fields
    longer = {"until": max(float(fields["until"].default), float(f"{LIMITS.companion_length * end:.4g}"))}
    if small_flow(evidence).holds:
        return evidence.changed(longer) if evidence.second is None else None
    return evidence.changed({name: fields[name].default for name in POPULATION_FLOW} | longer)
