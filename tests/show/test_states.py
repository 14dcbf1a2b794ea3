"""What a cell without an ordinary value says: failed, not reached by the end, in progress, there at the start; and its notes."""

from dataclasses import replace

import pytest

from stagescope.core.errors import InputError
from stagescope.show.diagram_areas import Ruler, ValueScale, mark_text
from stagescope.show.diagram_ink import ABSENT, START, NumberColors, colors_of, distinct, draw_curves, draw_maps, folded, shade
from stagescope.show.diagram_numbers import disagree, fixed_text, numbers, select
from stagescope.sweeping.axes import Axis, Scale
from tests.show.sweeps import sweep

RATE = Axis(name="lr", kind="log", values=(0.1, 1.0, 10.0))
OPTIMIZER = Axis(name="optimizer", kind="categorical", values=("flow", "adam"))
DIVERGED = {"status": "diverged", "reason": "diverged at t = 3", "end": 3.0}


def of(found, x="lr", y="optimizer", color="E1", **at):
    return numbers(found, select(found, x, y, color, at))


def cells(found, **how):
    return {(cell["x"], cell.get("y")): cell for panel in of(found, **how)["panels"] for cell in panel["cells"]}


def texts(found, **how):
    """Everything that a figure says."""
    from matplotlib import pyplot
    from matplotlib.text import Text

    shown = of(found, **how)
    drawing = draw_curves(shown) if shown["y"] is None else draw_maps(shown)
    pyplot.close(drawing)
    return " ".join(text.get_text().replace("\n", " ") for text in drawing.findobj(Text))


def test_what_a_failed_run_recorded_never_counts():
    """Events before the divergence, and a loss of 1e27, are neither painted nor part of the scale."""

    def result(lr, name, seed):
        broken = lr > 5 or (lr > 0.5 and seed == 0)
        done = DIVERGED if broken else {}
        return {**done, "events": {"E1": 1.0 + lr}, "numbers": {"loss": 1e27 if broken else lr}, "stages": ["a"]}

    found = sweep((RATE, OPTIMIZER), result, seeds=3)
    for color in ("E1", "loss", "last stage"):
        seen = cells(found, color=color)
        assert (seen[10.0, "flow"]["lack"], seen[10.0, "flow"]["failed"], seen[10.0, "flow"]["value"]) == ("failed", 3, None)
        assert (seen[1.0, "flow"]["lack"], seen[1.0, "flow"]["failed"], seen[1.0, "flow"]["known"]) == (None, 1, 2)
        assert disagree(seen[1.0, "flow"])
        assert not disagree(seen[10.0, "flow"])
        assert not disagree(seen[0.1, "flow"])
    assert cells(found, color="loss")[1.0, "flow"]["value"] == 1.0
    said = texts(found, color="loss")
    assert "diverged at t = 3" in said
    assert "seeds disagree, or some failed" in said
    assert "10^{27}" not in said
    statuses = cells(found, color="status")
    assert statuses[10.0, "flow"]["value"] == "diverged"  # how runs ended is known of all


def test_not_reached_is_said_with_the_end_of_the_runs():
    found = sweep((RATE, OPTIMIZER), lambda lr, name, s: {"events": {"E1": None if lr > 0.5 else 2.0}, "end": 800.0 * lr})
    assert of(found)["lacks"] == {"not reached": "not reached by t = 800 to 8000"}
    assert cells(found)[1.0, "flow"]["ends"] == {"t": [800.0, 800.0]}
    assert "not reached by t = 800 to 8000" in texts(found)
    assert "not reached by t = 800 to 8000" in texts(found, y=None, optimizer="flow")
    old = replace(found, rows=tuple({k: v for k, v in row.items() if k != "end"} for row in found.rows))
    assert of(old)["lacks"] == {"not reached": "not reached by the end of the run"}


def test_a_stage_that_lasts_is_in_progress_and_one_that_never_was_is_not():
    durations = {0.1: {"focus": 3.0}, 1.0: {"focus": None}, 10.0: {}}
    found = sweep((RATE, OPTIMIZER), lambda lr, name, s: {"durations": durations[lr]})
    seen = cells(found, color="duration focus")
    assert [seen[lr, "flow"]["lack"] for lr in RATE.values] == [None, "in progress", "none"]
    lacks = {"in progress": "in progress at the end (t = 400)", "none": "no such stage"}
    assert of(found, color="duration focus")["lacks"] == lacks
    assert len({shade(seen[lr, "flow"], colors_of(of(found, color="duration focus"))) for lr in RATE.values}) == 3


def test_a_median_among_runs_that_did_not_get_there_is_not_reached():
    """Two of five seeds reach it: their median is not that of the cell. Three of five: it is, and its interval is open."""

    def result(lr, seed):
        return {"events": {"E1": 10.0 + seed if seed < {0.1: 5, 1.0: 3, 10.0: 2}[lr] else None}}

    found = sweep((RATE,), result, seeds=5)
    seen = {x: cell for (x, _), cell in cells(found, y=None).items()}
    assert [seen[lr]["value"] for lr in RATE.values] == [12.0, 12.0, None]
    assert [seen[lr]["beyond"] for lr in RATE.values] == [0, 2, 3]
    assert seen[1.0]["interval"][1] is None
    assert seen[10.0]["mean"] is None
    said = texts(found, y=None)
    assert "median of 5 seeds" in said
    assert "not reached by t = 400, by the median seed" in said


def test_what_was_there_at_the_start_is_not_on_the_scale():
    found = sweep((RATE, OPTIMIZER), lambda lr, name, s: {"events": {"E1": 0.0 if lr > 5 else 20.0 * lr}})
    shown = of(found)
    seen = cells(found)
    assert seen[10.0, "flow"]["start"] is True
    assert seen[1.0, "flow"]["start"] is False
    colors = colors_of(shown)
    assert isinstance(colors, NumberColors)
    assert (colors.scale.low, colors.scale.high) == (2.0, 20.0)
    assert shade(seen[10.0, "flow"], colors) == START
    assert "there at the start" in texts(found)
    assert "there at the start" in texts(found, y=None, optimizer="flow")


def test_both_signs_over_many_decades_are_seen():
    scale = ValueScale([-1e-9, 1e-9, 0.0, 1e-4, 0.1, -0.05])
    assert scale.log
    assert [scale.place(value) for value in (-0.1, 0.0, 0.1)] == pytest.approx([0, 0.5, 1])
    assert scale.place(1e-9) == pytest.approx(0.65)
    assert scale.place(-1e-9) == pytest.approx(0.35)
    assert scale.marks() == pytest.approx([-1e-3, -1e-6, -1e-9, 0, 1e-9, 1e-6, 1e-3])
    near = ValueScale([-1.0, 0.5])
    assert not near.log
    assert near.place(0.0) == 0.5


@pytest.mark.parametrize("values", [(1e-3, 1e27), (1.0, 11.0), (5.1, 90.0), (0.2, 0.9), (1e-12, 1.0)])
def test_a_bar_has_few_numbers_and_more_than_one(values):
    marks = ValueScale(values).marks()
    assert 2 <= len(marks) <= 7
    assert marks == sorted(marks)
    assert all(values[0] * (1 - 1e-9) <= mark <= values[1] * (1 + 1e-9) for mark in marks)
    assert len({mark_text(mark) for mark in marks}) == len(marks)


def test_different_clocks_are_said():
    found = sweep((RATE, OPTIMIZER), lambda lr, name, s: {"events": {"E1": lr}, "clock": "t" if name == "flow" else "step"})
    assert of(found)["clocks"] == ["t", "step"]
    note = "times are in t for optimizer = flow and in steps for optimizer = adam: they do not compare"
    assert of(found)["notes"] == [note]
    assert note in texts(found)
    assert of(found, color="seconds")["notes"] == []


def test_an_unfinished_sweep_says_how_much_is_there():
    found = sweep((RATE, OPTIMIZER), lambda lr, name, s: {"events": {"E1": lr}}, seeds=2)
    cut = replace(found, rows=found.rows[:-2], damaged=("rows/a.jsonl line 3",))
    assert of(cut)["notes"] == ["10 of 12 points: the sweep is not complete", "1 damaged row left out"]
    assert "10 of 12 points" in texts(cut)
    assert of(found)["notes"] == []


def test_uneven_values_stand_at_equal_distances():
    uneven = Ruler(Scale("linear", (0.0, 0.001, 0.003, 0.01, 0.03)))
    assert uneven.ordinal
    assert [uneven.place(value) for value in uneven.scale.values] == [0, 1, 2, 3, 4]
    assert uneven.place(0.02) == pytest.approx(3.5)
    assert uneven.reach == (-0.5, 4.5)
    assert not Ruler(Scale("linear", tuple(i / 100 for i in range(101)))).ordinal
    assert not Ruler(Scale("linear", (0.001, 0.003, 0.01, 0.03))).ordinal  # logarithmic
    found = sweep(
        (Axis(name="delta", kind="linear", values=uneven.scale.values), OPTIMIZER), lambda d, o, s: {"events": {"E1": d}}
    )
    assert "delta (values at equal distances)" in texts(found, x="delta")


def test_the_default_colour_and_the_hint_at_verdicts():
    found = sweep((RATE, OPTIMIZER), lambda lr, name, s: {"stages": ["condensation", "focus"], "events": {"E1": 1.0}})
    assert select(found, "lr", None, None, {}).color == "last stage"
    with pytest.raises(InputError, match="--measure verdicts"):
        select(found, "lr", None, "FD:sign", {})
    named = replace(found, plan=found.plan.model_copy(update={"preset": "stalls"}))
    assert select(named, "lr", None, None, {}).color == "last stage"  # its own column, E2, is not in this sweep
    with_color = sweep((RATE,), lambda lr, s: {"events": {"E2": 1.0}, "stages": ["focus"]})
    named = replace(with_color, plan=with_color.plan.model_copy(update={"preset": "stalls"}))
    assert select(named, "lr", None, None, {}).color == "E2"


def test_fixed_options_are_those_that_are_no_defaults_and_how_far_runs_go():
    found = sweep((RATE,), lambda lr, s: {})
    fixed = {"optimizer": "flow", "until": 800.0, "steps": 8000, "width": 5, "scale": 4.0, "pi0": None}
    plan = found.plan.model_copy(update={"fixed": fixed})
    assert fixed_text(replace(found, plan=plan)) == [("until", "800"), ("width", "5")]


def test_long_names_are_distinct():
    one, other = (" > ".join([*["condensation", "focus"] * 30, end]) for end in ("dilution", "refocus"))
    assert folded(one, 40) != folded(other, 40)
    assert max(map(len, folded(one, 40).split("\n"))) <= 41
    assert folded("short", 40) == "short"
    middle = [" > ".join([*["focus"] * 40, kind, *["dilution"] * 40]) for kind in ("condensation", "cycle 3")]
    assert folded(middle[0], 40) == folded(middle[1], 40)
    assert [name[:3] for name in distinct([*middle, "short"], 40)] == ["1. ", "2. ", "sho"]
    assert set(ABSENT) == {"not reached", "in progress", "none"}
