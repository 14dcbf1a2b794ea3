"""Imports point strictly downwards."""

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent / "src" / "stagescope"
LAYER = {
    **dict.fromkeys(("errors", "types", "keys", "described", "autodiff", "progress", "workers", "runs"), 0),
    "processes": 1,
    "models": 2,
    "objectives": 3,
    "dynamics": 4,
    **dict.fromkeys(("observables", "landscape", "detect"), 5),
    "theory": 6,
    **dict.fromkeys(("studies", "reopen", "beside", "reading", "figures"), 7),
    **dict.fromkeys(("sweeping", "reporting"), 8),
    **dict.fromkeys(("cli", "__main__"), 9),
}
FORBIDDEN = {
    "dynamics": {"processes", "models"},
    "landscape": {"processes", "models"},
    "detect": {"processes", "models"},
    "theory": {"dynamics", "models"},
}
"""Below, but not allowed: these parts must work on anybody's field, or must not depend on how a run was made."""
FILES = sorted(ROOT.rglob("*.py"))


def imports(path: Path) -> set[str]:
    """First-level names inside stagescope that a file imports at run time, also inside functions."""
    tree = ast.parse(path.read_text())
    typing_only = {id(n) for block in ast.walk(tree) if _is_typing(block) for n in ast.walk(block)}
    found = set()
    for node in ast.walk(tree):
        if id(node) in typing_only:
            continue
        names = []
        if isinstance(node, ast.ImportFrom) and node.module:
            names = [node.module] if node.module != "stagescope" else [f"stagescope.{a.name}" for a in node.names]
        elif isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        found |= {name.split(".")[1] for name in names if name.startswith("stagescope.")}
    return found


def _is_typing(node: ast.AST) -> bool:
    return isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING"


def part(path: Path) -> str:
    return path.relative_to(ROOT).parts[0].removesuffix(".py")


@pytest.mark.parametrize("path", FILES, ids=lambda p: str(p.relative_to(ROOT)))
def test_imports_point_downwards(path):
    mine = part(path)
    if mine == "__init__":
        assert not imports(path)
        return
    assert mine in LAYER, f"{mine} has no layer; say which in this test and in docs/layers.md"
    for other in imports(path) - {mine}:
        assert LAYER[other] <= LAYER[mine], f"{path} (layer {LAYER[mine]}) imports {other} (layer {LAYER[other]})"
        assert other not in FORBIDDEN.get(mine, set()), f"{mine} must not import {other}"


def test_the_test_sees_a_violation(tmp_path):
    bad = tmp_path / "bad.py"
    bad.write_text("def f():\n    from stagescope.cli import main\n")
    assert imports(bad) == {"cli"}


def test_jax_has_one_door():
    """Only autodiff.py imports JAX at module level, so that the kernel path never pays for it."""
    for path in FILES:
        tree = ast.parse(path.read_text())
        top = [n for n in tree.body if isinstance(n, ast.Import | ast.ImportFrom)]
        named = {alias.name for n in top if isinstance(n, ast.Import) for alias in n.names}
        named |= {n.module or "" for n in top if isinstance(n, ast.ImportFrom)}
        heavy = {name.split(".")[0] for name in named} & {"jax", "optax"}
        assert not heavy or path.name == "autodiff.py", path
        assert path.name == "__init__.py" or "stagescope.autodiff" not in named, path
