"""Sweeps of early stopping on a small task, computed in this process and stored as any sweep."""

from pathlib import Path
from typing import Any

import stagescope as ss
from stagescope.papers.incremental.study import STUDY
from stagescope.sweeping.plan import points, requested
from stagescope.sweeping.rows import RowWriter
from stagescope.sweeping.worker import measured

SMALL: dict[str, Any] = {"vocab": 6, "spans": (1, 1), "targets": 4, "heads": 2, "scale": 3.0, "frames": 60, "steps": 300}


def small_sweep(folder: Path, sizes: str, seeds: int = 2, **changes: Any) -> Any:
    """The named sweep on other sizes and seeds."""
    options = {**SMALL, **changes}
    plan = requested(STUDY, "early-stopping", grid={"sequences": sizes}, seeds=seeds, options=options)
    folder.mkdir(parents=True, exist_ok=True)
    plan.save(folder)
    RowWriter(folder).commit([measured(STUDY, point, plan.measures) for point in points(plan)])
    return ss.load_sweep(folder)
