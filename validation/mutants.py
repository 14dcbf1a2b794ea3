"""Mutants: does the suite notice a small mistake in the source?

    python -m validation.mutants [--count 60] [--seed 0] [--against TREE] [--out FILE]

Each mutant is one small change of one expression in `src`, drawn by a seed: a comparison, an operator, a number, a condition or
an argument. The tests of its subject are run on a copy of the tree, most direct first, until one fails: those of the mirrored
folder, those that name its module or what the mutated file defines, and the golden answers. Tests with the mark `long` are left
out. A test that fails without the mutant too catches nothing.

With `--against TREE`, another checkout, only functions that both trees have, word for word, are mutated, and what survives here
is tried there by the tests of that tree. What is caught here counts as caught there.
"""

import argparse
import ast
import copy
import json
import os
import random
import re
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
SECONDS = 300
"""Of CPU: a mutant whose tests take longer counts as caught: it does not end, or is far slower."""
FILES = 6
"""So many test files are tried for a mutant, before the golden answers."""
COMPARISONS = {ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq}
COMPARISONS |= {ast.Is: ast.IsNot, ast.IsNot: ast.Is, ast.In: ast.NotIn, ast.NotIn: ast.In}
OPERATORS = {ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div, ast.Div: ast.Mult, ast.FloorDiv: ast.Mult, ast.Pow: ast.Mult}
OPERATORS |= {ast.And: ast.Or, ast.Or: ast.And, ast.BitOr: ast.BitAnd, ast.BitAnd: ast.BitOr}


def mutated(node: ast.AST) -> ast.AST | None:
    """The node with one small mistake; None where there is none to make."""
    node = copy.deepcopy(node)
    match node:
        case ast.Compare(ops=[op, *_]) if type(op) in COMPARISONS:
            node.ops[0] = COMPARISONS[type(op)]()
        case ast.BinOp(op=op) | ast.BoolOp(op=op) if type(op) in OPERATORS and not _text(node):
            node.op = OPERATORS[type(op)]()
        case ast.UnaryOp(op=ast.Not() | ast.USub()):
            return node.operand
        case ast.Constant(value=bool()):
            node.value = not node.value
        case ast.Constant(value=int() | float() as number):
            node.value = number + 1
        case ast.IfExp():
            node.body, node.orelse = node.orelse, node.body
        case ast.Call(args=[first, second, *rest]) if not any(isinstance(given, ast.Starred) for given in node.args):
            node.args = [second, first, *rest]
        case _:
            return None
    return node


def _text(node: ast.AST) -> bool:
    """Whether strings or types are joined: such a mutant is a message or an annotation."""
    return any(
        isinstance(part, ast.JoinedStr) or (isinstance(part, ast.Constant) and isinstance(part.value, str))
        for part in ast.walk(node)
    )


def functions(tree: Path) -> dict[str, tuple[Path, ast.FunctionDef]]:
    """Functions of a tree by their source without docstrings; those that two files have are left out."""
    by_source: dict[str, tuple[Path, ast.FunctionDef] | None] = {}
    for path in sorted((tree / "src").rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.FunctionDef):
                source = ast.unparse(node)
                by_source[source] = None if source in by_source else (path.relative_to(tree), node)
    return {source: place for source, place in by_source.items() if place is not None}


def sites(function: ast.FunctionDef) -> Iterator[ast.expr]:
    """Expressions of a function's body that can be mutated; messages of errors and annotations are not."""
    skipped: set[int] = set()
    for node in ast.walk(function):
        if isinstance(node, ast.Raise | ast.JoinedStr | ast.AnnAssign | ast.arguments):
            parts = (node.annotation,) if isinstance(node, ast.AnnAssign) else (node,)
            skipped |= {id(inner) for part in parts for inner in ast.walk(part)}
    for statement in function.body:
        for node in ast.walk(statement):
            if isinstance(node, ast.expr) and id(node) not in skipped and mutated(node) is not None:
                yield node


def spliced(source: str, node: ast.expr) -> str:
    """The source of a file with the mutant in the place of an expression."""
    lines = source.encode().splitlines(keepends=True)
    start = sum(map(len, lines[: node.lineno - 1])) + node.col_offset
    stop = sum(map(len, lines[: (node.end_lineno or 0) - 1])) + (node.end_col_offset or 0)
    changed = mutated(node)
    assert changed is not None
    return (source.encode()[:start] + f"({ast.unparse(changed)})".encode() + source.encode()[stop:]).decode()


def subject_tests(tree: Path, path: Path) -> list[str]:
    """Test files for a source file, most direct first."""
    inside = path.relative_to("src/stagescope").with_suffix("")
    module, folder = ".".join(("stagescope", *inside.parts)), tree / "tests" / inside.parent
    names = {node.name for node in ast.parse((tree / path).read_text()).body if isinstance(node, ast.ClassDef | ast.FunctionDef)}
    names = {name for name in names if not name.startswith("_")}
    scores = {}
    for test in sorted((tree / "tests").rglob("test_*.py")):
        text = test.read_text()
        words = set(re.findall(r"\w+", text))
        score = (
            8 * (test.stem == f"test_{inside.name}")
            + 4 * (module in text)
            + 2 * (test.parent == folder)
            + len(names & words) / (1 + len(names))
        )
        if score and "browser" not in test.parts and "third_party" not in test.parts:
            scores[str(test.relative_to(tree))] = score
    golden = ["tests/test_golden.py"] if (tree / "tests/test_golden.py").exists() else []
    return [*sorted(scores, key=lambda name: -scores[name])[:FILES], *golden]


def caught(tree: Path, path: Path, source: str, tests: list[str]) -> tuple[bool, str, float]:
    """Whether a test fails on a copy of a tree with a changed file, and only there; which one, and the seconds it took."""
    began = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        work = Path(folder) / "tree"
        shutil.copytree(tree, work, ignore=shutil.ignore_patterns(".git", ".venv", "site", "__pycache__", "demo"), symlinks=True)
        original = (work / path).read_text()
        (work / path).write_text(source)
        failed, test = _fails(work, tests)
        if test:
            (work / path).write_text(original)
            failed = not _fails(work, [test])[0]
    return failed, test, time.monotonic() - began


def _fails(work: Path, tests: list[str]) -> tuple[bool, str]:
    threads = dict.fromkeys(("OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS"), "1")
    env = {**os.environ, **threads, "PYTHONPATH": f"{work / 'src'}{os.pathsep}{work}", "PYTHONDONTWRITEBYTECODE": "1"}
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-n0", "-p", "no:cacheprovider", "--no-header", *tests]
    try:
        limit = partial(resource.setrlimit, resource.RLIMIT_CPU, (SECONDS, SECONDS))
        done = subprocess.run(
            command, cwd=work, env=env, capture_output=True, text=True, timeout=10 * SECONDS, check=False, preexec_fn=limit
        )
    except subprocess.TimeoutExpired:
        return True, ""
    first = re.search(r"^(?:FAILED|ERROR) ([^\s\[]+)", done.stdout, re.MULTILINE)
    return done.returncode not in (0, 5), first[1] if first else ""


def main(words: list[str] | None = None) -> bool:
    parser = argparse.ArgumentParser(
        prog="python -m validation.mutants", description="share of small mistakes that the suite catches"
    )
    parser.add_argument("--count", type=int, default=60)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--against", type=Path, help="another checkout, whose tests are tried on what survives here")
    parser.add_argument(
        "--part", type=int, nargs=2, default=(0, 1), metavar=("I", "N"), help="every N-th of them, from the I-th on"
    )
    parser.add_argument("--out", type=Path, help="a file of JSON lines; mutants that it has are not tried again")
    given = parser.parse_args(words)
    here, there = functions(ROOT), functions(given.against) if given.against else None
    pool = [source for source in sorted(here) if there is None or source in there]
    places = [(source, number) for source in pool for number in range(len(list(sites(here[source][1]))))]
    drawn = random.Random(given.seed).sample(places, given.count)[given.part[0] :: given.part[1]]
    rows: dict[str, dict[str, Any]] = {}
    if given.out and given.out.exists():
        rows = {row["mutant"]: row for row in map(json.loads, given.out.read_text().splitlines())}
    for source, number in drawn:
        path, function = here[source]
        node = list(sites(function))[number]
        change = mutated(node)
        assert change is not None
        name = f"{path}:{node.lineno} {ast.unparse(node)} -> {ast.unparse(change)}"
        if name not in rows:
            hit, test, seconds = caught(ROOT, path, spliced((ROOT / path).read_text(), node), subject_tests(ROOT, path))
            rows[name] = {"mutant": name, "caught": hit, "by": test, "seconds": round(seconds, 1)}
            if not hit and there is not None:
                elsewhere, twin = there[source]
                old = spliced((given.against / elsewhere).read_text(), list(sites(twin))[number])
                rows[name]["caught_there"], rows[name]["by"], _ = caught(
                    given.against, elsewhere, old, subject_tests(given.against, elsewhere)
                )
            if given.out:
                with given.out.open("a") as lines:
                    lines.write(json.dumps(rows[name]) + "\n")
        row = rows[name]
        print(
            f"{'caught' if row['caught'] else 'SURVIVES'}{' (caught there)' if row.get('caught_there') else ''}  {name}",
            flush=True,
        )
    here_share = sum(row["caught"] for row in rows.values())
    there_share = sum(row["caught"] or row.get("caught_there", False) for row in rows.values())
    print(
        f"{len(rows)} mutants: {here_share} caught here"
        + (f", {there_share} by the tests of either tree" if there is not None else "")
    )
    return True


if __name__ == "__main__":
    raise SystemExit(0 if main() else 1)
