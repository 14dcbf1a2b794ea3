"""The viewer as one script and one style sheet.

The viewer is written as plain JavaScript modules. A page that is opened from disk may not load modules from other files, so
they are put together here: in order of their imports, with `import` and `export` removed, inside one module.
"""

import re
from functools import cache
from importlib.util import find_spec
from pathlib import Path

from stagescope.errors import StagescopeError

VIEWER = Path(__file__).parent / "viewer"
_IMPORT = re.compile(r'^import\s*\{([^}]*)\}\s*from\s*"\./([\w-]+)\.js";\n?', re.MULTILINE)
_EXPORT = re.compile(r"^export (?=(?:async )?(?:function|const|class)\b)", re.MULTILINE)
_NAME = re.compile(r"^(export )?(?:async )?(?:function\*?|const|let|var|class) +([\w$]+)", re.MULTILINE)
_LEFT = re.compile(r"^(?:import|export)\b.*|^(?:const|let|var) *[\[{].*", re.MULTILINE)


class BundleError(StagescopeError):
    """A module of the viewer is not written in the way the bundler understands."""


def bundle(folder: Path = VIEWER, entry: str = "main") -> str:
    """All modules that the entry needs, each after those it imports from."""
    bodies: dict[str, str] = {}
    _visit(entry, folder, bodies, ())
    owners: dict[str, str] = {}
    for module, body in bodies.items():
        for _, name in _NAME.findall(body):
            if name in owners:
                raise BundleError(f"{module}.js: {name} is also a name in {owners[name]}.js; names are unique over all modules")
            owners[name] = module
    whole = "\n".join(f"// {module}.js\n{body}" for module, body in bodies.items())
    return embeddable(whole, "the viewer's script")


def _visit(module: str, folder: Path, bodies: dict[str, str], above: tuple[str, ...]) -> None:
    """Add a module behind everything it imports."""
    if module in above:
        raise BundleError(f"{module}.js imports itself: {' -> '.join((*above, module))}")
    if module in bodies:
        return
    text = _source(module, folder, above)
    for names, other in _IMPORT.findall(text):
        _visit(other, folder, bodies, (*above, module))
        known = {name for exported, name in _NAME.findall(_source(other, folder, above)) if exported}
        for name in filter(None, map(str.strip, names.split(","))):
            if name not in known:
                raise BundleError(f"{module}.js imports {name} from {other}.js, which exports: {', '.join(sorted(known))}")
    bodies[module] = unexported(_IMPORT.sub("", text), f"{module}.js")


def unexported(text: str, what: str) -> str:
    """A module without `export`, to stand inside another script; it must not import anything."""
    body = _EXPORT.sub("", text)
    left = _LEFT.search(body)
    if left:
        raise BundleError(f"{what}: cannot bundle {left.group()!r}; use import {{ a }} and export function, const or class")
    return body


def _source(module: str, folder: Path, above: tuple[str, ...]) -> str:
    path = folder / f"{module}.js"
    if not path.is_file():
        raise BundleError(f"{path.name} is missing" + (f"; {above[-1]}.js imports it" if above else ""))
    return path.read_text(encoding="utf-8")


def embeddable(text: str, what: str) -> str:
    """Text that may stand inside <script> or <style> as it is."""
    if re.search(r"</(?:script|style)|<!--", text, re.IGNORECASE):
        raise BundleError(f"{what} holds '</script', '</style' or '<!--', which would end it early inside a page")
    return text


@cache
def viewer_script(entry: str) -> str:
    """`main` shows runs, `diagram` a sweep, `play` a playground."""
    return bundle(entry=entry)


@cache
def viewer_style(*sheets: str) -> str:
    return "\n".join(embeddable((VIEWER / f"{name}.css").read_text(encoding="utf-8"), f"{name}.css") for name in sheets)


@cache
def uplot_file(name: str) -> str:
    """A file of uPlot as the package uplot-python ships it; the package itself, which loads IPython, is not imported."""
    spec = find_spec("uplot")
    if spec is None or spec.origin is None:
        raise BundleError("uPlot is not installed; pip install uplot-python")
    return embeddable((Path(spec.origin).parent / "static" / name).read_text(encoding="utf-8"), name)
