"""A paper that is a package of its own: every command works on it, and no line of the core knows it."""

from pathlib import Path

import numpy as np
import pytest

from tests.third_party.installing import answers, environment, installed, shared

pytestmark = pytest.mark.long
ROOT = Path(__file__).parent.parent.parent
COMMANDS = {
    "list": "list --json",
    "run": "run unigram --out runs/first --json",
    "stages": "stages runs/first --json",
    "check": "check runs/first --json",
    "ladder": "ladder runs/first --json",
    "report": "report runs/first -o first.html --quiet",
    "verify": "verify runs/first --json",
    "cite": "cite unigram",
    "interrupted": "interrupted run unigram --preset skewed --out runs/cut --quiet",
    "resume": "resume runs/cut --json",
    "help": "run unigram --top 1.5 --out runs/bad",
}
SLOW = {
    "figures": "figures runs/first --out figures --skip ladder --quiet",
    "sweep": "sweep unigram --preset half-time --grid top=.4,.6 --workers 1 --out sweeps/half --json",
    "diagram": "diagram sweeps/half --x top --quiet",
}
"""Commands on what the others made that draw or compute for long."""
WITHOUT = {
    "info": "info runs/first --json",
    "verify": "verify runs/first --json",
    "export": "export runs/first --to npz --out first.npz",
    "stages": "stages runs/first --json",
    "list": "list --json",
}


@pytest.fixture(scope="module")
def scratch(tmp_path_factory):
    return shared(tmp_path_factory)


@pytest.fixture(scope="module")
def found(scratch):
    """The answers of all commands with the package installed."""
    return answers(scratch, "with", environment(installed(scratch)), COMMANDS)


@pytest.fixture(scope="module")
def slow(scratch, found):
    """The answers of long commands with the package installed."""
    return answers(scratch, "slow", environment(installed(scratch)), SLOW)


@pytest.fixture(scope="module")
def without(scratch, found):
    """The answers of commands on the same run where the package is not installed."""
    return answers(scratch, "without", environment(), WITHOUT)


@pytest.mark.parametrize("name", [name for name in (*COMMANDS, *SLOW) if name not in ("interrupted", "help")])
def test_every_command_works(found, slow, name):
    answer = (found | slow)[name]
    assert answer.code == 0, answer.err


def test_the_paper_is_listed(found):
    row = found["list"].json["unigram"]
    assert set(row["presets"]) == {"small", "skewed"}
    assert set(row["sweeps"]) == {"half-time"}
    assert set(row["claims"]) == {"unigram:sum", "unigram:rate"}


def test_the_run_is_read(found):
    assert found["run"].json["field"] == "unigram-paper/BiasLoss"
    stages = found["stages"].json
    floor = -np.dot((0.5, 0.3, 0.2), np.log((0.5, 0.3, 0.2)))
    assert stages["stages"][0]["evidence"] == f"the excess loss starts at {np.log(3) - floor:.3g}"
    assert 0.5 < stages["events"]["half"] < 2
    assert {row["tag"]: row["verdict"] for row in found["check"].json["claims"]} == {
        "unigram:sum": "confirmed",
        "unigram:rate": "confirmed",
    }
    (rung,) = found["ladder"].json["rungs"]
    assert rung["loss"] == pytest.approx(floor, abs=1e-9)


def test_the_page_and_the_figures_show_the_run(found, slow, scratch):
    assert found["report"].code == 0
    assert "Logits learn the frequencies" in (scratch / "first.html").read_text()
    assert any("loss" in path.name for path in (scratch / "figures").iterdir())


def test_a_named_sweep_is_computed_and_drawn(slow, scratch):
    assert slow["sweep"].json["rows"] == 2
    assert slow["sweep"].json["failed"] == []
    figure = Path(slow["diagram"].out.splitlines()[0])
    assert figure.name.startswith("half-over-top")
    assert (scratch / figure).exists()


def test_files_are_verified_and_the_reference_is_printed(found):
    assert found["verify"].json["intact"] is True
    assert "Logits Learn Frequencies" in found["cite"].out
    assert "arXiv" not in found["cite"].out
    assert "unigram:rate" in found["cite"].out


def test_an_interrupted_run_is_resumed(found):
    assert found["interrupted"].code == 130
    resumed = found["resume"].json
    assert resumed["status"] == "finished"
    assert resumed["field"] == "unigram-paper/BiasLoss"


def test_a_bad_option_is_refused_with_its_name(found):
    assert found["help"].code == 2
    assert "top" in found["help"].err


def test_without_the_package_its_files_stay_readable(without, scratch):
    assert without["info"].json["field"] == "unigram-paper/BiasLoss"
    assert without["verify"].json["intact"] is True
    assert np.load(scratch / "first.npz")["b"].shape == (400, 3)
    assert "unigram" not in without["list"].json


def test_without_the_package_stages_are_those_of_the_loss(without):
    """Relies on: the stages of a run of a type that no installed paper has say which package is missing."""
    found = without["stages"].json
    assert {stage["name"].split()[0] for stage in found["stages"]} <= {"plateau", "transition", "no", "whole"}
    assert "unigram" in found["notes"]["paper"]
    assert "not installed" in found["notes"]["paper"]


def test_the_core_does_not_know_it():
    for path in (ROOT / "src").rglob("*.py"):
        assert "unigram_paper" not in path.read_text(), path
