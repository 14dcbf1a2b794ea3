"""Papers of other people: one that cannot be used is left out with one sentence, and nothing else is affected."""

import json
import sys
from dataclasses import replace
from importlib.metadata import EntryPoint
from types import ModuleType
from typing import Any

import pytest

import stagescope as ss
import stagescope.papers
from stagescope.claims.reference import Reference, Tag
from stagescope.cli.main import run as command
from stagescope.core.errors import InputError
from stagescope.core.options import Options
from stagescope.readings import registry
from stagescope.readings.checking import check_owner
from stagescope.readings.paper import Kind, Paper
from stagescope.readings.reading import Reading
from stagescope.readings.study import NamedSweep, Study
from stagescope.runs.manifest import read as read_manifest
from stagescope.runs.writer import save
from tests.runs import samples

OURS = ["focus-dilution", "incremental", "linear-icl", "markov-icl", "scan-snap"]
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
    for cached in (registry._load_all, registry._load_one, registry._kinds, registry.tags, registry._watched):
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


def with_study(**changes: Any) -> Paper:
    return replace(PAPER, studies=(replace(STUDY, **changes),))


def with_kinds(*fields: Any, **changes: Any) -> Paper:
    """A paper with one kind for each argument."""
    return with_study(kinds=tuple(Kind(**{"fields": each, "read": print, **changes}) for each in fields))


def shared(**changes) -> Paper:
    return replace(PAPER, name="other", **changes)


BAD = {
    "no such package": (None, "ModuleNotFoundError: No module named 'bad_paper'"),
    "no paper": ({"name": "toy"}, "it is of type dict, not a stagescope Paper"),
    "a class": (Paper, "it is of type type, not a stagescope Paper"),
    "name of ours": (
        replace(PAPER, name="scan-snap"),
        "the paper at stagescope.papers.scan_snap has the name 'scan-snap' already",
    ),
    "study of ours": (
        replace(PAPER, studies=(replace(STUDY, name="text-snap"),)),
        "the paper at stagescope.papers.scan_snap has the study 'text-snap' already",
    ),
    "tag of ours": (
        replace(PAPER, tags={"SnS:data": Tag("", "")}),
        "the paper at stagescope.papers.scan_snap has the tag 'SnS:data' already",
    ),
    "type of field of ours": (
        with_kinds(("stagescope.papers.scan_snap.loss:PairwisePopulation",)),
        "the paper at stagescope.papers.scan_snap has the type of field 'scan-snap/PairwisePopulation' already",
    ),
    "general tag": (replace(PAPER, tags={"flow:field": Tag("", "")}), "the tag 'flow:field' is one of Stagescope's own"),
    "no study": (replace(PAPER, studies=("toy",)), "it has a column 'studies' that has 'toy' in it; expected a Study"),  # pyright: ignore[reportArgumentType]
    "two studies of one name": (replace(PAPER, studies=(STUDY, STUDY)), "two of its studies have the same name"),
    "a field that is no target": (
        with_kinds(("toy_paper.Toy",)),
        "'toy_paper.Toy' does not name a type; write it as 'package.module:Type'",
    ),
    "a type of the core": (with_kinds(("stagescope.x:own",)), "'stagescope.x:own' is not of its package 'bad_paper'"),
    "a type of another package": (PAPER, "'toy_paper.loss:Toy' is not of its package 'bad_paper'"),
    "a type in two kinds": (
        with_kinds(("bad_paper.loss:Toy",), ("bad_paper.loss:Toy",)),
        "it names the type of field 'bad-paper/Toy' 2 times",
    ),
    **{
        f"column {column} is {value!r}": (replace(PAPER, **{column: value}), sentence)
        for column, value, sentence in [
            ("name", 3, "'name' that is 3; expected a str"),
            ("reference", "toy2026", "'reference' that is 'toy2026'; expected a Reference"),
            ("tags", ["Toy:law"], "'tags' that is ['Toy:law']; expected a Mapping"),
            ("tags", {"Toy:law": "b moves"}, "'tags' that has 'b moves' in it; expected a Tag"),
            ("tags", {3: Tag("", "")}, "'tags' that has the name 3"),
            ("studies", STUDY, "'studies' that is Study("),
            ("forms", ("toy_paper.loss:Toy",), "'forms' that is ('toy_paper.loss:Toy',); expected a Mapping"),
            ("forms", {"population": "toy_paper.loss:Toy"}, "'forms' that has 'toy_paper.loss:Toy' in it; expected a tuple"),
            ("forms", {"population": ("toy_paper",)}, "'toy_paper' does not name a type"),
            ("forms", {"populatoin": ()}, "unknown form of loss 'populatoin'; did you mean 'population'?"),
            ("about_text", "words", "'about_text' that is 'words'; expected a function"),
            ("watched", None, "'watched' that is None; expected a function"),
        ]
    },
    **{
        f"study with {column} {value!r}": (with_study(**{column: value}), sentence)
        for column, value, sentence in [
            ("name", 3, "'name' that is 3"),
            ("options", dict, "has the options <class 'dict'>; expected a type derived from Options"),
            ("options", 3, "has the options 3"),
            ("presets", ["small"], "'presets' that is ['small']"),
            ("presets", {"small": 3}, "'presets' that has 3 in it"),
            ("setup", None, "'setup' that is None"),
            ("kinds", ("toy_paper.loss:Toy",), "'kinds' that has 'toy_paper.loss:Toy' in it; expected a Kind"),
            ("ledger", "small", "'ledger' that is 'small'; expected a tuple"),
            ("ledger", ("small",), "unknown preset of toy in its ledger: 'small'"),
            ("tour", ("small",), "'tour' that is ('small',)"),
            ("tour", {"small": "It is small."}, "unknown preset of toy in its tour: 'small'"),
            ("sweeps", {"wide": {}}, "'sweeps' that has {} in it; expected a NamedSweep"),
            ("sweeps", {"wide": NamedSweep("", preset="small")}, "unknown preset of toy in its sweeps: 'small'"),
            ("sweeps", {"wide": NamedSweep("", preset=None, grid=3)}, "'grid' that is 3"),  # pyright: ignore[reportArgumentType]
            ("measures", print, "'measures' that is <built-in function print>"),
            ("measures", {"rank": 3}, "'measures' that has 3 in it; expected a function"),
        ]
    },
    "fields is text": (with_kinds("toy_paper.loss:Toy"), "'fields' that is 'toy_paper.loss:Toy'; expected a tuple"),
    "read is no function": (with_kinds(("toy_paper.loss:Toy",), read=3), "'read' that is 3; expected a function"),
}


def test_options_of_a_preset_are_checked_where_a_sweep_has_its_name(install):
    install(toy_paper=with_study(presets={"a": {"nope": 1}}, sweeps={"a": NamedSweep("", preset="a")}))
    assert "unknown option of toy in its preset 'a': 'nope'" in registry.problems()[0]


def test_a_type_of_ours_belongs_to_the_package_of_a_paper():
    with pytest.raises(InputError, match=r"'stagescope.x:own' is not in the package of a paper"):
        check_owner(with_kinds(("stagescope.x:own",)), package=None)


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
        (replace(PAPER, tags={}, studies=()), "the paper at toy_paper:PAPER has the name 'toy' already"),
        (shared(tags={}, studies=(replace(STUDY, kinds=()),)), "the paper at toy_paper:PAPER has the study 'toy' already"),
        (shared(studies=()), "the paper at toy_paper:PAPER has the tag 'Toy:law' already"),
        (
            shared(tags={}, studies=(replace(STUDY, name="other"),)),
            "the paper at toy_paper:PAPER has the type of field 'toy-paper/Toy' already",
        ),
    ],
    ids=["name", "study", "tag", "type of field"],
)
def test_two_papers_of_other_people_share_nothing(install, second, sentence):
    install(**{"toy_paper": PAPER, "toy_paper.second": second})
    assert registry.papers()["toy"] is PAPER
    [problem] = registry.problems()
    assert "at toy_paper.second:PAPER was left out" in problem
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
    monkeypatch.setattr(registry, "FOLDERS", [*registry.FOLDERS, str(tmp_path)])
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


# what a paper names and what its functions do


def test_a_form_that_cannot_be_used_affects_no_other_loss(install):
    focus = ss.study("focus-dilution")
    loss: Any = focus.setup(focus.configured("ref"), 0).what
    forms = {"population": ("toy_paper.nowhere:Toy", "toy_paper:PAPER")}
    install(toy_paper=replace(PAPER, forms=forms))
    found = registry.papers()
    for name in OURS:  # so that the bad forms come first
        found[name] = found.pop(name)
    assert ss.population_loss(loss.model, loss.process) == loss
    with pytest.raises(
        InputError, match=r"known: TokenAttention on Chain; .*toy_paper.nowhere:Toy cannot be used: ModuleNotFoundError"
    ):
        ss.population_loss(3, loss.process)


def fails(*arguments: Any) -> Any:
    raise RuntimeError("too short\nreally")


@pytest.mark.parametrize(("about", "sentence"), [(fails, "RuntimeError: too short ("), (lambda *_: 3, "about_text returned 3")])
def test_corpus_shows_the_other_papers(install, capsys, about, sentence):
    call = ["corpus", "topics", "--vocab", "20", "--window", "16", "--json"]
    install()
    assert command(call) == 0
    ours = capsys.readouterr().out
    install(toy_paper=replace(PAPER, about_text=about))
    assert command(call) == 0
    shown = capsys.readouterr()
    assert shown.out == ours
    [line] = shown.err.splitlines()
    assert line.startswith(f"stagescope: what toy predicts is left out: {sentence}")


def test_reproduce_without_a_ledger_writes_none(install, tmp_path, capsys):
    install(toy_paper=PAPER)
    assert command(["reproduce", "toy", "--out", str(tmp_path / "out"), "--quiet"]) == 0
    assert not list(tmp_path.rglob("ledger*"))


@pytest.mark.long
def test_a_sweep_whose_study_is_missing(tmp_path):
    ss.sweep("scan-snap", "syn-small-flow", grid={"rate_y": "1,2"}, measure=["numbers"], out=tmp_path, workers=1, progress=False)
    table = ss.load_sweep(tmp_path)
    with pytest.raises(InputError, match="study 'toy', which belongs to a package that is not installed"):
        table.recreate({**table.rows[0], "study": "toy"})


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


@pytest.mark.parametrize("verb", ["check", "ladder", "resume"])
def test_what_needs_the_paper_names_its_package(foreign, verb, capsys):
    folder = foreign["killed" if verb == "resume" else "done"]
    assert command([verb, str(folder)]) == 2
    [line] = capsys.readouterr().err.splitlines()
    assert "type Toy of the package 'toy_paper', which is not installed" in line


def test_what_is_wrong_with_the_paper_is_said_too(foreign, install):
    install(toy_paper=None)
    with pytest.raises(InputError, match="No module named 'toy_paper'"):
        ss.check(ss.load(foreign["done"]))


def test_stages_without_the_paper_are_those_of_the_loss(foreign, capsys):
    """It has five records: too few for transitions. A note names the package."""
    assert command(["stages", str(foreign["done"]), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert [stage["name"] for stage in found["stages"]] == ["whole run"]
    assert found["events"] == found["intervals"] == found["states"] == {}
    assert "type Toy of the package 'toy_paper', which is not installed" in found["notes"]["paper"]


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


def test_a_type_that_our_paper_does_not_have(tmp_path):
    spec = {**samples.SPEC, "field": {"type": "scan-snap/Nope"}}
    folder = save(replace(samples.memory_run(), spec=spec), tmp_path / "run")
    with pytest.raises(InputError, match="this version of Stagescope has no type 'scan-snap/Nope'") as error:
        ss.saddle_ladder(ss.load(folder), progress=False)
    assert "install" not in str(error.value)


@pytest.mark.parametrize("module", ["solo", "folder.loss"])
def test_rates_of_a_paper_stand_in_its_package(tmp_path, monkeypatch, module):
    """A paper that is one file has no package, so none are read; a file that is no calibration is refused with its name."""
    path = tmp_path / (module.replace(".", "/") + ".py")
    path.parent.mkdir(exist_ok=True)
    path.write_text("raise RuntimeError('looking for rates imports nothing')")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(registry, "_read_as", lambda identity: (None, module, ss.study("scan-snap")))
    rates = '{"scan-snap": {"claims": [{"tag": "t", "rules": 1, "in_regime": 9, "violated": 1, "nulls": []}]}}'
    (path.parent / "calibration.json").write_text(rates)
    found = registry.claim_rates("any")
    assert {key: known.inputs for key, known in found.items()} == ({} if module == "solo" else {("t", 1): 9})
    registry._stored_rates.cache_clear()
    (path.parent / "calibration.json").write_text(rates[:-3])
    if module != "solo":
        with pytest.raises(ss.InputError, match=r"calibration\.json cannot be read"):
            registry.claim_rates("any")
