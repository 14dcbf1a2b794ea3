"""Plain arrays as a run: everything takes it, and what cannot be used is refused with its value and a remedy."""

import json
import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import stagescope as ss
from stagescope.cli.main import run as command
from tests.show.decode import Parts

STEP = np.unique(np.concatenate([np.round(np.geomspace(1, 3000, 100)), np.linspace(0, 3000, 40).round()])).astype(int)
CLOCK = np.log(STEP + 10.0)
FALL = 400
RNG = np.random.default_rng(0)
LOSS = 2.0 - 1 / (1 + np.exp(-(CLOCK - np.log(FALL + 10)) / 0.1)) + 0.01 * RNG.normal(size=len(STEP))
MAPS = RNG.random((len(STEP), 2, 3, 4)).astype(np.float32)


@pytest.fixture
def run(tmp_path):
    named = {"accuracy": 1 - LOSS / 2, "heads": RNG.random((len(STEP), 3)), "maps": MAPS, "wide": np.zeros((len(STEP), 200, 2))}
    return ss.from_arrays(step=STEP, loss=LOSS, **named).save(tmp_path / "run")


def test_it_has_what_was_given(run):
    assert (run.clock, run.frames, run.seed, run.status, dict(run.params)) == ("step", len(STEP), None, "finished", {})
    assert list(run.series) == ["step", "loss", "accuracy", "heads", "maps", "wide"]
    np.testing.assert_array_equal(run.step, STEP)
    np.testing.assert_array_equal(run.series["maps"], MAPS)
    assert run.series["maps"].dtype == np.float32
    assert run.spec["source"]["kind"] == "arrays"


def test_what_was_given_is_copied():
    loss = LOSS.copy()
    run = ss.from_arrays(step=STEP, loss=loss)
    assert not run.series["loss"].flags.writeable
    loss[0] = 7.0
    assert run.series["loss"][0] == LOSS[0]


def test_stages(run, capsys):
    found = ss.stages(run)
    assert [stage.name for stage in found] == ["plateau 1", "transition 1", "plateau 2"]
    low, high = found.json()["intervals"]["transition 1"]
    assert low <= FALL <= high
    assert {curve for curve, _ in found.transitions} == {"loss", "accuracy"}
    assert command(["stages", str(run.path), "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == json.loads(json.dumps(found.json()))


def test_it_is_saved_loaded_and_verified(run):
    assert ss.verify(run.path) == []
    found = ss.load(run.path)
    for name, values in run.series.items():
        assert found.series[name].tobytes() == values.tobytes()
    assert ss.stages(found).json() == ss.stages(run).json()


def test_own_claims_are_judged_on_it(run):
    def compare(evidence):
        fall = float(evidence.run.series["loss"][0] - evidence.run.series["loss"][-1])
        return ss.Comparison(1.0, fall, 0.1, abs(fall - 1) < 0.1, "the fall of the loss")

    claim = ss.Claim(tag="own:fall", statement="It falls by 1", regime=lambda e: ss.Regime(True, "any"), compare=compare)
    assert [row.verdict for row in ss.check(run, claims=[claim])] == ["confirmed"]
    with pytest.raises(ss.InputError, match="runs of 'arrays'; put claims of your own to it: --claims module:NAME"):
        ss.check(run)


def test_its_page(run, tmp_path):
    (scene,) = Parts(ss.report(run, tmp_path / "page.html", progress=False).read_text()).data()["scenes"]
    (shown,) = scene["runs"]
    assert [stage["name"] for stage in shown["stages"]] == ["plateau 1", "transition 1", "plateau 2"]
    assert shown["event_intervals"]["transition 1"] == ss.stages(run).json()["intervals"]["transition 1"]
    kinds = {view["slot"]: view["kind"] for view in shown["views"]}
    assert kinds == {
        "loss": "curves",
        "series-accuracy": "curves",
        "series-heads": "curves",
        "series-maps": "matrices",
        "series-norms": "curves",
    }
    assert not any("could not be computed" in note for note in shown["notes"])


@pytest.mark.long
def test_figures_notebook_and_other_tools(run, tmp_path, capsys):
    assert command(["figures", str(run.path), "--out", str(tmp_path / "figures"), "--quiet"]) == 0
    assert "| transition 1 |" in (tmp_path / "figures" / "ledger.md").read_text()
    assert (tmp_path / "figures" / "series-maps.png").stat().st_size > 0
    html = run._repr_html_()
    assert "plateau 1" in html
    assert "<img" in html
    dataset = run.to_xarray()
    assert dataset["maps"].dims == ("step", "maps_0", "maps_1", "maps_2")
    for kind in ("npz", "csv", "netcdf"):
        assert command(["export", str(run.path), "--to", kind, "--out", str(tmp_path / kind)]) == 0
    capsys.readouterr()
    assert command(["info", str(run.path), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["last"]["loss"] == LOSS[-1]


def test_what_needs_a_law_says_so(run, capsys):
    for verb in ("ladder", "resume"):
        assert command([verb, str(run.path)]) == 2
        assert len(capsys.readouterr().err.strip().splitlines()) == 1
    assert command(["ladder", str(run.path)]) == 2
    assert "no law of motion" in capsys.readouterr().err


def test_a_clock_of_time():
    run = ss.from_arrays(t=STEP / 7, loss=LOSS)
    assert run.clock == "t"
    np.testing.assert_array_equal(run.t, STEP / 7)
    assert list(ss.stages(run).events) == ["transition 1"]


def test_a_loss_that_is_partly_no_number():
    loss = LOSS.copy()
    loss[[2, 60]] = np.nan
    found = ss.stages(ss.from_arrays(step=STEP, loss=loss))
    assert list(found.events) == ["transition 1"]
    assert "2 of" in found.notes["loss"]


def test_without_a_loss():
    found = ss.stages(ss.from_arrays(step=STEP, accuracy=-LOSS))
    assert [stage.name for stage in found] == ["whole run"]
    assert [curve for curve, _ in found.transitions] == ["accuracy"]


@pytest.mark.parametrize("values", [[1, 2, 3], (1.5, 2.5, 3.5), np.array([1, 0, 1], bool), np.arange(3, dtype=np.uint64)])
def test_numbers_of_any_kind(values):
    run = ss.from_arrays(step=[0, 1, 2], loss=[3.0, 2.0, 1.0], named=values)
    np.testing.assert_array_equal(run.series["named"], np.asarray(values))


ODD = {
    "both": ({"step": [0, 1], "t": [0, 1], "loss": [1, 1]}, "both step and t"),
    "neither": ({"loss": [1, 1]}, "neither step nor t"),
    "nothing beside": ({"step": [0, 1]}, "nothing beside step"),
    "unequal": ({"step": [0, 1, 2], "loss": [1, 2]}, "loss has 2 records, step has 3"),
    "falling": ({"step": [0, 5, 3], "loss": [1, 2, 3]}, "record 2 has step 3 after 5"),
    "repeated": ({"t": [0, 1, 1], "loss": [1, 2, 3]}, "record 2 has t 1 after 1"),
    "negative": ({"step": [-1, 0], "loss": [1, 2]}, "step begins at -1"),
    "not whole": ({"step": [0, 0.5], "loss": [1, 2]}, "step is 0.5 at record 1"),
    "no number": ({"step": [0, np.nan], "loss": [1, 2]}, "step is nan at record 1"),
    "empty": ({"step": [], "loss": []}, "step is empty"),
    "matrix of steps": ({"step": [[0, 1]], "loss": [1]}, "step has shape (1, 2)"),
    "words": ({"step": [0, 1], "loss": ["a", "b"]}, "loss holds np.str_('a') (str_)"),
    "nothing": ({"step": [0, 1], "loss": [None, 1.0]}, "loss holds None (NoneType)"),
    "complex": ({"step": [0], "loss": [1.0], "z": [1j]}, "z holds"),
    "dates": ({"step": np.array(["2020-01-01"], "datetime64[D]"), "loss": [1]}, "step holds"),
    "ragged": ({"step": [0, 1], "loss": [1, 2], "maps": [[1], [1, 2]]}, "maps is no array of numbers"),
    "single": ({"step": [0], "loss": 1.0}, "loss is a single number"),
    "single array": ({"step": [0], "loss": np.array(1.0)}, "loss is a single number"),
    "loss of vectors": ({"step": [0, 1], "loss": [[1], [2]]}, "loss has shape (2, 1)"),
    "no column": ({"step": [0, 1], "loss": [1, 2], "maps": np.zeros((2, 0))}, "maps has shape (2, 0)"),
    "name": ({"step": [0], "loss": [1], "my loss": [1]}, "'my loss' cannot name a stored array"),
    "taken": ({"step": [0], "loss": [1], "speed": [1]}, "'speed' has a meaning of its own"),
}


@pytest.mark.parametrize("case", ODD)
def test_what_cannot_be_used_is_named_with_a_remedy(case):
    given, said = ODD[case]
    with pytest.raises(ss.InputError, match=re.escape(said)) as error:
        ss.from_arrays(**given)
    assert "\n" not in str(error.value)
    assert re.search(r"; |: use |expected", str(error.value))


@settings(max_examples=30, deadline=None)
@given(
    loss=hnp.arrays(np.float64, st.integers(1, 40), elements=st.floats(width=64)),
    start=st.integers(0, 10**9),
    stride=st.integers(1, 10**6),
)
def test_any_numbers_have_stages(loss, start, stride):
    """Infinite, tiny, huge, equal, or not a number: one stage at least, from the first record, in order."""
    run = ss.from_arrays(step=start + stride * np.arange(len(loss)), loss=loss)
    found = ss.stages(run)
    assert found.stages[0].start == start
    assert found.stages[-1].stop is None
    for before, after in zip(found.stages, found.stages[1:], strict=False):
        assert before.stop == after.start
    json.dumps(found.json())
