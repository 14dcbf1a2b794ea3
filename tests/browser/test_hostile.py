"""Names and tokens are untrusted: whatever they hold is shown as text, makes no element and runs nothing."""

import json
import re
from dataclasses import replace

import pytest

from stagescope.show.page import page
from tests.browser.samples import portrait

EVIL = (
    "</script><img src=x onerror=alert(1)>\"'`"  # first, because labels are cut
    "<script>alert(2)</script><!--]]></style><svg onload=alert(3)>&lt;b&gt;"
    "\u202eright to left\u2066\u2028\u2029\ud800{{7*7}}\x00\x07"
)
VISIBLE = "</script><img src=x onerror=alert(1)>"
PLACES = {
    "sentence on the run": "Two heads learn a coin.",
    "small table": "Coin",
    "caption": "attention gathers on token 1",
    "symbol": "all attention on one token",
    "paper": "On coins",
    "run name": "first",
    "title of the page": "page",
    "title of a panel": "Attention",
    "what a panel is": "Each row sums to one.",
    "panel name": "head 1",
    "curve name": "population",
    "stage name": "plateau",
    "stage evidence": "attention grows",
    "event name": "dilution",
    "event note": "the run ended before",
    "claim": "attention dilutes",
    "reason of a verdict": "within tolerance",
    "regime of a claim": "small start",
    "label of a rung": "1 saddle",
    "note of a rung": "as predicted",
    "name of a fact": "versions",
    "key of a fact": "stagescope",
    "value of a fact": "0.1.0",
    "note": "a note about this run",
    "kind of mark": "distinct",
}
"""Where names stand on the page outside a canvas, and the word that comes before the hostile rest there."""


def hostile(text: str) -> str:
    return f"{text} {EVIL}"


def write(path, **how):
    name = how.pop("title", "page")
    path.write_text(page([portrait(**how)], name), encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def pages(tmp_path_factory):
    folder = tmp_path_factory.mktemp("hostile")
    return {
        "tame": write(folder / "tame.html"),
        "hostile": write(folder / "hostile.html", text=hostile, title=hostile("page")),
        "long": write(folder / "long.html", text=lambda text: text + " " + 10_000 * "x", title=10_000 * "x"),
    }


def unfold(seen) -> None:
    """Everything opened and a cell read: what is shown only then must be harmless too."""
    seen.whole()
    seen.page.evaluate("() => document.querySelectorAll('details').forEach(fold => { fold.open = true; })")
    seen.hover(seen.panel("attention").locator("canvas.tile-cells").first, position={"x": 5, "y": 5})


def kinds(seen) -> dict[str, int]:
    """How many elements of each kind the page has."""
    return seen.page.evaluate(
        """() => { const found = {}; for (const one of document.querySelectorAll('*'))
            found[one.localName] = (found[one.localName] ?? 0) + 1; return found; }"""
    )


def texts(seen) -> str:
    """All text of the page, on screen, in tooltips and in labels for screen readers."""
    return seen.page.evaluate(
        """() => { const shown = [...document.body.children].filter(one => !one.matches('script, noscript'));
            return [document.title, ...shown.map(one => one.textContent), ...shown.flatMap(one => [...one.querySelectorAll('*')])
                .map(one => typeof one === 'string' ? one :
                    `${one.title ?? ''} ${one.ariaLabel ?? ''} ${one.dataset?.says ?? ''}`)].join('\\n'); }"""
    )


@pytest.mark.parametrize("name", ["hostile", "long"])
def test_hostile_names_make_no_element(visit, pages, name):
    tame, wild = visit(pages["tame"]), visit(pages[name])
    for seen in (tame, wild):
        unfold(seen)
    assert kinds(wild) == kinds(tame)


def test_hostile_names_are_on_screen_as_text(visit, pages):
    seen = visit(pages["hostile"])
    unfold(seen)
    found = texts(seen)
    assert [place for place, word in PLACES.items() if f"{word} {VISIBLE}" not in found] == []


def test_tokens_are_read_as_text(visit, pages):
    seen = visit(pages["hostile"])
    unfold(seen)
    tip = seen.panel("attention").locator(".tip")
    assert f"query token 0 {VISIBLE}" in tip.text_content()
    assert tip.locator("img").count() == 0


def test_marks_of_direction_end_with_their_name(visit, pages):
    """Every text that holds such a mark stands in an element that isolates it, or is a paragraph of its own."""
    seen = visit(pages["hostile"])
    unfold(seen)
    loose = seen.page.evaluate(
        """() => { const walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT), found = [];
            while (walk.nextNode()) { const node = walk.currentNode;
                if (node.data.includes('\\u202e') && !node.parentElement.closest('bdi, [dir=auto], .unseen, option, pre, script'))
                    found.push(node.parentElement.outerHTML.slice(0, 200)); }
            return found; }"""
    )
    assert loose == []


def test_long_names_are_cut_and_do_not_widen_the_page(visit, pages):
    seen = visit(pages["long"])
    unfold(seen)
    longest = seen.page.evaluate(
        """() => { const walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT); let most = 0;
            while (walk.nextNode()) if (!walk.currentNode.parentElement.closest('script, style, pre'))
                most = Math.max(most, walk.currentNode.data.length);
            return most; }"""
    )
    assert longest <= 2100
    width, room = seen.page.evaluate("() => [document.documentElement.scrollWidth, document.documentElement.clientWidth]")
    assert width <= room


def test_names_of_built_in_properties_are_names(visit, tmp_path):
    """__proto__ and the like, which are keys of every object in JavaScript."""
    words = iter(["__proto__", "constructor", "toString", "hasOwnProperty", "valueOf"] * 100)
    seen = visit(write(tmp_path / "built-in.html", text=lambda text: next(words)))
    unfold(seen)
    assert "__proto__" in texts(seen)
    assert "native code" not in texts(seen)
    assert "[object" not in texts(seen)
    assert seen.page.evaluate("() => ({}).polluted === undefined && typeof ({}).toString === 'function'")


def test_an_event_called_proto_is_listed(visit, tmp_path):
    made = portrait()
    events = {"__proto__": 5.0, "constructor": 12.0}
    made = replace(made, stages=replace(made.stages, events=events, notes={}))
    path = tmp_path / "events.html"
    path.write_text(page([made]), encoding="utf-8")
    seen = visit(path)
    seen.press("e")
    assert seen.page.evaluate("() => window.stagescope.time()") == pytest.approx(5.0, abs=0.25)
    assert "__proto__" in texts(seen)
    assert "native code" not in texts(seen)
    assert "[object" not in texts(seen)


def test_the_data_cannot_end_its_element(pages):
    text = pages["hostile"].read_text(encoding="utf-8")
    inside = re.search(r'<script type="application/json" id="data">(.*?)</script>', text, re.DOTALL)[1]
    assert not set("<>&\u2028\u2029") & set(inside)
    assert inside.isascii()
    assert VISIBLE in json.loads(inside)["title"]


def test_the_policy_is_strict(pages):
    text = pages["hostile"].read_text(encoding="utf-8")
    policy = re.search(r'<meta http-equiv="Content-Security-Policy" content="([^"]*)">', text)[1]
    assert text.index("Content-Security-Policy") < text.index("<title>")
    rules = dict(rule.strip().split(" ", 1) for rule in policy.split(";"))
    assert rules["default-src"] == "'none'"
    assert set(rules) <= {"default-src", "script-src", "style-src", "img-src", "base-uri", "form-action"}
    assert "unsafe" not in policy
    assert not re.search(r"https?:|\*", policy)
    assert all(word.startswith("'sha256-") for word in rules["script-src"].split() + rules["style-src"].split())


ATTACKS = {
    "inline script": "() => { const s = document.createElement('script'); s.textContent = 'window.hit = 1';"
    " document.body.append(s); }",
    "handler": "() => { const b = document.createElement('b'); b.setAttribute('onclick', 'window.hit = 1');"
    " document.body.append(b); b.click(); }",
    "eval": "() => new Promise(done => setTimeout(() => { try { (0, eval)('window.hit = 1'); } catch {} done(); }))",
    "data script": "() => { const s = document.createElement('script'); s.src = 'data:text/javascript,window.hit=1';"
    " document.body.append(s); }",
    "fetch": "() => fetch('http://localhost:9/').then(() => { window.hit = 1; }, () => {})",
    "picture": "() => new Promise(done => { const i = new Image(); i.onload = () => { window.hit = 1; done(); };"
    " i.onerror = () => done(); i.src = 'http://localhost:9/x.png'; })",
    "frame": "() => { const f = document.createElement('iframe'); f.src = 'data:text/html,<b>'; document.body.append(f); }",
    "style": "() => { const s = document.createElement('style'); s.textContent = 'main { display: none }';"
    " document.body.append(s); if (getComputedStyle(document.querySelector('main')).display === 'none') window.hit = 1; }",
}


def test_the_policy_is_enforced(visit, pages):
    """Even code that got into the document could do nothing; the browser says so in its console, which is taken back here."""
    seen = visit(pages["tame"])
    for name, attack in ATTACKS.items():
        seen.page.evaluate(attack)
        if name != "eval":  # throws where it stands, which says nothing on the console
            seen.noticed("Content Security Policy")
        assert seen.page.evaluate("() => window.hit") is None, name
        seen.noise.clear()
    seen.requests = [url for url in seen.requests if "localhost" not in url]  # asked for, and refused
