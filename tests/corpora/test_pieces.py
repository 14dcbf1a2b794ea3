"""Byte-pair encoding."""

import os
import subprocess
import sys
from collections import Counter
from itertools import pairwise

import numpy as np
import pytest

from stagescope.core.errors import InputError
from stagescope.corpora import pieces as text_pieces
from stagescope.corpora.pieces import learn_pieces

TYPES = (" low", " lower", " newest", " widest", "<|endoftext|>")
COUNTS = np.array([50, 20, 60, 30, 4])


def spelled(found, of):
    return [found.words[token] for token in found.encode(np.array([of]))]


def textbook(types, counts, merges):
    """A second opinion: merge the most frequent pair of neighbours, again and again; the counts have no ties."""
    words = [list(name) for name in types]
    for _ in range(merges):
        pairs = Counter()
        for word, count in zip(words, counts, strict=True):
            for pair in pairwise(word):
                pairs[pair] += count
        best = pairs.most_common(1)[0][0]
        for word in words:
            i = 0
            while i < len(word) - 1:
                if (word[i], word[i + 1]) == best:
                    word[i : i + 2] = ["".join(best)]
                i += 1
    return words


def test_merges_are_those_of_the_textbook():
    draw = np.random.default_rng(3)
    types = tuple(sorted({"".join(draw.choice(list("abcde"), n)) for n in draw.integers(3, 9, 40)}))
    counts = draw.integers(1000, 10**4, len(types)).tolist()
    for size in (8, 12, 20):
        found = learn_pieces(types, np.array(counts), size)
        ours = [spelled(found, i) for i in range(len(types))]
        runs = (textbook(types, counts, merges) for merges in range(size))
        assert ours == next(words for words in runs if len({piece for word in words for piece in word}) == size)


def test_pieces_spell_every_type_and_the_separator_is_one_piece():
    found = learn_pieces(TYPES, COUNTS, 12)
    for i, name in enumerate(TYPES[:-1]):
        assert "".join(spelled(found, i)) == name
    assert spelled(found, 4) == ["<|endoftext|>"]


def test_every_piece_occurs_and_there_are_as_many_as_asked():
    for size in range(6, 13):
        found = learn_pieces(TYPES, COUNTS, size)
        stream = np.repeat(np.arange(5), COUNTS)
        seen = np.bincount(found.encode(stream), minlength=size)
        assert len(found.words) == len(seen) == size
        assert seen.min() > 0


@pytest.mark.parametrize(("vocab", "words"), [(36, "too small for so many merges"), (400, "cannot be made of 38 characters")])
def test_more_pieces_than_merges_give_is_refused(vocab, words):
    with pytest.raises(InputError, match=words):
        learn_pieces(TYPES, COUNTS, vocab)


def test_characters_never_seen_are_unknown_or_left_out():
    types = (*TYPES, " zow")
    counts = np.append(COUNTS, 0)
    found = learn_pieces(types, counts, 12)
    assert "z" not in "".join(spelled(found, 5))
    assert "".join(spelled(found, 5)).endswith("ow")


def test_a_text_is_encoded_in_parts(monkeypatch):
    found, stream = learn_pieces(TYPES, COUNTS, 12), np.random.default_rng(0).integers(0, 5, 50)
    whole = found.encode(stream)
    monkeypatch.setattr(text_pieces, "_PIECE", 7)
    assert np.array_equal(found.encode(stream), whole)
    assert len(found.encode(stream[:0])) == 0


CODE = """
import hashlib
import numpy as np
from stagescope.corpora.pieces import learn_pieces
common = [f" {a}{b}" for a in "abcdefgh" for b in "ijkl"]
rare = [f" {chr(0x400 + i)}a" for i in range(40)]
counts = np.array([3000] * len(common) + [10] * len(rare))
found = learn_pieces((*common, *rare), counts, 45)
print(found.words, hashlib.sha256(found.tokens.tobytes()).hexdigest())
"""


def test_learning_does_not_depend_on_the_process_or_its_threads():
    """Forty characters are equally rare, and some of them are too rare to be kept: the same ones in every process."""
    found = set()
    for threads in ("true", "false", "true"):
        env = {**os.environ, "TOKENIZERS_PARALLELISM": threads, "PYTHONHASHSEED": "random"}
        found.add(subprocess.run([sys.executable, "-c", CODE], capture_output=True, text=True, check=True, env=env).stdout)
    assert len(found) == 1
    kept = sum("\u0400" <= sign < "\u0428" for sign in found.pop())
    assert 0 < kept < 40
