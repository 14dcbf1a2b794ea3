"""On paper the whole page stands, in light colours; afterwards the screen is as it was."""

import pytest

from stagescope.reporting.page import page
from tests.browser.samples import portrait


@pytest.fixture
def seen(visit, tmp_path):
    path = tmp_path / "page.html"
    path.write_text(page([portrait("a"), portrait("b", seed=1)]), encoding="utf-8")
    return visit(path, hash="#theme=dark", height=400)


def look(seen) -> dict:
    """The colour of the page, how much is folded, and the first cell of a map, read from a copy of it."""
    return seen.page.evaluate(
        """() => { const copy = document.createElement('canvas').getContext('2d');
            copy.drawImage(document.querySelector('canvas.tile-cells'), 0, 0);
            return {paper: getComputedStyle(document.documentElement).backgroundColor,
                folded: document.querySelectorAll('#page details:not([open], .export)').length,
                pixel: [...copy.getImageData(0, 0, 1, 1).data].join()}; }"""
    )


def built(seen) -> None:
    seen.until("() => !document.querySelector('[aria-busy=true]')")


def test_panels_are_built_before_anybody_scrolls_to_them(seen):
    built(seen)
    assert seen.page.evaluate("() => scrollY") == 0
    assert seen.panel("plane").locator("canvas.plane").count() == 2


def test_paper_is_light_and_unfolded(seen):
    built(seen)
    before = look(seen)
    seen.page.evaluate("() => dispatchEvent(new Event('beforeprint'))")
    seen.settle()
    printed = look(seen)
    assert printed["paper"] == "rgb(255, 255, 255)"
    assert before["folded"] > 0
    assert printed["folded"] == 0
    assert printed["pixel"] != before["pixel"]
    seen.page.evaluate("() => dispatchEvent(new Event('afterprint'))")
    seen.settle()
    assert look(seen) == before


def test_the_key_builds_everything_and_prints(seen):
    seen.page.evaluate("() => { window.print = () => { window.busy = document.querySelectorAll('[aria-busy=true]').length; }; }")
    seen.press("Control+p")
    seen.until("() => window.busy === 0")


def test_the_browser_makes_pages_of_it(seen):
    built(seen)
    made = seen.page.pdf(prefer_css_page_size=True)
    assert made.count(b"/Type /Page\n") + made.count(b"/Type /Page ") >= 2
    assert look(seen)["paper"] != "rgb(255, 255, 255)"


def test_folds_of_panels_built_while_printing_are_opened(visit, tmp_path):
    path = tmp_path / "page.html"
    path.write_text(page([portrait("a"), portrait("b", seed=1)]), encoding="utf-8")
    seen = visit(path, height=400)
    seen.page.evaluate("() => dispatchEvent(new Event('beforeprint'))")
    built(seen)
    seen.settle()
    assert look(seen)["folded"] == 0
