"""Critical points: known ones with known kinds, orbits, searches that fail, and large models."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import stagescope as ss
from stagescope.landscape import critical as search
from stagescope.landscape import derivatives
from stagescope.landscape.critical import CriticalPoint, slow_frames
from stagescope.landscape.spectrum import Spectrum
from tests.landscape.laws import VALUES, Linear, product_loss, product_start, wide_point


@pytest.fixture(scope="module")
def run():
    return ss.evolve(product_loss(), product_start(), ss.GradientFlow(), until=100.0, record=ss.Uniform(frames=1500))


def test_a_linear_network_passes_one_saddle_for_every_mode(run):
    """k modes learnt: loss sum_{i >= k} s_i^2/2, rates s_k, s_k+1, ... each with multiplicity 3 - k."""
    points = ss.critical_points(run, product_loss())
    assert [point.kind for point in points] == ["saddle", "saddle", "saddle", "minimum"]
    for k, point in enumerate(points):
        assert point.found
        assert point.residual <= 1e-10
        assert point.distance < 0.02
        assert point.loss == pytest.approx(sum(v**2 for v in VALUES[k:]) / 2, abs=1e-9)
        expected = [v for v in VALUES[k:] for _ in range(3 - k)]
        np.testing.assert_allclose(point.rates[: point.index], expected, atol=1e-8)
        assert point.flat == [0, 5, 8, 9][k]


@pytest.mark.long
@given(st.integers(0, 500), st.floats(1e-6, 0.05))
def test_points_are_found_from_beside_an_orbit(seed, size):
    """One mode learnt is an orbit under rotations and rescalings; from any point beside it the search ends on it."""
    rng = np.random.default_rng(seed)
    turn = np.linalg.qr(rng.normal(size=(3, 3)))[0]
    target = np.diag([2.0, 0.0, 0.0])
    point = {"A": np.sqrt(target) @ turn, "B": turn.T @ np.sqrt(target)}
    start = {name: block + size * rng.normal(size=(3, 3)) for name, block in point.items()}
    found = ss.critical_point(product_loss(), start)
    assert found.residual <= 1e-10
    assert found.distance < 20 * size
    assert found.loss == pytest.approx((1.0 + 0.09) / 2, abs=1e-9)


def test_where_there_is_none_it_says_so():
    """x^3 + x has the slope 3 x^2 + 1, which is never zero."""
    found = ss.critical_point(ss.JaxObjective(lambda p: (p["x"] ** 3 + p["x"]).sum()), {"x": np.full(1, 1.0)})
    assert not found.found
    assert found.kind == "not critical"


@pytest.mark.parametrize(("matrix", "kind"), [([-1.0, -2.0], "sink"), ([1.0, -2.0], "saddle"), ([1.0, 2.0], "source")])
def test_kinds_without_an_objective(matrix, kind):
    found = ss.critical_point(Linear(np.diag(matrix)), {"x": np.array([0.3, -0.2])})
    assert found.kind == kind
    assert found.loss is None
    np.testing.assert_allclose(found.params["x"], 0, atol=1e-9)


def test_large_models_agree_with_small(monkeypatch, run):
    start = run.at(int(np.argmin(np.abs(run.t - 6.3))))
    dense = ss.critical_point(product_loss(), start)
    monkeypatch.setattr(derivatives, "DENSE", 5)
    sparse = ss.critical_point(product_loss(), start)
    assert sparse.residual <= 1e-10
    assert sparse.loss == pytest.approx(dense.loss, abs=1e-9)
    np.testing.assert_allclose(sparse.rates[:4], dense.rates[:4], atol=1e-6)
    assert sparse.flat is None


def test_slow_frames():
    speed = np.array([1.0, 0.1, 1.0, 0.9, 1.0, 0.01, 0.5, 0.001])
    assert slow_frames(speed) == [1, 5, 7]
    assert slow_frames(np.array([0.1, 1.0, 2.0])) == [0]
    assert len(slow_frames(np.array([1.0, 1e-11, 1e-14, 3e-12, 1e-14]))) == 1, "rounding is not a plateau"


def test_the_order_of_blocks_does_not_matter():
    model = ss.TokenAttention(vocab=3, width=2, scale=1.0)
    loss = ss.population_loss(model, ss.LazyChain(pi=(0.5, 0.3, 0.2), persistence=0.4))
    params = model.init(0, 0.5)
    turned = {name: params[name] for name in ("WK", "W1", "W0", "WQ")}
    assert ss.spectrum(loss, turned).speed == pytest.approx(ss.spectrum(loss, params).speed, rel=1e-12)
    with pytest.raises(ss.InputError, match="parameter blocks"):
        ss.spectrum(loss, {"W0": params["W0"]})


def test_a_point_without_any_rate_is_degenerate():
    """x^4 and x^3 at 0: gradient and Hessian vanish, so the linearisation cannot tell a minimum from a saddle."""
    for power in (3, 4):
        found = ss.critical_point(ss.JaxObjective(lambda p, n=power: (p["x"] ** n).sum()), {"x": np.zeros(2)})
        assert (found.kind, found.index, found.flat) == ("degenerate", 0, 2)


@pytest.mark.parametrize(
    ("rates", "complete", "asked", "kind", "index"),
    [
        ([1.0, 0.5], False, 2, "unstable", None),
        ([1.0, -0.5], False, 2, "saddle", 1),
        ([1.0, 0.0], False, 2, "unstable", 1),
        ([0.0, -0.5], False, 2, "minimum", 0),
        ([0.0], False, 2, "unknown", None),
        ([1.0], False, 2, "unstable", None),
        ([], False, 2, "unknown", None),
        ([1.0, 0.0], True, 2, "maximum", 1),
    ],
)
def test_kinds_say_no_more_than_the_rates_known(rates, complete, asked, kind, index):
    seen = Spectrum(np.array(rates), (), 0.0, complete, largest=2.0, requested=asked)
    point = CriticalPoint({"x": np.zeros(9)}, 0.0, 0.0, lambda: seen, gradient=True, loss=0.0)
    assert (point.kind, point.index) == (kind, index)
    assert point.json()["index"] == index


def test_a_point_is_printed_in_a_line():
    said = repr(ss.critical_point(product_loss(), product_start()))
    assert said.startswith("CriticalPoint(saddle, loss 2.545")
    assert "A (3, 3)" in said
    assert len(said) < 300


def test_zeros_at_which_the_jacobian_loses_rank():
    """x' = -x^3 beside a bent valley, y = x^2: zero only at the origin, which Newton nears by a third of x at a time."""

    def loss(params):
        x, y = params["x"], params["y"]
        return (0.25 * x**4 + 5.0 * (y - x**2) ** 2).sum()

    found = ss.critical_point(ss.JaxObjective(loss), {"x": np.full(1, 1e-3), "y": np.full(1, 1e-6)})
    assert found.residual <= 1e-11
    near = derivatives.Derivatives(ss.JaxObjective(loss), {"x": np.zeros(1), "y": np.zeros(1)})
    start = np.array([1e-3, 1e-6])
    assert np.linalg.norm(near.velocity(search.newton(near, start, 1e-12, search.CUTS, corrections=8))) < 1e-11


def test_tied_frequent_tokens_have_their_critical_point():
    """Two tokens of equal frequency part slowly: along their difference the flow and the search end far above |F| = 1e-10."""
    from stagescope.papers.focus_dilution.ladder import small_point

    model = ss.TokenAttention(vocab=4, width=8, scale=4.0)
    loss = ss.TokenPopulation(model=model, process=ss.LazyChain(pi=(0.35, 0.35, 0.2, 0.1), persistence=0.6))
    found = small_point(loss, model.init(0, 1e-3), 1, 1).point
    assert found.found
    assert abs(found.params["W0"][0, 0] - found.params["W0"][1, 0]) < 0.02


def test_points_after_the_slow_frame_are_tried_as_well():
    """Without the small models: from the slowest frame of `ref` at (1,1) the search ends in a valley of |F|."""
    model = ss.TokenAttention(vocab=4, width=4, scale=4.0)
    loss = ss.population_loss(model, ss.LazyChain(pi=(0.5, 0.25, 0.15, 0.1), persistence=0.6))
    run = ss.evolve(loss, model.init(1, 1e-3), ss.GradientFlow(), until=230.0, record=ss.Uniform(frames=500))
    points = ss.critical_points(run, loss)
    assert [point.found for point in points[:3]] == [True, True, True]
    assert [int(np.sum(np.linalg.svd(p.params["W0"], compute_uv=False) > 0.1)) for p in points[:3]] == [0, 1, 1]
    assert points[2].distance < 0.3
    assert points[2].rates[0] == pytest.approx(0.0377, rel=0.05)


def test_large_models_are_finished_with_the_whole_jacobian():
    """At an orbit of 576 parameters with rates down to zero iterated steps stall far above |F| = 1e-10."""
    loss, params = wide_point(6, 24, 6)
    assert sum(block.size for block in params.values()) == 576
    rng = np.random.default_rng(0)
    start = {name: block + 1e-4 * rng.normal(size=block.shape) for name, block in params.items()}
    found = ss.critical_point(loss, start)
    assert found.found
    assert found.distance < 1e-2
    assert (found.kind, found.index) == ("saddle", 92), "its own derivatives make all rates known"
    assert found.rates[0] == pytest.approx(ss.spectrum(loss, params, fastest=1).rates[0], rel=1e-2)


# far out, and with bounded work


def test_frames_where_nothing_is_finite_are_not_slow():
    assert slow_frames(np.array([1.0, np.inf, 0.1, np.nan, 1.0])) == [2]
    assert slow_frames(np.full(3, np.nan)) == []
    assert slow_frames(np.array([1.0, 0.1, 1.0, 0.3, 1.0, 0.01, 1.0]), limit=2) == [1, 5], "the most marked, in order of time"


@pytest.mark.parametrize("size", [1e13, 1e200, np.inf, np.nan])
def test_a_start_far_out_is_said_to_be_one(size):
    start = {name: block + size for name, block in product_start().items()}
    found = ss.critical_point(product_loss(), start)
    assert not found.found
    assert found.kind == "not critical"
    assert "too large" in found.stopped
    assert repr(found)


def test_a_jacobian_that_is_not_finite():
    """|x|^1.5 at 0 has the slope 0 and no curvature: it is critical, of unknown kind."""
    loss = ss.JaxObjective(lambda p: (abs(p["x"]) ** 1.5).sum())
    found = ss.critical_point(loss, {"x": np.zeros(2)})
    assert found.found
    assert (found.kind, found.index) == ("unknown", None)
    with pytest.raises(ss.StagescopeError, match="not finite"):
        ss.linearise(loss, {"x": np.zeros(2)}).escape_time({"x": np.ones(2)}, 1.0)
    with pytest.raises(ss.StagescopeError, match="not finite"):
        ss.linearise(product_loss(), product_start()).escape_time({name: np.full((3, 3), np.inf) for name in "AB"}, 1.0)


def test_large_gains_do_not_overflow():
    """|F| falls to nothing where the linearisation promised no fall: the gain is as large as floats go."""
    near = derivatives.Derivatives(product_loss(), product_start())
    vector, huge = near.layout.pack(product_start()), 1e-140

    def steps(near, vector):
        return lambda f, damp: (-vector, float(np.linalg.norm(f)) * (1 + huge))

    assert np.linalg.norm(search._search(near, vector, steps, 10, np.inf)) == 0


def test_work_is_bounded_and_said(monkeypatch, run):
    from stagescope.landscape import critical

    whole = ss.critical_points(run, product_loss())
    assert all(not point.stopped for point in whole)
    monkeypatch.setattr(critical, "LIMITS", replace(critical.LIMITS, products=60))
    few = ss.critical_points(run, product_loss())
    assert "60 products with the Jacobian" in few[0].stopped
    assert not few[0].found
    assert few[-1].found, "the end needs one step"


def test_what_is_left_at_rounding_ends_the_search():
    """At |F| of 1e-14 no step halves it any more: three hundred of them used to be tried."""
    model = ss.TokenAttention(vocab=4, width=4, scale=4.0)
    loss = ss.population_loss(model, ss.LazyChain(pi=(0.5, 0.25, 0.15, 0.1), persistence=0.6))
    near = derivatives.Derivatives(loss, model.init(1, 1e-3))
    found = search.refine(near, near.layout.pack(model.init(1, 1e-3)))
    assert np.linalg.norm(near.velocity(found)) <= 1e-13
    assert near.products / near.layout.size < 40
