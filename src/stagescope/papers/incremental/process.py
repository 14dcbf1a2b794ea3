"""Sequences whose next token depends on lag groups, and the feature matrices of the groups [ISA:task] [ISA:features]."""

from abc import abstractmethod
from collections import Counter
from functools import cached_property
from io import BytesIO
from itertools import pairwise
from pathlib import Path
from typing import IO, Annotated, Any, Literal
from zipfile import ZipFile, is_zipfile

import numpy as np
from pydantic import BeforeValidator, model_validator
from pydantic import Field as Limits

from stagescope.core.errors import InputError
from stagescope.core.memory import affordable, require_memory, require_work
from stagescope.core.params import key
from stagescope.core.spec import Described, Integers, Numbers
from stagescope.flow.softmax import log_softmax, softmax
from stagescope.processes.markov_chain import Process


class Features(Described):
    """Matrices A_i (d, d), one per group of lags, most important group first; column x is what token x adds to the scores."""

    @abstractmethod
    def stack(self, count: int, vocab: int) -> np.ndarray:
        """The matrices (count, vocab, vocab)."""


class RandomFeatures(Features):
    """Random matrices with |A_i|_F = sqrt(d) [ISA:features].

    `orthogonal`: uniform over the orthogonal matrices. `centred`: rows and columns sum to zero, and orthogonal (up to scale)
    on the vectors that sum to zero. `gram-schmidt`: centred, and tr(A_i^T A_j) = 0 for i != j. The matrices of a seed do not
    depend on their number.

    Args:
        kind: "orthogonal", "centred" or "gram-schmidt".
        seed: of the draw.

    Examples:
        >>> features = ss.RandomFeatures(kind="centred", seed=1)
        >>> made = ss.LaggedChain(vocab=3, groups=((1,),), importances=(2.0,), features=features)
        >>> bool(np.abs(made.matrices.sum(axis=1)).max() < 1e-12)
        True
    """

    kind: Literal["orthogonal", "centred", "gram-schmidt"] = "orthogonal"
    seed: int = Limits(default=0, ge=0)

    def stack(self, count: int, vocab: int) -> np.ndarray:
        require_memory("the features", "take a smaller vocabulary or fewer groups", count, vocab, vocab)
        if vocab < 2:
            raise InputError(f"vocab is {vocab}, but features need at least 2 tokens")
        draws = [key(self.seed, "features", i) for i in range(count)]
        if self.kind == "orthogonal":
            return np.array([_orthogonal(draw, vocab) for draw in draws])
        # in a basis of the vectors whose entries sum to zero
        basis, size = np.linalg.svd(np.ones((1, vocab)))[2][1:].T, np.sqrt(vocab / (vocab - 1))
        centred = np.array([basis @ _orthogonal(draw, vocab - 1) @ basis.T * size for draw in draws])
        return centred if self.kind == "centred" else self._mutually_orthogonal(centred)

    def _mutually_orthogonal(self, matrices: np.ndarray) -> np.ndarray:
        """Gram-Schmidt in the Frobenius product, done twice to remove rounding errors."""
        count, vocab, _ = matrices.shape
        basis: list[np.ndarray] = []
        for matrix in matrices:
            new = matrix
            for _ in range(2):
                new = new - sum((np.sum(new * old) / vocab * old for old in basis), start=np.zeros_like(new))
            size = np.linalg.norm(new)
            if size < 1e-6 * np.sqrt(vocab):  # what is left of the matrix is rounding, not a direction
                way = f"take another seed than {self.seed} or a larger vocabulary"
                raise InputError(f"{count} centred matrices on {vocab} tokens cannot be made orthogonal to each other; {way}")
            basis.append(new * np.sqrt(vocab) / size)
        return np.array(basis)


def _orthogonal(draw: np.random.Generator, size: int) -> np.ndarray:
    """Uniform over the orthogonal group: QR of normal numbers, with the signs of R's diagonal moved into Q."""
    q, r = np.linalg.qr(draw.normal(size=(size, size)))
    return q * np.where(np.diag(r) < 0, -1.0, 1.0)


class GivenFeatures(Features):
    """Matrices given by the caller, most important group first, used as they are.

    Args:
        matrices: of shape (groups, d, d).

    Examples:
        >>> features = ss.GivenFeatures(matrices=(((1.0, 0.0), (0.0, 1.0)),))
        >>> ss.LaggedChain(vocab=2, groups=((1,),), importances=(2.0,), features=features).reach
        1
    """

    matrices: Annotated[
        tuple[tuple[Numbers, ...], ...],
        BeforeValidator(lambda value: value.tolist() if isinstance(value, np.ndarray) else value),
    ]

    @model_validator(mode="after")
    def _valid(self) -> "GivenFeatures":
        if not self.matrices:
            raise ValueError("no matrices given; one per group of lags is needed")
        size = len(self.matrices[0])
        for number, matrix in enumerate(self.matrices):
            widths = {len(row) for row in matrix}
            if len(matrix) != size or widths != {size} or size < 2:
                shape = f"{len(matrix)} rows of {' or '.join(map(str, sorted(widths)))} entries"
                raise ValueError(f"matrix {number} has {shape}; expected square matrices of one size, at least 2 x 2")
        return self

    def stack(self, count: int, vocab: int) -> np.ndarray:
        stack = np.array(self.matrices)
        if stack.shape != (count, vocab, vocab):
            raise InputError(
                f"features have shape {stack.shape}, but {count} groups of lags on {vocab} tokens need {(count, vocab, vocab)}"
            )
        return stack


def read_features(path: str | Path, reverse: bool = False) -> GivenFeatures:
    """The matrices of an .npy file, or of an .npz file that holds one array, of shape (groups, d, d).

    Most important group first; `reverse` is for files that list them the other way round.

    Args:
        path: the file.
        reverse: whether the most important group is last in the file.

    Examples:
        >>> np.save("features.npy", np.eye(2)[None])
        >>> len(ss.read_features("features.npy").matrices)
        1
    """
    path = Path(path)
    expected = "expected one array of finite numbers of shape (groups, d, d) in an .npy or .npz file"
    try:
        with path.open("rb") as file:
            if not file.read(6).startswith((b"\x93NUMPY", b"PK")):
                raise InputError(f"cannot read the features in {path}: it is neither an .npy nor an .npz file; {expected}")
            if is_zipfile(file):
                with ZipFile(file) as archive:
                    for name in archive.namelist():
                        with archive.open(name) as member:
                            _check_header(path, member)
            else:
                file.seek(0)
                _check_header(path, file)
            file.seek(0)
            stored_file = np.load(file, allow_pickle=False)
            if isinstance(stored_file, np.lib.npyio.NpzFile):
                if len(stored_file.files) != 1:
                    raise InputError(f"{path} holds {len(stored_file.files)} arrays {sorted(stored_file.files)}; {expected}")
                stored_file = stored_file[stored_file.files[0]]
    except InputError:
        raise
    except Exception as error:  # a damaged archive can fail in zipfile, zlib, struct or NumPy, each in its own way
        reason = "it holds Python objects, not numbers" if "allow_pickle" in str(error) else error
        raise InputError(f"cannot read the features in {path}: {reason}; {expected}") from None
    if stored_file.dtype.kind not in "fiu":
        raise InputError(f"{path} has entries of type {stored_file.dtype}; {expected}")
    if stored_file.ndim != 3 or stored_file.shape[1] != stored_file.shape[2] or 0 in stored_file.shape:
        raise InputError(f"{path} has shape {stored_file.shape}; {expected}")
    if not np.isfinite(stored_file).all():
        raise InputError(
            f"{path} of shape {stored_file.shape} has {np.sum(~np.isfinite(stored_file))} entries not finite; {expected}"
        )
    matrices: Any = (stored_file[::-1] if reverse else stored_file).astype(float)
    return GivenFeatures(matrices=matrices)


PER_NUMBER = 5
"""Numbers of eight bytes that one number of a given matrix takes: its array, and a Python float in a tuple."""


def _check_header(path: Path, file: IO[bytes]) -> None:
    """Refuse an array by the shape in its header, whatever few bytes it is packed into."""
    start = BytesIO(file.read(2**16))  # a header that is longer is refused
    old = np.lib.format.read_magic(start) == (1, 0)
    shape = (np.lib.format.read_array_header_1_0 if old else np.lib.format.read_array_header_2_0)(start)[0]
    require_memory(f"the features in {path}", "take a smaller vocabulary or fewer groups", PER_NUMBER, *shape)


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
            if not group:
                raise ValueError(f"group {number} has no lags; leave it out")
            if min(group) < 1:
                raise ValueError(f"group {number} has lag {min(group)}; lags count back from the next token and start at 1")
            if len(set(group)) < len(group):
                twice = next(lag for lag, count in Counter(group).items() if count > 1)
                raise ValueError(f"group {number} has lag {twice} twice; give it a weight instead")
        if len(self.importances) != len(self.groups):
            raise ValueError(f"{len(self.importances)} importances for {len(self.groups)} groups; give one per group")
        if min(self.importances) <= 0:
            raise ValueError(f"importance {min(self.importances):g} is not positive; leave out groups that do not matter")
        if any(a < b for a, b in pairwise(self.importances)):
            raise ValueError(f"importances {self.importances} rise; list groups and features most important first")
        if self.weights is not None:
            if [len(row) for row in self.weights] != [len(group) for group in self.groups]:
                raise ValueError(f"weights {self.weights} do not fit groups {self.groups}; give one weight per lag of each group")
            if min(min(row) for row in self.weights) <= 0:
                raise ValueError(f"weights {self.weights} are not all positive; leave out lags that do not matter")
        matrices = self.features.stack(len(self.groups), self.vocab)
        sizes = [float(np.abs(matrix).max()) * sum(self.group_weights(i)) for i, matrix in enumerate(matrices)]
        largest = sum(importance * size for importance, size in zip(self.importances, sizes, strict=True))
        limit = 1e15  # neighbouring floats differ by 1/8 there
        if not largest < limit:
            raise ValueError(f"scores could reach {largest:g}, beyond {limit:g}; take smaller importances or features")
        for number, matrix in enumerate(matrices):
            # matrices 1 v^T, zero included, shift all scores equally, which softmax ignores
            effect = matrix - matrix.mean(axis=0)
            if np.abs(effect).max() <= len(matrix) * np.finfo(float).eps * np.abs(matrix).max():
                kind = "has equal rows" if matrix.any() else "is all zero"
                remedy = "so its lags have no effect on the next token; leave the group out or give another matrix"
                raise ValueError(f"the feature of group {number} {kind}, {remedy}")
        return self

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
        if not spans or min(spans) < 1:
            raise InputError(f"spans are {near_to_far}, but at least one is needed and each must hold at least 1 lag")
        if stride is not None and stride < 1:
            raise InputError(f"stride is {stride}, but spans must start at least 1 lag apart; leave it out for disjoint spans")
        starts = [1 + (sum(near_to_far[:i]) if stride is None else i * stride) for i in range(len(spans))]
        if not (np.isfinite(ratio) and ratio >= 1):
            raise InputError(f"ratio is {ratio:g}, but must be at least 1: the first group is the most important")
        if not (np.isfinite(scale) and scale > 0):
            raise InputError(f"scale is {scale:g}, but must be positive and finite")
        remedy = smaller_tables(len(spans), vocab)
        require_memory("the tables of all lags", remedy, sum(spans), vocab, vocab)
        require_work(f"a chain of {sum(spans):,} lags", "take shorter spans", PER_LAG, sum(spans))
        groups = tuple(tuple(range(first, first + length)) for first, length in zip(starts, near_to_far, strict=True))
        weights = None
        if span_weights is not None:  # one row per span
            rows = tuple(tuple(row) for row in span_weights if not isinstance(row, float | int))
            shared = tuple(float(value) for value in span_weights if isinstance(value, float | int))
            weights = (shared,) * len(spans) if shared else rows
            if (shared and rows) or [len(row) for row in weights] != list(spans):
                reason = f"do not fit spans {spans}; give one weight per lag, once or for each span"
                raise InputError(f"span weights {span_weights} (--span-weights) {reason}")
        return cls(
            vocab=vocab,
            groups=groups[::-1] if reverse else groups,
            importances=tuple(scale * ratio ** (len(spans) - i) for i in range(1, len(spans) + 1)),
            features=RandomFeatures() if features is None else features,
            weights=weights,
        )

    @cached_property
    def matrices(self) -> np.ndarray:
        """beta_i A_i (k, d, d), most important first."""
        return np.array(self.importances)[:, None, None] * self.features.stack(len(self.groups), self.vocab)

    @property
    def reach(self) -> int:
        """The largest lag: tokens that must precede the first target."""
        return max(map(max, self.groups))

    @property
    def lags(self) -> tuple[int, ...]:
        """All lags that matter, ascending."""
        return tuple(sorted({lag for group in self.groups for lag in group}))

    @property
    def disjoint(self) -> bool:
        """Whether no lag belongs to two groups."""
        return len(self.lags) == sum(len(group) for group in self.groups)

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
        tables: Tables = {}
        for number, matrix in enumerate(matrices):
            for lag, weight in zip(self.groups[number], self.group_weights(number), strict=True):
                tables[lag] = tables.get(lag, 0.0) + weight * matrix.T
        return tables

    def scores(self, tokens: np.ndarray, start: int | None = None, groups: int | None = None) -> np.ndarray:
        """z_t (B, T - start, d) of the targets t >= start of tokens (B, T); with `groups` only the first so many terms.

        `start` is the first position that has its whole past, `reach`, unless given.
        """
        start = self.check_tokens(tokens, start)
        shape = (tokens.shape[0], tokens.shape[1] - start, self.vocab)
        require_memory("the scores", "take fewer sequences at once", *shape)
        count = len(self.groups) if groups is None else groups
        if not 0 <= count <= len(self.groups):
            raise InputError(f"groups is {groups}, but must be between 0 and {len(self.groups)}")
        return gather_scores(self.tables(self.matrices[:count]), tokens, start, self.vocab)

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
            threshold = key.random(sequences) * cumulative[:, -1]
            tokens[:, t] = np.count_nonzero(cumulative <= threshold[:, None], axis=1)
        return tokens

    def bayes_loss(self, tokens: np.ndarray, start: int | None = None) -> float:
        """The mean exact conditional entropy over the contexts in `tokens` [ISA:bayes]."""
        return self.soft_loss(tokens, self.matrices, start)

    def soft_loss(self, tokens: np.ndarray, matrices: np.ndarray, start: int | None = None) -> float:
        """Mean over targets of -sum_y p_t(y) log q_t(y), where q uses `matrices` (j, d, d) for the first j groups."""
        start = self.check_tokens(tokens, start)
        true, tables, total = self.tables(self.matrices), self.tables(matrices), 0.0
        size = max(1, BLOCK // ((tokens.shape[1] - start) * self.vocab))
        for first in range(0, len(tokens), size):  # in blocks: memory does not grow with the number of sequences
            block = tokens[first : first + size]
            p, q = (gather_scores(scores, block, start, self.vocab) for scores in (true, tables))
            total -= float(np.sum(softmax(p) * log_softmax(q)))
        return total / (tokens.shape[0] * (tokens.shape[1] - start))

    def floor(self, targets: int = 20, pad: int = 0, sequences: int = 3000, seed: int = 0) -> float:
        """The Bayes loss, as a mean over sampled contexts: high-order chains have no closed form for it."""
        tokens = self.sample(key(seed, "lagged-chain", "floor"), sequences, targets, pad)
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


def gather_scores(tables: Tables, tokens: np.ndarray, start: int, vocab: int) -> np.ndarray:
    """sum_l table_l[x_{t-l}] (B, T - start, d) for t >= start."""
    length = tokens.shape[1]
    total = np.zeros((len(tokens), length - start, vocab))
    for lag, table in tables.items():
        total += table[tokens[:, start - lag : length - lag]]
    return total


def smaller_tables(groups: int, vocab: int) -> str:
    """How to make the tables of all lags fit in memory; a span has at least one lag."""
    if affordable(groups, vocab, vocab):
        return "take shorter spans"
    return "take a smaller vocabulary (--vocab)" + (" or fewer groups" if groups > 1 else "")
