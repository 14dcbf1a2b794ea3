"""Where plateaus lie and when they are left: least losses of classes, entropies, and closed forms on an infinite context.

With layer 1 held, R and F are linear in W and the loss is convex: Newton's method finds its least value [MIC:classes]. Closed
forms are integrals over the prior, by its own quadrature, so they hold to rounding for the task that is trained.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from stagescope.core.errors import StagescopeError
from stagescope.flow.softmax import log_softmax, softmax
from stagescope.papers.markov_icl.finite import FiniteLoss, one_hot, pairs_before, places, strategies
from stagescope.papers.markov_icl.limits import LIMITS
from stagescope.papers.markov_icl.loss import LinearPopulation
from stagescope.papers.markov_icl.model import LinearMatch
from stagescope.papers.markov_icl.process import ChainPrior


@dataclass(frozen=True)
class Levels:
    """Names of the strategies, the loss of each, and the best (a, b) of its class where it is one."""

    names: tuple[str, ...]
    losses: np.ndarray
    best: tuple[np.ndarray | None, ...]


@dataclass(frozen=True)
class Class:
    """A class of logits a f_0 + b f_1: features (2, N, k), the law to be predicted (N, k), and weights (N,)."""

    features: np.ndarray
    law: np.ndarray
    weights: np.ndarray

    def logs(self, parts: np.ndarray) -> np.ndarray:
        return log_softmax(np.tensordot(parts, self.features, axes=1))

    def loss(self, parts: np.ndarray) -> float:
        return float(-np.sum(self.weights[:, None] * self.law * self.logs(parts)))

    def slope(self, parts: np.ndarray) -> np.ndarray:
        """-dL/d(a, b)."""
        return np.einsum("n,fnk,nk->f", self.weights, self.features, self.law - np.exp(self.logs(parts)))

    def least(self) -> tuple[float, np.ndarray]:
        """The least loss and where it is."""
        parts = np.zeros(2)
        for _ in range(LIMITS.newton):
            p = np.exp(self.logs(parts))
            centred = self.features - np.sum(self.features * p, axis=2, keepdims=True)
            curve = np.einsum("n,fnk,gnk,nk->fg", self.weights, centred, centred, p, optimize=True)
            slope = self.slope(parts)
            step = np.linalg.lstsq(curve, slope, rcond=1e-13)[0]
            while self.loss(parts + step) > self.loss(parts) + 1e-14:
                step = step / 2
                if step @ step < LIMITS.enough**2:
                    break
            parts = parts + step
            if step @ slope < LIMITS.enough:
                return self.loss(parts), parts
        raise StagescopeError(f"the least loss of a class was not found in {LIMITS.newton} steps of Newton's method")


def class_of(law: Any, attention: np.ndarray) -> Class:
    """The class of R or F with layer 1 held at attention A over the lags.

    F: counts n_j before a place, and counts of tokens whose h is that of the current token.
    """
    k, data = law.model.tokens, law.data
    if isinstance(law, LinearPopulation):
        matched = np.tensordot(attention, data["powers"], axes=1)
        common = np.broadcast_to(law.process.marginal[:, None, :], matched.shape)
        features = np.stack([common, matched]).reshape(2, -1, k)
        return Class(features, data["law"].reshape(-1, k), data["mass"].ravel())
    tokens, length = data["tokens"], law.length
    hot, (lag, visible) = one_hot(tokens, k), places(len(attention), length)
    weights = np.where(visible, attention[lag], 0.0)
    lost = weights.sum(axis=1) == 0  # nothing attended is there yet: only the place itself
    weights[lost, lost] = 1.0
    pairs = pairs_before(tokens, weights / weights.sum(axis=1, keepdims=True), k)
    features = np.stack([pairs.sum(axis=2), np.einsum("ntm,ntmj->ntj", hot, pairs)])[:, :, :-1]
    shares = np.repeat(data["weights"][:, None], length - 1, axis=1) / (length - 1)
    return Class(features.reshape(2, -1, k), hot[:, 1:].reshape(-1, k), shares.ravel())


def levels(law: Any) -> Levels:
    """The ladder of a loss: uniform, unigram, bigram, for chains of order 2 trigram.

    Under a doubly stochastic prior a unigram is no better than the uniform prediction, and its level is left out: a class of R
    with even attention is below it, but only with a match that grows with the number of lags.
    """
    process, lags = law.process, law.model.lags
    best: list[np.ndarray | None] = [None] * (process.order + 2)
    if isinstance(law.model, LinearMatch):
        unigram, bigram = (class_of(law, attention).least() for attention in (np.full(lags, 1 / lags), np.eye(lags)[1]))
        equal = abs(unigram[0] - bigram[0]) < LIMITS.rounding
        losses = [float(np.log(process.tokens)), unigram[0], unigram[0] if equal else bigram[0]]
        best = [np.zeros(2), unigram[1], bigram[1]]
    elif isinstance(law, FiniteLoss):
        # losses of the strategies on the very sequences that the recorded loss is over
        tokens, weights = law.data["tokens"], law.data["weights"]
        laws = strategies(tokens, process.tokens, process.concentration, process.order)
        likelihoods = [np.take_along_axis(table, tokens[:, 1:, None], axis=2)[..., 0] for table in laws.values()]
        losses = [-np.sum(weights * np.log(chances).mean(axis=1)) for chances in likelihoods]
    else:
        losses = process.entropies
    names = ("uniform", "unigram", "bigram", "trigram")
    rows = [row for row in zip(names, losses, best, strict=False) if not (process.doubly_stochastic and row[0] == "unigram")]
    return Levels(tuple(row[0] for row in rows), np.array([row[1] for row in rows]), tuple(row[2] for row in rows))


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
    joint, values = np.einsum("cij,jm->cmij", pairs, eye), []
    for lag in range(lags):
        gain = joint / pairs[:, None] - (joint.sum(axis=3) / prior.marginal[:, None, :])[..., None]
        values.append(float(np.sum(query * gain)))
        joint = np.einsum("cij,im->cmij", pairs, eye) if lag == 0 else np.einsum("cmhi,chij->cmij", joint, after)
    return np.array(values)


def effective_lags(v: np.ndarray) -> float:
    """sum_d e^{v_d} / e^{v_1}: the lags that lag 1 competes with; their number for an even start."""
    return float(np.exp(v - v[1]).sum())


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
    def held_class(self) -> Class:
        return class_of(self.law, softmax(self.v))

    @cached_property
    def least(self) -> tuple[float, np.ndarray]:
        """Loss of the class, and its a and b."""
        return self.held_class.least()

    @property
    def match(self) -> float:
        """b*."""
        return float(self.least[1][1])

    @cached_property
    def pull(self) -> np.ndarray:
        """G_d: what attention on lag d would take off the loss, for a match of one."""
        unigram, k = self.held_class, self.law.model.tokens
        weighted = (unigram.weights[:, None] * (unigram.law - np.exp(unigram.logs(self.least[1])))).reshape(-1, k, k)
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

    def grown(self, until: float) -> float:
        """t_b: when b first has nine tenths of b* with the attention of the start held; infinite if not before `until`."""
        from scipy.integrate import solve_ivp

        goal = LIMITS.grown * self.match

        def at_goal(_: float, parts: np.ndarray) -> float:
            return float(parts[1] - goal)

        at_goal.terminal = True  # pyright: ignore[reportFunctionMemberAccess]

        def pace(_: float, parts: np.ndarray) -> np.ndarray:
            return self.law.model.moved_parts(self.held_class.slope(parts))

        solution = solve_ivp(pace, (0.0, until), np.zeros(2), "LSODA", events=at_goal, rtol=1e-6)
        return float(solution.t[-1]) if solution.status == 1 else np.inf
