"""The browser of the tests: where it is, how it is installed, what to say where there is none.

`python -m tests.browser.chromium` installs it where it is missing.
"""

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator

from playwright.sync_api import Browser, BrowserType, Error, sync_playwright

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
    for path in (*filter(None, map(shutil.which, NAMES)), None):
        try:
            return kind.launch(executable_path=path)
        except Error:
            continue
    return None


def starts() -> bool:
    with sync_playwright() as playwright:
        browser = launch(playwright.chromium)
        if browser is not None:
            browser.close()
        return browser is not None


def ways() -> Iterator[list[list[str]]]:
    """Ways to install Chromium that this machine and user allow, each as its commands."""
    root = os.name == "posix" and os.geteuid() == 0
    if root and shutil.which("apt-get"):
        install = ["apt-get", "install", "--yes", "--no-install-recommends", "chromium"]
        yield [install]
        yield [["apt-get", "update"], install]
    yield [[sys.executable, "-m", "playwright", "install", *(["--with-deps"] if root else []), "chromium"]]


def install() -> bool:
    """Try each way until a browser starts."""
    for commands in ways():
        for command in commands:
            print("no Chromium yet:", *command, flush=True)
            subprocess.run(command, check=False, stdout=subprocess.DEVNULL)
        if starts():
            return True
    return False


def main() -> None:
    """Never stops `make test`: without a browser its tests fail by themselves, with the same sentence."""
    if not unwanted() and not starts() and not install():
        print(REMEDY, file=sys.stderr)


if __name__ == "__main__":
    main()
