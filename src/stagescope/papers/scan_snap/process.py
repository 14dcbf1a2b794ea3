"""Sequence classes: the data model of scan and snap [SnS:data]."""

import math
from collections import Counter, defaultdict
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from pydantic import model_validator

from stagescope.errors import InputError
from stagescope.memory import require_memory, require_work
from stagescope.processes.process import Process
from stagescope.spec import Described, Integers, Numbers

SUM_TOLERANCE = 1e-9
"""Largest error of a sum of probabilities; the rounding of a table with 1e5 entries is smaller."""

PER_TOKEN = 100
"""Numbers that are gone through in the time in which one token of a class is made and checked, about a microsecond."""


class SequenceClass(Described):
    """Contexts of one class: tokens drawn i.i.d. with the given probabilities, then the query, then the target.

    Args:
        query: the token before the target.
        target: the token to predict.
        tokens: what occurs in contexts.
        probabilities: of these tokens.

    Examples:
        >>> ss.SequenceClass(query=3, target=4, tokens=(0, 1), probabilities=(0.7, 0.3)).target
        4
    """

    query: int
    target: int
    tokens: Integers
    probabilities: Numbers

    @model_validator(mode="after")
    def _valid(self) -> "SequenceClass":
        name = f"class with query {self.query} and target {self.target}"
        if len(self.tokens) != len(self.probabilities):
            raise ValueError(f"{name}: {len(self.tokens)} tokens but {len(self.probabilities)} probabilities")
        if len(set(self.tokens)) != len(self.tokens):
            raise ValueError(f"{name}: a token is listed twice; add its probabilities up")
        if not all(p > 0 for p in self.probabilities):
            worst = min(self.probabilities)
            raise ValueError(f"{name}: probability {worst:g} is not positive; leave out tokens that never occur")
        total = math.fsum(self.probabilities)
        if abs(total - 1) > SUM_TOLERANCE:
            raise ValueError(f"{name}: probabilities sum to {total:.12g}, not 1; divide them by their sum")
        if self.query in self.tokens:
            raise ValueError(f"{name}: the query token is also a context token; the query is masked out of the keys")
        return self


@dataclass(frozen=True)
class Sequences:
    """Sampled sequences: context tokens (B, T), and class, query and target of each (B,)."""

    tokens: np.ndarray
    classes: np.ndarray
    queries: np.ndarray
    targets: np.ndarray


class SequenceClasses(Process):
    """K classes over a vocabulary of M tokens [SnS:data].

    A class n has a query psi(n), a target and context law P(l|n). A token is *distinct* if it occurs in the contexts of
    one class only, *common* if in several. `prior` is uniform unless given.

    Args:
        vocab: number of tokens M.
        classes: the classes.
        prior: their probabilities.
        labels: names of the tokens.

    Examples:
        >>> classes.vocab, len(classes.classes)
        (13, 2)
    """

    vocab: int
    classes: tuple[SequenceClass, ...]
    prior: Numbers = ()
    labels: tuple[str, ...] = ()

    @model_validator(mode="after")
    def _valid(self) -> "SequenceClasses":
        if not self.classes:
            raise ValueError("no classes given; at least one is needed")
        for item in self.classes:
            outside = [token for token in (*item.tokens, item.query, item.target) if not 0 <= token < self.vocab]
            if outside:
                raise ValueError(f"token {outside[0]} is outside the vocabulary 0..{self.vocab - 1}")
        pairs = Counter((item.query, item.target) for item in self.classes)
        twice = [pair for pair, count in pairs.items() if count > 1]
        if twice:
            raise ValueError(f"two classes share query {twice[0][0]} and target {twice[0][1]}; merge them")
        if self.prior and (len(self.prior) != len(self.classes) or abs(math.fsum(self.prior) - 1) > SUM_TOLERANCE):
            raise ValueError(f"prior needs {len(self.classes)} entries that sum to 1, got {self.prior}")
        if any(p <= 0 for p in self.prior):
            raise ValueError(f"prior {self.prior} has an entry that is not positive; leave that class out")
        if len(self.labels) > self.vocab:
            raise ValueError(f"{len(self.labels)} labels for {self.vocab} tokens; give at most one per token")
        for number, item in enumerate(self.classes):
            if not self.distinct & set(item.tokens):
                raise ValueError(f"class {number} has no distinct token: every token of it occurs in another class too")
        return self

    @classmethod
    def synthetic(
        cls,
        num_last: int,
        num_next_per_last: int,
        num_common: int,
        num_unique: int,
        num_common_per_last: int = 0,
        common_p: float = 1.0,
        umin: float = 0.1,
        umax: float = 1.0,
        vocab: int | None = None,
    ) -> "SequenceClasses":
        """The authors' generator [SnS:synthetic].

        Each common token has weight `common_p`, the distinct tokens of a class have linspace(umin, umax); weights are then
        normalised. Tokens are numbered common | common per query | distinct | queries | targets. A larger `vocab` adds
        outputs that are never targets.
        """
        counts = {"num_last": num_last, "num_next_per_last": num_next_per_last, "num_unique": num_unique}
        for name, value in counts.items():
            if value < 1:
                raise InputError(f"{name} is {value}, but at least 1 is needed")
        if min(num_common, num_common_per_last) < 0 or min(common_p, umin, umax) <= 0:
            raise InputError("common counts must be >= 0 and weights > 0")
        total = num_last * num_next_per_last
        own = num_common + num_last * num_common_per_last
        queries = own + total * num_unique
        needed = queries + num_last + total
        if vocab is not None and vocab < needed:
            raise InputError(f"vocab {vocab} is smaller than the {needed} tokens in use")
        sizes = {**counts, "num_common": num_common, "num_common_per_last": num_common_per_last}
        named = ", ".join(f"{name} {size:,}" for name, size in sizes.items())
        each = num_common + num_common_per_last + num_unique
        require_work(f"classes with {named}", "take smaller counts", PER_TOKEN, total, each)
        classes = []
        for n in range(total):
            last = n // num_next_per_last
            shared = num_common + last * num_common_per_last
            tokens = [*range(num_common), *range(shared, shared + num_common_per_last)]
            weights = [common_p] * len(tokens) + list(np.linspace(umin, umax, num_unique))
            tokens += range(own + n * num_unique, own + (n + 1) * num_unique)
            probabilities = tuple((np.array(weights) / math.fsum(weights)).tolist())
            target = queries + num_last + n
            item = SequenceClass(query=queries + last, target=target, tokens=tuple(tokens), probabilities=probabilities)
            classes.append(item)
        return cls(vocab=vocab or needed, classes=tuple(classes))

    @cached_property
    def weights(self) -> np.ndarray:
        """p_n, the prior of the classes (K,)."""
        return np.array(self.prior) if self.prior else np.full(len(self.classes), 1 / len(self.classes))

    @cached_property
    def occurrences(self) -> Counter:
        return Counter(token for item in self.classes for token in item.tokens)

    @cached_property
    def distinct(self) -> frozenset[int]:
        return frozenset(token for token, count in self.occurrences.items() if count == 1)

    @cached_property
    def common(self) -> frozenset[int]:
        return frozenset(token for token, count in self.occurrences.items() if count > 1)

    @cached_property
    def keys(self) -> tuple[int, ...]:
        """Tokens that occur in some context, ascending."""
        return tuple(sorted(self.occurrences))

    def table(self, keys: tuple[int, ...]) -> np.ndarray:
        """P(l|n) as a dense (K, keys) array."""
        column = {token: i for i, token in enumerate(keys)}
        table = np.zeros((len(self.classes), len(keys)))
        for n, item in enumerate(self.classes):
            table[n, [column[token] for token in item.tokens]] = item.probabilities
        return table

    def common_in(self, keys: tuple[int, ...]) -> np.ndarray:
        """Which entries of `table` belong to common tokens."""
        return np.isin(keys, sorted(self.common)) & (self.table(keys) > 0)

    def label(self, token: int) -> str:
        return self.labels[token] if token < len(self.labels) else str(token)

    def floor(self) -> float:
        """The least loss on long contexts: they separate two classes unless query and P(.|n) are the same."""
        groups: dict[tuple, list[float]] = defaultdict(list)
        for item, weight in zip(self.classes, self.weights, strict=True):
            law = tuple(sorted(zip(item.tokens, item.probabilities, strict=True)))
            groups[item.query, law].append(float(weight))
        return sum(-w * math.log(w / math.fsum(group)) for group in groups.values() for w in group)

    def sample(self, key: np.random.Generator, batch: int, length: int) -> Sequences:
        """Whole token sequences. Training uses only their counts, which are a sufficient statistic."""
        require_memory("the sample", "take fewer or shorter sequences", batch, length)
        chosen = key.choice(len(self.classes), size=batch, p=self.weights)
        tokens = np.empty((batch, length), dtype=np.int64)
        for n, item in enumerate(self.classes):
            rows = np.flatnonzero(chosen == n)
            tokens[rows] = key.choice(item.tokens, size=(len(rows), length), p=item.probabilities)
        queries = np.array([item.query for item in self.classes])[chosen]
        targets = np.array([item.target for item in self.classes])[chosen]
        return Sequences(tokens, chosen, queries, targets)
