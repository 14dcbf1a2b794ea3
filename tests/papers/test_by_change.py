"""Frames by change: pilots choose them, and the spec of the run has them as fixed times."""

import numpy as np
import pytest

import stagescope as ss
from stagescope.dynamics.record import AtTimes
from stagescope.errors import InputError
from stagescope.reporting.portrait import portrait
from stagescope.spec import build
from stagescope.views.change import change_of

SKIP = ("ledger", "ladder", "prediction")


@pytest.fixture(scope="module")
def ref() -> ss.Run:
    return ss.run_study("focus-dilution", preset="ref", record="by-change", frames=200, progress=False)


def test_frames_are_equal_changes_apart(ref):
    found = change_of(ref, portrait(ref, skip=SKIP).views)
    assert found is not None
    assert (found.of, ref.frames) == ("attention", 200)
    apart = np.diff(found.at) * (ref.frames - 1)
    assert apart == pytest.approx(1.0, abs=0.1)


def test_the_times_are_fixed_in_the_spec(ref):
    record = build(ref.spec["record"])
    assert isinstance(record, AtTimes)
    assert record.times(800.0) == pytest.approx(ref.time, abs=0)


def test_focus_and_dilution_take_15_percent_of_the_width(ref):
    """2 % in linear time; the bar of issue 22."""
    found = change_of(ref, portrait(ref, skip=SKIP).views)
    assert found is not None
    stages = [stage for stage in ss.stages(ref) if stage.name in ("focus", "dilution") and not stage.track]
    spans = np.array([(stage.start, stage.stop) for stage in stages], dtype=float)
    assert spans.shape == (2, 2)
    assert np.diff(spans).sum() < 0.03 * ref.time[-1]
    assert np.diff(np.interp(spans, ref.time, found.at)).sum() >= 0.15


def test_a_run_without_attention_is_recorded_by_the_change_of_its_predictions():
    run = ss.run_study("linear-icl", preset="merged", record="by-change", frames=60, progress=False)
    found = change_of(run, portrait(run, skip=SKIP).views)
    assert found is not None
    assert (found.of, run.frames) == ("predictions", 60)
    assert np.diff(found.at) * 59 == pytest.approx(1.0, abs=0.1)  # with one pilot up to 4


def test_descents_that_draw_their_data_are_refused():
    with pytest.raises(InputError, match=r"motion without chance.*--record log or uniform"):
        ss.run_study("scan-snap", length=16, batch=4, optimizer="gd", steps=5, record="by-change", progress=False)
