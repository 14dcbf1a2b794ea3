"""Scalars of runs: which there are, what they are called, and that JSON lines give them back."""

import json
import re

import numpy as np
import pytest

import stagescope as ss
from stagescope.runs.run import Arrays, Run
from stagescope.watching.logs import notes, scalars, steps
from tests.runs import samples
from tests.runs.test_export import stepped, watched


def made(**arrays: np.ndarray) -> Run:
    frames = len(next(iter(arrays.values())))
    series = {"step": np.arange(frames), **arrays}
    axes = {name: ("step", *(f"{name}_{i}" for i in range(values.ndim - 1))) for name, values in series.items()}
    return Run(Arrays.of({}), Arrays.of(series), samples.SPEC, clock="step", status="finished", axes=axes)


def rows(run: Run, path) -> list[dict]:
    return [json.loads(line, parse_constant=refuse) for line in ss.to_json_lines(run, path).read_text().splitlines()]


def refuse(word: str) -> None:
    raise AssertionError(f"{word} is no JSON")


@pytest.mark.parametrize("run", [watched(6), samples.memory_run(6), stepped()], ids=["watched", "flow", "stepped"])
def test_json_lines_round_trip(tmp_path, run):
    found = rows(run, tmp_path / "run.jsonl")
    assert [row["_step"] for row in found] == steps(run).tolist()
    for name, values in scalars(run).items():
        np.testing.assert_array_equal(np.array([row[name] for row in found]).astype(values.dtype), values)
    assert set(found[0]) == {"_step", *scalars(run)}


def test_names_have_the_words_of_the_axes():
    found = scalars(watched())
    assert list(found)[:3] == ["loss", "entropy/layer 0/head 0", "entropy/layer 0/head 1"]
    np.testing.assert_array_equal(found["entropy/layer 1/head 2"], watched().series["entropy"][:, 1, 2])
    assert "score_values/layer 0/head 0/value 0" not in found
    assert notes(watched()) == ["no scalars, so not written: score_values, agreement, type_mass, W, value"]


def test_axes_without_a_name_are_numbers():
    assert list(scalars(made(heads=np.zeros((2, 3))))) == ["heads/0", "heads/1", "heads/2"]
    assert len(scalars(made(heads=np.zeros((2, 64))))) == 64
    assert scalars(made(heads=np.zeros((2, 65)))) == {}


def test_the_clock_of_a_flow_is_a_scalar():
    run = samples.memory_run(4)
    assert list(scalars(run)) == ["t", "loss", "A"]
    np.testing.assert_array_equal(steps(run), np.arange(4))
    assert notes(run)[0] == "a flow has no steps: the step is the number of the frame, the time is the scalar t"


def test_what_is_no_number_has_no_key(tmp_path):
    run = made(loss=np.array([1.0, np.nan, np.inf, -np.inf]), heads=np.array([[1, np.nan]] * 4, np.float32))
    found = rows(run, tmp_path / "run.jsonl")
    assert found == [{"_step": i, **({"loss": 1.0} if i == 0 else {}), "heads/0": 1.0} for i in range(4)]
    assert "heads/1" not in scalars(run)


def test_few_digits_for_few_bytes(tmp_path):
    assert rows(made(loss=np.array([0.1], np.float32)), tmp_path / "run.jsonl") == [{"_step": 0, "loss": 0.1}]


def test_hostile_names(tmp_path):
    odd = {"a/b": 1.0, "a_b": 2.0, "\x1b[2J\n": 3.0, "_step": 4.0, "x" * 500: 5.0, "": 6.0}
    found = scalars(made(**{name: np.array([value]) for name, value in odd.items()}))
    assert [values[0] for values in found.values()] == list(odd.values())
    assert all(re.fullmatch(r"[\w .-]{1,102}", name) for name in found)
    [row] = rows(made(**{name: np.array([value]) for name, value in odd.items()}), tmp_path / "run.jsonl")
    assert (row["_step"], row["_step_2"], len(row)) == (0, 4.0, 7)


def test_files_that_will_not_do(tmp_path):
    path = tmp_path / "run.jsonl"
    path.write_text("mine")
    with pytest.raises(ss.InputError, match="exists; choose another file, or --overwrite"):
        ss.to_json_lines(watched(), path)
    assert path.read_text() == "mine"
    assert ss.to_json_lines(watched(), path, overwrite=True) == path
    with pytest.raises(ss.InputError, match="is a folder; choose a file"):
        ss.to_json_lines(watched(), tmp_path)


def test_no_frames(tmp_path):
    empty = watched().only(np.array([], dtype=int))
    assert ss.to_json_lines(empty, tmp_path / "run.jsonl").read_text() == ""
    assert ss.to_tensorboard(empty, tmp_path / "log").is_dir()
