"""`stagescope predict`: the keys of its JSON, its tables, and what it refuses."""

import json

import pytest

import stagescope as ss
from stagescope.cli.main import run

SMALL = ("predict", "focus-dilution", "--pi", "0.5", "0.3", "0.2", "--width", "3")


@pytest.mark.long
def test_one_path_for_each_scale_and_seed(ask):
    code, out, err = ask(*SMALL, "--path", "--init-scale", "1e-4", "1e-30", "--seeds", "2", "--json")
    assert (code, err) == (0, "")
    found = json.loads(out)["predictions"]
    assert [(each["init_scale"], each["seed"]) for each in found] == [(1e-4, 0), (1e-4, 1), (1e-30, 0), (1e-30, 1)]
    for each in found:
        assert set(each) == {"init_scale", "seed", "by", "events", "legs", "notes"}
        assert each["by"] == "saddle path"
        assert set(each["events"]["E1"]) == {"t", "low", "high"}
        assert each["events"]["E1"]["low"] < each["events"]["E1"]["t"] < each["events"]["E1"]["high"]
        assert set(each["legs"][0]) == {"label", "t_in", "t_out", "loss", "state", "rates", "local_rate"}
        assert each["legs"][0]["label"] == "(0,0)"
    assert found[0]["events"]["E1"]["t"] < found[2]["events"]["E1"]["t"]


def test_the_tables_show_events_and_legs(ask):
    for words, state in (((), False), (("--path",), True)):
        code, out, err = ask(*SMALL, *words)
        assert (code, err) == (0, "")
        assert "start scale 0.001, seed 0" in out
        assert all(word in out for word in ("E1", "Q1", "(1,0)", "(1,1)", "not reached"))
        assert ("state" in out) == state


@pytest.mark.parametrize("options", [("focus-dilution", "--until", "30"), ("linear-icl", "--eigenvalues", "1", "0.5")])
def test_a_seed_is_that_of_a_run(ask, tmp_path, options):
    """The same options and the same seed are the same start and the same end, so prediction and run have the same events."""
    study, *words = options
    code, out, err = ask("predict", study, "--seed", "5", *words, "--json")
    assert (code, err) == (0, "")
    (found,) = json.loads(out)["predictions"]
    assert (found["seed"], found["by"]) == (5, "flow")
    run = ss.run_study(study, **ss.study(study).configured(**options_of(words)).model_dump(), seed=5, progress=False)
    events, times = ss.stages(run).events, {name: event["t"] for name, event in found["events"].items() if event["t"]}
    assert times
    for name, event in found["events"].items():
        assert (event["t"] is None) == (events[name] is None)
        assert event["t"] is None or event["low"] < events[name] < event["high"]


def options_of(words):
    name, *values = words
    return {name.removeprefix("--"): float(values[0]) if len(values) == 1 else tuple(map(float, values))}


def test_seeds_count_from_the_seed(ask):
    starts = [
        json.loads(ask(*SMALL, "--until", "40", *words, "--json")[1])["predictions"]
        for words in (("--seed", "4"), ("--seeds", "5"))
    ]
    assert [each["seed"] for each in starts[1]] == [0, 1, 2, 3, 4]
    assert starts[0] == starts[1][4:]


@pytest.mark.long
def test_a_start_that_is_too_large_has_a_note_beside_the_others(ask):
    code, out, err = ask(*SMALL, "--path", "--init-scale", "1e-4", "0.1", "--json")
    assert (code, err) == (0, "")
    small, large = json.loads(out)["predictions"]
    assert small["events"]["E1"]["t"] > 0
    assert (large["init_scale"], large["events"], large["legs"]) == (0.1, {}, [])
    assert "times the largest" in large["notes"][0]
    code, out, err = ask(*SMALL, "--path", "--init-scale", "1e-4", "0.1")
    assert (code, err) == (0, "")
    assert "note: the start has rms" in out.split("start scale 0.1, seed 0")[1].splitlines()[1]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ((*SMALL, "--path", "--init-scale", "0.1"), "start scale 0.1, seed 0: the start has rms"),
        ((*SMALL, "--path", "--init-scale", "0.1", "0.2", "--json"), "start scale 0.1, seed 0: the start has rms"),
        ((*SMALL, "--init-scale", "1e-4", "-1"), "init-scale"),
        ((*SMALL, "--init-scale", "-1"), "init-scale"),
        ((*SMALL, "--seeds", "0"), "at least one"),
        ((*SMALL, "--critical-scale", "E9"), "E9"),
        (("predict", "scan-snap"), "no waiting time to predict. |F| = 0.69 at the start; run it instead"),
        (
            ("predict", "incremental"),
            "move by Adam; a saddle path is one of gradient flow, as of --preset ode-exact, published-flow",
        ),
        (("predict", "text-focus", "--watched", "8"), "no preset of text-focus is; predict focus-dilution or incremental"),
        (("predict", "scan-span"), "scan-snap"),
        (("predict", "focus-dilution", "--preset", "reff"), "ref"),
    ],
)
def test_refusals(ask, words, said):
    code, out, err = ask(*words)
    assert code == 2
    assert out == ""
    assert said in err


def test_options_of_the_motion_are_not_taken(capsys):
    assert run([*SMALL, "--frames", "100"]) == 2
    assert "`stagescope predict` does not take --frames: it is an option of `stagescope run" in capsys.readouterr().err
