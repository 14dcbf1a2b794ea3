"""On paper the whole page stands: styles alone hide the player and open what is folded."""

import pytest

from stagescope.show.page import page
from tests.browser.samples import portrait


@pytest.fixture
def seen(visit, tmp_path):
    path = tmp_path / "page.html"
    path.write_text(page([portrait("a"), portrait("b", seed=1)]), encoding="utf-8")
    found = visit(path, height=400)
    found.until("() => !document.querySelector('[aria-busy=true]')")
    yield found
    found.page.emulate_media(media="screen")


def test_panels_are_built_before_anybody_scrolls_to_them(seen):
    assert seen.page.evaluate("() => scrollY") == 0
    assert seen.panel("plane").locator("canvas.plane").count() == 2


@pytest.mark.long
def test_paper_is_unfolded_and_has_no_controls(seen):
    facts = seen.page.locator("#page details .facts-parts").first
    assert not facts.is_visible()
    assert seen.page.locator(".dock").is_visible()
    seen.page.emulate_media(media="print")
    seen.settle()
    assert facts.is_visible()
    assert facts.bounding_box()["height"] > 50
    for control in (".dock", ".panel-tools", ".page-tools"):
        assert not seen.page.locator(control).first.is_visible()


@pytest.mark.long
def test_the_browser_makes_pages_of_it(seen):
    made = seen.page.pdf(prefer_css_page_size=True)
    assert made.count(b"/Type /Page\n") + made.count(b"/Type /Page ") >= 2
