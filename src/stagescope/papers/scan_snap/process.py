"""Sequence classes: the data model of scan and snap [SnS:data]."""

import csv
import json
import math
from collections import Counter, defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from pydantic import model_validator

from stagescope.core.errors import InputError
from stagescope.core.memory import read_table, require_work
from stagescope.core.spec import Described, Integers, Numbers
from stagescope.papers.scan_snap.limits import LIMITS
from stagescope.processes.markov_chain import Process

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
        if abs(total - 1) > LIMITS.rounding:
            raise ValueError(f"{name}: probabilities sum to {total:.12g}, not 1; divide them by their sum")
        if self.query in self.tokens:
            raise ValueError(f"{name}: the query token is also a context token; the query is masked out of the keys")
        return self


@dataclass(frozen=True)
class Segments:
    """Entries in one row, segment after segment: those of segment n are start[n] to start[n + 1]."""

    start: np.ndarray

    def __len__(self) -> int:
        return len(self.start) - 1

    @cached_property
    def of(self) -> np.ndarray:
        """The segment of each entry."""
        return np.repeat(np.arange(len(self)), np.diff(self.start))

    def sums(self, values: np.ndarray) -> np.ndarray:
        """The sum over each segment (..., segments)."""
        return np.add.reduceat(values, self.start[:-1], axis=-1)

    def tops(self, values: np.ndarray) -> np.ndarray:
        """The largest of each segment (..., segments)."""
        return np.maximum.reduceat(values, self.start[:-1], axis=-1)

    def attend(self, counts: np.ndarray, scores: np.ndarray) -> np.ndarray:
        """N_l exp(z_l) over its sum in each segment, entry by entry."""
        weights = counts * np.exp(scores - self.tops(scores)[..., self.of])
        return weights / self.sums(weights)[..., self.of]

    def features(self, attention: np.ndarray) -> np.ndarray:
        """f_n = c_n/|c_n|_2, entry by entry."""
        return attention / np.sqrt(self.sums(attention**2))[..., self.of]


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
        if self.prior and (len(self.prior) != len(self.classes) or abs(math.fsum(self.prior) - 1) > LIMITS.rounding):
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
        distinct = num_common + num_last * num_common_per_last
        queries = distinct + total * num_unique
        required = queries + num_last + total
        if vocab is not None and vocab < required:
            raise InputError(f"vocab {vocab} is smaller than the {required} tokens in use")
        sizes = {**counts, "num_common": num_common, "num_common_per_last": num_common_per_last}
        named = ", ".join(f"{name} {size:,}" for name, size in sizes.items())
        context_size = num_common + num_common_per_last + num_unique
        require_work(f"classes with {named}", "take smaller counts", PER_TOKEN, total, context_size)
        classes = []
        for n in range(total):
            last = n // num_next_per_last
            shared = num_common + last * num_common_per_last
            tokens = [*range(num_common), *range(shared, shared + num_common_per_last)]
            weights = [common_p] * len(tokens) + list(np.linspace(umin, umax, num_unique))
            tokens += range(distinct + n * num_unique, distinct + (n + 1) * num_unique)
            probabilities = tuple((np.array(weights) / math.fsum(weights)).tolist())
            target = queries + num_last + n
            item = SequenceClass(query=queries + last, target=target, tokens=tuple(tokens), probabilities=probabilities)
            classes.append(item)
        return cls(vocab=vocab or required, classes=tuple(classes))

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

    def label(self, token: int) -> str:
        return self.labels[token] if token < len(self.labels) else str(token)

    def floor(self) -> float:
        """The least loss on long contexts: they separate two classes unless query and P(.|n) are the same."""
        groups: dict[tuple, list[float]] = defaultdict(list)
        for item, weight in zip(self.classes, self.weights, strict=True):
            law = tuple(sorted(zip(item.tokens, item.probabilities, strict=True)))
            groups[item.query, law].append(float(weight))
        return sum(-w * math.log(w / math.fsum(group)) for group in groups.values() for w in group)


# Read sequence classes from a table: JSON or CSV.
#
# JSON: {"classes": [{"query": "the", "target": "game", "tokens": {"ball": 0.6, "of": 0.4}, "prior": 0.5}, ...], "vocab": 1000}
# CSV:  columns query,target,token,probability, one row per context token of a class; optional column prior.


def read_classes(path: str | Path, vocab: int | None = None) -> SequenceClasses:
    r"""Sequence classes from a file; token names become numbers in order of appearance: contexts, queries, targets.

    Args:
        path: a .json or .csv file.
        vocab: number of tokens; default: those that are named.

    Examples:
        >>> rows = ["query,target,token,probability", "the,game,ball,0.6", "the,game,of,0.4", "a,song,choir,1.0"]
        >>> _ = Path("classes.csv").write_text("\n".join(rows))
        >>> ss.read_classes("classes.csv").vocab
        7
    """
    path = Path(path)
    read = {".json": _from_json, ".csv": _from_csv}.get(path.suffix.lower())
    if read is None:
        raise InputError(f"{path}: classes are read from .json or .csv, got {path.suffix or 'no suffix'!r}")
    try:
        rows, classes = read(read_table("the table", path))
        return _classes(rows, vocab or classes)
    except (OSError, ValueError) as error:
        raise InputError(f"cannot read the classes in {path}: {error}") from None


Rows = list[dict[str, Any]]


def _from_json(text: str) -> tuple[Rows, int | None]:
    try:
        body = json.loads(text, object_pairs_hook=_without_repeats)
    except (ValueError, RecursionError) as error:
        raise InputError(f"it is not JSON: {error}") from None
    if not isinstance(body, Mapping) or not isinstance(body.get("classes"), list):
        raise InputError('expected {"classes": [...]}')
    vocab = body.get("vocab")
    if vocab is not None and (not isinstance(vocab, int) or vocab < 1):
        raise InputError(f"vocab is {vocab!r}, but must be a whole number >= 1")
    for number, row in enumerate(body["classes"]):
        if (
            not isinstance(row, Mapping)
            or not {"query", "target", "tokens"} <= set(row)
            or not isinstance(row["tokens"], Mapping)
        ):
            raise InputError(f"class {number} needs query, target and tokens, which map names of tokens to probabilities")
    return body["classes"], vocab


def _without_repeats(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    counts = Counter(name for name, _ in pairs)
    if len(counts) != len(pairs):
        raise ValueError(f"{max(counts, key=counts.__getitem__)!r} is given twice in one object")
    return dict(pairs)


def _from_csv(text: str) -> tuple[Rows, None]:
    reader = csv.DictReader(text.splitlines(), skipinitialspace=True)
    columns = {"query", "target", "token", "probability"}
    if not columns <= set(reader.fieldnames or ()):
        raise InputError(f"it needs columns {', '.join(sorted(columns))}; found {reader.fieldnames}")
    classes: dict[tuple[str, str], dict[str, Any]] = {}
    for row in reader:
        item = classes.setdefault((row["query"], row["target"]), {"query": row["query"], "target": row["target"], "tokens": {}})
        if row["token"] in item["tokens"]:
            raise InputError(f"line {reader.line_num}: token {row['token']!r} is listed twice for this class")
        item["tokens"][row["token"]] = row["probability"]
        if row.get("prior"):
            item["prior"] = row["prior"]
    return list(classes.values()), None


def _classes(rows: Rows, vocab: int | None) -> SequenceClasses:
    listed = [
        *(token for row in rows for token in row["tokens"]),
        *(row["query"] for row in rows),
        *(row["target"] for row in rows),
    ]
    names = {name: token for token, name in enumerate(dict.fromkeys(map(str, listed)))}
    items = []
    for row in rows:
        tokens = {names[str(name)]: _number(name, value) for name, value in row["tokens"].items()}
        query, target = names[str(row["query"])], names[str(row["target"])]
        try:
            items.append(SequenceClass(query=query, target=target, tokens=tuple(tokens), probabilities=tuple(tokens.values())))
        except InputError as error:
            raise InputError(f"query {row['query']!r}, target {row['target']!r}: {error}") from None
    prior = tuple(_number("prior", row["prior"]) for row in rows if "prior" in row)
    if prior and len(prior) != len(items):
        raise InputError(f"{len(prior)} of {len(items)} classes have a prior; give all or none")
    size = vocab or len(names)
    if size < len(names):
        raise InputError(f"vocab {size} is smaller than the {len(names)} tokens in use")
    return SequenceClasses(vocab=size, classes=tuple(items), prior=prior, labels=tuple(names))


def _number(name: Any, value: Any) -> float:
    try:
        return float(value)
    except (TypeError, ValueError, OverflowError):
        raise InputError(f"probability of {name!r} is {value!r}, not a number") from None
