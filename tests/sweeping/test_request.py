"""From a caller's words to points."""

import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stagescope.core.errors import InputError
from stagescope.readings.registry import studies, study
from stagescope.sweeping.plan import points, requested

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
    assert [(point.values, point.seed) for point in found] == [
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
        ("pi0\n.4,.5\n", "1 value expected"),
        ("seed\n1\n", "needs one"),
        ("pi0\n.4\nabc\n", "line 3 of the table: pi0: .*'abc'"),
        ("pi0,seed\n.4,1\n.4,x\n", "line 3 of the table: seed 'x'"),
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
        ({"grid": {"lr": "1,2"}}, "no point of this sweep uses it.*--lr"),
        ({"grid": {"until": "1:2:1000"}, "seeds": 1001}, "1,001,000 points.*--yes"),
        ({"grid": {"until": "1,2"}, "until": 5.0}, "both swept and fixed"),
        ({"grid": {"until": "1,2"}, "measures": ["event"]}, "unknown measure"),
        ({"grid": {"until": "1,2"}, "seeds": 0}, "seeds is 0"),
        ({"grid": {"until": "1,2"}, "seeds": "a"}, "seed 'a'"),
        ({"grid": {"until": "1,2"}, "seeds": "1,1"}, "different seeds"),
        ({"preset": "nope"}, "unknown preset"),
        ({"grid": {"pi.7": ".1"}}, "pi has 4 elements"),
        ({"grid": {"optimizer": "gd,adam"}, "until": 50.0}, r"no point of this sweep uses it: --until 50\.0"),
        ({"grid": {"lr": ".2,.3", "optimizer": "flow,gd"}, "until": 5.0}, r"no point of this sweep uses it: --until 5\.0"),
        ({"grid": {"optimizer": "sgd"}, "lr": 0.2}, "no point of this sweep can run: sgd draws batches"),
        ({"table": "nowhere.csv"}, "nowhere.csv: No such file; give a CSV file"),
    ],
)
def test_bad_requests(given, words):
    with pytest.raises(InputError, match=words):
        plan(**given)


def test_a_study_has_measures_of_its_own():
    of = study("incremental")
    grid = {"sequences": "50,100"}
    assert requested(of, "ladder", grid=grid, measures=["stopping", "events"]).measures == ("events", "stopping")
    assert requested(of, "early-stopping").measures == of.sweeps["early-stopping"].measures
    with pytest.raises(InputError, match="did you mean 'stopping'"):
        requested(of, "ladder", grid=grid, measures=["stoping"])


def test_a_fixed_option_is_left_out_where_it_has_no_effect():
    """Such a point is the one asked for without that option, so that its run can be made again."""
    both = list(points(plan(grid={"optimizer": "flow,gd"}, until=50.0, lr=0.2)))
    assert [point.config for point in both] == [{"until": 50.0}, {"optimizer": "gd", "lr": 0.2}]
    alone = [*points(plan(grid={"optimizer": "flow"}, until=50.0)), *points(plan(grid={"optimizer": "gd"}, lr=0.2))]
    assert [point.digest for point in both] == [point.digest for point in alone]


def test_a_swept_option_stays_where_it_has_no_effect():
    """Each cell is a point, and the run says what has no effect."""
    found = list(points(plan(grid={"lr": ".2,.3", "optimizer": "flow,gd"}, steps=20)))
    assert len({point.digest for point in found}) == 4
    with pytest.raises(InputError, match=r"--lr 0\.2"):
        FD.check_use(FD.configured(None, **found[0].config))


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"of": study("scan-snap")}, "a sweep of focus-dilution, not of scan-snap"),
        ({"of": study("scan-snap"), "grid": {"rate_y": "1,2"}}, "a sweep of focus-dilution, not of scan-snap"),
        ({"measures": ["verdicts"]}, "is events numbers in this sweep, not verdicts: another --out"),
        ({"measures": ["verdicts"], "grid": {"until": "1,3"}}, "is events numbers in this sweep, not verdicts"),
    ],
)
def test_a_stored_sweep_is_not_continued_as_another(given, words):
    with pytest.raises(InputError, match=words):
        plan(stored=plan(grid={"until": "1,2"}), **given)


def test_grids_replace_those_of_a_preset_by_name():
    whole = {axis.name: axis.values for axis in plan("focus-defocus").axes}
    some = {axis.name: axis.values for axis in plan("focus-defocus", grid={"pi0": ".3,.5"}, delta=0.0).axes}
    assert some == {"pi0": (0.3, 0.5), "persistence": whole["persistence"]}
    assert [axis.name for axis in plan("focus-defocus", grid={"init-scale": "1e-3,1e-2"}).axes] == [*whole, "init_scale"]
    six = plan("figure-6", of=study("scan-snap"), grid={"rate_y": "1,2"})
    assert [axis.name for axis in six.axes] == ["rate_y"]


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


@pytest.mark.parametrize("swept", [False, True], ids=["fixed", "swept"])
def test_a_text_is_known_by_its_bytes_wherever_one_stands(tmp_path, monkeypatch, swept):
    def digests(folder):
        monkeypatch.chdir(tmp_path / folder)
        given = {"grid": {"corpus": "t.txt"}} if swept else {"grid": {"vocab": "20"}, "corpus": "t.txt"}
        made = plan(of=study("text-focus"), **given)
        assert list(made.files) == [str(tmp_path / folder / "t.txt")]
        monkeypatch.chdir(tmp_path)
        found = list(points(made))
        assert all(point.config["corpus"] == str(tmp_path / folder / "t.txt") for point in found)
        return [point.digest for point in found]

    for folder, text in (("a", "one two " * 99), ("b", "one two " * 99), ("c", "two one " * 99)):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "t.txt").write_text(text)
    assert digests("a") == digests("b") != digests("c")


def test_a_grid_over_texts_grows_by_another_one(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in "ab":
        (tmp_path / f"{name}.txt").write_text(f"one two {name} " * 99)
    of = study("text-focus")
    both = plan(of=of, grid={"corpus": "a.txt"}).extended(plan(of=of, grid={"corpus": "a.txt,b.txt"}))
    assert len(both.files) == 2
    assert len(list(points(both))) == 2


def test_two_texts_with_the_same_bytes_are_one_point(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in "ab":
        (tmp_path / f"{name}.txt").write_text("one two " * 99)
    with pytest.raises(InputError, match=r"a\.txt and .*b\.txt have the same bytes"):
        plan(of=study("text-focus"), grid={"corpus": "a.txt,b.txt"})


def test_minus_zero_is_zero():
    assert [point.digest for point in points(plan(grid={"persistence": "-0.0"}))] == [
        point.digest for point in points(plan(grid={"persistence": "0"}))
    ]


@pytest.mark.parametrize(("name", "preset"), [(name, preset) for name, study in studies().items() for preset in study.sweeps])
def test_every_sweep_preset_is_a_plan_whose_points_can_be_set_up(name, preset):
    of = study(name)
    found = list(points(plan(preset, of=of)))
    assert found
    for point in (found[0], found[-1]):
        of.check_use(of.configured(None, **point.config))


OWN = """
import stagescope as ss

def always(evidence):
    return ss.Regime(True, "any run")

def some(evidence):
    return ss.Comparison("some", evidence.run.frames, "exact", evidence.run.frames > 0, "frames")

def made(tag):
    return ss.Claim(tag=tag, statement="The run has frames", regime=always, compare=some)

ONE, SEVERAL, TAKEN, TWICE = made("own:some"), [made("own:a"), made("own:b")], made("FD:origin"), [made("own:a")] * 2
"""


@pytest.fixture
def here(tmp_path, monkeypatch):
    """A folder with a module of claims, in which the test stands."""
    (tmp_path / "own_sweep_claims.py").write_text(OWN)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    yield tmp_path
    sys.modules.pop("own_sweep_claims", None)


def test_own_claims_are_judged_with_the_verdicts(here):
    made = plan(grid={"persistence": ".3,.4"}, claims="own_sweep_claims:ONE")
    assert made.claims == "own_sweep_claims:ONE"
    assert made.measures == ("events", "verdicts", "numbers")
    assert plan(grid={"persistence": ".3,.4"}).claims is None


@pytest.mark.parametrize(
    ("claims", "more", "words"),
    [
        ("own_sweep_claims:ONE", {"measures": ["events"]}, "no effect without --measure verdicts"),
        ("own_sweep_claims:TAKEN", {}, "the tag FD:origin is taken"),
        ("own_sweep_claims:TWICE", {}, "2 claims have the tag 'own:a'"),
        ("own_sweep_claims:NONE", {}, "has no 'NONE'"),
        ("no_such_module_here:ONE", {}, "none is installed"),
        ([1], {}, "give them as 'module:NAME'"),
    ],
)
def test_own_claims_that_cannot_be_judged(here, claims, more, words):
    with pytest.raises(InputError, match=words):
        plan(grid={"persistence": ".3,.4"}, claims=claims, **more)


def test_a_stored_name_is_not_imported_by_itself(here):
    stored = plan(grid={"persistence": ".3,.4"}, claims="own_sweep_claims:ONE")
    sys.modules.pop("own_sweep_claims")
    foreign = stored.model_copy(update={"claims": "no_such_module_here:ONE"})
    with pytest.raises(InputError, match="give --claims own_sweep_claims:ONE again"):
        plan(stored=stored)
    with pytest.raises(InputError, match="give --claims no_such_module_here:ONE again"):
        plan(stored=foreign)
    assert "own_sweep_claims" not in sys.modules
    with pytest.raises(InputError, match="another --out is needed"):
        plan(stored=stored, claims="own_sweep_claims:SEVERAL")
    with pytest.raises(InputError, match="no claims of its own, not own_sweep_claims:ONE"):
        plan(stored=plan(grid={"persistence": ".3,.4"}, measures=["verdicts"]), claims="own_sweep_claims:ONE")
    assert plan(stored=stored, claims="own_sweep_claims:ONE") == stored


@pytest.mark.parametrize("given", [{}, {"grid": {"persistence": ".5"}}])
def test_claims_that_were_changed_need_remeasure(here, given):
    stored = plan(grid={"persistence": ".3,.4"}, claims="own_sweep_claims:ONE")
    (here / "own_sweep_claims.py").write_text(OWN + "# changed")
    asked = plan(stored=stored, claims="own_sweep_claims:ONE", **given)
    with pytest.raises(InputError, match=r"the claims own_sweep_claims:ONE have changed .* --remeasure judges its rows again"):
        stored.extended(asked)
    assert stored.extended(asked, remeasure=True).claims_digest == asked.claims_digest != stored.claims_digest
