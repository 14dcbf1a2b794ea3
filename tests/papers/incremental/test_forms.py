"""Closed forms of the regression flow against the flow itself."""

import numpy as np
import pytest

import stagescope as ss
from stagescope.detect.levels import plateaus, transitions
from stagescope.papers.incremental.regression import RegressionForms, wkb_times
from stagescope.readings.published import published

REFERENCE = published("stagescope.papers.incremental")
LAWS = {"exact": ss.RegressionLoss, "mirror": ss.MirrorFlow}


def forms_of(model, law):
    return RegressionForms(model.gains, model.positions, model.heads * model.copies, law == "mirror")


def curves(model, law, sigma, until, seed=0, noise="logits", frames=1200):
    record = ss.LogSpaced(frames=frames, first=1e-2)
    run = ss.evolve(LAWS[law](model=model), model.init(seed, sigma, noise), ss.GradientFlow(), until=until, record=record)
    assert run.done
    return ss.head_curves(run)


def times(found, model, law):
    return transitions(found.time, found.loss, forms_of(model, law).levels)


@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("heads", [1, 2, 3, 4])
def test_plateaus_and_how_many(law, heads):
    """Plateaus are in the order of importance, and H heads stop at plateau min(H, k)."""
    model = ss.RegressionHeads(positions=6, gains=(4.0, 2.0, 1.0), heads=heads, places=(3, 5, 0))
    forms = forms_of(model, law)
    found = curves(model, law, 1e-4, 3e4)
    reached = forms.reachable
    assert [when is not None for when in times(found, model, law)] == [j < reached for j in range(3)]
    assert found.loss[-1] == pytest.approx(forms.levels[reached], abs=1e-3)
    seen = plateaus(found.time, found.loss, forms.levels)
    assert all(item.accepted for item in seen[:reached])
    assert not any(seen[reached:])


@pytest.mark.parametrize("law", LAWS)
def test_equal_heads_stay_on_plateau_one_and_agree_until_they_part(law):
    model = ss.RegressionHeads(positions=6, gains=(4.0, 2.0, 1.0), heads=3)
    equal = curves(model.symmetric(), law, 0.0, 1e5)
    assert equal.loss[-1] == pytest.approx(forms_of(model, law).levels[1], abs=1e-4)
    noisy = curves(model, law, 1e-6, 3e4)
    first, second, third = times(noisy, model, law)
    last = noisy.time[np.flatnonzero(noisy.agreement >= 0.95)[-1]]
    assert first < last < second < third
    assert noisy.agreement[-1] < 0.6


@pytest.mark.parametrize(("law", "tolerance"), [("exact", 0.03), ("mirror", 0.02)])
def test_leftover_attention(law, tolerance):
    model = ss.RegressionHeads(positions=5, gains=(2.0, 1.0, 0.5), heads=3).symmetric()
    found, forms = curves(model, law, 0.0, 1e5, frames=100), forms_of(model, law)
    for place in (1, 2, 3):
        ratio = found.attention[-1, 0, place] / forms.leftover(1e5, place)
        assert ratio == pytest.approx(1.0, abs=tolerance)


def test_differences_of_leftovers_die_out_like_a_small_power():
    """D_j s_j^2 becomes equal over places like t^(-1/N): 4 positions, one decade."""
    model = ss.RegressionHeads(positions=4, gains=(1.7, 1.0, 0.5), heads=2).symmetric()
    forms = forms_of(model, "exact")
    run = ss.evolve(
        ss.RegressionLoss(model=model), model.init(0, 0.0), ss.GradientFlow(), until=1e6, record=ss.AtTimes(at=(1e5, 1e6))
    )
    mass = model.attention(run.params)[1:, 0, 1:]
    spread = np.ptp(np.log([forms.gap(j) for j in (1, 2, 3)] * mass**2), axis=1)
    assert spread[1] / spread[0] == pytest.approx(10 ** (-1 / 4), rel=2e-3)


@pytest.mark.long
@pytest.mark.parametrize("law", LAWS)
def test_rate_at_the_run_is_the_linearisation(law):
    """H - 1 equal fastest rates, the parting of heads; no critical point is near, since attention is never all on one place."""
    model = ss.RegressionHeads(positions=8, gains=(2.89, 1.7, 1.0), heads=3)
    until = 400.0 if law == "exact" else 60.0
    params = {n: np.repeat(v[-1], 3, axis=0) for n, v in curves(model.symmetric(), law, 0.0, until, frames=50).params.items()}
    rates = np.real(ss.spectrum(LAWS[law](model=model), params, 3).rates)
    expected = forms_of(model, law).rate(model.attention(params)[0, 1])
    np.testing.assert_allclose(rates[:2], expected, rtol=0.02)
    assert rates[2] < 0.6 * expected
    found = ss.critical_point(LAWS[law](model=model), params)
    assert not found.found


@pytest.mark.long
def test_ladder_finds_no_critical_point_at_a_plateau():
    """Plateaus are reached only as a power of t: the run is slow there, the search is led away, and the escape is a drift."""
    model = ss.RegressionHeads(positions=5, gains=(3.0, 1.5), heads=2)
    loss = ss.RegressionLoss(model=model)
    run = ss.evolve(loss, model.init(0, 1e-6), ss.GradientFlow(), until=3000.0, record=ss.LogSpaced(frames=300, first=1e-2))
    first, last = (rung for rung in ss.saddle_ladder(run) if rung.t > 10)
    assert last.t == run.t[-1]
    assert first.t < times(ss.head_curves(run), model, "exact")[1]
    assert not first.near
    assert "no critical point is near: |F| falls only along a valley" in first.note
    assert (first.law, first.rates) == ("drift", ())
    assert first.predicted_escape == pytest.approx(first.measured_escape, rel=0.1)
    assert "distance -" in str(first)


@pytest.mark.parametrize(("law", "tolerance"), [("exact", 0.10), ("mirror", 0.25)])
@pytest.mark.parametrize(("heads", "ratio", "positions"), [(2, 1.5, 14), (4, 2.0, 6)])
def test_escape_slope_and_wkb(law, tolerance, heads, ratio, positions):
    model = ss.RegressionHeads(positions=positions, gains=(ratio**2, ratio, 1.0), heads=heads)
    forms, sigmas = forms_of(model, law), np.array([1e-5, 1e-8, 1e-11])
    until = 3000.0 if law == "exact" else 400.0
    when = np.array([times(curves(model, law, sigma, until), model, law)[1] for sigma in sigmas])
    slope = np.polyfit(np.log(1 / sigmas), np.sqrt(when), 1)[0]
    assert slope == pytest.approx(forms.escape_slope, rel=tolerance)
    equal = curves(model.symmetric(), law, 0.0, until)
    predicted = wkb_times(equal.time, forms.rate(equal.mass[:, 0, 1]), (sigmas[0], when[0]), sigmas)
    np.testing.assert_allclose(predicted, when, rtol=0.10)


@pytest.mark.parametrize("law", LAWS)
def test_the_slope_comes_to_its_limit_as_the_noise_falls(law):
    """And is that of the measured t_2 better than the limit is: s_2 starts from 1/N."""
    forms = RegressionForms((4.0, 2.0, 1.0), 8, 3, law == "mirror")
    off = [abs(forms.slope_between(np.array([1e-3, 1e-5]) ** power) / forms.escape_slope - 1) for power in (1, 4, 40)]
    assert off[0] > off[1] > off[2]
    assert off[2] < 0.02


def test_the_exact_rate_with_two_features_left():
    """R J^2 R^T is w_i w_j (1 + delta_ij): for equal w its largest eigenvalue is 3 w^2, for one feature 2 w^2."""
    forms = RegressionForms((4.0, 2.0, 1.0), 8, 3, mirror=False)
    assert forms.fastest(np.array([0.9, 0.01, 0.02])) == pytest.approx(np.sqrt(3) * 0.02)
    assert forms.fastest(np.array([0.9, 0.01, 0.0])) == pytest.approx(float(forms.rate(np.array(0.01))))


@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize(("heads", "gain", "positions"), [(1, 3.0, 30), (2, 4.5, 60), (4, 6.0, 120), (3, 2.0, 15)])
def test_the_closed_form_of_t1_is_off_by_what_it_leaves_out(law, heads, gain, positions):
    """Settings that no error was chosen with; twice the error covers what is not of leading order in it."""
    model = ss.RegressionHeads(positions=positions, gains=(gain, gain / 2), heads=heads).symmetric()
    forms = forms_of(model, law)
    found = curves(model, law, 0.0, 3 * forms.first_time, frames=800)
    first = times(found, model, law)[0]
    assert first is not None
    off = abs(first - forms.first_time)
    assert off < 2 * forms.first_error
    assert forms.first_error < 0.3 * forms.first_time


@pytest.mark.parametrize(("law", "positions", "tolerance"), [("exact", 1000, 0.04), ("mirror", 1000, 0.02)])
@pytest.mark.parametrize("heads", [1, 3])
def test_first_transition_of_many_positions(law, positions, tolerance, heads):
    model = ss.RegressionHeads(positions=positions, gains=(2.89, 1.7, 1.0), heads=heads).symmetric()
    forms = forms_of(model, law)
    found = curves(model, law, 0.0, 2 * forms.first_time, frames=800)
    assert times(found, model, law)[0] == pytest.approx(forms.first_time, rel=tolerance)


def test_figure_ten():
    """N=40, H=3, mirror, noise 1e-6 on the weights: the second and third drop depend on the draw."""
    model = ss.RegressionHeads(positions=40, gains=(2.89, 1.7, 1.0), heads=3)
    found = curves(model, "mirror", 1e-6, 2000.0, seed=1, noise="weights")
    when = times(found, model, "mirror")
    drops, levels = REFERENCE["figure-10-drops"], REFERENCE["figure-10-levels"]
    low, high = np.transpose(drops.value)
    np.testing.assert_array_less((1 - drops.tolerance) * low, when)
    np.testing.assert_array_less(when, (1 + drops.tolerance) * high)
    losses = [item.loss for item in plateaus(found.time, found.loss, found.forms.levels)]
    np.testing.assert_allclose(losses, levels.value, atol=levels.tolerance)


def test_outside_the_forms():
    with pytest.raises(ss.InputError, match="stays on position"):
        RegressionForms((1.0, 1.0), 4, 2, mirror=True).leftover(np.array([1.0]))
    with pytest.raises(ss.InputError, match="not on the trajectory"):
        wkb_times(np.arange(3.0), np.ones(3), (1e-3, 5.0), np.array([1e-4]))
    assert np.isnan(wkb_times(np.arange(3.0), np.ones(3), (1e-3, 1.0), np.array([1e-9])))[0]
