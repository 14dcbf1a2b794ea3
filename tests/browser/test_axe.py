"""axe-core finds nothing serious on a page, in both themes, on a screen and on a phone. `make test` installs it from npm."""

import re
from pathlib import Path

import pytest

from stagescope.show.page import page
from stagescope.show.play import write_play
from tests.browser.samples import portrait

ROOT = Path(__file__).parents[2]
SERIOUS = ("serious", "critical")
FOUND = """async () => (await axe.run(document, {resultTypes: ['violations']})).violations
    .map(one => [one.impact, one.id, one.nodes.map(node => node.html.slice(0, 160))])"""


@pytest.fixture(scope="module")
def axe() -> str:
    """The script of the version that the Makefile names."""
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    version = re.search(r"^AXE := (\S+)", makefile, re.MULTILINE)
    assert version is not None
    path = ROOT / ".venv" / "axe-core" / version[1] / "node_modules" / "axe-core" / "axe.min.js"
    if not path.is_file():
        pytest.fail(f"axe-core {version[1]} is not in .venv; `make test` installs it")
    return path.read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def sample(tmp_path_factory):
    path = tmp_path_factory.mktemp("axe") / "page.html"
    path.write_text(page([portrait("flow"), portrait("adam", clock="step", until=200)], "Two scenes"), encoding="utf-8")
    return path


def serious(seen) -> list:
    return [one for one in seen.page.evaluate(FOUND) if one[0] in SERIOUS]


@pytest.mark.parametrize(("scheme", "width"), [("light", 1280), ("dark", 400)])
def test_axe_finds_nothing_serious(visit, sample, axe, scheme, width):
    seen = visit(sample, scheme=scheme, width=width, height=800)
    seen.whole()
    seen.page.evaluate(axe)
    assert serious(seen) == []
    seen.press("g")
    seen.settle()
    assert serious(seen) == []
    assert seen.page.evaluate("() => document.documentElement.scrollWidth <= document.documentElement.clientWidth")
    seen.press("Escape")


@pytest.mark.long
def test_axe_finds_nothing_serious_in_a_playground(visit, tmp_path, axe):
    """Each study, and both themes on a screen and on a phone."""
    seen = visit(write_play([], tmp_path / "play.html"))
    seen.page.evaluate(axe)
    for study, width in (("focus-dilution", 1400), ("scan-snap", 400), ("linear-icl", 400), ("linear-icl", 1400)):
        seen.resize(width)
        seen.page.get_by_label("study", exact=True).select_option(study)
        seen.until("() => stagescope.ground.difference !== null")
        seen.page.evaluate("() => document.querySelectorAll('details').forEach(fold => { fold.open = true; })")
        seen.settle()
        assert serious(seen) == [], (study, width)
        seen.press("d")
