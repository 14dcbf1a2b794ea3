"""Commands on runs of your own objective, which `--objective module:name` gives."""

import json
import sys
from pathlib import Path

import numpy as np
import pytest

import stagescope as ss
from stagescope.cli.main import run as command
from stagescope.runs.manifest import read as read_manifest
from tests.show.decode import Parts

MODULE = """
import numpy as np
import stagescope as ss

def wells(params):
    return ((params["x"] ** 2 - 1) ** 2).sum()

loss = ss.JaxObjective(wells)
other = ss.JaxObjective(wells, name="other")
number = 3

def make():
    return ss.JaxObjective(wells)

def broken():
    raise ValueError("no data")

def needs(size):
    return loss
"""
NAME = "own_model_of_a_test"


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder with a module and a finished run of its objective."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.delitem(sys.modules, NAME, raising=False)
    (tmp_path / f"{NAME}.py").write_text(MODULE)
    loss = ss.JaxObjective(lambda params: ((params["x"] ** 2 - 1) ** 2).sum(), name="wells")
    start = {"x": np.array([1e-3])}
    ss.evolve(loss, start, ss.GradientFlow(), until=10, record=ss.Uniform(frames=200), progress=False, out="run")
    yield "run"
    sys.modules.pop(NAME, None)


@pytest.mark.long
@pytest.mark.parametrize("name", ["loss", "make"])
def test_the_ladder_of_an_own_objective(folder, name, capsys):
    assert command(["ladder", folder, "--objective", f"{NAME}:{name}", "--quiet", "--json"]) == 0
    rungs = json.loads(capsys.readouterr().out)["rungs"]
    assert [rungs[0]["label"], rungs[-1]["label"].split()[-1]] == ["1 maximum", "minimum"]
    assert rungs[0]["rates"][0] == pytest.approx(4, rel=1e-6)


@pytest.mark.parametrize("more", [(), ("--objective", f"{NAME}:loss")])
def test_stages_and_report_with_and_without(folder, more, tmp_path, capsys):
    assert command(["stages", folder, *more, "--json"]) == 0
    names = [stage["name"] for stage in json.loads(capsys.readouterr().out)["stages"]]
    assert names == ["plateau 1", "transition 1", "plateau 2"]
    assert command(["report", folder, *more, "--out", "page.html", "--quiet"]) == 0
    (scene,) = Parts((tmp_path / "page.html").read_text()).data()["scenes"]
    (shown,) = scene["runs"]
    assert [stage["name"] for stage in shown["stages"]] == names
    assert (shown["ladder"] is not None) == bool(more)


def test_an_interrupted_run_is_resumed(folder, capsys):
    killed = read_manifest(Path(folder)).model_copy(update={"status": "running"})
    (Path(folder) / "manifest.json").write_bytes(killed.text())
    assert command(["resume", folder, "--quiet"]) == 2
    (said,) = capsys.readouterr().err.splitlines()
    assert "--objective MODULE:NAME" in said
    assert command(["resume", folder, "--objective", f"{NAME}:loss", "--quiet"]) == 0
    assert ss.load(folder).status == "finished"


def test_without_it_the_ladder_says_how_to_give_it(folder, capsys):
    assert command(["ladder", folder, "--quiet"]) == 2
    (said,) = capsys.readouterr().err.splitlines()
    assert "--objective MODULE:NAME" in said


@pytest.mark.long
@pytest.mark.parametrize(
    ("given", "said"),
    [
        ("nothing", "'nothing' names no objective; write module:NAME"),
        ("no_such_module_here:loss", "the module 'no_such_module_here' of the objective cannot be imported: there is none in"),
        (f"{NAME}:losss", f"the module '{NAME}' has no 'losss'; it has"),
        (f"{NAME}:number", "gives int; name an Objective"),
        (f"{NAME}:broken", "raised ValueError: no data"),
        (f"{NAME}:needs", "was called without arguments to make an objective, and raised TypeError"),
        (f"{NAME}:other", "this run moves the objective 'wells', not 'other'"),
    ],
)
@pytest.mark.parametrize("verb", ["stages", "ladder", "report"])
def test_what_is_wrong_is_said_in_one_sentence(folder, verb, given, said, capsys):
    assert command([verb, folder, "--objective", given]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert said in line


def test_an_objective_for_a_run_that_has_its_own_is_refused(folder, capsys):
    ss.from_arrays(step=range(5), loss=range(5)).save("arrays")
    ss.run_study("focus-dilution", until=5.0, frames=5, out="study", progress=False)
    for name, said in (("arrays", "no law of motion"), ("study", "leave yours out")):
        assert command(["stages", name, "--objective", f"{NAME}:loss"]) == 2
        assert said in capsys.readouterr().err
        assert command(["report", name, "--objective", f"{NAME}:loss"]) == 2
        assert "leave it out" in capsys.readouterr().err
