"""Papers of other people: one that cannot be used is left out with one sentence, and nothing else is affected."""

import json
import sys
from dataclasses import replace
from importlib.metadata import EntryPoint
from types import ModuleType

import pytest

import stagescope as ss
import stagescope.papers
from stagescope.claims.reference import Reference, Tag
from stagescope.cli.main import run as command
from stagescope.errors import InputError
from stagescope.options import Options
from stagescope.papers import registry
from stagescope.papers.paper import Kind, Paper
from stagescope.papers.reading import Reading
from stagescope.papers.study import Study
from stagescope.runs.manifest import read as read_manifest
from stagescope.runs.saving import save
from tests.runs import samples

OURS = ["focus-dilution", "incremental", "scan-snap"]
STUDY = Study(
    name="toy",
    title="A toy",
    options=Options,
    presets={},
    setup=lambda options, seed: None,  # pyright: ignore[reportArgumentType]
    kinds=(Kind(fields=("toy_paper.loss:Toy",), read=lambda run: None),),
)
PAPER = Paper(
    name="toy",
    reference=Reference("toy2026", "A toy", "A. Author", 2026, "", ""),
    tags={"Toy:law": Tag("eq. 1", "b moves")},
    studies=(STUDY,),
)


def clear():
    for cached in (registry._found, registry._kinds, registry.tags):
        cached.cache_clear()


@pytest.fixture
def install(monkeypatch):
    """Install objects as the papers of packages; None is a package that is not there."""

    def install(**packages):
        for name, paper in packages.items():
            if paper is not None:
                module = ModuleType(name)
                module.__dict__["PAPER"] = paper
                monkeypatch.setitem(sys.modules, name, module)
        entries = [EntryPoint(name, f"{name}:PAPER", registry.GROUP) for name in packages]
        monkeypatch.setattr(registry, "entry_points", lambda group: entries)
        clear()

    yield install
    clear()


def test_ours_have_no_problem():
    assert registry.problems() == ()
    assert sorted(registry.papers()) == OURS


def test_a_paper_from_outside_is_found(install):
    install(toy_paper=PAPER)
    assert registry.problems() == ()
    assert sorted(registry.papers()) == [*OURS, "toy"]
    assert registry.study("toy") is STUDY
    assert registry.paper_of("toy") is PAPER
    assert registry.kind_of("toy-paper/Toy") is STUDY.kinds[0]
    assert registry.tags()["Toy:law"] is PAPER.tags["Toy:law"]


def shared(**changes) -> Paper:
    return replace(PAPER, name="other", **changes)


BAD = {
    "no such package": (None, "ModuleNotFoundError: No module named 'bad_paper'"),
    "no paper": ({"name": "toy"}, "it is of type dict, not a stagescope Paper"),
    "a class": (Paper, "it is of type type, not a stagescope Paper"),
    "name of ours": (replace(PAPER, name="scan-snap"), "has the name 'scan-snap' already"),
    "study of ours": (
        replace(PAPER, studies=(replace(STUDY, name="text-snap"),)),
        "has the study 'text-snap' already",
    ),
    "tag of ours": (
        replace(PAPER, tags={"SnS:data": Tag("", "")}),
        "has the tag 'SnS:data' already",
    ),
    "type of field of ours": (
        replace(
            PAPER,
            studies=(replace(STUDY, kinds=(Kind(("stagescope.papers.scan_snap.loss:PairwisePopulation",), read=print),)),),
        ),
        "has the type of field 'scan-snap/PairwisePopulation' already",
    ),
    "general tag": (replace(PAPER, tags={"flow:field": Tag("", "")}), "the tag 'flow:field' is one of Stagescope's own"),
    "no study": (replace(PAPER, studies=("toy",)), "it has 'toy' among its studies"),  # pyright: ignore[reportArgumentType]
    "two studies of one name": (replace(PAPER, studies=(STUDY, STUDY)), "two of its studies have the same name"),
    "a field that is no target": (
        replace(PAPER, studies=(replace(STUDY, kinds=(Kind(("toy_paper.Toy",), read=print),)),)),
        "'toy_paper.Toy' does not name a type of field; write it as 'package.module:Type'",
    ),
}


@pytest.mark.parametrize("case", BAD)
def test_a_paper_that_cannot_be_used_is_left_out(install, case):
    paper, sentence = BAD[case]
    install(bad_paper=paper, good_paper=replace(PAPER, name="good", tags={}, studies=()))
    assert sorted(registry.papers()) == sorted([*OURS, "good"])
    [problem] = registry.problems()
    assert problem.startswith("the paper at bad_paper:PAPER was left out: ")
    assert sentence in problem
    assert "\n" not in problem
    assert sorted(registry.studies()) == sorted(study.name for name in OURS for study in registry.papers()[name].studies)


@pytest.mark.parametrize(
    ("second", "sentence"),
    [
        (replace(PAPER, tags={}, studies=()), "has the name 'toy' already"),
        (shared(tags={}, studies=(replace(STUDY, kinds=()),)), "has the study 'toy' already"),
        (shared(studies=()), "has the tag 'Toy:law' already"),
        (
            shared(tags={}, studies=(replace(STUDY, name="other"),)),
            "has the type of field 'toy-paper/Toy' already",
        ),
    ],
    ids=["name", "study", "tag", "type of field"],
)
def test_two_papers_of_other_people_share_nothing(install, second, sentence):
    install(a_paper=PAPER, b_paper=second)
    assert registry.papers()["toy"] is PAPER
    [problem] = registry.problems()
    assert "b_paper" in problem
    assert sentence in problem


@pytest.mark.parametrize("line", ["raise RuntimeError('first line\\nsecond line')", "import sys; sys.exit('no')", "1 +", "x = y"])
def test_a_paper_that_fails_to_import(install, tmp_path, monkeypatch, line):
    (tmp_path / "bad_paper.py").write_text(line + "\n")
    monkeypatch.syspath_prepend(tmp_path)
    install(bad_paper=None)
    [problem] = registry.problems()
    assert "at bad_paper:PAPER was left out" in problem
    assert "\n" not in problem
    assert sorted(registry.papers()) == OURS


def test_a_stray_folder_among_our_papers(tmp_path, monkeypatch, install):
    (tmp_path / "leftover" / "__pycache__").mkdir(parents=True)
    (tmp_path / "stray_thing").mkdir()
    (tmp_path / "stray_thing" / "__init__.py").touch()
    monkeypatch.setattr("stagescope.papers.__path__", [*stagescope.papers.__path__, str(tmp_path)])
    install()
    assert sorted(registry.papers()) == OURS
    [problem] = registry.problems()
    assert "stagescope.papers.stray_thing was left out" in problem
    sys.modules.pop("stagescope.papers.stray_thing", None)


def test_the_command_line_says_what_was_left_out(install, capsys):
    install(bad_paper=None, worse_paper=3)
    assert command(["list", "--json"]) == 0
    shown = capsys.readouterr()
    assert set(json.loads(shown.out)) == set(registry.studies())
    assert shown.err.splitlines() == [f"stagescope: {problem}" for problem in registry.problems()]
    assert len(registry.problems()) == 2
    assert command(["run", "toy", "--out", "nowhere"]) == 2
    assert "unknown study 'toy'" in (said := capsys.readouterr().err)
    assert all(problem in said for problem in registry.problems())


# a run whose paper is not there


@pytest.fixture
def foreign(tmp_path):
    """Runs of a type that no installed package has: a finished one, and one that was killed."""
    spec = {**samples.SPEC, "field": {"type": "toy-paper/Toy", "size": 3}}
    run = replace(samples.memory_run(), spec=spec, study="toy", config={"study": "toy", "seed": 0})
    folders = [save(run, tmp_path / name) for name in ("done", "killed")]
    manifest = read_manifest(folders[1]).model_copy(update={"status": "running"})
    (folders[1] / "manifest.json").write_bytes(manifest.text())
    return dict(zip(("done", "killed"), folders, strict=True))


@pytest.mark.parametrize("verb", ["stages", "check", "ladder", "resume"])
def test_what_needs_the_paper_names_its_package(foreign, verb, capsys):
    folder = foreign["killed" if verb == "resume" else "done"]
    assert command([verb, str(folder)]) == 2
    [line] = capsys.readouterr().err.splitlines()
    assert "type Toy of the package 'toy_paper', which is not installed" in line


def test_what_is_wrong_with_the_paper_is_said_too(foreign, install):
    install(toy_paper=None)
    with pytest.raises(InputError, match="No module named 'toy_paper'"):
        ss.stages(ss.load(foreign["done"]))


def test_a_paper_whose_model_fails_to_import(foreign, install):
    install(toy_paper=replace(PAPER, studies=(replace(STUDY, kinds=(Kind(("toy_paper.loss:Toy",), read=Reading),)),)))
    with pytest.raises(InputError, match=r"toy-paper/Toy cannot be used: toy_paper.loss fails to import"):
        ss.saddle_ladder(ss.load(foreign["done"]), progress=False)


def test_the_rest_works_without_the_paper(foreign, tmp_path, capsys):
    folder = str(foreign["done"])
    assert command(["info", folder, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["field"] == "toy-paper/Toy"
    assert command(["verify", folder]) == 0
    assert command(["export", folder, "--to", "npz", "--out", str(tmp_path / "run.npz")]) == 0
    capsys.readouterr()
    assert command(["report", folder, "--out", str(tmp_path / "page.html")]) == 0
    assert "the package 'toy_paper', which is not installed" in capsys.readouterr().out
