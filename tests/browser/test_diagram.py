"""The page of a sweep in a browser: it says what the table says, opens cells, keeps its state, and trusts no name."""

import json
import math
from urllib.parse import quote

import pytest

from stagescope.reporting.areas import Ruler, areas
from stagescope.reporting.diagram_numbers import asked, numbers
from stagescope.reporting.diagram_page import diagram_page
from stagescope.sweeping.axes import Axis
from stagescope.sweeping.boxes import Scale
from tests.browser.test_hostile import EVIL, VISIBLE, kinds, texts
from tests.reporting.sweeps import PERSISTENCE, PI, RATE, focus, sweep

DELTA = Axis(name="delta", kind="linear", values=(0.0, 0.02))
OPTIMIZER = Axis(name="optimizer", kind="categorical", values=("flow", "adam"))


def written(path, found, x="pi.0", y="persistence", color="E2", **at):
    path.write_text(diagram_page(found, asked(found, x, y, color, at)), encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def seeds():
    return sweep((PI, PERSISTENCE), focus, seeds=5)


@pytest.fixture(scope="module")
def page(tmp_path_factory, seeds):
    return written(tmp_path_factory.mktemp("diagram") / "seeds.html", seeds)


def test_cells_say_what_the_table_says(visit, page, seeds):
    """Medians, intervals and shares, computed in the page, are those of Python to the last digits."""
    seen = visit(page)
    for color in ("E2", "stages"):
        seen.page.evaluate("async name => { const s = await stagescope.state(); s.setColor(name); }", color)
        shown = seen.page.evaluate(
            """async () => { const table = await stagescope.table(), { ask } = await stagescope.state();
                const column = table.column(ask.color);
                return table.cells(ask).map(cell => ({...cell, said: table.shown(column, cell.value),
                    interval: table.interval(column, cell.rows),
                    shares: column.kind === 'category' ? table.shares(column, cell.rows).map(one =>
                        [column.names[one.item], one.share, one.interval]) : []})); }"""
        )
        expected = {
            (c["x"], c["y"]): c for c in numbers(seeds, asked(seeds, "pi.0", "persistence", color, {}))["panels"][0]["cells"]
        }
        assert len(shown) == len(expected) == 81
        for cell in shown:
            mine = expected[cell["x"], cell["y"]]
            assert (cell["known"], cell["failed"], len(cell["rows"])) == (mine["known"], mine["failed"], mine["rows"])
            if color == "E2":
                assert cell["said"] == (None if mine["value"] is None else pytest.approx(mine["value"], rel=1e-12))
                assert cell["interval"] == (
                    None if mine["interval"] is None else pytest.approx(list(mine["interval"]), rel=1e-12)
                )
            else:
                assert cell["said"] == mine["value"]
                found = {name: (share, interval) for name, share, interval in cell["shares"]}
                assert found.keys() == mine["shares"].keys()
                for name, (share, interval) in found.items():
                    assert share == pytest.approx(mine["shares"][name]["share"])
                    assert interval == pytest.approx(list(mine["shares"][name]["interval"]))


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
    seen.page.locator(".diagram-svg").click(position={"x": x, "y": y})
    text = side.text_content()
    assert "median of the 2 of 5 seeds that have a value" in text
    assert "95 % interval" in text
    assert "stagescope recreate sweep --at pi.0=0.4 persistence=0.5 --seed 0" in text
    assert "stagescope run focus-dilution" in text
    side.get_by_role("button", name="seed 3").click()
    assert "--seed 3" in side.text_content()
    seen.press("ArrowLeft")
    assert "pi.0 = 0.35" in side.text_content()
    for _ in range(8):
        seen.press("ArrowUp")
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
        seen.page.locator(".diagram-svg").hover(position={"x": at[0], "y": at[1]})
        return seen.page.locator(".tip").text_content()

    assert "95 % interval: 96.92 to 353.3" in over(0.4, 0.5)
    assert "the loss is not finite" in over(0.3, 0.9)
    assert over(0.3, 0.1).startswith("not reached")


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
    seen.press("x")
    assert seen.page.locator("[data-ask=Across]").input_value() == "persistence"
    seen.open("#x=nothing&y=persistence&color=__proto__&at=delta=77&cell=NaN&theme=pink")
    state = seen.page.evaluate("async () => { const s = await stagescope.state(); return [s.x, s.y, s.color, s.cell, s.theme]; }")
    assert state == ["pi.0", "persistence", "stages", None, "auto"]


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


def test_exports_hold_what_is_shown(visit, page, tmp_path):
    seen = visit(page)
    for kind in ("csv", "svg", "png"):
        seen.page.locator(".export summary").click()
        with seen.page.expect_download() as waiting:
            seen.page.locator(f"[data-export={kind}]").click()
        waiting.value.save_as(tmp_path / f"file.{kind}")
        assert waiting.value.suggested_filename == f"E2-over-pi.0-persistence.{kind}"
    lines = (tmp_path / "file.csv").read_text(encoding="utf-8-sig").splitlines()
    assert lines[0] == "pi.0,persistence,E2,low,high,runs,with value,failed,reason"
    assert len(lines) == 82
    svg = (tmp_path / "file.svg").read_text()
    assert svg.startswith("<svg")
    assert "persistence" in svg
    assert (tmp_path / "file.png").read_bytes().startswith(b"\x89PNG")


def evil_sweep(text):
    optimizer = Axis(name=text("optimizer"), kind="categorical", values=(text("flow"), text("adam")))

    def result(pi, name, seed):
        if pi < 0.33:
            return {"status": "failed", "reason": text("reason"), "stages": None}
        return {"events": {text("event"): pi}, "stages": [text("stage"), text("then")], "verdicts": {text("tag"): "confirmed"},
                "durations": {text("stage"): 1.0}, "numbers": {text("number"): pi}}  # fmt: skip

    return sweep((PI, optimizer), result, seeds=2)


def test_hostile_names_are_text(visit, tmp_path):
    pages = []
    for name, text in (("tame", str), ("hostile", lambda word: f"{word} {EVIL}")):
        found = evil_sweep(text)
        pages.append(visit(written(tmp_path / f"{name}.html", found, y=text("optimizer"), color="stages"), hash="#cell=0.3+1"))
        pages[-1].page.locator(".diagram-svg").hover(position={"x": 300, "y": 200})
        pages[-1].settle()
    tame, wild = pages
    ticks = {"line": 0, "text": 0}  # long names leave less room for them
    assert kinds(wild) | ticks == kinds(tame) | ticks
    seen = texts(wild)
    for word in ("optimizer", "adam", "reason", "stage"):
        assert f"{word} {VISIBLE}" in seen, word
    data = json.loads((tmp_path / "hostile.html").read_text().split('id="data">')[1].split("</script>")[0])
    assert any(VISIBLE in column["name"] for column in data["columns"])
