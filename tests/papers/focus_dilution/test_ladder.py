"""The ladder of focus and dilution: points measured elsewhere, second opinions from the full Hessian, and its promises."""

import numpy as np
import pytest

import stagescope as ss
from stagescope.papers.focus_dilution.family import attention_rate, condensation_rate, slopes
from stagescope.papers.focus_dilution.ladder import condensed_start, nearest_point, small_point
from stagescope.papers.focus_dilution.model import asymmetric_law
from stagescope.readings.published import published

SETTINGS = {
    "ref": ((0.5, 0.25, 0.15, 0.10), 0.6, 4.0),
    "flow-skewed": ((0.75, 0.19, 0.05, 0.01), 0.5, 8**-0.5),
}
REFERENCE = published("stagescope.papers.focus_dilution")
RATE = REFERENCE["focused_rate"]


def population(pi, persistence, scale, width=8):
    chain = ss.LazyChain(pi=pi, persistence=persistence)
    return ss.population_loss(ss.TokenAttention(vocab=chain.vocab, width=width, scale=scale), chain)


@pytest.mark.parametrize("name", SETTINGS)
def test_the_focused_point_measured_elsewhere(name):
    """(1,1) reached by the flow of width 1 from a small start: its embedding rate, and GP = 0."""
    loss = population(*SETTINGS[name])
    found = small_point(loss, condensed_start(loss, 1.0), 1, 1)
    assert found.point.residual <= 1e-10
    assert found.of_its_label
    assert np.abs(slopes(loss, found.point.params)[1]).max() <= 1e-10
    assert found.opening.block == "embedding"
    assert found.opening.rate == pytest.approx(RATE.value[name], abs=RATE.tolerance)


@pytest.mark.long
@pytest.mark.parametrize("name", SETTINGS)
def test_rungs_of_the_papers_settings(name):
    pi, persistence, scale = SETTINGS[name]
    run = ss.run_study("focus-dilution", name, seed=2)
    ladder = ss.saddle_ladder(run)
    events = ss.stages(run).events
    c = attention_rate(np.array(pi), ss.LazyChain(pi=pi, persistence=persistence).transition, scale)
    expected = {"(0,0)": ("embedding", condensation_rate(np.array(pi)), "E1"), "(1,0)": ("attention", c, "Q1")}
    expected["(1,1)"] = ("embedding", RATE.value[name], "E2")
    for label, (opening, predicted, event) in expected.items():
        rung = ladder[label]
        assert rung.near
        assert rung.residual <= 1e-10
        assert rung.opening == opening
        assert rung.rates[0] == pytest.approx(predicted, rel=0.02)
        assert rung.measured_rate == pytest.approx(predicted, rel=0.1)
        assert min(rung.cosines) > 0.98
        assert rung.measured_escape == pytest.approx(events[event], rel=1e-6)
        assert rung.predicted_escape == pytest.approx(events[event], rel=0.05)
    assert ladder.rungs[-1].opening is None
    chain = ss.LazyChain(pi=pi, persistence=persistence)
    assert ladder.rungs[-1].loss == pytest.approx(chain.floor(), abs=5e-4)


def test_the_lifted_point_in_the_full_hessian():
    """The rate from the small matrix is the fastest growth of the whole model at that point, seven times over."""
    loss = population(*SETTINGS["ref"])
    small = small_point(loss, condensed_start(loss, 1.0), 1, 1).point.params
    wide = {"W0": np.zeros((4, 8)), "W1": np.zeros((8, 4)), "WQ": np.zeros((8, 8)), "WK": np.zeros((8, 8))}
    for name, block in small.items():
        wide[name][: block.shape[0], : block.shape[1]] = block
    found = ss.critical_point(loss, wide)
    assert found.distance < 1e-9, "it is critical in the whole model too"
    np.testing.assert_allclose(found.rates[:7], RATE.value["ref"], atol=RATE.tolerance)
    assert found.kind == "saddle"


def test_the_family_of_focused_points():
    """Beyond gauge the points (1,1) form a family along which the rate varies within known bounds; the loss does not."""
    bounds = REFERENCE["focused_rate_range"]
    low, high = bounds.value["flow-skewed"]
    loss = population(*SETTINGS["flow-skewed"])
    member = small_point(loss, condensed_start(loss, 1.0), 1, 1)
    rng = np.random.default_rng(0)
    for _ in range(5):
        start = {name: block + 0.05 * rng.normal(size=block.shape) for name, block in member.point.params.items()}
        other = nearest_point(loss, start, 1, 1)
        assert other.point.found
        assert other.point.loss == pytest.approx(member.point.loss, abs=1e-10)
        assert low - bounds.tolerance < other.opening.rate < high + bounds.tolerance


@pytest.mark.parametrize("shape", [(1, 0, -1), (1, 1, -2)])
def test_asymmetry_lifts_the_degenerate_point(shape):
    """d = 4, scale 4, pi_0 = .55, persistence .6."""
    kappa = REFERENCE["kappa_at_1e-4"]
    symmetric = population(asymmetric_law(0.55, 4, (0, 0, 0), 0.0), 0.6, 4.0)
    point = small_point(symmetric, condensed_start(symmetric, 1.0), 1, 1)
    assert max(np.abs(slope).max() for slope in slopes(symmetric, point.point.params)) <= 1e-10
    assert point.opening is None
    lifted = nearest_point(population(asymmetric_law(0.55, 4, shape, 1e-4), 0.6, 4.0), point.point.params, 1, 1)
    assert lifted.point.found
    assert lifted.opening.rate / 1e-4 == pytest.approx(kappa.value[str(shape)], abs=kappa.tolerance)


@pytest.mark.long
def test_a_run_that_ends_early_or_steps():
    short = ss.saddle_ladder(ss.run_study("focus-dilution", until=10.0))
    assert [rung.label for rung in short] == ["(0,0)"]
    assert short.rungs[0].measured_escape is None
    assert short.rungs[0].measured_rate is None
    stepped = ss.saddle_ladder(ss.run_study("focus-dilution", optimizer="gd", lr=0.1, steps=1000))
    assert stepped["(1,0)"].rates[0] == pytest.approx(0.0977, rel=0.02)
    finite = ss.saddle_ladder(ss.run_study("focus-dilution", form="finite", length=6, until=30.0))
    assert len(finite) > 0
    assert all(rung.note for rung in finite)
    narrow = ss.saddle_ladder(ss.run_study("focus-dilution", width=1, until=400.0))
    assert narrow["(1,1)"].opening is None, "width 1 has no room for a second direction"


def test_normalised_steps_have_labels_and_no_critical_points():
    adam = ss.saddle_ladder(ss.run_study("focus-dilution", optimizer="adam", lr=1e-3, steps=400))
    assert [rung.label for rung in adam][:2] == ["(0,0)", "(1,0)"]
    assert all(not rung.found and rung.rates == () and rung.loss is None for rung in adam)
    assert "do not go from one critical point" in adam.rungs[0].note


def test_unequal_rates_use_the_general_engine():
    chain = ss.LazyChain(pi=(0.5, 0.3, 0.2), persistence=0.5)
    model = ss.TokenAttention(vocab=3, width=3, scale=4.0)
    loss = ss.population_loss(model, chain)
    flow = ss.GradientFlow(rates={"W0": 2.0})
    run = ss.evolve(loss, model.init(0, 1e-3), flow, until=60.0, record=ss.Uniform(frames=300))
    ladder = ss.saddle_ladder(run)
    first = ladder.rungs[0]
    assert first.near
    assert first.rates[0] == pytest.approx(2**0.5 * condensation_rate(chain.stationary), rel=1e-6)
    assert first.measured_rate == pytest.approx(first.rates[0], rel=0.05)
