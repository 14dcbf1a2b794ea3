"""Closed forms of the regression flow: plateaus, leftover attention, and when heads that start alike part.

On plateau 1 all heads attend to the first position, with total value g_1. The attention s_j of each head on another position
decays only like a power of t, because its velocity is itself proportional to s_j. The residual is g_2 f_2 x e_2 + ... there,
and head differences, which leave P unchanged to first order, depend on it alone: dV_h' = R J da_h, and da_h' = R^T dV_h under
the mirror law, J R^T dV_h to leading order under the exact one. Their rate is the root of the largest eigenvalue of R J R^T or
R J^2 R^T: it sinks with s_2, so that they grow like exp(sqrt t), not like exp(t).
"""

from dataclasses import dataclass

import numpy as np

from stagescope.errors import InputError

NOISES = (1e-5, 1e-11)
"""The initial noises on the logits between which escapes are timed. Below 1e-11 rounding decides."""


def noises(sigma: float) -> np.ndarray:
    """The noise of a run, the one of NOISES that is farther from it, and their geometric mean, in the middle."""
    far = max(NOISES, key=lambda end: abs(np.log(end / sigma)))
    return np.array([sigma, np.sqrt(sigma * far), far])


@dataclass(frozen=True)
class RegressionForms:
    """Predictions for gains g_1 > ... > g_k, N positions and H heads, under the mirror law or the exact gradient."""

    gains: tuple[float, ...]
    positions: int
    heads: int
    mirror: bool

    @property
    def levels(self) -> np.ndarray:
        """l_0 .. l_k, l_j = sum_{i>j} g_i^2 / 2: the loss once the first j features are fitted [ISA:plateaus]."""
        squares = np.square(self.gains)
        return np.append(np.cumsum(squares[::-1])[::-1], 0.0) / 2

    @property
    def reachable(self) -> int:
        """The last plateau that H heads can reach, min(H, k): P has rank H at most [ISA:plateaus]."""
        return min(self.heads, len(self.gains))

    @property
    def first_time(self) -> float:
        """t_1 from V = 0 and many positions: (pi/sqrt 2) sqrt(N)/g_1 (mirror) or c N/g_1 (exact) [ISA:first].

        While s_1 = e^a/N is small, the mirror law is a'' = (g_1^2/N) e^a, which blows up at integral da/sqrt(2(e^a - 1)). The
        exact one, with v = V_1 and time in N/g_1, is a' = e^a v, v' = e^a - (H/g_1) v: the last term is what all heads together
        already predict at every position. It blows up at c = sqrt(pi/2) + (1 - pi/4) H/g_1 + ..., to first order in H/g_1.
        Fitting g_1 then takes a time that does not grow with N, which is what is missing at finite N.
        """
        gain = self.gains[0]
        if self.mirror:
            return float(np.pi * np.sqrt(self.positions / 2) / gain)
        return float((np.sqrt(np.pi / 2) + (1 - np.pi / 4) * self.heads / gain) * self.positions / gain)

    def gap(self, position: int = 1) -> float:
        """D = (g_1^2 - g_j^2)/H with g_j = 0 at a position without a feature; positions count from 0."""
        gain = self.gains[position] if position < len(self.gains) else 0.0
        found = (self.gains[0] ** 2 - gain**2) / self.heads
        if not (position > 0 and found > 0):
            raise InputError(f"attention stays on position {position}: it leaves only positions with a gain below the first")
        return found

    def leftover(self, time: np.ndarray, position: int = 1) -> np.ndarray:
        """s_j ~ 1/(D t) (mirror), 1/sqrt(2 N D t) (exact): attention left on position j on plateau 1 [ISA:leftover].

        From V quasi-static, (R^T V)_j = -D_j s_j. Mirror: (ln s_j)' = -D_j s_j. Exact: (ln s_j)' = -D_j s_j^2 - sum_i D_i s_i^2,
        as a_1 rises by what the others lose; all D_j s_j^2 tend to 1/(2 N t). Both are limits: the mirror law has corrections
        log(t)/t, and under the exact one the differences between the D_j s_j^2 die out like t^(-1/N) only.
        """
        spread = self.gap(position) * np.asarray(time, dtype=float)
        return 1 / spread if self.mirror else 1 / np.sqrt(2 * self.positions * spread)

    def rate(self, mass: np.ndarray, position: int = 1) -> np.ndarray:
        """g_j sqrt(s_j) (mirror), sqrt(2) g_j s_j (exact): growth of head differences on plateau 1 [ISA:escape].

        sqrt 2, because under the exact law the first logit falls by as much as logit j rises.
        """
        gain = self.gains[position]
        return gain * np.sqrt(mass) if self.mirror else np.sqrt(2.0) * gain * np.asarray(mass)

    def fastest(self, masses: np.ndarray) -> np.ndarray:
        """The same with all features at once, from the masses (..., k) of equal heads on their positions [ISA:escape].

        Under the exact law J e_j = s_j (e_j - e_1) to leading order, so R J^2 R^T is w_i w_j (1 + delta_ij) with w_j = g_j s_j:
        features share the first logit. Under the mirror law it is diagonal.
        """
        gains, masses = np.array(self.gains[1:]), np.asarray(masses)[..., 1:]
        if self.mirror:
            return np.max(gains * np.sqrt(masses), axis=-1)
        weights = gains * masses
        products = weights[..., :, None] * weights[..., None, :]
        return np.sqrt(np.linalg.eigvalsh(products * (1 + np.eye(len(gains))))[..., -1])

    @property
    def first_error(self) -> float:
        """What the closed form of t_1 leaves out, in its unit [ISA:first].

        Mirror: near the blow-up s_1 = 2/(g_1 (t_b - t))^2, which is of order 1 at t_b - t = sqrt 2/g_1. Exact: the form is of
        first order in H/g_1, so its second order is the square of the first, (1 - pi/4)^2/(pi/2) (H/g_1)^2 of it; s_1 is of
        order 1 at 1/(g_1 sqrt(2 ln N)) before the blow-up; and heads then fit g_1 at the rate H.
        """
        gain, heads = self.gains[0], self.heads
        if self.mirror:
            return float(np.sqrt(2) / gain)
        second = self.first_time * ((1 - np.pi / 4) / np.sqrt(np.pi / 2) * heads / gain) ** 2
        return float(second + 1 / heads + 1 / (gain * np.sqrt(2 * np.log(max(self.positions, 2)))))

    @property
    def escape_slope(self) -> float:
        """d sqrt(t_2) / d ln(1/sigma) = sqrt(D)/(2 g_2), times sqrt(N) under the exact law [ISA:escape].

        From integral rate dt = 2 g_2 sqrt(t/D) (over sqrt N) = ln(1/sigma) + const. Under the mirror law it is reached only
        once D t_2 is much larger than 1/s_2 at the beginning of the plateau; `wkb_times` needs no such limit.
        """
        slope = np.sqrt(self.gap()) / (2 * self.gains[1])
        return float(slope if self.mirror else slope * np.sqrt(self.positions))

    def escape_time(self, sigma: float) -> float:
        """t_2 to leading order, (slope ln(1/sigma))^2 [ISA:escape]."""
        return float((self.escape_slope * np.log(1 / sigma)) ** 2)

    def slope_between(self, sigmas: np.ndarray) -> float:
        """The escape slope between noises if s_2 starts from 1/N: what of the limit is reached at these noises.

        s_2 = 1/(D t + N) (mirror) or 1/sqrt(2 N D t + N^2) (exact) in place of 1/(D t) or 1/sqrt(2 N D t).
        """
        gap, gain, wide = self.gap(), self.gains[1], self.positions
        phase = np.log(1 / np.asarray(sigmas, dtype=float))
        if self.mirror:
            times = ((np.sqrt(wide) + phase * gap / (2 * gain)) ** 2 - wide) / gap
        else:
            times = ((wide + phase * wide * gap / (np.sqrt(2) * gain)) ** 2 - wide**2) / (2 * wide * gap)
        return float(np.polyfit(phase, np.sqrt(times), 1)[0])

    def limit_error(self, sigma: float) -> float:
        """Relative difference between the slope at the noises beside `sigma`, from the leftover 1/N, and its limit."""
        return abs(self.slope_between(noises(sigma)) / self.escape_slope - 1)


def wkb_times(time: np.ndarray, rate: np.ndarray, known: tuple[float, float], sigmas: np.ndarray) -> np.ndarray:
    """t_2 at other initial noises from one known (sigma, t_2): integral_0^t_2 rate dt = ln(1/sigma) + const [ISA:wkb].

    `rate` is the growth rate along the symmetric trajectory. NaN where the trajectory ends before the escape.
    """
    from scipy.integrate import cumulative_trapezoid

    phase = cumulative_trapezoid(rate, time, initial=0.0)
    sigma, when = known
    if not time[0] <= when <= time[-1]:
        raise InputError(f"the escape at t={when:g} is not on the trajectory, which covers {time[0]:g} to {time[-1]:g}")
    wanted = np.interp(when, time, phase) + np.log(sigma / np.asarray(sigmas, dtype=float))
    return np.interp(wanted, phase, time, left=np.nan, right=np.nan)
