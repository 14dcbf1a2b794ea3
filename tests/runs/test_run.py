"""A run as a value: clocks, frames, lazy read-only arrays, xarray; and names that cannot be stored."""

import numpy as np
import pytest

import stagescope as ss
from stagescope.core.errors import InputError
from stagescope.runs.run import Arrays
from tests.runs import samples


def test_arrays_are_read_once_and_read_only():
    asked = []

    def read(name):
        asked.append(name)
        return np.zeros(3)

    arrays = Arrays(("a", "b"), read)
    assert list(arrays) == ["a", "b"]
    assert len(arrays) == 2
    assert asked == []
    assert arrays["a"] is arrays["a"]
    assert asked == ["a"]
    with pytest.raises(ValueError, match="read-only"):
        arrays["a"][0] = 1.0
    with pytest.raises(KeyError, match="'c' was not recorded; recorded: a, b"):
        _ = arrays["c"]
    assert "c" not in asked


def test_a_flow_has_time_and_no_steps():
    run = samples.memory_run(frames=4)
    np.testing.assert_array_equal(run.t, run.time)
    assert run.frames == 4
    assert run.done
    with pytest.raises(InputError, match=r"a flow has no steps; use run.t"):
        _ = run.step


def test_adam_has_steps_and_no_time():
    series = Arrays.of({"step": np.arange(3), "loss": np.ones(3)})
    run = ss.Run(params=Arrays.of({}), series=series, spec=samples.SPEC, clock="step", status="finished")
    np.testing.assert_array_equal(run.step, [0, 1, 2])
    assert run.time.dtype == float
    with pytest.raises(InputError, match="clock is 'step'"):
        _ = run.t


def test_one_frame():
    run = samples.memory_run(frames=4)
    np.testing.assert_array_equal(run.at(2)["W"], samples.frame(2)["W"])
    assert run.frames == 4


@pytest.mark.parametrize(("status", "done"), [("finished", True), ("stopped", True), ("diverged", False), ("interrupted", False)])
def test_what_counts_as_done_and_how_it_is_shown(status, done):
    run = samples.memory_run(frames=3, status=status, reason="because")
    assert run.done is done
    assert repr(run) == f"<Run own: 3 frames to t=0.2, {status} (because)>"


def test_the_digest_is_of_the_config_or_else_of_the_spec():
    assert samples.memory_run().config_digest == samples.memory_run(seed=3).config_digest
    assert samples.memory_run(config={"a": 1}).config_digest != samples.memory_run(config={"a": 2}).config_digest


def test_to_xarray_has_named_axes():
    run = samples.memory_run(frames=4, study="scan-snap")
    dataset = run.to_xarray()
    assert dict(dataset.sizes) == {"t": 4, "W_0": 2, "W_1": 3}
    assert "t" in dataset.coords
    np.testing.assert_array_equal(dataset["W"].sel(t=run.t[2]), run.params["W"][2])
    assert dataset.attrs == {"clock": "t", "status": "finished", "study": "scan-snap"}


def test_to_xarray_of_an_unfinished_run(tmp_path):
    run = ss.load(samples.unfinished(tmp_path / "run", frames=8))
    dataset = run.to_xarray()
    assert dataset.sizes["t"] == 8
    assert dataset.attrs["status"] == "interrupted"


@pytest.mark.parametrize("name", ["../x", "a/b", "a b", ".", "..", "", "t", "step", "loss", "speed", "a.b", "0a", "é"])
def test_names_that_cannot_be_stored_are_refused(tmp_path, name):
    objective = ss.JaxObjective(lambda params: 0.0)
    with pytest.raises(InputError, match="name"):
        ss.evolve(objective, {name: np.ones(1)}, ss.GradientFlow(), until=1.0, out=tmp_path / "run")
    assert list(tmp_path.iterdir()) == []


def test_a_place_that_is_taken_is_refused_before_any_work(tmp_path):
    samples.finished(tmp_path / "run")

    def never(params):
        raise AssertionError("the loss was asked for")

    with pytest.raises(InputError, match="not empty"):
        ss.evolve(ss.JaxObjective(never), {"W": np.ones(1)}, ss.GradientFlow(), until=1.0, out=tmp_path / "run")
    with pytest.raises(InputError, match="not empty"):
        ss.evolve(ss.JaxObjective(never), {"W": np.ones(1)}, ss.Descent(steps=3), out=tmp_path / "run")


def test_a_loss_that_is_not_finite_at_the_start_leaves_no_folder(tmp_path):
    objective = ss.JaxObjective(lambda params: (params["W"] / 0.0).sum())
    with pytest.raises(InputError, match="initial parameters"):
        ss.evolve(objective, {"W": np.ones(1)}, ss.GradientFlow(), until=1.0, out=tmp_path / "run")
    assert list(tmp_path.iterdir()) == []
