"""Class attention: probabilities, and speeds that are the slopes of what was recorded."""

import numpy as np
import pytest

import stagescope as ss
from stagescope.papers.published import published

REFERENCE = published("stagescope.papers.scan_snap")


def test_attention_is_a_law_on_the_support_and_starts_at_p():
    run = ss.run_study("scan-snap", num_last=2, num_next_per_last=2, num_common=3, num_unique=4, until=30.0)
    curves = ss.class_attention(run)
    np.testing.assert_allclose(curves.attention.sum(axis=2), 1.0, rtol=1e-12)
    np.testing.assert_allclose(curves.attention[0], curves.table, rtol=1e-12)
    assert np.all(curves.attention[:, ~(curves.common | curves.distinct)] == 0)
    np.testing.assert_allclose(curves.common_mass[0], 3 / (3 + np.linspace(0.1, 1, 4).sum()))


def test_speed_is_the_slope_of_attention():
    run = ss.run_study("scan-snap", until=40.0, record="uniform", frames=4001)
    curves = ss.class_attention(run)
    slopes = np.abs(np.gradient(curves.attention, run.t, axis=0)).sum(axis=2)
    np.testing.assert_allclose(curves.speed[5:-5], slopes[5:-5], rtol=2e-3, atol=1e-7)


def test_entropy_of_syn_small_starts_at_the_ramp():
    run = ss.run_study("scan-snap", until=1.0)
    ramp = np.linspace(0.1, 1, 10) / np.linspace(0.1, 1, 10).sum()
    assert ss.class_attention(run).entropy[0, 0] == pytest.approx(-np.sum(ramp * np.log(ramp)))
    expected = REFERENCE["start_entropy"]
    assert ss.class_attention(run).entropy[0, 0] == pytest.approx(expected.value, abs=expected.tolerance)


def test_flow_entropy_against_the_rate_ratio():
    expected = REFERENCE["flow_entropy"]
    for ratio, value in expected.value.items():
        run = ss.run_study("scan-snap", rate_y=float(ratio), rate_z=1.0)
        assert ss.class_attention(run).entropy[-1].mean() == pytest.approx(value, abs=expected.tolerance), ratio
