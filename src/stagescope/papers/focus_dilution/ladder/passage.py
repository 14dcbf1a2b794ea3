"""How a run of TokenAttention comes near a critical point of a small model (r, rq) and leaves it [FD:ladder]."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from stagescope.detect.stage import first_crossing
from stagescope.landscape.growth_fit import Rise, last_rise
from stagescope.landscape.ladder import NEAR
from stagescope.papers.focus_dilution.family import Opening, Place, escape_matrices, place, plateau_amplitude
from stagescope.papers.focus_dilution.ladder.points import SmallPoint
from stagescope.papers.focus_dilution.stages import Visit
from stagescope.params import Params

WINDOW, APART = 10.0, 10**0.5
"""Rates are fitted over a tenfold rise of an amplitude; rises that end this factor apart are compared, and the nearest taken."""
PURE = 0.98
"""Cosine of the fastest opening with all that is predicted to have grown, from which on it is called the one that opens."""
SETTLED = 0.1
"""Rates are promised to 10 %, so where the run is must not move them by more, when the rise begins or on average over it."""
SAMPLES = 25
"""Times over the rise at which the run itself is linearised."""


@dataclass(frozen=True)
class Seen:
    """A run, frame by frame, with |grad L| and its events."""

    time: np.ndarray
    params: Params
    speed: np.ndarray
    events: Mapping[str, float | None]

    def at(self, frame: int) -> dict[str, np.ndarray]:
        return {name: block[frame] for name, block in self.params.items()}

    def frame(self, when: float) -> int:
        """The first frame at or after a time."""
        return min(int(np.searchsorted(self.time, when)), len(self.time) - 1)


@dataclass(frozen=True)
class Window:
    """A tenfold rise of an opening, and how near the run is to the point meanwhile.

    `matrix` is the escape matrix at the run itself, averaged over the rise, `drift` its mean relative distance |B - B*| / |B*|
    from that at the point, `furthest` the largest relative distance of the run from the point. `shifts` are what B - B*
    makes of the rate to first order, u* (B - B*) w* / rate, when the rise begins and averaged over it.
    """

    rise: Rise
    matrix: np.ndarray
    drift: float
    furthest: float
    shifts: tuple[float, float]


@dataclass(frozen=True)
class Passage:
    """A run in one visit: the critical point of its label, and how the run comes near and leaves.

    In every frame the run is compared with the nearest member of the point's orbit under rotations.
    """

    seen: Seen
    visit: Visit
    small: SmallPoint
    ghost: float | None = None
    """|F| at a minimum beside the plateau where a search for a nearer critical point ended in vain."""

    @property
    def time(self) -> np.ndarray:
        return self.seen.time

    @cached_property
    def frames(self) -> np.ndarray:
        stop = self.time[-1] if self.visit.stop is None else self.visit.stop
        inside = np.flatnonzero((self.time >= self.visit.start) & (self.time <= stop))
        return inside if inside.size else np.array([int(np.argmin(np.abs(self.time - self.visit.start)))])

    @cached_property
    def plateau(self) -> int | None:
        """Where |F| has its lowest local minimum inside this visit; None where the run does not slow down in it."""
        speed = self.seen.speed[self.frames]
        lower = np.flatnonzero((speed[1:-1] <= speed[:-2]) & (speed[1:-1] < speed[2:])) + 1
        if self.frames[0] == 0 and len(speed) > 1 and speed[0] < speed[1]:
            lower = np.append(lower, 0)
        if self.frames[-1] == len(self.time) - 1 and len(speed) > 1 and speed[-1] < speed[-2]:
            lower = np.append(lower, len(speed) - 1)
        return int(self.frames[lower[np.argmin(speed[lower])]]) if lower.size else None

    @property
    def frame(self) -> int:
        """The plateau, or where the run is slowest."""
        return self.plateau if self.plateau is not None else int(self.frames[np.argmin(self.seen.speed[self.frames])])

    @cached_property
    def places(self) -> Place:
        """The nearest member of the point's orbit in every frame of the run."""
        return place(self.small.point.params, self.seen.params, self.small.r, self.small.rq)

    @property
    def place(self) -> Place:
        """That of the plateau."""
        return self.places.at(self.frame)

    @cached_property
    def size(self) -> float:
        """The norm distances are relative to: that of the point; at the origin that of the next plateau, (1,0)."""
        square = sum(float(np.sum(block**2)) for block in self.small.point.params.values())
        return float(square**0.5) or 2**0.5 * plateau_amplitude(self.small.loss.process.stationary) or 1.0

    @cached_property
    def distances(self) -> np.ndarray:
        """Relative distance from the critical point in every frame of the run."""
        target = self.places.params
        return np.sqrt(sum(np.sum((self.seen.params[n] - target[n]) ** 2, axis=(1, 2)) for n in target)) / self.size

    @property
    def distance(self) -> float:
        return float(self.distances[self.frame])

    @cached_property
    def amplitude(self) -> np.ndarray:
        """Of the predicted opening, in every frame of the run."""
        assert self.small.opening is not None
        return self.places.amplitude(self.small.opening, self.seen.params)

    @cached_property
    def opened(self) -> float | None:
        """When the opening has reached the size up to which it is linear."""
        if self.small.opening is None:
            return None
        logs = np.log(np.maximum(self.amplitude, np.finfo(float).tiny))
        return first_crossing(self.time, logs, float(np.log(self.small.sizes[0])), rising=True)

    @cached_property
    def windows(self) -> tuple[Window, ...]:
        """Tenfold rises of the opening inside this visit, the last first."""
        found, high, opening = [], 0.0 if self.small.opening is None else self.small.sizes[0], self.small.opening
        while opening is not None and high / WINDOW > np.min(self.amplitude):
            rise = last_rise(self.time, self.amplitude, high / WINDOW, high)
            if rise is not None and rise.start >= self.visit.start:
                found.append(self._window(rise, opening))
            high /= APART
        return tuple(found)

    def _window(self, rise: Rise, opening: Opening) -> Window:
        frames = [int(np.argmin(np.abs(self.time - t))) for t in rise.times(SAMPLES)]
        here = [escape_matrices(self.small.loss, self.places.at(i).shadow(self.seen.at(i)))[opening.block] for i in frames]
        at = escape_matrices(self.small.loss, self.small.point.params)[opening.block]
        left, rates, right = np.linalg.svd(at)
        drift = np.mean([np.linalg.norm(matrix - at, 2) for matrix in here]) / rates[0]
        shifts = [float(left[:, 0] @ (matrix - at) @ right[0] / rates[0]) for matrix in here]
        nearness = float(drift), float(self.distances[frames].max()), (shifts[0], float(np.mean(shifts)))
        return Window(rise, np.mean(here, axis=0), *nearness)

    @cached_property
    def window(self) -> Window | None:
        """The rise during which the linearisation at the run is nearest to that at the point: a choice that sees no rate."""
        return min(self.windows, key=lambda window: (round(window.drift, 3), window.furthest), default=None)

    @property
    def rise(self) -> Rise | None:
        """The rise over which the rate is measured."""
        return None if self.window is None else self.window.rise

    @property
    def here(self) -> float | None:
        """The fastest rate of the opening's block that linearising at the run itself gives over the rise."""
        return None if self.window is None else float(np.linalg.norm(self.window.matrix, 2))

    @property
    def astray(self) -> str:
        """Why the linearisation at the point does not speak of the rise, decided without the rate; empty where it does."""
        if self.small.opening is None:
            return ""
        if self.window is None:
            return "" if self.opened is None else f"the opening does not rise tenfold while the run is at {self.visit.label}"
        return self._far(self.window)

    def _far(self, window: Window) -> str:
        label = self.visit.label
        if window.furthest > NEAR:
            return f"while the opening rises the run is up to {window.furthest:.2f} from {label}, further than {NEAR}"
        if window.drift > NEAR:
            why = f"is {window.drift:.2f} from that at {label}, above {NEAR}"
            return f"while the opening rises the linearisation at the run {why}"
        if min(map(abs, window.shifts)) > SETTLED:
            why = " and ".join(f"{1 + shift:.2f}" for shift in window.shifts)
            return f"not settled: when the rise begins and over it, linearising at the run foretells {why} of the rate at {label}"
        return ""

    @cached_property
    def mixed(self) -> str:
        """Why no single direction is predicted at the end of the last rise, empty where one is.

        A singular vector turns by |B - B*| over the gap to the next singular value (Wedin), so the gap, not the rate, is what
        the distance of the linearisation is measured against.
        """
        opening = self.small.opening
        if not self.windows or opening is None:
            return ""
        last, kinds = self.windows[0], self.small.openings[opening.block]
        gap = opening.rate - (kinds[1].rate if len(kinds) > 1 else 0.0)
        turn = last.drift * opening.rate / max(gap, np.finfo(float).tiny)
        if turn > NEAR:
            why = f"is {turn:.2f} of the gap to the next opening from that at {self.visit.label}, above {NEAR}"
            return f"while the opening rises the linearisation at the run {why}"
        if self._purity(last.rise) < PURE:
            return f"slower openings are predicted to be present: the fastest alone has cosine {self._purity(last.rise):.2f}"
        return self._far(last)

    def _purity(self, rise: Rise) -> float:
        """Share of the fastest opening that linear growth from the start of a rise predicts at its end, as a cosine."""
        assert self.small.opening is not None
        first = self.seen.frame(rise.start)
        at, params = self.places.at(first), self.seen.at(first)
        kinds = self.small.openings[self.small.opening.block]
        sizes = [at.amplitude(o, params) * np.exp(o.rate * (rise.stop - rise.start)) for o in kinds]
        return float(sizes[0] / np.linalg.norm(sizes))

    @property
    def event(self) -> str | None:
        """The event that ends the visit according to the prediction."""
        if self.small.opening is None:
            return None
        return f"E{self.small.r + 1}" if self.small.opening.block == "embedding" else f"Q{self.small.rq + 1}"

    @property
    def left(self) -> float | None:
        """When the run passes that event."""
        return self.seen.events.get(self.event) if self.event is not None else None

    @property
    def predicted(self) -> float | None:
        """t + ln(size at the event / size at t) / rate."""
        if self.small.opening is None or self.distance > NEAR:
            return None
        now = float(self.amplitude[self.frame])
        if not 0 < now < self.small.sizes[1]:
            return None
        return float(self.time[self.frame] + np.log(self.small.sizes[1] / now) / self.small.opening.rate)

    @cached_property
    def _before(self) -> Place:
        """The orbit's member where the opening was smallest: what has opened tilts S by as much, and would turn itself."""
        last = len(self.time) - 1 if self.left is None else self.seen.frame(self.left)
        inside = self.frames[self.frames <= last]
        return self.places.at(int(inside[np.argmin(self.amplitude[inside])]) if inside.size else self.frame)

    @cached_property
    def cosines(self) -> tuple[float, ...]:
        """Of what opened, at the event, with the prediction: new column of W0 and row of W1, or new scores."""
        opening = self.small.opening
        if opening is None or self.left is None:
            return ()
        params = self.seen.at(self.seen.frame(self.left))
        if opening.block == "embedding":
            rest = self._before.beside_s
            u, w = np.linalg.svd(params["W0"] @ rest)[0][:, 0], np.linalg.svd(rest @ params["W1"])[2][0]
            length = float(np.linalg.norm(opening.w)) or 1.0
            return abs(float(u @ opening.u)), abs(float(w @ opening.w)) / length
        new = params["W0"] @ params["WQ"] @ self._before.beside_u @ params["WK"].T @ params["W0"].T
        w0 = self.small.point.params["W0"]
        foreseen = np.outer(w0 @ opening.q, w0 @ opening.k)
        return (float(np.sum(new * foreseen) / np.linalg.norm(new) / np.linalg.norm(foreseen)),)
