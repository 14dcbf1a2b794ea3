"""Every command's answer when all is well, the keys of its JSON, and what it does not import."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import tyro

import stagescope as ss
from stagescope.cli import paper_commands as tour
from stagescope.cli.command import OUT
from stagescope.cli.main import COMMANDS, CONFIG, VERBS, run
from stagescope.core.options import option_words
from stagescope.flow.evolve import Journey
from stagescope.readings.registry import paper_of, papers, studies
from stagescope.views.view import Portrait
from tests.runs import samples


@pytest.fixture(scope="module")
def made(tmp_path_factory) -> Path:
    """A run of the smallest preset, made through the command line."""
    folder = tmp_path_factory.mktemp("commands") / "run"
    assert run(["run", "scan-snap", "--preset", "syn-small-flow", "--out", str(folder), "--quiet"]) == 0
    return folder


@pytest.fixture
def ask(capsys):
    """Run a command that must succeed and say nothing on standard error; its output."""

    def ask(*words: str | Path) -> str:
        try:
            code = run([str(word) for word in words])
        except SystemExit as end:
            code = int(end.code or 0)
        printed = capsys.readouterr()
        assert (code, printed.err) == (0, "")
        return printed.out

    return ask


def test_run_says_how_it_ended_and_what_to_do_next(tmp_path, ask):
    said = ask("run", "scan-snap", "--until", "20", "--frames", "30", "--out", tmp_path / "run", "--seed", "3")
    assert said.startswith("finished: 30 frames to t = 20, loss ")
    assert f"stagescope stages {tmp_path / 'run'}" in said
    assert ss.load(tmp_path / "run").seed == 3


def test_run_as_json_is_the_same_as_info(tmp_path, ask):
    said = json.loads(ask("run", "scan-snap", "--until", "5", "--frames", "10", "--out", tmp_path / "run", "--json"))
    assert said == json.loads(ask("info", tmp_path / "run", "--json"))


def test_a_preset_sets_the_defaults_and_options_override_it(tmp_path, ask):
    words = ("--until", "5", "--frames", "10", "--quiet")
    ask("run", "scan-snap", "--preset", "syn-small-flow-10", "--out", tmp_path / "preset", *words)
    ask("run", "scan-snap", "--rate-y", "3", "--preset=syn-small-flow-10", "--out", tmp_path / "both", *words)
    rates = [(ss.load(tmp_path / name).config or {})["rate_y"] for name in ("preset", "both")]
    assert rates == [10.0, 3.0]


def test_descents_from_the_command_line(tmp_path, ask):
    ask("run", "scan-snap", "--optimizer", "heavy-ball", "--steps", "20", "--out", tmp_path / "ball", "--quiet")
    ask("run", "scan-snap", "--preset", "syn-small-adam", "--steps", "20", "--out", tmp_path / "adam", "--quiet")
    assert ss.load(tmp_path / "ball").clock == "t"
    assert ss.load(tmp_path / "adam").clock == "step"


def test_resume_finishes_a_run(tmp_path, ask, capsys, monkeypatch):
    walk = Journey.walk

    def cut(journey, state):
        for i, point in enumerate(walk(journey, state)):
            if i == 6:
                raise KeyboardInterrupt
            yield point

    with monkeypatch.context() as patch:
        patch.setattr(Journey, "walk", cut)
        assert run(["run", "scan-snap", "--until", "5", "--frames", "30", "--quiet", "--out", str(tmp_path / "run")]) == 130
    assert f"stagescope resume {tmp_path / 'run'}" in capsys.readouterr().err
    assert ask("resume", tmp_path / "run").startswith("finished: 30 frames to t = 5")


def test_verify(made, ask):
    assert ask("verify", made) == f"{made}: every byte is as it was committed\n"
    assert json.loads(ask("verify", made, "--json")) == {"run": str(made), "intact": True, "problems": []}


def test_verify_of_several_folders(made, tmp_path, capsys):
    broken = samples.finished(tmp_path / "broken")
    (broken / "events.jsonl").write_bytes(b"")
    (tmp_path / "empty").mkdir()
    folders = [str(folder) for folder in (made, broken, tmp_path / "empty")]
    assert run(["verify", *folders]) == 1
    said = capsys.readouterr()
    assert said.out == f"{made}: every byte is as it was committed\n"
    assert [line.partition(" ")[0] for line in said.err.splitlines()] == [f"{broken}/events.jsonl:", folders[2]]
    assert run(["verify", *folders, "--json"]) == 1
    assert [each["intact"] for each in json.loads(capsys.readouterr().out)] == [True, False, False]
    assert run(["verify", folders[0], folders[0]]) == 0
    assert run(["verify"]) == 2


def test_verify_of_a_damaged_run_as_json(tmp_path, capsys):
    folder = samples.finished(tmp_path / "run")
    (folder / "data.zarr/t/c/0").write_bytes(b"")
    assert run(["verify", str(folder), "--json"]) == 1
    found = json.loads(capsys.readouterr().out)
    assert not found["intact"]
    assert "data.zarr/t/c/0: damaged" in found["problems"][0]


def test_info(made, ask):
    said = ask("info", made)
    assert "scan-snap" in said
    assert "finished" in said
    found = json.loads(ask("info", made, "--json"))
    keys = "run study status reason clock frames last params field source dynamics seed config config_digest environment"
    assert list(found) == keys.split()
    assert found["frames"] == 400
    assert found["params"] == {"Y": [30, 3], "Z": [2, 30]}


def test_stages(made, ask):
    assert "snapped" in ask("stages", made)
    found = json.loads(ask("stages", made, "--json"))
    assert set(found) == {"status", "clock", "events", "intervals", "states", "stages", "transitions", "notes"}
    assert found["clock"] == "t"
    assert set(found["events"]) == {"onset", "winner", "peak", "slow", "snap"}
    assert all(when is None or isinstance(when, float) for when in found["events"].values())
    assert all(set(stage) == {"name", "start", "stop", "evidence", "track", "facts"} for stage in found["stages"])


def test_stages_that_were_not_reached_are_left_to_all(tmp_path, ask):
    ask("run", "scan-snap", "--until", "20", "--frames", "60", "--out", tmp_path / "run", "--quiet")
    short, whole = ask("stages", tmp_path / "run"), ask("stages", tmp_path / "run", "--all")
    missing = [name for name, when in json.loads(ask("stages", tmp_path / "run", "--json"))["events"].items() if when is None]
    assert f"not reached: {', '.join(missing)} (--all lists them with reasons)" in short
    assert [line.split()[0] for line in whole.splitlines() if " not reached" in line] == missing


def test_check(made, ask):
    said = ask("check", made, "--explain")
    assert "confirmed" in said
    assert "\ndistinct token " in said.partition("Symbols:")[2]  # a symbol of its claims
    found = json.loads(ask("check", made, "--json"))
    assert {"status", "claims"} <= set(found)
    keys = {"tag", "statement", "regime", "predicted", "measured", "tolerance", "verdict", "reason", "shown"}
    keys |= {"kind", "group", "calibrated", "predicted_error", "measured_error", "unit", "error"}
    keys |= {"rules", "in_regime", "elsewhere", "cost", "over_runs", "rates"}
    assert all(set(claim) == keys for claim in found["claims"])
    assert {claim["verdict"] for claim in found["claims"]} <= {"confirmed", "violated", "inconclusive", "not applicable"}


@pytest.fixture
def own(tmp_path, monkeypatch):
    """A folder with a module of claims, in which the command is called."""
    (tmp_path / "own_command_claims.py").write_text(
        "import stagescope as ss\n"
        "CLAIM = ss.Claim(tag='own:end', statement='It ends', regime=lambda e: ss.Regime(True, 'any run'),\n"
        "    compare=lambda e: ss.Comparison(0.0, e.run.time[-1], 0.0, e.run.time[-1] > 0, 'the end'))\n"
    )
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    yield tmp_path
    sys.modules.pop("own_command_claims", None)


def test_own_claims(made, own, ask):
    words = ("--claims", "own_command_claims:CLAIM")
    written = json.loads(ask("check", made, "--json"))["claims"]
    found = json.loads(ask("check", made, "--json", *words))["claims"]
    assert found[:-1] == written
    assert {"tag": "own:end", "verdict": "confirmed", "calibrated": False}.items() <= found[-1].items()
    assert "own:end" in ask("check", made, *words)
    ask("report", made, "--out", own / "page.html", "--skip", "ladder", "--quiet", *words)
    assert "own:end" in (own / "page.html").read_text()


def test_list(ask, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    lines = ask("list").splitlines()
    assert len(lines) < 24
    assert max(map(len, lines)) <= 80
    assert [line.split()[0] for line in lines if line[1:2].isalnum() and line[0] == " "][1:] == list(studies())
    assert "syn-small-flow" in ask("list", "scan-snap")
    found = json.loads(ask("list", "--json"))
    assert {"title", "paper", "presets", "claims"} <= set(found["scan-snap"])
    assert found["scan-snap"]["presets"]["syn-small-flow-10"] == {"rate_y": 10.0}


@pytest.mark.long
@pytest.mark.parametrize("name", list(studies()))
def test_settings_of_a_preset_can_be_pasted(name):
    """What `list` prints is understood by `run` and gives the preset."""
    found = studies()[name]
    for preset, values in found.presets.items():
        words = [word for key, value in values.items() for word in option_words(key, value)]
        chosen = tyro.cli(found.options, args=words, config=CONFIG)
        assert chosen == found.configured(preset), preset


def test_export(made, ask, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert ask("export", made, "--to", "npz") == "run.npz\n"
    with np.load("run.npz", allow_pickle=False) as found:
        np.testing.assert_array_equal(found["Z"], ss.load(made).params["Z"])
    assert ask("export", made, "--to", "csv", "-o", "series.csv") == "series.csv\n"
    assert Path("series.csv").read_text().startswith("t,loss,speed\n")
    assert ask("export", made, "--to", "netcdf") == "run.nc\n"
    assert ask("export", made, "--to", "netcdf", "--overwrite") == "run.nc\n"


def test_export_of_scalars(made, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for to in ("jsonl", "tensorboard"):
        assert run(["export", str(made), "--to", to]) == 0
        printed = capsys.readouterr()
        assert printed.out == f"run.{to}\n"
        assert printed.err == (
            "note: a flow has no steps: the step is the number of the frame, the time is the scalar t\n"
            "note: no scalars, so not written: Y, Z\n"
        )
    lines = [json.loads(line) for line in Path("run.jsonl").read_text().splitlines()]
    assert [line["loss"] for line in lines] == list(ss.load(made).series["loss"])
    assert ss.from_tensorboard("run.tensorboard").frames == len(lines)


def test_cite(ask):
    said = ask("cite", "scan-snap")
    assert "@misc{tian2023scan" in said
    assert "arXiv:2305.16380" in said
    assert "SnS:order" in said


def test_completion(ask):
    said = ask("completion", "bash")
    assert "complete" in said
    assert "scan-snap" in said
    assert "--num-common-per-last" in said


def test_every_command_that_writes_takes_the_short_option():
    kinds = {**COMMANDS, **{verb: flags for verb, (_, flags) in VERBS.items()}}
    writers = {name: kind for name, kind in kinds.items() if "out" in kind.model_fields}
    assert {"run", "sweep", "figures", "export", "report", "demo"} <= set(writers)
    assert all(OUT in kind.__annotations__["out"].__metadata__ for kind in writers.values())


def test_the_tour_has_a_stop_of_every_paper():
    assert {paper_of(study.name).name for study, *_ in tour.tour()} == set(papers())


@pytest.mark.long
def test_demo(ask, tmp_path, monkeypatch):
    """The tour ends with a report over its stops. It may be taken twice: it replaces its own runs and report."""
    stops = [stop for stop in tour.tour() if stop[0].name in ("linear-icl", "scan-snap")]
    said = _take(ask, tmp_path, monkeypatch, stops[:2])
    assert "claims: 8 confirmed" in said
    assert " groups of " in said  # counted as `check` counts


def test_a_demo_finds_a_page_of_somebody_else_before_it_runs(tmp_path, capsys):
    (tmp_path / "report.html").write_text("mine")
    assert run(["demo", "--out", str(tmp_path)]) == 2
    assert "is no report of Stagescope" in capsys.readouterr().err
    assert [path.name for path in tmp_path.iterdir()] == ["report.html"]


def test_an_interrupted_demo_says_what_is_left(tmp_path, capsys, monkeypatch):
    """The second run is interrupted, then what is read off the first one."""
    stops = [stop for stop in tour.tour() if stop[0].name == "scan-snap"]
    monkeypatch.setattr(tour, "tour", lambda: stops)
    monkeypatch.setattr("stagescope.show.portrait.portrait", lambda run, name: Portrait(name, run, ()))
    (first, second), walk = [tmp_path / f"scan-snap-{preset}" for _, preset, _ in stops], Journey.walk

    def cut(journey, state):
        for place, point in enumerate(walk(journey, state)):
            if place > 3 and second.exists():
                raise KeyboardInterrupt
            yield point

    def late(run, name):
        raise ss.Interrupted("give out=FOLDER")

    monkeypatch.setattr(Journey, "walk", cut)
    assert run(["demo", "--quiet", "--out", str(tmp_path)]) == 130
    said = capsys.readouterr().err
    assert f"continue with `stagescope resume {second}`; finished runs: {first}" in said
    monkeypatch.setattr(Journey, "walk", walk)
    monkeypatch.setattr("stagescope.show.portrait.portrait", late)
    assert run(["demo", "--quiet", "--out", str(tmp_path)]) == 130
    assert capsys.readouterr().err == f"stagescope: interrupted; no page was written; finished runs: {first}\n"


@pytest.mark.long
def test_the_whole_demo(ask, tmp_path, monkeypatch):
    said = _take(ask, tmp_path, monkeypatch, tour.tour())
    assert len(said.splitlines()) <= 24
    assert "stages from t = 0 condensation, 75.7 focus, 90.1 dilution" in said
    assert "claims: 10 confirmed" in said


def _take(ask, tmp_path, monkeypatch, stops):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setattr(tour, "tour", lambda: stops)
    said = ask("demo", "--quiet")
    assert max(map(len, said.splitlines())) <= 80
    for study, *_ in stops:
        assert f"{study.name}: " in said
    assert f"The page with all of it: {Path('demo/report.html')}" in said
    text = Path("demo/report.html").read_text()
    assert all(study.title.split(":")[0] in text for study, *_ in stops)
    assert "confirmed" in ask("demo", "--quiet", "--quick", "--out", "demo")
    assert len(Path("demo/report.html").read_text()) < len(text)
    assert all(ss.load(path).done for path in Path("demo").iterdir() if path.is_dir())
    return said


@pytest.mark.parametrize("words", [("--help",), ("run", "--help"), ("run", "scan-snap", "--help"), ("verify", "--help")])
def test_help(ask, words):
    assert "usage: stagescope" in ask(*words)


def test_the_first_screen_names_every_command_and_explains_the_words(ask, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    said = ask("--help")
    assert said == ask() == ask("-h")
    assert len(said.splitlines()) < 24
    assert max(map(len, said.splitlines())) <= 80
    start, rest = said.split("Words")
    explained, listed = rest.split("All commands")
    assert sorted(name for line in listed.splitlines() for name in line.split()[1:]) == sorted((*VERBS, *COMMANDS, "completion"))
    assert [line.split()[0] for line in start.splitlines()[-5:]] == ["demo", "list", "run", "check", "report"]
    assert {line.split()[0] for line in explained.splitlines() if line} == {"study", "preset", "stage", "claim", "rung"}


@pytest.mark.parametrize("words", [*[(name,) for name in (*VERBS, *COMMANDS)], ("run", "markov-icl")], ids=" ".join)
def test_help_fits_and_names_no_default_that_is_nothing(ask, monkeypatch, words):
    monkeypatch.setenv("COLUMNS", "80")
    said = ask(*words, "--help")
    assert max(map(len, said.splitlines())) <= 80
    assert "default: None" not in said
    assert "default: False" not in said


def test_help_still_names_defaults(ask):
    assert "(default: 30)" in ask("calibrate", "--help")
    assert "(default: gradient)" in " ".join(ask("run", "scan-snap", "--help").replace("│", " ").split())


# what is not imported

HEAVY = ("numpy", "jax", "numba", "matplotlib", "scipy", "sksundae", "optax", "xarray", "zarr")


PAPERS = tuple(f"stagescope.papers.{name.replace('-', '_')}" for name in papers())


def imported(*words: str | Path) -> set[str]:
    """The heavy packages and the papers that commands import, one after the other (";") in a process of its own."""
    code = f"""
import sys
from itertools import groupby
from stagescope.cli.main import run
for between, words in groupby(sys.argv[1:], lambda word: word == ";"):
    try:
        between or run(list(words))
    except SystemExit:
        pass
print("imported:", *[name for name in {HEAVY + PAPERS!r} if name in sys.modules])
"""
    done = subprocess.run([sys.executable, "-c", code, *map(str, words)], capture_output=True, text=True, check=True)
    return set(done.stdout.splitlines()[-1].split()[1:])


@pytest.mark.parametrize("words", [("--help",), ("run", "--help"), ("run", "scan-snap", "--help"), ("nonsense",)], ids=" ".join)
def test_help_imports_nothing_heavy(words):
    assert imported(*words) & set(HEAVY) == set()


def test_reading_a_run_imports_neither_jax_nor_another_paper(tmp_path):
    run = tmp_path / "run"
    made = ("run", "focus-dilution", "--until", 150, "--frames", 100, "--out", run, "--quiet")
    found = imported(*made, ";", "check", run, "--quiet", ";", "ladder", run)
    assert "stagescope.papers.focus_dilution" in found
    assert found & {"jax", "optax", "matplotlib", *PAPERS} == {"stagescope.papers.focus_dilution"}


def test_importing_the_package_imports_nothing_heavy():
    code = f"import stagescope, sys; print([name for name in {HEAVY!r} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


def test_a_flow_and_its_answers_never_import_jax(tmp_path):
    found = imported("run", "scan-snap", "--preset", "syn-small-flow", "--out", tmp_path / "run", "--quiet")
    assert found & {"jax", "optax", "matplotlib", "xarray", "zarr", *PAPERS} == {"stagescope.papers.scan_snap"}
    assert "numba" in found
    export = ("export", tmp_path / "run", "--to", "csv", "--out", tmp_path / "run.csv")
    assert imported("verify", tmp_path / "run", ";", "info", tmp_path / "run", ";", *export) <= {"numpy"}


def test_calibrate(monkeypatch, capsys):
    """The table on a terminal and as JSON; the exit code says whether every claim meets its bars."""
    from stagescope.claims.calibration import Calibration

    monkeypatch.setattr(
        "stagescope.readings.calibrate.calibrate", lambda study, draws, first, **_: Calibration(study, (), ("broken",))
    )
    assert run(["calibrate", "scan-snap", "--draws", "2", "--json"]) == 1
    assert json.loads(capsys.readouterr().out)["failed"] == ["broken"]
    assert run(["calibrate", "scan-snap", "--quiet"]) == 1
    assert "1 draws failed" in capsys.readouterr().out
