"""The law of finite contexts: all sequences one by one, numbers of states, sums, sizes that are refused."""

from itertools import pairwise, product
from math import prod

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import stagescope as ss
from stagescope.papers.focus_dilution.loss import check_size, context_law, state_count
from tests.processes.test_markov_chain import chains

STARTS = st.sampled_from(["stationary", "uniform"])


def sequences(chain, length, start="stationary"):
    """Every sequence of the chain with its probability."""
    first, p = chain.initial(start), chain.transition
    for tokens in product(range(chain.vocab), repeat=length):
        yield tokens, first[tokens[0]] * prod(p[a, b] for a, b in pairwise(tokens))


def by_counts(chain, length, start):
    found = {}
    for tokens, p in sequences(chain, length, start):
        state = (*np.bincount(tokens, minlength=chain.vocab).tolist(), tokens[-1])
        found[state] = found.get(state, 0.0) + p
    return found


@settings(max_examples=15)
@given(chains(), st.integers(1, 4), STARTS)
def test_the_programme_is_the_sum_over_sequences(chain, length, start):
    law, brute = context_law(chain, length, start), by_counts(chain, length, start)
    assert law.probability.size == len(brute) == state_count(chain.vocab, length)
    for i in range(chain.vocab):
        for others, p in zip(law.earlier, law.probability[:, i], strict=True):
            state = (*(others + np.eye(chain.vocab, dtype=int)[i]).tolist(), i)
            assert p == pytest.approx(brute[state], abs=1e-15)


@pytest.mark.parametrize(("length", "states"), [(8, 480), (16, 3264), (32, 23936)])
def test_numbers_of_states_and_sums(length, states):
    chain = ss.LazyChain(pi=(0.5, 0.25, 0.15, 0.10), persistence=0.6)
    assert state_count(4, length) == states
    for start in ("stationary", "uniform"):
        law = context_law(chain, length, start)
        assert law.probability.size == states
        assert law.probability.sum() == pytest.approx(1, abs=1e-14)
        assert np.all(law.earlier.sum(axis=1) == length - 1)
        last = chain.initial(start) @ np.linalg.matrix_power(chain.transition, length - 1)
        np.testing.assert_allclose(law.probability.sum(axis=0), last, atol=1e-14)


@given(chains(), st.integers(2, 7))
def test_a_stationary_start_keeps_the_frequencies(chain, length):
    law = context_law(chain, length)
    mean = law.probability.sum(axis=1) @ law.earlier + law.probability.sum(axis=0)
    np.testing.assert_allclose(mean / length, chain.stationary, atol=1e-12)


def test_laws_too_large_are_refused_before_they_are_made():
    with pytest.raises(
        ss.InputError, match=r"length 500 has 8.38e\+07 states, but at most 4.19e\+06 .* length 183 .* shorter length"
    ):
        check_size(4, 500)
    with pytest.raises(ss.InputError, match=r"1e20 states.*length 5 are summed for 20 tokens"):
        check_size(20, 64)
    with pytest.raises(ss.InputError, match="length 20000"):
        check_size(2, 10**12)
    with pytest.raises(ss.InputError, match="use fewer tokens or the sampled form"):
        check_size(5000, 3)
    check_size(4, 183)
