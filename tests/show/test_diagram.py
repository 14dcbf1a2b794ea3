"""Phase diagrams: what is asked is checked, what is drawn is what the sweep says, files are those that were promised."""

import json
import re
from dataclasses import replace

import numpy as np
import pytest

from stagescope.core.errors import InputError
from stagescope.show.bundle import Blocks
from stagescope.show.diagram import diagram
from stagescope.show.diagram_ink import draw_curves, draw_maps
from stagescope.show.diagram_numbers import MOST_CATEGORIES, categories, disagree, numbers, select
from stagescope.show.diagram_page import page_data
from stagescope.sweeping.axes import Axis
from stagescope.views.figure import COLORS
from tests.show.decode import decoded
from tests.show.sweeps import PERSISTENCE, PI, RATE, focus, sweep

FEW = Axis(name="pi.0", kind="linear", values=(0.3, 0.5, 0.7))
DELTA = Axis(name="delta", kind="linear", values=(0.0, 0.01, 0.02))
MANY = Axis(name="delta", kind="linear", values=tuple(i / 100 for i in range(9)))


def made(seeds=1, **how):
    return sweep((PI, PERSISTENCE), focus, seeds=seeds, **how)


def of(found, x="pi.0", y="persistence", color="E2", **at):
    return numbers(found, select(found, x, y, color, at))


def drawn(found, **how):
    from matplotlib import pyplot

    shown = of(found, **how)
    drawing = draw_curves(shown) if shown["y"] is None else draw_maps(shown)
    drawing.canvas.draw()
    pyplot.close(drawing)
    return drawing


@pytest.mark.parametrize(
    ("how", "said"),
    [
        ({"x": "p0"}, "unknown axis of this sweep 'p0'; did you mean 'pi.0'?"),
        ({"x": "persistance"}, "did you mean 'persistence'?"),
        ({"x": "E1"}, "E1 is a result, not an axis of this sweep; axes: pi.0, persistence"),
        ({"y": "pi.0"}, "x and y are both pi.0"),
        ({"color": "E3"}, "unknown column of this sweep 'E3'; did you mean 'E"),
        ({"color": "final los"}, "did you mean 'final loss'?"),
    ],
)
def test_what_does_not_exist_is_named_with_the_nearest_thing_that_does(how, said):
    with pytest.raises(InputError, match=re.escape(said)):
        of(made(), **how)


def test_cuts_are_checked():
    found = sweep((FEW, PERSISTENCE, DELTA), lambda a, b, d, s: focus(a - d, b, s))
    assert of(found, delta="0.01")["at"] == {"delta": 0.01}
    with pytest.raises(InputError, match=r"no cell has delta = 0.5; the nearest have 0, 0.01, 0.02"):
        of(found, delta=0.5)
    with pytest.raises(InputError, match=r"pi\.0 is drawn as an axis"):
        of(found, **{"pi.0": 0.4})
    with pytest.raises(InputError, match="unknown value of delta 'small'"):
        of(found, delta="small")
    with pytest.raises(InputError, match="unknown axis of this sweep 'delat'"):
        of(found, delat=0.01)


def test_axes_that_are_neither_drawn_nor_cut_give_panels_but_not_too_many():
    found = sweep((FEW, PERSISTENCE, DELTA), lambda a, b, d, s: focus(a - d, b, s))
    assert [panel["at"] for panel in of(found)["panels"]] == [{"delta": value} for value in DELTA.values]
    assert len(drawn(found).axes) == 3 + 1  # and the bar
    many = sweep((FEW, PERSISTENCE, MANY), lambda a, b, d, s: focus(a - d, b, s))
    with pytest.raises(InputError, match=r"delta would give 9 panels, more than 6; choose a value with --at delta=0.04"):
        of(many)
    with pytest.raises(InputError, match=r"would give 27 rows of dots for every name where there is room for 1: stages is words"):
        of(found, y=None, color="stages")


def test_an_empty_sweep_and_one_in_which_everything_failed_say_so():
    with pytest.raises(InputError, match="no row yet"):
        of(replace(made(), rows=()))
    failed = sweep((PI, PERSISTENCE), lambda a, b, s: {"status": "failed", "reason": "boom", "stages": None})
    with pytest.raises(InputError, match="every run of this sweep failed, so there is no E2; --color status"):
        of(failed)
    assert select(failed, "pi.0", "persistence", None, {}).color == "status"
    assert drawn(failed, color="status")


def test_a_cell_holds_the_median_with_the_interval_of_the_table_and_why_runs_failed():
    found = made(seeds=5)
    stored = {(cell["x"], cell["y"]): cell for cell in of(found)["panels"][0]["cells"]}
    table = {tuple(entry["at"].values()): entry for entry in found.statistics("E2")}
    cell = stored[PI.values[2], PERSISTENCE.values[4]]
    assert (cell["rows"], cell["known"], cell["beyond"], cell["failed"]) == (5, 2, 3, 0)
    assert (cell["value"], cell["lack"]) == (None, "not reached")  # three of five later than the end: so is the median
    assert cell["interval"] == table[PI.values[2], PERSISTENCE.values[4]]["median_interval"]
    assert cell["interval"][1] is None
    assert disagree(cell)
    whole = stored[PI.values[6], PERSISTENCE.values[4]]
    assert whole["value"] == table[PI.values[6], PERSISTENCE.values[4]]["median"]
    broken = stored[PI.values[0], PERSISTENCE.values[8]]
    assert (broken["value"], broken["lack"], broken["failed"]) == (None, "failed", 5)
    assert broken["reasons"] == {"diverged: the loss is not finite at t = 12.5": 5}
    absent = stored[PI.values[0], PERSISTENCE.values[0]]
    assert (absent["value"], absent["lack"], absent["failed"]) == (None, "not reached", 0)
    assert of(found)["lacks"] == {"not reached": "not reached by t = 400, by the median seed"}


def test_shares_of_categories_sum_to_one_and_the_most_frequent_is_shown():
    for cell in of(made(seeds=5), color="stages")["panels"][0]["cells"]:
        shares = {name: entry["share"] for name, entry in cell["shares"].items()}
        if shares:
            assert sum(shares.values()) == pytest.approx(1)
            assert shares[cell["value"]] == max(shares.values())


def test_categories_keep_their_order_and_the_rarest_share_a_colour():
    assert categories(["violated", None, "confirmed", "violated"]) == ["confirmed", "violated"]
    many = [f"kind {i}" for i in range(12) for _ in range(12 - i)]
    assert categories(many) == [*(f"kind {i}" for i in range(MOST_CATEGORIES)), "other"]
    found = sweep((PI, PERSISTENCE), lambda a, b, s: {"stages": [f"kind {round(a * 100)} {round(b * 10)}"]})
    labels = [text.get_text() for legend in drawn(found, color="stages").legends for text in legend.get_texts()]
    assert labels[-1] == f"{81 - MOST_CATEGORIES} others"


@pytest.mark.long
@pytest.mark.parametrize(
    ("found", "how"),
    [
        (sweep((PI, PERSISTENCE), lambda a, b, s: {"numbers": {"n": 3}}), {"color": "n"}),
        (sweep((PI, PERSISTENCE), lambda a, b, s: {"numbers": {"n": a - b}}), {"color": "n"}),
        (sweep((PI.model_copy(update={"values": (0.4,)}), RATE.model_copy(update={"values": (0.1,)})), lambda a, b, s: {}),
         {"y": "lr", "color": "seconds"}),
        (sweep((PI, RATE), lambda a, b, s: {"numbers": {"n": b}}, seeds=3), {"y": "lr", "color": "n"}),
        (sweep((Axis(name="optimizer", kind="categorical", values=("flow", "adam")), PI), lambda a, b, s: {}),
         {"y": "optimizer", "color": "stages"}),
        (sweep((PI,), lambda a, s: focus(a, 0.5, s), seeds=4), {"y": None}),
        (sweep((PI,), lambda a, s: focus(a, 0.5, s), seeds=4), {"y": None, "color": "stages"}),
        (sweep((PI,), lambda a, s: focus(a, 0.9, s)), {"y": None, "color": "reason"}),
        (sweep((PI, DELTA), lambda a, d, s: focus(a - d, 0.9, s)), {"y": None, "color": "E2"}),
    ],
    ids=["constant", "both signs", "one cell", "log", "names", "curve", "shares", "reasons", "curves"],
)  # fmt: skip
def test_odd_sweeps_are_drawn(found, how):
    json.dumps(of(found, **how), allow_nan=False)
    assert drawn(found, **how)


def test_log_axes_are_drawn_log():
    found = sweep((PI, RATE), lambda a, b, s: {"numbers": {"n": b}})
    axes = drawn(found, y="lr", color="n").axes[0]
    assert (axes.get_xscale(), axes.get_yscale()) == ("linear", "log")
    assert axes.get_ylim() == pytest.approx((10**-3.5, 10**0.5))


def test_hatched_and_blank_and_refined_cells_are_drawn_where_they_are():
    """A pixel inside each kind of cell has its colour: white where none exists."""
    from matplotlib import pyplot
    from matplotlib.colors import to_rgb

    cells = [(a, b) for a in PI.values for b in PERSISTENCE.values if not (a > 0.6 and b < 0.35)]
    shown = of(made(cells=cells, rounds=2, by=lambda a, b: str(focus(a, b)["stages"])), color="stages")
    drawing = draw_maps(shown)
    drawing.set_dpi(100)
    drawing.canvas.draw()
    picture = np.asarray(drawing.canvas.buffer_rgba())[..., :3]  # pyright: ignore[reportAttributeAccessIssue]
    pyplot.close(drawing)

    def color(x, y):
        across, up = drawing.axes[0].transData.transform((x, y))
        return tuple(int(c) for c in picture[len(picture) - 1 - round(up), round(across)])

    assert color(0.67, 0.2) == (255, 255, 255)
    colors = dict(zip(shown["categories"], map(to_rgb, COLORS), strict=False))
    dilution, focused, defocus = (
        tuple(round(255 * part) for part in colors[name])
        for name in ("condensation > focus > dilution", "condensation > focus", "condensation > defocus")
    )
    assert color(0.67, 0.6) == color(0.56, 0.55) == dilution
    assert color(0.31, 0.2) == color(0.41, 0.5) == defocus
    assert color(0.446, 0.5) == focused  # nearer to a value of the grid that has none: known from refinement alone


@pytest.mark.long
def test_files_are_written_where_promised_and_only_ours_are_replaced(tmp_path):
    found = sweep((FEW, RATE), lambda a, b, s: focus(a, 0.5, s), folder=tmp_path / "sweep")
    found.folder.mkdir()
    files = diagram(found, "pi.0", "lr", "E2")
    assert files.page == found.folder / "diagrams" / "diagram.html"
    stem = found.folder / "diagrams" / "E2-over-pi_0-lr"
    assert sorted(path.suffix for path in stem.parent.glob(f"{stem.name}.*")) == [".json", ".pdf", ".png", ".svg"]
    assert json.loads(stem.with_suffix(".json").read_text()) == json.loads(json.dumps(files.numbers))
    before = {path.name: path.read_bytes() for path in stem.parent.iterdir()}
    diagram(found, "pi.0", "lr", "E2")
    assert {path.name: path.read_bytes() for path in stem.parent.iterdir()} == before
    stem.with_suffix(".pdf").write_text("mine")
    with pytest.raises(InputError, match="was not made with Stagescope"):
        diagram(found, "pi.0", "lr", "E2")
    (tmp_path / "mine.html").write_text("mine")
    with pytest.raises(InputError, match="is no report of Stagescope"):
        diagram(found, "pi.0", "lr", "E2", out=tmp_path / "other", page=tmp_path / "mine.html")
    with pytest.raises(InputError, match="is a file; give a folder"):
        diagram(found, "pi.0", "lr", "E2", out=tmp_path / "mine.html")


def test_the_page_carries_a_command_for_every_row_and_no_path_of_this_machine(tmp_path):
    found = replace(made(seeds=2), folder=tmp_path / "my sweep")
    blocks = Blocks()
    data = page_data(found, select(found, "pi.0", "persistence", "E2", {}), "title", blocks)
    texts = bytes(decoded(data["run"], blocks.payloads[data["run"]["id"]])).decode().split("\0")
    assert len(texts) == len(found)
    assert texts[0].startswith("stagescope run focus-dilution ")
    assert str(tmp_path) not in json.dumps(data) + "".join(texts)


def test_the_command(tmp_path, capsys):
    """From a stored sweep to files, and a sentence for a name that does not exist."""
    from stagescope.cli.main import run
    from stagescope.sweeping.rows import RowWriter

    found = sweep((FEW, RATE, DELTA), lambda a, b, d, s: focus(a - d, 0.5, s))
    rows = [{"retry": 0, **row} for row in found.rows]
    folder, part = tmp_path / "sweep", tmp_path / "part"
    for place, count in ((folder, len(rows)), (part, len(rows) - 3)):
        place.mkdir()
        found.plan.save(place)
        RowWriter(place).commit(rows[:count])
    words = ["diagram", str(folder), "--x", "pi.0", "--y", "lr", "--color", "E2"]
    assert (
        run([*words, "--at", "delta=.01", "--out", str(tmp_path / "out"), "--page", str(tmp_path / "page.html"), "--quiet"]) == 0
    )
    assert capsys.readouterr().out.split() == [
        str(tmp_path / "out" / "E2-over-pi_0-lr-delta=0_01.png"),
        str(tmp_path / "page.html"),
    ]
    assert run([words[0], str(part), *words[2:], "--out", str(tmp_path / "out")]) == 0
    assert "note: 33 of 36 points: the sweep is not complete" in capsys.readouterr().out
    assert run([*words[:-1], "E22"]) == 2
    assert "unknown column of this sweep 'E22'; did you mean 'E2'?" in capsys.readouterr().err
    assert run(["diagram", str(tmp_path), "--x", "pi.0"]) == 2
    assert "holds no sweep" in capsys.readouterr().err


def over_pi0(result=lambda *values: {"events": {"E2": 1.0}}, **how):
    first = Axis(name="pi0", kind="linear", values=(0.3, 0.5, 0.7))
    return sweep((first, PERSISTENCE), result, **how)


@pytest.mark.parametrize(("x", "y"), [("pi0", "persistence"), ("persistence", "pi0")])
def test_a_boundary_is_drawn_over_its_axes(tmp_path, x, y):
    found = diagram(over_pi0(), x, y, "E2", boundary="stall", out=tmp_path)
    line = found.numbers["panels"][0]["boundary"]
    assert line["pi0"][0] == pytest.approx(0.2)
    assert line["pi0"][-1] == pytest.approx(0.8)
    assert np.interp(0.5, line["pi0"], line["persistence"]) == pytest.approx(0.479, rel=0.01)
    from matplotlib import pyplot

    drawing = draw_maps(found.numbers)
    lines = [each for each in drawing.axes[0].lines if len(each.get_xdata()) == len(line["pi0"])]
    assert len(lines) == 2, "dark in light"
    assert lines[0].get_xdata() == pytest.approx(line[x])
    assert any("stall: lambda_c" in text.get_text() for text in drawing.legends[0].get_texts())
    pyplot.close(drawing)
    page = found.page.read_text()
    assert '"boundary":{"name":"stall"' in page


def test_a_boundary_depends_on_what_a_panel_holds(tmp_path):
    tokens = Axis(name="tokens", kind="integer", values=(3, 6))
    first = Axis(name="pi0", kind="linear", values=(0.4, 0.5))
    found = diagram(
        sweep((first, PERSISTENCE, tokens), lambda *values: {"events": {"E2": 1.0}}),
        "pi0", "persistence", "E2", boundary="stall", out=tmp_path,
    )  # fmt: skip
    few, many = (panel["boundary"]["persistence"] for panel in found.numbers["panels"])
    assert few != many
    assert '"boundary"' not in found.page.read_text(), "the page shows one line for all cuts"


@pytest.mark.parametrize(
    ("how", "said"),
    [
        ({"x": "pi0", "y": "persistence", "boundary": "stal"}, "did you mean 'stall'?"),
        (
            {"x": "pi0", "boundary": "stall"},
            "is a line over pi0 and persistence, and this diagram is over pi0; draw one with --x pi0",
        ),
    ],
)
def test_boundaries_that_cannot_be_drawn(tmp_path, how, said):
    with pytest.raises(InputError, match=re.escape(said)):
        diagram(over_pi0(), **how, color="E2", out=tmp_path)
    assert not list(tmp_path.iterdir())


def test_a_study_without_boundaries_says_so(tmp_path):
    with pytest.raises(InputError, match="scan-snap has no boundaries"):
        diagram(over_pi0(study="scan-snap"), "pi0", "persistence", "E2", boundary="stall", out=tmp_path)
