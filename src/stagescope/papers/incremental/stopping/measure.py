"""What a sweep keeps of early stopping, one run at a time [ISA:early-stopping]."""

from typing import Any

from stagescope.papers.incremental.stopping.claims import decided
from stagescope.papers.incremental.stopping.observables import stopping
from stagescope.runs.run import Run


def measure(run: Run) -> dict[str, Any]:
    """`Stopping.row`, and `not_judged`: why the claim on early stopping does not apply to the run, None where it does."""
    found = stopping(run)
    regime = decided(found)
    return {**found.row(), "not_judged": None if regime.holds else regime.sentence}
