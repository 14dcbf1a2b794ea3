"""Early stopping of heads against the number of training sequences: numbers from nothing, or from an `EarlyStopping`."""

import os
from typing import Any

from stagescope.papers.incremental.stopping.study import CURVES, RULES, EarlyStopping, early_stopping
from stagescope.progress import Progress
from stagescope.views.figure import Figure, Numbers

MEASURED: dict[str, dict[str, Any]] = {
    "50": {
        "oracle": [2.04, 2.07],
        "end": [3.55, 4.62],
        "class_at_stop": 1,
        "likelihood": [2.09, 3.23, 2.57],
        "ridge": [1.68, 1.44, 1.40],
    },
    "200": {
        "oracle": [1.26, 1.32],
        "end": [1.54, 1.55],
        "class_at_stop": 2,
        "likelihood": [1.55, 1.21, 1.21],
        "ridge": [1.51, 1.07, 0.89],
    },
    "800": {"oracle": [0.718], "end": [0.719], "class_at_stop": 3},
}
"""One draw of the features, by an independent implementation; fits are of the classes 1, 2, 3."""


def stopping_numbers(found: EarlyStopping) -> Numbers:
    """Three sizes with the curves of their first run, the summary of all sizes, and every run without its curves."""
    sizes = [entry["sequences"] for entry in found.summary()]
    shown = sorted({sizes[place] for place in (0, len(sizes) // 3, 2 * len(sizes) // 3)})
    panels = []
    for size in shown:
        number = next(i for i, row in enumerate(found.rows) if row["sequences"] == size and "rules" in row)
        row, curves = found.rows[number], found.curves[number]
        marks = {rule: {name: row["rules"][rule][name] for name in ("step", "loss", "class")} for rule in RULES}
        lines = {name: [round(float(value), 5) for value in curves[name]] for name in CURVES}
        panels.append({"sequences": size, "seed": row["seed"], "stops": marks, **lines})
    return {**found.json(), "panels": panels, "measured": MEASURED}


def _compute(progress: Progress) -> Numbers:
    return stopping_numbers(early_stopping(workers=min(2, os.cpu_count() or 1), progress=progress))


def _draw(numbers: Numbers) -> Any:
    """Matplotlib is imported when something is drawn, not when figures are listed."""
    from stagescope.papers.incremental.stopping.draw import stopping

    return stopping(numbers)


STOPPING = Figure("-stopping", "Where to stop, what it costs, and which class it is", _compute, _draw)
