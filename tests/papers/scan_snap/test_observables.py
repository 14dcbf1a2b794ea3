"""Class attention: probabilities, and speeds that are the slopes of what was recorded."""

import numpy as np
import pytest

import stagescope as ss
from stagescope.flow.record import Every
from stagescope.papers.scan_snap.observables import law_of
from stagescope.papers.scan_snap.reading import natural_grid
from stagescope.readings.published import published
from stagescope.readings.rebuild import replay

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


@pytest.mark.parametrize("options", [{}, {"num_last": 1}, {"num_next_per_last": 2, "columns": "all", "init_scale": 0.3}])
def test_what_classes_read_from_the_decoder_is_its_definition(options):
    """Pulls g = Y (e - alpha), own-minus-other logits, and the wrong probability on targets of others, against dense sums."""
    run = ss.run_study("scan-snap", num_common=2, num_unique=3, until=20.0, frames=5, progress=False, **options)
    curves, law = ss.class_attention(run), law_of(run)
    on, target, weights = curves.supports, law.rows["target"], law.model.multiplicity
    classes = np.arange(len(target))
    for frame in range(run.frames):
        y = run.params["Y"][frame]
        logits = on.dense(on.features(curves.c[frame])) @ y
        alpha = weights * np.exp(logits) / np.sum(weights * np.exp(logits), axis=1, keepdims=True)
        residual = -alpha
        residual[classes, target] += 1
        np.testing.assert_allclose(curves.readout.pulls[frame], (residual @ y.T)[on.of, on.key], rtol=1e-10, atol=1e-14)
        others = np.zeros_like(alpha)
        others[:, target if len(target) > 1 else slice(None)] = 1
        others[classes, target] = 0
        contrast = -others / others.sum(axis=1, keepdims=True)
        contrast[classes, target] = 1
        np.testing.assert_allclose(curves.readout.directions[frame], (y @ contrast.T)[on.key, on.of], rtol=1e-10, atol=1e-14)
        alpha[classes, target] = 0
        share = np.mean(alpha[:, target].sum(axis=1) / alpha.sum(axis=1))
        assert curves.readout.on_targets[frame] == pytest.approx(share, rel=1e-10)


@pytest.mark.parametrize(
    "options", [{"frames": 12}, {"optimizer": "heavy-ball", "length": 16, "batch": 8, "record": "log", "frames": 5}]
)
def test_a_replay_that_keeps_entries_only_is_the_replay_that_keeps_all(options):
    run = ss.run_study("scan-snap", num_common=2, num_unique=3, progress=False, **options)
    kept = ss.reading(run).curves
    assert len(kept.time) > run.frames
    whole = ss.class_attention(replay(run, Every() if "length" in options else natural_grid(run)))
    for name in (
        "time",
        "c",
        "z",
        "dz",
        "farthest",
        "fastest",
    ):  # the reading takes the very steps of the run, this replay others
        np.testing.assert_allclose(getattr(kept, name), getattr(whole, name), rtol=1e-8, atol=1e-12)
    np.testing.assert_allclose(kept.readout.pulls, whole.readout.pulls, rtol=1e-7, atol=1e-12)


def test_many_classes_take_the_memory_of_their_tokens():
    """60 classes of 3 tokens: nothing that is kept has a number for every class and token."""
    run = ss.run_study("scan-snap", num_last=60, num_common=1, num_unique=2, until=5.0, frames=4, progress=False)
    curves = ss.class_attention(run)
    kept = [value for value in vars(curves).values() if isinstance(value, np.ndarray)]
    assert max(value.size for value in kept) == run.frames * 60 * 3
    assert curves.attention.shape == (run.frames, 60, 121)
