"""What readings keep: nothing is computed twice, nothing stale, damaged or forged is served, and a cache may always fail."""

import dataclasses
import json
import os
import shutil
import subprocess
import sys
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import stagescope as ss
from stagescope.core import caches
from stagescope.flow.kept import counts, keeping
from stagescope.readings.answers import decoded, encoded, kept_answer
from stagescope.runs.run import Arrays

OPTIONS = {"until": 40.0}


@pytest.fixture(scope="module")
def original(tmp_path_factory):
    folder = tmp_path_factory.mktemp("run") / "short"
    ss.run_study("focus-dilution", "ref", **OPTIONS, out=folder, progress=False)
    return folder


@pytest.fixture(autouse=True)
def entries(tmp_path, monkeypatch):
    """A cache of its own that is in use, with the kernels that are compiled already; its folder of readings."""
    kernels = caches.cache_folder("numba")
    place = tmp_path / "cache" / "stagescope"
    place.mkdir(parents=True)
    if kernels is not None:
        (place / "numba").symlink_to(kernels)
    monkeypatch.setenv(caches.VARIABLE, str(tmp_path / "cache"))
    monkeypatch.delenv(caches.FRESH, raising=False)
    return place / "readings"


@pytest.fixture
def copy(original, tmp_path):
    """Makes copies of the run: another folder with the same bytes, of which this process has no reading yet."""
    numbers = iter(range(100))
    return lambda: shutil.copytree(original, tmp_path / f"copy-{next(numbers)}")


def integrated(ask, *arguments):
    """An answer, and how many integrations it took."""
    before = counts["integrated"]
    return ask(*arguments), counts["integrated"] - before


def test_nothing_is_integrated_twice(copy, tmp_path):
    first = {ask: integrated(ask, copy()) for ask in (ss.stages, ss.saddle_ladder, ss.check)}
    assert first[ss.stages][1] >= 1
    for ask, (answer, _) in first.items():
        assert integrated(ask, copy()) == (answer, 0)
    assert integrated(ss.report, copy(), tmp_path / "page.html")[1] == 0


def test_a_page_of_frames_that_no_law_makes_integrates_nothing_after_check(copy, tmp_path):
    """A missed replay is followed by a second, looser one: both are kept."""
    run = ss.load(copy())
    moved = {name: np.array(run.params[name]) for name in run.params}
    moved["W0"][1:] *= 1.01
    false = dataclasses.replace(run, params=Arrays.of(moved), memo={}, path=None).save(tmp_path / "false").path
    assert integrated(ss.check, false)[1] >= 2
    for ask in (ss.stages, ss.saddle_ladder):
        ask(false)
    assert integrated(ss.report, false, tmp_path / "page.html")[1] == 0


def test_another_process_shows_what_is_kept_and_loads_nothing_that_computes(copy):
    answers = {"stages": ss.stages(copy()), "check": ss.check(copy()), "ladder": ss.saddle_ladder(copy())}
    for verb, answer in answers.items():
        code = "import sys; from stagescope.cli.kept import kept; assert kept(sys.argv[1:]); "
        code += "print(sorted({'jax', 'numba', 'scipy', 'tyro'} & set(sys.modules)), file=sys.stderr)"
        made = subprocess.run([sys.executable, "-c", code, verb, copy(), "--json"], capture_output=True, text=True, check=True)
        assert json.loads(made.stdout) == json.loads(json.dumps(answer.json()))
        assert made.stderr == "[]\n"


def test_words_that_a_kept_answer_does_not_know_are_for_the_parser(copy, capsys):
    from stagescope.cli.kept import kept

    folder = str(copy())
    ss.stages(folder)
    assert kept(["stages", "--json", folder])
    for words in (["stages"], ["stages", folder, "--explain"], ["stages", folder, folder], ["check", folder, "--all"]):
        capsys.readouterr()
        assert not kept(words)
        assert capsys.readouterr().out == ""
    assert not kept(["check", folder])  # nothing is kept of it


@pytest.mark.parametrize(
    "harm", [lambda data: data[:-1] + bytes([data[-1] ^ 1]), lambda data: data[: len(data) // 2], lambda _: b""]
)
def test_damage_costs_a_sentence_and_a_recomputation(copy, entries, capsys, harm):
    answer = ss.stages(copy())
    names = {path.name for path in entries.iterdir()}
    for path in entries.iterdir():
        path.write_bytes(harm(path.read_bytes()))
    again, number = integrated(ss.stages, copy())
    assert (again, number) == (answer, 1)
    assert len(capsys.readouterr().err.splitlines()) == len(names)
    assert {path.name for path in entries.iterdir()} == names
    assert integrated(ss.stages, copy()) == (answer, 0)


@pytest.mark.parametrize(
    "body", [b"5", b"[]", b"{}", b'["Ladder", {}]', b'["Stages", {}]', b'["Popen", {"args": "true"}]', b"\xff"]
)
def test_a_forged_answer_is_not_served(copy, entries, capsys, body):
    answer = ss.stages(copy())
    [path] = entries.glob("answer-*")
    caches.write_entry(path, body)
    assert ss.stages(copy()) == answer
    assert str(path) in capsys.readouterr().err


def test_an_entry_under_the_name_of_another_is_not_served(copy, entries):
    stages, ladder = ss.stages(copy()), ss.saddle_ladder(copy())
    one, other = entries.glob("answer-*")
    data = one.read_bytes()
    one.write_bytes(other.read_bytes())
    other.write_bytes(data)
    assert (ss.stages(copy()), ss.saddle_ladder(copy())) == (stages, ladder)


def test_another_run_and_other_code_have_other_answers(copy, tmp_path, monkeypatch):
    ss.stages(copy())
    other = ss.run_study("focus-dilution", "ref", **OPTIONS, seed=1, out=tmp_path / "other", progress=False).path
    assert integrated(ss.stages, other)[1] == 1
    monkeypatch.setattr(caches, "code_stamp", lambda: "another version")
    assert integrated(ss.stages, copy())[1] == 1


def test_fresh_uses_nothing_and_adds_nothing(copy, entries, monkeypatch):
    answer = ss.stages(copy())
    before = {path: path.stat().st_mtime_ns for path in entries.iterdir()}
    monkeypatch.setenv(caches.FRESH, "1")
    assert integrated(ss.stages, copy()) == (answer, 1)
    assert {path: path.stat().st_mtime_ns for path in entries.iterdir()} == before


def test_what_a_user_runs_is_computed_each_time_and_not_kept(copy, entries):
    run = ss.load(copy())
    loss, flow = ss.reading(run).law, ss.GradientFlow()
    for _ in range(2):
        assert integrated(lambda: ss.evolve(loss, run.at(0), flow, until=1.0))[1] == 1
        ss.stages(ss.run_study("focus-dilution", "ref", **OPTIONS, progress=False))
    assert not entries.exists()


def test_own_objectives_are_not_kept(entries, tmp_path):
    law = ss.JaxObjective(lambda params: ((params["x"] ** 2 - 1) ** 2).sum(), name="well")
    stored = ss.evolve(law, {"x": np.full(1, 0.1)}, ss.GradientFlow(), until=5.0).save(tmp_path / "own")
    with keeping(stored):
        for _ in range(2):
            assert integrated(lambda: ss.evolve(law, stored.at(0), ss.GradientFlow(), until=5.0))[1] == 1
    ss.stages(stored.path)
    assert not entries.exists()


def test_own_claims_are_judged_each_time(copy, entries):
    calls = []

    def regime(evidence):
        calls.append(evidence.run.frames)
        return ss.Regime(False, "never", applies=False)

    own = ss.Claim(tag="own:one", statement="Something", regime=regime, compare=lambda _: ss.Comparison(0, 0, 0, True, ""))
    for number in (1, 2):
        assert "own:one" in {row.tag for row in ss.check(copy(), claims=own)}
        assert len(calls) == number
    assert not any(b"own:one" in path.read_bytes() for path in entries.glob("answer-*"))


def test_flows_are_the_same_from_the_cache(copy):
    stored = ss.load(copy())
    law = ss.reading(stored).law
    with keeping(stored):
        runs = [integrated(lambda: ss.evolve(law, stored.at(0), ss.GradientFlow(), until=5.0, seed=3)) for _ in range(2)]
    (one, first), (other, second) = runs
    assert (first, second) == (1, 0)
    for part in ("params", "series"):
        here, there = getattr(one, part), getattr(other, part)
        assert list(here) == list(there)
        assert all(np.array_equal(here[name], there[name]) and here[name].dtype == there[name].dtype for name in here)
    for name in ("spec", "clock", "status", "reason", "seed", "study", "config", "tags", "axes"):
        assert getattr(one, name) == getattr(other, name)


def test_a_flow_that_differs_in_anything_is_another(copy):
    stored = ss.load(copy())
    law, start = ss.reading(stored).law, stored.at(0)
    base = {"params": start, "dynamics": ss.GradientFlow(), "until": 5.0, "record": ss.Uniform(frames=9)}
    moved = {name: block * (1 + 1e-15) if name == "W0" else block for name, block in start.items()}
    others = {"params": moved, "dynamics": ss.GradientFlow(rtol=1e-9), "until": 5.5, "record": ss.Uniform(frames=10)}
    with keeping(stored):
        ss.evolve(law, **base)
        for name, value in others.items():
            assert integrated(lambda given: ss.evolve(law, **given), {**base, name: value})[1] == 1


def test_what_was_not_used_for_longest_goes_first(entries, monkeypatch):
    monkeypatch.setattr(caches, "BOUND", 1000)
    for place, name in enumerate("abc"):
        caches.keep(name, bytes(200))
        os.utime(entries / name, ns=(place, place))
    assert caches.kept("a", len) == 200  # so that it was used last
    caches.keep("d", bytes(400))
    assert {path.name for path in entries.iterdir()} == {"a", "c", "d"}
    caches.keep("e", bytes(2000))
    assert not (entries / "e").exists()


def test_a_cache_that_cannot_be_written_costs_a_sentence(copy, tmp_path, monkeypatch, capsys):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv(caches.VARIABLE, str(tmp_path / "file"))
    assert ss.stages(copy()).status == "finished"
    assert len(capsys.readouterr().err.splitlines()) == 1


def test_an_answer_about_a_run_that_changed_is_not_kept(copy, entries, capsys):
    folder = copy()
    run = ss.load(folder)

    @kept_answer("stages")
    def slow(_):
        ss.run_study("focus-dilution", "ref", until=10.0, out=folder, overwrite=True, progress=False)
        return ss.Stages("finished", "t", {}, (), {})

    slow(SimpleNamespace(run=run, what=None))
    assert str(folder) in capsys.readouterr().err
    assert not list(entries.glob("answer-*"))


def test_a_run_that_is_damaged_after_its_answer_was_kept_is_refused(copy):
    from stagescope.cli.kept import kept

    folder = copy()
    ss.stages(folder)
    chunk = next(folder.glob("data.zarr/loss/c/*"))
    chunk.write_bytes(bytes(len(chunk.read_bytes())))
    assert not kept(["stages", str(folder)])
    with pytest.raises(ss.DamagedRun):
        ss.stages(folder)


plain = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text()
events = st.builds(ss.Event, st.floats(0, 1e9), st.none() | st.floats(0, 1), st.none() | st.floats(0, 1), how=st.text())
facts = st.dictionaries(
    st.text(), st.recursive(plain, lambda part: st.lists(part) | st.dictionaries(st.text(), part), max_leaves=5)
)
stages = st.builds(ss.Stage, st.text(), st.floats(0, 1e9), st.none() | st.floats(0, 1e9), st.text(), facts=facts)


@given(
    st.dictionaries(st.text(), events, max_size=3), st.lists(stages, max_size=3).map(tuple), st.dictionaries(st.text(), st.text())
)
def test_an_answer_is_read_as_it_was_written(events, stages, notes):
    answer = ss.Stages.of("finished", "t", events, stages, notes)
    assert decoded("stages", encoded(answer)) == answer


@pytest.mark.parametrize("value", [object(), {1, 2}, SimpleNamespace(a=1), np.array([object()])])
def test_an_answer_of_odd_parts_is_not_written(value):
    with pytest.raises(TypeError):
        encoded(value)
