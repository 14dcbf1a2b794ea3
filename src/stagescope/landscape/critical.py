"""Critical points: the search for a zero of a field, what kind of point it is, and which of them a run passed by."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.linalg import norm

from stagescope.core.params import Params
from stagescope.flow.field import Field, Objective
from stagescope.landscape.derivatives import Derivatives, NotFinite
from stagescope.landscape.limits import LIMITS
from stagescope.landscape.linearise import threshold
from stagescope.landscape.spectrum import LARGEST_DENSE, Spectrum, spectrum_at
from stagescope.runs.run import Run

CRITICAL = LIMITS.critical
"""Largest |F| of a point that is called critical."""
FASTEST = 6
"""Rates that are computed of a large model, and shown of any."""
CUTS = 10.0 ** -np.arange(2, 11)
"""Those of the steps that polish a zero."""


class LedAway(Exception):
    """A search along a valley of |F| that leads further than its reach; it holds where the search ended."""

    def __init__(self, vector: np.ndarray) -> None:
        self.vector = vector


def refine(near: Derivatives, start: np.ndarray, products: float = np.inf, reach: float = np.inf) -> np.ndarray:
    """A zero of F from `start`, or a minimum of |F|, or what was reached with about so many products with J.

    Raises `LedAway` where |F| falls along a valley that leads further than `reach`.

    Steps of a large model are iterated, which stalls where J has many small rates; near a zero the whole Jacobian takes over.
    Where F or J is not finite the search ends with the last point at which they are.
    """
    if far_out(near, start):
        return start
    until = near.products + products
    with np.errstate(over="ignore", invalid="ignore"):
        if near.dense:
            vector = _search(near, start, _whole_steps, LIMITS.steps, until, reach)
        else:
            vector = _search(near, start, _iterated_steps, LIMITS.iterations, until, reach)
            # From the root of what is critical, one step of the whole Jacobian leads to it.
            if len(vector) > LARGEST_DENSE or not LIMITS.polished < norm(near.velocity(vector)) <= CRITICAL**0.5:
                return vector
            vector = _search(near, vector, _whole_steps, LIMITS.patience, until)
        near_zero = LIMITS.polished < norm(near.velocity(vector)) <= LIMITS.flat
        return newton(near, vector, LIMITS.polished, CUTS, until, corrections=LIMITS.corrections) if near_zero else vector


def far_out(near: Derivatives, vector: np.ndarray) -> bool:
    """Whether a point is too far out for a search: so large that nothing is polished there, or F is not finite."""
    if not np.all(np.abs(vector) <= 1 / LIMITS.polished):  # also where it is not finite
        return True
    with np.errstate(over="ignore", invalid="ignore"):
        return not np.isfinite(norm(near.velocity(vector)))


def _search(near: Derivatives, start: np.ndarray, steps: "Steps", limit: int, until: float, reach: float = np.inf) -> np.ndarray:
    """Levenberg-Marquardt steps: minimise |F + J step|^2 + damp |step|^2, the damping in proportion to |F|.

    Along the orbit of a symmetry J is of the order of |F|: an undamped step there would be as large as the parameters.
    Damping that vanishes with |F| keeps the step small and the convergence quadratic, also where zeros are not isolated.
    Its factor follows the gain: the fall of |F|^2 over the one the linearisation promised. `until` is the count of products
    at which the search ends.
    """
    vector, velocity, ease, harder = start, near.velocity(start), 1.0, 2.0
    sizes, ways = [float(norm(velocity))], [start]
    solve = _solver(steps, near, vector)
    while (
        solve is not None
        and sizes[-1] > LIMITS.exact
        and ease < 1 / LIMITS.polished
        and len(sizes) < limit
        and near.products < until
    ):
        if len(sizes) > LIMITS.patience and sizes[-1] > max(LIMITS.half * sizes[-LIMITS.patience], LIMITS.flat):
            break  # a minimum of |F| that is no zero
        if len(sizes) > LIMITS.settled and LIMITS.half * sizes[-LIMITS.settled] < sizes[-1] <= LIMITS.polished:
            break  # rounding
        step, predicted_size = solve(velocity, ease * sizes[-1] / max(float(norm(vector)), 1e-300))
        trial_velocity = near.velocity(vector + step)
        size = float(norm(trial_velocity))
        promised = (sizes[-1] - predicted_size) * (sizes[-1] + predicted_size)
        gain = (sizes[-1] - size) * (sizes[-1] + size) / max(promised, 1e-300)
        if gain > LIMITS.gain:  # also false where it is not finite
            vector, velocity = vector + step, trial_velocity
            ease, harder = max(ease * max(LIMITS.shrink, 1 - (2 * min(gain, 2.0) - 1) ** 3), LIMITS.damping), 2.0
            sizes.append(size)
            ways = [*ways[-2 * LIMITS.window :], vector]
            if _led_away(sizes, ways, reach - float(norm(vector - start))):
                raise LedAway(vector)
            solve = _solver(steps, near, vector)
        else:
            ease, harder = ease * harder, 2 * harder
    return vector


def _led_away(sizes: list[float], ways: list[np.ndarray], reach: float) -> bool:
    """Whether a search goes on evenly, step after step, so that |F| would vanish only beyond `reach`.

    Near a zero steps shrink, by a half where it is degenerate, and |F| falls faster and faster. Towards a zero at infinity,
    such as that of exp(-x), steps stay as long as they are and |F| falls by the same factor in each. Between a half and one,
    their geometric mean decides.
    """
    count = LIMITS.window
    if np.isinf(reach) or len(ways) <= 2 * count:
        return False
    before, now = (float(norm(ways[i] - ways[i - count])) for i in (-1 - count, -1))
    fall = np.log(sizes[-1 - count] / sizes[-1])
    return now >= LIMITS.half**0.5 * before and now * np.log(sizes[-1] / LIMITS.polished) / max(fall, 1e-300) > reach


def _solver(steps: "Steps", near: Derivatives, vector: np.ndarray) -> "Solve | None":
    """The steps from a point, None where J is not finite or cannot be decomposed."""
    try:
        return steps(near, vector)
    except (NotFinite, np.linalg.LinAlgError):
        return None


def newton(
    near: Derivatives,
    vector: np.ndarray,
    least: float,
    cuts: np.ndarray,
    until: float = np.inf,
    multiples: tuple[float, ...] = (1.0,),
    corrections: int = 0,
) -> np.ndarray:
    """Undamped steps of least norm until |F| is `least`, for zeros at which J loses rank: there damping stalls.

    Each of the `cuts` is tried: the share of the largest singular value below which a step leaves singular values out.

    A step along a direction that J hardly resolves is long, and bends away in those it resolves well. So each trial is
    brought back along these, with the same J, before it is judged. Multiples of each step are tried as well: where F is
    homogeneous of degree p at a zero, J(x) x = p F(x), a step goes 1/p of the way, and its p-fold all of it.
    """
    velocity = near.velocity(vector)
    for _ in range(LIMITS.patience):
        size = float(norm(velocity))
        if size <= least or near.products >= until:
            break
        try:  # the least values decide, so they are not those of a symmetric matrix where all take a moment only
            left, values, right = np.linalg.svd(near.jacobian(vector)) if near.dense else _singular(near, vector)
        except (NotFinite, np.linalg.LinAlgError):
            break

        def back(f: np.ndarray, cut: float, parts: tuple = (left, values, right)) -> np.ndarray:
            along, resolved, across = parts[0].T @ f, parts[1] > cut * parts[1][0], parts[2]
            return -across[resolved].T @ (along[resolved] / parts[1][resolved])

        trials = []
        for cut in cuts:
            step = back(velocity, cut)
            for multiple in multiples:
                tried = vector + multiple * step
                for _ in range(corrections):
                    tried = tried + back(near.velocity(tried), LIMITS.resolved * cut)
                trials.append((tried, near.velocity(tried)))
        tried, trial_velocity = min(trials, key=lambda trial: np.nan_to_num(norm(trial[1]), nan=np.inf))
        if not norm(trial_velocity) < 0.9 * size:
            break
        vector, velocity = tried, trial_velocity
    return vector


Solve = Callable[[np.ndarray, float], tuple[np.ndarray, float]]
"""A step and |F + J step| as functions of F and of the damping, which is relative to the largest rate."""
Steps = Callable[[Derivatives, np.ndarray], Solve]


def _singular(near: Derivatives, vector: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The singular value decomposition of J: by its eigenvectors, several times faster, where it is symmetric."""
    jacobian, roots = near.jacobian(vector), near.roots
    if roots is None or np.ptp(roots) > 0:
        return np.linalg.svd(jacobian)
    values, vectors = np.linalg.eigh((jacobian + jacobian.T) / 2)
    order = np.argsort(-np.abs(values))
    values, vectors = values[order], vectors[:, order]
    return vectors * np.where(values < 0, -1.0, 1.0), np.abs(values), vectors.T


def _whole_steps(near: Derivatives, vector: np.ndarray) -> Solve:
    left, values, right = _singular(near, vector)

    def solve(f: np.ndarray, damp: float) -> tuple[np.ndarray, float]:
        along, bottom = left.T @ f, np.maximum(values**2 + damp * values[0], 1e-300)
        return -right.T @ (values / bottom * along), float(norm(along * (1 - values**2 / bottom)))

    return solve


def _iterated_steps(near: Derivatives, vector: np.ndarray) -> Solve:
    from scipy.sparse.linalg import lsmr

    operator = near.operator(vector)
    # Coarse, because the next step corrects what is left; finer where nothing finishes with the whole Jacobian.
    accuracy = LIMITS.gain if len(vector) <= LARGEST_DENSE else LIMITS.gain**2

    def solve(f: np.ndarray, damp: float) -> tuple[np.ndarray, float]:
        rate = float(norm(near.jvp(vector, f)) / norm(f))
        bounds: Any = {"atol": accuracy, "btol": accuracy, "maxiter": LIMITS.inner}
        step = -lsmr(operator, f, damp=float(np.sqrt(damp * rate)), **bounds)[0]
        return step, float(norm(f + near.jvp(vector, step)))

    return solve


@dataclass(frozen=True, repr=False)
class CriticalPoint:
    """A zero of a field with its linearisation.

    `residual` is |F| there, `distance` how far it is from where the search began, relative to the norm of the point or to
    the length a caller gives. `index` counts growing directions, `flat` those that neither grow nor decay; each is None
    where too few rates are known. `t` is the time at which a run passed by. `stopped` says why the search ended early, if it
    did; `led_away` whether that was because |F| falls only along a valley that leads far away.

    Examples:
        >>> origin = ss.critical_point(well, {"x": np.full(1, 0.01)})
        >>> origin.kind, origin.index, origin.rates.round(3).tolist()
        ('maximum', 1, [1.0])
    """

    params: Mapping[str, np.ndarray]
    residual: float
    distance: float
    find_spectrum: Callable[[], Spectrum]
    gradient: bool
    loss: float | None
    t: float | None = None
    stopped: str = ""
    led_away: bool = False

    @cached_property
    def spectrum(self) -> Spectrum:
        """Computed when it is first used: of a large model that takes longer than the search."""
        return self.find_spectrum()

    @property
    def found(self) -> bool:
        """Whether the search ended at a critical point."""
        return self.residual <= CRITICAL

    @property
    def rates(self) -> np.ndarray:
        return self.spectrum.rates

    @property
    def directions(self) -> tuple[Mapping[str, np.ndarray], ...]:
        return self.spectrum.directions

    @property
    def growing(self) -> np.ndarray:
        """The known rates of growing directions, fastest first."""
        return self.rates[np.real(self.rates) > self._zero]

    @property
    def index(self) -> int | None:
        """How many directions grow; None where only the fastest rates are known and all of them grow, or some are missing."""
        index_is_known = self.spectrum.complete or (self.spectrum.converged and len(self.growing) < len(self.rates))
        return len(self.growing) if index_is_known else None

    @property
    def flat(self) -> int | None:
        return int(np.sum(np.abs(np.real(self.rates)) <= self._zero)) if self.spectrum.complete else None

    @property
    def _zero(self) -> float:
        return threshold(self.spectrum.largest)

    @property
    def kind(self) -> str:
        """minimum, saddle or maximum of a loss; sink, saddle or source of a law that is no gradient.

        degenerate where every rate is zero, so that the linearisation says nothing; unstable where something grows and too
        few rates are known to say whether something decays; unknown where they do not say even that.
        """
        if not self.found:
            return "not critical"
        if self.spectrum.largest <= threshold(0.0):
            return "degenerate"
        lowest, highest = ("minimum", "maximum") if self.gradient else ("sink", "source")
        if np.any(np.real(self.rates) < -self._zero) and len(self.growing):
            return "saddle"
        if self.spectrum.complete:
            return highest if len(self.growing) else lowest
        if len(self.growing):
            return "unstable"
        return lowest if self.index == 0 else "unknown"

    def __repr__(self) -> str:
        blocks = ", ".join(f"{name} {np.shape(block)}" for name, block in self.params.items())
        loss = "" if self.loss is None else f", loss {self.loss:.6g}"
        time = "" if self.t is None else f", t {self.t:.6g}"
        rates = " ".join(f"{rate:.4g}" for rate in np.real(self.growing)[:FASTEST]) or "none"
        count = "unknown" if self.index is None else self.index
        facts = f"{self.kind}{time}{loss}, |F| {self.residual:.1e}, distance {self.distance:.3g}, index {count}"
        return f"CriticalPoint({facts}, growing rates {rates}; {blocks})"

    def json(self) -> dict[str, Any]:
        named = ("t", "kind", "index", "flat", "residual", "distance", "loss")
        growing = [float(rate) for rate in np.real(self.growing)[:FASTEST]]
        return {**{name: getattr(self, name) for name in named}, "rates": growing}


@np.errstate(over="ignore", invalid="ignore")
def critical_point(what: Objective | Field, params: Params, rates: Mapping[str, float] | None = None) -> CriticalPoint:
    """The critical point that least squares on F finds from `params`.

    Symmetries make critical points orbits and the Jacobian singular there; damped Newton takes steps of least norm, so the
    member of the orbit that is found is one near the start. Where |F| has no zero nearby the residual says so. Its distance
    is relative to its norm, but at least to that of `params`: the origin has none.

    Args:
        what: an objective or a field.
        params: where the search begins.
        rates: a factor of the velocity for each block.

    Returns:
        The point, its residual and its rates.

    Examples:
        >>> point = ss.critical_point(well, {"x": np.full(1, 0.9)})
        >>> point.found, point.kind, point.params["x"].round(6).tolist()
        (True, 'minimum', [1.0])
    """
    near = Derivatives(what, params, rates)
    start = near.layout.pack(params)
    return _described(near, Ended(refine(near, start)), start, float(norm(start)))


@dataclass(frozen=True)
class Ended:
    """Where a search ended; `stopped` says why it ended early, and `led_away` whether along a valley."""

    vector: np.ndarray
    stopped: str = ""
    led_away: bool = False


@np.errstate(over="ignore", invalid="ignore")
def _described(near: Derivatives, ended: Ended, start: np.ndarray, least_length: float, t: float | None = None) -> CriticalPoint:
    vector, stopped = ended.vector, ended.stopped
    if far_out(near, start):
        stopped = f"no search: parameters of size {np.abs(start).max():.1e} are too large, or their velocity is not finite"
    point, objective = near.layout.unpack(vector), near.field.objective
    return CriticalPoint(
        params=point,
        residual=float(norm(near.velocity(vector))),
        distance=float(norm(vector - start)) / max(float(norm(vector)), least_length, 1e-300),
        find_spectrum=lambda: spectrum_at(near, vector, FASTEST),
        gradient=objective is not None,
        loss=float(objective.value(point)) if objective is not None else None,
        t=t,
        stopped=stopped,
        led_away=ended.led_away,
    )


def critical_points(
    run: Run,
    what: Objective | Field,
    rates: Mapping[str, float] | None = None,
    heard: Callable[[int], None] = lambda products: None,
) -> list[CriticalPoint]:
    """The critical points a run passed by: from every slow point, and from the end where the run is still slowing.

    A run leaves a saddle along what grows there while the rest still approaches it, so where the slowest frame leads to no
    close point, frames up to the next peak of |F| are tried as well, and the point nearest to the slow frame is kept. The work
    of all searches is bounded and shared among the slow points; a point whose share was used up says so in `stopped`.
    `heard` is called with the number of products with J so far; the searches make about `LIMITS.products` at most.

    Args:
        run: the run.
        what: the objective or field that it moved along.
        rates: a factor of the velocity for each block.
        heard: called with the amount of work so far.

    Returns:
        Points in the order in which the run passed them.

    Examples:
        >>> flow = ss.evolve(well, {"x": np.full(1, 1e-3)}, ss.GradientFlow(), until=12)
        >>> [point.kind for point in ss.critical_points(flow, well)]
        ['maximum', 'minimum']
    """
    near = Derivatives(what, run.at(0), run.spec["dynamics"].get("rates", {}) if rates is None else rates, heard)
    length = LIMITS.size * max(float(norm(near.layout.pack(run.at(i)))) for i in range(run.frames))
    speed = run.series["speed"]
    frames = slow_frames(speed, LIMITS.most_slow)
    points, spent = [], 0
    for number, (frame, following) in enumerate(zip(frames, [*frames[1:], run.frames], strict=True)):
        share, before = max(LIMITS.products - spent, 0) / (len(frames) - number), near.products
        peak = frame + int(np.argmax(speed[frame:following]))
        starts = np.unique(np.linspace(frame, peak, LIMITS.starts).astype(int))
        ended = _nearest(near, [near.layout.pack(run.at(int(i))) for i in starts], length, share)
        spent += near.products - before
        points.append(_described(near, ended, near.layout.pack(run.at(frame)), length, float(run.time[frame])))
    return points


def _nearest(near: Derivatives, starts: list[np.ndarray], least_length: float, share: float) -> Ended:
    """The zero of F nearest to the first start that is found from any; without one, where the search from the first ended.

    Each search may use half of what is left of the share, so that a long valley of |F| leaves something for the next start.
    """
    until, used_up, led_away = near.products + share, False, 0
    reach = LIMITS.reach * max(float(norm(starts[0])), least_length)

    def search(start: np.ndarray) -> np.ndarray:
        nonlocal used_up, led_away
        limit = (near.products + until) / 2
        try:
            root = refine(near, start, limit - near.products, reach)
        except LedAway as away:
            led_away += 1
            return away.vector
        used_up = used_up or near.products >= limit
        return root

    first = best = search(starts[0])

    def away(vector: np.ndarray) -> float:
        if not norm(near.velocity(vector)) <= CRITICAL:
            return np.inf
        return float(norm(vector - starts[0])) / max(float(norm(vector)), least_length, 1e-300)

    for start in starts[1:]:
        if away(best) <= LIMITS.close or led_away >= LIMITS.led_away:
            break
        best = min(best, search(start), key=away)
    work = f"the work of all searches ({LIMITS.products} products with the Jacobian) did not suffice"
    if away(best) < np.inf:
        return Ended(best, work if used_up and away(best) > LIMITS.close else "")
    if led_away:
        return Ended(first, f"|F| falls only along a valley that leads further than relative distance {LIMITS.reach:g}", True)
    return Ended(first, work if used_up else "")


def slow_frames(speed: np.ndarray, limit: int | None = None) -> list[int]:
    """Frames at local minima of |F| with a markedly larger |F| on both sides; an end still slowing counts, a start too.

    With a `limit`, only so many of them, the most marked ones. Where |F| is not finite nothing is slow.
    """
    from scipy.signal import find_peaks

    finite = np.isfinite(speed)
    if not finite.any():
        return []
    logs = -np.log(np.maximum(np.where(finite, speed, speed[finite].max()), CRITICAL))  # below it, only rounding moves
    ends = np.concatenate([[logs.min() - 1], logs, [logs.min() - 1]])
    frames, facts = find_peaks(ends, prominence=-np.log(LIMITS.half))
    prominent = np.argsort(-facts["prominences"], kind="stable")[:limit]
    return sorted((frames[prominent] - 1).tolist())
