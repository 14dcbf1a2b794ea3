"""The browser of the tests: where it is, how it is installed, what to say where there is none.

`python -m tests.browser.chromium` installs it where it is missing; with `--apt` only in that way, without any package.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from playwright.sync_api import Browser, BrowserType

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
SKIP = "STAGESCOPE_NO_BROWSER"
REMEDY = (
    "no Chromium could be started. Install one with `apt-get install chromium` (as root) or "
    f"`.venv/bin/playwright install --with-deps chromium`; {SKIP}=1 leaves the browser tests out"
)


def unwanted() -> bool:
    """Whether the person asked for no browser."""
    return os.environ.get(SKIP) == "1"


def launch(kind: BrowserType) -> Browser | None:
    """The first Chromium that starts: the system's, then playwright's own. A found one may be an empty shell, as in Ubuntu."""
    from playwright.sync_api import Error

    for path in (*filter(None, map(shutil.which, NAMES)), None):
        try:
            return kind.launch(executable_path=path)
        except Error:
            continue
    return None


def starts() -> bool:
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = launch(playwright.chromium)
        if browser is not None:
            browser.close()
        return browser is not None


def root() -> bool:
    return os.name == "posix" and os.geteuid() == 0


def apt_ways() -> Iterator[list[list[str]]]:
    """Ways to install Chromium through apt, each as its commands; none where this machine or user does not allow it."""
    if root() and shutil.which("apt-get"):
        install = ["apt-get", "install", "--yes", "--no-install-recommends", "chromium"]
        yield [install]
        yield [["apt-get", "update"], install]


def ways() -> Iterator[list[list[str]]]:
    yield from apt_ways()
    yield [[sys.executable, "-m", "playwright", "install", *(["--with-deps"] if root() else []), "chromium"]]


def there() -> bool:
    return any(map(shutil.which, NAMES))


def install(ways: Iterator[list[list[str]]], works: Callable[[], bool]) -> bool:
    """Try each way until a browser is there, or starts."""
    for commands in ways:
        for command in commands:
            print("no Chromium yet:", *command, flush=True)
            subprocess.run(command, check=False, stdout=subprocess.DEVNULL)
        if works():
            return True
    return False


def main(words: list[str]) -> None:
    """Never stops `make test`: without a browser its tests fail by themselves, with the same sentence."""
    if unwanted():
        return
    if "--apt" in words:
        if not there():
            install(apt_ways(), there)
    elif not starts() and not install(ways(), starts):
        print(REMEDY, file=sys.stderr)


if __name__ == "__main__":
    main(sys.argv[1:])
