"""`stagescope stopping` from the shell."""

import json

import pytest

from stagescope.cli.main import run
from stagescope.cli.render import print_stopping
from stagescope.papers.incremental.stopping.study import EarlyStopping
from stagescope.views import figure

SMALL = "--vocab 6 --spans 1 1 --targets 4 --heads 2 --scale 3 --frames 40 --steps 100 --sizes 10,30 --repetitions 2 --workers 1"


def test_table_json_and_figure(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(figure, "FORMATS", ("png",))
    assert run(["stopping", *SMALL.split(), "--json", "--out", str(tmp_path / "out")]) == 0
    said = json.loads(capsys.readouterr().out)
    assert [entry["sequences"] for entry in said["summary"]] == [10, 30]
    assert said["settings"]["clip"] == 1.0
    made = {path.name for path in (tmp_path / "out").iterdir()}
    assert made == {"figure-stopping.json", "figure-stopping.png"}
    stored = json.loads((tmp_path / "out" / "figure-stopping.json").read_text())
    assert stored["summary"] == said["summary"]
    print_stopping(EarlyStopping(said["settings"], said["levels"], said["runs"], ()))
    table = capsys.readouterr().out
    assert f"{said['summary'][0]['loss']['oracle']:.3f}" in table
    assert "of 4 runs" in table
    first = said["summary"][0]
    assert " ".join(map(str, first["class_at_stop"])) in table
    assert f"in {sum(entry['same_class'] for entry in said['summary'])} of " in table


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("--sizes 0", "size 0"),
        ("--repetitions 0", "repetitions is 0, but it takes at least 2"),
        ("--preset gd-ladder", "labels hard"),
        ("--preset nothing", "unknown preset"),
        ("--batch 60", "larger than the 50"),
    ],
)
def test_errors_are_sentences(words, said, capsys):
    assert run(["stopping", *words.split()]) != 0
    heard = capsys.readouterr().err
    assert said in heard
    assert "Traceback" not in heard


def test_runs_that_fail_are_told(capsys):
    words = SMALL + " --optimizer gd --rate-values 1e200"
    assert run(["stopping", *words.split()]) == 1
    assert "diverged" in capsys.readouterr().err
