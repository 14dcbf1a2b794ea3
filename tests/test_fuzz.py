"""Damaged and hostile folders, 300 of them: the long version is `python -m validation fuzz`."""

import time

import pytest

from validation import fuzz, fuzzing

PATIENCE = 60.0
"""Seconds until a command counts as hanging: a busy machine is slow."""


@pytest.fixture(scope="module")
def good(tmp_path_factory):
    return fuzz.runs(tmp_path_factory.mktemp("good"))


@pytest.mark.long
def test_100_mutated_runs_do_no_harm(good, tmp_path, monkeypatch):
    """No traceback, no hang, no write outside the folder, no wrong data."""
    monkeypatch.setattr(fuzzing, "SECONDS", PATIENCE)
    found = fuzz.hunt(good, tmp_path, cases=100, seed=1, commands=0.02)
    assert found.cases.total() == 100
    assert found.said == []


def _fails(folder):
    raise KeyError("x")


def _hangs(folder):
    time.sleep(2 * PATIENCE)


def _writes(folder):
    (folder.parent / "notes.txt").write_text("theirs")
    (folder.parent / "new").write_text("")


@pytest.mark.parametrize(
    ("wrong", "said"), [(_fails, "KeyError"), (_hangs, "more than"), (_writes, "new was written outside the folder")]
)
def test_what_goes_wrong_is_seen(good, tmp_path, monkeypatch, wrong, said):
    monkeypatch.setattr(fuzzing, "verify", wrong)
    monkeypatch.setattr(fuzzing, "SECONDS", 0.2 if wrong is _hangs else PATIENCE)
    found = fuzz.hunt(good, tmp_path, cases=1, seed=1, commands=0.0)
    assert said in found.said[0]


def test_other_arrays_are_seen(good, tmp_path, monkeypatch):
    case = fuzzing.Case(tmp_path, good["run"], (), hashed=False)
    (tmp_path / "notes.txt").write_text("mine")
    (tmp_path / "folder").mkdir()
    monkeypatch.setattr(fuzzing, "arrays_of", lambda folder: {"W": b"1"})
    assert fuzzing.try_run(case, {"W": b"2"}, ()) == ["other arrays are served"]
