"""Sequence classes: the generator's counts, who is common, the floor, and sampling in law."""

import math

import numpy as np
import pytest
from hypothesis import given

from stagescope.core.errors import InputError
from stagescope.core.spec import build
from stagescope.papers.scan_snap.process import SequenceClass, SequenceClasses
from stagescope.readings.published import published
from tests.strategies import sequence_classes

REFERENCE = published("stagescope.papers.scan_snap")


@pytest.mark.parametrize(("num_last", "vocab"), REFERENCE["syn_medium_vocab"].value.items())
def test_syn_medium_has_the_published_vocabulary(num_last, vocab):
    num_last = int(num_last)
    process = SequenceClasses.synthetic(num_last, 2, 10, 10)
    assert process.vocab == vocab
    assert len(process.classes) == 2 * num_last
    assert len(process.common) == 10
    assert len(process.distinct) == 20 * num_last


def test_syn_small_weights_are_ones_and_a_ramp():
    process = SequenceClasses.synthetic(2, 1, 10, 10)
    law = np.array(process.classes[0].probabilities)
    assert process.vocab == REFERENCE["syn_small_vocab"].value
    np.testing.assert_allclose(law / law[0], [1.0] * 10 + list(np.linspace(0.1, 1, 10)), rtol=1e-12)


def test_tokens_common_to_one_query_are_common_only_there():
    process = SequenceClasses.synthetic(2, 2, 1, 2, num_common_per_last=3)
    assert len(process.common) == 1 + 2 * 3
    assert set(process.classes[0].tokens) & set(process.classes[1].tokens) == {0, 1, 2, 3}
    assert set(process.classes[0].tokens) & set(process.classes[2].tokens) == {0}


@given(sequence_classes())
def test_table_rows_sum_to_one_and_spec_round_trips(process):
    np.testing.assert_allclose(process.table(process.keys).sum(axis=1), 1.0, rtol=1e-12)
    assert build(process.describe()) == process


@given(sequence_classes())
def test_classes_with_own_tokens_can_be_told_apart(process):
    assert process.floor() == pytest.approx(0.0, abs=1e-15)


def test_floor_is_the_mixture_entropy_when_contexts_say_nothing_new():
    """Three classes; two share query and law but for the distinct token that a fourth law would need: built by hand."""
    same = {"query": 2, "tokens": (0, 1), "probabilities": (0.5, 0.5)}
    one, two = SequenceClass(**same, target=3), SequenceClass(**same, target=4)
    process = SequenceClasses.model_construct(vocab=5, classes=(one, two), prior=(0.25, 0.75), labels=())
    assert process.floor() == pytest.approx(-(0.25 * math.log(0.25) + 0.75 * math.log(0.75)))


GOOD = {"query": 4, "target": 5, "tokens": (0, 1), "probabilities": (0.4, 0.6)}


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"probabilities": (0.4, 0.5)}, "sum to 0.9"),
        ({"probabilities": (-0.4, 1.4)}, "-0.4 is not positive"),
        ({"probabilities": (float("nan"), 0.6)}, "finite number"),
        ({"probabilities": (1.0,)}, "2 tokens but 1 probabilities"),
        ({"tokens": (0, 0)}, "listed twice"),
        ({"query": 1}, "query token is also a context token"),
    ],
)
def test_bad_classes_are_refused_with_the_value(change, words):
    with pytest.raises(InputError, match=words):
        SequenceClass(**{**GOOD, **change})


def test_bad_collections_are_refused():
    one = SequenceClass(**GOOD)
    twin = SequenceClass(**{**GOOD, "target": 6})
    with pytest.raises(InputError, match="no classes"):
        SequenceClasses(vocab=7, classes=())
    with pytest.raises(InputError, match="token 5 is outside"):
        SequenceClasses(vocab=5, classes=(one,))
    with pytest.raises(InputError, match="no distinct token"):
        SequenceClasses(vocab=7, classes=(one, twin))
    with pytest.raises(InputError, match="share query 4 and target 5"):
        SequenceClasses(vocab=7, classes=(one, one))
    with pytest.raises(InputError, match="num_last is 0"):
        SequenceClasses.synthetic(0, 1, 1, 1)
    with pytest.raises(InputError, match="vocab 3 is smaller"):
        SequenceClasses.synthetic(2, 1, 1, 1, vocab=3)
