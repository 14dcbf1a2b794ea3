"""From text to numbers: words, lower-case words, characters, and what BPE is learned on."""

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Literal

import numpy as np

from stagescope.corpora.files import SEPARATOR

Tokens = Literal["word", "lower", "basic", "char", "bpe"]
_MARKS = '.,!?"'
_KEPT_BYTES = bytes(code if chr(code) in f"abcdefghijklmnopqrstuvwxyz'{_MARKS}" else 32 for code in range(256))


def _words(text: str) -> list[str]:
    """Split at white space; the end of a line is a word of its own."""
    return text.replace("\n", " <eos> ").split()


def _lower_words(text: str) -> list[str]:
    """Matches of [a-z']+|[.,!?"] in lower-cased text: words and marks, everything else is left out.

    All other bytes become blanks, marks get blanks around them, and the rest is split: three times faster than the pattern.
    """
    letters = text.lower().encode(errors="surrogatepass").translate(_KEPT_BYTES).decode("ascii")
    for mark in _MARKS:
        letters = letters.replace(mark, f" {mark} ")
    return letters.split()


def _basic_words(text: str) -> list[str]:
    """The words of torchtext's tokeniser `basic_english`: lower case, .,()!?' are words, ;: are blanks, " is left out."""
    text = text.lower().replace('"', "").replace("<br />", " ").translate({ord(";"): " ", ord(":"): " "})
    for mark in ".,()!?'":
        text = text.replace(mark, f" {mark} ")
    return text.split()


SPLIT: dict[Tokens, Callable[[str], list[str]]] = {
    "word": _words,
    "lower": _lower_words,
    "basic": _basic_words,
    "char": list,
    "bpe": re.compile(r" ?\w+| ?[^\w\s]+|\n+").findall,
}
"""BPE merges within words with the blank before them, runs of other signs, and ends of lines, never across."""


def end_mark(tokens: Tokens) -> str:
    """The word that ends a document."""
    return "endoftext" if tokens == "lower" else SEPARATOR


class _Numbers(dict[str, int]):
    """Numbers of words in order of first appearance."""

    def __missing__(self, word: str) -> int:
        self[word] = number = len(self)
        return number


@dataclass(frozen=True)
class Stream:
    """Tokens of a text by the number of their type, all types in order of first appearance, and where documents end."""

    ids: np.ndarray
    ends: np.ndarray


class Reader:
    """Numbers the types of one text after another; a type keeps its number."""

    def __init__(self, tokens: Tokens) -> None:
        self.tokens: Tokens = tokens
        self._numbers = _Numbers()

    @property
    def types(self) -> tuple[str, ...]:
        return tuple(self._numbers)

    def stream(self, blocks: Iterable[list[str]], with_marks: bool) -> Stream:
        """The tokens of documents; `marked` says that each ends with a mark, else all of them are one document."""
        split, mark, number = SPLIT[self.tokens], end_mark(self.tokens), self._numbers.__getitem__
        parts, ends, total = [], [], 0
        for block in blocks:
            words: list[str] = []
            for document in block:
                words += split(document)
                if with_marks:
                    words.append(mark)
                    ends.append(total + len(words))
            parts.append(np.fromiter(map(number, words), np.int32, len(words)))
            total += len(words)
        ends = np.array(ends if with_marks else [total], dtype=np.int64)
        # one array of all parts, each let go once it is copied: never are there two copies of a text
        ids = np.empty(total, dtype=np.int32)
        while parts:
            part = parts.pop()
            ids[total - len(part) : total] = part
            total -= len(part)
        return Stream(ids, ends)
