"""Closed forms of focus and dilution at the first two saddles. n = |pi|, l = log pi, lc = l - mean(l)."""

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
    square = float(np.sum(pi**2))
    drive = float(np.sum(pi**2 * ((transition - pi) @ np.log(pi))))
    spread = float(np.sum(pi * (pi - square) ** 2))
    return scale * plateau_amplitude(pi) ** 2 / square**2 * drive * spread
