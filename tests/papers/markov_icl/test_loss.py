"""Losses of the models: kernel against definition, gradients, exact against sampled, closed forms."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stagescope.core.errors import InputError
from stagescope.core.params import Layout
from stagescope.core.spec import build
from stagescope.flow.field import Objective
from stagescope.papers.markov_icl.finite import FiniteExact, FiniteSampled
from stagescope.papers.markov_icl.forms import (
    Plateau,
    chi_squares,
    class_of,
    common_gain,
    first_gradient,
    lag_gains,
    levels,
    second_chi_squares,
)
from stagescope.papers.markov_icl.kernels import kinds_of_windows
from stagescope.papers.markov_icl.loss import LinearPopulation, SoftmaxPopulation, TwoHeadPopulation
from stagescope.papers.markov_icl.model import LinearMatch, ReadoutMatch, SoftmaxMatch, TwoHeadMatch
from stagescope.papers.markov_icl.process import ChainPrior, sampled

TWO, THREE = ChainPrior(nodes=6), ChainPrior(tokens=3, draws=7)


def reduced(prior=TWO, lags=9, form="parts"):
    return LinearPopulation(model=LinearMatch(tokens=prior.tokens, lags=lags, form=form), process=prior)


@pytest.mark.long
@pytest.mark.parametrize("form", ["parts", "entries", "free"])
@pytest.mark.parametrize("prior", [TWO, THREE])
def test_kernel_is_the_definition(form, prior):
    loss = reduced(prior, form=form)
    assert build(loss.describe()) == loss
    for seed in range(3):
        params = loss.model.init(seed, 1.0, 2.0)
        assert loss.value(params) == pytest.approx(Objective.value(loss, params), abs=1e-12)
        for name, block in Objective.grad(loss, params).items():
            np.testing.assert_allclose(loss.grad(params)[name], block, atol=1e-12)
        layout = Layout.of(params)
        out = np.empty(layout.size)
        flat = loss.flat(layout, {"W": 2.0, "v": 0.5})
        assert flat(layout.pack(params), out) == pytest.approx(loss.value(params), abs=1e-12)
        np.testing.assert_allclose(layout.unpack(out)["v"], -0.5 * loss.grad(params)["v"], atol=1e-12)


def test_two_entries_move_as_the_whole_match():
    two, whole = reduced(THREE, form="entries"), reduced(THREE, form="free")
    params = {"W": np.array([0.3, 1.1]), "v": two.model.init(0, 1.0)["v"]}
    square = {"W": two.model.square(params["W"]), "v": params["v"]}
    assert two.value(params) == pytest.approx(whole.value(square), abs=1e-13)
    found, entries = two.grad(params)["W"], whole.grad(square)["W"]
    off = ~np.eye(3, dtype=bool)  # a sample of chains is symmetric in the tokens only on average
    np.testing.assert_allclose(found, [entries[off].mean(), np.diag(entries).mean()], atol=1e-12)


@pytest.mark.parametrize("seed", range(3))
def test_relabelling_tokens_changes_nothing(seed):
    loss, order = reduced(TWO, form="free"), [1, 0]
    params = loss.model.init(seed, 1.0, 2.0)
    assert loss.value({**params, "W": params["W"][np.ix_(order, order)]}) == pytest.approx(loss.value(params), abs=1e-12)


def test_windows_and_powers_agree_at_the_unigram_point():
    """-dL/db of S at b = 0 is the mean of c_d over the lags, to all digits."""
    for prior, lags in ((TWO, 6), (THREE, 4)):
        loss = SoftmaxPopulation(model=SoftmaxMatch(tokens=prior.tokens, lags=lags), process=prior)
        start = loss.model.init()
        assert loss.value(start) == pytest.approx(prior.entropies[1], abs=1e-12)
        assert -loss.grad(start)["W"][0] == pytest.approx(chi_squares(prior, lags).mean(), rel=1e-9)


def test_softmax_reaches_the_entropies():
    loss = SoftmaxPopulation(model=SoftmaxMatch(tokens=2, lags=3), process=TWO)
    ends = {"W": np.array([500.0]), "v": np.array([0.0, 60.0, 0.0])}
    assert loss.value(ends) == pytest.approx(TWO.entropies[2], abs=1e-9)
    prior = ChainPrior(order=2, nodes=3)
    second = TwoHeadPopulation(model=TwoHeadMatch(tokens=2, lags=3), process=prior)
    scores = np.array([[0.0, 60.0, 0.0], [0.0, 0.0, 60.0]])
    for match, level in (((0.0, 0.0), 1), ((500.0, 0.0), 2), ((500.0, 500.0), 3)):
        found = second.value({"W": np.array(match), "v": scores})
        assert found == pytest.approx(prior.entropies[level], abs=1e-9)


def test_first_gradient_of_r_by_closed_forms():
    loss = reduced()
    found = loss.grad(loss.model.init())
    assert -found["W"][0] == pytest.approx(common_gain(TWO), abs=1e-12)
    assert -found["W"][1] == pytest.approx(lag_gains(TWO, 9).mean(), abs=1e-12)
    np.testing.assert_allclose(found["v"], 0, atol=1e-15)


def test_gains_of_the_page():
    prior = ChainPrior()
    np.testing.assert_allclose(lag_gains(prior, 6), [0.1023, 0.1251, 0.0889, 0.1048, 0.0894, 0.0984], atol=5e-5)
    np.testing.assert_allclose(chi_squares(prior, 6), [-0.0228, 0.0680, -0.0078, 0.0275, -0.0038, 0.0148], atol=5e-5)
    doubly = lag_gains(ChainPrior(doubly_stochastic=True), 8)
    np.testing.assert_allclose(doubly, [0, 1 / 12, 0, 1 / 20, 0, 1 / 28, 0, 1 / 36], atol=1e-12)


def test_levels_of_the_page():
    np.testing.assert_allclose(levels(reduced(ChainPrior(), 100)).losses, [0.69315, 0.55918, 0.49705], atol=1e-5)
    finite = FiniteExact(model=LinearMatch(tokens=2, lags=8, form="entries"), process=ChainPrior(), length=8)
    np.testing.assert_allclose(levels(finite).losses, [0.69315, 0.64859, 0.62671], atol=1e-5)


def test_a_class_is_a_stationary_point_of_the_match():
    for loss in (reduced(THREE), FiniteExact(model=LinearMatch(tokens=2, lags=5), process=TWO, length=6)):
        scores = np.log(np.maximum(np.eye(loss.model.lags)[1], 1e-30))
        least, parts = class_of(loss, np.eye(loss.model.lags)[1]).least()
        params = {"W": parts, "v": scores}
        assert loss.value(params) == pytest.approx(least, abs=1e-9)
        np.testing.assert_allclose(loss.grad(params)["W"], 0, atol=1e-6)


def test_the_pull_on_the_plateau_is_the_gradient_there():
    loss = reduced(ChainPrior(), 40)
    place = Plateau(loss, np.zeros(40))
    found = loss.grad({"W": place.least[1], "v": np.zeros(40)})
    np.testing.assert_allclose(found["v"], place.match * (place.pull.mean() - place.pull) / 40, rtol=1e-6)
    np.testing.assert_allclose(found["W"], 0, atol=1e-7)
    assert Plateau(reduced(ChainPrior(), 50), np.zeros(50)).time(0.1) == pytest.approx(6338, rel=1e-3)  # page, section 3


@pytest.mark.long
@pytest.mark.parametrize("kind", ["F", "free", "T"])
def test_exact_is_sampled_within_three_standard_errors(kind):
    model = (
        ReadoutMatch(tokens=2, lags=6)
        if kind == "T"
        else LinearMatch(tokens=2, lags=6, form="free" if kind == "free" else "parts")
    )
    exact = FiniteExact(model=model, process=ChainPrior(), length=6)
    params = model.init(1, 1.0, 0.7)
    groups = [FiniteSampled(model=model, process=ChainPrior(), length=6, watched=1000, seed=s).value(params) for s in range(8)]
    assert abs(np.mean(groups) - exact.value(params)) < 3 * np.std(groups, ddof=1) / np.sqrt(8)


def test_an_infinite_context_is_the_limit_of_a_long_one():
    """Windows of one long sequence of each chain, in the place of their stationary law."""
    prior, lags = ChainPrior(nodes=3), 4
    loss = SoftmaxPopulation(model=SoftmaxMatch(tokens=2, lags=lags), process=prior)
    params = {"W": np.array([2.0]), "v": np.array([0.0, 1.0, 0.3, -0.5])}
    tokens = sampled(np.random.default_rng(0), prior.transitions, 40_000)
    place = sum(tokens[:, lags - 1 - d : 40_000 - d] * 2**d for d in range(lags))
    seen = np.stack([np.bincount(row, minlength=2**lags) for row in np.asarray(place)]) / place.shape[1]
    data = {**loss.tables, "windows": seen.reshape(len(seen), -1, 2)}
    assert float(loss.loss(params, data)) == pytest.approx(loss.value(params), abs=3e-3)


@given(seed=st.integers(0, 50))
@settings(max_examples=5, deadline=None)
def test_steps_of_one_seed_are_drawn_again(seed):
    loss = FiniteSampled(model=LinearMatch(tokens=2, lags=5), process=ChainPrior(), length=5, batch=4, seed=seed)
    np.testing.assert_array_equal(loss.draw(3)["tokens"], loss.draw(3)["tokens"])
    assert loss.draw(4)["tokens"].shape == (4, 5)


def test_what_does_not_fit_is_refused():
    with pytest.raises(InputError, match="tokens"):
        LinearPopulation(model=LinearMatch(tokens=3, lags=5), process=TWO)
    with pytest.raises(InputError, match="more than"):
        FiniteExact(model=LinearMatch(tokens=2, lags=5), process=TWO, length=16)
    with pytest.raises(InputError, match="order 2"):
        TwoHeadPopulation(model=TwoHeadMatch(tokens=2, lags=4), process=TWO)
    with pytest.raises(InputError, match="take fewer lags"):
        SoftmaxPopulation(model=SoftmaxMatch(tokens=2, lags=30), process=TWO)


def _same_as_the_definition(loss, params):
    assert loss.value(params) == pytest.approx(Objective.value(loss, params), abs=1e-12)
    for name, block in Objective.grad(loss, params).items():
        np.testing.assert_allclose(loss.grad(params)[name], block, atol=1e-12)
    layout = Layout.of(params)
    out = np.empty(layout.size)
    loss.flat(layout, {"W": 2.0, "v": 0.5})(layout.pack(params), out)
    np.testing.assert_allclose(layout.unpack(out)["v"], -0.5 * loss.grad(params)["v"], atol=1e-12)
    np.testing.assert_allclose(layout.unpack(out)["W"], -2.0 * loss.grad(params)["W"], atol=1e-12)


@pytest.mark.long
@pytest.mark.parametrize(("tokens", "length", "lags", "form"), [(2, 7, 4, "entries"), (2, 5, 5, "free"), (3, 4, 4, "parts")])
def test_the_tree_of_prefixes_is_the_sum_over_all_sequences(tokens, length, lags, form):
    model = LinearMatch(tokens=tokens, lags=lags, form=form)
    loss = FiniteExact(model=model, process=ChainPrior(tokens=tokens, concentration=0.7), length=length)
    for seed in range(2):
        _same_as_the_definition(loss, model.init(seed, 1.5, 1.0))


@pytest.mark.long
@pytest.mark.parametrize(("prior", "lags"), [(TWO, 7), (THREE, 4)])
def test_kinds_of_windows_are_the_sum_over_all_windows(prior, lags):
    loss = SoftmaxPopulation(model=SoftmaxMatch(tokens=prior.tokens, lags=lags), process=prior)
    for seed, match in enumerate((-3.0, 0.4, 40.0)):
        params = {"W": np.array([match]), "v": loss.model.init(seed, 1.0)["v"]}
        _same_as_the_definition(loss, params)
        np.testing.assert_allclose(loss.log_laws(params), loss.logs(params, loss.data), atol=1e-12)


def test_windows_of_one_kind_are_equally_likely_and_few():
    kinds, members, ends = kinds_of_windows(2, 12)
    law = ChainPrior(nodes=3).windows(12)
    np.testing.assert_allclose(law, law[:, members[kinds]], rtol=1e-10)
    assert len(members) == sum(ends) < 300  # of 4096 windows
    np.testing.assert_array_equal(np.sort(members % 2), members % 2)  # by their newest token first


def test_information_beyond_bigrams_is_the_gradient_at_the_bigram_point():
    """c'_d: page, section 4, and -dL/db_2 of S3 with its first head at lag 1 and b_1 large."""
    found = second_chi_squares(ChainPrior(order=2, nodes=10), 9)
    np.testing.assert_allclose(found[2:], [0.0655, -0.0052, 0.0037, 0.0133, 0.0079, 0.0017, 0.0077], atol=6e-5)
    prior = ChainPrior(order=2, nodes=3)
    loss = TwoHeadPopulation(model=TwoHeadMatch(tokens=2, lags=4), process=prior)
    scores = np.array([[0.0, 60.0, 0.0, 0.0], [0.3, -0.2, 0.5, 0.1]])
    slope = -loss.grad({"W": np.array([200.0, 0.0]), "v": scores})["W"][1]
    weights = np.exp(scores[1]) / np.exp(scores[1]).sum()
    assert slope == pytest.approx(weights @ second_chi_squares(prior, 4), rel=1e-9)


@pytest.mark.parametrize("prior", [TWO, THREE])
def test_a_whole_match_moves_by_the_first_gradient(prior):
    loss = reduced(prior, form="free")
    np.testing.assert_allclose(-loss.grad(loss.model.init())["W"], first_gradient(prior, 9), atol=1e-13)
    assert first_gradient(prior, 9).sum() == pytest.approx(common_gain(prior), abs=1e-13)
    assert np.trace(first_gradient(prior, 9)) == pytest.approx(lag_gains(prior, 9).mean(), abs=1e-13)


def test_parts_of_a_whole_match_move_more_slowly():
    """(a', b') of W = a 11^T + b I whose entries have unit rates; two tokens are symmetric under the quadrature."""
    loss, parts = reduced(TWO, form="free"), np.array([0.4, 1.5])
    moved = -loss.grad({"W": parts[0] + parts[1] * np.eye(2), "v": np.zeros(9)})["W"]
    slope = class_of(loss, np.full(9, 1 / 9)).slope(parts)
    np.testing.assert_allclose(loss.model.moved_parts(slope), [moved[0, 1], moved[0, 0] - moved[0, 1]], atol=1e-13)
