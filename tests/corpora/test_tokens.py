"""Tokenisers: words, lower-case words, characters."""

import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stagescope.corpora.tokens import SPLIT, Reader, end_mark

PATTERN = re.compile(r"[a-z']+|[.,!?\"]")


@given(st.text())
def test_lower_words_are_the_matches_of_the_pattern(text):
    assert SPLIT["lower"](text) == PATTERN.findall(text.lower())


@pytest.mark.parametrize("text", ["It's 5 o'clock, \"he\" said!?", "K is the Kelvin sign\ud800.", "naïve İstanbul"])
def test_lower_words_of_hard_cases(text):
    assert SPLIT["lower"](text) == PATTERN.findall(text.lower())


BASIC = [("'", " '  "), ('"', ""), (r"\.", " . "), ("<br />", " "), (",", " , "), (r"\(", " ( "), (r"\)", " ) ")]
BASIC += [("!", " ! "), (r"\?", " ? "), (";", " "), (":", " ")]


@given(st.text(alphabet="aB'\".<br />,()!?;: \n\u0130"))
def test_basic_words_are_those_of_the_published_rules(text):
    """The rules of torchtext's basic_english, applied one after the other."""
    expected = text.lower()
    for pattern, replacement in BASIC:
        expected = re.sub(pattern, replacement, expected)
    assert SPLIT["basic"](text) == expected.split()


@given(st.text())
def test_words_have_one_end_for_each_line(text):
    expected = [word for line in text.split("\n") for word in (*line.split(), "<eos>")][:-1]
    assert SPLIT["word"](text) == expected


@given(st.text(alphabet="ab,. \n"))
def test_chunks_hold_every_character_but_blanks_between_lines(text):
    assert re.sub(" ", "", "".join(SPLIT["bpe"](text))) == re.sub(" ", "", text)


def test_types_are_numbered_in_order_of_appearance_over_all_texts():
    reader = Reader("word")
    first = reader.stream([["b a"], ["a b c"]], with_marks=True)
    second = reader.stream([["c d\n"]], with_marks=False)
    assert reader.types == ("b", "a", "<|endoftext|>", "c", "d", "<eos>")
    assert first.ids.tolist() == [0, 1, 2, 1, 0, 3, 2]
    assert first.ends.tolist() == [3, 7]
    assert second.ids.tolist() == [3, 4, 5]
    assert second.ends.tolist() == [3]


def test_no_text_is_an_empty_stream():
    empty = Reader("char").stream([], with_marks=False)
    assert empty.ids.dtype == np.int32
    assert len(empty.ids) == 0


def test_the_separator_becomes_the_word_of_the_science_page():
    assert end_mark("lower") == SPLIT["lower"]("<|endoftext|>")[0]
