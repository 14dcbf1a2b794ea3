"""The saddle ladder of TokenAttention: every plateau is a critical point of a small model (r, rq) [FD:ladder]."""

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from stagescope.landscape.ladder import NEAR, Rung
from stagescope.papers.focus_dilution.ladder.points import NO_RATE, SmallPoint, nearest_point, small_point
from stagescope.papers.focus_dilution.ladder.visit import SaddleVisit, Trajectory
from stagescope.papers.focus_dilution.loss import BLOCKS, TokenPopulation
from stagescope.papers.focus_dilution.stages import Stay, passes
from stagescope.params import Layout, Params

if TYPE_CHECKING:
    from stagescope.papers.focus_dilution.observables import TokenCurves


@dataclass(frozen=True)
class SearchRule:
    """How the critical point of a stay is searched for."""

    longer: float = 10.0  # the small flow is followed for this many stays: what takes longer, the run does not come near
    there: float = 0.05  # at this relative distance from the point the small flow reaches, no other point is searched for
    starts: int = 5  # frames from the plateau on from which other points are searched for
    same_loss: float = 1e-8  # points whose losses differ by less belong to one family, of which the flow's member is taken


SEARCH = SearchRule()


def trajectory(curves: "TokenCurves", loss: TokenPopulation) -> Trajectory:
    """A run with the speeds and events that saddle visits need."""
    events = {f"E{k + 1}": when for k, when in enumerate(passes(curves.time, curves.embedding_values))}
    events |= {f"Q{k + 1}": when for k, when in enumerate(passes(curves.time, curves.score_values))}
    return Trajectory(curves.time, curves.params, _speeds(loss, curves.params), events)


def _speeds(loss: TokenPopulation, frames: Params) -> np.ndarray:
    """|F| in every frame."""
    layout = Layout.of({name: frames[name][0] for name in BLOCKS})
    flat = loss.flat(layout, dict.fromkeys(BLOCKS, 1.0))
    vectors = np.concatenate([frames[name].reshape(len(frames[name]), -1) for name in BLOCKS], axis=1)
    velocities = np.empty_like(vectors)
    for vector, velocity in zip(vectors, velocities, strict=True):
        flat(vector, velocity)
    return np.linalg.norm(velocities, axis=1)


def saddle_visit(run: Trajectory, loss: TokenPopulation, stay: Stay, known: SmallPoint | None = None) -> SaddleVisit:
    """The visit of the point that the small model's flow reaches, or of a saddle of the small model that is nearer to the run.

    Where the run comes near a point that is known, such as from a run with another start, none is searched for.
    """
    if known is not None and (visit := SaddleVisit(run, stay, known)).distance <= SEARCH.there:
        return visit
    begin = int(np.clip(np.searchsorted(run.time, stay.start), 0, len(run.time) - 1))
    length = (run.time[-1] if stay.stop is None else stay.stop) - stay.start
    until = max(float(SEARCH.longer * length), float(run.time[-1]))
    found = SaddleVisit(run, stay, small_point(loss, run.at(begin), stay.r, stay.rq, until))
    if found.distance <= SEARCH.there or not stay.r or found.plateau is None:
        return found
    limit, nearest, ghosts = found.small.point.loss or 0.0, found, []
    for frame in np.unique(np.linspace(found.plateau, found.frames[-1], SEARCH.starts).astype(int)):
        near = nearest_point(loss, run.at(int(frame)), stay.r, stay.rq)
        other = SaddleVisit(run, stay, near)
        another = not found.small.point.found or (near.point.loss or 0.0) > limit + SEARCH.same_loss
        if near.of_its_label and another and other.distance < nearest.distance:
            nearest = other
        if not near.point.found and other.distance <= NEAR and near.point.residual < run.speed[found.plateau]:
            ghosts.append(near.point.residual)
    return nearest if nearest is not found or not ghosts else replace(found, ghost=min(ghosts))


def rung(visit: SaddleVisit) -> Rung:
    """A saddle visit as one rung of the ladder; only a rise inside the stay gives a measured rate.

    Where the run is too far from the point for the linear law, no rate is given and the note says how far.
    """
    small, label = visit.small, visit.stay.label
    base = {"label": label, "t": float(visit.time[visit.frame]), "residual": small.point.residual}
    base |= {"distance": visit.distance, "loss": small.point.loss, "note": _note(visit)}
    opening = small.opening if small.point.found else None
    if opening is None:
        return Rung(**base, opening=None, rates=())
    law = {"law": "linear", "order": 1} if visit.is_linear else {}
    return Rung(
        **base,
        **law,
        remainder=None if visit.window is None else visit.window.drift,
        opening=opening.block,
        rates=tuple(o.rate for o in small.openings[opening.block] if o.rate > NO_RATE) if visit.is_linear else (),
        measured_rate=None if visit.rise is None else visit.rise.rate,
        local_rate=visit.local_rate,
        cosines=visit.cosines,
        predicted_escape=visit.predicted_escape,
        measured_escape=visit.measured_escape,
    )


def _note(visit: SaddleVisit) -> str:
    small, label = visit.small, visit.stay.label
    if small.point.found and not small.of_its_label:
        return f"the search ended at a critical point of a smaller model, not of {label}"
    if not small.point.found:
        return f"no critical point of the model {label} was found here: the search ended at |F| = {small.point.residual:.0e}"
    if visit.distance > NEAR:
        ghost = f"; near the plateau |F| has a minimum of {visit.ghost:.0e} that is no zero" if visit.ghost else ""
        return f"relative distance above {NEAR}: the linearisation does not apply{ghost}"
    inside = float(np.real(small.point.rates[0]))
    if small.rq and inside > NO_RATE:
        return f"the run can also leave inside the model {label}, at rate {inside:.3g}"
    if small.opening is None:
        return "no rate is above zero" if small.room else "the model has no further direction to open"
    if visit.opened is None and visit.rise is None:
        return "the opening does not rise tenfold in this run"
    return visit.out_of_regime
