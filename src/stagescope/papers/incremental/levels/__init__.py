"""The loss levels of the restricted classes, where plateaus should lie, computed for the task at hand [ISA:levels]."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from stagescope.errors import InputError
from stagescope.keys import key
from stagescope.memory import require_memory
from stagescope.papers.incremental.levels.cache import read_arrays, write_arrays
from stagescope.papers.incremental.levels.classes import Contexts, RestrictedClass, fit, true_moments
from stagescope.papers.incremental.process import LaggedChain

PER_FITTED = 4
"""Validation sequences per fitted one: evaluation is cheap, and sequences that fall into a cycle make the mean noisy."""


@dataclass(frozen=True)
class ClassLevels:
    """Levels l_0 > l_1 > ... > l_k of the classes F_j of one task; the index is j everywhere [ISA:levels].

    `losses` (k+1,): l_j, the least cross-entropy to the true law in F_j, fitted on one sample and evaluated on a larger one.
    `training` (k+1,): the same on the sample of the fit; between the two lies the error of the fit. `truncated` (k+1,): those
    of the truncated teachers T_j. `bayes`: that of the true law. `fits` (k+1): the fitted members of the classes. `exact`: all
    contexts were enumerated and nothing was sampled.

    Examples:
        >>> levels = ss.class_levels(lagged, targets=1, disk=False)
        >>> print(levels.losses.round(4), levels.exact)
        [1.0986 0.5797 0.5194] True
    """

    losses: np.ndarray
    training: np.ndarray
    truncated: np.ndarray
    bayes: float
    fits: tuple[RestrictedClass, ...]
    exact: bool

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
    arrays = read_arrays(process, task) if disk else None
    if arrays is None or not _complete(process, arrays):
        if exact:
            trained = judged = _all_contexts(process)
        else:
            trained = _sampled_contexts(process, targets, pad, sequences, key(seed, "levels", "fit"))
            judged = _sampled_contexts(process, targets, pad, PER_FITTED * sequences, key(seed, "levels", "validation"))
        arrays = _fit_levels(process, trained, judged)
        if disk:
            write_arrays(process, task, arrays)
    return _from_arrays(process, arrays, exact)


def _sampled_contexts(process: LaggedChain, targets: int, pad: int, sequences: int, draw: np.random.Generator) -> Contexts:
    return Contexts.of(process, process.sample(draw, sequences, targets, pad), process.reach + pad)


def _all_contexts(process: LaggedChain) -> Contexts:
    """Every combination of tokens at the lags, once."""
    count = len(process.lags)
    tokens = np.indices((process.vocab,) * count, dtype=np.int32).reshape(count, -1).T
    return Contexts(process, np.ascontiguousarray(tokens), np.ones(len(tokens)))


def _fit_levels(process: LaggedChain, trained: Contexts, judged: Contexts) -> dict[str, np.ndarray]:
    """Losses on both samples, of fits and truncated teachers, and the fits, by the names under which they are stored."""
    k, truth = len(process.groups), process.matrices
    moments, wanted = true_moments(trained), true_moments(judged)
    losses, training, truncated = (np.full(k + 1, np.log(process.vocab)) for _ in range(3))
    converged = np.ones(k + 1)
    found: dict[str, np.ndarray] = {"W0": np.zeros((0, *truth.shape[1:]))}
    for j in range(1, k + 1):  # fits start at .7 of the true terms: about where a class without the other terms ends
        known, unseen = trained.known_to(j), judged.known_to(j)
        matrices, done = (truth, True) if j == k else fit(known, moments[:j], first=0.7 * truth[:j])
        training[j], losses[j] = known.loss(matrices, moments[:j]), unseen.loss(matrices, wanted[:j])
        truncated[j] = unseen.loss(truth[:j], wanted[:j])
        converged[j], found[f"W{j}"] = done, matrices
    return {"losses": losses, "training": training, "truncated": truncated, "converged": converged, **found}


def _shapes(process: LaggedChain) -> dict[str, tuple[int, ...]]:
    k, d = len(process.groups), process.vocab
    fits = {f"W{j}": (j, d, d) for j in range(k + 1)}
    return {**dict.fromkeys(("losses", "training", "truncated", "converged"), (k + 1,)), **fits}


def _complete(process: LaggedChain, arrays: Mapping[str, np.ndarray]) -> bool:
    """Whether stored arrays are the ones that are written here, finite and of the right shapes."""
    shapes = {name: array.shape for name, array in arrays.items()}
    return shapes == _shapes(process) and all(np.isfinite(array).all() for array in arrays.values())


def _from_arrays(process: LaggedChain, arrays: Mapping[str, np.ndarray], exact: bool) -> ClassLevels:
    for array in arrays.values():
        array.flags.writeable = False  # the same levels are returned again
    fits = (
        RestrictedClass(process, arrays[f"W{j}"], converged=bool(arrays["converged"][j])) for j in range(len(process.groups) + 1)
    )
    levels = (arrays[name] for name in ("losses", "training", "truncated"))
    return ClassLevels(*levels, bayes=float(arrays["losses"][-1]), fits=tuple(fits), exact=exact)
