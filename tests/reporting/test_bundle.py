"""The bundler: dependencies first, names unique, and an error that names the file for everything it does not understand."""

import re
from pathlib import Path

import pytest

from stagescope.reporting.bundle import VIEWER, BundleError, bundle, embeddable, uplot_file, viewer_script, viewer_style

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
    ("modules", "said"),
    [
        ({"main": 'import { a } from "./gone.js";\n'}, "gone.js is missing; main.js imports it"),
        ({}, "main.js is missing"),
        ({"main": 'import { x } from "./a.js";\n', "a": "const x = 1;\n"}, "main.js imports x from a.js"),
        ({"main": 'import { a } from "./a.js";\nconst twice = 1;\n', "a": "export const a = 1;\nfunction twice() {}\n"}, "twice"),
        ({"main": 'import { a } from "./a.js";\n', "a": 'import { m } from "./main.js";\n'}, "main -> a -> main"),
        ({"main": "export default 1;\n"}, "export default"),
        ({"main": 'export { a } from "./a.js";\n'}, "export { a }"),
        ({"main": 'import a from "./a.js";\n'}, "import a"),
        ({"main": 'import { a as b } from "./a.js";\n', "a": "export const a = 1;\n"}, "a as b"),
        ({"main": "const { a, b } = window;\n"}, "const { a, b }"),
        ({"main": 'const text = "</SCRIPT>";\n'}, "</script"),
    ],
)  # fmt: skip
def test_what_it_does_not_understand_is_named(folder, modules, said):
    with pytest.raises(BundleError, match=re.escape(said)):
        bundle(folder(**modules))


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
