"""Steps before they are taken: events of the head model, their names and intervals, what is refused; options of optimisers."""

import json

import numpy as np
import pytest

import stagescope as ss
from stagescope.cli.main import run as call
from stagescope.core.errors import InputError
from stagescope.flow.descent import GD, Adam, Descent
from stagescope.papers.focus_dilution.claims_adam import ADAM_CLAIMS
from stagescope.papers.focus_dilution.head_model import HeadModel
from stagescope.papers.focus_dilution.head_prediction import head_curves, head_prediction, predictable
from stagescope.papers.focus_dilution.loss import TokenPopulation
from stagescope.papers.focus_dilution.observables import TokenCurves, token_curves
from stagescope.papers.focus_dilution.stages import row_cycles
from stagescope.readings.reading import reading
from stagescope.readings.registry import study

CHAIN = ss.LazyChain(pi=(0.7, 0.2, 0.1), persistence=0.6)
LAW = TokenPopulation(model=ss.TokenAttention(vocab=3, width=64, scale=1.0), process=CHAIN)
START = LAW.model.init(0, 1 / 64)
DESCENT = Descent(optimizer=Adam(), lr=4e-4, steps=700)


@pytest.fixture(scope="module")
def run():
    return ss.evolve(LAW, START, DESCENT, record=ss.Every(n=2), progress=False)


def test_rows_and_openings_of_the_run_are_foretold(run):
    path = ss.predict(LAW, START, descent=DESCENT)
    assert (path.by, path.clock) == ("head model", "step")
    shown = ss.stages(run).events
    for name in ("up0", "up1", "up2", "dilution1", "dilution2", "E1", "Q1"):
        assert path[name].t == pytest.approx(shown[name], rel=0.05), name
        assert path[name].low < path[name].t < path[name].high
    assert path["dilution1"].t > path["up1"].t


def test_another_start_says_something_else(run):
    mine, theirs = (head_curves(LAW, start, DESCENT) for start in (START, LAW.model.init(1, 1 / 64)))
    shown = {cycle.row: cycle.half for cycle in row_cycles(token_curves(run))}
    far = [
        max(abs(cycle.half / shown[cycle.row] - 1) for cycle in row_cycles(curves) if cycle.row > 0 and cycle.half)
        for curves in (mine, theirs)
    ]
    assert far[0] < 0.03 < far[1]


NEAR_TIE = {"pi": (0.39, 0.24, 0.37), "persistence": 0.75, "eps": 8e-8, "seed": 4}


@pytest.mark.parametrize(
    "chain",
    [
        NEAR_TIE,
        *({"pi": tuple(np.random.default_rng(k).dirichlet([2.0] * 3)), "persistence": 0.3 + k / 10, "seed": k} for k in range(5)),
    ],
)
def test_a_run_is_read_by_the_rule_of_its_prediction(chain):
    """One column of queries and keys is the whole model: curves are the same, so all events are, in time and in existence."""
    more = {"optimizer": "adam", "width": 8, "key_width": 1, "scale": 8, "init_scale": 0.03, "lr": 1e-3, "steps": 900}
    seed, found = chain["seed"], study("focus-dilution")
    options = found.configured(None, **more, **{name: value for name, value in chain.items() if name != "seed"})
    plan = found.setup(options, seed)
    path, shown = (
        ss.predict(plan.what, plan.params, descent=plan.dynamics),
        ss.stages(found.run(options, seed=seed, progress=False)),
    )
    assert path.by == "run itself"
    for name, event in path.events.items():
        assert (event.t is None) == (shown.events[name] is None), name
        assert event.t is None or abs(event.t - shown.events[name]) <= 1, name


def test_each_row_goes_its_own_way():
    """Row 0 turns to token 1 while rows 1 and 2 focus on token 0; a dip of .01 before a total focus is no way of its own."""
    time, pi = np.linspace(0, 10, 1001), np.array([0.4, 0.3, 0.3])
    away = np.interp(time, [0, 3, 5, 8, 10], [0.4, 0.4, 0.05, 0.35, 0.35])
    total = np.interp(time, [0, 1, 2, 4, 8, 10], [0.4, 0.39, 0.4, 0.95, 0.3, 0.3])
    partial = np.interp(time, [0, 2, 4, 6, 10], [0.4, 0.5, 0.38, 0.1, 0.1])

    class Curves(TokenCurves):
        on_frequent = np.stack([away, total, partial], axis=1)
        frequent = 0

    class Law:
        process = type("P", (), {"stationary": pi})

    cycles = row_cycles(Curves(time, {}, Law()))
    assert [cycle.sign for cycle in cycles] == [-1, 1, 1]
    assert [cycle.focus for cycle in cycles] == pytest.approx([5, 4, 2], abs=0.02)
    assert [cycle.up is None for cycle in cycles] == [True, False, True]
    assert cycles[0].gain == pytest.approx(0.35)
    assert cycles[1].height == pytest.approx(0.95)


@pytest.mark.parametrize(
    ("steps", "why"),
    [
        (Descent(optimizer=Adam(), lr=4e-4, steps=3), ""),
        (Descent(optimizer=Adam(), lr=4e-3, steps=3), "steps of 4.0e-03"),
        (Descent(optimizer=Adam(eps=1e-3), lr=4e-4, steps=3), "eps 0.001"),
    ],
)
def test_steps_on_which_no_interval_was_measured_have_a_note(steps, why):
    notes = [note for note in head_prediction(LAW, START, steps).notes[2:] if "not predicted" not in note]
    assert len(notes) == bool(why)
    assert all("intervals were measured" in note and why in note for note in notes)


def test_what_one_choice_of_columns_alone_reaches_is_not_predicted():
    """Steps that end when one choice has row 1 diluted and the other has not."""
    choices = [predictable(head_curves(LAW, START, DESCENT, 32, last), DESCENT)["dilution1"].time for last in (False, True)]
    first, second = sorted(choices)
    path = head_prediction(LAW, START, DESCENT.shortened(int(np.ceil((first + second) / 2))))
    assert path["dilution1"].t is None
    assert "which columns are kept" in path["dilution1"].reason
    assert path["dilution1"].beyond == pytest.approx(first, abs=1)
    assert any("not predicted: " in note and "dilution1" in note for note in path.notes)


def test_a_focused_row_is_read_off_its_curve():
    """A made-up row: up at 2, top at 4, half of its gain lost at 6, back at 7; one that still rises has no peak."""
    time = np.linspace(0, 10, 1001)
    pi = np.array([0.5, 0.5])

    class Curves(TokenCurves):
        on_frequent = np.stack([np.interp(time, [0, 2, 4, 6, 7, 10], [0.5, 0.75, 0.9, 0.7, 0.5, 0.4]), 0.5 + time / 25], axis=1)
        frequent = 0

    class Law:
        process = type("P", (), {"stationary": pi})

    found, rising = row_cycles(Curves(time, {}, Law()))
    assert (found.up, found.focus, found.half, found.complete) == pytest.approx((2.0, 4.0, 6.0, 7.0), abs=0.02)
    assert found.height == pytest.approx(0.9)
    assert (rising.focus, rising.half) == (None, None)
    assert rising.up == pytest.approx(6.25, abs=0.02)


@pytest.mark.parametrize(
    ("law", "start", "why"),
    [
        (TokenPopulation(model=LAW.model, process=ss.LazyChain(pi=(1 / 3,) * 3, persistence=0.5)), START, "uniform"),
        (LAW, LAW.model.init(0, 1.0), "too large a start"),
    ],
)
def test_what_the_theory_does_not_speak_of_is_refused(law, start, why):
    with pytest.raises(InputError, match=why):
        head_prediction(law, start, DESCENT)


def test_several_columns_need_no_single_direction():
    """Contexts of 8 tokens in which two embedding directions condense: one column fails, 32 of 64 columns do not."""
    chain = ss.LazyChain(pi=(0.5, 0.3, 0.2), persistence=0.8)
    law = ss.finite_loss(LAW.model, chain, 8)
    assert HeadModel(law=law).condensing[2] > 0.2
    run = ss.evolve(law, START, DESCENT, record=ss.Every(n=2), progress=False)
    path, shown = head_prediction(law, START, DESCENT), ss.stages(run).events
    for name in ("E1", "E2", "Q1", "up0", "self1"):
        assert path[name].t == pytest.approx(shown[name], rel=0.05), name
    (rows,) = (claim for claim in ADAM_CLAIMS if claim.tag == "FDA:rows")
    assert "several embedding directions" in rows.regime(reading(run).evidence).sentence


def test_predict_takes_an_end_or_steps():
    with pytest.raises(InputError, match="`until`, or the steps"):
        ss.predict(LAW, START)
    with pytest.raises(InputError, match="instead of until"):
        ss.predict(LAW, START, until=3.0, descent=DESCENT)
    snap = study("scan-snap")
    plan = snap.setup(snap.configured(None), 0)
    with pytest.raises(InputError, match="no paper predicts steps"):
        ss.predict(plan.what, plan.params, descent=DESCENT)


def test_of_gradient_steps_the_run_itself_is_the_prediction():
    """No columns align, so all are kept; intervals are those of records."""
    found = study("focus-dilution")
    options = found.configured("ref", optimizer="gd", lr=0.2, steps=1500)
    plan = found.setup(options, 0)
    path = ss.predict(plan.what, plan.params, descent=plan.dynamics)
    shown = ss.stages(found.run(options, progress=False)).events
    assert (path.by, path.clock) == ("run itself", "t")
    assert isinstance(plan.dynamics.optimizer, GD)
    assert path["focus1"].t is not None
    for name, event in path.events.items():
        assert (event.t is None) == (shown[name] is None), name
        assert event.t is None or event.t == pytest.approx(shown[name], abs=0.4), name


WORDS = ("predict", "focus-dilution", "--pi", "0.7", "0.2", "0.1", "--width", "40", "--scale", "1", "--init-scale", "0.03")


def test_the_command_predicts_steps(capsys):
    assert call([*WORDS, "--optimizer", "adam", "--lr", "6e-4", "--steps", "300", "--json"]) == 0
    (found,) = json.loads(capsys.readouterr().out)["predictions"]
    assert found["by"] == "head model"
    assert {"up0", "up1", "focus2", "dilution1", "return2", "self1", "E1", "Q1"} <= set(found["events"])
    assert found["events"]["up1"]["t"] > 0
    assert "predicted by the head model" in found["notes"][0]
    assert call([*WORDS, "--optimizer", "adam", "--lr", "6e-4", "--steps", "300"]) == 0
    assert "head model" in capsys.readouterr().out
    assert call([*WORDS, "--optimizer", "adam", "--steps", "300", "--path"]) == 2
    assert "leave out --path" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("given", "made"),
    [
        ({"optimizer": "adam", "eps": 1e-6, "beta1": 0.5, "beta2": 0.99}, Adam(eps=1e-6, b1=0.5, b2=0.99)),
        ({"optimizer": "rmsprop", "beta2": 0.9}, Adam(b1=0.0, b2=0.9)),
        ({"optimizer": "sign"}, Adam(b1=0.0, b2=0.0, eps=1e-30)),
        ({"optimizer": "adam"}, Adam()),
    ],
)
def test_optimisers_of_the_study(given, made):
    found = study("focus-dilution")
    assert found.setup(found.configured(None, **given), 0).dynamics.optimizer == made


@pytest.mark.parametrize(
    "given",
    [
        {"eps": 1e-3},
        {"optimizer": "gd", "beta2": 0.9},
        {"optimizer": "rmsprop", "beta1": 0.5},
        {"optimizer": "sign", "eps": 1e-3},
    ],
)
def test_options_of_optimisers_without_effect_are_refused(given):
    found = study("focus-dilution")
    with pytest.raises(InputError, match="no effect"):
        found.setup(found.configured(None, **given), 0)


def test_sign_descent_takes_steps_of_one_size():
    run = ss.run_study("focus-dilution", optimizer="sign", lr=1e-3, steps=3, width=4, frames=4, progress=False)
    moved = np.abs(np.diff(run.params["W0"], axis=0))
    np.testing.assert_allclose(moved, 1e-3, rtol=1e-9)


def test_the_step_size_grows_with_eps():
    found = study("focus-dilution")
    options = found.configured(None, optimizer="adam", lr=1e-3, eps=0.1, lr_per_eps=0.05)
    assert found.setup(options, 0).dynamics.lr == pytest.approx(1e-3 + 0.005)
    with pytest.raises(InputError, match="no effect"):
        found.setup(found.configured(None, lr_per_eps=0.05), 0)
