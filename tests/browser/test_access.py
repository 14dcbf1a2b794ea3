"""Everybody can use it: by keyboard alone, with a screen reader, in both themes, on a small screen."""

import pytest

from stagescope.show.page import page
from tests.browser.samples import portrait

CONTROLS = "button, input, select, a[href], summary, [role=tab], [tabindex='0']"
CONTRAST = """() => {
    const light = colour => colour.slice(0, 3).map(v => v / 255).map(v => v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4)
        .reduce((sum, v, i) => sum + [0.2126, 0.7152, 0.0722][i] * v, 0);
    const pen = document.createElement('canvas').getContext('2d', {willReadFrequently: true});
    const parse = text => { pen.clearRect(0, 0, 1, 1); pen.fillStyle = text; pen.fillRect(0, 0, 1, 1);
        const [r, g, b, a] = pen.getImageData(0, 0, 1, 1).data; return [r, g, b, a / 255]; };
    const over = (top, below) => [0, 1, 2].map(i => top[i] * top[3] + below[i] * (1 - top[3]));
    const behind = node => { const layers = [];
        for (let at = node; at; at = at.parentElement) layers.push(parse(getComputedStyle(at).backgroundColor));
        return layers.reverse().reduce((below, top) => over(top, below), [255, 255, 255]); };
    const found = [], walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
    while (walk.nextNode()) {
        const node = walk.currentNode.parentElement;
        if (!walk.currentNode.data.trim() || node.closest('script, style, noscript, :disabled')) continue;
        if (!node.checkVisibility()) continue;
        const style = getComputedStyle(node);
        if (style.visibility !== 'visible' || !node.getClientRects().length) continue;
        let opacity = 1;
        for (let at = node; at; at = at.parentElement) opacity *= Number(getComputedStyle(at).opacity);
        if (!opacity) continue;  // shown when pointed at
        const back = behind(node), ink = parse(style.color);
        const [a, b] = [light(over([...ink.slice(0, 3), ink[3] * opacity], back)), light(back)].sort((x, y) => y - x);
        const what = [walk.currentNode.data.slice(0, 60), node.className, style.color, back.map(Math.round).join()];
        found.push([(a + 0.05) / (b + 0.05), ...what]);
    }
    return found;
}"""
"""Contrast of every text that is seen with what lies behind it, by the formula of WCAG 2."""


@pytest.fixture(scope="module")
def sample(tmp_path_factory):
    path = tmp_path_factory.mktemp("access") / "page.html"
    portraits = [
        portrait("flow"),
        portrait("beside", frames=21, seed=1),
        portrait("adam", clock="step", until=200, status="diverged", reason="too fast"),
    ]
    path.write_text(page(portraits, "Two scenes"), encoding="utf-8")
    return path


@pytest.mark.long
def test_tab_reaches_every_control_and_shows_where_it_is(visit, sample):
    seen = visit(sample)
    seen.whole()
    wanted = seen.page.evaluate(
        """controls => { const all = [...document.querySelectorAll(controls)].filter(one => one.tabIndex >= 0 && !one.disabled
            && one.checkVisibility()); all.forEach((one, i) => { one.dataset.control = i; });
            document.activeElement.blur(); return all.length; }""",
        CONTROLS,
    )
    assert wanted > 20
    reached, unseen = set(), []
    for _ in range(wanted + 5):
        seen.page.keyboard.press("Tab")  # moves the focus at once: nothing to wait for
        found = seen.page.evaluate(
            """() => { const one = document.activeElement; if (!one || one === document.body) return null;
                const style = getComputedStyle(one);
                const ring = style.outlineStyle !== 'none' && parseFloat(style.outlineWidth) > 0;
                const thumb = one.matches('input[type=range]');  // shows it on its thumb, which no style tells
                return [one.dataset.control ?? '', ring || thumb || style.boxShadow !== 'none', one.outerHTML.slice(0, 120)]; }"""
        )
        if found is None:
            continue
        reached.add(found[0])
        if not found[1]:
            unseen.append(found[2])
    missed = seen.page.evaluate(
        "reached => [...document.querySelectorAll('[data-control]')].filter(one => !reached.includes(one.dataset.control))"
        ".map(one => one.outerHTML.slice(0, 120))",
        sorted(reached),
    )
    assert missed == []
    assert unseen == []


def test_the_slider_shows_its_focus(visit, sample):
    seen = visit(sample)
    before = seen.slider.screenshot()
    seen.press("Tab")
    seen.slider.focus()
    assert seen.slider.screenshot() != before


def test_controls_that_cannot_be_tabbed_to_have_another_way(visit, sample):
    """Only tabs that arrow keys reach, maps beside the focused one and their buttons (Enter does the same) are left out."""
    seen = visit(sample)
    seen.whole()
    left_out = seen.page.evaluate(
        """() => [...document.querySelectorAll('button, input, select, summary, canvas[tabindex]')]
            .filter(one => one.tabIndex < 0 && !one.disabled && one.checkVisibility())
            .filter(one => !one.matches('[role=tab], canvas.tile-cells, .tile-zoom')).map(one => one.outerHTML.slice(0, 120))"""
    )
    assert left_out == []


def test_every_control_has_a_name(visit, sample):
    seen = visit(sample)
    seen.whole()
    seen.press("?")
    nameless = seen.page.evaluate(
        """controls => [...document.querySelectorAll(controls)].filter(one => {
            const ids = (one.getAttribute('aria-labelledby') ?? '').split(' ');
            const labelled = ids.map(id => document.getElementById(id)?.textContent);
            const name = one.ariaLabel || labelled.join('') || one.labels?.[0]?.textContent || one.textContent || one.title;
            return !name || !name.trim(); }).map(one => one.outerHTML.slice(0, 120))""",
        CONTROLS,
    )
    assert nameless == []


def test_structure_for_screen_readers(visit, sample):
    seen = visit(sample)
    seen.whole()
    ids = seen.page.evaluate("() => Array.from(document.querySelectorAll('[id]'), one => one.id)")
    assert len(ids) == len(set(ids))
    assert seen.page.locator("h1").count() == 1
    assert seen.page.locator("html").get_attribute("lang") == "en"
    assert seen.page.locator("section.panel:not(:has(h2))").count() == 0
    assert seen.page.locator("main").count() == 1
    selected = seen.page.get_by_role("tab", selected=True)
    assert selected.count() == 1
    broken = seen.page.evaluate(
        """() => ['aria-labelledby', 'aria-controls', 'aria-describedby'].flatMap(name =>
            [...document.querySelectorAll(`[${name}]`)].flatMap(one => one.getAttribute(name).split(' ')
            .filter(id => !document.getElementById(id))))"""
    )
    assert broken == []
    silent = seen.page.evaluate(
        """() => [...document.querySelectorAll('canvas, svg')].filter(one => one.checkVisibility()
            && !one.closest('[aria-hidden=true]') && !one.ariaLabel && !one.closest('[aria-label], [role=img], button'))
            .map(one => one.outerHTML.slice(0, 120))"""
    )
    assert silent == []


@pytest.mark.long
def test_text_stands_out(visit, sample):
    """At least 4.5 to 1, in both themes."""
    seen = visit(sample)
    seen.whole()
    for theme in ("light", "dark"):
        found = seen.page.evaluate(CONTRAST)
        assert len(found) > 100
        assert [text for text in found if text[0] < 4.5] == [], theme
        seen.press("d")


@pytest.mark.long
def test_the_theme_follows_the_system_and_the_key_turns_it(visit, sample):
    def paper(seen) -> str:
        return seen.page.evaluate("() => getComputedStyle(document.documentElement).backgroundColor")

    light, dark = visit(sample, scheme="light"), visit(sample, scheme="dark")
    assert paper(light) != paper(dark)
    before = paper(dark)
    light.press("d")
    dark.press("d")
    assert paper(light) == before
    assert paper(dark) != before


def test_help_opens_and_closes_by_keyboard(visit, sample):
    seen = visit(sample)
    seen.press("?")
    assert seen.page.get_by_role("dialog").is_visible()
    seen.press("ArrowRight", "Escape")
    assert not seen.page.get_by_role("dialog").is_visible()
    assert seen.position == 0
    seen.press("ArrowRight")
    assert seen.position == 1


def test_tabs_by_keyboard(visit, sample):
    seen = visit(sample)
    seen.page.get_by_role("tab").first.focus()
    seen.press("ArrowRight")
    seen.until("() => window.stagescope.scene().clock === 'step'")
    assert seen.page.get_by_role("tab", selected=True).inner_text() == seen.page.evaluate(
        "() => document.activeElement.innerText"
    )


@pytest.mark.long
def test_nothing_hangs_over_the_edge_and_rows_are_cards_on_a_phone(visit, sample):
    """On a phone the cells of a row stand below each other, each with its name; on a screen side by side under their heads."""
    seen = visit(sample)
    seen.whole()
    for width in (320, 400, 800, 1400):
        seen.resize(width)
        inside, room = seen.page.evaluate("() => [document.documentElement.scrollWidth, document.documentElement.clientWidth]")
        assert inside <= room, width
        assert seen.page.locator(".dock").bounding_box()["height"] <= (160 if width > 640 else 220)
        if width in (400, 1400):
            assert cards(seen) == [width == 400] * 4, width


def cards(seen) -> list[bool]:
    """Of ledger and ladder: whether the cells of a row stand below each other, and whether they have their names."""
    found = []
    for row in (".ledger tr.leads", ".ladder tr.leads"):
        cells = seen.page.locator(row).first.locator("td:visible, th:visible")
        tops = {round(box["y"]) for box in (cell.bounding_box() for cell in cells.all()) if box}
        named = seen.page.locator(row).first.locator("td[data-label]").first
        found += [len(tops) > 2, named.evaluate("one => getComputedStyle(one, '::before').content") != "none"]
    return found


def test_a_print_or_reader_without_script_is_told(sample):
    assert "<noscript>" in sample.read_text(encoding="utf-8")
