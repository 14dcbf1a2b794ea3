"""Real text as a process: its tokens, its parts, the law of its types and its bigram chain."""

import difflib
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, get_args

import numpy as np
from pydantic import Field

from stagescope.core.errors import InputError, unknown
from stagescope.core.memory import require_memory
from stagescope.core.params import key
from stagescope.core.progress import Progress
from stagescope.corpora.files import Layout, guess_layout
from stagescope.corpora.kernel import lagged_pairs
from stagescope.corpora.known import KNOWN, TOPICS, anchored, locate
from stagescope.corpora.pieces import learn_pieces
from stagescope.corpora.reading import RawText, read_again, read_text
from stagescope.corpora.tokens import Tokens
from stagescope.corpora.vocabulary import UNKNOWN, most_frequent, tally
from stagescope.processes.markov_chain import Chain, MarkovChain

if TYPE_CHECKING:
    from scipy.sparse import csr_array


LARGE = 1000
"""From so many tokens on, no matrix between all tokens is made where sums over pairs that occur give the same."""
PartName = Literal["train", "held-out"]
_SIGNS = {" ": "␣", "\n": "⏎", "\t": "⇥"}


def written(word: str) -> str:
    """A word as people should see it."""
    return "".join(_SIGNS.get(sign) or (sign if sign.isprintable() else f"\\x{ord(sign):02x}") for sign in word)


class TextCorpus(Chain):
    """A text seen as a chain of `size` tokens: pi is the law of its types, P the law of the next one.

    `sha256` is of every byte read, so that a description of a corpus means one text. The text is read when first needed.
    With `shuffle` the tokens of each part are in a random order drawn from it: a text in which nothing predicts anything.

    Args:
        source: a known name or a path.
        sha256: of every byte.
        layout: how documents are separated.
        tokens: "word", "lower", "basic", "char" or "bpe".
        size: number of types; rarer ones are one type.
        valid: the share that is held out.
        split_seed: of the choice of what is held out.
        shuffle: a seed that puts the tokens in a random order; None leaves them.

    Examples:
        >>> corpus = ss.read_corpus("words.txt", vocab=9)
        >>> corpus.size, corpus.words[:3]
        (9, ('the', 'sat', '.'))
    """

    source: str
    sha256: str
    layout: Layout
    tokens: Tokens
    size: int = Field(ge=2)
    valid: float = Field(0.1, ge=0, lt=1)
    split_seed: int = Field(0, ge=0)
    shuffle: int | None = Field(None, ge=0)

    @property
    def vocab(self) -> int:
        return self.size

    @property
    def title(self) -> str:
        """The name of the text without its folder: pages and figures are sent to others."""
        return Path(self.source).name

    @property
    def raw(self) -> RawText:
        """The whole text; refused if it is no longer the one described."""
        return read_again(self.source, self.sha256, self.tokens, self.layout)

    @cached_property
    def _tokenised(self) -> "_Tokenised":
        return _tokenise(self)  # pyright: ignore[reportArgumentType]

    @property
    def words(self) -> tuple[str, ...]:
        """The word of each token, most frequent first after <unk>."""
        return self._tokenised.words

    @property
    def train(self) -> np.ndarray:
        """Tokens to learn from (n,), one document after the other."""
        return self._tokenised.train

    @property
    def held_out(self) -> np.ndarray:
        """Tokens of the documents that were held out (n,)."""
        return self._tokenised.held_out

    def label(self, token: int) -> str:
        """A token as people should see it."""
        return written(self.words[token])

    def token(self, word: str) -> int:
        """The token of a word; one outside the vocabulary is refused with its rank and the size it needs."""
        if word in self.words:
            return self.words.index(word)
        types, counts = self.raw.types, self._tokenised.type_counts
        if self.tokens == "bpe" or word not in types or not counts[types.index(word)]:
            near = difflib.get_close_matches(word, self.words, n=3, cutoff=0.5)
            hint = f"; near it: {', '.join(map(repr, near))}" if near else ""
            raise InputError(f"{word!r} is no token of the train part of {self.source}, read as {self.tokens} tokens{hint}")
        order = [i for i in np.argsort(-counts, kind="stable").tolist() if types[i] != UNKNOWN]
        rank = order.index(types.index(word)) + 1
        size = min(rank + 1, np.count_nonzero(counts))  # a vocabulary of all types has no <unk>
        advice = f"its rank is {rank:,}, with {int(counts[types.index(word)]):,} occurrences; use --vocab {size} or more"
        raise InputError(f"the word {word!r} is outside the vocabulary of {self.size:,}: {advice}")

    def part(self, name: PartName) -> np.ndarray:
        return self.train if name == "train" else self.held_out

    def windows(self, length: int, part: PartName = "train") -> np.ndarray:
        """All stretches (n, length) of neighbouring tokens of a part, as a view: no copy is made."""
        stream = self.part(part)
        if length > len(stream):
            need = f"shorter than one window of {length:,}"
            raise InputError(f"the {part} part of {self.source} has {len(stream):,} tokens, {need}; choose a shorter --window")
        return np.lib.stride_tricks.sliding_window_view(stream, length)

    @cached_property
    def counts(self) -> np.ndarray:
        """How often each token occurs in the train part (d,)."""
        return tally(self.train, self.size)

    @cached_property
    def pairs(self) -> np.ndarray:
        """How often j follows i in the train part (d, d), whose end is joined to its beginning.

        Joined to a circle, every token is left as often as it is entered: so pi is the stationary law of the bigram chain
        to rounding, and every token can be reached from every other without any smoothing.
        """
        require_memory("the pairs of neighbouring tokens", "choose a smaller --vocab", self.size, self.size)
        return lagged_pairs(self.train, 1, self.size)

    @cached_property
    def sparse_pairs(self) -> "csr_array":
        """The same as a sparse matrix: most tokens never follow each other."""
        from scipy.sparse import coo_array

        ones, following = np.ones(len(self.train)), np.roll(self.train, -1)
        return coo_array((ones, (self.train, following)), shape=(self.size, self.size)).tocsr()

    def floor(self) -> float:
        """The entropy of a token given the last one; of many tokens it is summed over the pairs that occur."""
        if self.size < LARGE:
            return super().floor()
        pairs = self.sparse_pairs
        return float(-np.sum(pairs.data * np.log(pairs.data / np.repeat(self.counts, np.diff(pairs.indptr)))) / len(self.train))

    def _law(self) -> np.ndarray:
        return self.counts / self.counts.sum()

    def _matrix(self) -> np.ndarray:
        return self.pairs / self.counts[:, None]

    @cached_property
    def bigram(self) -> MarkovChain:
        """The chain of neighbouring tokens, apart from the text."""
        return MarkovChain(rows=self.transition.tolist())


def read_corpus(
    source: str | Path = TOPICS,
    *,
    tokens: Tokens | None = None,
    vocab: int = 200,
    layout: Layout | None = None,
    valid: float = 0.1,
    split_seed: int = 0,
    shuffle: int | None = None,
    progress: Progress | None = None,
) -> TextCorpus:
    """The corpus of a known name or a path; tokens and layout not given are those of the name, or lower-case words and a guess.

    The text is read at once, so that whatever is wrong with it is said here. `shuffle` is a seed: the tokens of each part are
    then put in a random order.

    Args:
        source: a known name or a path.
        tokens: "word", "lower", "basic", "char" or "bpe".
        vocab: number of types; rarer ones are one type.
        layout: how documents are separated.
        valid: the share that is held out.
        split_seed: of the choice of what is held out.
        shuffle: a seed that puts the tokens in a random order.
        progress: told how far the reading is.

    Examples:
        >>> ss.read_corpus("words.txt", vocab=9).size
        9
    """
    if vocab < 2:
        raise InputError(f"--vocab {vocab} is no vocabulary; take 2 or more")
    for name, value, choices in (("tokens", tokens, get_args(Tokens)), ("layout", layout, get_args(Layout))):
        if value is not None and value not in choices:
            raise unknown(name, str(value), choices)
    source = anchored(str(source))
    usual = KNOWN.get(source)
    if source == TOPICS and layout not in (None, KNOWN[TOPICS].layout):
        raise InputError(f"--layout {layout} does not fit {TOPICS}, whose documents are separate already; leave it out")
    tokens = tokens or (usual.tokens if usual else "lower")
    layout = layout or (usual.layout if usual else guess_layout(locate(source)["train"]))
    sha256 = read_text(source, tokens, layout, progress).sha256
    corpus = TextCorpus(
        source=source,
        sha256=sha256,
        layout=layout,
        tokens=tokens,
        size=vocab,
        valid=valid,
        split_seed=split_seed,
        shuffle=shuffle,
    )
    _tokenise(corpus)  # pyright: ignore[reportArgumentType]
    return corpus


@dataclass(frozen=True)
class _Tokenised:
    words: tuple[str, ...]
    train: np.ndarray
    held_out: np.ndarray
    type_counts: np.ndarray


@lru_cache(maxsize=4)
def _tokenise(corpus: TextCorpus) -> _Tokenised:
    """Parts and vocabulary; kept for equal descriptions, as a run and its readings each make the corpus again."""
    raw = corpus.raw
    train, held_out = _split(raw, corpus.valid, corpus.split_seed)
    counts = tally(train, len(raw.types))
    try:
        vocabulary = (learn_pieces if corpus.tokens == "bpe" else most_frequent)(raw.types, counts, corpus.size)
    except InputError as error:
        raise InputError(f"{corpus.source}: {error}") from None
    parts = {"train": vocabulary.encode(train), "held-out": vocabulary.encode(held_out)}
    if corpus.shuffle is not None:
        parts = {name: key(corpus.shuffle, "shuffle", name).permutation(stream) for name, stream in parts.items()}
    return _Tokenised(vocabulary.words, parts["train"], parts["held-out"], counts)


def _split(raw: RawText, share: float, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Types of the train part and of the held-out part: the corpus's own valid file, or whole documents drawn at random."""
    stream = raw.parts["train"]
    if "valid" in raw.parts:
        return stream.ids, raw.parts["valid"].ids
    ends = stream.ends
    if len(ends) == 1:
        ends = np.linspace(0, len(stream.ids), 101).round().astype(int)[1:]
    count = min(max(round(share * len(ends)), int(share > 0)), len(ends) - 1)  # of several documents, one is left to train on
    out = np.zeros(len(ends), dtype=bool)
    out[key(seed, "split").permutation(len(ends))[:count]] = True
    held_out = np.repeat(out, np.diff(ends, prepend=0))
    return stream.ids[~held_out], stream.ids[held_out]


@dataclass(frozen=True)
class AboutText:
    """What a paper predicts for a text before training: `facts` as JSON, and the same as `renderables` for the terminal."""

    facts: dict[str, Any]
    renderables: tuple[Any, ...]


def corpus_facts(corpus: TextCorpus) -> dict[str, Any]:
    """Counts, vocabulary and entropies."""
    raw = corpus.raw
    return {
        "corpus": {name: value for name, value in corpus.describe().items() if name != "type"},
        "parts": {name: {"tokens": len(part.ids), "documents": len(part.ends)} for name, part in raw.parts.items()},
        "types": len(raw.types),
        "vocabulary": len(corpus.words),
        "train_tokens": len(corpus.train),
        "held_out_tokens": len(corpus.held_out),
        "frequent": {corpus.label(token): float(corpus.stationary[token]) for token in range(min(20, corpus.vocab))},
        "entropy": {"of types": corpus.unigram_loss(), "given the last token": corpus.floor()},
    }
