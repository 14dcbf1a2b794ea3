"""What the documents show is what happens: see tests/documents.py for the rules."""

import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import stagescope as ss
from stagescope.landscape.continuation import Branch, BranchPoint, Crossing
from stagescope.landscape.saddle_path import Leg, Predicted, SaddlePath
from stagescope.readings.predicting import CriticalScale
from tests.documents import DOCUMENTS, ROOT, agree, is_run, parse, problems
from tests.test_layers import RANK
from tests.third_party.installing import environment, installed, shared
from validation.walks import MOST, section, walks

AT_LEAST = {
    "README.md": 2,
    "api.md": 2,
    "bridges.md": 5,
    "checkpoints.md": 5,
    "commands.md": 1,
    "continue.md": 3,
    "extending.md": 2,
    "five-minutes.md": 12,
    "focus-dilution.md": 1,
    "fork.md": 4,
    "markov-icl.md": 3,
    "incremental.md": 2,
    "linear-icl.md": 2,
    "own-objective.md": 10,
    "play.md": 2,
    "predict.md": 5,
    "report.md": 3,
    "run-schema.md": 4,
    "scan-snap.md": 2,
    "watch.md": 5,
}
"""Blocks that the test suite runs: a document cannot lose them unnoticed."""
LONG = {"five-minutes.md": 1, "focus-dilution.md": 1, "incremental.md": 3, "scan-snap.md": 2, "sweeps.md": 4, "text.md": 1}
"""Blocks that `make validate` runs besides."""
IDS = [path.name for path in DOCUMENTS]
PATHS = re.compile(r"[\w./-]+\.(?:py|md|js|json|toml|cff|png)\b")
NAMED = re.compile(r"\bstagescope(?:\.[a-z_]+)+\b")
FILES = {path.name for part in ("src", "tests", "docs", "validation") for path in (ROOT / part).rglob("*.*")}
GIVEN = {
    "config.json",
    "sport.json",
    "cluster.py",
    "manifest.json",
    "predicted.json",
    "sweep.json",
    "zarr.json",
    "ledger.json",
    "ledger.md",
}
"""Files that a reader or a command makes."""


SLOW = ("bridges.md", "incremental.md", "linear-icl.md", "markov-icl.md", "own-objective.md", "predict.md", "watch.md")
"""Documents whose blocks take five seconds or more."""
EXECUTED = [
    pytest.param(path, marks=pytest.mark.long if path.name in SLOW else (), id=path.name)
    for path in DOCUMENTS
    if path.name in AT_LEAST and path.name != "extending.md"
]


@pytest.mark.parametrize("path", EXECUTED)
def test_what_a_document_shows_is_what_happens(path):
    assert problems(path) == []


@pytest.mark.long
def test_extending_is_true_where_its_package_is_installed(tmp_path_factory):
    env = environment(ROOT, installed(shared(tmp_path_factory)))
    command = [sys.executable, "-m", "tests.documents", str(ROOT / "docs" / "extending.md")]
    done = subprocess.run(command, env=env, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_claim_of_the_page_asks_for_a_loss_where_there_is_one():
    """A field that is no gradient has none."""
    text = (ROOT / "docs" / "extending.md").read_text()
    block = next(block for block in re.findall(r"```python\n(.*?)```", text, re.DOTALL) if "own:falls" in block)
    space = {"ss": ss, "np": np, "run": ss.run_study("scan-snap", decoder="pinv", until=5.0, frames=20)}
    exec(block.replace('ss.load("runs/first")', "run"), space)
    assert space["row"].reason == "the run has no loss"


def test_the_schema_names_every_key_of_predictions_and_branches():
    leg = Leg("1", 0.0, None, 1.0, None, None, lambda: ("passed", ()))
    path = SaddlePath((leg,), {"E1": Predicted(1.0)}, (), 0.1, np.zeros(0), {})
    point, fold = BranchPoint(0.3, 1.0, 0, (), {}, {"logits": ()}, {}), Crossing(0.3, 1.0, "fold", "it turns back")
    answers = (
        path,
        *path.legs,
        path["E1"],
        CriticalScale("Q2", 1.0, 0.9, 1.1),
        Branch((point,), (fold,), ()),
        point,
        fold,
    )
    keys = {
        "init_scale",
        "critical_scales",
        "predictions",
        "branches",
        *(key for each in answers for key in each.json()),
    }
    text = (ROOT / "docs" / "run-schema.md").read_text()
    assert [key for key in sorted(keys) if f"`{key}`" not in text and f'"{key}":' not in text] == []


@pytest.mark.parametrize("path", DOCUMENTS, ids=IDS)
def test_no_document_loses_its_blocks(path):
    blocks = parse(path.read_text())
    run = sum(is_run(block) for block in blocks)
    assert run >= AT_LEAST.get(path.name, 0)
    assert sum(is_run(block, long=True) for block in blocks) - run >= LONG.get(path.name, 0)
    assert path.name in AT_LEAST or not run, f"{path.name} has blocks that are run: name it in AT_LEAST"


@pytest.mark.parametrize("path", DOCUMENTS, ids=IDS)
def test_every_block_is_run_or_says_why_not(path):
    for block in parse(path.read_text()):
        where = f"{path.name}, line {block.line}"
        assert block.kind != "unknown", f"{where}: give the block a language, or put it directly after what prints it"


@pytest.mark.parametrize("path", DOCUMENTS, ids=IDS)
def test_blocks_taken_from_a_file_are_part_of_it(path):
    taken = [block for block in parse(path.read_text()) if "from" in block.marks]
    assert taken or path.name != "extending.md"
    for block in taken:
        assert f"\n{block.text}\n" in "\n" + (ROOT / block.marks["from"]).read_text(), f"{path.name}, line {block.line}"


@pytest.mark.parametrize("path", DOCUMENTS, ids=IDS)
def test_files_and_modules_that_a_document_names_exist(path):
    """In links, and between backquotes: a path is one of the repository or of the package, a bare name that of any file."""
    prose = re.sub(r"^```.*?^```", "", path.read_text(), flags=re.DOTALL | re.MULTILINE)
    for name in re.findall(r"\]\((?!https?:|#)([^)#]+)", prose):
        assert (path.parent / name).exists(), f"{path.name} links to {name}"
    for quoted in re.findall(r"`([^`\n]+)`", prose):
        for name in PATHS.findall(quoted):
            assert "*" in quoted or Path(name).name in GIVEN or _is_file(name), f"{path.name} names {name}"
        for name in NAMED.findall(quoted):
            assert _is_there(name), f"{path.name} names {name}"


def _is_file(name: str) -> bool:
    roots = (ROOT, ROOT / "src/stagescope", ROOT / "docs", ROOT / "tests", ROOT / "tests/third_party/unigram-paper")
    return any((root / name).exists() for root in roots) or ("/" not in name and name in FILES)


def _is_there(module: str) -> bool:
    """A module of the package, or a name in one."""
    place = ROOT / "src" / Path(*module.split("."))
    return any(each.with_suffix(".py").exists() or (each / "__init__.py").exists() for each in (place, place.parent))


PLANTED = """
```python
print(f"{1 / 3:.3f} of it")
```

```
{third} of it
```

<!-- long: for the test -->
```python
raise SystemError
```

<!-- file: given.txt -->
```text
hello
```

```sh
cat given.txt
echo "$(wc -l < given.txt) line"
```

```
...
{lines} line
```
"""


@pytest.mark.long
@pytest.mark.parametrize(
    ("third", "lines", "wrong"),
    [("0.333", "1", 0), ("0.334", "1", 0), ("0.335", "1", 1), ("0.333", "2", 1), ("0.5", "3", 2)],
)
def test_a_wrong_block_is_caught(tmp_path, third, lines, wrong):
    path = tmp_path / "planted.md"
    path.write_text(PLANTED.replace("{third}", third).replace("{lines}", lines))
    found = problems(path)
    assert len(found) == wrong
    assert len(problems(path, long=True)) == wrong + 1


def test_a_block_that_fails_is_caught(tmp_path):
    path = tmp_path / "failing.md"
    path.write_text("```python\nunknown_name\n```\n\n```sh\nstagescope stages nowhere\n```\n")
    python, shell = problems(path)
    assert "NameError" in python
    assert "nowhere" in shell


@pytest.mark.parametrize(
    ("expected", "printed", "same"),
    [
        ("a 1.50", "a   1.51", True),
        ("a 1.50", "a 1.52", False),
        ("3 rows", "4 rows", False),
        ("drift 1e-15", "drift 3e-16", True),
        ("(1,0) t 60.4", "(1,1) t 60.4", False),
        ("a\n...\nd", "a\nb\nc\nd", True),
        ("a\n...\nd", "a\nb\nc", False),
        ("a", "a\nb", False),
        ("2.5e-03", "2.6e-03", True),
    ],
)
def test_how_outputs_are_compared(expected, printed, same):
    assert agree(expected, printed) is same


LAYERS = (ROOT / "docs" / "layers.md").read_text()


def test_the_walks_are_what_commands_call():
    """`python -m validation.walks` writes them; each is short enough to be read."""
    walked = walks(("run", "check"))
    for name, modules in walked.items():
        assert [line for line in section({name: modules}).splitlines() if line not in LAYERS.splitlines()] == []
        assert len(modules) <= MOST[name], f"{name} goes through {len(modules)} modules"


def test_the_ranks_are_those_that_are_checked():
    rows = re.findall(r"^\| (\d+) \| (.+) \|$", LAYERS, re.MULTILINE)
    assert {name: int(rank) for rank, names in rows for name in re.findall(r"`(\w+)`", names)} == RANK
