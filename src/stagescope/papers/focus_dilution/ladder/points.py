"""Critical points of the small models (r, rq) inside TokenAttention, with what opens at them [FD:ladder]."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from stagescope.dynamics.evolve import evolve
from stagescope.dynamics.flow import GradientFlow
from stagescope.dynamics.record import LogSpaced, SpeedBelow
from stagescope.landscape.critical import CriticalPoint, critical_point
from stagescope.papers.focus_dilution.family import Opening, escape_matrices, openings, project, reduced
from stagescope.papers.focus_dilution.forms import condensation_directions
from stagescope.papers.focus_dilution.loss import TokenPopulation
from stagescope.papers.focus_dilution.stages import THRESHOLDS
from stagescope.params import Params

NO_RATE = 1e-7
"""A rate up to this is zero: critical points are found to |F| <= 1e-10, which leaves rates that are zero far smaller."""


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
        params = self.point.params
        scores = self.loss.model.scale * (params["W0"] @ params["WQ"]) @ (params["W0"] @ params["WK"]).T
        ranks = [int(np.sum(np.linalg.svd(matrix, compute_uv=False) > THRESHOLDS.level)) for matrix in (params["W0"], scores)]
        return self.point.found and ranks == [self.r, self.rq]

    @property
    def room(self) -> tuple[str, ...]:
        """Which kinds of directions can still open: a model of width r has no room for another embedding direction."""
        model = self.loss.model
        return ("embedding",) * (self.r < model.width) + ("attention",) * (self.rq < model.shapes["WQ"][1] and self.r > 0)

    @property
    def opening(self) -> Opening | None:
        """The fastest way out of the small model, None where nothing grows or there is no room."""
        found = [self.openings[block][0] for block in self.room if self.openings[block]]
        fastest = max(found, key=lambda opening: opening.rate, default=None)
        return fastest if fastest is not None and fastest.rate > NO_RATE else None

    @property
    def sizes(self) -> tuple[float, float]:
        """Amplitudes of the opening up to which it is linear, and at which the next singular value passes .1.

        A mode of size g has amplitude 2 g. Embedding: sv(W0) = g. Attention: sv(Phi) = scale |W0 q| |W0 k| g^2. It moves the
        embeddings by the order of g^2, so it is linear up to g = .05 only.
        """
        assert self.opening is not None
        if self.opening.block == "embedding":
            return 2 * THRESHOLDS.level, 2 * THRESHOLDS.level
        w0 = self.point.params["W0"]
        unit = self.loss.model.scale * float(np.linalg.norm(w0 @ self.opening.q) * np.linalg.norm(w0 @ self.opening.k))
        event = 2 * (THRESHOLDS.level / unit) ** 0.5
        return min(2 * 0.05, event), event


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


def condensed_start(loss: TokenPopulation, size: float, sign: float) -> dict[str, np.ndarray]:
    """A small balanced start of the model of width 1 along the directions that grow: W0 ~ pi, W1 ~ pi - 1/d, WK = sign WQ."""
    left, right = condensation_directions(loss.process.stationary)
    return {
        "W0": size * left[:, None],
        "W1": size * right[None, :],
        "WQ": np.full((1, 1), size),
        "WK": np.full((1, 1), sign * size),
    }
