"""Restricted classes of a lagged chain: the best predictor that knows only the most important groups [ISA:classes].

F_j = {softmax(sum_{i<=j} W_i sum_{l in I_i} w_il e_{x_{t-l}})}. The cross-entropy is convex in W, and with the feature counts
X_i = sum_l w_il e_{x_{t-l}} it reads mean log Z_t(W) - <W, C>, C_i = mean y_t X_i^T: targets enter by C alone, be they the true
law (soft) or the tokens that were drawn (hard).
"""

from dataclasses import dataclass

import numpy as np
from scipy.optimize import minimize

from stagescope.errors import InputError
from stagescope.fields.softmax import softmax
from stagescope.memory import require_memory
from stagescope.papers.incremental.levels.kernel import log_partition
from stagescope.papers.incremental.process import LaggedChain, gather_scores

PENALTIES = tuple(float(value) for value in np.geomspace(1e-5, 1e-1, 9))
"""Ridges that `fit_ridge` chooses from."""


@dataclass(frozen=True)
class Contexts:
    """What a log-linear law sees of token sequences: the tokens at each lag (n, lags) and how often each row occurs (n,)."""

    process: LaggedChain
    tokens: np.ndarray
    counts: np.ndarray

    @classmethod
    def of(cls, process: LaggedChain, tokens: np.ndarray, start: int | None = None) -> "Contexts":
        """The contexts of all targets t >= start of tokens (B, T)."""
        start = process.check_tokens(tokens, start)
        length = tokens.shape[1]
        require_memory("the contexts", "take fewer sequences", len(tokens), length - start, len(process.lags))
        seen = np.stack([tokens[:, start - lag : length - lag].ravel() for lag in process.lags], axis=1)
        return cls(process, seen.astype(np.int32), np.ones(len(seen)))

    def weight_rows(self, groups: int) -> np.ndarray:
        """w_il (groups, lags), zero where lag l is not in group i."""
        found = np.zeros((groups, len(self.process.lags)))
        for number in range(groups):
            for lag, weight in zip(self.process.groups[number], self.process.group_weights(number), strict=True):
                found[number, self.process.lags.index(lag)] = weight
        return found

    def known_to(self, groups: int) -> "Known":
        """Only the lags of the first groups, equal contexts merged.

        Lags with the same weight in every group are exchangeable, so their tokens are put in order first: a span of two
        lags on d tokens has d (d+1)/2 contexts, however many sequences there are.
        """
        weights = self.weight_rows(groups)
        used = np.flatnonzero(weights.any(axis=0))
        rows, weights = self.tokens[:, used].copy(), weights[:, used]
        _, alike = np.unique(weights, axis=1, return_inverse=True)
        for kind in range(alike.max() + 1):
            rows[:, alike == kind] = np.sort(rows[:, alike == kind], axis=1)
        merged, where = np.unique(rows, axis=0, return_inverse=True)
        counts = np.bincount(where.ravel(), weights=self.counts, minlength=len(merged))
        return Known(weights, np.ascontiguousarray(merged), counts / counts.sum())


@dataclass(frozen=True)
class Known:
    """Contexts as the class of the first groups sees them: w_il (groups, lags), tokens (n, lags), shares that sum to one (n,)."""

    weights: np.ndarray
    tokens: np.ndarray
    shares: np.ndarray

    def log_partition(self, matrices: np.ndarray) -> tuple[float, np.ndarray]:
        """mean log Z_t(W) and its gradient, which is mean q_t X_i^T, the moments of the law q of W (groups, d, d)."""
        tables = np.ascontiguousarray(np.einsum("il,iyx->lxy", self.weights, matrices))
        grad = np.empty_like(tables)
        value = log_partition(tables, self.tokens, self.shares, grad)
        return value, np.einsum("il,lxy->iyx", self.weights, grad)

    def loss(self, matrices: np.ndarray, moments: np.ndarray) -> float:
        """Mean cross-entropy to targets with the given moments C."""
        return self.log_partition(matrices)[0] - float(np.sum(matrices * moments))


@dataclass(frozen=True)
class RestrictedClass:
    """One member of F_j: its matrices W (j, d, d), the ridge it was fitted with and whether the fit reached its tolerance."""

    process: LaggedChain
    matrices: np.ndarray
    penalty: float = 0.0
    converged: bool = True

    @property
    def groups(self) -> int:
        return len(self.matrices)

    def scores(self, tokens: np.ndarray, start: int | None = None) -> np.ndarray:
        """sum_{i<=j} W_i sum_l w_il e_{x_{t-l}} (B, T - start, d)."""
        start = self.process.check_tokens(tokens, start)
        require_memory("the scores", "take fewer sequences at once", len(tokens), tokens.shape[1] - start, self.process.vocab)
        return gather_scores(self.process.tables(self.matrices), tokens, start, self.process.vocab)

    def law(self, tokens: np.ndarray, start: int | None = None) -> np.ndarray:
        """softmax of the scores (B, T - start, d)."""
        return softmax(self.scores(tokens, start))

    def loss(self, tokens: np.ndarray, start: int | None = None) -> float:
        """Mean cross-entropy to the true law of the targets."""
        return self.process.soft_loss(tokens, self.matrices, start)


def true_moments(contexts: Contexts) -> np.ndarray:
    """C (k, d, d) of soft targets: the moments of the true law."""
    process = contexts.process
    return contexts.known_to(len(process.groups)).log_partition(process.matrices)[1]


def drawn_moments(process: LaggedChain, tokens: np.ndarray, start: int | None = None) -> np.ndarray:
    """C (k, d, d) of hard targets: how often token y came `lag` after token x, weighted and summed over each group."""
    start = process.check_tokens(tokens, start)
    length, size = tokens.shape[1], process.vocab
    after = tokens[:, start:].astype(np.int64)  # y d + x must not overflow narrow integers
    found = np.zeros((len(process.groups), size, size))
    for number, group in enumerate(process.groups):
        for lag, weight in zip(group, process.group_weights(number), strict=True):
            pairs = after * size + tokens[:, start - lag : length - lag]
            found[number] += weight * np.bincount(pairs.ravel(), minlength=size**2).reshape(size, size)
    return found / after.size


def fit(known: Known, moments: np.ndarray, penalty: float = 0.0, first: np.ndarray | None = None) -> tuple[np.ndarray, bool]:
    """argmin over W of mean log Z(W) - <W, C> + penalty |W|^2 / 2, and whether L-BFGS reached its tolerance."""
    shape = moments.shape

    def value(flat: np.ndarray) -> tuple[float, np.ndarray]:
        matrices = flat.reshape(shape)
        mean, grad = known.log_partition(matrices)
        gradient = grad - moments + penalty * matrices
        return mean - float(np.sum(matrices * (moments - penalty / 2 * matrices))), gradient.ravel()

    begin = np.zeros(shape) if first is None else first
    # with no entry of the gradient above 5e-6 the loss is within 1e-4 of its least value at d = 50
    limits = {"maxiter": 2000, "maxfun": 4000, "maxcor": 20, "gtol": 5e-6, "ftol": 0.0}
    found = minimize(value, begin.ravel(), jac=True, method="L-BFGS-B", options=limits)
    return found.x.reshape(shape), bool(found.success)


def fit_class(
    process: LaggedChain, tokens: np.ndarray, groups: int, start: int | None = None, penalty: float = 1e-5
) -> RestrictedClass:
    """The member of F_j, j = `groups`, that best predicts the sampled tokens: a nearly unregularised likelihood fit.

    Tokens of few sequences can be separable: without the small ridge `penalty`, W would then grow without bound.
    """
    _check(process, groups, penalty)
    if groups == 0:
        return RestrictedClass(process, np.zeros((0, process.vocab, process.vocab)))
    known = Contexts.of(process, tokens, start).known_to(groups)
    matrices, converged = fit(known, drawn_moments(process, tokens, start)[:groups], penalty)
    return RestrictedClass(process, matrices, penalty, converged)


def fit_ridge(
    process: LaggedChain,
    tokens: np.ndarray,
    groups: int,
    start: int | None = None,
    penalties: tuple[float, ...] = PENALTIES,
) -> RestrictedClass:
    """The same with the ridge that predicts held-out sequences best, refitted on all of them [ISA:ridge].

    The last quarter of the sequences is held out. Only the sampled tokens are used.
    """
    _check(process, groups, *penalties)
    held = max(1, round(0.25 * len(tokens)))
    if not penalties or held >= len(tokens):
        raise InputError(f"{len(tokens)} sequences and ridges {penalties}: choosing needs at least 2 sequences and 1 ridge")
    if groups == 0:
        return fit_class(process, tokens, 0, start)
    trained, judged = tokens[:-held], tokens[-held:]
    known = Contexts.of(process, trained, start).known_to(groups)
    unseen = Contexts.of(process, judged, start).known_to(groups)
    moments, wanted = (drawn_moments(process, part, start)[:groups] for part in (trained, judged))
    losses, first = {}, None
    for penalty in sorted(penalties, reverse=True):  # from stiff to loose, each fit starts at the one before
        first, _ = fit(known, moments, penalty, first)
        losses[penalty] = unseen.loss(first, wanted)
    return fit_class(process, tokens, groups, start, min(losses, key=losses.__getitem__))


def _check(process: LaggedChain, groups: int, *penalties: float) -> None:
    if not 0 <= groups <= len(process.groups):
        raise InputError(f"class is {groups}, but must be between 0 and {len(process.groups)}")
    if any(not (np.isfinite(value) and value >= 0) for value in penalties):
        raise InputError(f"ridge {penalties} must be finite and >= 0")
