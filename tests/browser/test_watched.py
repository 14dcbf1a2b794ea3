"""The watch itself: a page that is not silent, not offline or leaves something behind is found out."""

import time

import pytest

from tests.browser.watched import PATIENCE, Watched

NOISY = {
    "console": "console.warn('careful')",
    "error": "setTimeout(() => { throw new Error('broken'); })",
    "dialog": "alert(1)",
    "request": "fetch('http://localhost:9/').catch(() => {})",
    "picture": "new Image().src = 'http://localhost:9/x.png'",
    "popup": "window.open('about:blank')",
    "storage": "localStorage.setItem('a', 1)",
    "session": "sessionStorage.setItem('a', 1)",
    "database": "indexedDB.open('a', 1).onupgradeneeded = event => event.target.result.createObjectStore('b')",
    "name": "window.name = 'a'",
}


def found_out(seen: Watched) -> None:
    """The check fails as soon as the noise has come from the browser to here."""
    began = time.monotonic()
    while time.monotonic() - began < PATIENCE / 1000:
        try:
            seen.check()
        except AssertionError:
            return
        seen.page.wait_for_timeout(10)
    pytest.fail("nothing was noticed")


@pytest.mark.long
@pytest.mark.parametrize("name", NOISY)
def test_noise_is_noticed(browser, tmp_path, name):
    path = tmp_path / "page.html"
    ready = "document.documentElement.dataset.ready = 'true'"
    path.write_text(f"<!doctype html><title>x</title><main></main><script>{NOISY[name]}; {ready};</script>", encoding="utf-8")
    seen = Watched(browser, path)
    found_out(seen)
    seen.close()


def test_silence_passes(browser, tmp_path):
    path = tmp_path / "page.html"
    path.write_text("<!doctype html><html data-ready=true><title>x</title><main></main>", encoding="utf-8")
    seen = Watched(browser, path)
    seen.check()
    seen.close()


def test_a_window_that_is_used_again_forgets(browser, tmp_path):
    """Noise and requests of the file before are not those of the next one, which must be silent of its own."""
    noisy, quiet = tmp_path / "noisy.html", tmp_path / "quiet.html"
    whole = "<!doctype html><html data-ready=true><title>x</title><main></main>"
    noisy.write_text(
        whole + "<script>console.warn('careful'); fetch('http://localhost:9/').catch(() => {})</script>", encoding="utf-8"
    )
    quiet.write_text(whole, encoding="utf-8")
    seen = Watched(browser, noisy)
    seen.load(quiet)
    seen.check()
    seen.load(noisy)
    found_out(seen)
    seen.close()
