"""Curves of heads that divide the groups: group mass, agreement and specialisation, learned shares."""

from collections.abc import Sequence

import numpy as np

from stagescope.papers.incremental.observables import LagCurves
from stagescope.papers.incremental.regression.observables import HeadCurves
from stagescope.papers.incremental.specialisation import GroupMass
from stagescope.views.curves import MOST, curves, left_out, plane
from stagescope.views.view import Curve, Level, Points, View

NAMED_PAIRS = 9
"""Curves with a label of their own: three heads on three groups, as in the paper."""


def pairs(values: np.ndarray, groups: Sequence[str]) -> list[Curve]:
    """Curves of values (frames, H, k), one for every head and group; the colour is the group's."""
    made = []
    for i, group in enumerate(groups):
        for h in range(values.shape[1]):
            made.append(Curve(f"head {h + 1}, {group}", values[:, h, i], group, faint=len(made) >= NAMED_PAIRS))
    return made[:MOST]


def mass_view(found: GroupMass, groups: Sequence[str], what: str, frames: np.ndarray | None) -> View:
    made = pairs(found.mass, groups)
    about = f"Attention of each head on {what}.{left_out(found.mass.shape[1] * len(groups))}"
    return curves("mass", "Attention of each head on each group", about, "attention", made, frames=frames)


def agreement_view(found: LagCurves | HeadCurves, frames: np.ndarray | None) -> View:
    """Agreement of heads, and how far they divide the groups."""
    made = [Curve("agreement of attention", found.agreement)]
    if found.value_agreement is not None:
        made.append(Curve("agreement of values", found.value_agreement))
    made += [Curve("specialisation", found.specialisation), Curve("contrast", found.contrast)]
    about = (
        "Agreement: mean cosine between two heads. Specialisation: mass of the best matching of heads to groups. Contrast: the "
        "same after subtracting the mean over heads. Heads compete while they agree and cooperate once they divide the groups."
    )
    return curves("heads", "Agreement and specialisation of heads", about, "", made, frames=frames)


def learned_view(learned: np.ndarray, groups: Sequence[str], frames: np.ndarray | None) -> View:
    made = [Curve(group, learned[:, i], faint=i >= NAMED_PAIRS) for i, group in enumerate(groups)][:MOST]
    about = "Component of the model's map of each group along the true map, as a share of the true one: 1 when it is learned."
    about += left_out(len(groups), what="groups")
    level = [Level("learned", 1.0)]
    return curves("learned", "Share of each feature learned", about, "share", made, levels=level, frames=frames)


def heads_in_plane(values: np.ndarray, frames: np.ndarray | None) -> View:
    """Heads by their values (frames, H, ...), flattened."""
    places, shares = plane(values.reshape(*values.shape[:2], -1))
    about = (
        "Each head's values as one point, in the plane of largest variance over all frames. Heads part when the points separate."
    )
    labels = tuple(f"head {h + 1}" for h in range(values.shape[1]))
    return Points("embedding", "Heads by their values", about, places, labels, shares, frames=frames)
