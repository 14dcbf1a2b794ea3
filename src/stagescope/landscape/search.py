"""The search for a zero of a field: damped least squares, and what finishes it where zeros are not isolated."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from stagescope.landscape.derivatives import Derivatives, NotFinite
from stagescope.landscape.spectrum import LARGEST_DENSE


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
    if not far_out(near, start):
        with np.errstate(over="ignore", invalid="ignore"):
            return _refined(near, start, near.products + products, reach)
    return start


def far_out(near: Derivatives, vector: np.ndarray) -> bool:
    """Whether a point is too far out for a search: astronomically large, or F is not finite there."""
    if not np.all(np.abs(vector) <= RULE.largest):  # also where it is not finite
        return True
    with np.errstate(over="ignore", invalid="ignore"):
        return not np.isfinite(np.linalg.norm(near.velocity(vector)))


def _refined(near: Derivatives, start: np.ndarray, until: float, reach: float) -> np.ndarray:
    if near.dense:
        vector = _search(near, start, _whole_steps, RULE.steps, until, reach)
    else:
        vector = _search(near, start, _iterated_steps, RULE.iterated_steps, until, reach)
        small = RULE.polished < np.linalg.norm(near.velocity(vector)) <= RULE.finish_whole
        if len(vector) > LARGEST_DENSE or not small:
            return vector
        vector = _search(near, vector, _whole_steps, RULE.whole_steps, until)
    return _polished(near, vector, until) if RULE.polished < np.linalg.norm(near.velocity(vector)) <= RULE.hopeful else vector


def _search(near: Derivatives, start: np.ndarray, steps: "Steps", most: int, until: float, reach: float = np.inf) -> np.ndarray:
    """Levenberg-Marquardt steps: minimise |F + J step|^2 + damp |step|^2, the damping in proportion to |F|.

    Along the orbit of a symmetry J is of the order of |F|: an undamped step there would be as large as the parameters.
    Damping that vanishes with |F| keeps the step small and the convergence quadratic, also where zeros are not isolated.
    Its factor follows the gain: the fall of |F|^2 over the one the linearisation promised. `until` is the count of products
    at which the search ends.
    """
    vector, velocity, ease, harder = start, near.velocity(start), 1.0, 2.0
    sizes, ways = [float(np.linalg.norm(velocity))], [start]
    solve = _solver(steps, near, vector)
    while solve is not None and sizes[-1] > RULE.exact and ease < RULE.damping[1] and len(sizes) < most and near.products < until:
        if len(sizes) > RULE.patience and sizes[-1] > max(0.5 * sizes[-RULE.patience], RULE.hopeful):
            break  # a minimum of |F| that is no zero
        if len(sizes) > RULE.settled and 0.5 * sizes[-RULE.settled] < sizes[-1] <= RULE.polished:
            break
        step, left = solve(velocity, ease * sizes[-1] / max(float(np.linalg.norm(vector)), 1e-300))
        found = near.velocity(vector + step)
        size = float(np.linalg.norm(found))
        promised = (sizes[-1] - left) * (sizes[-1] + left)
        gain = (sizes[-1] - size) * (sizes[-1] + size) / max(promised, 1e-300)
        if gain > RULE.gain:  # also false where it is not finite
            vector, velocity = vector + step, found
            ease, harder = max(ease * max(RULE.shrink, 1 - (2 * min(gain, 2.0) - 1) ** 3), RULE.damping[0]), 2.0
            sizes.append(size)
            ways = [*ways[-2 * RULE.valley :], vector]
            if _led_away(sizes, ways, reach - float(np.linalg.norm(vector - start))):
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
    before, now = (float(np.linalg.norm(ways[i] - ways[i - count])) for i in (-1 - count, -1))
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
        size = float(np.linalg.norm(velocity))
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
        tried, found = min(trials, key=lambda trial: np.nan_to_num(np.linalg.norm(trial[1]), nan=np.inf))
        if not np.linalg.norm(found) < 0.9 * size:
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
        return -right.T @ (values / bottom * along), float(np.linalg.norm(along * (1 - values**2 / bottom)))

    return solve


def _iterated_steps(near: Derivatives, vector: np.ndarray) -> Solve:
    from scipy.sparse.linalg import lsmr

    operator = near.operator(vector)
    accuracy = RULE.iterated_tolerance if len(vector) <= LARGEST_DENSE else RULE.iterated_tolerance**2

    def solve(f: np.ndarray, damp: float) -> tuple[np.ndarray, float]:
        rate = float(np.linalg.norm(near.jvp(vector, f)) / np.linalg.norm(f))
        bounds: Any = {"atol": accuracy, "btol": accuracy, "maxiter": RULE.iterated_products}
        step = -lsmr(operator, f, damp=float(np.sqrt(damp * rate)), **bounds)[0]
        return step, float(np.linalg.norm(f + near.jvp(vector, step)))

    return solve
