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


@pytest.fixture(scope="session")
def windows() -> dict[tuple, list[Watched]]:
    """Windows that are free, by colour scheme and size: a new one costs as much as the page that is opened in it."""
    return {}


@pytest.fixture
def visit(browser: Browser, windows: dict[tuple, list[Watched]]) -> Iterator[Callable[..., Watched]]:
    """Opens a file (with `hash`, `scheme`, `width`, `height`); afterwards, every page opened must have been silent."""
    opened: list[tuple[tuple, Watched]] = []

    def visit(path: Path, hash: str = "", **how: Any) -> Watched:
        kind = tuple(sorted(how.items()))
        free = windows.get(kind, [])
        if free:
            seen = free.pop()
            seen.load(path, hash)
        else:
            seen = Watched(browser, path, hash, **how)
        opened.append((kind, seen))
        return seen

    yield visit
    for kind, seen in opened:
        seen.check()  # a window that fails here is not used again
        windows.setdefault(kind, []).append(seen)
