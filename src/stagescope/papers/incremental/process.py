"""High-order chains whose next token depends on groups of past positions of different importance [ISA:task]."""

from collections import Counter
from collections.abc import Iterator
from functools import cached_property

import numpy as np
from pydantic import Field as Limits
from pydantic import model_validator

from stagescope.errors import InputError
from stagescope.fields.softmax import log_softmax, softmax
from stagescope.keys import key as stream
from stagescope.memory import affordable, require_memory, require_work
from stagescope.papers.incremental.features import Features, RandomFeatures
from stagescope.processes.process import Process
from stagescope.spec import Integers, Numbers

BLOCK = 2**21
"""Scores held at once where only their mean is needed: 16 MB."""
PER_LAG = 100
"""Numbers that are gone through in the time in which one lag is listed and checked, about a microsecond."""
Tables = dict[int, np.ndarray]
"""By lag: row x (d,) is what token x at that lag adds to the scores."""


class LaggedChain(Process):
    """x_t ~ softmax(z_t) with z_t = sum_i beta_i A_i sum_{l in I_i} w_il e_{x_{t-l}} [ISA:task].

    `groups` are the I_i, most important first, `importances` the beta_i > 0, `features` give the A_i; `weights` are the w_il
    (None: 1). The first max lag + pad tokens of a sequence are uniform.

    Args:
        vocab: number of tokens d.
        groups: the lags of each group, most important group first.
        importances: a positive number for each group.
        features: the matrices of the groups.
        weights: of the lags in each group; None gives each the weight 1.

    Examples:
        >>> tokens = lagged.sample(np.random.default_rng(0), sequences=2, targets=4)
        >>> tokens.shape, lagged.reach
        ((2, 6), 2)
    """

    vocab: int = Limits(ge=2)
    groups: tuple[Integers, ...]
    importances: Numbers
    features: Features = RandomFeatures()
    weights: tuple[Numbers, ...] | None = None

    @model_validator(mode="after")
    def _valid(self) -> "LaggedChain":
        if not self.groups:
            raise ValueError("no groups of lags given; at least one is needed")
        for number, group in enumerate(self.groups):
            _check_group(number, group)
        if len(self.importances) != len(self.groups):
            raise ValueError(f"{len(self.importances)} importances for {len(self.groups)} groups; give one per group")
        if min(self.importances) <= 0:
            raise ValueError(f"importance {min(self.importances):g} is not positive; leave out groups that do not matter")
        if any(a < b for a, b in zip(self.importances, self.importances[1:], strict=False)):
            raise ValueError(f"importances {self.importances} rise; list groups and features most important first")
        if self.weights is not None:
            self._check_weights(self.weights)
        try:
            found = self.features.stack(len(self.groups), self.vocab)
        except InputError as error:
            raise ValueError(str(error)) from None
        sizes = [float(np.abs(matrix).max()) * sum(self.group_weights(i)) for i, matrix in enumerate(found)]
        largest = sum(importance * size for importance, size in zip(self.importances, sizes, strict=True))
        limit = 1e15  # neighbouring floats differ by 1/8 there
        if not largest < limit:
            raise ValueError(f"scores could reach {largest:g}, beyond {limit:g}; take smaller importances or features")
        for number, matrix in enumerate(found):
            _check_feature(number, matrix)
        return self

    def _check_weights(self, weights: tuple[Numbers, ...]) -> None:
        if [len(row) for row in weights] != [len(group) for group in self.groups]:
            raise ValueError(f"weights {weights} do not fit groups {self.groups}; give one weight per lag of each group")
        if min(min(row) for row in weights) <= 0:
            raise ValueError(f"weights {weights} are not all positive; leave out lags that do not matter")

    @classmethod
    def spans(
        cls,
        vocab: int,
        spans: tuple[int, ...] = (2, 2, 2),
        ratio: float = 1.7,
        scale: float = 5.0,
        stride: int | None = None,
        reverse: bool = False,
        span_weights: tuple[float, ...] | tuple[tuple[float, ...], ...] | None = None,
        features: Features | None = None,
    ) -> "LaggedChain":
        """Groups of neighbouring lags with beta_i = scale * ratio^(k-i), i = 1..k [ISA:task].

        `spans` are the lengths of the groups, most important first; that one is the nearest, with `reverse` the farthest. They
        follow one another, or start `stride` lags apart and may then overlap. `span_weights` are those inside each span,
        nearest lag first: one row for all spans, or one each in the order of `spans`.
        """
        near_to_far = spans[::-1] if reverse else spans
        starts = _starts(near_to_far, stride)
        remedy = smaller_tables(len(spans), vocab)
        require_memory("the tables of all lags", remedy, sum(spans), vocab, vocab)
        require_work(f"a chain of {sum(spans):,} lags", "take shorter spans", PER_LAG, sum(spans))
        groups = tuple(tuple(range(first, first + length)) for first, length in zip(starts, near_to_far, strict=True))
        return cls(
            vocab=vocab,
            groups=groups[::-1] if reverse else groups,
            importances=_importances(len(spans), ratio, scale),
            features=RandomFeatures() if features is None else features,
            weights=_span_weights(spans, span_weights),
        )

    @cached_property
    def matrices(self) -> np.ndarray:
        """beta_i A_i (k, d, d), most important first."""
        return np.array(self.importances)[:, None, None] * self.features.stack(len(self.groups), self.vocab)

    @property
    def reach(self) -> int:
        """The largest lag: tokens that must precede the first target."""
        return max(max(group) for group in self.groups)

    @property
    def lags(self) -> tuple[int, ...]:
        """All lags that matter, ascending."""
        return tuple(sorted({lag for group in self.groups for lag in group}))

    @property
    def disjoint(self) -> bool:
        """Whether no lag belongs to two groups."""
        return len(self.lags) == sum(len(group) for group in self.groups)

    def require_disjoint(self) -> None:
        """Refuse overlapping groups, where "the group of a lag" has no meaning."""
        if not self.disjoint:
            every = [lag for group in self.groups for lag in group]
            shared = min(lag for lag, count in Counter(every).items() if count > 1)
            raise InputError(f"lag {shared} is in two of the groups {self.groups}; this needs groups that share no lag")

    def check_context(self, positions: int) -> None:
        """Refuse a context of `positions` tokens that does not hold all lags."""
        if positions < self.reach:
            way = f"take contexts of at least {self.reach} tokens or shorter spans"
            raise InputError(f"a context of {positions} tokens does not reach back {self.reach} lags; {way}")

    def group_weights(self, group: int) -> tuple[float, ...]:
        """w_il of the lags of one group, in the group's order."""
        return self.weights[group] if self.weights is not None else (1.0,) * len(self.groups[group])

    def tables(self, matrices: np.ndarray) -> Tables:
        """sum_i w_il M_i^T per lag l, for the matrices (j, d, d) of the first j groups: one gather per lag gives the scores."""
        remedy = smaller_tables(len(self.groups), self.vocab)
        require_memory("the tables of all lags", remedy, len(self.lags), self.vocab, self.vocab)
        found: Tables = {}
        for number, matrix in enumerate(matrices):
            for lag, weight in zip(self.groups[number], self.group_weights(number), strict=True):
                found[lag] = found.get(lag, 0.0) + weight * matrix.T
        return found

    def scores(self, tokens: np.ndarray, start: int | None = None, groups: int | None = None) -> np.ndarray:
        """z_t (B, T - start, d) of the targets t >= start of tokens (B, T); with `groups` only the first so many terms.

        `start` is the first position that has its whole past, `reach`, unless given.
        """
        start = self.check_tokens(tokens, start)
        shape = (tokens.shape[0], tokens.shape[1] - start, self.vocab)
        require_memory("the scores", "take fewer sequences at once", *shape)
        return gather_scores(self.tables(self.matrices[: self._terms(groups)]), tokens, start, self.vocab)

    def predictive(self, tokens: np.ndarray, start: int | None = None, groups: int | None = None) -> np.ndarray:
        """softmax(z_t) (B, T - start, d): the law of each target; with `groups` = j that of the truncated teacher T_j."""
        return softmax(self.scores(tokens, start, groups))

    def sample(self, key: np.random.Generator, sequences: int, targets: int, pad: int = 0) -> np.ndarray:
        """Tokens (sequences, reach + pad + targets): the first reach + pad uniform, then each drawn from softmax(z_t)."""
        for name, value, least in (("sequences", sequences, 1), ("targets", targets, 1), ("pad", pad, 0)):
            if value < least:
                raise InputError(f"{name} is {value}, but must be at least {least}")
        first = self.reach + pad
        require_memory("the sample", "take fewer or shorter sequences", sequences, first + targets + self.vocab)
        tokens = np.empty((sequences, first + targets), dtype=np.int64)
        tokens[:, :first] = key.integers(self.vocab, size=(sequences, first))
        tables = self.tables(self.matrices)
        for t in range(first, first + targets):
            scores = gather_scores(tables, tokens[:, : t + 1], t, self.vocab)[:, 0]
            cumulative = np.cumsum(np.exp(scores - scores.max(axis=1, keepdims=True)), axis=1)
            # a random number below one times the total stays below the total, so the count never reaches d
            at = key.random(sequences) * cumulative[:, -1]
            tokens[:, t] = np.count_nonzero(cumulative <= at[:, None], axis=1)
        return tokens

    def entropy(self, tokens: np.ndarray, start: int | None = None) -> np.ndarray:
        """-sum_y p_t(y) log p_t(y) (B, T - start), exact given each context."""
        start = self.check_tokens(tokens, start)
        found = [_cross_entropy(z, z) for _, z in self._blocks(tokens, start)]
        return np.concatenate(found)

    def bayes_loss(self, tokens: np.ndarray, start: int | None = None) -> float:
        """The mean exact conditional entropy over the contexts in `tokens` [ISA:bayes]."""
        return float(self.entropy(tokens, start).mean())

    def truncated_loss(self, tokens: np.ndarray, groups: int, start: int | None = None) -> float:
        """Cross-entropy of the truncated teacher T_j, the true terms i <= j = `groups`, to the true law [ISA:truncated]."""
        return self.soft_loss(tokens, self.matrices[: self._terms(groups)], start)

    def soft_loss(self, tokens: np.ndarray, matrices: np.ndarray, start: int | None = None) -> float:
        """Mean over targets of -sum_y p_t(y) log q_t(y), where q uses `matrices` (j, d, d) for the first j groups."""
        start = self.check_tokens(tokens, start)
        tables = self.tables(matrices)
        total = sum(
            _cross_entropy(z, gather_scores(tables, block, start, self.vocab)).sum() for block, z in self._blocks(tokens, start)
        )
        return float(total) / (tokens.shape[0] * (tokens.shape[1] - start))

    def floor(self, targets: int = 20, pad: int = 0, sequences: int = 3000, seed: int = 0) -> float:
        """The Bayes loss, as a mean over sampled contexts: high-order chains have no closed form for it."""
        tokens = self.sample(stream(seed, "lagged-chain", "floor"), sequences, targets, pad)
        return self.bayes_loss(tokens, self.reach + pad)

    def check_tokens(self, tokens: np.ndarray, start: int | None) -> int:
        """The first target, after checking that these are token sequences with enough past before it."""
        start = self.reach if start is None else start
        if tokens.ndim != 2 or tokens.dtype.kind not in "iu":
            raise InputError(f"expected whole numbers (sequences, positions), got shape {tokens.shape} of {tokens.dtype}")
        if not self.reach <= start < tokens.shape[1] or not len(tokens):
            way = f"needs {self.reach} <= start < positions and at least one sequence"
            raise InputError(f"start {start} in tokens of shape {tokens.shape} leaves no target with a whole past; {way}")
        if tokens.min() < 0 or tokens.max() >= self.vocab:
            raise InputError(f"tokens run from {tokens.min()} to {tokens.max()}, but the vocabulary is 0..{self.vocab - 1}")
        return start

    def _terms(self, groups: int | None) -> int:
        count = len(self.groups) if groups is None else groups
        if not 0 <= count <= len(self.groups):
            raise InputError(f"groups is {groups}, but must be between 0 and {len(self.groups)}")
        return count

    def _blocks(self, tokens: np.ndarray, start: int) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Sequences in blocks with the true scores of their targets: memory does not grow with their number."""
        tables = self.tables(self.matrices)
        size = max(1, BLOCK // ((tokens.shape[1] - start) * self.vocab))
        for first in range(0, len(tokens), size):
            block = tokens[first : first + size]
            yield block, gather_scores(tables, block, start, self.vocab)


def gather_scores(tables: Tables, tokens: np.ndarray, start: int, vocab: int) -> np.ndarray:
    """sum_l table_l[x_{t-l}] (B, T - start, d) for t >= start."""
    length = tokens.shape[1]
    total = np.zeros((len(tokens), length - start, vocab))
    for lag, table in tables.items():
        total += table[tokens[:, start - lag : length - lag]]
    return total


def _cross_entropy(true: np.ndarray, other: np.ndarray) -> np.ndarray:
    """-sum_y softmax(true)_y log softmax(other)_y over the last axis."""
    return -np.sum(softmax(true) * log_softmax(other), axis=-1)


def _check_group(number: int, group: tuple[int, ...]) -> None:
    if not group:
        raise ValueError(f"group {number} has no lags; leave it out")
    if min(group) < 1:
        raise ValueError(f"group {number} has lag {min(group)}; lags count back from the next token and start at 1")
    if len(set(group)) < len(group):
        twice = next(lag for lag, count in Counter(group).items() if count > 1)
        raise ValueError(f"group {number} has lag {twice} twice; give it a weight instead")


def _check_feature(number: int, matrix: np.ndarray) -> None:
    """Refuse matrices 1 v^T, zero included: they shift all scores equally, which softmax ignores."""
    effect = matrix - matrix.mean(axis=0)
    if np.abs(effect).max() <= len(matrix) * np.finfo(float).eps * np.abs(matrix).max():
        kind = "has equal rows" if matrix.any() else "is all zero"
        why = "so its lags have no effect on the next token; leave the group out or give another matrix"
        raise ValueError(f"the feature of group {number} {kind}, {why}")


def smaller_tables(groups: int, vocab: int) -> str:
    """How to make the tables of all lags fit in memory; a span has at least one lag."""
    if affordable(groups, vocab, vocab):
        return "take shorter spans"
    return "take a smaller vocabulary (--vocab)" + (" or fewer groups" if groups > 1 else "")


def _importances(count: int, ratio: float, scale: float) -> tuple[float, ...]:
    if not (np.isfinite(ratio) and ratio >= 1):
        raise InputError(f"ratio is {ratio:g}, but must be at least 1: the first group is the most important")
    if not (np.isfinite(scale) and scale > 0):
        raise InputError(f"scale is {scale:g}, but must be positive and finite")
    return tuple(scale * ratio ** (count - i) for i in range(1, count + 1))


def _starts(spans: tuple[int, ...], stride: int | None) -> list[int]:
    """The first lag of each span."""
    if not spans or min(spans) < 1:
        raise InputError(f"spans are {spans}, but at least one is needed and each must hold at least 1 lag")
    if stride is None:
        return [1 + sum(spans[:i]) for i in range(len(spans))]
    if stride < 1:
        raise InputError(f"stride is {stride}, but spans must start at least 1 lag apart; leave it out for disjoint spans")
    return [1 + i * stride for i in range(len(spans))]


def _span_weights(
    spans: tuple[int, ...], weights: tuple[float, ...] | tuple[tuple[float, ...], ...] | None
) -> tuple[tuple[float, ...], ...] | None:
    """One row of weights per span."""
    if weights is None:
        return None
    rows = tuple(tuple(row) for row in weights if not isinstance(row, float | int))
    shared = tuple(float(value) for value in weights if isinstance(value, float | int))
    found = (shared,) * len(spans) if shared else rows
    if (shared and rows) or [len(row) for row in found] != list(spans):
        raise InputError(
            f"span weights {weights} (--span-weights) do not fit spans {spans}; give one weight per lag, once or for each span"
        )
    return found
