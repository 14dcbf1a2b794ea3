"""Stages on curves whose stages are known."""

import numpy as np
import pytest

from stagescope.papers.scan_snap.text.observables import Motion, TextAttention
from stagescope.papers.scan_snap.text.stages import FREEZE, after_prior, detect

TIME = np.arange(0.0, 1001.0, 50.0)


def curves(variation, loss=None):
    loss = np.linspace(7.0, 1.0, len(TIME)) if loss is None else loss
    motion = Motion(TIME[:-1], TIME[1:], np.asarray(variation, dtype=float))
    return TextAttention(TIME, TIME.astype(int), loss, 2.0, np.linspace(2.0, 1.0, len(TIME)), motion)


def moving(last):
    """A move while the prior is learned, one at 400, then stillness from checkpoint `last` on."""
    variation = np.full(len(TIME) - 1, 0.01)
    variation[:2], variation[6:last], variation[8] = 0.5, 0.08, 0.2
    return variation


COMMON = np.interp(TIME, [0, 200, 1000], [0.6, 0.8, 0.3])
DISTINCT = np.interp(TIME, [0, 200, 1000], [0.1, 0.05, 0.45])


def test_topical_stages():
    found = detect(curves(moving(12)), (COMMON, DISTINCT), clock="t", status="finished")
    assert found.events["prior"] == 200
    assert found.events["onset"] == pytest.approx(np.interp(-0.98 * 0.6, -COMMON[4:], TIME[4:]))
    assert found.events["doubled"] == pytest.approx(np.interp(0.2, DISTINCT[4:], TIME[4:]))
    assert found.events["peak"] == 425
    assert found.events["snap"] == 600
    assert [stage.name for stage in found] == ["prior", "scan", "snapped"]
    assert [stage.stop for stage in found] == [200, 600, None]
    prior, scan, snapped = (stage.facts for stage in found)
    assert (prior["common_mass_start"], prior["common_mass_stop"]) == pytest.approx((0.6, 0.8))
    assert scan["distinct_mass_stop"] == snapped["distinct_mass_start"] == pytest.approx(np.interp(600, TIME, DISTINCT))
    assert (prior["entropy_start"], snapped["entropy_stop"]) == (2.0, 1.0)
    assert (snapped["last_motion"], snapped["largest_motion"]) == (0.01, 0.2)


def test_moves_while_the_prior_is_learned_are_no_scan():
    """The largest of all, .5, comes before common types have most attention."""
    prior, later = after_prior(curves(moving(12)), (COMMON, DISTINCT))
    assert (prior, later[0]) == (200, 4)


def test_what_still_moves_has_no_snap():
    found = detect(curves(moving(20)), (COMMON, DISTINCT), clock="t", status="finished")
    assert found.events["snap"] is None
    assert set(found.notes) == {"snap"}
    assert found.stages[-1].facts["last_motion"] == 0.08
    assert [stage.name for stage in found] == ["prior", "scan"]
    assert found.stages[-1].stop is None


def test_common_types_that_never_fall_leave_all_to_the_prior():
    found = detect(curves(moving(12)), (np.sort(COMMON), DISTINCT), clock="t", status="finished")
    assert found.events == dict.fromkeys(found.events)
    assert set(found.notes) == set(found.events)
    assert [stage.name for stage in found] == ["prior"]


def test_without_masses_the_loss_says_when_the_prior_is_learned():
    found = detect(curves(moving(12)), None, clock="step", status="finished")
    assert found.events["prior"] == pytest.approx(1000 * 5 / 6)
    assert "onset" not in found.events
    stuck = detect(curves(moving(12), np.full(len(TIME), 3.0)), None, clock="step", status="finished")
    assert stuck.events == {"prior": None, "peak": None, "snap": None}


def test_more_frames_do_not_move_events():
    """Halving the distance of frames leaves checkpoints, and so peak and snap, where they are."""
    coarse = curves(moving(12))
    fine = np.arange(0.0, 1001.0, 25.0)
    masses = tuple(np.interp(fine, TIME, mass) for mass in (COMMON, DISTINCT))
    loss, entropy = (np.interp(fine, TIME, curve) for curve in (coarse.loss, coarse.entropy))
    dense = TextAttention(fine, fine.astype(int), loss, 2.0, entropy, coarse.motion)
    events = [detect(*item, clock="t", status="finished").events for item in ((coarse, (COMMON, DISTINCT)), (dense, masses))]
    assert events[0] == pytest.approx(events[1])


def test_the_level_of_stillness():
    """.05 after a large motion, half of a small one; a motion that is small all along is no snap."""
    for largest, level in ((0.4, FREEZE.variation), (0.06, 0.03)):
        for factor, snap in ((1.01, None), (0.99, 250)):
            variation = np.full(len(TIME) - 1, factor * level)
            variation[4] = largest
            found = detect(curves(variation), (COMMON, DISTINCT), clock="t", status="finished")
            assert found.events["snap"] == snap
    small = detect(curves(np.full(len(TIME) - 1, 0.01)), (COMMON, DISTINCT), clock="t", status="finished")
    assert small.events["snap"] is None
    assert small.stages[-1].facts["largest_motion"] == 0.01
