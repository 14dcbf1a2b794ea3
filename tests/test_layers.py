"""The rules of import, lazy imports included: see docs/layers.md."""

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent / "src" / "stagescope"
SCRIPTS = ROOT.parent.parent / "reproductions"
RANK = {
    "core": 0,
    "runs": 1,
    "flow": 2,
    "processes": 3,
    **dict.fromkeys(("corpora", "detect"), 4),
    "landscape": 5,
    "claims": 6,
    "views": 7,
    "watching": 8,
    "readings": 9,
    **dict.fromkeys(("sweeping", "papers"), 10),
    "show": 11,
    "cli": 12,
    "__main__": 13,
}
"""A part of the core imports itself and parts of lower rank; the modules of rank 0 may import each other."""
READ_BY_NOBODY = ("sweeping", "show", "cli", "__main__")
ROLES = ("tags", "study", "process", "model", "loss", "observables", "stages", "claims", "reading", "views", "explain")
"""Inside a paper: a role imports roles before it. `study` is light and stands early; `setup` turns its options into objects."""


def name_of(path: Path) -> str:
    parts = path.relative_to(ROOT.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


MODULES = {name_of(path): path for path in sorted(ROOT.rglob("*.py"))}
PAPERS = sorted(path.name for path in (ROOT / "papers").iterdir() if (path / "__init__.py").is_file())


def imports(tree: ast.AST) -> Iterator[str]:
    """Modules of ours that a file imports at run time, also inside functions."""
    for node in _statements(tree):
        if isinstance(node, ast.ImportFrom) and node.module and node.module.split(".")[0] == "stagescope":
            for alias in node.names:
                inner = f"{node.module}.{alias.name}"
                yield inner if inner in MODULES else node.module
        elif isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name.split(".")[0] == "stagescope")


def _statements(tree: ast.AST) -> Iterator[ast.AST]:
    """What is below a node, but no expression, where no import can be, and nothing that is for types alone."""
    waiting = [tree]
    while waiting:
        node = waiting.pop()
        yield node
        waiting += [each for each in ast.iter_child_nodes(node) if not (isinstance(each, ast.expr) or _is_typing(each))]


def _is_typing(node: ast.AST) -> bool:
    return isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING"


@cache
def graph() -> dict[str, set[str]]:
    """What each module imports. Made when a test asks: every worker of a session loads this file."""
    return {name: set(imports(ast.parse(path.read_text()))) for name, path in MODULES.items()}


def named(source: str) -> Iterator[str]:
    """Modules of ours that a file names as text, "module:name", to be loaded when they are used."""
    here = re.search(r'^_HERE = "(.+)"$', source, re.MULTILINE)
    text = source.replace("{_HERE}", here.group(1)) if here else source
    yield from (module for module in re.findall(r'"(stagescope(?:\.\w+)+):\w+"', text) if module in MODULES)


def stubbed(path: Path) -> Iterator[str]:
    """Modules that the stub of a paper names, to be loaded when they are used."""
    stub, package = path.with_suffix(".pyi"), name_of(path)
    if path.name == "__init__.py" and path.parent.parent == ROOT / "papers" and stub.is_file():
        yield from (f"{package}.{module}" for module in re.findall(r"^from \.([\w.]+) import", stub.read_text(), re.MULTILINE))


NAMED = {name: {*named(path.read_text()), *stubbed(path)} for name, path in MODULES.items()}


def part(module: str) -> str:
    return module.split(".")[1] if "." in module else ""


def paper(module: str) -> str:
    """The paper that a module belongs to; "" for a module of the core."""
    parts = module.split(".")
    return parts[2] if parts[1:2] == ["papers"] and len(parts) > 2 and parts[2] in PAPERS else ""


CORE = [name for name in MODULES if not paper(name)]
OF_PAPERS = [name for name in MODULES if paper(name)]


@cache
def reached(module: str) -> set[str]:
    """Everything a module imports, transitively."""
    seen: set[str] = set()
    waiting = [module]
    while waiting:
        for other in graph().get(waiting.pop(), ()):
            if other not in seen:
                seen.add(other)
                waiting.append(other)
    return seen


def test_the_core_reaches_no_paper():
    for module in CORE:
        assert not {other for other in reached(module) if paper(other)}, module


def test_a_paper_reaches_no_other_paper():
    for module in OF_PAPERS:
        assert {paper(other) for other in reached(module)} <= {"", paper(module)}, module
        assert not {other for other in reached(module) if part(other) in READ_BY_NOBODY}, module


@pytest.mark.parametrize("folder", sorted(path.parent for path in SCRIPTS.glob("*/__init__.py")), ids=lambda folder: folder.name)
def test_the_scripts_of_a_paper_reach_no_other_paper(folder):
    assert folder.name in PAPERS
    for path in folder.rglob("*.py"):
        for module in imports(ast.parse(path.read_text())):
            modules = {module, *reached(module)}
            assert {paper(other) for other in modules} <= {"", folder.name}, f"{path} imports {module}"
            assert not {other for other in modules if part(other) in READ_BY_NOBODY}, f"{path} imports {module}"


def test_parts_of_the_core_import_lower_ones():
    for module in filter(part, CORE):
        mine = part(module)
        assert mine in RANK, f"{mine} has no rank; give it one in this test and in docs/layers.md"
        for other in graph()[module]:
            lower = part(other) in ("", mine) or RANK[part(other)] < max(RANK[mine], 1)
            assert lower, f"{module} (rank {RANK[mine]}) imports {other}"


def test_a_paper_reaches_no_text_of_its_own():
    """`text/` imports its parent, never back. The paper's object lists the studies of both."""
    for module in OF_PAPERS:
        back = {other for other in graph()[module] if f".{paper(module)}.text" in other}
        allowed = ".text" in module or module.endswith((f"papers.{paper(module)}", ".study"))
        assert not back or allowed, f"{module} imports {back}"


def test_roles_import_earlier_roles():
    for module in OF_PAPERS:
        folder, role = _role(module)
        if role is None:
            continue
        for other in graph()[module]:
            place, used = _role(other)
            if used is not None and place == folder:
                assert ROLES.index(used) <= ROLES.index(role), f"{module} imports {other}"


def _role(module: str) -> tuple[str, str | None]:
    """The folder a module plays a role in, and which."""
    parts = module.split(".")[2:]
    for place, name in enumerate(parts):
        if name in ROLES:
            return ".".join(parts[:place]), name
    return ".".join(parts), None


def test_what_is_named_as_text_keeps_the_rules_too():
    """A study names what sets it up and reads it: modules of its own paper, or of the core below it.

    The registry names how runs without a paper are read: a module beside it, which imports the registry.
    """
    for module, others in NAMED.items():
        for other in others:
            beside = module == "stagescope.readings.registry" and part(other) == "readings"
            assert paper(other) in ("", paper(module)), f"{module} names {other}"
            assert part(other) not in READ_BY_NOBODY, f"{module} names {other}"
            assert paper(module) or beside or RANK[part(other)] < RANK[part(module)], f"{module} names {other}"


def test_names_as_text_are_seen():
    assert "stagescope.papers.scan_snap.loss" in NAMED["stagescope.papers.scan_snap.study"]
    assert "stagescope.papers.scan_snap.setup" in NAMED["stagescope.papers.scan_snap"]
    assert sum(map(len, NAMED.values())) > 40


def test_no_cycle():
    for module in MODULES:
        assert module not in reached(module), module


def test_the_test_sees_a_violation():
    tree = ast.parse("def f():\n    from stagescope.cli import main\n")
    assert list(imports(tree)) == ["stagescope.cli.main"]


@pytest.mark.long
def test_jax_has_one_door():
    """Only autodiff.py imports JAX at module level, so that the kernel path never pays for it."""
    for name, path in MODULES.items():
        top = [n for n in ast.parse(path.read_text()).body if isinstance(n, ast.Import | ast.ImportFrom)]
        named = {alias.name for n in top if isinstance(n, ast.Import) for alias in n.names}
        named |= {n.module or "" for n in top if isinstance(n, ast.ImportFrom)}
        heavy = {each.split(".")[0] for each in named} & {"jax", "optax"}
        assert not heavy or path.name == "autodiff.py", name
        assert path.name == "__init__.py" or "stagescope.flow.autodiff" not in named, name
