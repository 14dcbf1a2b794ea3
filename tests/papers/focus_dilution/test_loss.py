"""The focus-dilution population loss: kernel = definition, symmetries, known values, and the published event times."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import stagescope as ss
from stagescope.core.params import Layout
from stagescope.core.spec import build
from stagescope.flow.field import Objective
from stagescope.landscape.derivatives import DENSE
from stagescope.papers.focus_dilution.family import escape_matrices
from stagescope.papers.focus_dilution.stages import passes
from stagescope.papers.focus_dilution.taylor import along_lines, many_lines
from stagescope.readings.published import published
from tests.processes.test_markov_chain import chains

SEEDS = st.integers(0, 1000)


def problem(chain, width=5, key_width=3, scale=2.0):
    model = ss.TokenAttention(vocab=chain.vocab, width=width, key_width=key_width, scale=scale)
    return model, ss.population_loss(model, chain)


@pytest.mark.long
@settings(max_examples=6)
@given(chains(), SEEDS)
def test_kernel_equals_definition(chain, seed):
    model, loss = problem(chain)
    params = model.init(seed, 0.7)
    assert loss.value(params) == pytest.approx(Objective.value(loss, params), abs=1e-12)
    kernel, definition = loss.grad(params), Objective.grad(loss, params)
    for name in params:
        np.testing.assert_allclose(kernel[name], definition[name], atol=1e-12, rtol=0)


def many(tokens, seed=0):
    """A chain of many tokens that is not lazy."""
    rng = np.random.default_rng(seed)
    rows = rng.random((tokens, tokens)) ** 4
    return ss.MarkovChain(rows=rows / rows.sum(axis=1, keepdims=True))


@pytest.mark.long
@pytest.mark.parametrize(("tokens", "width", "key_width", "size"), [(17, 1, 1, 0.7), (30, 5, 3, 0.7), (64, 8, 9, 0.4)])
def test_kernel_by_blocks_equals_definition(tokens, width, key_width, size):
    model, loss = problem(many(tokens), width, key_width)
    params = model.init(1, size)
    assert loss.kernel == "blocked"
    assert loss.value(params) == pytest.approx(Objective.value(loss, params), abs=1e-12)
    kernel, definition = loss.grad(params), Objective.grad(loss, params)
    for name in params:
        np.testing.assert_allclose(kernel[name], definition[name], atol=1e-12, rtol=0)


@pytest.mark.parametrize("tokens", [2, 16, 17, 41])
def test_kernels_agree_also_on_large_exponents(tokens):
    """At size 9 scores and logits are in the hundreds, so the largest of a row is subtracted; weights are those of the rates."""
    model = ss.TokenAttention(vocab=tokens, width=3, key_width=2, scale=2.0)
    plain, blocked = (ss.TokenPopulation(model=model, process=many(tokens), kernel=kernel) for kernel in ("plain", "blocked"))
    for size in (0.0, 0.5, 9.0):
        params = model.init(3, size)
        layout = Layout.of(params)
        found = []
        for loss in (plain, blocked):
            flat, velocity = loss.flat(layout, {"W0": 1.0, "W1": 0.5, "WQ": 2.0, "WK": 0.0}), np.empty(layout.size)
            found.append((flat(layout.pack(params), velocity), velocity))
            assert flat(layout.pack(params), velocity) == found[-1][0], "a second call in the same room"
        assert found[0][0] == pytest.approx(found[1][0], rel=1e-12)
        cancelled = 1e6 if size == 9.0 else 1e3  # terms of this size cancel in dL/dPhi times K and WQ
        np.testing.assert_allclose(found[0][1], found[1][1], rtol=1e-12, atol=1e-15 * cancelled)


@pytest.mark.parametrize(("tokens", "width", "key_width"), [(17, 1, 1), (64, 8, 9)])
def test_the_kernel_of_products_equals_the_recipe(tokens, width, key_width):
    model, loss = problem(many(tokens), width, key_width)
    sizes = tokens, width, key_width
    at, *lines = (Layout.of(model.init(0, 0.5)).pack(model.init(seed, 0.5)) for seed in range(4))
    given = sizes, 2.0, loss.process.stationary, loss.process.transition
    for order in (0, 1, 2):
        found, known = (make(*given)(at, np.array(lines), order) for make in (many_lines, along_lines))
        np.testing.assert_allclose(found, known, atol=1e-12, rtol=0)


def test_all_rates_of_a_model_with_its_own_derivatives_beyond_500_parameters():
    model, loss = problem(many(100), width=3, key_width=2)
    point = ss.critical_point(loss, model.init(0, 0.0))
    assert point.spectrum.complete
    assert len(point.rates) == 612 > DENSE
    expected = np.linalg.svd(escape_matrices(loss, model.init(0, 0.0))["embedding"], compute_uv=False)[0]
    assert point.rates[0] == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("bad", [np.nan, np.inf, 1e200])
def test_numbers_that_are_not_finite_stay_so(bad):
    model, loss = problem(many(20))
    params = model.init(0, 0.5)
    params["W0"][3, 1] = bad
    assert not np.isfinite(loss.value(params))
    assert not any(np.isfinite(block).any() for block in loss.grad(params).values())


def test_only_a_spec_of_many_tokens_names_its_kernel():
    """Runs that older versions stored have no kernel in their spec, and go on with the one they began with."""
    for tokens, kernel in ((16, "plain"), (17, "blocked")):
        _, loss = problem(many(tokens))
        spec = loss.describe()
        assert (loss.kernel, spec.get("kernel", "plain")) == (kernel, kernel)
        assert build(spec) == loss
        old = build({name: value for name, value in spec.items() if name != "kernel"})
        assert old.kernel == "plain"
        assert "kernel" not in old.describe()


@given(chains(), SEEDS)
def test_gradient_is_the_slope(chain, seed):
    model, loss = problem(chain)
    params, way = model.init(seed, 0.7), model.init(seed + 1, 1.0)
    h = 1e-5
    ahead, behind = (loss.value({n: params[n] + s * h * way[n] for n in params}) for s in (1, -1))
    expected = sum(np.sum(g * way[n]) for n, g in loss.grad(params).items())
    assert (ahead - behind) / (2 * h) == pytest.approx(expected, rel=1e-5, abs=1e-8)


@given(chains(), SEEDS)
def test_rotations_and_relabelling_change_nothing(chain, seed):
    model, loss = problem(chain)
    params = model.init(seed, 0.7)
    rng = np.random.default_rng(seed)
    turn = np.linalg.qr(rng.normal(size=(5, 5)))[0]
    turned = {"W0": params["W0"] @ turn, "W1": turn.T @ params["W1"], "WQ": turn.T @ params["WQ"], "WK": turn.T @ params["WK"]}
    assert loss.value(turned) == pytest.approx(loss.value(params), abs=1e-12)
    order = rng.permutation(chain.vocab)
    other = ss.population_loss(model, ss.MarkovChain(rows=chain.transition[np.ix_(order, order)]))
    moved = {**params, "W0": params["W0"][order], "W1": params["W1"][:, order]}
    assert other.value(moved) == pytest.approx(loss.value(params), abs=1e-10)


@given(chains())
def test_known_values(chain):
    """Zero parameters: log d. Equal rows of the right logits: the unigram loss. Nothing is below the entropy rate."""
    model, loss = problem(chain)
    zero = model.init(0, 0.0)
    assert loss.value(zero) == pytest.approx(np.log(chain.vocab))
    w0, w1 = np.zeros((chain.vocab, 5)), np.zeros((5, chain.vocab))
    w0[:, 0], w1[0] = 1.0, np.log(chain.stationary)
    assert loss.value({**zero, "W0": w0, "W1": w1}) == pytest.approx(chain.unigram_loss())
    assert loss.value(model.init(3, 1.0)) >= chain.floor()


SETTINGS = {"ref": ((0.5, 0.25, 0.15, 0.10), 0.6, 4.0, 800.0), "flow-skewed": ((0.75, 0.19, 0.05, 0.01), 0.5, 8**-0.5, 6000.0)}
REFERENCE = published("stagescope.papers.focus_dilution")


@pytest.mark.parametrize("name", SETTINGS)
@pytest.mark.parametrize("seed", [0, 1])
def test_flow_reaches_the_saddles_when_measured_elsewhere(name, seed):
    """Event times within the spread of about twenty seeds of two independent implementations."""
    pi, persistence, scale, until = SETTINGS[name]
    chain = ss.LazyChain(pi=pi, persistence=persistence)
    model = ss.TokenAttention(vocab=4, width=8, scale=scale)
    loss = ss.population_loss(model, chain)
    run = ss.evolve(loss, model.init(seed, 1e-3), ss.GradientFlow(), until=until, record=ss.Uniform(frames=1601))
    embedding = np.linalg.svd(run.params["W0"], compute_uv=False)
    scores = np.linalg.svd(model.scores(run.params), compute_uv=False)
    spread = REFERENCE["events"]
    for event, (low, high) in spread.value[name].items():
        when = passes(run.t, embedding if event[0] == "E" else scores)[int(event[1]) - 1]
        assert when is not None
        assert low * (1 - spread.tolerance) <= when <= high * (1 + spread.tolerance), event
    most = REFERENCE["largest_final_loss"]
    assert 0 < run.series["loss"][-1] - chain.floor() < most.value * (1 + most.tolerance)


def test_two_solvers_agree():
    chain = ss.LazyChain(pi=(0.5, 0.25, 0.15, 0.10), persistence=0.6)
    model = ss.TokenAttention(vocab=4, width=8, scale=4.0)
    loss = ss.population_loss(model, chain)
    runs = [
        ss.evolve(loss, model.init(0, 1e-3), ss.GradientFlow(method=method), until=400.0, record=ss.Uniform(frames=50))
        for method in ("cvode", "lsoda")
    ]
    for name in runs[0].params:
        np.testing.assert_allclose(runs[0].params[name], runs[1].params[name], atol=1e-6)


def test_bad_models():
    with pytest.raises(ss.InputError, match="width"):
        ss.TokenAttention(vocab=3, width=0, scale=1.0)
    model = ss.TokenAttention(vocab=3, width=2, scale=1.0)
    with pytest.raises(ss.InputError, match="differs from the chain"):
        ss.population_loss(model, ss.LazyChain(pi=(0.5, 0.5), persistence=0.1))
    with pytest.raises(ss.InputError, match=r"did you mean 'W0'|known"):
        model.init(0, {"W": 1.0})
    with pytest.raises(ss.InputError, match="no init scale"):
        model.init(0, {"W0": 1.0})
