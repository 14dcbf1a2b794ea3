"""Closed forms of linear attention: levels, maps on the plateaus, the course of one head, and merged heads.

Merged heads have one hyperbolic saddle, one curve for all small starts, and one drop without a fitted constant [LIN:merged].
"""

from collections.abc import Iterable
from functools import cache

import numpy as np

from stagescope.core.params import Params
from stagescope.papers.linear_icl.limits import LIMITS
from stagescope.papers.linear_icl.model import LinearAttention
from stagescope.papers.linear_icl.process import RegressionTask

HALF = 1 - 1 / np.sqrt(2)
"""M_ii over its final value at half of a loss step: the step's rest is (1 - x)^2."""
HALF_U = float(HALF ** (1 / 3))
"""v over its final value there, for a head of rank one along one direction: M_ii = v^3."""
AT_ZERO = float(np.pi / (6 * np.sqrt(3)))
"""What `course` is short of -1/u at u = 0."""


def levels(task: RegressionTask) -> np.ndarray:
    """l_m = tr Lambda - sum_{i <= m} lambda_i / a_i for m = 0 .. D [LIN:levels]."""
    gains = task.spectrum / task.amplification
    return task.spectrum.sum() - np.concatenate([[0.0], np.cumsum(gains)])


def levels_of(task: RegressionTask, model: LinearAttention) -> np.ndarray:
    """The levels between which a model falls: l_0 .. l_reach, of merged heads l_0 and l_D."""
    return levels(task)[[0, -1]] if model.merged else levels(task)[: model.reach + 1]


def regression_map(task: RegressionTask, components: int) -> np.ndarray:
    """M of least squares on the first principal components, Lambda known: diag 1/(lambda_i a_i) (D, D) [LIN:pcr]."""
    return np.diag(np.where(np.arange(task.dim) < components, final_map(task), 0.0))


def final_map(task: RegressionTask) -> np.ndarray:
    """M_ii of each direction once it is learned."""
    return 1 / (task.spectrum * task.amplification)


def head_value(task: RegressionTask, directions: Iterable[int]) -> float:
    """v_S = (sum_{i in S} 1/(lambda_i a_i))^(1/3): the value of a balanced head that holds these directions [LIN:rank]."""
    return float(np.sum(final_map(task)[list(directions)]) ** (1 / 3))


def opening_rate(task: RegressionTask, directions: Iterable[int], direction: int) -> float:
    """v_S lambda_i^2: how fast keys and queries of a further direction grow in a head that holds S [LIN:rank]."""
    return head_value(task, directions) * float(task.spectrum[direction]) ** 2


def course(u: np.ndarray | float) -> np.ndarray:
    """f(u): lambda^2 v_inf (t - t_0) = f(u) - f(u_0) along v' = lambda^2 v^2 - lambda^3 a v^5, u = v/v_inf [LIN:scalar]."""
    u = np.asarray(u, dtype=float)
    return -1 / u - np.log1p(-u) / 3 + _bent(u)


def _bent(u: np.ndarray) -> np.ndarray:
    return np.log1p(u + u**2) / 6 - np.arctan((2 * u + 1) / np.sqrt(3)) / np.sqrt(3)


def course_inverse(value: np.ndarray | float) -> np.ndarray:
    """u with f(u) = value, by bisection in the logarithm of u far before the drop, and of 1 - u far after it."""
    value = np.asarray(value, dtype=float)
    low, high = np.full(value.shape, -700.0), np.full(value.shape, 700.0)
    for _ in range(80):  # 1400 / 2^80 is below rounding
        middle = (low + high) / 2
        later = _course_of_logit(middle) > value
        low, high = np.where(later, low, middle), np.where(later, middle, high)
    return 1 / (1 + np.exp(-(low + high) / 2))


def _course_of_logit(x: np.ndarray) -> np.ndarray:
    """f at u = 1/(1 + e^-x), where 1 - u may be too small to be a difference."""
    return -(1 + np.exp(-x)) + np.logaddexp(0.0, x) / 3 + _bent(1 / (1 + np.exp(-x)))


def pace(task: RegressionTask, direction: int) -> float:
    """lambda_d^2 v_inf: the rate of a drop."""
    return opening_rate(task, (direction,), direction)


def delay(task: RegressionTask, direction: int) -> float:
    """From the blow-up of the unsaturated law to half of the loss step; negative, because the drop comes first [LIN:scalar]."""
    return (float(course(HALF_U)) + AT_ZERO) / pace(task, direction)


def joint_drop(task: RegressionTask, direction: int, waits: np.ndarray) -> float:
    """When heads with blow-up times `waits` that learn one direction together make its half step [LIN:scalar].

    With u = v/v_inf and p the pace of the drop each moves by u_h' = p u_h^2 (1 - sum u^3). On the clock ds = (1 - sum u^3) dt
    that is u_h = 1/(p (T_h - s)). The first head alone gives T_1 + `delay`.
    """
    from scipy.optimize import brentq

    later = pace(task, direction) * (waits - waits.min())

    def learned(y: np.ndarray) -> np.ndarray:
        """sum u^3 where the first head is at y."""
        return np.sum((y / (1 + np.multiply.outer(later, y))) ** 3, axis=0)

    high = brentq(lambda y: learned(y) - HALF, 0.0, HALF_U, xtol=1e-15)
    nodes, weights = np.polynomial.legendre.leggauss(40)
    y = high / 2 * (nodes + 1)
    grown = learned(y)
    passed = float(np.sum(high / 2 * weights * grown / (1 - grown) / y**2)) - 1 / high
    return float(waits.min()) + passed / pace(task, direction)


def value_course(task: RegressionTask, direction: int, since: np.ndarray) -> np.ndarray:
    """v(t) of a head that learns a direction, at times `since` its blow-up time [LIN:scalar]."""
    return head_value(task, (direction,)) * course_inverse(pace(task, direction) * np.asarray(since) - AT_ZERO)


def settling_rate(task: RegressionTask, learned: int) -> float:
    """How fast heads of rank one on the first directions lose what they have of the others [LIN:purity].

    The block (k_i, q_i) of the head on d moves by v_d lambda_i^2 [[-a_i/a_d, 1], [1, -lambda_d/lambda_i]]; this is the slowest
    of all its rates, infinite where nothing is left to lose.
    """
    spectrum, a, slowest = task.spectrum, task.amplification, np.inf
    for d in range(learned):
        for i in range(learned, task.dim):
            block = np.array([[-a[i] / a[d], 1.0], [1.0, -spectrum[d] / spectrum[i]]])
            slowest = min(slowest, -opening_rate(task, (d,), i) * float(np.linalg.eigvalsh(block)[-1]))
    return slowest


def start_unit(task: RegressionTask, merged: bool) -> float:
    """The final value of a head on direction 1: (lambda_1 a_1)^(-1/3), of merged heads ^(-1/2) [LIN:scaling].

    Eigenvalues c lambda with starts c^(-1/3) theta, or c^(-1/2) theta, give the same run on another clock, so a start is small
    beside this value.
    """
    return float(final_map(task)[0] ** (1 / 2 if merged else 1 / 3))


def purity(task: RegressionTask, scale: float, directions: int) -> float:
    """(s/v_i)^(1 - (lambda_{i+1}/lambda_i)^2): about the share of the next direction in a head that learns i [LIN:purity].

    v_i is the final value of that head. It is the largest of the first so many directions: how far the next one may spoil any of
    them. The last direction has no next one.
    """
    ratios = task.spectrum[1:] / task.spectrum[:-1]
    shares = [(scale / head_value(task, (i,))) ** (1 - ratio**2) for i, ratio in enumerate(ratios[:directions])]
    return float(max(shares, default=0.0))


def merged_rate(task: RegressionTask) -> float:
    """r = |Lambda^2|_F: how fast a small merged start grows [LIN:merged]."""
    return float(np.linalg.norm(task.spectrum**2))


@cache
def _common_drop(task: RegressionTask) -> float:
    """Half of l_0 - l_D on the curve that all heads of small merged starts follow.

    sigma' = sum_i V_i g_i, V_i' = sigma g_i, g_i = lambda_i^2 - lambda_i^3 a_i sigma V_i, from sigma = |V| = `curve_start` units.
    """
    rate, square = merged_rate(task), task.spectrum**2
    stiff = task.spectrum**3 * task.amplification
    y = LIMITS.curve_start * start_unit(task, True) * np.concatenate([[1.0], square / rate])

    def law(y: np.ndarray) -> np.ndarray:
        push = square - stiff * y[0] * y[1:]
        return np.concatenate([[y[1:] @ push], y[0] * push])

    step, points = (-np.log(LIMITS.curve_start) + 12) / rate / LIMITS.curve_steps, [y]
    for _ in range(LIMITS.curve_steps):
        a = law(y)
        b = law(y + step / 2 * a)
        c = law(y + step / 2 * b)
        y = y + step / 6 * (a + 2 * b + 2 * c + law(y + step * c))
        points.append(y)
    learned = np.array([point[0] * point[1:] for point in points]) / final_map(task)
    loss = task.spectrum.sum() - (1 - (1 - learned) ** 2) @ (task.spectrum / task.amplification)
    # to the level l_D itself and not to where the curve ends
    middle = float(np.mean(levels(task)[[0, -1]]))
    place = int(np.argmax(loss < middle))
    around = slice(place - 2, place + 2)
    time = step * np.arange(LIMITS.curve_steps + 1)
    return float(np.polyval(np.polyfit(loss[around] - middle, time[around], 3), 0.0))


def merged_drop_time(task: RegressionTask, start: Params) -> float:
    """Half of l_0 - l_D: t_ref + ln(eps/c)/r, eps the size at which the common curve starts [LIN:merged-drop]."""
    grown = float(np.linalg.norm(merged_growing(task, start)))
    if grown == 0:
        return np.inf
    later = float(np.log(LIMITS.curve_start * start_unit(task, True) / grown)) / merged_rate(task)
    return _common_drop(task) + later  # pyright: ignore[reportArgumentType] (a frozen value has a hash)


def merged_growing(task: RegressionTask, params: Params) -> np.ndarray:
    """(v_h + <U_h, Lambda^2>/r)/2 of each head (..., H): the part that grows."""
    along = np.einsum("...hii,i->...h", np.asarray(params["U"]), task.spectrum**2) / merged_rate(task)
    return (np.asarray(params["v"]) + along) / 2


def logistic(task: RegressionTask, first: float, time: np.ndarray) -> np.ndarray:
    """m(t) of M = m I for equal eigenvalues, from an aligned balanced start with M = first I [LIN:logistic]."""
    last = float(final_map(task)[0])
    rate = 2 * np.sqrt(task.dim) * task.spectrum[0] ** 2
    return last / (1 + (last / first - 1) * np.exp(-rate * np.asarray(time)))
