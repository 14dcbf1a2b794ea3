"""Heads are named by what they do, from when they do it; even, random and drifting heads have no name."""

import json
from dataclasses import replace

import numpy as np
import pytest

import stagescope as ss
from stagescope.cli.main import run as command
from stagescope.runs.run import Arrays
from stagescope.watching.heads import NONE, Chance, _stretches, scores
from tests.watching.forged import LENGTH, Plant, forged

NAMES = ("induction", "duplicate", "previous token", "sink", "positional")


@pytest.fixture(scope="module")
def run():
    """One head of each name, each from its own step, and one that attends evenly."""
    steps = (100, 200, 300, 400, 500)
    plants = {divmod(i, 3): Plant(name, step, noise=0.02) for i, (name, step) in enumerate(zip(NAMES, steps, strict=True))}
    return forged(plants)


def test_each_has_its_name_and_its_time(run):
    found = ss.heads(run)
    assert [head.name for head in found] == [*NAMES, NONE]
    for head, step in zip(found, (100, 200, 300, 400, 500), strict=False):
        [spell] = head.spells
        assert spell.step == pytest.approx(step, rel=0.06), head
        assert spell.step is not None
        assert spell.low is not None
        assert spell.high is not None
        assert spell.low <= spell.step <= spell.high
        assert spell.low <= 1.05 * step
        assert spell.high >= 0.95 * step
        assert spell.stop is None
        assert (head.since, head.score) == (spell, head.scores[head.name][0])
    assert found.heads[-1].spells == ()
    assert found.heads[-1].since is None
    assert [head.module for head in found] == ["h.0"] * 3 + ["h.1"] * 3


def test_scores_stand_beside_chance(run):
    found = ss.heads(run)
    for head in found.heads[:4]:
        assert head.score == pytest.approx(0.9, abs=0.06)
    even = found.heads[-1].scores
    assert all(value == pytest.approx(chance, abs=1e-6) for value, chance in even.values())
    assert even["previous token"][1] == pytest.approx(np.mean([1 / (q + 1) for q in range(1, LENGTH)]))
    assert even["sink"][1] == pytest.approx(np.mean([1 / (q + 1) for q in range(4, LENGTH)]))
    assert even["induction"][1] == pytest.approx(np.mean([1 / (q + 1) for q in range(LENGTH // 2, LENGTH)]))


def test_chance_of_a_model_that_looks_both_ways():
    assert Chance(10, causal=False).mean(4) == pytest.approx(0.1)
    assert Chance(10, causal=False).entropy == pytest.approx(np.log(10))
    assert Chance(10).entropy == pytest.approx(np.mean(np.log(np.arange(1, 11))))


@pytest.mark.parametrize("seed", range(4))
def test_nulls_have_no_name(seed):
    """Even heads, random patterns that never change, heads that tremble and heads that drift at random."""
    plants = {
        (0, 0): Plant("random", step=1e-3),
        (0, 1): Plant("random mild", step=1e-3),
        (0, 2): Plant("previous token", amount=0.0, noise=0.1),
        (1, 0): Plant("induction", amount=0.0, drift=0.15),
        (1, 1): Plant("random", amount=0.0, drift=0.4),
    }
    found = ss.heads(forged(plants, seed=seed, frames=80))
    assert {head.name for head in found} == {NONE}
    assert not any(head.spells for head in found)


def test_a_head_that_looks_at_a_fixed_lag_is_no_induction_head():
    """On the repeated probe it attends where an induction head would; text shows that tokens do not matter."""
    run = forged({(0, 0): Plant("by lag"), (0, 1): Plant("induction")})
    assert [head.name for head in ss.heads(run)][:2] == ["positional", "induction"]


def test_induction_goes_before_sink():
    """Where a token is new, an induction head rests on the first one."""
    run = forged({(0, 0): Plant("induction")})
    head = ss.heads(run).heads[0]
    assert head.name == "induction"
    assert head.scores["sink"][0] > 0.2


def test_a_name_for_two_records_is_none(run):
    odd = forged({(0, 0): Plant("sink", 300, width=0.001, until=318)}, frames=120)
    assert ss.heads(odd).heads[0].spells == ()


def test_names_may_change():
    run = forged({(0, 0): Plant("sink", 100, until=500), (0, 1): Plant("positional", step=1e-3)})
    first, second = ss.heads(run).heads[:2]
    assert first.name == NONE
    [spell] = first.spells
    assert spell.name == "sink"
    assert spell.stop == pytest.approx(500, rel=0.05)
    assert (second.name, second.spells[0].step) == ("positional", None)  # it was so at the first record
    assert ss.heads(run).first("sink") == spell
    assert ss.heads(run).named("positional") == (second,)


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        ("aaaaabbbbb", [("a", 0, 5), ("b", 5, 10)]),
        ("aaaaabbaaa", [("a", 0, 10)]),
        ("aabbbbbbbb", [("b", 0, 10)]),
        ("aaaaaaaabb", [("a", 0, 10)]),
        ("aaaaabbccccc", [("a", 0, 7), ("c", 7, 12)]),
        ("abab", []),
    ],
)
def test_short_stretches_are_given_to_their_neighbour(names, expected):
    assert _stretches(list(names), 5) == expected


def test_what_was_not_recorded_is_not_named(run):
    bare = forged(
        {(0, 0): Plant("sink")},
        without=("induction", "duplicate", "prefix_match", "lag_mass", "content"),
        source={"causal": False},
    )
    assert list(scores(bare)) == ["sink"]
    assert ss.heads(bare).heads[0].name == "sink"
    assert "both ways" in ss.heads(bare).notes["causal"]
    few = run.only(np.arange(3))
    assert {head.name for head in ss.heads(few)} == {NONE}
    assert "has 3" in ss.heads(few).notes["heads"]


def test_records_that_are_no_numbers(run):
    sink = np.array(run.series["sink"])
    sink[::3] = np.nan
    found = ss.heads(replace(run, series=Arrays.of({**run.series, "sink": sink}), memo={}))
    assert found.heads[3].name == "sink"


def test_the_answer_of_the_command(run, tmp_path, capsys):
    folder = str(run.save(tmp_path / "run").path)
    assert command(["heads", folder, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert set(found) == {"status", "clock", "heads", "notes"}
    row = found["heads"][0]
    assert set(row) == {"layer", "head", "module", "name", "score", "chance", "scores", "spells"}
    assert set(row["spells"][0]) == {"name", "step", "low", "high", "stop", "score", "chance"}
    assert set(row["scores"]) == set(NAMES)
    assert found["heads"][-1]["score"] is None
    assert command(["heads", folder]) == 0
    shown = capsys.readouterr().out
    assert all(name in shown for name in NAMES)


def test_runs_without_heads_are_refused(tmp_path):
    plain = ss.from_arrays(step=[0, 1], loss=[1.0, 0.5])
    with pytest.raises(ss.InputError, match="heads are those of a watched model, and this run is of 'arrays'"):
        ss.heads(plain)
    with pytest.raises(ss.InputError, match="expected a run"):
        ss.heads(3)  # pyright: ignore[reportArgumentType]


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("heads", "four"),
        ("heads", [3, 99]),
        ("probe", []),
        ("probe", 3),
        ("probe", {"length": -1}),
        ("unigram_entropy", "x"),
        ("types", 3),
    ],
)
def test_a_source_that_nobody_wrote_is_refused(name, value):
    odd = forged({}, frames=20, source={name: value})
    if value == []:
        assert len(ss.heads(odd)) == 6  # nothing is said of the probe
        return
    with pytest.raises(ss.InputError, match=r"which ss\.watch does not write"):
        ss.heads(odd)
