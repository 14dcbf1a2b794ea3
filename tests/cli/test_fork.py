"""The command `fork`."""

import json

import numpy as np
import pytest

import stagescope as ss
from stagescope.cli.main import run as command


@pytest.fixture(scope="module")
def parent(tmp_path_factory):
    folder = tmp_path_factory.mktemp("fork") / "run"
    ss.run_study("focus-dilution", optimizer="gd", lr=0.1, steps=30, out=folder, progress=False)
    return folder


def test_a_fork_says_how_far_it_is_from_its_parent(parent, tmp_path, capsys):
    words = ["--at", "t=1.05", "--set", "lr=0.2", "rates.W1=2", "--freeze", "WQ", "WK", "--out", str(tmp_path / "new")]
    assert command(["fork", str(parent), *words]) == 0
    said = capsys.readouterr()
    assert said.err == "note: no frame was recorded at t=1.05: forked at the one before, t=1 (frame 10)\n"
    assert said.out.startswith("forked at t = 1; apart by 1 % at t = ")
    assert "loss there" in said.out
    made = ss.load(tmp_path / "new")
    assert np.all(made.params["WQ"][10:] == made.params["WQ"][10])
    assert made.spec["dynamics"]["after"]["rates"]["W1"] == 2.0
    assert command(["info", str(tmp_path / "new")]) == 0
    assert "Forked" in capsys.readouterr().out


def test_json_has_the_difference_and_the_notes(parent, tmp_path, capsys):
    words = ["--at", "step=10", "--perturb", "1e-3", "--steps", "20", "--out", str(tmp_path / "new"), "--json"]
    assert command(["fork", str(parent), *words]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["frames"] == 21
    assert "pushed by 0.001 along direction 1" in found["notes"][0]
    assert found["difference"]["distance"][10] == 0
    assert found["difference"]["distance"][11] == pytest.approx(1e-3, rel=0.1)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--set", "lr"], "'lr' names no value; write NAME=VALUE, such as lr=0.05"),
        (["--set", "lr=1", "lr=2"], "lr is given twice"),
        (["--set", "length=9"], "`stagescope run focus-dilution --length ...` makes another run"),
        (["--set", "lr=fast"], "lr: must be a valid number"),
    ],
)
def test_mistakes_are_sentences(parent, tmp_path, capsys, words, said):
    assert command(["fork", str(parent), "--at", "step=10", "--out", str(tmp_path / "new"), *words]) == 2
    assert said in capsys.readouterr().err
    assert not (tmp_path / "new").exists()
