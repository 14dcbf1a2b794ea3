"""Legs and events read off a walk along a saddle path."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from stagescope.dynamics.solver import Stopped
from stagescope.landscape.saddle_path import AtRest, Leg, Place
from stagescope.papers.focus_dilution.family import escape_matrices, project
from stagescope.papers.focus_dilution.ladder.points import NO_RATE
from stagescope.papers.focus_dilution.loss import TokenLoss
from stagescope.papers.focus_dilution.saddle_path.small_flow import SmallModel
from stagescope.papers.focus_dilution.saddle_path.walk import BLOCKS, SETTLED, Walked
from stagescope.papers.focus_dilution.stages import Stay, passes, stays


@dataclass(frozen=True)
class PlaceRule:
    """When a leg has settled, and when its critical point lies at infinity."""

    settled: float = 0.01  # the rate of what opens is within this of that at the critical point
    steps: int = 3000  # of the small model's flow towards its critical point, at these tolerances
    tolerances: tuple[float, float] = (1e-6, 1e-10)
    power: float = 3.0  # a speed that falls more slowly than this power of time has no end at a finite place


RULE = PlaceRule()


@dataclass(frozen=True)
class Path:
    """A walk as one curve."""

    walked: list[Walked]
    loss: TokenLoss

    @cached_property
    def time(self) -> np.ndarray:
        return np.concatenate([leg.time for leg in self.walked])

    @cached_property
    def losses(self) -> np.ndarray:
        return np.concatenate([leg.losses for leg in self.walked])

    @cached_property
    def sizes(self) -> dict[str, np.ndarray]:
        tops = np.concatenate([leg.tops for leg in self.walked])
        return {name: tops[:, i] for i, name in enumerate(BLOCKS)}

    @cached_property
    def rates(self) -> dict[str, np.ndarray]:
        rates = np.concatenate([leg.rates for leg in self.walked])
        return {name: rates[:, i] for i, name in enumerate(BLOCKS)}

    @cached_property
    def values(self) -> dict[str, np.ndarray]:
        """Singular values of W0 (E) and of Phi (Q)."""
        (d, m), keys = self.loss.model.shapes["W0"], self.loss.model.shapes["WQ"][1]
        counts = {"E": min(d, m), "Q": min(d, m, keys)}
        return {name: np.vstack([_values(leg, name, count) for leg in self.walked]) for name, count in counts.items()}

    @cached_property
    def events(self) -> dict[str, float | None]:
        """When the k-th singular value of W0 or of Phi passes .1, as for runs [FD:stages]."""
        found: dict[str, float | None] = {}
        for letter, values in self.values.items():
            found |= {f"{letter}{k + 1}": when for k, when in enumerate(passes(self.time, values))}
        return found

    def legs(self) -> list[Leg]:
        """The stays of the path, each with what opens at its end."""
        found = stays(self.time, self.values["E"], self.values["Q"])
        return [self._leg(stay, following) for stay, following in zip(found, [*found[1:], None], strict=True)]

    def _leg(self, stay: Stay, following: Stay | None) -> Leg:
        end = float(self.time[-1]) if stay.stop is None else stay.stop
        opens, local = self._opening(stay, following)
        return Leg(
            label=stay.label,
            t_in=stay.start,
            t_out=stay.stop,
            loss=float(np.interp(end, self.time, self.losses)),
            opens=opens,
            local_rate=local,
            at_rest=lambda: self._at_rest(stay, opens, local),
        )

    def _at_rest(self, stay: Stay, opens: str | None, local: float | None) -> AtRest:
        rates, endless = self._point_rates(stay, opens)
        if local is None:
            last = self.walked[-1]
            near = last.speed < SETTLED or (last.ending is not None and last.ending.final)
        else:
            near = bool(rates) and abs(local - rates[0]) <= RULE.settled * rates[0]
        state: Place = "at infinity" if endless else "settled" if near else "passed"
        return state, tuple(rates) if near and not endless else ()

    def _opening(self, stay: Stay, following: Stay | None) -> tuple[str | None, float | None]:
        """What opens at the end of a stay, and its rate when the last pattern of this kind joined the path before."""
        if following is None or (following.r <= stay.r and following.rq <= stay.rq):
            return None, None
        opens = "embedding" if following.r > stay.r else "attention"
        joined = [leg for leg in self.walked if leg.opened == opens and leg.time[-1] <= following.start]
        return opens, float(joined[-1].rates[-1][BLOCKS.index(opens)]) if joined else None

    def _point_rates(self, stay: Stay, opens: str | None) -> tuple[list[float], bool]:
        """The rates at the critical point of a stay's own small model, and whether this point lies at infinity."""
        if stay.r == 0:
            return ([float(self.walked[0].rates[0][0])] if opens else []), False
        model, point, endless = self.critical(stay)
        if endless or opens is None:
            return [], endless
        law = escape_matrices(model.loss, model.unpacked(point))[opens]
        return [float(rate) for rate in np.linalg.svd(law, compute_uv=False) if rate > NO_RATE], False

    def critical(self, stay: Stay) -> tuple[SmallModel, np.ndarray, bool]:
        """The small model of a stay, r at least 1, where its flow ends, and whether that is at infinity.

        The flow starts from the slowest point of the stay.
        """
        leg, frame = self._slowest(stay)
        assert leg.model is not None
        small = project(leg.model.layout.unpack(leg.points[frame]), stay.r, stay.rq)
        model = SmallModel(self.loss, stay.r, stay.rq)
        return model, *followed(model, model.layout.pack(small), float(leg.time[frame]))

    def _slowest(self, stay: Stay) -> tuple[Walked, int]:
        """The slowest point of the path during a stay: its leg and frame."""
        stop = np.inf if stay.stop is None else stay.stop
        frames = [(leg, i) for leg in self.walked for i in np.flatnonzero((leg.time >= stay.start) & (leg.time <= stop)).tolist()]
        moving = [(leg, i) for leg, i in frames if leg.model is not None]
        return min(moving, key=lambda at: at[0].speeds[at[1]])


def _values(leg: Walked, letter: str, count: int) -> np.ndarray:
    out = np.zeros((len(leg.time), count))
    if leg.model is not None:
        small = leg.model.unpacked(leg.points)
        matrices = small["W0"] if letter == "E" else leg.model.loss.model.scores(small)
        most = min(count, leg.model.r if letter == "E" else leg.model.rq)
        out[:, :most] = np.linalg.svd(matrices, compute_uv=False)[:, :most]
    return out


def followed(model: SmallModel, point: np.ndarray, t: float) -> tuple[np.ndarray, bool]:
    """Where the flow of a small model ends, and whether it has no end: its speed falls by a power of time only."""
    times, speeds = [], []
    try:
        for now, vector in model.steps(point, t, 1e12, RULE.tolerances):
            point, speed = vector, float(np.linalg.norm(model.velocity(vector)[0]))
            times.append(now)
            speeds.append(speed)
            if speed < SETTLED or len(times) >= RULE.steps:
                break
    except Stopped:
        return point, False
    late = np.array(times) > times[-1] / 10
    if speeds[-1] < SETTLED or np.sum(late) < 3:
        return point, False
    slope = np.polyfit(np.log(np.array(times)[late]), np.log(np.array(speeds)[late]), 1)[0]
    return point, bool(slope > -RULE.power)
