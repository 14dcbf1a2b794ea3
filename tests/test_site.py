"""The documentation site, without building it: `make docs` does that."""

import importlib.util
import re
import sys
from pathlib import PurePosixPath
from types import ModuleType

import pytest
import yaml

import stagescope as ss
from tests.documents import ROOT


def _file(name: str) -> ModuleType:
    """A file of the site's machinery; what builds pages is not needed."""
    spec = importlib.util.spec_from_file_location(name, ROOT / "docs" / "site" / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def pages(monkeypatch):
    """docs/site/pages.py; mkdocs itself is no package of the tests."""
    for name in ("mkdocs", "mkdocs.config", "mkdocs.config.defaults", "mkdocs.structure", "mkdocs.structure.files"):
        if name not in sys.modules:
            monkeypatch.setitem(sys.modules, name, ModuleType(name))
    for name, attribute in (
        ("mkdocs.config.defaults", "MkDocsConfig"),
        ("mkdocs.structure.files", "File"),
        ("mkdocs.structure.files", "Files"),
    ):
        monkeypatch.setattr(sys.modules[name], attribute, object, raising=False)
    return _file("pages")


def navigation():
    def walk(item):
        if isinstance(item, str):
            yield item
        for each in item.values() if isinstance(item, dict) else item if isinstance(item, list) else ():
            yield from walk(each)

    return list(walk(yaml.safe_load((ROOT / "mkdocs.yml").read_text())["nav"]))


def test_the_navigation_names_every_page_once(pages):
    written = {str(path.relative_to(ROOT / "docs")) for path in (ROOT / "docs").rglob("*.md")}
    executed = {f"{part}/{path.stem}.md" for part in ("gallery", "notebooks") for path in (ROOT / "docs" / part).glob("*.py")}
    listed = {f"api/{page}.md" for page in pages.NAMES}
    expected = [*written, *executed, *listed, *pages.DOCUMENTS.values(), "gallery/index.md"]
    assert sorted(navigation()) == sorted(expected)


def test_every_public_name_is_on_one_page_of_names(pages):
    shown = [name for text in pages.names_pages().values() for name in re.findall(r"^::: stagescope\.(\w+)$", text, re.MULTILINE)]
    assert sorted(shown) == sorted(ss.__all__)
    assert all(text.count(":::") for text in pages.names_pages().values())


def test_links_of_documents_lead_to_pages_of_the_site(pages):
    read = PurePosixPath("docs/five-minutes.md")
    text = "[a](../src/stagescope/readings/paper.py) [b](play.md#x) [c](../README.md) [d](https://e.org)\n```\n[e](x.md)\n```\n"
    expected = (
        "[a](source/src/stagescope/readings/paper.py.md) [b](play.md#x) [c](index.md) [d](https://e.org)\n```\n[e](x.md)\n```\n"
    )
    assert pages.rewritten(text, read, "five-minutes.md") == expected
    assert "](../five-minutes.md)" in pages.rewritten(
        "[a](docs/five-minutes.md)", PurePosixPath("CONTRIBUTING.md"), "project/contributing.md"
    )


def test_notebooks_and_gallery_are_stored_without_outputs():
    assert not [*(ROOT / "docs").rglob("*.ipynb")]
    assert len([*(ROOT / "docs" / "notebooks").glob("*.py")]) >= 3
    assert len([*(ROOT / "docs" / "gallery").glob("*.py")]) >= 8
    for path in [*(ROOT / "docs" / "notebooks").glob("*.py"), *(ROOT / "docs" / "gallery").glob("*.py")]:
        assert path.read_text().startswith("# %% [markdown]\n# # "), path.name
        compile(path.read_text(), path, "exec")


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ('<a href="b.html#there">', ""),
        ('<a href="b.html#nowhere">', "no such anchor"),
        ('<a href="c.html">', "not there"),
        ('<script src="https://e.org/a.js"></script>', "from the network"),
        ('<link rel="stylesheet" href="//e.org/a.css">', "from the network"),
        ('<a href="https://e.org">', ""),
        ('<iframe src="c.html"></iframe>', "not there"),
    ],
)
def test_a_wrong_link_in_the_site_is_caught(tmp_path, body, said):
    (tmp_path / "a.html").write_text(body)
    (tmp_path / "b.html").write_text('<h2 id="there">B</h2>')
    found = _file("check").problems(tmp_path)
    assert [said in each for each in found] == [True] * bool(said)
