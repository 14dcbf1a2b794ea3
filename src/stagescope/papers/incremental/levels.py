"""The loss levels of the restricted classes, where plateaus should lie, computed for the task at hand [ISA:levels]."""

import hashlib
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from safetensors.numpy import load, save
from scipy.optimize import minimize

from stagescope.core.caches import cache_folder, read_entry, write_entry
from stagescope.core.errors import InputError
from stagescope.core.memory import require_memory
from stagescope.core.params import key
from stagescope.core.spec import digest
from stagescope.flow.softmax import softmax
from stagescope.papers.incremental.levels_kernel import log_partition
from stagescope.papers.incremental.limits import LIMITS
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
        contexts = np.stack([tokens[:, start - lag : length - lag].ravel() for lag in process.lags], axis=1)
        return cls(process, contexts.astype(np.int32), np.ones(len(contexts)))

    def known_to(self, groups: int) -> "Known":
        """Only the lags of the first groups, equal contexts merged.

        Lags with the same weight in every group are exchangeable, so their tokens are put in order first: a span of two
        lags on d tokens has d (d+1)/2 contexts, however many sequences there are.
        """
        weights = np.zeros((groups, len(self.process.lags)))  # w_il, zero where lag l is not in group i
        for number in range(groups):
            for lag, weight in zip(self.process.groups[number], self.process.group_weights(number), strict=True):
                weights[number, self.process.lags.index(lag)] = weight
        used = np.flatnonzero(weights.any(axis=0))
        rows, weights = self.tokens[:, used].copy(), weights[:, used]
        _, kinds = np.unique(weights, axis=1, return_inverse=True)
        for kind in range(kinds.max() + 1):
            rows[:, kinds == kind] = np.sort(rows[:, kinds == kind], axis=1)
        merged, index = np.unique(rows, axis=0, return_inverse=True)
        counts = np.bincount(index.ravel(), weights=self.counts, minlength=len(merged))
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
    """One member of F_j: its matrices W (j, d, d), and whether the fit reached its tolerance."""

    process: LaggedChain
    matrices: np.ndarray
    converged: bool = True

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
    moments = np.zeros((len(process.groups), size, size))
    for number, group in enumerate(process.groups):
        for lag, weight in zip(group, process.group_weights(number), strict=True):
            pairs = after * size + tokens[:, start - lag : length - lag]
            moments[number] += weight * np.bincount(pairs.ravel(), minlength=size**2).reshape(size, size)
    return moments / after.size


def fit(contexts: Known, moments: np.ndarray, penalty: float = 0.0, first: np.ndarray | None = None) -> tuple[np.ndarray, bool]:
    """argmin over W of mean log Z(W) - <W, C> + penalty |W|^2 / 2, and whether L-BFGS reached its tolerance."""
    shape = moments.shape

    def value(flat: np.ndarray) -> tuple[float, np.ndarray]:
        matrices = flat.reshape(shape)
        mean, grad = contexts.log_partition(matrices)
        gradient = grad - moments + penalty * matrices
        return mean - float(np.sum(matrices * (moments - penalty / 2 * matrices))), gradient.ravel()

    begin = np.zeros(shape) if first is None else first
    # with no entry of the gradient above 5e-6 the loss is within 1e-4 of its least value at d = 50
    limits = {"maxiter": 2000, "maxfun": 4000, "maxcor": 20, "gtol": 5e-6, "ftol": 0.0}
    minimum = minimize(value, begin.ravel(), jac=True, method="L-BFGS-B", options=limits)
    return minimum.x.reshape(shape), bool(minimum.success)


def fit_class(
    process: LaggedChain, tokens: np.ndarray, groups: int, start: int | None = None, penalty: float = 1e-5
) -> RestrictedClass:
    """The member of F_j, j = `groups`, that best predicts the sampled tokens: a nearly unregularised likelihood fit.

    Tokens of few sequences can be separable: without the small ridge `penalty`, W would then grow without bound.
    """
    _check(process, groups, penalty)
    if groups == 0:
        return RestrictedClass(process, np.zeros((0, process.vocab, process.vocab)))
    contexts = Contexts.of(process, tokens, start).known_to(groups)
    return RestrictedClass(process, *fit(contexts, drawn_moments(process, tokens, start)[:groups], penalty))


def fit_ridge(
    process: LaggedChain, tokens: np.ndarray, groups: int, start: int | None = None, penalties: tuple[float, ...] = PENALTIES
) -> RestrictedClass:
    """The same with the ridge that predicts held-out sequences best, refitted on all of them [ISA:ridge].

    The last quarter of the sequences is held out. Only the sampled tokens are used.
    """
    _check(process, groups, *penalties)
    held_count = max(1, round(LIMITS.held_share * len(tokens)))
    if not penalties or held_count >= len(tokens):
        raise InputError(f"{len(tokens)} sequences and ridges {penalties}: choosing needs at least 2 sequences and 1 ridge")
    if groups == 0:
        return fit_class(process, tokens, 0, start)
    trained, judged = tokens[:-held_count], tokens[-held_count:]
    trained_contexts = Contexts.of(process, trained, start).known_to(groups)
    judged_contexts = Contexts.of(process, judged, start).known_to(groups)
    moments, judged_moments = (drawn_moments(process, part, start)[:groups] for part in (trained, judged))
    losses, first = {}, None
    for penalty in sorted(penalties, reverse=True):  # from stiff to loose, each fit starts at the one before
        first, _ = fit(trained_contexts, moments, penalty, first)
        losses[penalty] = judged_contexts.loss(first, judged_moments)
    return fit_class(process, tokens, groups, start, min(losses, key=losses.__getitem__))


def _check(process: LaggedChain, groups: int, *penalties: float) -> None:
    if not 0 <= groups <= len(process.groups):
        raise InputError(f"class is {groups}, but must be between 0 and {len(process.groups)}")
    if any(not (np.isfinite(value) and value >= 0) for value in penalties):
        raise InputError(f"ridge {penalties} must be finite and >= 0")


PER_FITTED = 4
"""Validation sequences per fitted one: evaluation is cheap, and sequences that fall into a cycle make the mean noisy."""


@dataclass(frozen=True)
class ClassLevels:
    """Levels l_0 > l_1 > ... > l_k of the classes F_j of one task; the index is j everywhere [ISA:levels].

    `losses` (k+1,): l_j, the least cross-entropy to the true law in F_j, fitted on one sample and evaluated on a larger one.
    `training` (k+1,): the same on the sample of the fit; between the two lies the error of the fit. `fits` (k+1): the
    fitted members of the classes. `exact`: all contexts were enumerated and nothing was sampled.

    Examples:
        >>> levels = ss.class_levels(lagged, targets=1, disk=False)
        >>> print(levels.losses.round(4), levels.exact)
        [1.0986 0.5797 0.5194] True
    """

    losses: np.ndarray
    training: np.ndarray
    fits: tuple[RestrictedClass, ...]
    exact: bool

    @property
    def bayes(self) -> float:
        """The loss of the true law."""
        return float(self.losses[-1])

    @property
    def converged(self) -> bool:
        """Whether every fit reached its tolerance."""
        return all(item.converged for item in self.fits)


def class_levels(
    process: LaggedChain, targets: int, pad: int = 0, sequences: int = 5000, seed: int = 0, disk: bool = True
) -> ClassLevels:
    """The levels of a task of `targets` scored tokens after max lag + pad uniform ones [ISA:levels].

    Two of them need no fit: F_0 holds the uniform law alone, so l_0 = ln d; the truth is in F_k, so l_k is the Bayes loss. A
    single target after uniform tokens has all contexts equally likely: if they are no more than `sequences`, they are all
    taken, once each, and the levels are exact. Kept in memory, and with `disk` in the user's cache folder.

    Args:
        process: the chain.
        targets: tokens that are scored.
        pad: further uniform tokens before them.
        sequences: of the sample on which the classes are fitted.
        seed: of the sample.
        disk: keep the levels in the cache folder.

    Returns:
        The levels l_0 to l_k, and how they were found.

    Examples:
        >>> print(ss.class_levels(lagged, targets=1, disk=False).losses.round(4))  # the first is ln 3
        [1.0986 0.5797 0.5194]
    """
    for name, value, least in (("targets", targets, 1), ("pad", pad, 0), ("sequences", sequences, 1)):
        if value < least:
            raise InputError(f"{name} is {value}, but must be at least {least}")
    require_memory("the sample", "take fewer sequences or targets", PER_FITTED * sequences, targets, len(process.lags))
    return _levels(process, targets, pad, sequences, seed, disk)  # pyright: ignore[reportArgumentType]  # frozen, so hashable


@lru_cache(maxsize=64)
def _levels(process: LaggedChain, targets: int, pad: int, sequences: int, seed: int, disk: bool) -> ClassLevels:
    exact = targets == 1 and process.vocab ** len(process.lags) <= sequences
    # raise the version when sampling or fitting changes, so that levels on disk are computed again
    task = {"targets": targets, "pad": pad, "sequences": sequences, "seed": seed, "version": 1}
    # the matrices are part of the name: a seed alone would not notice that features are drawn differently now
    matrices = hashlib.sha256(process.matrices.tobytes()).hexdigest()
    name = digest({"process": process.describe(), "matrices": matrices, "task": task})
    folder = cache_folder("levels") if disk else None
    path = None if folder is None else folder / f"{name}.sealed"
    stored = None if path is None else read_entry(path)
    if stored is not None:
        arrays = load(stored)
    else:
        if exact:
            trained = judged = _all_contexts(process)
        else:
            trained, judged = (
                Contexts.of(process, process.sample(key(seed, "levels", use), count, targets, pad), process.reach + pad)
                for use, count in (("fit", sequences), ("validation", PER_FITTED * sequences))
            )
        arrays = _fit_levels(process, trained, judged)
        if path is not None:
            write_entry(path, save({name: np.ascontiguousarray(array) for name, array in arrays.items()}))
    for array in arrays.values():
        array.flags.writeable = False  # the same levels are returned again
    fits = (RestrictedClass(process, arrays[f"W{j}"], bool(arrays["converged"][j])) for j in range(len(process.groups) + 1))
    return ClassLevels(arrays["losses"], arrays["training"], tuple(fits), exact)


def _all_contexts(process: LaggedChain) -> Contexts:
    """Every combination of tokens at the lags, once."""
    count = len(process.lags)
    tokens = np.indices((process.vocab,) * count, dtype=np.int32).reshape(count, -1).T
    return Contexts(process, np.ascontiguousarray(tokens), np.ones(len(tokens)))


def _fit_levels(process: LaggedChain, trained: Contexts, judged: Contexts) -> dict[str, np.ndarray]:
    """Losses on both samples, and the fits, by the names under which they are stored."""
    k, truth = len(process.groups), process.matrices
    moments, judged_moments = true_moments(trained), true_moments(judged)
    losses, training = (np.full(k + 1, np.log(process.vocab)) for _ in range(2))
    converged = np.ones(k + 1)
    weights_by_class: dict[str, np.ndarray] = {"W0": np.zeros((0, *truth.shape[1:]))}
    for j in range(1, k + 1):  # fits start at .7 of the true terms: about where a class without the other terms ends
        trained_contexts, judged_contexts = trained.known_to(j), judged.known_to(j)
        matrices, done = (truth, True) if j == k else fit(trained_contexts, moments[:j], first=0.7 * truth[:j])
        training[j], losses[j] = trained_contexts.loss(matrices, moments[:j]), judged_contexts.loss(matrices, judged_moments[:j])
        converged[j], weights_by_class[f"W{j}"] = done, matrices
    return {"losses": losses, "training": training, "converged": converged, **weights_by_class}


def uniform_excess(process: LaggedChain, targets: int, pad: int) -> float:
    """Least cross-entropy above Bayes of softmax(W sum_{s < t} e_{x_s}) for the first target.

    Values learn this while attention is still uniform. Where it is below level 1 the first plateau is not that of class 1.
    """
    context = process.reach + pad
    tokens = process.sample(key(0, "uniform attention"), LIMITS.uniform, targets, pad)[:, : context + 1]
    true = process.predictive(tokens, context)[:, 0]
    # one group of all positions: the class of the first group, if it were everywhere
    contexts = Known(np.ones((1, context)), tokens[:, :context].astype(np.int32), np.full(len(tokens), 1 / len(tokens)))
    token_counts = np.zeros((len(tokens), process.vocab))
    np.add.at(token_counts, (np.arange(len(tokens))[:, None], tokens[:, :context]), 1.0)
    moments = (true.T @ token_counts / len(token_counts))[None]
    entropy = -float(np.mean(np.sum(true * np.log(np.maximum(true, 1e-300)), axis=1)))
    return contexts.loss(fit(contexts, moments)[0], moments) - entropy
