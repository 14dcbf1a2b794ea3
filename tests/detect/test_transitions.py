"""Transitions of any curve: found where they are planted, absent where there are none, whatever the units."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import stagescope as ss
from stagescope.detect.noise_kernel import deviance
from stagescope.detect.shapes import FORMS, Shape
from stagescope.detect.transitions import curve_events, transitions
from tests.detect.curves import NULLS, null, planted
from validation.transition_curves import SPIKES, synthetic


def sigmoid(step, centre, width, height):
    with np.errstate(divide="ignore", over="ignore"):
        return height / (1 + np.exp(-(np.log(step) - np.log(centre)) / width))


def logged(frames=200, last=10_000):
    return np.union1d(np.round(np.geomspace(1, last, frames)), np.round(np.linspace(0, last, frames)))


@settings(max_examples=10, deadline=None)
@given(st.floats(0.2, 0.95), st.floats(1e-4, 200), st.floats(1e-4, 200), st.integers(0, 10**6))
def test_the_likelihood_is_that_of_the_dense_covariance(rho, brownian, bend, seed):
    """The filter is linear in the records; the definition is a Cholesky factor of the whole covariance."""
    rng = np.random.default_rng(seed)
    n = 25
    s = np.sort(rng.uniform(0, 1, n))
    u = np.log(s + 1 / 300)
    v, y = u - u[0], rng.normal(size=n)
    low, high = np.minimum.outer(v, v), np.maximum.outer(v, v)
    size = rng.uniform(0.5, 2, n)
    cov = np.outer(size, size) * rho ** np.abs(np.subtract.outer(np.arange(n), np.arange(n)))
    cov = cov + brownian * np.minimum.outer(s - s[0], s - s[0]) + bend * (low**2 * high / 2 - low**3 / 6)
    design = np.column_stack([np.ones(n), v, 1 / (1 + np.exp(-(u - u[12]) / 0.1))])
    root = np.linalg.cholesky(cov)
    white, columns = np.linalg.solve(root, y), np.linalg.solve(root, design)
    rest = white - columns @ np.linalg.lstsq(columns, white, rcond=None)[0]
    wanted = (n - 3) * (np.log(rest @ rest / n) + 1) + 2 * np.log(np.diag(root)).sum()
    ds, du = np.diff(s, prepend=s[0]), np.diff(u, prepend=u[0])
    noise = np.array([np.arctanh(rho), np.log(brownian), np.log(bend)])
    table = np.column_stack([design, y])
    found = deviance(table, ds, du, size, noise, 1e-300, 1e300, np.empty_like(table))
    assert found == pytest.approx(wanted, rel=1e-8, abs=1e-8)


def test_two_planted_transitions_are_found_inside_their_intervals():
    step = logged()
    rng = np.random.default_rng(7)
    curve = 3 - sigmoid(step, 300, 0.1, 1.0) - sigmoid(step, 3000, 0.1, 0.5) + 0.02 * rng.normal(size=len(step))
    first, second = transitions(step, curve)
    for found, centre, height in ((first, 300, -1.0), (second, 3000, -0.5)):
        assert found.low <= centre <= found.high
        assert found.high - found.low < 0.1 * centre
        assert found.amplitude == pytest.approx(height, rel=0.1)


def test_an_exact_curve_has_its_transitions_too():
    step = logged()
    (found,) = transitions(step, 1 - sigmoid(step, 500, 0.1, 1.0))
    assert found.t == pytest.approx(500, rel=0.02)


@pytest.mark.long
@pytest.mark.parametrize("name", NULLS)
def test_curves_without_transitions_have_none(name):
    """At most one in eight: some walks and tails do look like a step."""
    assert sum(bool(transitions(*null(name, seed))) for seed in range(8)) <= 1


def test_the_suite_of_planted_transitions():
    """A small version of `python -m validation transitions`, on seeds of its own."""
    found = real = hits = covered = 0
    for seed in range(100, 130):
        step, curve, centres, _ = planted(seed)
        seen = transitions(step, curve)
        found, real = found + len(seen), real + len(centres)
        for each in seen:
            near = [c for c in centres if abs(np.log(max(each.t, 1e-9) / c)) < 0.25]
            hits += bool(near)
            covered += any(each.low <= c <= each.high for c in near)
    assert hits >= 0.95 * found
    assert hits >= 0.7 * real
    assert covered >= 0.9 * hits


@settings(max_examples=8, deadline=None)
@given(st.integers(0, 200), st.floats(-3, 3), st.floats(-100, 100), st.floats(-2, 2))
def test_units_do_not_matter(seed, log_scale, shift, log_time):
    step, curve, *_ = planted(seed)
    first = transitions(step, curve)
    again = transitions(step * 10**log_time, curve * 10**log_scale + shift)
    assert len(first) == len(again)
    for a, b in zip(first, again, strict=True):
        assert b.t / 10**log_time == pytest.approx(a.t, rel=1e-3)
        assert b.amplitude / 10**log_scale == pytest.approx(a.amplitude, rel=1e-2)


@pytest.mark.parametrize("form", FORMS)
def test_a_shape_is_half_over_at_its_centre_and_rises_from_15_to_85_percent(form):
    x = np.linspace(0.5, 40, 400_001)
    curve = Shape(form, 5.0, 0.4).on(x)
    if form in ("decay", "bump"):
        assert curve.max() == pytest.approx(1, abs=1e-3)
        assert x[np.argmax(curve)] == pytest.approx(5, abs=1e-3)
        return
    assert np.interp(5.0, x, curve) == pytest.approx(0.5, abs=0.01 if form != "jump" else 0.5)
    low, high = (x[np.argmax(curve >= level)] for level in (0.15, 0.85))
    if form == "jump":
        assert high - low < 1e-3
    elif form == "sigmoid":
        assert np.log(high / low) == pytest.approx(0.4, abs=1e-3)
    else:
        assert high - low == pytest.approx(10 * np.sinh(0.2), abs=1e-2)


@pytest.mark.parametrize("shift", [1e5, -1e5])
def test_the_origin_of_the_clock_does_not_matter(shift):
    for seed in range(3):
        curve = synthetic("sigmoid", seed)
        time = curve.time / curve.time[-1] * 1000
        for one, other in zip(transitions(time, curve.curve), transitions(time + shift, curve.curve), strict=True):
            assert (other.t - shift, other.low - shift, other.high - shift) == pytest.approx((one.t, one.low, one.high), abs=1e-3)
            assert other.amplitude == pytest.approx(one.amplitude, rel=1e-6)


def test_an_origin_can_be_given():
    step = logged()[5:]
    curve = 1 - sigmoid(step, 500, 0.1, 1.0)
    (found,) = transitions(step, curve, origin=0)
    assert found.low <= 500 <= found.high
    with pytest.raises(ss.InputError, match="origin 700000 is later"):
        transitions(step, curve, origin=7e5)


@pytest.mark.parametrize("kind", SPIKES)
def test_spikes_are_no_transitions(kind):
    assert sum(bool(transitions(curve.time, curve.curve)) for curve in (synthetic(kind, seed) for seed in range(200, 206))) <= 1


def test_a_spike_has_its_name_and_its_top():
    time = np.linspace(0, 1000, 400)
    curve = 1 + 2 * np.where(time > 500, np.exp(-(time - 500) / 30), 0) + 0.01 * np.random.default_rng(0).normal(size=400)
    (found,) = curve_events(time, curve)
    assert found.kind == "spike"
    assert found.low <= 501 <= found.high
    assert found.amplitude == pytest.approx(2, abs=0.2)
    assert transitions(time, curve) == ()


def pulse(begin, end, left=0.0):
    """A curve that goes up by 1 at `begin` and comes back at `end`, but for what is left."""
    step = logged(300)
    curve = np.where(step > begin, 1.0, 0.0) - (1 - left) * np.where(step > end, 1.0, 0.0)
    return step, curve - 0.02 * np.log(step + 1) + 0.02 * np.random.default_rng(3).normal(size=len(step))


@pytest.mark.parametrize(("begin", "end"), [(150, 450), (1000, 1400), (4000, 4450), (9000, 9300)])
def test_what_comes_back_within_five_percent_of_the_run_is_a_spike(begin, end):
    step, curve = pulse(begin, end)
    (spike,) = curve_events(step, curve)
    assert spike.kind == "spike"
    assert spike.amplitude == pytest.approx(1, abs=0.1)
    assert spike.low <= begin < end <= spike.high


@pytest.mark.parametrize(
    ("begin", "end", "left"), [(300, 3000, 0), (40, 400, 0), (3000, 4500, 0), (1000, 9000, 0), (1000, 1400, 0.4)]
)
def test_a_stay_of_its_own_and_a_change_that_is_left_make_two_transitions(begin, end, left):
    """Long in the run, long on the clock (from 40 to 400 of 10,000), or without a way back."""
    up, down = transitions(*pulse(begin, end, left))
    assert up.low <= begin <= up.high
    assert down.low <= end <= down.high
    assert (up.amplitude, down.amplitude) == pytest.approx((1, left - 1), abs=0.1)


@pytest.mark.parametrize("before", [45, 60])
def test_a_plateau_is_counted_in_records_not_in_bins(before):
    """The first 45 records of 1,000 share four bins."""
    time = np.geomspace(40, 42_000, 1000)
    curve = np.where(time > time[before], 1.0, 0.0) + 0.02 * np.random.default_rng(1).normal(size=len(time))
    (jump,) = transitions(time, curve)
    assert jump.low <= time[before] < time[before + 1] <= jump.high


@pytest.mark.parametrize("width", [500, 1000])
def test_a_bell_that_is_on_top_at_the_start_is_a_plateau_and_a_drop(width):
    """On log-spaced records nothing of its rise is to be seen; one whose rise is recorded is no transition."""
    step, noise = logged(), 0.02 * np.random.default_rng(5).normal(size=len(logged()))
    (drop,) = transitions(step, np.exp(-0.5 * (step / width) ** 2) + noise)
    assert drop.amplitude == pytest.approx(-1, abs=0.1)
    assert drop.t == pytest.approx(width * np.sqrt(2 * np.log(2)), rel=0.1)
    assert transitions(step, np.exp(-0.5 * ((step - 5000) / width) ** 2) + noise) == ()


def test_a_jump_lies_between_two_records():
    time = np.arange(0.0, 3000.0, 50.0)
    (found,) = transitions(time, np.where(time < 1020, 2.0, 1.0) + 0.01 * np.random.default_rng(0).normal(size=len(time)))
    assert found.kind == "jump"
    assert (found.low, found.high) == pytest.approx((1000, 1050))


def test_records_that_are_not_finite_are_left_out():
    step = logged()
    curve = 1 - sigmoid(step, 500, 0.1, 1.0)
    curve[::17] = np.nan
    (found,) = transitions(step, curve)
    assert found.t == pytest.approx(500, rel=0.02)


@pytest.mark.parametrize("curve", [np.ones(50), np.full(50, np.nan), np.arange(5.0), np.empty(0)])
def test_nothing_to_see(curve):
    assert transitions(np.arange(float(len(curve))), curve) == ()


@pytest.mark.parametrize(("time", "curve"), [([0, 1, 1], [1, 2, 3]), ([0, 1], [1, 2, 3]), ([[0, 1]], [[1, 2]])])
def test_bad_input(time, curve):
    with pytest.raises(ss.InputError, match="rising times"):
        transitions(np.array(time), np.array(curve))
