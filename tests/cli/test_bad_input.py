"""Bad input through the command line: the right exit code, one or two sentences, no traceback, and nothing deleted."""

import errno
import json
import os
import stat
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import stagescope as ss
from stagescope.cli.main import run
from stagescope.watching.logs import PREFIX, event_type, record
from tests.runs import samples

QUICK = ("--until", "5", "--frames", "10", "--quiet")
READERS = (("resume",), ("verify",), ("info",), ("stages",), ("check",), ("export", "--to", "csv"))


@pytest.fixture
def call(capsys):
    """Run a command in this process: its exit code and what it said on standard error."""

    def call(*arguments: str | Path) -> tuple[int, str]:
        try:
            code = run([str(word) for word in arguments])
        except SystemExit as end:  # how the parser refuses
            code = int(end.code or 0)
        return code, capsys.readouterr().err

    return call


def assert_sentence(said: str, *parts: str) -> None:
    """One line from us, with everything it should name."""
    assert said.startswith("stagescope: ")
    assert said.count("\n") == 1
    assert len(said) < 400
    for part in parts:
        assert part in said


def contents(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


# classes


def table(*laws: dict[str, float], **more: object) -> str:
    """Classes of one query, one per law, as JSON."""
    classes = [{"query": "q", "target": f"x{n}", "tokens": law, **more} for n, law in enumerate(laws)]
    return json.dumps({"classes": classes})


def rows(*lines: str, header: str = "query,target,token,probability") -> str:
    return "\n".join([header, *lines]) + "\n"


BAD_CLASSES = {
    "sum.json": (table({"a": 0.5, "b": 0.6}), "sum to 1.1, not 1"),
    "negative.json": (table({"a": -0.5, "b": 1.5}), "-0.5 is not positive"),
    "zero.json": (table({"a": 0.0, "b": 1.0}), "0 is not positive"),
    "nan.json": (table({"a": float("nan"), "b": 1.0}), "finite number, got nan"),
    "infinite.json": (table({"a": float("inf"), "b": 1.0}), "finite number, got inf"),
    "word.json": ('{"classes": [{"query": "q", "target": "x", "tokens": {"a": "half"}}]}', "'half', not a number"),
    "query.json": (table({"q": 0.5, "b": 0.5}), "query token is also a context token"),
    "common.json": (table({"a": 0.5, "b": 0.5}, {"a": 0.4, "b": 0.6}), "class 0 has no distinct token"),
    "nothing.json": (table(), "no classes given"),
    "empty.json": (table({}), "sum to 0, not 1"),
    "prior.json": (table({"a": 1.0}, {"b": 1.0}, prior=0.7), "sum to 1"),
    "negative-prior.json": (table({"a": 1.0}, prior=-1.0), "prior"),
    "keys.json": ('{"classes": [{"query": "q"}]}', "class 0 needs query, target and tokens"),
    "list.json": ("[1, 2]", 'expected {"classes": [...]}'),
    "text.json": ("{classes: none}", "is not JSON"),
    "void.json": ("", "is not JSON"),
    "vocab.json": ('{"classes": [{"query": "q", "target": "x", "tokens": {"a": 1.0}}], "vocab": 2}', "vocab 2 is smaller"),
    "vocab-word.json": ('{"classes": [{"query": "q", "target": "x", "tokens": {"a": 1.0}}], "vocab": "2"}', "whole number"),
    "sum.csv": (rows("q,x,a,0.5", "q,x,b,0.6"), "sum to 1.1, not 1"),
    "negative.csv": (rows("q,x,a,-0.5", "q,x,b,1.5"), "-0.5 is not positive"),
    "nan.csv": (rows("q,x,a,nan", "q,x,b,1.0"), "finite number, got nan"),
    "word.csv": (rows("q,x,a,half"), "'half', not a number"),
    "twice.csv": (rows("q,x,a,0.5", "q,x,a,0.5"), "line 3: token 'a' is listed twice"),
    "query.csv": (rows("a,x,a,1.0"), "query token is also a context token"),
    "header.csv": (rows(), "no classes given"),
    "columns.csv": (rows("q,x,a", header="query,target,token"), "needs columns"),
    "classes.txt": ("", ".json or .csv"),
}


@pytest.mark.parametrize("name", BAD_CLASSES)
def test_classes_that_cannot_be(tmp_path, call, name):
    text, expected = BAD_CLASSES[name]
    path = tmp_path / name
    path.write_text(text)
    code, said = call("run", "scan-snap", "--classes", path, "--out", tmp_path / "run", *QUICK)
    assert code == 2
    assert_sentence(said, expected)
    assert contents(tmp_path) == {name: text.encode()}


def test_classes_that_cannot_be_read(tmp_path, call):
    (tmp_path / "latin.csv").write_bytes(rows("q,x,é,1.0").encode("latin-1"))
    (tmp_path / "folder.json").mkdir()
    for name, expected in (("latin.csv", "codec"), ("folder.json", "directory"), ("missing.json", "No such file")):
        code, said = call("run", "scan-snap", "--classes", tmp_path / name, "--out", tmp_path / "run", *QUICK)
        assert code == 2
        assert_sentence(said, "cannot read the classes", name, expected)
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("form", ["json", "csv"])
def test_classes_that_can_be(tmp_path, call, form):
    path = tmp_path / f"classes.{form}"
    lines = ("q,x0,a,0.5,0.5", "q,x0,b,0.5,0.5", "q,x1,a,0.5,0.5", "q,x1,c,0.5,0.5")
    good = {
        "json": table({"a": 0.5, "b": 0.5}, {"a": 0.5, "c": 0.5}, prior=0.5),
        "csv": rows(*lines, header="query,target,token,probability,prior"),
    }
    path.write_text(good[form])
    assert call("run", "scan-snap", "--classes", path, "--out", tmp_path / "run", *QUICK) == (0, "")
    assert ss.load(tmp_path / "run").spec["field"]["process"]["labels"] == ["a", "b", "c", "q", "x0", "x1"]


# options


@pytest.mark.parametrize(
    ("options", "parts"),
    [
        (("--rate-y", "-1"), ("--rate-y: ", "greater than or equal to 0", "-1.0")),
        (("--rate-z", "-0.5"), ("--rate-z: ", "greater than or equal to 0")),
        (("--rate-y", "nan"), ("--rate-y: ", "finite number", "nan")),
        (("--rate-z", "inf"), ("--rate-z: ", "finite number", "inf")),
        (("--lr", "0"), ("lr", "greater than 0")),
        (("--lr", "nan"), ("lr", "finite number")),
        (("--steps", "0"), ("steps", "greater than or equal to 1")),
        (("--steps", "-5"), ("steps", "greater than or equal to 1")),
        (("--until", "0"), ("until", "greater than 0")),
        (("--until", "-1"), ("until", "greater than 0")),
        (("--until", "nan"), ("until", "finite number", "nan")),
        (("--until", "inf"), ("until", "finite number", "inf")),
        (("--momentum", "1"), ("momentum", "less than 1")),
        (("--rtol", "0"), ("rtol", "greater than 0")),
        (("--frames", "2"), ("frames", "greater than or equal to 3")),
        (("--num-last", "0"), ("--num-last: ", "greater than or equal to 1")),
        (("--num-unique", "0"), ("--num-unique: ", "greater than or equal to 1")),
        (("--vocab", "3"), ("vocab 3 is smaller than",)),
        (("--seed", "-1"), ("seed", ">= 0")),
        (("--init-scale", "0.1", "--vocab", "100"), ("--columns all",)),
        (("--record", "every-step"), ("a flow has no steps", "--record log")),
    ],
)
def test_values_that_cannot_be(tmp_path, call, options, parts):
    code, said = call("run", "scan-snap", "--out", tmp_path / "run", "--quiet", *options)
    assert code == 2
    assert_sentence(said, *parts)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (("rum", "scan-snap"), "unknown command 'rum'; did you mean 'run'?"),
        (("verfy", "run"), "unknown command 'verfy'; did you mean 'verify'?"),
        (("run", "scan-snp"), "unknown study 'scan-snp'; did you mean 'scan-snap'?"),
        (("run", "scan-snap", "--preset", "syn-smal-flow"), "'syn-smal-flow'; did you mean 'syn-small-flow'?"),
        (("run", "scan-snap", "--preset=adam"), "known: "),
        (("cite", "scansnap"), "unknown study 'scansnap'; did you mean 'scan-snap'?"),
        (("run", "scan-snap", "--preset", "syn-small-flow", "--preset=syn-small"), "--preset is given 2 times; give it once"),
        (("run", "scan-snap", "--rate-y", "2", "--rate_y", "3"), "--rate-y is given 2 times"),
        (("reproduce", "incremental", "--figure", "99", "--out", "x"), "unknown figure '99'; known: 1, 2, 3, "),
    ],
)
def test_unknown_names_come_with_the_nearest(tmp_path, call, words, expected):
    out = ("--out", tmp_path / "run") if words[0] == "run" else ()
    code, said = call(*words, *out)
    assert code == 2
    assert_sentence(said, expected)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (("run", "scan-snap", "--steps", "five", "--out", "x"), "five"),
        (("run", "scan-snap", "--optimizer", "sgdd", "--out", "x"), "heavy-ball"),
        (("run", "scan-snap"), "--out"),
        (("run",), "scan-snap"),
        (("--jsn",), "stagescope --help"),
        (("verify",), "FOLDER"),
        (("export", "x"), "--to"),
        (("export", "x", "--to", "xlsx"), "tensorboard"),
        (("import",), "--out"),
        (("import", "x"), "--out"),
        (("completion", "fish"), "bash"),
        (("verify", "x", "--jsn"), "--json"),
    ],
)
def test_words_the_parser_refuses(call, words, expected):
    """The parser's own answers: a box that names what would do."""
    code, said = call(*words)
    assert code == 2
    assert expected in said
    assert "Traceback" not in said


@pytest.mark.parametrize(
    ("words", "parts"),
    [
        ("run scan-snap --stepz 5", ("unknown option of run scan-snap '--stepz'", "did you mean '--steps'?")),
        ("run focus-dilution --presset=ref", ("did you mean '--preset'?", "`stagescope run focus-dilution --help`")),
        ("run text-focus --record log", ("text-focus has no option --record", "focus-dilution")),
        ("list focus", ("did you mean 'focus-dilution'?",)),
    ],
)
def test_options_and_studies_that_are_not_known(call, words, parts):
    code, said = call(*words.split())
    assert code == 2
    assert_sentence(said, *parts)


# chains and forms of the loss


@pytest.mark.long
@pytest.mark.parametrize(
    ("options", "parts"),
    [
        ("--pi .5 .5 0", ("pi has the entry 0", "must be left out")),
        ("--pi .5 .4", ("pi sums to 0.9, not 1", "divide it by its sum")),
        ("--pi 1", ("at least two tokens, got 1",)),
        ("--pi", ("at least two tokens, got 0",)),
        ("--pi .5 nan", ("pi.1", "finite number", "nan")),
        ("--persistence 1", ("persistence is 1, but must be above -0.1111 and below 1",)),
        ("--persistence -.2", ("persistence is -0.2, but must be above -0.1111 and below 1",)),
        ("--width 0", ("width", "greater than or equal to 1", "got 0")),
        ("--scale 0", ("scale", "greater than 0")),
        ("--until 0", ("until", "greater than 0")),
        ("--init-scale-wq -1", ("--init-scale-wq: ", "greater than or equal to 0")),
        ("--pi0 1.5", ("pi0 is 1.5", "between 0 and 1")),
        ("--pi0 .4 --tokens 1", ("tokens", "greater than or equal to 2")),
        ("--pi0 .4 --tokens 2 --delta .1", ("delta 0.1 needs at least two tokens besides the first", "--tokens 3")),
        ("--pi0 .4 --delta .3", ("delta 0.3 makes a probability -0.1", "below 0.2")),
        ("--pi0 .4 --delta .01 --shape 1 -1", ("has 2 entries, but 4 tokens need 3",)),
        ("--pi0 .4 --delta .01 --shape 1 1 1", ("sum to 3, not 0", "subtract their mean")),
        ("--delta .02", ("--delta 0.02", "they belong to --pi0, which is not given")),
        ("--form finite --length 0", ("length", "greater than or equal to 1", "got 0")),
        ("--form finite --length 1000", ("6.69e+08 states", "at most 4.19e+06", "length 183", "the sampled form")),
        ("--form sampled --sequences 0", ("sequences", "greater than or equal to 1")),
        ("--form sampled --sequences 8 --batch 9 --optimizer sgd", ("batch 9 is larger than the 8 sequences",)),
        ("--form sampled --sequences 999999999", ("999999999 sequences", "use at most 4194304")),
        ("--form sampled --batch 9", ("--batch 9", "flow sees all sequences", "choose --optimizer sgd")),
        ("--optimizer sgd", ("nothing is drawn with --form population", "--form sampled")),
        ("--length 8", ("--length 8", "--form finite or sampled")),
    ],
)
def test_chains_and_forms_that_cannot_be(tmp_path, call, options, parts):
    code, said = call("run", "focus-dilution", "--out", tmp_path / "run", "--quiet", *options.split())
    assert code == 2
    assert_sentence(said, *parts)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("0,1\n1,0\n", ("periodic with period 2", "add a little persistence")),
        ("1,0\n.5,.5\n", ("reducible", "drop it or add a small probability")),
        (".5,.5\n", ("one row", "no matrix below it")),
        (".5,.5\n.5,half\n", ("row 1", "'half'", "not a number")),
        (".5,.6\n.5,.5\n", ("row 0 sums to 1.1, not 1",)),
        ("", ("has no rows", "one row of the transition matrix per line")),
        (None, ("cannot read the transition matrix", "No such file")),
    ],
)
def test_transition_matrices_that_cannot_be(tmp_path, call, text, parts):
    table = tmp_path / "p.csv"
    if text is not None:
        table.write_text(text)
    code, said = call("run", "focus-dilution", "--transition", table, "--out", tmp_path / "run", "--quiet")
    assert code == 2
    assert_sentence(said, *parts)
    assert not (tmp_path / "run").exists()


# folders


def test_an_existing_folder_is_left_alone(tmp_path, call):
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine/thesis.tex").write_text("ten years")
    before = contents(tmp_path)
    code, said = call("run", "scan-snap", "--out", tmp_path / "mine", *QUICK)
    assert code == 2
    assert_sentence(said, "is not empty; choose another folder")
    assert "--overwrite" not in said
    code, said = call("run", "scan-snap", "--out", tmp_path / "mine", "--overwrite", *QUICK)
    assert code == 2
    assert_sentence(said, "is not (only) a run (thesis.tex); it will not be deleted")
    code, said = call("run", "scan-snap", "--out", tmp_path / "mine/thesis.tex", "--overwrite", *QUICK)
    assert code == 2
    assert_sentence(said, "is a file; choose a folder")
    assert contents(tmp_path) == before


def test_an_existing_run_is_replaced_only_if_asked(tmp_path, call):
    assert call("run", "scan-snap", "--out", tmp_path / "run", *QUICK)[0] == 0
    before = contents(tmp_path)
    code, said = call("run", "scan-snap", "--out", tmp_path / "run", *QUICK)
    assert code == 2
    assert_sentence(said, "is not empty; choose another folder, or --overwrite (in Python overwrite=True) to replace a run")
    code, said = call("run", "scan-snap", "--out", tmp_path / "run", "--overwrite", "--rate-y", "nan", *QUICK)
    assert code == 2
    assert contents(tmp_path) == before
    assert call("run", "scan-snap", "--out", tmp_path / "run", "--overwrite", "--rate-y", "2", *QUICK)[0] == 0
    assert (ss.load(tmp_path / "run").config or {})["rate_y"] == 2
    (tmp_path / "run/notes.txt").write_text("mine")
    code, said = call("run", "scan-snap", "--out", tmp_path / "run", "--overwrite", *QUICK)
    assert code == 2
    assert_sentence(said, "notes.txt", "will not be deleted")
    assert (tmp_path / "run/notes.txt").read_text() == "mine"


@pytest.mark.parametrize("words", READERS, ids=lambda words: words[0])
def test_a_folder_that_is_not_a_run(tmp_path, call, monkeypatch, words):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "other").mkdir()
    (tmp_path / "other/data.csv").write_text("1,2")
    (tmp_path / "app").mkdir()
    (tmp_path / "app/manifest.json").write_text('{"name": "a web application"}')
    before = contents(tmp_path)
    for folder, expected, status in (
        ("other", "holds no run (no manifest.json)", 2),
        ("other/data.csv", "is a file, not a run", 2),
        ("nothing", "does not exist", 2),
        ("app", "not a readable manifest", 1),
    ):
        code, said = call(words[0], folder, *words[1:])
        assert code == status
        assert expected in said
        assert said.count("\n") == 1
    assert contents(tmp_path) == before


@pytest.mark.parametrize("words", READERS, ids=lambda words: words[0])
def test_a_damaged_run(tmp_path, call, monkeypatch, words):
    monkeypatch.chdir(tmp_path)
    folder = samples.unfinished(tmp_path / "run")
    chunk = folder / "data.zarr/W/c/0/0/0"
    chunk.write_bytes(chunk.read_bytes()[:-1])
    before = contents(tmp_path)
    code, said = call(words[0], "run", *words[1:])
    assert code == 1
    assert "run/data.zarr/W/c/0/0/0: damaged" in said
    assert said.count("\n") == 1
    assert contents(tmp_path) == before


def test_a_run_of_a_kind_without_claims(tmp_path, call):
    code, said = call("check", samples.finished(tmp_path / "run"))
    assert code == 2
    assert_sentence(said, "no claims are written for runs of 'own'")


def test_a_folder_without_permission(tmp_path, call, monkeypatch):
    parent = tmp_path / "closed"
    parent.mkdir()
    parent.chmod(stat.S_IRUSR | stat.S_IXUSR)
    if os.access(parent, os.W_OK):  # permissions do not bind this user: play the operating system's part

        def refuse(*_, **__):
            raise PermissionError(errno.EACCES, "Permission denied", str(parent / ".run.x"))

        monkeypatch.setattr(tempfile, "mkdtemp", refuse)
    code, said = call("run", "scan-snap", "--out", parent / "run", *QUICK)
    parent.chmod(stat.S_IRWXU)
    assert code == 1
    assert_sentence(said, f"{parent / 'run'}: Permission denied", "choose another folder or change its mode")
    assert list(parent.iterdir()) == []


def test_exports_that_cannot_be_written(tmp_path, call, monkeypatch):
    monkeypatch.chdir(tmp_path)
    samples.finished(tmp_path / "run")
    before = contents(tmp_path / "run")
    (tmp_path / "taken.csv").write_text("mine")
    for out, expected in (
        ("taken.csv", "exists; choose another file, or --overwrite"),
        ("nowhere/out.csv", "nowhere is not a folder"),
        ("run/out.csv", "is inside the run"),
        (".", "is a folder; choose a file"),
    ):
        code, said = call("export", "run", "--to", "csv", "--out", out)
        assert code == 2
        assert_sentence(said, expected)
    assert (tmp_path / "taken.csv").read_text() == "mine"
    assert contents(tmp_path / "run") == before


# runs that go wrong


@pytest.mark.long
def test_a_diverging_descent(tmp_path, call, capsys):
    options = ("--optimizer", "heavy-ball", "--rate-y", "1e60", "--steps", "50", "--quiet")
    code, said = call("run", "scan-snap", "--out", tmp_path / "run", *options)
    assert code == 1
    assert_sentence(said, "diverged at step", "lower the rates")
    run_ = ss.load(tmp_path / "run")
    assert run_.status == "diverged"
    step = int(run_.reason.split("diverged at step ")[1].split(":")[0])
    assert step >= 1
    np.testing.assert_array_equal(run_.step, np.arange(step))
    assert np.all(np.isfinite(run_.series["loss"]))
    assert ss.verify(tmp_path / "run") == []
    for word in ("check", "stages", "info"):
        assert run([word, str(tmp_path / "run"), "--json"]) == 0
        printed = capsys.readouterr()
        assert printed.err == ""
        assert json.loads(printed.out)["status"] == "diverged"
        assert '"confirmed"' not in printed.out
    code, said = call("resume", tmp_path / "run")
    assert code == 1
    assert_sentence(said, "it would fail again; start it anew with other options")


def test_numbers_that_overflow_are_null_in_json(tmp_path, capsys):
    """The speed at the start is infinite here; JSON has no word for it."""
    words = ["run", "scan-snap", "--rate-y", "1e300", "--out", str(tmp_path / "run"), "--json"]
    assert run(words) == 1
    printed = capsys.readouterr()
    assert json.loads(printed.out)["last"] == {"t": 0.0, "loss": pytest.approx(3.526, abs=1e-3), "speed": None}
    assert_sentence(printed.err, "diverged")


def test_a_solver_that_fails(tmp_path, call, capsys):
    options = ("--rate-y", "1e60", "--until", "10", "--quiet")
    code, said = call("run", "scan-snap", "--out", tmp_path / "run", *options)
    assert code == 1
    assert_sentence(said, "failed: CVODE stopped at t=", "|theta|=")
    assert ss.load(tmp_path / "run").status == "failed"
    assert run(["check", str(tmp_path / "run"), "--json"]) == 0
    assert '"confirmed"' not in capsys.readouterr().out


@pytest.mark.long
def test_a_full_disk_leaves_a_run_that_can_be_resumed(tmp_path, call):
    """A limit on the size of files stands in for the disk: the chunks of the end do not fit, the checkpoints did."""
    options = ("--num-last", "5", "--frames", "3000", "--until", "300", "--quiet")
    assert call("run", "scan-snap", "--out", tmp_path / "whole", *options)[0] == 0
    code = "import resource; resource.setrlimit(resource.RLIMIT_FSIZE, (300_000, 300_000)); "
    code += "from stagescope.cli.main import main; main()"
    words = [sys.executable, "-B", "-c", code, "run", "scan-snap", "--out", str(tmp_path / "run"), *options]
    limited = subprocess.run(words, capture_output=True, text=True, check=False)
    assert limited.returncode == 1
    assert_sentence(limited.stderr, "File too large", "raise it and resume")
    assert call("verify", tmp_path / "run")[0] == 0
    assert ss.load(tmp_path / "run").status == "interrupted"
    assert call("resume", tmp_path / "run", "--quiet") == (0, "")
    whole, resumed = ss.load(tmp_path / "whole"), ss.load(tmp_path / "run")
    for name, values in {**whole.series, **whole.params}.items():
        assert {**resumed.series, **resumed.params}[name].tobytes() == values.tobytes()


@pytest.mark.parametrize(
    ("claims", "words"),
    [("nothing", "module:NAME"), ("no_such_module_here:CLAIMS", "no_such_module_here"), ("json:loads", "Claim")],
)
def test_own_claims_that_are_none(claims, words, tmp_path, call):
    assert run(["run", "scan-snap", *QUICK, "--out", str(tmp_path / "run")]) == 0
    for before in (("check", tmp_path / "run"), ("report", tmp_path / "run", "--out", tmp_path / "page.html")):
        code, said = call(*before, "--claims", claims)
        assert code == 2
        assert_sentence(said, words)
    assert not (tmp_path / "page.html").exists()
    code, said = call("sweep", "scan-snap", "--grid", "rate_y=1,2", "--out", tmp_path / "sweep", "--claims", claims)
    assert code == 2
    assert_sentence(said, words)
    assert not (tmp_path / "sweep").exists()


# log directories of others


def log_directory(folder: Path, *values: dict[str, Any]) -> Path:
    """An event file with one event; a value is what a Summary.Value of TensorBoard has."""
    folder.mkdir(parents=True)
    event = event_type()(step=3)
    for value in values:
        event.summary.value.add(**value)
    (folder / f"{PREFIX}1").write_bytes(record(event))
    return folder


def test_folders_that_cannot_be_imported(tmp_path, call):
    log_directory(tmp_path / "text", {"tag": "note", "tensor": {"dtype": 7, "string_val": [b"hello"]}})
    for name in ("a", "b"):
        log_directory(tmp_path / "several" / name, {"tag": "loss", "simple_value": 1.0})
    (tmp_path / "empty").mkdir()
    (tmp_path / "torn").mkdir()
    (tmp_path / "torn" / f"{PREFIX}1").write_bytes(b"no event")
    before = contents(tmp_path)
    for words, parts in (
        (("nowhere",), ("does not exist; give the folder that holds the event files",)),
        ((f"text/{PREFIX}1",), ("is a file; give the folder that holds the event files",)),
        (("empty",), ("holds nothing that can be imported", PREFIX)),
        (("text",), ("holds no scalars",)),
        (("torn",), ("holds no scalars", "records cut off at the end: 1")),
        (("several",), ("holds 2 runs (a, b); choose one with --run NAME",)),
        (("several", "--run", "c"), ("unknown run 'c'; known: a, b",)),
        (("several", "--run", "a", "--loss", "lss"), ("unknown tag 'lss'; did you mean 'loss'?",)),
        (("several", "--run", "a", "--tags", "train/*"), ("no scalars whose tags match 'train/*'",)),
    ):
        code, said = call("import", tmp_path / words[0], "--out", tmp_path / "run", *words[1:])
        assert code == 2
        assert_sentence(said, *parts)
    code, said = call("import", tmp_path / "several/a", "--out", tmp_path / "text", "--overwrite")
    assert code == 2
    assert_sentence(said, "it will not be deleted")
    assert contents(tmp_path) == before


@pytest.mark.parametrize("short", ["-o B", "-oB", "-o=B"])
def test_out_and_its_short_form_are_one_option(tmp_path, capsys, monkeypatch, short):
    monkeypatch.chdir(tmp_path)
    assert run(["run", "linear-icl", "--out", "A", *short.split()]) == 2
    assert "--out is given 2 times" in capsys.readouterr().err
    assert not list(tmp_path.iterdir())
    assert run(["run", "linear-icl", "--until", "1", *short.split()]) == 0
    assert [path.name for path in tmp_path.iterdir()] == ["B"]


@pytest.mark.parametrize(("word", "said"), [("published", "give --preset published"), ("nonsense", "give an option")])
def test_a_word_after_the_study(tmp_path, capsys, word, said):
    assert run(["run", "incremental", word, "--out", str(tmp_path / "run")]) == 2
    assert said in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("verb", ["graph", "recreate"])
def test_a_removed_command_says_what_serves_instead(verb, capsys):
    assert run([verb, "runs/ref"]) == 2
    assert f"the command {verb!r} was removed; " in capsys.readouterr().err
