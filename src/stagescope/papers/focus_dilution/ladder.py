"""The saddle ladder of TokenAttention: every plateau is a critical point of a small model (r, rq) [FD:ladder]."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from stagescope.core.params import Layout, Params
from stagescope.detect.events import first_crossing
from stagescope.flow.evolve import evolve
from stagescope.flow.gradient_flow import GradientFlow
from stagescope.flow.record import LogSpaced, SpeedBelow
from stagescope.landscape.critical import CriticalPoint, critical_point
from stagescope.landscape.ladder import NEAR, Rung
from stagescope.landscape.linearise import Rise, last_rise
from stagescope.papers.focus_dilution.family import (
    Opening,
    Place,
    condensation_directions,
    escape_matrices,
    openings,
    place,
    plateau_amplitude,
    project,
    reduced,
)
from stagescope.papers.focus_dilution.limits import LIMITS
from stagescope.papers.focus_dilution.loss import BLOCKS, TokenPopulation
from stagescope.papers.focus_dilution.observables import TokenCurves
from stagescope.papers.focus_dilution.stages import Stay, open_directions, openings_of

# Critical points of the small models (r, rq) inside TokenAttention, with what opens at them [FD:ladder].


@dataclass(frozen=True)
class SmallPoint:
    """A critical point of the small model (r, rq) with what opens there."""

    loss: TokenPopulation
    r: int
    rq: int
    point: CriticalPoint

    @cached_property
    def openings(self) -> dict[str, list[Opening]]:
        return openings(escape_matrices(self.loss, self.point.params), self.r)

    @property
    def of_its_label(self) -> bool:
        """Whether it is a critical point with r embedding and rq attention directions, not one of a smaller model."""
        return self.point.found and open_directions(self.loss, self.point.params) == (self.r, self.rq)

    @property
    def room(self) -> tuple[str, ...]:
        """Which kinds of directions can still open: a model of width r has no room for another embedding direction."""
        model = self.loss.model
        return ("embedding",) * (self.r < model.width) + ("attention",) * (self.rq < model.shapes["WQ"][1] and self.r > 0)

    @property
    def opening(self) -> Opening | None:
        """The fastest way out of the small model, None where nothing grows or there is no room."""
        tops = [self.openings[block][0] for block in self.room if self.openings[block]]
        fastest = max(tops, key=lambda opening: opening.rate, default=None)
        return fastest if fastest is not None and fastest.rate > LIMITS.no_rate else None

    @property
    def sizes(self) -> tuple[float, float]:
        """Amplitudes of the opening up to which it is linear, and at which the next singular value passes .1.

        A mode of size g has amplitude 2 g. Embedding: sv(W0) = g. Attention: sv(Phi) = scale |W0 q| |W0 k| g^2. It moves the
        embeddings by the order of g^2, so its linear law ends at g = .05.
        """
        assert self.opening is not None
        if self.opening.block == "embedding":
            return 2 * LIMITS.level, 2 * LIMITS.level
        w0 = self.point.params["W0"]
        unit = self.loss.model.scale * float(np.linalg.norm(w0 @ self.opening.q) * np.linalg.norm(w0 @ self.opening.k))
        event = 2 * (LIMITS.level / unit) ** 0.5
        return min(2 * LIMITS.linear, event), event


def small_point(loss: TokenPopulation, start: Params, r: int, rq: int, until: float = 1e6) -> SmallPoint:
    """The critical point (r, rq) that the small model's own flow reaches from the projection of `start`, then refined.

    The flow stops where |F| is below 1e-9, or at `until`. Critical points (1,1) form a family of equal loss along which
    rates differ; the flow picks the member a run approaches.
    """
    small = reduced(loss, r, rq)
    begin = project(start, r, rq)
    if r:
        stop = SpeedBelow(value=1e-9)
        flow = evolve(small, begin, GradientFlow(), until=until, record=LogSpaced(frames=400), stop=stop, progress=False)
        begin = flow.at(-1)
    return SmallPoint(loss, r, rq, critical_point(small, begin))


def nearest_point(loss: TokenPopulation, start: Params, r: int, rq: int) -> SmallPoint:
    """The critical point (r, rq) next to `start` itself: it may be a saddle of the small model, which its flow would leave."""
    small = reduced(loss, r, rq)
    return SmallPoint(loss, r, rq, critical_point(small, project(start, r, rq)))


def condensed_start(loss: TokenPopulation, sign: float, size: float = 1e-3) -> dict[str, np.ndarray]:
    """A small balanced start of the model of width 1 along the directions that grow: W0 ~ pi, W1 ~ pi - 1/d, WK = sign WQ."""
    left, right = condensation_directions(loss.process.stationary)
    return {
        "W0": size * left[:, None],
        "W1": size * right[None, :],
        "WQ": np.full((1, 1), size),
        "WK": np.full((1, 1), sign * size),
    }


# How a run of TokenAttention comes near a critical point of a small model (r, rq) and leaves it [FD:ladder].


@dataclass(frozen=True)
class Trajectory:
    """A run, frame by frame, with |grad L| and its events."""

    time: np.ndarray
    params: Params
    speed: np.ndarray
    events: Mapping[str, float | None]

    def at(self, frame: int | np.ndarray) -> dict[str, np.ndarray]:
        """The blocks of one frame, or of several."""
        return {name: block[frame] for name, block in self.params.items()}

    def frame(self, when: float) -> int:
        """The first frame at or after a time."""
        return min(int(np.searchsorted(self.time, when)), len(self.time) - 1)


@dataclass(frozen=True)
class Window:
    """A tenfold rise of an opening, and how near the run is to the critical point during it.

    `matrix` is the escape matrix at the run itself, averaged over the rise. `drift` is its mean relative distance
    |B - B*| / |B*| from that at the point. `furthest` is the largest relative distance of the run from the point. `shifts`
    are the relative changes of the rate to first order, u* (B - B*) w* / rate, when the rise begins and averaged over it.
    """

    rise: Rise
    matrix: np.ndarray
    drift: float
    furthest: float
    shifts: tuple[float, float]


@dataclass(frozen=True)
class SaddleVisit:
    """A run near one critical point: the point of a stay's label, how near the run comes, and how it leaves.

    In every frame the run is compared with the nearest member of the point's orbit under rotations.
    """

    trajectory: Trajectory
    stay: Stay
    small: SmallPoint
    ghost: float | None = None
    """The smallest |F| near the plateau where the search for a nearer critical point found a minimum that is no zero."""

    @property
    def time(self) -> np.ndarray:
        return self.trajectory.time

    @cached_property
    def frames(self) -> np.ndarray:
        stop = self.time[-1] if self.stay.stop is None else self.stay.stop
        inside = np.flatnonzero((self.time >= self.stay.start) & (self.time <= stop))
        return inside if inside.size else np.array([int(np.argmin(np.abs(self.time - self.stay.start)))])

    @cached_property
    def plateau(self) -> int | None:
        """The frame of the lowest local minimum of |F| in this stay; None where the run does not slow down."""
        speed = self.trajectory.speed[self.frames]
        lower = np.flatnonzero((speed[1:-1] <= speed[:-2]) & (speed[1:-1] < speed[2:])) + 1
        if self.frames[0] == 0 and len(speed) > 1 and speed[0] < speed[1]:
            lower = np.append(lower, 0)
        if self.frames[-1] == len(self.time) - 1 and len(speed) > 1 and speed[-1] < speed[-2]:
            lower = np.append(lower, len(speed) - 1)
        return int(self.frames[lower[np.argmin(speed[lower])]]) if lower.size else None

    @property
    def frame(self) -> int:
        """The plateau, or where the run is slowest."""
        return self.plateau if self.plateau is not None else int(self.frames[np.argmin(self.trajectory.speed[self.frames])])

    @cached_property
    def places(self) -> Place:
        """The nearest member of the point's orbit in every frame of the run."""
        return place(self.small.point.params, self.trajectory.params, self.small.r, self.small.rq)

    @property
    def place(self) -> Place:
        """That of the plateau."""
        return self.places.at(self.frame)

    @cached_property
    def size(self) -> float:
        """The norm that distances are relative to: that of the point, or at the origin that of the next plateau (1,0)."""
        square = sum(float(np.sum(block**2)) for block in self.small.point.params.values())
        return float(square**0.5) or 2**0.5 * plateau_amplitude(self.small.loss.process.stationary) or 1.0

    @cached_property
    def distances(self) -> np.ndarray:
        """Relative distance from the critical point in every frame of the run."""
        target = self.places.params
        return np.sqrt(sum(np.sum((self.trajectory.params[n] - target[n]) ** 2, axis=(1, 2)) for n in target)) / self.size

    @property
    def distance(self) -> float:
        return float(self.distances[self.frame])

    @cached_property
    def amplitude(self) -> np.ndarray:
        """Of the predicted opening, in every frame of the run."""
        assert self.small.opening is not None
        return self.places.amplitude(self.small.opening, self.trajectory.params)

    @cached_property
    def opened(self) -> float | None:
        """When the opening reaches the size up to which it is linear; None where it does not."""
        if self.small.opening is None:
            return None
        logs = np.log(np.maximum(self.amplitude, np.finfo(float).tiny))
        return first_crossing(self.time, logs, float(np.log(self.small.sizes[0])), rising=True)

    @cached_property
    def windows(self) -> tuple[Window, ...]:
        """Tenfold rises of the opening inside this stay, the last first."""
        windows, high, opening = [], 0.0 if self.small.opening is None else self.small.sizes[0], self.small.opening
        while opening is not None and high / LIMITS.growth > np.min(self.amplitude):
            rise = last_rise(self.time, self.amplitude, high / LIMITS.growth, high)
            if rise is not None and rise.start >= self.stay.start:
                windows.append(self._window(rise, opening))
            high /= LIMITS.growth**0.5
        return tuple(windows)

    def _window(self, rise: Rise, opening: Opening) -> Window:
        frames = self._frames(rise.times(LIMITS.samples))
        matrices = self._matrices(frames, opening)
        point_matrix = escape_matrices(self.small.loss, self.small.point.params)[opening.block]
        left, rates, right = np.linalg.svd(point_matrix)
        drift = np.mean(np.linalg.norm(matrices - point_matrix, 2, axis=(1, 2))) / rates[0]
        shifts = left[:, 0] @ (matrices - point_matrix) @ right[0] / rates[0]
        nearness = float(drift), float(self.distances[frames].max()), (float(shifts[0]), float(np.mean(shifts)))
        return Window(rise, np.mean(matrices, axis=0), *nearness)

    def _frames(self, times: np.ndarray) -> np.ndarray:
        """The frames next to some times."""
        return np.argmin(np.abs(self.time - np.asarray(times)[:, None]), axis=1)

    def _matrices(self, frames: np.ndarray, opening: Opening) -> np.ndarray:
        """The escape matrices of an opening's block at the run itself, in some frames."""
        projected = self.places.at(frames).projected(self.trajectory.at(frames))
        return escape_matrices(self.small.loss, projected)[opening.block]

    def wandering(self, start: float, stop: float) -> float:
        """E-folds by which the run's distance from the point may change the growth of the opening between two times.

        The integral of |rate linearised at the run - rate at the point|.
        """
        opening = self.small.opening
        assert opening is not None
        frames = self._frames(np.linspace(start, stop, LIMITS.samples))
        rates = np.linalg.norm(self._matrices(frames, opening), 2, axis=(1, 2))
        return float(np.mean(np.abs(rates - opening.rate)) * (stop - start))

    @cached_property
    def window(self) -> Window | None:
        """The rise during which the linearisation at the run is nearest to that at the point; measured rates play no part."""
        return min(self.windows, key=lambda window: (round(window.drift, 3), window.furthest), default=None)

    @property
    def rise(self) -> Rise | None:
        """The rise over which the rate is measured."""
        return None if self.window is None else self.window.rise

    @property
    def local_rate(self) -> float | None:
        """The fastest rate of the opening's block when the flow is linearised at the run itself, averaged over the rise."""
        return None if self.window is None else float(np.linalg.norm(self.window.matrix, 2))

    @property
    def is_linear(self) -> bool:
        """Whether the run is close enough to the point, also during the rise, for its linearisation to be the law."""
        rise = () if self.window is None else (self.window.furthest, self.window.drift)
        return max((self.distance, *rise)) <= NEAR

    @property
    def out_of_regime(self) -> str:
        """Why the linearisation at the point does not apply to the rise, decided without the rate; empty where it does."""
        if self.small.opening is None:
            return ""
        if self.window is None:
            return "" if self.opened is None else f"the opening does not rise tenfold during the stay at {self.stay.label}"
        label, window = self.stay.label, self.window
        if window.furthest > NEAR:
            return f"relative distance of the run from {label} during the rise: up to {window.furthest:.2f}, above {NEAR}"
        if window.drift > NEAR:
            return f"drift: the linearisation at the run differs by {window.drift:.2f} from that at {label}, above {NEAR}"
        if min(map(abs, window.shifts)) > LIMITS.rate:
            first, mean = (f"{1 + shift:.2f}" for shift in window.shifts)
            detail = f"times the rate at {label}, off by more than {LIMITS.rate:.0%}"
            return f"not settled: linearised at the run, the rate is {first} (start of the rise) and {mean} (mean) {detail}"
        return ""

    @property
    def drift_over_gap(self) -> float:
        """Drift over the last rise, relative to the gap between the fastest opening and the next one."""
        assert self.small.opening is not None
        rates = [opening.rate for opening in self.small.openings[self.small.opening.block]]
        gap = rates[0] - (rates[1] if len(rates) > 1 else 0.0)
        return self.windows[0].drift * rates[0] / max(gap, np.finfo(float).tiny)

    @property
    def purity(self) -> float:
        """Cosine of the fastest opening with the sum of all, grown linearly from the start of the last rise to its end."""
        assert self.small.opening is not None
        rise = self.windows[0].rise
        first = self.trajectory.frame(rise.start)
        place, params = self.places.at(first), self.trajectory.at(first)
        kinds = self.small.openings[self.small.opening.block]
        sizes = [place.amplitude(o, params) * np.exp(o.rate * (rise.stop - rise.start)) for o in kinds]
        return float(sizes[0] / np.linalg.norm(sizes))

    @property
    def event(self) -> str | None:
        """The event that the prediction puts at the end of the stay."""
        if self.small.opening is None:
            return None
        return f"E{self.small.r + 1}" if self.small.opening.block == "embedding" else f"Q{self.small.rq + 1}"

    @property
    def measured_escape(self) -> float | None:
        """The time of that event in the run."""
        return self.trajectory.events.get(self.event) if self.event is not None else None

    @property
    def predicted_escape(self) -> float | None:
        """t + ln(size at the event / size at t) / rate."""
        if self.small.opening is None or self.distance > NEAR:
            return None
        now = float(self.amplitude[self.frame])
        if not 0 < now < self.small.sizes[1]:
            return None
        return float(self.time[self.frame] + np.log(self.small.sizes[1] / now) / self.small.opening.rate)

    @cached_property
    def _before(self) -> Place:
        """The orbit's member where the opening is smallest: an opening that has grown tilts S, and so its own complement."""
        last = len(self.time) - 1 if self.measured_escape is None else self.trajectory.frame(self.measured_escape)
        inside = self.frames[self.frames <= last]
        return self.places.at(int(inside[np.argmin(self.amplitude[inside])]) if inside.size else self.frame)

    @cached_property
    def cosines(self) -> tuple[float, ...]:
        """Cosines at the event of what opened with the prediction: new column of W0 and new row of W1, or new scores."""
        opening = self.small.opening
        if opening is None or self.measured_escape is None:
            return ()
        params = self.trajectory.at(self.trajectory.frame(self.measured_escape))
        if opening.block == "embedding":
            complement = self._before.outside_s
            u, w = np.linalg.svd(params["W0"] @ complement)[0][:, 0], np.linalg.svd(complement @ params["W1"])[2][0]
            length = float(np.linalg.norm(opening.w)) or 1.0
            return abs(float(u @ opening.u)), abs(float(w @ opening.w)) / length
        new = params["W0"] @ params["WQ"] @ self._before.outside_u @ params["WK"].T @ params["W0"].T
        w0 = self.small.point.params["W0"]
        predicted = np.outer(w0 @ opening.q, w0 @ opening.k)
        return (float(np.sum(new * predicted) / np.linalg.norm(new) / np.linalg.norm(predicted)),)


def trajectory(curves: TokenCurves, loss: TokenPopulation) -> Trajectory:
    """A run with the speeds and events that saddle visits need."""
    frames = curves.params
    layout = Layout.of({name: frames[name][0] for name in BLOCKS})
    flat = loss.flat(layout, dict.fromkeys(BLOCKS, 1.0))
    vectors = np.concatenate([frames[name].reshape(len(frames[name]), -1) for name in BLOCKS], axis=1)
    velocities = np.empty_like(vectors)
    for vector, velocity in zip(vectors, velocities, strict=True):
        flat(vector, velocity)
    events = openings_of(curves)
    return Trajectory(curves.time, frames, np.linalg.norm(velocities, axis=1), events)


def saddle_visit(run: Trajectory, loss: TokenPopulation, stay: Stay, known: SmallPoint | None = None) -> SaddleVisit:
    """The visit of the point that the small model's flow reaches, or of a saddle of the small model that is nearer to the run.

    Where the run comes near a point that is known, such as from a run with another start, none is searched for.
    """
    if known is not None and (visit := SaddleVisit(run, stay, known)).distance <= LIMITS.linear:
        return visit
    begin = int(np.clip(np.searchsorted(run.time, stay.start), 0, len(run.time) - 1))
    length = (run.time[-1] if stay.stop is None else stay.stop) - stay.start
    until = max(float(LIMITS.patience * length), float(run.time[-1]))
    first_visit = SaddleVisit(run, stay, small_point(loss, run.at(begin), stay.r, stay.rq, until))
    if first_visit.distance <= LIMITS.linear or not stay.r or first_visit.plateau is None:
        return first_visit
    limit, nearest, ghosts = first_visit.small.point.loss or 0.0, first_visit, []
    for frame in np.unique(np.linspace(first_visit.plateau, first_visit.frames[-1], LIMITS.starts).astype(int)):
        near = nearest_point(loss, run.at(int(frame)), stay.r, stay.rq)
        candidate = SaddleVisit(run, stay, near)
        another = not first_visit.small.point.found or (near.point.loss or 0.0) > limit + LIMITS.settled
        if near.of_its_label and another and candidate.distance < nearest.distance:
            nearest = candidate
        if not near.point.found and candidate.distance <= NEAR and near.point.residual < run.speed[first_visit.plateau]:
            ghosts.append(near.point.residual)
    return nearest if nearest is not first_visit or not ghosts else replace(first_visit, ghost=min(ghosts))


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
        rates=tuple(o.rate for o in small.openings[opening.block] if o.rate > LIMITS.no_rate) if visit.is_linear else (),
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
    if small.rq and inside > LIMITS.no_rate:
        return f"the run can also leave inside the model {label}, at rate {inside:.3g}"
    if small.opening is None:
        return "no rate is above zero" if small.room else "the model has no further direction to open"
    if visit.opened is None and visit.rise is None:
        return "the opening does not rise tenfold in this run"
    return visit.out_of_regime
