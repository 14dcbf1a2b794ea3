"""Lines of theory over a phase diagram: which boundaries a study has, and where they lie in each panel."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from stagescope.diagrams.areas import Ruler
from stagescope.diagrams.selection import Selection
from stagescope.errors import InputError, unknown
from stagescope.papers.registry import studies
from stagescope.papers.study import Boundary
from stagescope.sweeping.boxes import Scale
from stagescope.sweeping.table import Sweep

PLACES = 80
"""Points of a line, at equal distances along its first axis."""


def find_boundary(sweep: Sweep, chosen: Selection, name: str) -> Boundary:
    """The boundary of that name, refused where the study has none, or where the diagram has other axes."""
    known = studies()[sweep.plan.study].boundaries if sweep.plan.study in studies() else {}
    if not known:
        raise InputError(f"the study {sweep.plan.study} has no boundaries; leave --boundary {name} out")
    if name not in known:
        raise unknown(f"boundary of {sweep.plan.study}", name, known)
    found = known[name]
    if {chosen.x, chosen.y} != set(found.axes):
        drawn = chosen.x if chosen.y is None else f"{chosen.x} and {chosen.y}"
        raise InputError(
            f"the boundary {name} is a line over {' and '.join(found.axes)}, and this diagram is over {drawn}; "
            f"draw one with --x {found.axes[0]} --y {found.axes[1]}"
        )
    return found


def boundary_line(sweep: Sweep, boundary: Boundary, name: str, at: Mapping[str, Any]) -> dict[str, Any]:
    """The line in one panel: values of both axes by name, None where there is no such place, and its title."""
    axis = next(axis for axis in sweep.axes if axis.name == boundary.axes[0])
    ruler = Ruler(Scale(axis.kind, axis.values))
    values = [ruler.value(float(place)) for place in np.linspace(*ruler.reach, PLACES)]
    found = boundary.line({**sweep.plan.fixed, **at}, values)
    return {"name": name, "title": boundary.title, boundary.axes[0]: values, boundary.axes[1]: found}
