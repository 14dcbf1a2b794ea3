"""The saddle ladder of TokenAttention: every plateau is a critical point of a small model (r, rq) [FD:ladder]."""

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from stagescope.detect.focus_dilution import Visit, passes
from stagescope.landscape.ladder import NEAR, Rung, fitted_rate
from stagescope.landscape.token_points import OPENS, SmallPoint, nearest_point, small_point
from stagescope.objectives.token import TokenPopulation
from stagescope.objectives.token_family import Opening, Place, escape_matrices, openings, place
from stagescope.types import Params

WINDOW = 10.0
"""Rates are fitted over the last tenfold rise of an amplitude."""
SAME_RATE, SAME_DIRECTION = 0.09, 0.985
"""The linearisation at a point is that of the run if its rate and its directions agree this well with those at the run."""
CLOSE, SEARCHES, SAME_LOSS = 0.05, 5, 1e-8
"""A run this close to the point the small flow reaches is there; else other points are searched for from some frames."""
SAMPLES = 20
"""Frames at which the linearisation at the run itself is averaged."""


@dataclass(frozen=True)
class Seen:
    """A run, frame by frame, with |grad L| and its events."""

    time: np.ndarray
    params: Params
    speed: np.ndarray
    events: dict[str, float | None]

    def at(self, frame: int) -> dict[str, np.ndarray]:
        return {name: block[frame] for name, block in self.params.items()}

    @cached_property
    def largest(self) -> float:
        """The largest |theta|^2 of the run."""
        return float(np.max(sum(np.sum(block**2, axis=(1, 2)) for block in self.params.values())))


@dataclass(frozen=True)
class Passage:
    """A run in one visit: the critical point of its label, and how the run comes near and leaves."""

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
    def place(self) -> Place:
        return place(self.small.point.params, self.seen.at(self.frame), self.small.r, self.small.rq)

    @cached_property
    def distances(self) -> np.ndarray:
        """Relative distance from the critical point in every frame of the visit; of the origin, relative to the largest norm."""
        target = self.place.params
        square = sum(np.sum((self.seen.params[n][self.frames] - target[n]) ** 2, axis=(1, 2)) for n in target)
        size = sum(float(np.sum(block**2)) for block in target.values())
        return np.sqrt(np.asarray(square) / (size or self.seen.largest or 1.0))

    @cached_property
    def distance(self) -> float:
        return float(self.distances[np.flatnonzero(self.frames == self.frame)[0]])

    @cached_property
    def amplitude(self) -> np.ndarray:
        """Of the predicted opening, in every frame of the run."""
        assert self.small.opening is not None
        return self.place.amplitude(self.small.opening, self.seen.params)

    @cached_property
    def fit(self) -> tuple[float | None, tuple[int, int] | None]:
        """Rate of the opening over its last tenfold rise, and the first and last frame of that rise."""
        if self.small.opening is None:
            return None, None
        high = self.small.sizes[0]
        return fitted_rate(self.time, self.amplitude, high / WINDOW, high)

    @property
    def followed(self) -> bool:
        """Whether the run is near the point over the whole rise: only then does the linearisation speak of it."""
        rise = self.fit[1]
        if rise is None or rise[0] < self.frames[0]:
            return False
        inside = (self.frames >= rise[0]) & (self.frames <= rise[1])
        return bool(np.all(self.distances[inside] <= NEAR))

    @cached_property
    def here(self) -> Opening | None:
        """The fastest opening that linearising at the run itself gives, averaged over the rise, instead of at the point."""
        rise, opening = self.fit[1], self.small.opening
        if rise is None or opening is None:
            return None
        chosen = np.unique(np.linspace(*rise, SAMPLES).astype(int))
        each = [escape_matrices(self.small.loss, self.place.shadow(self.seen.at(int(frame)))) for frame in chosen]
        mean = {name: np.mean([matrices[name] for matrices in each], axis=0) for name in each[0]}
        return openings(mean, self.small.r)[opening.block][0]

    @property
    def changed(self) -> str:
        """Why the rate at the point is not that of the run, empty where it is."""
        here, opening = self.here, self.small.opening
        if here is None or opening is None:
            return ""
        share = here.rate / opening.rate
        if abs(share - 1) <= SAME_RATE:
            return ""
        return f"over the rise, linearising at the run itself gives {share:.2f} of the rate at {self.visit.label}"

    @property
    def turned(self) -> str:
        """Why the direction at the point is not that of the run, empty where it is: either moves on, or is not alone."""
        here, opening = self.here, self.small.opening
        if here is None or opening is None or opening.block == "attention":
            return ""
        lengths = float(np.linalg.norm(here.w) * np.linalg.norm(opening.w)) or 1.0
        cosine = min(abs(float(here.u @ opening.u)), abs(float(here.w @ opening.w)) / lengths)
        if cosine < SAME_DIRECTION:
            return f"over the rise, the direction at the run itself has cosine {cosine:.2f} to that at {self.visit.label}"
        if self.purity < SAME_DIRECTION:
            return f"slower openings are predicted to be present as well: the fastest alone has cosine {self.purity:.2f}"
        return ""

    @cached_property
    def purity(self) -> float:
        """Share of the fastest opening that linear growth from the start of the rise predicts at its end, as a cosine."""
        rise, opening = self.fit[1], self.small.opening
        assert rise is not None
        assert opening is not None
        ahead = float(self.time[rise[1]] - self.time[rise[0]])
        kinds = self.small.openings[opening.block]
        sizes = [self.place.amplitude(o, self.seen.at(rise[0])) * np.exp(o.rate * ahead) for o in kinds]
        return float(sizes[0] / np.linalg.norm(sizes))

    @property
    def event(self) -> str | None:
        """The event that ends the visit according to the prediction."""
        if self.small.opening is None:
            return None
        return f"E{self.small.r + 1}" if self.small.opening.block == "embedding" else f"Q{self.small.rq + 1}"

    @cached_property
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
    def cosines(self) -> tuple[float, ...]:
        """Of what opened, at the event, with the prediction: new column of W0 and row of W1, or new scores."""
        opening = self.small.opening
        if opening is None or self.left is None:
            return ()
        params = self.seen.at(int(np.searchsorted(self.time, self.left)))
        if opening.block == "embedding":
            rest = self.place.beside_s
            u, w = np.linalg.svd(params["W0"] @ rest)[0][:, 0], np.linalg.svd(rest @ params["W1"])[2][0]
            length = float(np.linalg.norm(opening.w)) or 1.0
            return abs(float(u @ opening.u)), abs(float(w @ opening.w)) / length
        new = params["W0"] @ params["WQ"] @ self.place.beside_u @ params["WK"].T @ params["W0"].T
        w0 = self.small.point.params["W0"]
        foreseen = np.outer(w0 @ opening.q, w0 @ opening.k)
        return (float(np.sum(new * foreseen) / np.linalg.norm(new) / np.linalg.norm(foreseen)),)

    def rung(self) -> Rung:
        point, opening = self.small.point, self.small.opening if self.small.point.found else None
        base = {"label": self.visit.label, "t": float(self.time[self.frame]), "residual": point.residual}
        base |= {"distance": self.distance, "loss": point.loss, "note": self._note()}
        if opening is None:
            return Rung(**base, opening=None, rates=())
        return Rung(
            **base,
            opening=opening.block,
            rates=tuple(o.rate for o in self.small.openings[opening.block] if o.rate > OPENS),
            measured_rate=self.fit[0] if self.fit[1] is not None and self.fit[1][0] >= self.frames[0] else None,
            local_rate=None if self.here is None else self.here.rate,
            cosines=self.cosines,
            predicted_escape=self.predicted,
            measured_escape=self.left,
        )

    def _note(self) -> str:
        if self.small.point.found and not self.small.of_its_label:
            return f"the search ended at a critical point of a smaller model than {self.visit.label}"
        if not self.small.point.found:
            return f"the model {self.visit.label} has no critical point here: |F| stays at {self.small.point.residual:.0e}"
        if self.distance > NEAR:
            ghost = f"; beside the plateau |F| has a minimum {self.ghost:.0e} and no zero was found" if self.ghost else ""
            return f"relative distance above {NEAR}: the linearisation is not believed{ghost}"
        inside = float(np.real(self.small.point.rates[0]))
        if self.small.rq and inside > OPENS:
            return f"left inside the model {self.visit.label} as well, at rate {inside:.3g}"
        if self.small.opening is None:
            return "no rate is above zero"
        if self.changed:
            return self.changed
        return "" if self.fit[0] is not None else "the rise of the opening is not in the run, or began before the run was near"


def seen(time: np.ndarray, params: Params, loss: TokenPopulation) -> Seen:
    """A run as passages look at it."""
    embedding = np.linalg.svd(params["W0"], compute_uv=False)
    scores = np.linalg.svd(loss.model.scores(params), compute_uv=False)
    events = {f"E{k + 1}": when for k, when in enumerate(passes(time, embedding))}
    events |= {f"Q{k + 1}": when for k, when in enumerate(passes(time, scores))}
    field = loss.field()
    frames = [{name: block[i] for name, block in params.items()} for i in range(len(time))]
    return Seen(time, params, np.array([field.speed(field.rhs(frame)) for frame in frames]), events)


def passage(run: Seen, loss: TokenPopulation, visit: Visit) -> Passage:
    """The point the small model's flow reaches, or a saddle of the small model if the run stays nearer to one on its way.

    Points of the same loss belong to one family, of which the flow's member is taken.
    """
    begin = int(np.clip(np.searchsorted(run.time, visit.start), 0, len(run.time) - 1))
    found = Passage(run, visit, small_point(loss, run.at(begin), visit.r, visit.rq))
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
