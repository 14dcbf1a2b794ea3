"""The page of a sweep in a browser: it says what the table says, opens cells, keeps its state, and trusts no name."""

import json
import math
from dataclasses import replace
from urllib.parse import quote

import pytest

from stagescope.show.diagram_areas import Ruler, ValueScale, areas
from stagescope.show.diagram_numbers import disagree, numbers, select
from stagescope.show.diagram_page import diagram_page
from stagescope.show.page import label
from stagescope.sweeping.axes import Axis, Scale
from tests.browser.test_hostile import EVIL, VISIBLE, kinds, texts
from tests.show.sweeps import PERSISTENCE, PI, RATE, focus, sweep

DELTA = Axis(name="delta", kind="linear", values=(0.0, 0.02))
OPTIMIZER = Axis(name="optimizer", kind="categorical", values=("flow", "adam"))


def written(path, found, x="pi.0", y="persistence", color="E2", **at):
    path.write_text(diagram_page(found, select(found, x, y, color, at)), encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def seeds():
    return sweep((PI, PERSISTENCE), focus, seeds=5)


@pytest.fixture(scope="module")
def page(tmp_path_factory, seeds):
    return written(tmp_path_factory.mktemp("diagram") / "seeds.html", seeds)


SHOWN = """async () => { const table = await stagescope.table(), { ask } = await stagescope.state();
    const column = table.column(ask.color);
    return table.cells(ask).map(cell => ({...cell, rows: cell.rows.length, said: table.shown(column, cell.value),
        shares: cell.shares.map(one => [column.names[one.item], one.share, one.interval])})); }"""


def mixed(pi, persistence, seed):
    """Everything that a cell can be, with seeds that differ: late, failed, in progress, there at the start, of both signs."""
    found = focus(pi, persistence, seed)
    if found.get("status") == "diverged":
        return found | {"events": {"E1": 1.0, "E2": 2.0}, "numbers": {"final loss": 1e27}, "end": 12.5}
    if seed == 3 and pi < 0.4:
        return {"status": "failed", "reason": "boom", "stages": None, "end": None, "clock": None, "events": {"E2": 1.0}}
    found["events"]["E2"] = 0.0 if persistence > 0.85 and pi > 0.6 else found["events"]["E2"]
    found["durations"] = {"focus": None} if pi < 0.5 and "focus" in found["stages"] else found["durations"]
    return found | {"numbers": {"move": (persistence - 0.45) * 10 ** (-10 * pi)}, "end": 400.0 + 10 * seed}


@pytest.mark.long
def test_cells_say_what_the_table_says(visit, tmp_path):
    """Medians, intervals, shares, counts and lacks of the page are those of the figure."""
    found = sweep((PI, PERSISTENCE), mixed, seeds=5)
    seen = visit(written(tmp_path / "mixed.html", found))
    lacks = set()
    for color in ("E2", "stages", "duration focus", "move", "status", "last stage"):
        seen.page.evaluate("async name => { const s = await stagescope.state(); s.setColor(name); }", color)
        shown = seen.page.evaluate(SHOWN)
        drawn = numbers(found, select(found, "pi.0", "persistence", color, {}))
        expected = {(cell["x"], cell["y"]): cell for cell in drawn["panels"][0]["cells"]}
        assert len(shown) == len(expected) == 81
        for cell in shown:
            mine = expected[cell["x"], cell["y"]]
            lacks.add(mine["lack"])
            for name in ("rows", "known", "failed", "beyond", "lack"):
                assert cell[name] == mine[name], (color, name)
            assert cell["torn"] == disagree(mine)
            assert cell["start"] == mine.get("start", False)
            if drawn["kind"] == "word":
                assert cell["said"] == mine["value"]
                said = {name: (share, interval) for name, share, interval in cell["shares"]}
                assert said.keys() == mine["shares"].keys()
                for name, (share, interval) in said.items():
                    assert share == pytest.approx(mine["shares"][name]["share"])
                    wanted = mine["shares"][name]["interval"]
                    assert len(said) == 1 or interval == (None if wanted is None else pytest.approx(list(wanted)))
                continue
            assert cell["said"] == (None if mine["value"] is None else pytest.approx(mine["value"], rel=1e-12))
            assert (cell["interval"] is None) == (mine["interval"] is None)
            for end, wanted in zip(cell["interval"] or (), mine["interval"] or (), strict=True):
                assert end == (None if wanted is None else pytest.approx(wanted, rel=1e-12))
    assert lacks == {None, "failed", "not reached", "in progress", "none"}


def test_scales_are_those_of_the_figure(visit, page):
    """Where a value lies on the bar of colours; the page's own class is reached through the colours of what it draws."""
    seen = visit(page)
    for values in ([-1e-9, 3e-5, 0.1, -0.02, 0.0], [-1.0, 0.5], [2.0, 300.0, 7.0], [1.0, 3.0]):
        places = seen.page.evaluate(
            """async values => { const table = await stagescope.table(), column = table.column('E1');
                const cells = values.map(value => ({value, lack: null, start: false}));
                const scale = (await stagescope.colours(column, cells)).scale;
                return values.map(value => scale.place(value)); }""",
            values,
        )
        mine = ValueScale(values)
        assert places == pytest.approx([mine.place(value) for value in values], abs=1e-12)


@pytest.mark.long
@pytest.mark.parametrize(
    "axis", [PI, RATE, Axis(name="heads", kind="log integer", values=(1, 8, 64))], ids=lambda axis: axis.kind
)
def test_areas_are_those_of_the_figure(visit, tmp_path, axis):
    """Refined cells on linear, logarithmic and integer axes cover on the page what they cover on paper."""

    def says(a, b):
        return math.log(a) + 2 * b > math.log(axis.values[0] * axis.values[-1]) / 2 + 1

    found = sweep((axis, PERSISTENCE), lambda a, b, s: {"numbers": {"n": float(says(a, b))}}, rounds=3, by=says)
    seen = visit(written(tmp_path / "areas.html", found, x=axis.name, color="n"))
    drawn = seen.page.evaluate(
        """async () => { const [cells, picture] = [await stagescope.cells(), await stagescope.picture()];
            return cells.map((cell, i) => [cell.x, cell.y, picture.outline(i)[0][1].d, picture.point(i)]); }"""
    )
    across, up = (Ruler(Scale(each.kind, each.values)) for each in (axis, PERSISTENCE))
    expected = areas(across, up, [tuple(row["at"].values()) for row in found.rows])
    assert len(drawn) == len(expected) > 100
    for x, y, path, _ in drawn:
        assert path.count("M") == len(expected[x, y])
    corner = seen.page.evaluate(
        "async () => { const p = (await stagescope.picture()); return [p.hit(p.width * .5, 200), p.hit(1, 1)]; }"
    )
    assert corner[0] >= 0
    assert corner[1] == -1


def test_a_click_opens_a_cell_and_arrows_move_on(visit, page):
    seen = visit(page)
    side = seen.panel("cell")
    assert "Click a cell" in side.text_content()
    x, y = seen.page.evaluate(
        """async () => { const [cells, picture] = [await stagescope.cells(), await stagescope.picture()];
            return picture.point(cells.findIndex(cell => cell.x === 0.4 && cell.y === 0.5)); }"""
    )
    seen.click(seen.page.locator(".diagram-svg"), position={"x": x, "y": y})
    text = side.text_content()
    assert "not reached, by the median seed" in text
    assert "3 of 5 seeds: not reached by t = 400" in text
    assert "to beyond the end of the runs" in text
    assert "stagescope run focus-dilution" in text
    seen.click(side.get_by_role("button", name="seed 3"))
    assert "--seed 3" in side.text_content()
    seen.press("ArrowLeft")
    assert "pi.0 = 0.35" in side.text_content()
    seen.press(*["ArrowUp"] * 8)
    assert "diverged: the loss is not finite at t = 12.5 (5 runs)" in side.text_content()
    seen.press("Escape")
    assert "Click a cell" in side.text_content()


def test_hovering_shows_value_interval_and_reason(visit, page):
    seen = visit(page)

    def over(x, y):
        at = seen.page.evaluate(
            """async ([x, y]) => { const [cells, picture] = [await stagescope.cells(), await stagescope.picture()];
                return picture.point(cells.findIndex(cell => cell.x === x && Math.abs(cell.y - y) < 1e-9)); }""",
            [x, y],
        )
        seen.hover(seen.page.locator(".diagram-svg"), position={"x": at[0], "y": at[1]})
        return seen.page.locator(".tip").text_content()

    assert "95 % interval: 96.92 to beyond" in over(0.4, 0.5)
    assert over(0.3, 0.9).startswith("all 5 runs failed")
    assert "the loss is not finite" in over(0.3, 0.9)
    assert over(0.3, 0.1).startswith("not reached by t = 400")
    legend = seen.page.locator(".diagram-svg").text_content()
    assert "not reached by t = 400, by the median seed" in legend
    assert "failed" in legend


@pytest.mark.long
def test_the_address_holds_the_view_and_strange_ones_fall_back(visit, tmp_path):
    found = sweep((PI, PERSISTENCE, DELTA, OPTIMIZER), lambda a, b, d, o, s: focus(a - d, b, s))
    seen = visit(written(tmp_path / "four.html", found, color="stages", delta=0.02, optimizer="adam"))
    assert seen.page.locator("[data-ask=delta]").input_value() == "0.02"
    seen.page.locator("[data-ask=Colour]").select_option("E1")
    seen.page.locator("[data-ask=Across]").select_option("delta")
    seen.page.locator("[data-ask=optimizer]").select_option(label="flow")
    seen.until("() => new URLSearchParams(location.hash.slice(1)).get('x') === 'delta'")
    seen.until("() => location.hash.includes('optimizer%3Dflow')")
    hash = seen.page.evaluate("() => location.hash")
    seen.open(hash)
    state = seen.page.evaluate(
        "async () => { const s = await stagescope.state(); return [s.x, s.y, s.color, s.hash().getAll('at')]; }"
    )
    assert state == ["delta", "persistence", "E1", ["pi.0=0.3", "optimizer=flow"]]
    seen.open("#x=optimizer&y=persistence&color=E1&cell=adam&cell=0.2")
    assert "optimizer = adam" in seen.panel("cell").text_content()
    seen.press("x")
    assert seen.page.locator("[data-ask=Across]").input_value() == "persistence"
    assert "optimizer = adam" in seen.panel("cell").text_content()  # the cell stays chosen
    seen.until("() => new URLSearchParams(location.hash.slice(1)).getAll('cell').join() === '0.2,adam'")
    seen.open("#x=nothing&y=persistence&color=__proto__&at=delta=77&cell=NaN&theme=pink")
    state = seen.page.evaluate("async () => { const s = await stagescope.state(); return [s.x, s.y, s.color, s.cell, s.theme]; }")
    assert state == ["pi.0", "persistence", "stages", None, "auto"]


@pytest.mark.long
@pytest.mark.parametrize(("color", "bars"), [("E2", 1), ("FD:focus", 0), ("stages", 0)])
def test_numbers_have_a_bar_of_colours_and_names_have_none(visit, page, color, bars):
    seen = visit(page, hash=f"#color={quote(color)}")
    shapes = seen.page.evaluate("async () => (await stagescope.picture()).shapes")
    assert sum(kind == "g" and all(part[0] == "rect" for part in parts) for kind, _, *rest in shapes for parts in rest) == bars


def test_a_curve_and_both_themes(visit, tmp_path):
    found = sweep((PI,), lambda a, s: focus(a, 0.5, s), seeds=3)
    seen = visit(written(tmp_path / "curve.html", found, y=None), scheme="dark")
    assert seen.page.locator(".diagram-svg circle").count() >= 6
    assert "bootstrap interval" in seen.page.locator(".diagram-svg").text_content()
    before = seen.page.evaluate("() => getComputedStyle(document.documentElement).backgroundColor")
    seen.press("d", "ArrowRight", "ArrowRight", "c")
    after = seen.page.evaluate("() => getComputedStyle(document.documentElement).backgroundColor")
    assert before != after


def test_the_file_holds_what_is_shown(visit, page):
    seen = visit(page)
    with seen.page.expect_download() as waiting:
        seen.panel("diagram").get_by_role("button", name="CSV", exact=True).click()
    assert waiting.value.suggested_filename == "E2-over-pi.0-persistence.csv"
    lines = waiting.value.path().read_text(encoding="utf-8").splitlines()
    assert lines[0] == "pi.0,persistence,E2,low,high,lack,runs,with value,beyond,failed,reason"
    assert len(lines) == 82
    assert "stagescope diagram SWEEP" in seen.panel("diagram").text_content()


def test_the_head_says_what_is_missing_what_is_fixed_and_which_clocks_there_are(visit, tmp_path):
    def result(pi, name, seed):
        return {"events": {"E2": 9.0 + pi}, "clock": "t" if name == "flow" else "step"}

    whole = sweep((PI, OPTIMIZER), result)
    plan = whole.plan.model_copy(update={"fixed": {"until": 800.0, "width": 5, "scale": 4.0}})
    found = replace(whole, rows=whole.rows[:-1], plan=plan)
    seen = visit(written(tmp_path / "head.html", found, y="optimizer"))
    head = seen.page.locator("header.page-head").text_content()
    for said in ("17 of 18 points", "until 800", "width 5"):
        assert said in head
    assert "scale 4" not in head
    shown = seen.page.locator("[data-slot=diagram]").text_content()
    assert "times are in t for optimizer = flow and in steps for optimizer = adam" in shown
    assert "E2 (in t or step)" in shown


@pytest.mark.long
def test_a_click_is_seen_to_do_something_on_a_narrow_page(visit, page):
    """Beside the diagram where there is room, else scrolled to."""
    for width in (1000, 600):
        seen = visit(page, width=width, height=700)
        seen.click(seen.page.locator(".diagram-svg"), position={"x": 200, "y": 150})
        top = seen.page.evaluate("() => document.querySelector('.cell').getBoundingClientRect().top")
        assert 0 <= top < 620


def evil_sweep(text):
    optimizer = Axis(name=text("optimizer"), kind="categorical", values=(text("flow"), text("adam")))

    def result(pi, name, seed):
        if pi < 0.33:
            return {"status": "failed", "reason": text("reason"), "stages": None}
        return {"events": {text("event"): pi}, "stages": [text("stage"), text("then")], "verdicts": {text("tag"): "confirmed"},
                "durations": {text("stage"): 1.0}, "numbers": {text("number"): pi}}  # fmt: skip

    return sweep((PI, optimizer), result, seeds=2)


@pytest.mark.long
def test_hostile_names_are_text(visit, tmp_path):
    pages = []
    for name, text in (("tame", str), ("hostile", lambda word: f"{word} {EVIL}")):
        found = evil_sweep(text)
        pages.append(
            visit(
                written(tmp_path / f"{name}.html", found, y=text("optimizer"), color="stages"),
                hash=f"#cell=0.3&cell={quote(label(text('adam')))}",
            )
        )
        pages[-1].hover(pages[-1].page.locator(".diagram-svg"), position={"x": 300, "y": 200})
    tame, wild = pages
    ticks = {"line": 0, "text": 0}  # long names leave less room for them
    assert kinds(wild) | ticks == kinds(tame) | ticks
    seen = texts(wild)
    for word in ("optimizer", "adam", "reason", "stage"):
        assert f"{word} {VISIBLE}" in seen, word
    data = json.loads((tmp_path / "hostile.html").read_text().split('id="data">')[1].split("</script>")[0])
    assert any(VISIBLE in column["name"] for column in data["columns"])


LINES = """() => [...document.querySelectorAll("path[fill=none][stroke-width='2']")].map(path => path.getAttribute("d"))"""


def test_a_line_of_theory_is_drawn_over_its_own_axes_alone(visit, tmp_path):
    """Broken where it has no place, and gone where another axis is drawn."""
    first = Axis(name="pi0", kind="linear", values=(0.3, 0.5, 0.7))
    found = sweep((first, PERSISTENCE, DELTA), lambda *values: {"events": {"E2": 1.0}})
    line = {"name": "stall", "title": "where it stalls", "pi0": [0.3, 0.4, 0.5, 0.6], "persistence": [0.2, None, 0.4, 0.5]}
    path = tmp_path / "line.html"
    path.write_text(diagram_page(found, select(found, "pi0", "persistence", "E2", {}), line), encoding="utf-8")
    seen = visit(path)
    (drawn,) = [d for d in seen.page.evaluate(LINES) if "L" in d]
    assert (drawn.count("M"), drawn.count("L")) == (2, 1)
    assert "line: where it stalls" in seen.panel("diagram").text_content()
    seen.open("#x=delta&y=persistence")
    assert [d for d in seen.page.evaluate(LINES) if "L" in d] == []
    assert "where it stalls" not in seen.panel("diagram").text_content()
