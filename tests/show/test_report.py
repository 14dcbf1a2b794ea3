"""Writing a report: what it says of a run, what it refuses before anything takes long, and what it never touches."""

import os
import shutil
import webbrowser
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import stagescope as ss
from stagescope.cli.main import run as command
from stagescope.show import static
from stagescope.show.report import names, write
from tests.browser.samples import portrait
from tests.runs import samples
from tests.show.decode import Parts
from tests.show.runs import small


@pytest.fixture(scope="module")
def stored(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("report") / "flow"
    ss.run_study("scan-snap", preset="syn-small-flow", until=50, frames=40, out=folder, progress=False)
    return folder


NULL = ss.Inputs("frozen", "nothing moves", lambda seed: ss.run_study("scan-snap", rate_z=0.0, until=1.0))


def runs_of(path: Path) -> list[dict]:
    return [run for scene in Parts(path.read_text()).data()["scenes"] for run in scene["runs"]]


def test_a_run_or_its_folder_gives_the_same_file(stored, tmp_path):
    first = ss.report(stored, tmp_path / "a.html", skip=["ladder", "ledger"])
    second = ss.report([ss.load(stored)], str(tmp_path / "b.html"), skip=["ladder", "ledger"])
    assert first == tmp_path / "a.html"
    assert first.read_bytes() == second.read_bytes()


def test_the_page_says_what_the_library_says(stored, tmp_path):
    run = ss.load(stored)
    made = ss.report(run, tmp_path / "a.html", skip=("ladder",))
    (found,) = runs_of(made)
    assert found["name"] == "flow"
    assert [row["verdict"] for row in found["ledger"]] == [row.verdict for row in ss.check(run)]
    assert [(one["name"], one["start"], one["stop"]) for one in found["stages"]] == [
        (s.name, s.start, s.stop) for s in ss.stages(run)
    ]
    assert found["events"] == dict(ss.stages(run).events)
    assert found["ladder"] is None
    assert any("ladder" in note for note in found["notes"])
    parts = Parts(made.read_text())
    loss = next(view for view in found["views"] if view["slot"] == "loss")
    np.testing.assert_array_equal(parts.array(found["time"]), run.t)
    assert any(np.array_equal(parts.array(curve["values"]), run.series["loss"]) for curve in loss["curves"])


def own_claim(tag="own:falls", **more):
    def compare(evidence):
        fallen = evidence.run.series["loss"][0] - evidence.run.series["loss"][-1]
        return ss.Comparison("> 0", fallen, "sign", fallen > 0, f"the loss falls by {fallen:.3g}")

    parts = {"tag": tag, "statement": "The loss falls", "regime": lambda evidence: ss.Regime(True, "any run")}
    return ss.Claim(**{**parts, "compare": compare, "shown": ("start", "end"), **more})


def test_own_claims_are_rows_of_the_page(stored, tmp_path):
    run = ss.load(stored)
    own = [own_claim(), own_claim("own:<script>", statement="</script><b>"), own_claim("own:zero", compare=lambda e: 1 / 0)]
    (found,) = runs_of(ss.report(run, tmp_path / "a.html", skip=("ladder",), claims=own, progress=False))
    rows = found["ledger"][-3:]
    assert [row["tag"] for row in found["ledger"][:-3]] == [row.tag for row in ss.check(run)]
    assert [(row["tag"], row["verdict"]) for row in rows] == [
        ("own:falls", "confirmed"),
        ("own:<script>", "confirmed"),
        ("own:zero", "inconclusive"),
    ]
    assert rows[0]["span"] == [run.t[0], run.t[-1]]
    assert rows[0]["calibrated"] is False
    assert "ZeroDivisionError" in rows[2]["reason"]


def test_own_claims_on_a_run_of_no_paper(tmp_path):
    loss = ss.JaxObjective(lambda params: ((params["x"] ** 2 - 1) ** 2).sum(), name="two wells")
    run = ss.evolve(loss, {"x": np.array([0.5])}, ss.GradientFlow(), until=5, progress=False)
    (found,) = runs_of(
        ss.report(
            run,
            tmp_path / "a.html",
            claims=own_claim(null=NULL),
            progress=False,
        )
    )
    assert [(row["tag"], row["verdict"], row["calibrated"]) for row in found["ledger"]] == [("own:falls", "confirmed", True)]
    (without,) = runs_of(ss.report(run, tmp_path / "b.html", progress=False))
    assert without["ledger"] is None


def test_own_claims_are_in_the_text_of_figures(tmp_path, monkeypatch):
    monkeypatch.setattr(static, "drawings", lambda found: {})
    own = [own_claim(), own_claim("own:zero", compare=lambda e: 1 / 0)]
    (made,) = ss.figures(small("pairwise"), tmp_path / "figures", skip="ladder", claims=own, progress=False)
    lines = made.read_text().splitlines()
    assert any(line.startswith("| confirmed | The loss falls [own:falls]") for line in lines)
    assert any("uncalibrated" in line for line in lines)
    assert any(line.startswith("1 claim met an error") and "own:zero" in line for line in lines)


def test_runs_with_one_name_are_told_apart(stored):
    run = ss.load(stored)
    plain = replace(run, path=None)
    assert names([run]) == ["flow"]
    other = replace(run, path=Path("elsewhere/flow"))
    above = stored.resolve().parent.name
    assert names([run, other]) == [f"{above}/flow", "elsewhere/flow"]
    assert len(set(names([run, run, plain, plain, other]))) == 5


# refusals


@pytest.mark.parametrize("path", ["folder", "missing/a.html", "a.txt", "a"])
def test_a_bad_path_is_refused_before_the_run_is_read(path, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("folder").mkdir()
    with pytest.raises(ss.InputError, match=path.split("/")[0]):
        ss.report("no such run", path)
    assert os.listdir(tmp_path) == ["folder"]


def test_a_file_that_is_no_report_is_never_replaced(tmp_path):
    mine = tmp_path / "thesis.html"
    mine.write_text("<!doctype html><title>mine</title>")
    with pytest.raises(ss.InputError, match="no report of Stagescope"):
        write([portrait()], mine)
    assert mine.read_text() == "<!doctype html><title>mine</title>"
    made = write([portrait()], tmp_path / "a.html")
    before = made.read_bytes()
    assert write([portrait(seed=1)], made).read_bytes() != before


@pytest.mark.parametrize(("runs", "said"), [([], "no run"), (3, "3 is no run"), ([None], "None is no run")])
def test_what_is_no_run_is_refused(runs, said, tmp_path):
    with pytest.raises(ss.InputError, match=said):
        ss.report(runs, tmp_path / "a.html")


def test_a_run_without_frames_and_an_unknown_part_are_refused(tmp_path):
    with pytest.raises(ss.InputError, match="no frame"):
        ss.report(samples.memory_run(0), tmp_path / "a.html")
    with pytest.raises(ss.InputError, match="did you mean 'ledger'"):
        ss.report(samples.memory_run(2), tmp_path / "a.html", skip=["legder"])
    with pytest.raises(ss.InputError, match="did you mean 'ledger'"):
        ss.report(samples.memory_run(2), tmp_path / "a.html", skip="legder")
    with pytest.raises(ss.NotARun):
        ss.report(tmp_path, tmp_path / "a.html")
    assert os.listdir(tmp_path) == []


def test_a_failed_write_leaves_the_earlier_report_and_nothing_else(tmp_path, monkeypatch):
    made = write([portrait()], tmp_path / "a.html")
    before = made.read_bytes()

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(ss.StoreError, match="disk is full"):
        write([portrait(seed=1)], made)
    assert made.read_bytes() == before
    assert os.listdir(tmp_path) == ["a.html"]


def test_a_run_that_failed_has_a_page_that_says_so(tmp_path):
    run = replace(samples.memory_run(1), status="failed", reason="the loss overflowed")
    (found,) = runs_of(ss.report(run, tmp_path / "a.html"))
    assert (found["status"], found["reason"]) == ("failed", "the loss overflowed")
    assert found["frames"] == 1
    assert any("overflowed" in note for note in found["notes"])


# the command


def test_the_command(stored, tmp_path, capsys, monkeypatch):
    opened = []
    monkeypatch.setattr(webbrowser, "open", lambda url: bool(opened.append(url)) or len(opened) > 1)
    other = shutil.copytree(stored, tmp_path / "other")
    words = ["report", str(stored), str(other), "-o", str(tmp_path / "a.html"), "--skip", "ladder", "ledger", "--title", "Two"]
    assert command([*words, "--open"]) == 0
    said = capsys.readouterr()
    assert str(tmp_path / "a.html") in said.out
    assert "no browser was found" in said.err
    assert command([*words, "--open", "--quiet", "--exact"]) == 0
    said = capsys.readouterr()
    assert (said.out, said.err) == (f"{tmp_path / 'a.html'}\n", "")
    assert opened == [(tmp_path / "a.html").as_uri()] * 2
    data = Parts((tmp_path / "a.html").read_text()).data()
    assert data["title"] == "Two"
    assert [[run["name"] for run in scene["runs"]] for scene in data["scenes"]] == [["flow", "other"]]
    assert [run["ledger"] for run in data["scenes"][0]["runs"]] == [None, None]


@pytest.mark.parametrize(
    ("words", "said"),
    [(("nowhere", "-o", "a.html"), "nowhere"), (("-o", "a.html"), "no run"), (("nowhere", "-o", "a.txt"), ".html")],
)
def test_the_command_says_what_is_wrong(words, said, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert command(["report", *words]) == 2
    printed = capsys.readouterr().err
    assert printed.startswith("stagescope: ")
    assert said in printed
    assert printed.count("\n") == 1
