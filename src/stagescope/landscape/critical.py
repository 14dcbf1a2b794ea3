"""Critical points: the search for a zero of a field, what kind of point it is, and which of them a run passed by."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.linalg import norm

from stagescope.fields.field import Field, Objective
from stagescope.landscape.derivatives import Derivatives, NotFinite
from stagescope.landscape.linearise import threshold
from stagescope.landscape.spectrum import LARGEST_DENSE, Spectrum, spectrum_at
from stagescope.params import Params
from stagescope.runs.run import Run


@dataclass(frozen=True)
class SearchRule:
    """How far a search for a zero of F goes, and how its steps are damped."""

    exact: float = 1e-15  # |F| at which it ends: about the rounding of parameters of size one
    steps: int = 300  # with the whole Jacobian
    patience: int = 30  # steps that do not halve |F|, after which it ends unless |F| is below `hopeful`
    hopeful: float = 1e-7
    polished: float = 1e-12  # |F| of a polished point; below it `settled` steps that do not halve |F| end the search
    settled: int = 5
    largest: float = 1e12  # parameters beyond this have no critical point that differs from rounding
    gain: float = 1e-4  # share of the predicted fall of |F|^2 that an accepted step must bring
    shrink: float = 0.1  # least factor of the damping after an accepted step
    damping: tuple[float, float] = (1e-6, 1e12)
    iterated_steps: int = 60  # of a large model, each with at most `iterated_products` products with J and J^T
    iterated_products: int = 200
    iterated_tolerance: float = 1e-4  # coarse, because the next step corrects what is left
    finish_whole: float = 1e-5  # below this |F| a model of some thousand parameters takes `whole_steps` with the whole Jacobian
    whole_steps: int = 20
    cuts: tuple[float, ...] = tuple((10.0 ** -np.arange(2, 11)).tolist())  # shares of the largest singular value
    valley: int = 3  # steps over which a search is judged to be led away, twice; see `_led_away`
    even: float = 0.7  # steps that shrink by no more than this do not converge
    returns: int = 8  # corrections of a polishing step, along singular values `resolved` times larger than the cut
    resolved: float = 1e3


RULE = SearchRule()


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
            vector = _search(near, start, _whole_steps, RULE.steps, until, reach)
        else:
            vector = _search(near, start, _iterated_steps, RULE.iterated_steps, until, reach)
            small = RULE.polished < norm(near.velocity(vector)) <= RULE.finish_whole
            if len(vector) > LARGEST_DENSE or not small:
                return vector
            vector = _search(near, vector, _whole_steps, RULE.whole_steps, until)
        return _polished(near, vector, until) if RULE.polished < norm(near.velocity(vector)) <= RULE.hopeful else vector


def far_out(near: Derivatives, vector: np.ndarray) -> bool:
    """Whether a point is too far out for a search: astronomically large, or F is not finite there."""
    if not np.all(np.abs(vector) <= RULE.largest):  # also where it is not finite
        return True
    with np.errstate(over="ignore", invalid="ignore"):
        return not np.isfinite(norm(near.velocity(vector)))


def _search(near: Derivatives, start: np.ndarray, steps: "Steps", most: int, until: float, reach: float = np.inf) -> np.ndarray:
    """Levenberg-Marquardt steps: minimise |F + J step|^2 + damp |step|^2, the damping in proportion to |F|.

    Along the orbit of a symmetry J is of the order of |F|: an undamped step there would be as large as the parameters.
    Damping that vanishes with |F| keeps the step small and the convergence quadratic, also where zeros are not isolated.
    Its factor follows the gain: the fall of |F|^2 over the one the linearisation promised. `until` is the count of products
    at which the search ends.
    """
    vector, velocity, ease, harder = start, near.velocity(start), 1.0, 2.0
    sizes, ways = [float(norm(velocity))], [start]
    solve = _solver(steps, near, vector)
    while solve is not None and sizes[-1] > RULE.exact and ease < RULE.damping[1] and len(sizes) < most and near.products < until:
        if len(sizes) > RULE.patience and sizes[-1] > max(0.5 * sizes[-RULE.patience], RULE.hopeful):
            break  # a minimum of |F| that is no zero
        if len(sizes) > RULE.settled and 0.5 * sizes[-RULE.settled] < sizes[-1] <= RULE.polished:
            break
        step, left = solve(velocity, ease * sizes[-1] / max(float(norm(vector)), 1e-300))
        found = near.velocity(vector + step)
        size = float(norm(found))
        promised = (sizes[-1] - left) * (sizes[-1] + left)
        gain = (sizes[-1] - size) * (sizes[-1] + size) / max(promised, 1e-300)
        if gain > RULE.gain:  # also false where it is not finite
            vector, velocity = vector + step, found
            ease, harder = max(ease * max(RULE.shrink, 1 - (2 * min(gain, 2.0) - 1) ** 3), RULE.damping[0]), 2.0
            sizes.append(size)
            ways = [*ways[-2 * RULE.valley :], vector]
            if _led_away(sizes, ways, reach - float(norm(vector - start))):
                raise LedAway(vector)
            solve = _solver(steps, near, vector)
        else:
            ease, harder = ease * harder, 2 * harder
    return vector


def _led_away(sizes: list[float], ways: list[np.ndarray], reach: float) -> bool:
    """Whether a search goes on evenly, step after step, so that |F| would vanish only beyond `reach`.

    Near a zero steps shrink, by a half where it is degenerate, and |F| falls faster and faster. Towards a zero at infinity,
    such as that of exp(-x), steps stay as long as they are and |F| falls by the same factor in each.
    """
    count = RULE.valley
    if np.isinf(reach) or len(ways) <= 2 * count:
        return False
    before, now = (float(norm(ways[i] - ways[i - count])) for i in (-1 - count, -1))
    fall = np.log(sizes[-1 - count] / sizes[-1])
    return now >= RULE.even * before and now * np.log(sizes[-1] / RULE.polished) / max(fall, 1e-300) > reach


def _solver(steps: "Steps", near: Derivatives, vector: np.ndarray) -> "Solve | None":
    """The steps from a point, None where J is not finite or cannot be decomposed."""
    try:
        return steps(near, vector)
    except (NotFinite, np.linalg.LinAlgError):
        return None


def _polished(near: Derivatives, vector: np.ndarray, until: float = np.inf) -> np.ndarray:
    """Undamped steps of least norm, for zeros at which J loses rank: there |F| falls slowly, and damping stalls.

    A step along a direction that J hardly resolves is long, and bends away in those it resolves well. So each trial is
    brought back along these, with the same J, before it is judged.
    """
    velocity = near.velocity(vector)
    for _ in range(RULE.patience):
        size = float(norm(velocity))
        if size <= RULE.polished or near.products >= until:
            break
        try:
            left, values, right = _singular(near, vector)
        except (NotFinite, np.linalg.LinAlgError):
            break

        def back(f: np.ndarray, cut: float, parts: tuple = (left, values, right)) -> np.ndarray:
            along, kept, across = parts[0], parts[1] > cut * parts[1][0], parts[2]
            return -across[kept].T @ ((along[:, kept].T @ f) / parts[1][kept])

        trials = []
        for cut in RULE.cuts:
            tried = vector + back(velocity, cut)
            for _ in range(RULE.returns):
                tried = tried + back(near.velocity(tried), RULE.resolved * cut)
            trials.append((tried, near.velocity(tried)))
        tried, found = min(trials, key=lambda trial: np.nan_to_num(norm(trial[1]), nan=np.inf))
        if not norm(found) < 0.9 * size:
            break
        vector, velocity = tried, found
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
    accuracy = RULE.iterated_tolerance if len(vector) <= LARGEST_DENSE else RULE.iterated_tolerance**2

    def solve(f: np.ndarray, damp: float) -> tuple[np.ndarray, float]:
        rate = float(norm(near.jvp(vector, f)) / norm(f))
        bounds: Any = {"atol": accuracy, "btol": accuracy, "maxiter": RULE.iterated_products}
        step = -lsmr(operator, f, damp=float(np.sqrt(damp * rate)), **bounds)[0]
        return step, float(norm(f + near.jvp(vector, step)))

    return solve


CRITICAL = 1e-10
"""Largest |F| of a point that is called critical."""
FASTEST = 6
"""Rates that are computed of a large model, and shown of any."""


@dataclass(frozen=True)
class PassingRule:
    """Which frames of a run the searches for critical points start from, and how much work they take."""

    slower: float = 0.5  # a slow frame: |F| is this many times smaller than before and after it, or less
    most_slow: int = 8  # slow frames that are used, the most marked ones
    searches: int = 5  # starts from a slow frame up to the next peak of |F|, until a point is `close` in relative distance
    close: float = 0.05
    products: int = 10_000  # with J, in all searches along a run
    reach: float = 0.5  # relative distance beyond which a valley of |F| is not followed,
    led_away: int = 2  # and searches from a slow frame that end in such a valley, after which no more are made
    origin: float = 0.1  # distances from shorter points are relative to this share of the longest parameter vector


PASSING = PassingRule()


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
        known = self.spectrum.complete or (self.spectrum.converged and len(self.growing) < len(self.rates))
        return len(self.growing) if known else None

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
        when = "" if self.t is None else f", t {self.t:.6g}"
        rates = " ".join(f"{rate:.4g}" for rate in np.real(self.growing)[:FASTEST]) or "none"
        count = "unknown" if self.index is None else self.index
        facts = f"{self.kind}{when}{loss}, |F| {self.residual:.1e}, distance {self.distance:.3g}, index {count}"
        return f"CriticalPoint({facts}, growing rates {rates}; {blocks})"

    def json(self) -> dict[str, Any]:
        named = ("t", "kind", "index", "flat", "residual", "distance", "loss")
        growing = [float(rate) for rate in np.real(self.growing)[:FASTEST]]
        return {**{name: getattr(self, name) for name in named}, "rates": growing}


def critical_point(
    what: Objective | Field,
    params: Params,
    rates: Mapping[str, float] | None = None,
    *,
    least_length: float = 0.0,
    t: float | None = None,
) -> CriticalPoint:
    """The critical point that least squares on F finds from `params`.

    Symmetries make critical points orbits and the Jacobian singular there; damped Newton takes steps of least norm, so the
    member of the orbit that is found is one near the start. Where |F| has no zero nearby the residual says so. Its distance
    is relative to its norm, but at least to `least_length`, by default that of `params`: the origin has none.

    Args:
        what: an objective or a field.
        params: where the search begins.
        rates: a factor of the velocity for each block.
        least_length: the least length that the distance is relative to.
        t: kept in the answer.

    Returns:
        The point, its residual and its rates.

    Examples:
        >>> point = ss.critical_point(well, {"x": np.full(1, 0.9)})
        >>> point.found, point.kind, point.params["x"].round(6).tolist()
        (True, 'minimum', [1.0])
    """
    near = Derivatives(what, params, rates)
    start = near.layout.pack(params)
    return _described(near, Ended(refine(near, start)), start, least_length, t)


@dataclass(frozen=True)
class Ended:
    """Where a search ended, whether its work was used up, and whether it was led away."""

    vector: np.ndarray
    used_up: bool = False
    led_away: bool = False


@np.errstate(over="ignore", invalid="ignore")
def _described(near: Derivatives, ended: Ended, start: np.ndarray, least_length: float, t: float | None) -> CriticalPoint:
    vector, stopped = ended.vector, ""
    if far_out(near, start):
        stopped = f"no search: parameters of size {np.abs(start).max():.1e} are too large, or their velocity is not finite"
    elif ended.led_away:
        stopped = f"|F| falls only along a valley that leads further than relative distance {PASSING.reach:g}"
    elif ended.used_up:
        stopped = f"the work of all searches ({PASSING.products} products with the Jacobian) did not suffice"
    point, objective = near.layout.unpack(vector), near.field.objective
    length = max(float(norm(vector)), least_length or float(norm(start)), 1e-300)
    return CriticalPoint(
        params=point,
        residual=float(norm(near.velocity(vector))),
        distance=float(norm(vector - start)) / length,
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
    `heard` is called with the number of products with J so far; the searches make about `PASSING.products` at most.

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
    chosen = rates if rates is not None else run.spec["dynamics"].get("rates", {})
    lengths = [norm([norm(run.params[name][i]) for name in run.params]) for i in range(run.frames)]
    length = PASSING.origin * float(np.max(lengths))
    speed = run.series["speed"]
    frames = slow_frames(speed, PASSING.most_slow)
    near = Derivatives(what, run.at(0), chosen, heard)
    found, spent = [], 0
    for number, (frame, following) in enumerate(zip(frames, [*frames[1:], run.frames], strict=True)):
        share, before = max(PASSING.products - spent, 0) / (len(frames) - number), near.products
        peak = frame + int(np.argmax(speed[frame:following]))
        starts = np.unique(np.linspace(frame, peak, PASSING.searches).astype(int))
        ended = _nearest(near, [near.layout.pack(run.at(int(i))) for i in starts], length, share)
        spent += near.products - before
        found.append(_described(near, ended, near.layout.pack(run.at(frame)), length, float(run.time[frame])))
    return found


def _nearest(near: Derivatives, starts: list[np.ndarray], least_length: float, share: float) -> Ended:
    """The zero of F nearest to the first start that is found from any; without one, where the search from the first ended.

    Each search may use half of what is left of the share, so that a long valley of |F| leaves something for the next start.
    """
    until, used_up, led_away = near.products + share, False, 0
    reach = PASSING.reach * max(float(norm(starts[0])), least_length)

    def search(start: np.ndarray) -> np.ndarray:
        nonlocal used_up, led_away
        limit = (near.products + until) / 2
        try:
            found = refine(near, start, limit - near.products, reach)
        except LedAway as away:
            led_away += 1
            return away.vector
        used_up = used_up or near.products >= limit
        return found

    first = best = search(starts[0])

    def away(vector: np.ndarray) -> float:
        if not norm(near.velocity(vector)) <= CRITICAL:
            return np.inf
        return float(norm(vector - starts[0])) / max(float(norm(vector)), least_length, 1e-300)

    for start in starts[1:]:
        if away(best) <= PASSING.close or led_away >= PASSING.led_away:
            break
        best = min(best, search(start), key=away)
    if away(best) < np.inf:
        return Ended(best, used_up and away(best) > PASSING.close)
    return Ended(first, used_up, led_away > 0)


def slow_frames(speed: np.ndarray, most: int | None = None) -> list[int]:
    """Frames at local minima of |F| with a markedly larger |F| on both sides; an end still slowing counts, a start too.

    With `most`, only so many of them, the most marked ones. Where |F| is not finite nothing is slow.
    """
    from scipy.signal import find_peaks

    finite = np.isfinite(speed)
    if not finite.any():
        return []
    logs = -np.log(np.maximum(np.where(finite, speed, speed[finite].max()), CRITICAL))  # below it, only rounding moves
    ends = np.concatenate([[logs.min() - 1], logs, [logs.min() - 1]])
    frames, facts = find_peaks(ends, prominence=-np.log(PASSING.slower))
    marked = np.argsort(-facts["prominences"], kind="stable")[:most]
    return sorted((frames[marked] - 1).tolist())
