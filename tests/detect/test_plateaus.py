"""Stages of a loss alone: planted steps are found and divide the run, everything else is one stage that says why."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stagescope.detect.limits import LIMITS
from stagescope.detect.plateaus import curve_notes, loss_stages, read_curves, thinned
from stagescope.detect.transitions import curve_events, transitions

STEPS = np.unique(np.concatenate([np.round(np.geomspace(1, 10_000, 150)), np.linspace(0, 10_000, 60).round()]))
WIDTH = 0.1


def planted(*centres: float, height: float = 1.0, noise: float = 0.01, seed: int = 0, time: np.ndarray = STEPS) -> np.ndarray:
    """A loss that falls by `height` at each centre, with white noise."""
    u, last = np.log(time + time[-1] / 300), time[-1]
    steps = sum(1 / (1 + np.exp(-(u - np.log(c + last / 300)) / WIDTH)) for c in centres)
    return 5.0 - height * steps + noise * np.random.default_rng(seed).normal(size=len(time))


def stages(loss: np.ndarray | None, time: np.ndarray = STEPS, status: str = "finished"):
    good = loss is not None and status == "finished"
    found = tuple(("loss", each) for each in curve_events(time, loss)) if good else ()
    return loss_stages(status, "step", time, loss, found, {})


def test_plateaus_and_transitions_take_turns_from_the_first_record_to_the_last():
    found = stages(planted(200, 2000))
    assert [stage.name for stage in found] == ["plateau 1", "transition 1", "plateau 2", "transition 2", "plateau 3"]
    assert found.stages[0].start == STEPS[0]
    assert found.stages[-1].stop is None
    for before, after in zip(found.stages, found.stages[1:], strict=False):
        assert before.stop == after.start
        assert before.start < before.stop
    for name, true in (("transition 1", 200), ("transition 2", 2000)):
        low, high = found.json()["intervals"][name]
        assert low <= true <= high
        assert found.states[name] == "reached"
        stage = next(stage for stage in found if stage.name == name)
        assert stage.start < true < stage.stop
        assert stage.facts["t"] == found.events[name]
        assert stage.facts["amplitude"] == pytest.approx(-1, abs=0.05)
    levels = [stage.facts["loss_median"] for stage in found if stage.name.startswith("plateau")]
    assert levels == pytest.approx([5, 4, 3], abs=0.03)


@pytest.mark.parametrize(
    ("loss", "name", "records"),
    [
        (np.full(200, 2.0), "no transition", 200),
        (np.geomspace(1, 0.1, 200), "no transition", 200),
        (np.full(200, np.nan), "whole run", 0),
        (np.arange(LIMITS.fewest - 1.0), "whole run", LIMITS.fewest - 1),
        (np.ones(1), "whole run", 1),
    ],
)
def test_one_stage_where_there_is_nothing_to_divide(loss, name, records):
    found = stages(loss, np.arange(len(loss), dtype=float))
    (stage,) = found
    assert (stage.name, stage.start, stage.stop, stage.facts["records"]) == (name, 0.0, None, records)
    assert not found.events


def test_a_fall_that_begins_with_the_first_record_is_said_to():
    """An exponential with time constant 10 has made 1 - exp(-3) of its way by step 30, the end of the first twentieth."""
    time = np.arange(601.0)
    (stage,) = stages(3.2 + 1.35 * np.exp(-time / 10), time)
    assert stage.name == "no transition"
    assert "95% of that by step = 30: a change that begins with the first record is no transition" in stage.evidence
    (even,) = stages(3.2 + 1.35 * np.exp(-time / 600), time)
    assert "faster than the rest of the run" in even.evidence
    assert "first record" not in even.evidence


def test_without_a_loss_and_after_a_breakdown_nothing_is_divided():
    assert [stage.name for stage in stages(None)] == ["whole run"]
    found = stages(planted(200), status="diverged")
    assert [stage.name for stage in found] == ["whole run"]
    assert "diverged" in found.stages[0].evidence


def test_a_loss_that_rises_has_transitions_too():
    found = stages(-planted(500))
    assert found.stages[1].facts["amplitude"] > 0
    assert "rises" in found.stages[1].evidence


@settings(max_examples=8, deadline=None)
@given(power=st.integers(-250, 250))
def test_the_unit_of_a_curve_does_not_matter(power):
    """Also where squares of its numbers overflow or vanish."""
    (plain,) = transitions(STEPS, planted(500))
    (found,) = transitions(STEPS, planted(500) * 10.0**power)
    assert (found.t, found.low, found.high) == pytest.approx((plain.t, plain.low, plain.high), rel=1e-3)
    assert found.amplitude == pytest.approx(plain.amplitude * 10.0**power, rel=1e-3)


def test_records_that_are_not_finite_are_left_out_and_counted():
    loss = planted(500)
    loss[[3, 50, -1]] = np.nan, np.inf, -np.inf
    (found,) = transitions(STEPS, loss)
    assert found.low <= 500 <= found.high
    assert curve_notes("step", STEPS, {"loss": loss})["loss"].startswith(f"3 of {len(STEPS)} records are not finite")


def test_an_interval_holds_the_records_around_it():
    """A jump between two records may have been anywhere between them."""
    time = np.arange(0.0, 3000.0, 50.0)
    loss = np.where(time < 1020, 2.0, 1.0) + 1e-4 * np.random.default_rng(0).normal(size=len(time))
    (found,) = transitions(time, loss)
    assert found.low <= 1000 < 1050 <= found.high


def test_long_curves_are_averaged_in_bins():
    time = np.arange(50_000.0)
    (found,) = transitions(time, planted(9000, noise=0.02, time=time))
    assert found.low <= 9000 <= found.high
    assert "50,000 records were averaged" in curve_notes("step", time, {"loss": time})["loss"]


def test_places_of_few_records_are_even_in_time_and_in_ln_time():
    chosen = thinned(np.arange(50_000.0), 600)
    assert len(chosen) <= 602
    assert (chosen[0], chosen[-1]) == (0, 49_999)
    assert np.all(np.diff(chosen) > 0)


def test_a_spike_is_a_stage_of_its_own():
    loss = planted(300) + 1.5 * np.where(STEPS >= 3000, np.exp(-(STEPS - 3000) / 300), 0)
    found = stages(loss)
    assert [stage.name for stage in found] == ["plateau 1", "transition 1", "plateau 2", "spike 1", "plateau 3"]
    assert set(found.events) == {"transition 1", "spike 1"}
    assert [event.kind for _, event in found.transitions] != ["spike"]
    assert len(found.transitions) == 1


def test_which_series_are_curves():
    one, many = np.zeros(5), np.zeros((5, 2))
    series = {"step": one, "t": one, "heads": many, "entropy": one, "speed": one, "loss": one, "tokens": one}
    assert read_curves("tokens", series) == ["loss", "entropy"]


def test_an_estimated_origin_is_said():
    time = 1e6 + np.arange(100.0)
    assert "step" in curve_notes("step", time, {"loss": np.zeros(100)})
    assert "step" not in curve_notes("step", time - 1e6, {"loss": np.zeros(100)})


def test_curves_beyond_the_limit_are_counted():
    series = {f"c{i}": np.zeros(20) for i in range(LIMITS.curves + 3)}
    assert f"{LIMITS.curves + 3} curves" in curve_notes("step", np.arange(20.0), series)["curves"]


def test_a_drop_between_two_records_is_said():
    """Evenly spaced records hide what is learned early; a noisy curve jumps everywhere, and nothing is said."""
    step = np.arange(0.0, 1000.0, 20.0)
    notes = curve_notes("step", step, {"loss": 1 + 3 * np.exp(-step / 5)})
    assert "lies between the records at step = 0 and 20" in notes["loss"]
    assert curve_notes("step", step, {"loss": 1 + 3 * np.exp(-step / 200)}) == {}
    assert curve_notes("step", step, {"loss": np.random.default_rng(0).normal(size=len(step))}) == {}
