"""The saddle ladder of TokenAttention: every plateau is a critical point of a small model (r, rq) [FD:ladder]."""

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from stagescope.landscape.ladder import NEAR, Rung
from stagescope.papers.focus_dilution.ladder.passage import Passage, Seen
from stagescope.papers.focus_dilution.ladder.points import OPENS, nearest_point, small_point
from stagescope.papers.focus_dilution.loss import BLOCKS, TokenPopulation
from stagescope.papers.focus_dilution.stages import Visit, passes
from stagescope.params import Layout, Params

if TYPE_CHECKING:
    from stagescope.papers.focus_dilution.observables import TokenCurves

LONGER = 10.0
"""A small model's flow is followed for this many times the run's own stay: what takes longer, the run does not come near."""
CLOSE, SEARCHES, SAME_LOSS = 0.05, 5, 1e-8
"""A run this close to the point the small flow reaches is there; else other points are searched for from some frames."""


def seen(curves: "TokenCurves", loss: TokenPopulation) -> Seen:
    """A run as passages look at it."""
    events = {f"E{k + 1}": when for k, when in enumerate(passes(curves.time, curves.embedding_values))}
    events |= {f"Q{k + 1}": when for k, when in enumerate(passes(curves.time, curves.score_values))}
    return Seen(curves.time, curves.params, _speeds(loss, curves.params), events)


def _speeds(loss: TokenPopulation, frames: Params) -> np.ndarray:
    """|F| in every frame."""
    layout = Layout.of({name: frames[name][0] for name in BLOCKS})
    flat = loss.flat(layout, dict.fromkeys(BLOCKS, 1.0))
    vectors = np.concatenate([frames[name].reshape(len(frames[name]), -1) for name in BLOCKS], axis=1)
    velocities = np.empty_like(vectors)
    for vector, velocity in zip(vectors, velocities, strict=True):
        flat(vector, velocity)
    return np.linalg.norm(velocities, axis=1)


def passage(run: Seen, loss: TokenPopulation, visit: Visit) -> Passage:
    """The point the small model's flow reaches, or a saddle of the small model if the run stays nearer to one on its way.

    Points of the same loss belong to one family, of which the flow's member is taken.
    """
    begin = int(np.clip(np.searchsorted(run.time, visit.start), 0, len(run.time) - 1))
    stay = (run.time[-1] if visit.stop is None else visit.stop) - visit.start
    until = max(float(LONGER * stay), float(run.time[-1]))
    found = Passage(run, visit, small_point(loss, run.at(begin), visit.r, visit.rq, until))
    if found.distance <= CLOSE or not visit.r or found.plateau is None:
        return found
    limit, nearest, ghosts = found.small.point.loss or 0.0, found, []
    for frame in np.unique(np.linspace(found.plateau, found.frames[-1], SEARCHES).astype(int)):
        beside = nearest_point(loss, run.at(int(frame)), visit.r, visit.rq)
        other = Passage(run, visit, beside)
        another = not found.small.point.found or (beside.point.loss or 0.0) > limit + SAME_LOSS
        if beside.of_its_label and another and other.distance < nearest.distance:
            nearest = other
        if not beside.point.found and other.distance <= NEAR and beside.point.residual < run.speed[found.plateau]:
            ghosts.append(beside.point.residual)
    return nearest if nearest is not found or not ghosts else replace(found, ghost=min(ghosts))


def rung(passage: Passage) -> Rung:
    """A passage as one rung of the ladder; a rise that does not belong to the visit gives no measured rate."""
    small, label = passage.small, passage.visit.label
    base = {"label": label, "t": float(passage.time[passage.frame]), "residual": small.point.residual}
    base |= {"distance": passage.distance, "loss": small.point.loss, "note": _note(passage)}
    opening = small.opening if small.point.found else None
    if opening is None:
        return Rung(**base, opening=None, rates=())
    return Rung(
        **base,
        opening=opening.block,
        rates=tuple(o.rate for o in small.openings[opening.block] if o.rate > OPENS),
        measured_rate=None if passage.rise is None else passage.rise.rate,
        local_rate=passage.here,
        cosines=passage.cosines,
        predicted_escape=passage.predicted,
        measured_escape=passage.left,
    )


def _note(passage: Passage) -> str:
    small, label = passage.small, passage.visit.label
    if small.point.found and not small.of_its_label:
        return f"the search ended at a critical point of a smaller model than {label}"
    if not small.point.found:
        return f"no critical point of the model {label} was found here: the search ended at |F| = {small.point.residual:.0e}"
    if passage.distance > NEAR:
        ghost = f"; beside the plateau |F| has a minimum {passage.ghost:.0e} and no zero was found" if passage.ghost else ""
        return f"relative distance above {NEAR}: the linearisation is not believed{ghost}"
    inside = float(np.real(small.point.rates[0]))
    if small.rq and inside > OPENS:
        return f"left inside the model {label} as well, at rate {inside:.3g}"
    if small.opening is None:
        return "no rate is above zero" if small.room else "the model has no further direction to open"
    if passage.opened is None and passage.rise is None:
        return "the opening does not rise tenfold in this run"
    return passage.astray
