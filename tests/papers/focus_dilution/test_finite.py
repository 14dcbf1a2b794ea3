"""The exact loss at finite length: attention over positions, the limit of long contexts, events of the flow."""

from collections import Counter
from itertools import pairwise, product
from math import prod

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import stagescope as ss
from stagescope.flow.autodiff import jax, jnp
from stagescope.papers.focus_dilution.stages import passes
from stagescope.readings.published import published
from tests.papers.focus_dilution.test_context_law import sequences
from tests.processes.test_markov_chain import chains

REF = ss.LazyChain(pi=(0.5, 0.25, 0.15, 0.10), persistence=0.6)
MODEL = ss.TokenAttention(vocab=4, width=8, scale=4.0)


def by_positions(model, chain, params, length, start):
    """The loss with one attention weight for every position of every sequence: no counts anywhere."""
    scores, embedded, total = model.scores(params), params["W0"], 0.0
    for tokens, p in sequences(chain, length, start):
        weights = np.exp(scores[tokens[-1], list(tokens)])
        logits = (weights / weights.sum()) @ embedded[list(tokens)] @ params["W1"]
        total -= p * chain.transition[tokens[-1]] @ (logits - np.log(np.exp(logits).sum()))
    return total


@settings(max_examples=10)
@given(chains(), st.integers(1, 4), st.integers(0, 1000), st.sampled_from(["stationary", "uniform"]))
def test_loss_is_the_mean_over_all_sequences(chain, length, seed, start):
    model = ss.TokenAttention(vocab=chain.vocab, width=4, scale=2.0)
    params = model.init(seed, 0.7)
    found = ss.finite_loss(model, chain, length, start=start).value(params)
    assert found == pytest.approx(by_positions(model, chain, params, length, start), abs=1e-12)


@pytest.mark.long
@given(chains(), st.integers(1, 5))
def test_known_values(chain, length):
    """Zero parameters: log d. Equal rows of the right logits: the unigram loss, with a stationary start."""
    model = ss.TokenAttention(vocab=chain.vocab, width=3, scale=2.0)
    loss, zero = ss.finite_loss(model, chain, length), model.init(0, 0.0)
    assert loss.value(zero) == pytest.approx(np.log(chain.vocab))
    w0, w1 = np.zeros((chain.vocab, 3)), np.zeros((3, chain.vocab))
    w0[:, 0], w1[0] = 1.0, np.log(chain.stationary)
    assert loss.value({**zero, "W0": w0, "W1": w1}) == pytest.approx(chain.unigram_loss())
    assert loss.value(model.init(3, 1.0)) >= chain.floor()


def test_forbidden_steps_leave_out_contexts():
    chain = ss.MarkovChain(rows=((0.0, 0.5, 0.5), (1.0, 0.0, 0.0), (0.0, 1.0, 0.0)))
    model = ss.TokenAttention(vocab=3, width=3, scale=2.0)
    loss, params = ss.finite_loss(model, chain, 4), model.init(0, 0.7)
    assert loss.contexts.mass.size < 30
    assert loss.value(params) == pytest.approx(by_positions(model, chain, params, 4, "stationary"), abs=1e-12)


@pytest.mark.long
@pytest.mark.parametrize("start", ["stationary", "uniform"])
def test_long_contexts_tend_to_the_limit(start):
    """The gap to s = infinity halves when s doubles."""
    params, limit = MODEL.init(1, 0.3), ss.population_loss(MODEL, REF)
    gaps = [ss.finite_loss(MODEL, REF, s, start=start).value(params) - limit.value(params) for s in (16, 32, 64)]
    assert [gaps[1] / gaps[0], gaps[2] / gaps[1]] == pytest.approx([0.5, 0.5], abs=0.03)
    slope = ss.finite_loss(MODEL, REF, 64, start=start).grad(params)
    for name, expected in limit.grad(params).items():
        np.testing.assert_allclose(slope[name], expected, atol=0.1 * np.abs(expected).max())


def events(run):
    """E1, Q1 and E2."""
    embedding = passes(run.t, np.linalg.svd(run.params["W0"], compute_uv=False))
    return embedding[0], passes(run.t, np.linalg.svd(MODEL.scores(run.params), compute_uv=False))[0], embedding[1]


def flow(loss, until, method="auto"):
    dynamics = ss.GradientFlow(rtol=1e-8, method=method)
    return ss.evolve(loss, MODEL.init(0, 1e-3), dynamics, until=until, record=ss.Uniform(frames=401))


@pytest.mark.long
@pytest.mark.parametrize("length", [8, 16])
def test_flow_lifts_within_the_range_of_ten_seeds(length):
    reference = published("stagescope.papers.focus_dilution")["finite_second_opening"]
    low, high = reference.value[str(length)]
    low, high = low * (1 - reference.tolerance), high * (1 + reference.tolerance)
    found = {start: events(flow(ss.finite_loss(MODEL, REF, length, start=start), high)) for start in ("stationary", "uniform")}
    for first, opened, second in found.values():
        assert first < opened < second
        assert low < second < high
    assert found["uniform"][2] == pytest.approx(found["stationary"][2], rel=0.03)


@pytest.mark.long
def test_flow_is_that_of_a_loss_written_another_way():
    """All 4^6 sequences merged by hand, JAX, and another integrator."""
    length, states = 6, Counter()
    for tokens in product(range(4), repeat=length):
        p = prod(REF.transition[a, b] for a, b in pairwise(tokens)) / 4
        states[(tokens[-1], *np.bincount(tokens, minlength=4).tolist())] += p
    rows, p = np.array(list(states)), np.array(list(states.values()))

    def loss(params):
        scores = MODEL.scale * (params["W0"] @ params["WQ"]) @ (params["W0"] @ params["WK"]).T
        weights = rows[:, 1:] * jnp.exp(scores[rows[:, 0]])
        logits = (weights / weights.sum(1, keepdims=True)) @ params["W0"] @ params["W1"]
        return -jnp.sum(p[:, None] * REF.transition[rows[:, 0]] * jax.nn.log_softmax(logits, axis=1))

    expected = events(flow(ss.JaxObjective(loss), 90.0, method="lsoda"))
    assert events(flow(ss.finite_loss(MODEL, REF, length, start="uniform"), 90.0)) == pytest.approx(expected, rel=1e-4)


def test_bad_sizes():
    with pytest.raises(ss.InputError, match="length"):
        ss.finite_loss(MODEL, REF, 0)
    with pytest.raises(ss.InputError, match=r"1.86e\+09 states.*shorter length or the sampled form"):
        ss.finite_loss(ss.TokenAttention(vocab=6, width=2, scale=1.0), ss.LazyChain(pi=(0.5, *(0.1,) * 5), persistence=0.5), 128)
    with pytest.raises(ss.InputError, match="start"):
        ss.finite_loss(MODEL, REF, 4, start="first")
    with pytest.raises(ss.InputError, match="differs from the chain"):
        ss.finite_loss(MODEL, ss.LazyChain(pi=(0.5, 0.5), persistence=0.1), 4)
    process = ss.SequenceClasses.synthetic(2, 1, 2, 3)
    with pytest.raises(ss.InputError, match="no exact loss of finite length for PairwiseAttention on SequenceClasses"):
        ss.finite_loss(ss.PairwiseAttention.every_output(process), process, 4)
    with pytest.raises(ss.InputError, match="TokenAttention on SequenceClasses"):
        ss.finite_loss(MODEL, process, 4)
