"""Closed forms of linear attention: levels, maps on the plateaus, and the time course of one head [LIN:levels], [LIN:scalar]."""

from collections.abc import Iterable

import numpy as np

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


def level_of(task: RegressionTask, learned: Iterable[int]) -> float:
    """The loss at the fixed point of a set of directions [LIN:levels]."""
    held = list(learned)
    return float(task.spectrum.sum() - np.sum((task.spectrum / task.amplification)[held]))


def regression_map(task: RegressionTask, components: int) -> np.ndarray:
    """M of least squares on the first principal components, Lambda known: diag 1/(lambda_i a_i) (D, D) [LIN:pcr]."""
    return np.diag(np.where(np.arange(task.dim) < components, final_map(task), 0.0))


def final_map(task: RegressionTask) -> np.ndarray:
    """M_ii of each direction once it is learned."""
    return 1 / (task.spectrum * task.amplification)


def head_value(task: RegressionTask, held: Iterable[int]) -> float:
    """v_S = (sum_{i in S} 1/(lambda_i a_i))^(1/3): the value of a balanced head that holds these directions [LIN:rank]."""
    return float(np.sum(final_map(task)[list(held)]) ** (1 / 3))


def opening_rate(task: RegressionTask, held: Iterable[int], direction: int) -> float:
    """v_S lambda_i^2: how fast keys and queries of a further direction grow in a head that holds S [LIN:rank]."""
    return head_value(task, held) * float(task.spectrum[direction]) ** 2


def course(u: np.ndarray | float) -> np.ndarray:
    """f(u): lambda^2 v_inf (t - t_0) = f(u) - f(u_0) along v' = lambda^2 v^2 - lambda^3 a v^5, u = v/v_inf [LIN:scalar]."""
    u = np.asarray(u, dtype=float)
    bent = np.log1p(u + u**2) / 6 - np.arctan((2 * u + 1) / np.sqrt(3)) / np.sqrt(3)
    return -1 / u - np.log1p(-u) / 3 + bent


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
    u = 1 / (1 + np.exp(-x))
    bent = np.log1p(u + u**2) / 6 - np.arctan((2 * u + 1) / np.sqrt(3)) / np.sqrt(3)
    return -(1 + np.exp(-x)) + np.logaddexp(0.0, x) / 3 + bent


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
    later = pace(task, direction) * (waits - waits.min())

    def learned(y: np.ndarray) -> np.ndarray:
        """sum u^3 where the first head is at y."""
        return np.sum((y / (1 + np.multiply.outer(later, y))) ** 3, axis=0)

    low, high = 0.0, HALF_U
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (low, middle) if learned(np.array(middle)) > HALF else (middle, high)
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


def purity(task: RegressionTask, scale: float, direction: int = 0) -> float:
    """(s/v_1)^(1 - (lambda_2/lambda_1)^2): about the share of the next direction in a head that learns this one [LIN:purity].

    v_1 is the final value of that head. The last direction has no next one: 0.
    """
    spectrum = task.spectrum
    if direction + 1 >= len(spectrum):
        return 0.0
    return float((scale / head_value(task, (direction,))) ** (1 - (spectrum[direction + 1] / spectrum[direction]) ** 2))


def worst_purity(task: RegressionTask, scale: float, directions: int) -> float:
    """The largest purity of the first so many directions: how far the next one may spoil any of them."""
    return max((purity(task, scale, i) for i in range(directions)), default=0.0)
