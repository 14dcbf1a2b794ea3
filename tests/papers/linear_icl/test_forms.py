"""Closed forms, blow-up times and the cascade, against integration and the numbers of the science page."""

import numpy as np
import pytest
from scipy.integrate import solve_ivp

from stagescope.papers.linear_icl import forms
from stagescope.papers.linear_icl.cascade import SilentHead, blow_up_time, cascade
from stagescope.papers.linear_icl.model import LinearAttention
from stagescope.papers.linear_icl.process import RegressionTask

REF = RegressionTask(eigenvalues=(0.4, 0.3, 0.2, 0.1))
FLAT = RegressionTask(eigenvalues=(0.35, 0.3, 0.2, 0.15))
THREE = RegressionTask(eigenvalues=(1.0, 0.5, 0.25), contexts=(10,))


def drawn(seed: int, heads: int, dim: int, scale: float, rank: int = 1) -> dict[str, np.ndarray]:
    """The starts of the independent implementation behind the science page."""
    random = np.random.default_rng(seed)
    shapes = {"v": (heads,), "K": (heads, rank, dim), "Q": (heads, rank, dim)}
    return {name: scale * random.normal(size=shape) for name, shape in shapes.items()}


def test_half_step_times_of_the_scalar_law():
    """306.518, 545.816, 1230.56, 4935.62 from v_0 = .02 on the page."""
    found = [
        (forms.course(forms.HALF_U) - forms.course(0.02 / forms.head_value(REF, (d,)))) / forms.pace(REF, d) for d in range(4)
    ]
    assert found == pytest.approx([306.518, 545.816, 1230.56, 4935.62], rel=2e-6)
    assert forms.delay(REF, 0) == pytest.approx(-6.0, abs=0.05)


@pytest.mark.parametrize("u", [1e-8, 0.3, 0.999, 1 - 1e-12])
def test_the_course_can_be_turned_around(u):
    assert forms.course_inverse(forms.course(u)) == pytest.approx(u, rel=1e-9)


@pytest.mark.parametrize("later", [(), (0.0,), (3.0, 40.0)])
def test_heads_that_learn_a_direction_together_are_earlier(later):
    """Alone T + delay; N equal heads: T + N^(1/3) delay, because M = N v^3; others against integration."""
    waits = 500.0 + np.array([0.0, *later])
    found, alone = forms.joint_drop(REF, 0, waits), 500.0 + forms.delay(REF, 0)
    if len(set(waits)) == 1:
        assert found == pytest.approx(500.0 + len(waits) ** (1 / 3) * forms.delay(REF, 0), rel=1e-9)
        return
    pace, start = forms.pace(REF, 0), 0.0

    def half(t, u):
        return np.sum(u**3) - forms.HALF

    seen = solve_ivp(
        lambda t, u: pace * u**2 * (1 - np.sum(u**3)),
        (start, 600.0),
        1 / (pace * (waits - start)),
        rtol=1e-11,
        atol=1e-13,
        events=half,
    )
    assert found == pytest.approx(seen.t_events[0][0], rel=1e-5)  # what M was before t = 0 is left out
    assert found < alone


@pytest.mark.parametrize("seed", range(6))
def test_blow_up_times_are_those_of_the_flow(seed):
    """Quadrature equals the ODE to 1e-10; some heads turn the sign of v on the way."""
    random = np.random.default_rng(seed)
    v, k, q = random.normal(), random.normal(size=4), random.normal(size=4)
    g = REF.spectrum**2
    (head,) = SilentHead.all_of({"v": np.array([v]), "K": k[None, None], "Q": q[None, None]})

    def law(t, y):
        return np.concatenate([[y[1:5] @ (g * y[5:])], y[0] * g * y[5:], y[0] * g * y[1:5]])

    def far(t, y):
        return abs(y[0]) - 1e7

    far.terminal = True  # pyright: ignore[reportFunctionMemberAccess]
    seen = solve_ivp(law, (0, 1e5), np.concatenate([[v], k, q]), method="DOP853", rtol=1e-13, atol=1e-14, events=far)
    assert blow_up_time(head, REF.spectrum) == pytest.approx(seen.t[-1] + 1 / (g[0] * abs(seen.y[0, -1])), rel=1e-10)


def test_blow_up_times_of_aligned_heads_and_of_smaller_ones():
    k = np.array([0.02, 0, 0, 0])
    (head,) = SilentHead.all_of({"v": np.array([0.02]), "K": k[None, None], "Q": k[None, None]})
    assert blow_up_time(head, REF.spectrum) == pytest.approx(1 / (0.16 * 0.02), rel=1e-12)
    random = drawn(0, 3, 4, 1.0)
    small = {name: 1e-30 * block for name, block in random.items()}
    for one, other in zip(SilentHead.all_of(random), SilentHead.all_of(small), strict=True):
        assert blow_up_time(other, REF.spectrum) == pytest.approx(1e30 * blow_up_time(one, REF.spectrum), rel=1e-12)


def test_heads_that_cannot_grow_never_blow_up():
    zero, k = np.zeros(4), np.array([1.0, 0, 0, 0])
    nothing = SilentHead(0.0, zero, zero)
    assert blow_up_time(nothing, REF.spectrum) == np.inf
    assert blow_up_time(SilentHead(1.0, zero, zero), REF.spectrum) == np.inf
    learned = np.array([True, False, False, False])
    assert blow_up_time(SilentHead(1.0, k**2, zero), REF.spectrum, learned) == np.inf


@pytest.mark.parametrize(
    ("task", "heads", "seed", "scale", "page"),
    [
        (REF, 5, 0, 0.03, (352.2, 551.8, 657.8, 3997)),
        (REF, 5, 1, 0.01, (737.7, 1199, 3047, 14278)),
        (THREE, 4, 1, 0.01, (105.1, 464.7, 2647.2)),
        (FLAT, 6, 2, 0.01, (502.1, 851.7, 1833, 4190)),
    ],
)
def test_the_cascade_is_that_of_the_science_page(task, heads, seed, scale, page):
    found = cascade(task, SilentHead.all_of(drawn(seed, heads, task.dim, scale)))
    assert [drop.time for drop in found] == pytest.approx(page, rel=5e-4)
    assert [drop.direction for drop in found] == list(range(task.dim))
    assert len({drop.head for drop in found}) == task.dim


def test_a_cascade_ends_where_heads_are_full():
    few = SilentHead.all_of(drawn(0, 2, 4, 0.01))
    assert [drop.direction for drop in cascade(REF, few)] == [0, 1]
    pairs = cascade(REF, SilentHead.all_of(drawn(0, 1, 4, 0.01, rank=2)), rank=2)
    assert [(drop.direction, drop.blow_up is None) for drop in pairs] == [(0, False), (1, True)]
    assert cascade(REF, SilentHead.all_of(drawn(0, 3, 4, 0.0))) == []


def test_the_rate_inside_a_head_is_that_of_the_page():
    assert forms.opening_rate(REF, (2,), 3) == pytest.approx(0.01612, abs=1e-5)
    assert forms.opening_rate(REF, (0, 1), 2) == pytest.approx(0.0692, abs=1e-4)


def test_the_common_curve_of_merged_heads_is_a_logistic_for_white_inputs():
    white = RegressionTask(eigenvalues=(0.25,) * 4)
    v = np.array([1e-5])
    start = {"v": v, "U": v[:, None, None] * np.eye(4) / 2}
    time = forms.merged_drop_time(white, start)
    seen = forms.logistic(white, float(v[0] ** 2 / 2), np.array([time]))[0] / forms.final_map(white)[0]
    assert seen == pytest.approx(forms.HALF, rel=1e-6)
    assert forms.merged_drop_time(white, LinearAttention(dim=4, heads=2, rank=None).init(0, 0.0)) == np.inf
