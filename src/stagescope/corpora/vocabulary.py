"""The vocabulary of a corpus: its most frequent types, the rest as one."""

from collections.abc import Sized
from dataclasses import dataclass

import numpy as np

from stagescope.core.errors import InputError

UNKNOWN = "<unk>"
_PIECE = 1 << 24
"""Tokens counted at a time: NumPy counts a copy of 8 bytes each."""


@dataclass(frozen=True)
class Vocabulary:
    """Words, most frequent first after <unk>, and the token of each type of the text, -1 for a type that has none."""

    words: tuple[str, ...]
    tokens: np.ndarray

    def encode(self, types: np.ndarray) -> np.ndarray:
        """Tokens of a text given by types; without <unk>, types that the vocabulary lacks are left out."""
        if self.words[0] != UNKNOWN:
            types = types[(self.tokens >= 0)[types]]
        return self.tokens.astype(token_type(self.words))[types]


def token_type(words: Sized) -> type:
    """The smallest type that holds a token of each word."""
    return np.uint16 if len(words) <= 1 << 16 else np.int32


def tally(numbers: np.ndarray, size: int) -> np.ndarray:
    """How often each number below `size` occurs (size,)."""
    parts = (np.bincount(numbers[i : i + _PIECE], minlength=size) for i in range(0, len(numbers), _PIECE))
    return sum(parts, np.zeros(size, dtype=np.int64))


def most_frequent(types: tuple[str, ...], counts: np.ndarray, size: int) -> Vocabulary:
    """The `size` - 1 most frequent types after <unk>, which stands for all others; ties go to the type that came first.

    If the text has just `size` types there is nothing left for <unk>, which then is no token: a token that never occurs has
    no place in a chain.
    """
    present = int(np.count_nonzero(counts))
    if not 2 <= size <= present:
        remedy = f"give --vocab from 2 to {present}" if present > 1 else "give more text"
        raise InputError(f"a vocabulary of {size:,} cannot be made: the part to train on has {present:,} types: {remedy}")
    unknown = np.array([name == UNKNOWN for name in types])
    order = np.argsort(-counts, kind="stable")
    order = order[~unknown[order]]
    with_unknown = size < present or bool(counts[unknown].any())
    frequent = order[: size - with_unknown]
    tokens = np.full(len(types), 0 if with_unknown else -1, dtype=np.int32)
    tokens[frequent] = np.arange(with_unknown, size)
    return Vocabulary((UNKNOWN,) * with_unknown + tuple(types[i] for i in frequent.tolist()), tokens)
