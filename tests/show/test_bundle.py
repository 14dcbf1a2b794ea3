"""The bundler: dependencies first, and an error for what it does not understand; the modules of the viewer fit together."""

import graphlib
import re
from pathlib import Path

import pytest

from stagescope.show.bundle import VIEWER, BundleError, bundle, embeddable, uplot_file, viewer_script, viewer_style

ENTRIES = ("main", "diagram", "play")


@pytest.fixture
def folder(tmp_path):
    """Write modules given as name=text; returns their folder."""

    def write(**modules: str) -> Path:
        for name, text in modules.items():
            (tmp_path / f"{name}.js").write_text(text)
        return tmp_path

    return write


def test_modules_come_after_what_they_import(folder):
    made = bundle(
        folder(
            main='import { b } from "./middle.js";\nimport {\n  a,\n  C,\n} from "./base.js";\nb(a, new C());\n',
            middle='import { a } from "./base.js";\n/** Adds. */\nexport async function b() {\n  return a;\n}\n',
            base="export const a = 1;\nexport class C {}\nfunction hidden() {}\n",
            unused="export const never = 1;\n",
        )
    )
    assert [made.index(part) for part in ("const a", "function b", "b(a, new C")] == sorted(
        made.index(part) for part in ("const a", "function b", "b(a, new C")
    )
    assert made.count("const a = 1") == 1
    assert "import" not in made
    assert "export" not in made
    assert "never" not in made


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("export default 1;\n", "export default"),
        ('export { a } from "./a.js";\n', "export { a }"),
        ('import a from "./a.js";\n', "import a"),
        ("const { a, b } = window;\n", "const { a, b }"),
        ('const text = "</SCRIPT>";\n', "</script"),
    ],
)
def test_what_it_does_not_understand_is_named(folder, text, said):
    with pytest.raises(BundleError, match=re.escape(said)):
        bundle(folder(main=text))


IMPORT = re.compile(r'^import\s*\{([^}]*)\}\s*from\s*"\./([\w-]+)\.js";', re.MULTILINE)
NAME = re.compile(r"^(export )?(?:async )?(?:function\*?|const|let|var|class) +([\w$]+)", re.MULTILINE)


def test_modules_of_the_viewer_fit_together():
    """Names are unique over all modules of a page, each import is an export of its module, and no module imports itself."""
    texts = {path.stem: path.read_text(encoding="utf-8") for path in VIEWER.glob("*.js")}
    exports = {module: {name for exported, name in NAME.findall(text) if exported} for module, text in texts.items()}
    imports = {module: IMPORT.findall(text) for module, text in texts.items()}
    for module, found in imports.items():
        for names, other in found:
            assert set(filter(None, map(str.strip, names.split(",")))) <= exports[other], f"{module}.js imports from {other}.js"
    list(graphlib.TopologicalSorter({module: [other for _, other in found] for module, found in imports.items()}).static_order())
    for entry in ENTRIES:
        names = [name for _, name in NAME.findall(viewer_script(entry))]
        assert len(names) == len(set(names)), sorted(name for name in names if names.count(name) > 1)


def test_a_style_that_would_end_early_is_refused():
    with pytest.raises(BundleError, match="the sheet"):
        embeddable("a::before { content: '</style>' }", "the sheet")


def test_the_viewer_is_whole():
    """Every module but the types is reached from the entry of a page, so none is dead."""
    scripts = [viewer_script(entry) for entry in ENTRIES]
    reached = {name for script in scripts for name in re.findall(r"^// ([\w-]+)\.js$", script, re.MULTILINE)}
    assert reached == {path.stem for path in VIEWER.glob("*.js")} - {"types", "play_types"}
    assert not any(re.search(r"^(import|export)\b", script, re.MULTILINE) for script in scripts)
    assert uplot_file("uPlot.iife.js").lstrip().startswith("/**")  # with its licence
    assert "var uPlot" in uplot_file("uPlot.iife.js")


BANNED = r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|new Function|setAttribute\(\s*[\"'](?:style|on)"
REMOTE = r"\bfetch\(|XMLHttpRequest|WebSocket|EventSource|sendBeacon|importScripts|\bimport\s*\(|@import|url\(\s*[\"']?\w*:?//"


@pytest.mark.parametrize("entry", ENTRIES)
def test_the_viewer_makes_no_html_from_text_and_asks_no_network(entry):
    script = re.sub(r"/\*.*?\*/", "", viewer_script(entry), flags=re.DOTALL)  # types in comments name other files
    assert not re.findall(BANNED, script)
    assert not re.findall(REMOTE, script + viewer_style("style", "panels", "diagram"))
