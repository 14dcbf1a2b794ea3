"""One Chromium for each pytest worker, and pages that are watched: what a test opens must stay silent and offline."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, sync_playwright

from tests.browser.chromium import REMEDY, launch, unwanted
from tests.browser.watched import Watched


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    if unwanted():
        pytest.skip("STAGESCOPE_NO_BROWSER=1")
    with sync_playwright() as playwright:
        found = launch(playwright.chromium)
        if found is None:
            pytest.fail(REMEDY)
        yield found
        found.close()


@pytest.fixture
def visit(browser: Browser) -> Iterator[Callable[..., Watched]]:
    """Opens a file (with `hash`, `scheme`, `width`, `height`); afterwards, every page opened must have been silent."""
    opened: list[Watched] = []

    def visit(path: Path, **how: Any) -> Watched:
        opened.append(Watched(browser, path, **how))
        return opened[-1]

    yield visit
    for page in opened:
        page.check()
        page.close()
