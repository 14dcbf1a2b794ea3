"""Closed forms of focus and dilution at the first saddles. n = |pi|, l = log pi, lc = l - mean(l)."""

import numpy as np

from stagescope.papers.focus_dilution.family import plateau_amplitude


def condensation_rate(pi: np.ndarray) -> float:
    """mu0 = |pi| |pi - 1/d|: growth rate at the origin, where G = -dL/dM = pi (pi - 1/d)^T for M = W0 W1 [FD:origin]."""
    return float(np.linalg.norm(pi) * np.linalg.norm(pi - 1 / len(pi)))


def condensation_directions(pi: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Left (W0) and right (W1) directions of the mode that grows at the origin [FD:origin]."""
    excess = pi - 1 / len(pi)
    return pi / np.linalg.norm(pi), excess / np.linalg.norm(excess)


def attention_rate(pi: np.ndarray, transition: np.ndarray, scale: float) -> float:
    """c = scale a^2/n^4 [sum_i pi_i^2 (P_i - pi).l] [sum_j pi_j (pi_j - n^2)^2] at (1,0) [FD:attention-rate].

    Attention opens at rate |c|; its first bracket decides the sign: c > 0 focuses on the frequent token, c < 0 moves away.
    """
    return opening_rate(pi, (transition - pi) @ np.log(pi), scale)


def opening_rate(pi: np.ndarray, excess: np.ndarray, scale: float) -> float:
    """The same, given (P - pi) l."""
    square = float(np.sum(pi**2))
    drive = float(np.sum(pi**2 * excess))
    spread = float(np.sum(pi * (pi - square) ** 2))
    return scale * plateau_amplitude(pi) ** 2 / square**2 * drive * spread


def symmetric_margin(persistence: float, first: float, tokens: int) -> float:
    """Above 0 where the symmetric (1,1) of equal rare tokens is stable inside the rank-one model, else below 0 [FD:lambda-c].

    There the logits after the frequent token are a, and after a rare one b, on token 0 and 0 on the others: they give token 0
    its probabilities f = lam + (1 - lam) pi_0 and q = (1 - lam) pi_0. Let logits after rare token i change by x_i on token 0,
    and those on rare token k by b y_k (after token 0: a y_k), with sums 0. To second order the loss changes by

        sum_i [ pi_r q (1 - q) x_i^2 / 2 - pi_r lam x_i y_i + ((1 - pi_0) b^2 q_r + pi_0 a^2 f_r) y_i^2 / 2 ]

    with pi_r, q_r, f_r the shares of one rare token. The margin is the determinant of this form over pi_r.
    """
    rare, q, f = tokens - 1, (1 - persistence) * first, persistence + (1 - persistence) * first
    pi_r, q_r, f_r = (1 - first) / rare, (1 - q) / rare, (1 - f) / rare
    a, b = np.log(f / f_r), np.log(q / q_r)
    return float(q * (1 - q) * ((1 - first) * b**2 * q_r + first * a**2 * f_r) - pi_r * persistence**2)


def stall_boundary(first: float, tokens: int) -> float | None:
    """lambda_c: the least persistence above 0 at which the symmetric (1,1) loses its stability [FD:lambda-c].

    None for a uniform law. It does not depend on the scale of the scores.
    """
    from scipy.optimize import brentq

    if abs(first - 1 / tokens) < 1e-9:
        return None
    trials = np.linspace(1e-6, 1 - 1e-6, 400)
    margins = [symmetric_margin(float(trial), first, tokens) for trial in trials]
    after = next((i for i in range(1, len(trials)) if margins[i] < 0), None)
    if after is None or margins[after - 1] <= 0:
        return None
    return float(brentq(lambda x: symmetric_margin(float(x), first, tokens), trials[after - 1], trials[after]))  # type: ignore[arg-type]
