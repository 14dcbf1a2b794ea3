"""The page of a watched model: heads as a grid, its timeline, tokens of strangers as text."""

import pytest

from stagescope.show.page import page
from stagescope.show.portrait import portrait
from tests.browser.test_hostile import EVIL, VISIBLE, kinds, texts
from tests.watching.forged import SHOWN, TYPES, Plant, forged, warm

PLANTS = {(0, 1): Plant("previous token", 300), (1, 0): Plant("induction", 310)}

RECORD = """() => {
    const [pen, drawn] = [CanvasRenderingContext2D.prototype, window.drawn = []];
    const write = pen.fillText;
    pen.fillText = function (text, ...where) { drawn.push(text); write.call(this, text, ...where); };
}"""
"""Keeps the texts that are drawn on any canvas from now on."""


def write(path, text=str, **how):
    tokens = {"probe": {"length": 32, "period": 16, "shown": [text(f"t{k}") for k in range(SHOWN)]}}
    names = {"types": [text(f"k{k}") for k in range(TYPES)], "model": text("Forged"), "groups": [text("wte"), text("head")]}
    runs = [forged(PLANTS, rate=warm, frames=60, seed=seed, source=tokens | names) for seed in range(2)]
    path.write_text(page([portrait(run, f"seed-{i}") for i, run in enumerate(runs)], "watched"), encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def pages(tmp_path_factory):
    folder = tmp_path_factory.mktemp("watched")
    return {
        "tame": write(folder / "tame.html"),
        "hostile": write(folder / "hostile.html", lambda text: f"{text} {EVIL}".replace("\ud800", "")),
        "long": write(folder / "long.html", lambda text: text + 10_000 * "x"),
    }


@pytest.mark.long
def test_heads_stand_in_rows_of_their_layer_and_the_timeline_leads_to_their_stages(visit, pages):
    seen = visit(pages["tame"])
    seen.whole()
    runs = seen.panel("patterns").locator(".heat-run")
    assert runs.count() == 2  # seeds side by side
    tops = runs.first.locator("canvas.tile-cells").evaluate_all("all => all.map(one => one.getBoundingClientRect().top)")
    assert len(set(tops[:3])) == len(set(tops[3:])) == 1
    assert tops[3] > tops[0]
    seen.scrub(10_000)
    assert seen.value("patterns", 0, 1, 3, 2)["value"] == pytest.approx(0.9, abs=0.03)
    timeline = seen.panel("timeline")
    names = timeline.locator(".timeline-run").first.locator(".timeline-name").all_text_contents()
    assert names == ["the run", "learning rate", "attention", "layer 0 head 1", "layer 1 head 0"]
    button = timeline.get_by_role("button", name="stage induction").first
    seen.click(button)
    assert (
        250
        < seen.page.evaluate("() => Number(document.querySelector('.readout-time').textContent.replace(/[^0-9.]/g, ''))")
        < 350
    )
    assert seen.page.locator(".ribbon .segment", has_text="induction").count() == 0  # heads are not above the slider
    seen.page.evaluate(RECORD)
    seen.resize(1400)
    drawn = set(seen.page.evaluate("() => window.drawn"))
    assert drawn >= {f"layer {layer} head {head}" for layer in range(2) for head in range(3)} | {"previous token"}


@pytest.mark.long
def test_tokens_make_no_element(visit, pages):
    tame = visit(pages["tame"])
    tame.whole()
    expected = kinds(tame)
    for name in ("hostile", "long"):
        wild = visit(pages[name], width=400, height=800)
        wild.whole()
        found = kinds(wild)
        assert {kind: count for kind, count in found.items() if kind not in expected} == {}, name
        assert [found.get(kind, 0) for kind in ("script", "img", "svg", "style")] == [
            expected.get(kind, 0) for kind in ("script", "img", "svg", "style")
        ]
        assert wild.page.evaluate("() => document.documentElement.scrollWidth <= document.documentElement.clientWidth"), name
        if name == "hostile":
            assert VISIBLE in texts(wild)
