"""Stages on curves whose stages are known."""

import numpy as np
import pytest

from stagescope.papers.scan_snap.text.observables import Motion, TextAttention
from stagescope.papers.scan_snap.text.stages import after_prior, detect

TIME = np.arange(0.0, 1001.0, 50.0)


def curves(variation, loss=None, left=None, masses=None):
    loss = np.linspace(7.0, 1.0, len(TIME)) if loss is None else loss
    variation = np.asarray(variation, dtype=float)
    left = np.cumsum(variation[::-1])[::-1] if left is None else left
    motion = Motion(TIME[:-1], TIME[1:], variation, left)
    return TextAttention(TIME, TIME.astype(int), loss, 2.0, np.linspace(2.0, 1.0, len(TIME)), motion, 1.0, masses)


def moving(last):
    """A move while the prior is learned, most of it at 200, then stillness from checkpoint `last` on."""
    variation = np.full(len(TIME) - 1, 0.001)
    variation[:2], variation[3:last], variation[4] = 0.5, 0.08, 0.2
    return variation


COMMON = np.interp(TIME, [0, 100, 1000], [0.6, 0.8, 0.3])
DISTINCT = np.interp(TIME, [0, 100, 1000], [0.1, 0.05, 0.45])


def test_topical_stages():
    found = detect(curves(moving(6), masses=(COMMON, DISTINCT)), clock="t", status="finished")
    assert found.events["prior"] == 100
    assert found.events["onset"] == pytest.approx(np.interp(-0.98 * 0.8, -COMMON[2:], TIME[2:]))
    assert found.events["doubled"] == pytest.approx(np.interp(0.2, DISTINCT[2:], TIME[2:]))
    assert found.events["peak"] == 225
    assert found.events["snap"] == pytest.approx(275, abs=25)
    assert [stage.name for stage in found] == ["prior", "scan", "snapped"]
    assert [stage.stop for stage in found] == [100, found.events["snap"], None]
    prior, scan, snapped = (stage.facts for stage in found)
    assert (prior["common_mass_start"], prior["common_mass_stop"]) == pytest.approx((0.6, 0.8))
    assert scan["distinct_mass_stop"] == snapped["distinct_mass_start"]
    assert (prior["entropy_start"], snapped["entropy_stop"]) == (2.0, 1.0)
    assert (snapped["last_motion"], snapped["largest_motion"]) == (0.001, 0.2)


def test_events_have_intervals():
    found = detect(curves(moving(6), masses=(COMMON, DISTINCT)), clock="t", status="finished")
    for name, event in found.estimates.items():
        assert event.interval[0] <= event.time <= event.interval[1], name  # pyright: ignore
    assert found.intervals["peak"] == (200, 250)


def test_moves_while_the_prior_is_learned_are_no_scan():
    """The largest of all, .5, comes before common types have most attention."""
    prior, later = after_prior(curves(moving(6), masses=(COMMON, DISTINCT)))
    assert (prior, later[0]) == (100, 2)


def test_what_still_moves_has_no_snap():
    found = detect(curves(moving(20), masses=(COMMON, DISTINCT)), clock="t", status="finished")
    assert found.events["peak"] is not None
    assert found.events["snap"] is None
    assert set(found.notes) == {"snap"}
    assert [stage.name for stage in found] == ["prior", "scan"]
    assert found.stages[-1].stop is None


def test_a_run_that_ends_too_soon_after_the_motion_does_not_know_of_a_snap():
    """The same motion until 500 leaves no time to triple before 1000."""
    assert detect(curves(moving(10), masses=(COMMON, DISTINCT)), clock="t", status="finished").events["snap"] is None


def test_motion_that_is_never_above_that_of_the_end_has_no_peak():
    flat = detect(curves(np.full(len(TIME) - 1, 0.08), masses=(COMMON, DISTINCT)), clock="t", status="finished")
    assert (flat.events["peak"], flat.events["snap"]) == (None, None)


def test_attention_that_hardly_moved_has_no_snap():
    tiny = detect(curves(1e-3 * moving(6), masses=(COMMON, DISTINCT)), clock="t", status="finished")
    assert tiny.events["snap"] is None


def test_common_types_that_never_fall_leave_all_to_the_prior():
    found = detect(curves(moving(6), masses=(np.sort(COMMON), DISTINCT)), clock="t", status="finished")
    assert found.events == dict.fromkeys(found.events)
    assert set(found.notes) == set(found.events)
    assert [stage.name for stage in found] == ["prior"]


def test_without_masses_the_loss_says_when_the_prior_is_learned():
    found = detect(curves(moving(6)), clock="step", status="finished")
    assert found.events["prior"] == pytest.approx(1000 * 5 / 6)
    assert "onset" not in found.events
    stuck = detect(curves(moving(6), np.full(len(TIME), 3.0)), clock="step", status="finished")
    assert stuck.events == {"prior": None, "peak": None, "snap": None}


def test_more_frames_do_not_move_events():
    """Halving the distance of frames leaves checkpoints, and so peak and snap, where they are."""
    coarse = curves(moving(6), masses=(COMMON, DISTINCT))
    fine = np.arange(0.0, 1001.0, 25.0)
    masses = tuple(np.interp(fine, TIME, mass) for mass in (COMMON, DISTINCT))
    loss, entropy = (np.interp(fine, TIME, curve) for curve in (coarse.loss, coarse.entropy))
    dense = TextAttention(fine, fine.astype(int), loss, 2.0, entropy, coarse.motion, 1.0, masses)
    events = [detect(item, clock="t", status="finished").events for item in (coarse, dense)]
    assert events[0] == pytest.approx(events[1])
