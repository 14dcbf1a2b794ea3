"""A page under watch: everything it asks the network for, logs, throws or pops up is kept, and must be nothing."""

import time
from pathlib import Path
from typing import Any

from playwright.sync_api import Browser, Locator

PATIENCE = 20_000
"""Milliseconds until a wait is given up; long, because a test machine may be busy."""
KEPT = """async () => [localStorage.length, sessionStorage.length, (await indexedDB.databases()).length, window.name.length,
    document.cookie.length]"""
"""What outlives a page in its window, counted."""


class Watched:
    """A window in a context of its own, with one file opened in it, and perhaps another one after that."""

    def __init__(
        self, browser: Browser, path: Path, hash: str = "", scheme: Any = "light", width: int = 1280, height: int = 800
    ) -> None:
        self.requests, self.noise = [], []
        self.first = self.size = (width, height)
        self.context = browser.new_context(
            viewport={"width": width, "height": height}, color_scheme=scheme, reduced_motion="reduce", accept_downloads=True
        )
        self.context.set_default_timeout(PATIENCE)
        self.page = self.context.new_page()
        self.page.on("request", lambda request: self.requests.append(request.url))
        self.page.on("websocket", lambda socket: self.requests.append(socket.url))
        self.page.on("popup", lambda other: self.noise.append(f"popup {other.url}"))
        self.page.on("pageerror", lambda error: self.noise.append(f"error {error}"))
        self.page.on("console", lambda message: self.noise.append(f"{message.type}: {message.text}"))
        self.page.on("dialog", self._dialog)
        self.load(path, hash)

    def _dialog(self, dialog: Any) -> None:
        self.noise.append(f"dialog {dialog.message}")
        dialog.dismiss()

    def resize(self, width: int, height: int = 800) -> None:
        """Another size of the window, until the page has drawn itself anew; a new file finds the first size again."""
        if (width, height) == self.size:
            return
        self.size = (width, height)
        self.page.set_viewport_size({"width": width, "height": height})
        self.settle()
        self.settle()

    def load(self, path: Path, hash: str = "") -> None:
        """A file as in a new window: nothing is remembered of the one before, and the pointer is where it was at first."""
        self.page.goto("about:blank")
        self.resize(*self.first)
        self.page.mouse.move(0, 0)
        self.path = path
        self.noise.clear()
        self._go(hash)

    def open(self, hash: str = "") -> None:
        """Load the file afresh, at a hash, until it says that it can be used."""
        self.page.goto("about:blank")
        self._go(hash)

    def _go(self, hash: str) -> None:
        self.requests.clear()
        self.page.goto(self.path.as_uri() + hash)
        self.until("() => document.documentElement.dataset.ready === 'true'")
        self.settle()

    def until(self, condition: str, argument: Any = None) -> None:
        """Wait for a condition, a function in JavaScript. Playwright's own wait evaluates text, which the policy forbids."""
        holds = self.page.evaluate(
            f"""async ([argument, patience]) => {{ const holds = {condition}, began = performance.now();
                while (!holds(argument) && performance.now() - began < patience) await new Promise(requestAnimationFrame);
                return Boolean(holds(argument)); }}""",
            [argument, PATIENCE],
        )
        assert holds, condition

    def check(self) -> None:
        """Nothing but the file itself was asked for; blobs and data never leave the page."""
        asked = [url for url in self.requests if not url.startswith(("blob:", "data:"))]
        assert [url.split("#")[0] for url in asked] == [self.path.as_uri()]
        assert not self.noise, self.noise
        assert not any(self.page.evaluate(KEPT)), "a page leaves nothing behind that another one could read"

    def close(self) -> None:
        self.context.close()

    def noticed(self, words: str) -> None:
        """Wait for words among what the page logged: they come from another process, when that finds the time."""
        began = time.monotonic()
        while not any(words in line for line in self.noise):
            assert time.monotonic() - began < PATIENCE / 1000, (words, self.noise)
            self.page.wait_for_timeout(10)

    def press(self, *keys: str) -> None:
        for key in keys:
            self.page.keyboard.press(key)
        self.settle()

    def click(self, at: Locator, **how: Any) -> None:
        at.click(**how)
        self.settle()

    def hover(self, at: Locator, **how: Any) -> None:
        at.hover(**how)
        self.settle()

    def tab(self, number: int) -> None:
        """Go to a scene by its tab, until it is shown: one that was not shown before is decoded first."""
        tab, before = self.page.get_by_role("tab").nth(number), self.page.evaluate_handle("() => window.stagescope.scene()")
        changes = tab.get_attribute("aria-selected") == "false"
        tab.click()
        if changes:
            self.until("before => window.stagescope.scene() !== before", before)
        self.until("() => !document.querySelector('section.panel:nth-child(-n + 2) [aria-busy=true]')")
        self.settle()

    def settle(self) -> None:
        """Two animation frames: a page draws at the next frame, not at once."""
        self.page.evaluate("() => new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))")

    def whole(self) -> None:
        """Every panel built, everything folded opened, back at the top: panels are made when they come near the screen."""
        self.page.evaluate(
            """async () => { const tick = () => new Promise(requestAnimationFrame);
                for (const panel of document.querySelectorAll('section.panel')) {
                    panel.scrollIntoView(); await tick(); await tick(); }
                for (const fold of document.querySelectorAll('details')) fold.open = true; }"""
        )
        self.until("() => !document.querySelector('[aria-busy=true]')")
        self.page.evaluate("() => scrollTo(0, 0)")
        self.settle()

    @property
    def slider(self) -> Locator:
        return self.page.locator("input[type=range]").first

    @property
    def position(self) -> int:
        """Where the scrubber stands, as its slider says."""
        return int(self.slider.get_attribute("aria-valuetext").split()[1].replace(",", "")) - 1

    @property
    def frames(self) -> int:
        """How many frames the scrubber goes over."""
        return int(self.page.locator(".slider:visible").get_attribute("aria-valuetext").split()[3].strip(",").replace(",", ""))

    def scrub(self, position: int) -> None:
        """Move the slider as a pointer does: its value, then the event."""
        self.slider.evaluate(
            """(slider, to) => { const scene = window.stagescope.scene();
                slider.value = String(scene.scale.share(scene.times[Math.min(to, scene.times.length - 1)]));
                slider.dispatchEvent(new Event('input', {bubbles: true})); }""",
            position,
        )
        self.settle()

    def panel(self, slot: str) -> Locator:
        return self.page.locator(f'section.panel[data-slot="{slot}"]')

    def value(self, slot: str, run: int, panel: int, row: int, column: int) -> dict[str, Any]:
        return self.page.evaluate("at => window.stagescope.value(...at)", [slot, run, panel, row, column])
