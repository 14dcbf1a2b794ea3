"""Byte-pair encoding: a vocabulary of pieces of words, learned by merging the most frequent neighbours."""

import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain, repeat
from typing import Any

import numpy as np

from stagescope.core.errors import InputError, needed
from stagescope.corpora.files import SEPARATOR
from stagescope.corpora.vocabulary import UNKNOWN, most_frequent, token_type

RARE = 5e-4
"""Characters that together make up less than this share of the text are <unk>, as is usual for byte-pair encoding."""
_BETWEEN, _AT_ONCE, _PIECE = "\0", 4096, 1 << 22


@dataclass(frozen=True)
class Pieces:
    """Pieces, most frequent first after <unk>, and those that each type of the text is made of, one type after another."""

    words: tuple[str, ...]
    tokens: np.ndarray
    starts: np.ndarray

    def encode(self, types: np.ndarray) -> np.ndarray:
        """Tokens of a text given by types, some at a time: the places of pieces are eight bytes each."""
        parts = [self.tokens[:0]]
        for i in range(0, len(types), _PIECE):
            some = types[i : i + _PIECE]
            lengths = np.diff(self.starts)[some]
            before = np.cumsum(lengths) - lengths
            parts.append(self.tokens[np.arange(lengths.sum()) + np.repeat(self.starts[some] - before, lengths)])
        return np.concatenate(parts)


def learn_pieces(types: tuple[str, ...], counts: np.ndarray, size: int) -> Pieces:
    """`size` pieces that occur in the text, <unk> among them for characters too rare to be kept.

    Merges stay inside a type of the text (a word with the blank before it). The merges of a small vocabulary are the first
    ones of a large one, so they are learned once and as many are taken as give `size` pieces.
    """
    largest = sum(map(len, types)) + 1  # every piece begins at a character of a type of its own, or is <unk>
    if size > largest:
        raise InputError(f"a vocabulary of {size:,} pieces cannot be made of {largest:,} characters; give a smaller --vocab")
    alphabet, merges = _learned(types, counts, size)
    steps = max(size - len(alphabet), 0)
    while True:
        names, spelled, starts = _spell(types, alphabet, merges[:steps])
        occurrences = np.bincount(spelled, np.repeat(counts, np.diff(starts)), len(names)).astype(np.int64)
        present = int(np.count_nonzero(occurrences))
        if present >= size or steps >= len(merges):
            break
        steps += size - present  # a piece that is always merged further never occurs; a merge adds one at most
    if present < size:
        raise InputError(
            f"a vocabulary of {size:,} pieces cannot be made: the text is too small for so many merges; give a smaller --vocab"
        )
    vocabulary = most_frequent(names, occurrences, size)
    tokens = vocabulary.tokens[spelled]
    inside = tokens >= 0  # pieces outside a vocabulary that has no <unk> are left out
    cut = np.concatenate([[0], np.cumsum(inside)])[starts]
    return Pieces(vocabulary.words, tokens[inside].astype(token_type(vocabulary.words)), cut)


def _learned(types: tuple[str, ...], counts: np.ndarray, size: int) -> tuple[list[str], list[tuple[str, str]]]:
    """The characters and the merges, in the order in which they were learned."""
    needed("tokenizers", "text", "a vocabulary of pieces of words")
    from tokenizers import Tokenizer, models, pre_tokenizers, trainers

    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.Split(_BETWEEN, "removed")
    alphabet, rare = _characters(types, counts)
    options: Any = {"min_frequency": 2, "show_progress": False}
    trainer = trainers.BpeTrainer(vocab_size=2 * size + len(alphabet), **options)
    tokenizer.train_from_iterator(_texts(types, counts, rare), trainer)
    model = json.loads(tokenizer.to_str())["model"]
    merges = [(first, second) for first, second in model["merges"]]
    merged = set(map("".join, merges))
    return [piece for piece in model["vocab"] if piece not in merged], merges


def _characters(types: tuple[str, ...], counts: np.ndarray) -> tuple[list[str], list[str]]:
    """The most frequent characters, which make up the text but for a share of `RARE`, and the rest; ties go to the first seen.

    The library has a limit of its own, but its choice among equally frequent characters differs from process to process.
    """
    frequencies: Counter[str] = Counter()
    for name, count in zip(types, counts.tolist(), strict=True):
        for character in name if name != SEPARATOR else "":
            frequencies[character] += count
    ranked = frequencies.most_common()
    shares = np.cumsum([count for _, count in ranked]) / max(frequencies.total(), 1)
    enough, names = int(np.searchsorted(shares, 1 - RARE)) + 1, [name for name, _ in ranked]
    return names[:enough], names[enough:]


def _texts(types: tuple[str, ...], counts: np.ndarray, rare: list[str]) -> Iterator[str]:
    """Every type as often as it occurs, a few thousand at a time: the library counts words of long texts fastest.

    Types are cut at rare characters, which are <unk> and never merged.
    """
    cuts = dict.fromkeys(map(ord, rare), _BETWEEN)
    for name, count in zip(types, counts.tolist(), strict=True):
        if name != SEPARATOR:
            repeats, remainder = divmod(count, _AT_ONCE)
            text = name.translate(cuts) + _BETWEEN
            yield from repeat(text * _AT_ONCE, repeats)
            yield text * remainder


def _spell(
    types: tuple[str, ...], alphabet: list[str], merges: list[tuple[str, str]]
) -> tuple[tuple[str, ...], np.ndarray, np.ndarray]:
    """All pieces, those that the types are made of one after another, and where each type begins among them."""
    from tokenizers import Tokenizer, models

    names = (UNKNOWN, SEPARATOR, *dict.fromkeys((*alphabet, *map("".join, merges))))
    numbers = {name: i for i, name in enumerate(names)}
    tokenizer = Tokenizer(models.BPE(numbers, merges, unk_token=UNKNOWN))
    spelled = [encoding.ids for encoding in tokenizer.encode_batch(list(types))]
    if SEPARATOR in types:
        spelled[types.index(SEPARATOR)] = [numbers[SEPARATOR]]
    starts = np.concatenate([[0], np.cumsum([len(ids) for ids in spelled])])
    return names, np.fromiter(chain.from_iterable(spelled), np.int64, int(starts[-1])), starts
