"""Closed forms on an infinite context: what moves first, how small the gradient on a plateau is, and when it is left.

All of them are integrals over the prior, by its own quadrature, so they hold to rounding for the task that is trained.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from stagescope.fields.softmax import log_softmax, softmax
from stagescope.papers.markov_icl.levels import Class, class_of
from stagescope.papers.markov_icl.loss import LinearPopulation
from stagescope.papers.markov_icl.process import ChainPrior

GROWN = 0.9
"""Share of its value on the plateau that the match has at the time t_b."""


def common_gain(prior: ChainPrior) -> float:
    """a' at zero: E |pi|^2 - 1/k [MIC:start]."""
    return float(prior.weights @ np.sum(prior.marginal**2, axis=1)) - 1 / prior.tokens


def lag_gains(prior: ChainPrior, lags: int) -> np.ndarray:
    """g_d = E sum_ij pi_i^2 P_ij (P^d)_ij - E |pi|^2 / k: how b grows by each lag from zero in R [MIC:start]."""
    squares, powers = prior.marginal**2, prior.powers(lags)
    joint = np.einsum("c,ci,cij,dcij->d", prior.weights, squares, prior.transitions, powers, optimize=True)
    return joint - float(prior.weights @ squares.sum(axis=1)) / prior.tokens


def first_gradient(prior: ChainPrior, lags: int) -> np.ndarray:
    """-dL/dW at zero with even attention (k, k): E pi_i pi_m sum_j (P_ij - 1/k) <P^d>_mj; its sum is a', its trace b'."""
    pi, mean = prior.marginal, prior.powers(lags).mean(axis=0)
    weights = prior.weights[:, None, None] * pi[:, :, None] * (prior.transitions - 1 / prior.tokens)
    return np.einsum("cij,cm,cmj->im", weights, pi, mean, optimize=True)


def chi_squares(prior: ChainPrior, lags: int) -> np.ndarray:
    """c_d = E sum_ij pi_i^2 P_ij [(P^d)_ij / pi_j - 1]: the same for S, where unigrams are known [MIC:chi-square]."""
    pi, powers = prior.marginal, prior.powers(lags)
    weights = prior.weights[:, None, None] * (pi**2)[:, :, None] * prior.transitions
    return np.einsum("cij,dcij->d", weights / pi[:, None, :], powers, optimize=True) - weights.sum()


def second_chi_squares(prior: ChainPrior, lags: int) -> np.ndarray:
    """c'_d of S3: how b_2 grows by each lag of the second head where bigrams are known [MIC:second-chi-square].

    The first head is at lag 1 and b_1 is large, so layer 2 sees the places s whose x_{s-1} is the current token i. With m the
    token before it, c'_d = E sum_mi pi(m, i) sum_j P(j | m, i) [q_d(m | i, j) - q_d(m | i)], where q_d is the law of x_{s-d}
    given x_{s-1} = i and x_s = j, and given x_{s-1} = i alone.
    """
    k, count, eye = prior.tokens, prior.chains, np.eye(prior.tokens)
    pairs, after = prior.contexts.reshape(count, k, k), prior.transitions.reshape(count, k, k, k)
    query = prior.weights[:, None, None, None] * pairs[..., None] * after
    joint, found = np.einsum("cij,jm->cmij", pairs, eye), []
    for lag in range(lags):
        gain = joint / pairs[:, None] - (joint.sum(axis=3) / prior.marginal[:, None, :])[..., None]
        found.append(float(np.sum(query * gain)))
        joint = np.einsum("cij,im->cmij", pairs, eye) if lag == 0 else np.einsum("cmhi,chij->cmij", joint, after)
    return np.array(found)


def effective_lags(v: np.ndarray, lag: int = 1) -> float:
    """sum_d e^{v_d} / e^{v_lag}: the lags that the one which wins competes with; their number for an even start."""
    return float(np.exp(v - v[lag]).sum())


def two_step(gains: np.ndarray, v: np.ndarray, rho: float) -> float:
    """t = D sqrt(2 / (rho C (g_1 - <g>))): b grows at C/D and attention on lag 1 with it [MIC:two-step].

    C/D is the mean of the gains under the attention of the start, <g>.
    """
    mean = float(softmax(v) @ gains)
    lead = float(gains[1] - mean)
    if mean <= 0 or lead <= 0:
        return np.nan
    return float(np.sqrt(2 * effective_lags(v) / (rho * mean * lead)))


@dataclass(frozen=True)
class Plateau:
    """The unigram plateau of R from scores v of the lags: a and b at the optimum of their class, v drifts [MIC:plateau-law]."""

    law: LinearPopulation
    v: np.ndarray

    @cached_property
    def held(self) -> Class:
        return class_of(self.law, softmax(self.v))

    @cached_property
    def least(self) -> tuple[float, np.ndarray]:
        """Loss of the class, and its a and b."""
        return self.held.least()

    @property
    def match(self) -> float:
        """b*."""
        return float(self.least[1][1])

    @cached_property
    def pull(self) -> np.ndarray:
        """G_d: what attention on lag d would take off the loss, for a match of one."""
        held, k = self.held, self.law.model.tokens
        wrong = held.law - np.exp(log_softmax(np.tensordot(self.least[1], held.features, axes=1)))
        weighted = (held.weights[:, None] * wrong).reshape(-1, k, k)
        return np.einsum("cij,dcij->d", weighted, self.law.tables["powers"], optimize=True)

    @cached_property
    def lead(self) -> float:
        """gamma_1 = G_1 - <G>."""
        return float(self.pull[1] - softmax(self.v) @ self.pull)

    @property
    def leads(self) -> bool:
        """Whether lag 1 is the first to grow without bound: v_d' = rho b A_d (G_d - <G>), so e^{-v_d} falls at G_d - <G>."""
        ahead = np.exp(self.v - self.v.max()) * (self.pull - softmax(self.v) @ self.pull)
        return int(np.argmax(ahead)) == 1

    def time(self, rho: float) -> float:
        """t_2 = D / (rho b* gamma_1); NaN where lag 1 does not lead."""
        product = rho * self.match * self.lead
        return effective_lags(self.v) / product if product > 0 else np.nan

    def drift(self, rho: float) -> float:
        """|F| at the class optimum with the rate rho of v: only the scores of the lags move, each by O(1/D)."""
        attention = softmax(self.v)
        return float(rho * abs(self.match) * np.linalg.norm(attention * (self.pull - attention @ self.pull)))

    def grown(self, until: float) -> float:
        """t_b: when b first has GROWN of b* with the attention of the start held; infinite if not before `until`."""
        from scipy.integrate import solve_ivp

        goal = GROWN * self.match

        def reached(_: float, parts: np.ndarray) -> float:
            return float(parts[1] - goal)

        reached.terminal = True  # pyright: ignore[reportFunctionMemberAccess]

        def pace(_: float, parts: np.ndarray) -> np.ndarray:
            return self.law.model.moved_parts(self.held.slope(parts))

        found = solve_ivp(pace, (0.0, until), np.zeros(2), "LSODA", events=reached, rtol=1e-6)
        return float(found.t[-1]) if found.status == 1 else np.inf
