"""Topical classes of a text: the windows before a query word, by the word that follows it [SnS:text-windows]."""

from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from typing import Literal

import numpy as np
from pydantic import Field, model_validator
from scipy.special import entr, rel_entr

from stagescope.core.errors import InputError
from stagescope.corpora.corpus import TextCorpus
from stagescope.corpora.vocabulary import UNKNOWN
from stagescope.papers.scan_snap.limits import LIMITS
from stagescope.papers.scan_snap.process import Segments
from stagescope.processes.markov_chain import Process

PartName = Literal["train", "held-out"]


@dataclass(frozen=True)
class Windows(Segments):
    """Windows as counts over keys. Window i has `key` and `count` from start[i] to start[i + 1] and the class target[i]."""

    key: np.ndarray
    count: np.ndarray
    target: np.ndarray

    def attention(self, scores: np.ndarray) -> np.ndarray:
        """v_l ~ N_l exp(z_l) of every window, entry by entry."""
        return self.attend(self.count, scores[self.key])

    def inside(self, keys: int, classes: int) -> np.ndarray:
        """How many windows of each class hold each key (classes, keys)."""
        flat = np.bincount(self.target[self.of] * keys + self.key, minlength=classes * keys)
        return flat.reshape(classes, keys)


class TopicWindows(Process):
    """The `window` tokens before each `query` that is followed by a word of `nexts`; a next word is a class [SnS:text-windows].

    The train part of the corpus is cut into `stretches`; every fourth is held out, and no window crosses a cut. Keys are the
    types that are in at least `least` training windows, without the query. The text is read when it is first needed.

    Args:
        corpus: the text.
        query: the word before the next word.
        nexts: the next words, a class each.
        window: tokens before the query.
        least: training windows that a type must be in to be a key.
        stretches: pieces of the train part; every fourth is held out.

    Examples:
        >>> windows = ss.topic_windows(ss.read_corpus("words.txt", vocab=9), "the", ("cat", "dog"), window=4, least=1)
        >>> windows.query, windows.nexts
        ('the', ('cat', 'dog'))
    """

    corpus: TextCorpus
    query: str
    nexts: tuple[str, ...]
    window: int = Field(default=32, ge=1)
    least: int = Field(default=20, ge=1)
    stretches: int = Field(default=LIMITS.stretches, ge=LIMITS.held_every)

    @model_validator(mode="after")
    def _several(self) -> "TopicWindows":
        if len(set(self.nexts)) != len(self.nexts) or len(self.nexts) < 2:
            raise ValueError(f"the next words must be two or more different ones, got {' '.join(self.nexts) or 'none'}")
        return self

    @property
    def vocab(self) -> int:
        return self.corpus.size

    @property
    def token(self) -> int:
        """The query as a token."""
        return self.corpus.token(self.query)

    @property
    def targets(self) -> tuple[int, ...]:
        """The next words as tokens, in the order of the classes."""
        return tuple(self.corpus.token(word) for word in self.nexts)

    @property
    def keys(self) -> tuple[int, ...]:
        """Types that can have attention, ascending."""
        return _cut(self)[0]  # pyright: ignore[reportArgumentType]  # hashed by its description

    def part(self, name: PartName) -> Windows:
        return _cut(self)[1][name]  # pyright: ignore[reportArgumentType]

    def label(self, token: int) -> str:
        return self.corpus.label(token)

    @cached_property
    def prior(self) -> np.ndarray:
        """The share of each class in the training windows (K,)."""
        return np.bincount(self.part("train").target, minlength=len(self.nexts)) / len(self.part("train"))

    @cached_property
    def share(self) -> np.ndarray:
        """The share of training windows that hold each key (keys,)."""
        return self._inside.sum(axis=0) / len(self.part("train"))

    @cached_property
    def distinctness(self) -> np.ndarray:
        """KL(next | key in the window || next) over training windows, in nats (keys,) [SnS:text-windows]."""
        return divergence(self._inside, self.prior)

    @cached_property
    def held_distinctness(self) -> np.ndarray:
        """The same over held-out windows, minus the bias (K - 1)/2n; nan for keys in fewer than `least` of them.

        Scores also fit the noise of the training windows, so only this distinctness is a test of them [SnS:text-frequency].
        """
        windows, keys = self.part("held-out"), len(self.keys)
        classes, target = np.unique(windows.target, return_inverse=True)  # a class may be missing here
        inside = replace(windows, target=target).inside(keys, len(classes))
        enough = inside.sum(axis=0) >= self.least
        distinctness = np.full(keys, np.nan)
        law = np.bincount(target) / len(windows)
        distinctness[enough] = divergence(inside[:, enough], law) - (len(classes) - 1) / (2 * inside[:, enough].sum(axis=0))
        return distinctness

    @property
    def known(self) -> np.ndarray:
        """The keys that are in enough held-out windows to know their distinctness there."""
        return np.flatnonzero(np.isfinite(self.held_distinctness))

    @cached_property
    def held_share(self) -> np.ndarray:
        """The share of held-out windows that hold each key (keys,)."""
        windows = self.part("held-out")
        return np.bincount(windows.key, minlength=len(self.keys)) / len(windows)

    @cached_property
    def common(self) -> np.ndarray:
        """Which keys are common types."""
        return self.share > LIMITS.common

    @cached_property
    def distinct(self) -> np.ndarray:
        """Which keys are distinct types."""
        return self.distinctness > LIMITS.distinct

    @cached_property
    def _inside(self) -> np.ndarray:
        return self.part("train").inside(len(self.keys), len(self.nexts))

    @cached_property
    def prior_loss(self) -> float:
        """The least loss without the window: the entropy of the classes."""
        return float(entr(self.prior).sum())

    def floor(self) -> float:
        """Zero: no better bound is known for a text."""
        return 0.0


def divergence(inside: np.ndarray, prior: np.ndarray) -> np.ndarray:
    """sum_n p_n log(p_n/prior_n) of each column of counts (K, keys), p its shares; nats."""
    return rel_entr(inside / inside.sum(axis=0), prior[:, None]).sum(axis=0)


def topic_windows(
    corpus: TextCorpus, query: str, nexts: tuple[str, ...] = (), *, topics: int = 8, window: int = 32, least: int = 20
) -> TopicWindows:
    """Topical classes of a query word. The text is read here, so that missing words raise an error here.

    Without `nexts`, the next words are chosen by `choose_nexts`.

    Args:
        corpus: the text.
        query: the word before the next word.
        nexts: the next words; default: chosen.
        topics: how many are chosen.
        window: tokens before the query.
        least: training windows that a type must be in to be a key.

    Examples:
        >>> ss.topic_windows(ss.read_corpus("words.txt", vocab=9), "the", ("cat", "dog"), window=4, least=1).nexts
        ('cat', 'dog')
    """
    words = tuple(nexts) or choose_nexts(corpus, query, topics=topics, window=window, least=least)
    windows = TopicWindows(corpus=corpus, query=query, nexts=words, window=window, least=least)
    if query in words:
        raise InputError(f"{query!r} is the query and cannot be a next word as well")
    for part in ("train", "held-out"):
        counts = np.bincount(windows.part(part).target, minlength=len(words))
        if not counts.all() and part == "train":
            word = words[int(np.argmin(counts))]
            raise InputError(f"{query!r} is never followed by {word!r} in the training stretches of {corpus.source}")
        if not counts.any():
            raise InputError(f"no held-out stretch of {corpus.source} has {query!r} before {', '.join(words)}: take other words")
    return windows


def choose_nexts(corpus: TextCorpus, query: str, *, topics: int = 8, window: int = 32, least: int = 20) -> tuple[str, ...]:
    """Next words that the windows predict best: `topics` of the 5 x `topics` most frequent ones.

    A candidate has at least 2 x `least` training windows, is not <unk> and is not a common type. Its score is the information
    that types which are not common give about it, in nats per window: sum_l (G_l - 1)/2n, with G_l the likelihood ratio of type
    l, which is 1 on average by chance [SnS:text-windows].
    """
    stream, token = corpus.train, corpus.token(query)
    places = _places(stream, token, window, LIMITS.stretches)[0]
    if not len(places):
        region = f"in the training stretches of {corpus.source}"
        raise InputError(f"{query!r} never has {window} tokens before it {region}; take a shorter --window")
    count = min(LIMITS.sampled, len(places))
    places = places[np.arange(count) * len(places) // count]
    after = stream[places + 1]
    row, kind = _types(stream, places, window, token)
    total, windows = np.bincount(kind, minlength=corpus.size).astype(float), len(places)
    common = total > LIMITS.common * windows
    often = np.bincount(after, minlength=corpus.size)
    often[common | (np.arange(corpus.size) == token) | (np.array(corpus.words) == UNKNOWN)] = 0
    ranked = np.argsort(-often, kind="stable")[: 5 * topics]
    candidates = ranked[often[ranked] >= 2 * least]
    if len(candidates) < 2:
        best = ", ".join(f"{corpus.words[i]!r} {often[i]}" for i in ranked[:3] if often[i]) or "none"
        need = f"needs two next words with {2 * least} training windows each, but has {best}"
        raise InputError(f"{query!r} {need}: take a more frequent --query, or name --nexts, or lower --least")
    number = np.full(corpus.size, -1)
    number[candidates] = np.arange(len(candidates))
    candidate = number[after][row]
    inside = np.bincount(candidate[candidate >= 0] * corpus.size + kind[candidate >= 0], minlength=len(candidates) * corpus.size)
    usable = (total >= least) & ~common
    says = _information(inside.reshape(len(candidates), -1)[:, usable], total[usable], often[candidates], windows)
    best = np.argsort(-says, kind="stable")[:topics]
    return tuple(corpus.words[i] for i in candidates[np.sort(best)])


def _information(inside: np.ndarray, total: np.ndarray, counts: np.ndarray, windows: int) -> np.ndarray:
    """sum_l (G_l - 1)/2n of each candidate (rows), with G_l of the table: type l in the window or not, candidate next or not."""
    size = counts[:, None].astype(float)
    share, remaining = total / windows, windows - size
    half = rel_entr(inside, size * share) + rel_entr(size - inside, size * (1 - share))
    half += rel_entr(total - inside, remaining * share) + rel_entr(remaining - total + inside, remaining * (1 - share))
    return np.sum(half - 0.5, axis=1) / counts


@lru_cache(maxsize=4)
def _cut(process: TopicWindows) -> tuple[tuple[int, ...], dict[PartName, Windows]]:
    """Keys, and windows by part; cached by description, because a run and its readings each rebuild the process."""
    corpus = process.corpus
    stream, token, targets = corpus.train, process.token, np.array(process.targets)
    number = np.full(corpus.size, -1)
    number[targets] = np.arange(len(targets))
    parts = []
    for places in _places(stream, token, process.window, process.stretches):
        mine = places[number[stream[places + 1]] >= 0]
        parts.append((mine, number[stream[mine + 1]]))
    _, kind = _types(stream, parts[0][0], process.window, token)
    keys = np.flatnonzero(np.bincount(kind, minlength=corpus.size) >= process.least)
    if not len(keys):
        raise InputError(
            f"no type is in {process.least} of the {len(parts[0][0])} training windows before {process.query!r}: lower --least"
        )
    column = np.full(corpus.size, -1)
    column[keys] = np.arange(len(keys))
    train, held_out = (_count(stream, places, target, process.window, column) for places, target in parts)
    return tuple(keys.tolist()), {"train": train, "held-out": held_out}


def _places(stream: np.ndarray, token: int, window: int, stretches: int) -> tuple[np.ndarray, np.ndarray]:
    """Places of a token in training and in held-out stretches, with a full window before and a token after it."""
    places = np.flatnonzero(stream == token)
    places = places[(places >= window) & (places < len(stream) - 1)]
    first, last = (places - window) * stretches // len(stream), (places + 1) * stretches // len(stream)
    places, stretch = places[first == last], first[first == last]
    held_out = stretch % LIMITS.held_every == LIMITS.held_every - 1
    return places[~held_out], places[held_out]


def _types(stream: np.ndarray, places: np.ndarray, window: int, token: int) -> tuple[np.ndarray, np.ndarray]:
    """(window, type) of every type in every window, once each, without the query."""
    inside = np.sort(stream[places[:, None] - window + np.arange(window)], axis=1)
    new = np.ones(inside.shape, dtype=bool)
    new[:, 1:] = inside[:, 1:] != inside[:, :-1]
    new &= inside != token
    return np.nonzero(new)[0], inside[new]


def _count(stream: np.ndarray, places: np.ndarray, target: np.ndarray, window: int, column: np.ndarray) -> Windows:
    """Windows as counts over keys; `column` maps tokens to keys, -1 for other tokens. Windows without a key are left out."""
    columns = column[stream[places[:, None] - window + np.arange(window)]]
    row, keys = np.nonzero(columns >= 0)[0], columns[columns >= 0]
    flat, count = np.unique(row * len(column) + keys, return_counts=True)
    row, keys = flat // len(column), flat % len(column)
    sizes = np.bincount(row, minlength=len(places))
    start = np.concatenate([[0], np.cumsum(sizes[sizes > 0])])
    return Windows(start, keys, count.astype(float), target[sizes > 0])
