"""Statements of the paper by number, and its errors: closed forms against solved points, differences and flows.

Tokens of the paper are 1..d, here 0..d-1. Numbers in `KAPPA` and `LAWS` are those of the paper or computed from a solved point.
"""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import stagescope as ss
from stagescope.core.params import Layout
from stagescope.landscape.derivatives import Derivatives
from stagescope.papers.focus_dilution.claims_saddles import _falling
from stagescope.papers.focus_dilution.family import (
    approach_matrix,
    approach_rate,
    attention_rate,
    condensed_spectrum,
    displacement,
    plateau_amplitude,
    saturated_attention,
    saturated_kappa,
    saturation_boundary,
    slopes,
)
from stagescope.papers.focus_dilution.ladder import condensed_start, small_point
from stagescope.papers.focus_dilution.model import asymmetric_law
from tests.processes.test_markov_chain import chains

KAPPA = {(0.55, 0.6): 0.84486, (0.75, 0.8): 0.80545, (0.5, 0.5): 0.83707}
"""kappa of three tokens at (pi_0, persistence), solved at delta = 1e-4 to five digits."""
LAWS = {"section 4.1": (0.75, 0.19, 0.05, 0.01), "appendix E.1": (8 / 15, 4 / 15, 2 / 15, 1 / 15)}


def lazy(first, tokens, persistence, delta=0.0):
    shape = (1.0, *(0.0,) * (tokens - 3), -1.0)
    return ss.LazyChain(pi=asymmetric_law(first, tokens, shape, delta), persistence=persistence)


def condensed(chain, width=3, key_width=2, scale=2.0):
    """The point (1,0), its loss and its direction alpha."""
    model = ss.TokenAttention(vocab=chain.vocab, width=width, key_width=key_width, scale=scale)
    pi = chain.stationary
    logits, alpha = np.log(pi) - np.mean(np.log(pi)), np.eye(width)[0]
    params, a = model.init(0, 0.0), plateau_amplitude(pi)
    params["W0"] = a * np.outer(pi / np.linalg.norm(pi), alpha)
    params["W1"] = a * np.outer(alpha, logits / np.linalg.norm(logits))
    return ss.population_loss(model, chain), params, alpha


def jacobian(loss, params, step=1e-5):
    """That of the flow, by central differences of the gradient."""
    layout = Layout.of(params)
    at = layout.pack(params)

    def flow(vector):
        return -layout.pack(loss.grad(layout.unpack(vector)))

    units = step * np.eye(layout.size)
    return np.array([(flow(at + unit) - flow(at - unit)) / (2 * step) for unit in units]).T, layout


# Section 3.1 and 3.2: (1,0).


@pytest.mark.parametrize("seed", range(4))
def test_the_whole_spectrum_at_the_condensed_point(seed):
    """Proposition 3.4: J_out <= 0; J_att has c and -c, one of each for every key, and zeros [FD:condensed-spectrum]."""
    rng = np.random.default_rng(seed)
    chain = ss.MarkovChain(rows=rng.dirichlet(np.ones(4), size=4)) if seed else lazy(0.55, 4, 0.6)
    loss, params, _ = condensed(chain)
    matrix, layout = jacobian(loss, params)
    closed = condensed_spectrum(chain.stationary, chain.transition, loss.model)
    np.testing.assert_allclose(np.sort(np.linalg.eigvalsh((matrix + matrix.T) / 2))[::-1], closed, atol=1e-7)
    keys = np.concatenate([np.arange(layout.size)[layout.slices()[name]] for name in ("WQ", "WK")])
    outer = np.setdiff1d(np.arange(layout.size), keys)
    c, width = abs(attention_rate(chain.stationary, chain.transition, loss.model.scale)), loss.model.shapes["WQ"][1]
    attention = np.sort(np.linalg.eigvalsh(matrix[np.ix_(keys, keys)]))
    np.testing.assert_allclose(attention, np.repeat([-c, 0, c], [width, len(keys) - 2 * width, width]), atol=1e-7)
    assert np.linalg.eigvalsh(matrix[np.ix_(outer, outer)]).max() < 1e-7
    np.testing.assert_allclose(matrix[np.ix_(keys, outer)], 0, atol=1e-7)


def test_the_linearisation_of_attention_is_indefinite_and_its_direction_is_not_unique():
    """The paper calls J_att positive semi-definite with a unique direction: it has -c too, and c once for each key."""
    loss, params, alpha = condensed(lazy(0.55, 4, 0.6), width=3, key_width=2)
    matrix, layout = jacobian(loss, params)
    chain = loss.process
    c = attention_rate(chain.stationary, chain.transition, loss.model.scale)
    for key, sign in ((0, 1), (1, 1), (0, -1)):
        mode = loss.model.init(0, 0.0)
        mode["WQ"], mode["WK"] = np.outer(alpha, np.eye(2)[key]), sign * np.outer(alpha, np.eye(2)[key])
        np.testing.assert_allclose(matrix @ layout.pack(mode), sign * c * layout.pack(mode), atol=1e-7)


@given(chains())
def test_no_rate_of_embeddings_is_above_zero_at_the_condensed_point(chain):
    assert np.real(np.linalg.eigvals(approach_matrix(chain.stationary))).min() > -1e-12


@pytest.mark.parametrize(("first", "tokens"), [(0.55, 4), (0.75, 3), (0.3, 6)])
def test_the_approach_rate_is_that_of_the_matrix_along_the_logits(first, tokens):
    """Proposition C.6 is the case of equal rare tokens, where logits stay along log pi [FD:approach]."""
    pi = lazy(first, tokens, 0.5).stationary
    along = np.log(pi) - np.mean(np.log(pi))
    np.testing.assert_allclose(approach_matrix(pi) @ along, approach_rate(first, tokens) * along, atol=1e-12)


def test_a_flow_approaches_the_condensed_point_at_the_rate_of_proposition_c6():
    """Without attention, from half of the point: the log-distance falls with this slope."""
    chain = lazy(0.55, 4, 0.6)
    loss, point, _ = condensed(chain)
    start = {name: 0.7 * block for name, block in point.items()}
    run = ss.evolve(loss, start, ss.GradientFlow(), until=40.0, record=ss.Uniform(frames=41))
    gap = np.log([np.linalg.norm(run.params["W1"][i] - point["W1"]) for i in (20, 30)])
    assert (gap[0] - gap[1]) / 10 == pytest.approx(approach_rate(0.55, 4), rel=1e-3)


@pytest.mark.parametrize(
    ("first", "tokens", "persistence", "scale"), [(0.55, 4, 0.6, 1.0), (0.6, 3, 0.3, 4.0), (0.4, 5, 0.8, 1.0)]
)
def test_redistribution_is_three_halves_of_eta_over_the_contrast(first, tokens, persistence, scale):
    """Theorem 3.7, on a flow from the point with attention of 1e-4: D = 3 (eta - eta_0)/(2 dgamma) [FD:displacement]."""
    chain = lazy(first, tokens, persistence)
    loss, start, alpha = condensed(chain, width=2, key_width=1, scale=scale)
    start["WQ"] = start["WK"] = 1e-4 * alpha[:, None]
    c = attention_rate(chain.stationary, chain.transition, scale)
    run = ss.evolve(loss, start, ss.GradientFlow(atol=1e-16), until=4.5 / c, record=ss.Uniform(frames=3))
    gamma, eta = run.params["W0"] @ alpha, (run.params["WQ"][:, 0, 0] * run.params["WK"][:, 0, 0])
    moved = gamma[:, 0] - first * gamma.sum(axis=1)
    contrast = gamma[0, 0] - gamma[0, 1]
    assert moved[-1] - moved[0] == pytest.approx(1.5 * (eta[-1] - eta[0]) / contrast, rel=2e-3)
    w = displacement(chain.stationary, chain.transition, gamma[0], alpha @ start["W1"])
    assert w[0] - first * w.sum() == pytest.approx(1.5 / contrast, rel=1e-12)


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_redistribution_of_unequal_tokens_is_that_of_the_covariances(seed):
    """Any chain, any sign of c: what moves across pi is `displacement` times the change of |eta|."""
    rng = np.random.default_rng(seed)
    chain = ss.MarkovChain(rows=rng.dirichlet(np.ones(4), size=4))
    loss, start, alpha = condensed(chain, width=2, key_width=1, scale=2.0)
    c = attention_rate(chain.stationary, chain.transition, 2.0)
    start["WQ"], start["WK"] = 1e-5 * alpha[:, None], math.copysign(1e-5, c) * alpha[:, None]
    run = ss.evolve(loss, start, ss.GradientFlow(atol=1e-16), until=3 / abs(c), record=ss.Uniform(frames=3))
    gamma, eta = run.params["W0"] @ alpha, np.abs(run.params["WQ"][:, 0, 0] * run.params["WK"][:, 0, 0])
    along = chain.stationary / np.linalg.norm(chain.stationary)
    across = np.eye(4) - np.outer(along, along)
    w = across @ displacement(chain.stationary, chain.transition, gamma[0], alpha @ start["W1"])
    np.testing.assert_allclose(across @ (gamma[-1] - gamma[0]) / (eta[-1] - eta[0]), w, atol=5e-3 * np.abs(w).max())


# Section 3.4: the symmetric points (1,1) and their saturated end.


def saturated(first, persistence, strength, delta=0.0):
    """The rank-one model of three tokens at scale 1, and its symmetric point with E = `strength`, exact where A_i0 vanishes."""
    after = np.array([persistence + (1 - persistence) * first, (1 - persistence) * first])
    logits = np.log(2 * after / (1 - after))
    r, gamma = logits[1] / logits[0], (logits[0] * (2 / 3) ** 0.5) ** 0.5
    keys = np.array([[strength**0.5 / gamma]])
    point = {"W0": gamma * np.array([[1.0], [r], [r]]), "W1": logits[0] / gamma * np.array([[2.0, -1.0, -1.0]]) / 3}
    model = ss.TokenAttention(vocab=3, width=1, key_width=1, scale=1.0)
    return ss.population_loss(model, lazy(first, 3, persistence, delta)), {**point, "WQ": keys, "WK": keys}


def range_point(first, persistence, strength, delta):
    """theta(delta): the gradient is zero but in the kernel of the symmetric point, along which nothing moves."""
    symmetric, start = saturated(first, persistence, strength)
    loss, layout = saturated(first, persistence, strength, delta)[0], Layout.of(start)
    vector, exact, field = layout.pack(start), Derivatives(symmetric, start), Derivatives(loss, start)
    for _ in range(20):  # first the symmetric point of this E itself
        vector = vector + np.linalg.lstsq(exact.jacobian(vector), -exact.velocity(vector), rcond=1e-6)[0]
    values, modes = np.linalg.eigh(exact.jacobian(vector))
    moving = modes[:, np.abs(values) > 3e-3]
    for _ in range(20):
        vector = vector - moving @ np.linalg.solve(moving.T @ field.jacobian(vector) @ moving, moving.T @ field.velocity(vector))
    return loss, layout.unpack(vector), float(np.linalg.norm(field.velocity(vector))), np.linalg.eigvalsh(field.jacobian(vector))


def slope(small, large, ratio):
    return math.log(large / small) / math.log(ratio)


@pytest.mark.parametrize(("setting", "kappa"), KAPPA.items(), ids=str)
def test_kappa_in_closed_form_is_that_of_a_solved_point(setting, kappa):
    """Lemma D.17 [FD:kappa]: dL/dM at theta(delta), delta = 1e-4, and the three reference values."""
    assert saturated_kappa(*setting) == pytest.approx(kappa, abs=5e-6)
    loss, point, _, _ = range_point(*setting, 200.0, 1e-4)
    by_product = slopes(loss, point)[0]
    assert np.linalg.norm(by_product, 2) / 1e-4 == pytest.approx(kappa, rel=1e-4)
    np.testing.assert_allclose(by_product[:, 0], 0, atol=1e-7)
    np.testing.assert_allclose(by_product[1], by_product[2], atol=1e-7)


@pytest.mark.parametrize("setting", KAPPA, ids=str)
@pytest.mark.parametrize("delta", [0.002, 0.016])
def test_orders_of_theorem_39_at_the_saturated_end(setting, delta):
    """[FD:saturated-orders] |grad L| = O(delta^3), rates inside O(delta^2): where A_i0 = 0 both are 0 for every delta.

    Rows of rare tokens attend alike there, so dL/dPhi = 0 and the rows of dL/dM are equal: theta(delta) is a critical point.
    """
    _, _, gradient, rates = range_point(*setting, 200.0, delta)
    assert gradient < 1e-14
    assert rates.max() < 1e-13


@pytest.mark.parametrize("setting", KAPPA, ids=str)
@pytest.mark.parametrize("strength", [20.0, 40.0])
def test_at_a_finite_member_the_gradient_is_of_first_order(setting, strength):
    """The theorem is a limit: E to infinity first, then delta to 0. At a finite E |grad L| is proportional to delta."""
    (_, _, small, few), (_, _, large, more) = (range_point(*setting, strength, delta) for delta in (0.001, 0.002))
    assert slope(small, large, 2) == pytest.approx(1, abs=0.02)
    assert few.max() > 0.002**2 / 100
    assert more.max() - range_point(*setting, strength, 0.0)[3].max() > 1e-8, "and rates grow with delta"


def test_the_saturated_end_is_degenerate():
    """[FD:degenerate] Proposition 3.8: both slopes vanish, no rate is above 0, and attention is that of the saturated end."""
    loss, point = saturated(0.75, 0.8, 200.0)
    assert max(np.abs(slope).max() for slope in slopes(loss, point)) < 1e-12
    assert ss.spectrum(loss, point).rates.max() < 1e-12
    pi = loss.process.stationary
    np.testing.assert_allclose(loss.model.attention(point, pi), saturated_attention(pi, 0), atol=1e-12)


@pytest.mark.parametrize(("first", "tokens"), [(0.4, 4), (0.55, 4), (0.75, 3)])
def test_the_saturated_end_needs_persistence(first, tokens):
    """[FD:saturation] Proposition 3.8 wants gamma_0 > 0 > gamma_rare: so P_10 < 1/d, which the paper does not ask."""
    boundary = saturation_boundary(first, tokens)
    signs = []
    for persistence in (boundary - 0.05, boundary + 0.05):
        chain = lazy(first, tokens, persistence)
        loss = ss.population_loss(ss.TokenAttention(vocab=tokens, width=1, scale=400.0), chain)
        point = small_point(loss, condensed_start(loss, 1.0), 1, 1).point
        gamma = point.params["W0"][:, 0]
        signs.append(float(np.sign(gamma[0] * gamma[1])))
    assert signs[1] == -1
    assert lazy(first, tokens, boundary).transition[1, 0] == pytest.approx(1 / tokens, abs=1e-12)


def test_equal_lengths_of_gamma_and_beta_do_not_go_with_saturation():
    """Proposition D.1 assumes |gamma| = |beta|. A flow from a small start keeps |gamma|^2 - |beta|^2 - 2 eta at 0."""
    chain = lazy(0.75, 3, 0.8)
    loss = ss.population_loss(ss.TokenAttention(vocab=3, width=1, scale=400.0), chain)
    end = small_point(loss, condensed_start(loss, 1.0), 1, 1).point.params
    gamma, beta, eta = end["W0"][:, 0], end["W1"][0], float(end["WQ"][0, 0] * end["WK"][0, 0])
    start = condensed_start(loss, 1.0)
    kept = sum(float(np.sum(start[name] ** 2)) * sign for name, sign in (("W0", 1), ("W1", -1), ("WQ", -1), ("WK", -1)))
    assert gamma @ gamma - beta @ beta - 2 * eta == pytest.approx(kept, abs=1e-7)
    assert gamma @ gamma - beta @ beta > 0.05


# Misprints: what stands in the paper, and what holds.


def test_the_outer_product_of_the_law_needs_its_norm():
    """Eq. 16 has Phi/|Phi| = pi pi^T, whose norm is |pi|^2 and not 1."""
    pi = np.array(LAWS["section 4.1"])
    assert np.linalg.norm(np.outer(pi, pi)) == pytest.approx(pi @ pi)
    assert pi @ pi < 0.61
    run = ss.run_study("focus-dilution", "near-symmetric", progress=False)
    model, law = ss.TokenAttention(vocab=4, width=8, scale=4.0), np.array((0.4, 0.22, 0.2, 0.18))
    scores = model.scores({name: run.params[name] for name in run.params})
    size = np.linalg.norm(scores, axis=(1, 2))
    first = scores[int(np.argmax(size > 0.003))]
    np.testing.assert_allclose(first / np.linalg.norm(first), np.outer(law, law) / (law @ law), atol=0.02)


@given(st.floats(0.3, 0.8), st.integers(3, 6))
def test_the_exponent_of_equation_127(first, tokens):
    """At (1,0) softmax is pi with kappa_1^2 |pi| (pi_j - 1/d)/|pi - 1/d|, not with the printed kappa_1^2 |pi|^2 (pi_j - 1/d)."""
    pi = lazy(max(first, 1.1 / tokens), tokens, 0.5).stationary
    a, n, excess = plateau_amplitude(pi), np.linalg.norm(pi), pi - 1 / tokens

    def softmax(logits):
        return np.exp(logits) / np.exp(logits).sum()

    np.testing.assert_allclose(softmax(a**2 * n * excess / np.linalg.norm(excess)), pi, atol=1e-12)
    assert np.abs(softmax(a**2 * n**2 * excess) - pi).max() > 1e-3


def test_kappa_1_in_closed_form_is_the_plateau_amplitude():
    """Proposition 3.3 gives kappa_1 without a formula: kappa_1^2 = sqrt((d-1)/d) log((d-1) pi_0/(1-pi_0))/|pi| [FD:condensed]."""
    for first, tokens in ((0.55, 4), (0.75, 3), (0.3, 6)):
        pi = lazy(first, tokens, 0.5).stationary
        closed = math.sqrt((tokens - 1) / tokens) * math.log((tokens - 1) * first / (1 - first)) / np.linalg.norm(pi)
        assert plateau_amplitude(pi) ** 2 == pytest.approx(closed, rel=1e-12)


def test_the_two_laws_of_the_paper_disagree():
    """Appendix E.1 divides (1/2, 1/4, 1/8, 1/16) by its norm: by its sum it is another law, its squares round to 4.1."""
    halves = 0.5 ** np.arange(1, 5)
    printed = np.array(LAWS["section 4.1"])
    np.testing.assert_allclose(halves / halves.sum(), LAWS["appendix E.1"], atol=1e-12)
    assert np.abs(halves / halves.sum() - printed).max() > 0.2
    assert np.linalg.norm(halves / np.linalg.norm(halves), 1) > 1.3, "by the Euclidean norm it is no law"
    np.testing.assert_allclose((halves**2 / (halves @ halves)).round(2), printed, atol=1e-12)


@given(st.floats(0.35, 0.8), st.integers(3, 8))
def test_with_equal_rare_tokens_logits_fall_at_the_closed_rate(first, tokens):
    """Equal rare tokens have equal rates, whose eigenvectors are not unique; what is along u falls at a known rate."""
    pi = np.array([first, *[(1 - first) / (tokens - 1)] * (tokens - 1)])
    along = np.log(pi) - np.mean(np.log(pi))
    assert _falling(approach_matrix(pi), along) == pytest.approx(approach_rate(first, tokens), rel=1e-6)
