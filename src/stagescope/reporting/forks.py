"""Forks on a page beside the run they were forked from: how far apart they are."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from stagescope.papers.fork_difference import fork_difference
from stagescope.papers.rebuild import forked
from stagescope.runs.run import Run
from stagescope.spec import digest
from stagescope.views.curves import curves
from stagescope.views.view import Curve, Portrait, View

ABOUT = "|theta of the fork - theta of its parent| over |theta of its parent|, at equal times from the fork on."


def with_distances(portraits: Sequence[Portrait]) -> list[Portrait]:
    """Each fork whose parent is on the page has a view of the distance between both."""
    parents = {digest(each.run.spec): each.run for each in portraits}
    made = []
    for each in portraits:
        parent = None if forked(each.run) is None else parents.get(each.run.spec["dynamics"]["parent"])
        view = None if parent is None else _view(parent, each.run)
        made.append(each if view is None else replace(each, views=(*each.views, view)))
    return made


def _view(parent: Run, made: Run) -> View | None:
    """The distance at the frames after the fork at which there is one."""
    found = fork_difference(parent, made)
    frames = np.flatnonzero(found.distance > 0)
    if not len(frames):
        return None
    curve = Curve("distance", found.relative[frames])
    return curves("fork", "Distance from the parent", ABOUT, "relative distance", [curve], log=True, frames=frames)
