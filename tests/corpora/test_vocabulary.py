"""The most frequent types, and <unk> for the rest."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stagescope.core.errors import InputError
from stagescope.corpora.vocabulary import UNKNOWN, most_frequent

TYPES = ("c", "a", "b", "d")
COUNTS = np.array([2, 5, 2, 1])


def test_most_frequent_first_after_unknown_and_ties_by_appearance():
    found = most_frequent(TYPES, COUNTS, 3)
    assert found.words == (UNKNOWN, "a", "c")
    assert found.encode(np.array([0, 1, 2, 3])).tolist() == [2, 1, 0, 0]


def test_all_types_need_no_unknown():
    found = most_frequent((*TYPES, "only held out"), np.append(COUNTS, 0), 4)
    assert found.words == ("a", "c", "b", "d")
    assert found.encode(np.array([4, 0, 4])).tolist() == [1]


def test_a_text_with_its_own_unknown_keeps_it_at_zero():
    found = most_frequent(("<unk>", "a", "b"), np.array([1, 5, 2]), 3)
    assert found.words == (UNKNOWN, "a", "b")
    assert found.encode(np.array([0, 2])).tolist() == [0, 2]


@pytest.mark.parametrize("size", [1, 5])
def test_a_vocabulary_beyond_the_types_is_refused(size):
    with pytest.raises(InputError, match=r"4 types: give --vocab from 2 to 4"):
        most_frequent(TYPES, COUNTS, size)


@given(st.lists(st.integers(1, 9), min_size=2, max_size=8), st.data())
def test_every_token_occurs_and_counts_fall(counts, data):
    size = data.draw(st.integers(2, len(counts)))
    found = most_frequent(tuple(map(str, range(len(counts)))), np.array(counts), size)
    stream = np.repeat(np.arange(len(counts)), counts)
    seen = np.bincount(found.encode(stream), minlength=size)
    assert len(seen) == len(found.words) == size
    assert seen.min() > 0
    assert np.all(np.diff(seen[found.words[0] == UNKNOWN :]) <= 0)
