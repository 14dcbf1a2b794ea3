"""From a caller's words to points."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stagescope.errors import InputError
from stagescope.studies.table import study
from stagescope.sweeping.points import points
from stagescope.sweeping.presets import PRESETS
from stagescope.sweeping.request import requested

FD = study("focus-dilution")


def plan(preset=None, of=FD, **given):
    options = {name: given.pop(name) for name in list(given) if name in of.options.model_fields}
    return requested(of, preset, options=options, **given)


def test_a_preset_and_its_options_spelled_out_are_the_same_points():
    named = plan("stall", grid={"delta": "0,.1"})
    spelled = plan(grid={"delta": "0,.1"}, pi0=0.4, persistence=0.3, until=4000.0)
    assert [point.digest for point in points(named)] == [point.digest for point in points(spelled)]


def test_seeds_and_grids_multiply_and_each_point_comes_once():
    found = list(points(plan(grid={"pi.0": ".3,.4", "persistence": ".1:.9:9"}, seeds=5)))
    assert len(found) == len({point.digest for point in found}) == 90
    assert {point.seed for point in found} == set(range(5))


@given(st.floats(0.01, 0.98), st.integers(0, 3))
def test_the_other_probabilities_keep_their_proportions(value, place):
    (point,) = points(plan(grid={f"pi.{place}": [value]}))
    pi, base = point.config["pi"], FD.options().pi
    assert pi[place] == value
    assert sum(pi) == pytest.approx(1)
    ratios = [now / before for i, (now, before) in enumerate(zip(pi, base, strict=True)) if i != place]
    assert ratios == pytest.approx([ratios[0]] * 3)


def test_a_table(tmp_path):
    file = tmp_path / "table.csv"
    file.write_text("pi0,persistence,seed\n.4,.3,7\n.5,.6,8\n")
    found = list(points(plan(table=file, tokens=5)))
    assert [(point.at, point.seed) for point in found] == [
        ({"pi0": 0.4, "persistence": 0.3}, 7),
        ({"pi0": 0.5, "persistence": 0.6}, 8),
    ]
    assert len(list(points(plan(table=[{"pi0": 0.4}], grid={"delta": "0,.01"}, seeds="3,4")))) == 4


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "no lines"),
        ("pi0\n", "no lines"),
        ("pi0,delta\n.4\n", "2 values"),
        ("pi0\n.4,.5\n", "1 values"),
        ("seed\n1\n", "needs one"),
    ],
)
def test_bad_tables(tmp_path, text, words):
    file = tmp_path / "table.csv"
    file.write_text(text)
    with pytest.raises(InputError, match=words):
        plan(table=file)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({}, "nothing to sweep"),
        ({"grid": {"lr": "1,2"}}, "no point of this sweep can run.*--lr"),
        ({"grid": {"until": "1:2:1000"}, "seeds": 1001}, "1,001,000 points.*--yes"),
        ({"grid": {"until": "1,2"}, "until": 5.0}, "both swept and fixed"),
        ({"grid": {"until": "1,2"}, "measures": ["event"]}, "unknown measure"),
        ({"grid": {"until": "1,2"}, "seeds": 0}, "seeds is 0"),
        ({"grid": {"until": "1,2"}, "seeds": "a"}, "seed 'a'"),
        ({"grid": {"until": "1,2"}, "seeds": "1,1"}, "different seeds"),
        ({"preset": "nope"}, "unknown preset"),
        ({"grid": {"pi.7": ".1"}}, "pi has 4 elements"),
    ],
)
def test_bad_requests(given, words):
    with pytest.raises(InputError, match=words):
        plan(**given)


def test_a_million_points_need_a_yes():
    assert len(plan(grid={"until": "1:2:1000"}, seeds=1001, yes=True).grids[0]) == 1_001_000
    with pytest.raises(InputError, match="1,001,000 points are more"):
        plan(stored=plan(grid={"until": "1:2:1000"}), seeds=1001)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"grid": {"until": "1,2"}, "tokens": 5, "pi0": 0.4}, "the option pi0"),
        ({"grid": {"scale": "1,2"}}, "what is swept"),
        ({"grid": {"until": "1,2"}, "measures": ["numbers"]}, "what is measured"),
        ({"grid": {"rate_y": "1,2"}, "of": study("scan-snap")}, "study"),
    ],
)
def test_another_sweep_is_refused(given, words):
    with pytest.raises(InputError, match=words):
        plan(grid={"until": "1,2"}).extended(plan(**given))


def test_a_sweep_is_extended():
    first = plan(grid={"until": "1,2"})
    again = first.extended(plan(grid={"until": "1:2:3"}, seeds=2))
    assert again.axes[0].values == (1.0, 1.5, 2.0)
    assert len(list(points(again))) == 6
    assert first.extended(plan(grid={"until": "1,2"})).grids == first.grids


def test_a_file_is_known_by_its_bytes(tmp_path):
    for name, rows in (("a", ".9,.1\n.2,.8\n"), ("b", ".9,.1\n.2,.8\n"), ("c", ".8,.2\n.2,.8\n")):
        (tmp_path / name).write_text(rows)
    made = [[point.digest for point in points(plan(grid={"scale": "1,2"}, transition=tmp_path / name))] for name in "abc"]
    assert made[0] == made[1]
    assert not set(made[0]) & set(made[2])


def test_a_sweep_does_not_go_on_with_a_file_that_was_changed(tmp_path):
    path = tmp_path / "chain.csv"
    path.write_text(".9,.1\n.2,.8\n")
    stored = plan(grid={"scale": "1,2"}, transition=path)
    assert plan(stored=stored, seeds=2).files == stored.files
    path.write_text(".8,.2\n.2,.8\n")
    with pytest.raises(InputError, match=r"chain\.csv was changed since"):
        plan(stored=stored)


@pytest.mark.parametrize(("name", "preset"), [(name, preset) for name in PRESETS for preset in PRESETS[name]])
def test_every_sweep_preset_is_a_plan_whose_points_can_be_set_up(name, preset):
    of = study(name)
    found = list(points(plan(preset, of=of)))
    assert found
    for point in (found[0], found[-1]):
        of.check_use(of.configured(None, **point.config))
