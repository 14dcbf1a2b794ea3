"""Rungs of TokenAttention over options: folds, the stability of the symmetric point, where nothing is found; lambda_c."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import fsolve

import stagescope as ss
from stagescope.papers.focus_dilution.continuation import token_rung
from stagescope.papers.focus_dilution.family import attention_rate, stall_boundary, symmetric_margin
from stagescope.papers.focus_dilution.ladder import condensed_start
from stagescope.papers.focus_dilution.saddle_path import SmallModel
from stagescope.readings.continuing import continued, option_family
from stagescope.readings.registry import study

STUDY = study("focus-dilution")
LAMBDA_C = {0.34: 0.246, 0.42: 0.375, 0.50: 0.479, 0.58: 0.566, 0.66: 0.638, 0.74: 0.701, 0.82: 0.756}
"""Four tokens, scale 4: an independent implementation, by tracked eigenvalues."""


def family(over, preset="ref", **options):
    return option_family(STUDY, STUDY.configured(preset, **options), over)


def branch(over, rung=(1, 1), preset="ref", low=None, high=None, **options):
    found = family(over, preset, **options)
    return ss.continue_point(found, found.value, rung=rung, low=low, high=high)


@pytest.fixture(scope="module")
def ref():
    return branch("persistence", low=0.55, high=0.85)


def rank_one_slope(z, persistence, pi):
    """The gradient of the best logits of rank one, s_i w_k with s_0 = 1 and sum w = 0, written from the loss alone."""
    s, w = np.append(1.0, z[:3]), np.append(z[3:], -np.sum(z[3:]))
    logits = np.outer(s, w)
    law = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    left = pi[:, None] * (law - persistence * np.eye(4) - (1 - persistence) * pi)
    down = left.T @ s
    return np.concatenate([(left @ w)[1:], (down - down[-1])[:3]])


def fold_of_rank_one(start, persistence, pi):
    """A zero of the gradient with a singular Hessian: seven equations for six logits and the persistence."""

    def equations(unknown):
        z, value = unknown[:6], unknown[6]
        columns = [(rank_one_slope(z + h, value, pi) - rank_one_slope(z - h, value, pi)) / 2e-5 for h in 1e-5 * np.eye(6)]
        return np.append(rank_one_slope(z, value, pi), 1e3 * np.linalg.det(np.array(columns)))

    found, _, state, _ = fsolve(equations, np.append(start, persistence), full_output=True, xtol=1e-10)
    assert state == 1
    return found[6]


@pytest.mark.long
def test_folds_of_ref_are_those_of_the_best_logits_of_rank_one(ref):
    """At (1,1) the loss depends on logits of rank one alone, so that its folds follow from six numbers and no attention."""
    pi = np.array([0.5, 0.25, 0.15, 0.1])
    for fold in ref.folds:
        near = min(ref.points, key=lambda point: abs(point.value - fold.value) + abs(point.loss - fold.loss))
        model = ss.TokenAttention(vocab=4, width=1, key_width=1, scale=4.0)
        s = (model.attention(near.params, pi) @ near.params["W0"])[:, 0]
        w = near.params["W1"][0] * s[0]
        second = fold_of_rank_one(np.concatenate([s[1:] / s[0], (w - w.mean())[:3]]), fold.value, pi)
        assert fold.value == pytest.approx(second, abs=1e-5)
    assert sorted(fold.value for fold in ref.folds) == pytest.approx([0.6093, 0.7969], abs=1e-4)


def test_the_sheet_between_the_folds_is_unstable(ref):
    order = sorted(fold.value for fold in ref.folds)
    unstable = [point for point in ref.points if not point.stable]
    assert unstable
    assert all(order[0] - 1e-6 <= point.value <= order[1] + 1e-6 for point in unstable)
    assert {point.index for point in unstable} == {1}
    assert ref.crossings == ()
    start = min(ref.points, key=lambda point: abs(point.value - 0.6))
    assert start.rates[0] == pytest.approx(0.0377, abs=1e-4), "the rate at the point that runs of ref approach"
    assert start.openings["attention"] == (), "at (1,1) only embeddings can open"


def test_points_are_critical_and_balanced(ref):
    for point in ref.points[::10]:
        loss = family("persistence")(point.value)
        small = ss.TokenPopulation(model=loss.model.model_copy(update={"width": 1, "key_width": 1}), process=loss.process)
        assert max(np.abs(block).max() for block in small.grad(point.params).values()) < 1e-10
        w0, w1, wq, wk = (point.params[name] for name in ("W0", "W1", "WQ", "WK"))
        assert np.abs(w0.T @ w0 - w1 @ w1.T - wq @ wq.T - wk @ wk.T).max() < 1e-10


@pytest.mark.parametrize("first", list(LAMBDA_C))
def test_lambda_c_in_closed_form(first):
    assert stall_boundary(first, 4) == pytest.approx(LAMBDA_C[first], rel=0.01)


@pytest.mark.long
@pytest.mark.parametrize(("first", "tokens", "scale"), [(0.34, 4, 4.0), (0.6, 3, 1.0), (0.5, 6, 2.0)])
def test_lambda_c_is_where_a_tracked_rate_of_the_symmetric_branch_is_zero(first, tokens, scale):
    critical = stall_boundary(first, tokens)
    assert critical is not None
    found = branch(
        "persistence", preset="stall", low=critical - 0.1, high=critical + 0.1,
        pi0=first, tokens=tokens, scale=scale, persistence=critical - 0.05,
    )  # fmt: skip
    assert [(each.kind, each.value) for each in found.crossings] == [("bifurcation", pytest.approx(critical, abs=1e-6))]
    assert [found.points[0].index, found.points[-1].index] == [0, tokens - 2]


@settings(max_examples=30, deadline=None)
@given(st.floats(0.3, 0.9), st.integers(3, 6))
def test_the_symmetric_point_is_stable_exactly_below_lambda_c(first, tokens):
    if first < 1.1 / tokens:
        return
    critical = stall_boundary(first, tokens)
    assert critical is not None
    assert 0 < critical < 1
    for share in (0.3, 0.9, 0.99):
        assert symmetric_margin(share * critical, first, tokens) > 0
        assert symmetric_margin(1 - share * (1 - critical), first, tokens) < 0


@pytest.mark.parametrize("side", [-1, 1])
def test_flows_of_rank_one_stay_below_lambda_c_and_leave_above(side):
    """From a start whose rare tokens differ by a millionth."""
    chain = ss.LazyChain(pi=(0.5, 1 / 6, 1 / 6, 1 / 6), persistence=stall_boundary(0.5, 4) + 0.06 * side)
    loss = ss.TokenPopulation(model=ss.TokenAttention(vocab=4, width=1, key_width=1, scale=4.0), process=chain)
    start, model = condensed_start(loss, 1.0, 1e-2), SmallModel(loss, 1, 1)
    start["W0"][1:3, 0] *= 1 + 1e-6 * np.array([1.0, -1.0])
    *_, (_, last) = model.steps(model.packed(start), 0.0, 3e4)
    w0 = model.unpacked(last)["W0"][:, 0]
    spread = np.ptp(w0[1:]) / np.abs(w0).max()
    assert spread < 1e-4 if side < 0 else spread > 0.3


def test_a_uniform_law_has_no_lambda_c():
    assert stall_boundary(0.25, 4) is None


def test_attention_at_the_condensed_point_turns_its_sign_with_the_persistence():
    found = branch("persistence", (1, 0), low=-0.09, high=0.7)
    assert [(each.kind, each.what) for each in found.crossings] == [("opening", "a rate of attention is zero")]
    assert found.crossings[0].value == pytest.approx(0.0, abs=1e-9)
    for point in found.points[::5]:
        chain = family("persistence")(point.value).process
        expected = abs(attention_rate(chain.stationary, chain.transition, 4.0))
        assert max(point.openings["attention"], default=0.0) == pytest.approx(expected, rel=1e-6, abs=1e-7)


@pytest.mark.long
def test_asymmetry_lifts_the_degenerate_point_to_both_sides():
    found = branch("delta", preset="stall", low=-0.02, high=0.02)
    assert [each.kind for each in found.crossings] == ["opening"]
    assert found.crossings[0].value == pytest.approx(0.0, abs=1e-6)
    rates = {point.value: max(point.rates, default=0.0) for point in found.points}
    assert rates[-0.02] == pytest.approx(rates[0.02], rel=1e-3)


def test_losses_at_one_one_do_not_depend_on_the_scale():
    losses = [point.loss for point in branch("scale", low=2.0, high=6.0).points]
    assert np.ptp(losses) < 1e-9


def test_which_options_can_be_continued():
    assert list(continued(STUDY, STUDY.configured("ref"))) == ["pi.0", "pi.1", "pi.2", "pi.3", "persistence", "scale"]
    assert list(continued(STUDY, STUDY.configured("stall"))) == ["persistence", "pi0", "delta", "scale"]


def test_a_small_model_without_room_opens_nothing():
    zeros, vector = token_rung(family("persistence", width=1, key_width=1), (1, 1), 0.6)
    assert zeros.openings(vector, 0.6) == {}


@pytest.mark.long
@pytest.mark.parametrize(
    ("rung", "options", "said"),
    [
        ((2, 1), {}, "lies at infinity"),
        ((2, 1), {"preset": "stall"}, r"it passes \(0,0\), \(1,0\), \(1,1\)"),
        ((0, 0), {}, "is the origin"),
        ((1, 2), {}, "does not exist"),
        ((1, 1, 1), {}, "does not exist"),
        ((1, 1), {"form": "sampled", "sequences": 8, "length": 4}, "drawn anew"),
    ],
)
def test_rungs_that_are_not_there(rung, options, said):
    with pytest.raises(ss.InputError, match=said):
        branch("persistence", rung, **options)
