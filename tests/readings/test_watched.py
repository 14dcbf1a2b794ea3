"""The reading of watched runs: stages behind the gate, learning rates, controls, claims of all papers."""

import json
from dataclasses import replace

import numpy as np
import pytest

import stagescope as ss
from stagescope.cli.main import run as command
from stagescope.readings import registry, watched
from stagescope.readings.watched import WatchedReading
from stagescope.watching import events
from stagescope.watching.events import head_curves, moves, rates_of, warm_up_end
from stagescope.watching.source import gate_of
from tests.readings.test_registry import PAPER, clear, install  # noqa: F401  (a fixture)
from tests.watching.forged import Plant, falling, forged, warm

MOVING = {(0, 1): Plant("previous token", 300), (1, 0): Plant("induction", 310), (1, 2): Plant("sink", 60)}
CLAIM = ss.Claim(
    tag="Toy:law",
    statement="An induction head forms, and none in the control",
    regime=lambda seen: ss.Regime(seen.gate.open, seen.gate.sentence),
    compare=lambda seen: ss.Comparison(
        1.0,
        float(len(seen.heads.named("induction"))),
        "at least",
        None if seen.control is None else bool(seen.heads.named("induction")) and not seen.control.heads.named("induction"),
        "no control" if seen.control is None else f"the control ends at {seen.control.gate.loss:.2f}",
    ),
)


def flat(steps):
    return np.full(len(steps), 3.2)


@pytest.fixture(scope="module")
def run():
    return forged(MOVING, rate=warm)


@pytest.fixture(scope="module")
def shuffled():
    """The same heads, in a model that has learned nothing."""
    return forged(MOVING, rate=warm, loss=flat, gain=(0.0, 0.01))


def test_watched_runs_are_read_so_and_other_runs_are_not(run):
    assert isinstance(ss.reading(run), WatchedReading)
    stored = replace(run, spec={**run.spec, "source": {**run.spec["source"], "kind": "checkpoints"}}, memo={})
    assert isinstance(ss.reading(stored), WatchedReading)
    for other in ("recorded", "arrays", "tensorboard"):
        spec = {**run.spec, "source": {"kind": other}}
        assert type(ss.reading(replace(run, spec=spec, memo={}))) is ss.Reading


def test_events_of_heads_that_move_together_are_one(run):
    found = ss.stages(run)
    attention = {name: when for name, when in found.events.items() if name.startswith("attention")}
    assert len(attention) == 2
    assert list(attention.values()) == pytest.approx([60, 305], rel=0.08)
    assert found.events["transition 1"] == pytest.approx(300, rel=0.1)
    second = next(stage for stage in found if stage.name == "attention 2")
    moved = {(move["layer"], move["head"]) for move in second.facts["moves"]}
    assert moved >= {(0, 1), (1, 0)}
    assert "curves of" in second.evidence
    for name, when in attention.items():
        low, high = found.intervals[name] or (np.nan, np.nan)
        assert when is not None
        assert low <= when <= high


def test_what_lies_inside_the_warm_up_is_flagged(run):
    found = ss.stages(run)
    assert "inside the warm-up" in found.notes["attention 1"]
    assert "until 1" in found.notes["attention 1"]
    assert "attention 2" not in found.notes
    first = next(stage for stage in found if stage.name == "attention 1")
    assert (first.facts["warm_up"], first.track) == (True, "attention")


def test_the_learning_rate_has_a_track(run):
    rates = [stage for stage in ss.stages(run) if stage.track == "learning rate"]
    assert [stage.name for stage in rates] == ["warm-up", "constant rate", "decay"]
    assert [stage.start for stage in rates] == pytest.approx([0, 100, 700], abs=20)
    assert rates[-1].stop is None
    unknown = ss.stages(forged({}, frames=20))
    assert "not recorded" in unknown.notes["learning rate"]


@pytest.mark.parametrize(
    ("values", "names"),
    [
        ([1, 1, 1, 1, 1], ["constant rate"]),
        ([0, 1, 2, 3, 4], ["warm-up"]),
        ([1, 1, 1, 0.1, 0.1, 0.1], ["constant rate", "jump of the rate", "constant rate"]),
        ([4, 3, 2, 1, 4, 3, 2, 1], ["decay", "rise", "decay"]),
        ([1, np.nan, 1, np.nan, 0.5], ["constant rate", "jump of the rate"]),
        ([np.nan] * 5, []),
        ([1, 2] * 40, []),
    ],
)
def test_stretches_of_a_rate(values, names):
    run = ss.from_arrays(step=range(len(values)), learning_rate=np.array(values, np.float32))
    found = rates_of(run)
    assert [rate.name for rate in found] == names
    assert warm_up_end(found) == (np.inf if names == ["warm-up"] else None)


def test_names_of_heads_are_stages_aside(run):
    spells = {(stage.track, stage.name) for stage in ss.stages(run) if stage.aside}
    assert spells == {("layer 0 head 1", "previous token"), ("layer 1 head 0", "induction"), ("layer 1 head 2", "sink")}


# the gate


def test_behind_a_closed_gate_no_event_of_attention_counts(shuffled):
    found = ss.stages(shuffled)
    names = [name for name in found.events if name.startswith("attention")]
    assert len(names) == 2
    for name in names:
        assert (found.events[name], found.states[name]) == (None, "not counted")
        assert "the gate is closed" in found.notes[name]
        assert " at " in f" {found.notes[name]}"
    assert not [stage for stage in found if stage.track == "attention" or stage.aside]
    assert "no event of attention counts" in found.notes["gate"]
    assert "3 of 6 heads have names" in found.notes["heads"]


@pytest.mark.parametrize(
    ("changes", "opened", "words"),
    [
        ({}, True, "events of attention count"),
        ({"gain": (0.12, 0.05)}, False, "less than 2.57 standard errors"),
        ({"gain": (0.03, 0.001)}, False, "less than 2% of the loss"),
        ({"gain": (np.nan, np.nan)}, False, "was not measured"),
        ({"loss": lambda steps: falling(steps, last=3.1)}, False, "at least 5% below"),
        ({"loss": lambda steps: falling(steps) + 3 * (steps > 800)}, True, "events of attention count"),  # it overfits
        ({"source": {"unigram_entropy": None}}, False, "unigram entropy of the probe is not known"),
        ({"without": ("loss",)}, False, "no loss on the probe"),
        ({"without": ("context_gain", "context_gain_error")}, False, "was not measured"),
    ],
)
def test_the_gate(changes, opened, words):
    found = gate_of(forged({}, frames=30, **changes))
    assert found.open is opened
    assert words in found.sentence
    assert json.loads(json.dumps(found.json()))["open"] is opened


# nulls


@pytest.mark.long
@pytest.mark.parametrize("seed", range(3))
def test_heads_that_drift_or_tremble_give_no_event(seed):
    plants = {
        (0, 0): Plant("random", step=1e-3),
        (0, 1): Plant("previous token", amount=0.0, noise=0.05),
        (0, 2): Plant("sink", amount=0.0, drift=0.2),
        (1, 0): Plant("induction", amount=0.0, drift=0.3),
        (1, 1): Plant("random", amount=0.0, drift=0.3),
    }
    drifting = forged(plants, seed=seed)
    assert head_curves(drifting)  # there is something to search
    assert not [name for name in ss.stages(drifting).events if name.startswith("attention")]


def test_even_heads_are_not_searched():
    assert head_curves(forged({}, frames=30)) == []


def test_small_changes_stay_below_the_floor():
    small = forged({(0, 0): Plant("sink", amount=0.04)}, frames=60)
    assert not [name for name in ss.stages(small).events if name.startswith("attention")]


def test_of_many_curves_those_that_move_most_are_searched(monkeypatch):
    few = replace(events.FLOORS, curves=2)
    for module in (events, watched):
        monkeypatch.setattr(module, "FLOORS", few)
    monkeypatch.setattr(events.head_events, "__defaults__", (few,))
    found = ss.stages(forged(MOVING))
    assert found.notes["curves of heads"].startswith("2 of ")
    assert len([name for name in found.events if name.startswith("attention")]) >= 1


# parts of the reading


def test_how_far_patterns_moved(run):
    moved = np.linalg.norm(moves(run), axis=-1)
    assert moved.shape == (run.frames, 2, 3)
    assert np.all(moved[0] == 0)
    assert moved[-1, 0, 1] > 0.3 > 1e-3 > moved[-1, 0, 0]


def test_only_curves_of_interest_are_searched(run):
    assert {name for name, _ in ss.stages(run).transitions} == {"loss"}
    assert "context_gain" not in ss.stages(run).notes


@pytest.mark.parametrize("status", ["diverged", "stopped"])
def test_how_a_run_ended(status):
    found = ss.stages(forged(MOVING, status=status))
    assert ("reached" in found.states.values()) == (status == "stopped")


def test_few_records_and_absent_arrays():
    everything = tuple(name for name in forged({}, frames=4).series if name not in ("step", "loss"))
    bare = forged({}, frames=40, without=everything, source={"heads": [], "layers": []})
    assert [stage.name for stage in ss.stages(bare)][:2] == ["plateau 1", "transition 1"]
    assert len(ss.heads(bare)) == 0
    assert len(ss.stages(forged(MOVING, frames=4))) >= 1


# claims and controls


@pytest.fixture
def claimed(install):  # noqa: F811
    """A paper of somebody else with one claim on watched models."""
    install(toy_paper=replace(PAPER, watched=lambda: (CLAIM,)))


def test_the_ledger_has_the_claims_of_all_papers(claimed, run, shuffled):
    assert CLAIM in registry.watched_claims()
    assert [row.verdict for row in ss.check(fresh(run)) if row.tag == "Toy:law"] == ["inconclusive"]
    assert [row.verdict for row in ss.check(fresh(shuffled)) if row.tag == "Toy:law"] == ["inconclusive"]


def fresh(run):
    return replace(run, memo={})


def test_a_control_reaches_the_claims(run, shuffled, tmp_path):
    control = forged({}, frames=30, loss=flat, gain=(0.0, 0.1))
    own = replace(CLAIM, tag="own:law")

    def verdict(**given):
        return next(row.verdict for row in ss.check(run, own, **given) if row.tag == "own:law")

    assert verdict() == "inconclusive"
    assert verdict(control=control) == "confirmed"
    assert verdict(control=shuffled) == "violated"
    assert verdict(control=control.save(tmp_path / "control").path) == "confirmed"
    assert verdict() == "inconclusive"
    seen = ss.reading(run)
    assert isinstance(seen, WatchedReading)
    assert seen.with_control(control).gate is seen.gate
    assert seen.control is None


def test_controls_that_are_none(run):
    plain = ss.from_arrays(step=[0, 1], loss=[1.0, 0.5])
    with pytest.raises(ss.InputError, match="the control is a run of 'arrays'"):
        ss.check(run, CLAIM, control=plain)
    with pytest.raises(ss.InputError, match="the control is the run itself"):
        ss.check(run, CLAIM, control=run)
    with pytest.raises(ss.InputError, match=r"a control is for runs of ss.watch .* this one is of 'arrays'; leave it out"):
        ss.check(plain, CLAIM, control=run)


def test_the_command_takes_a_control(run, tmp_path, monkeypatch, capsys):
    (tmp_path / "my_claims.py").write_text(
        "import stagescope as ss\n"
        "def control(seen):\n"
        "    return ss.Comparison(1, 1, 0, seen.control is not None, f'{seen.control and seen.control.run.frames} frames')\n"
        "OWN = ss.Claim(tag='own:x', statement='x', regime=lambda seen: ss.Regime(True, 'always'), compare=control)\n"
    )
    monkeypatch.chdir(tmp_path)
    folders = [str(made.save(tmp_path / name).path) for made, name in ((run, "a"), (forged({}, frames=30), "b"))]
    assert command(["check", folders[0], "--claims", "my_claims:OWN", "--control", folders[1], "--json"]) == 0
    row = json.loads(capsys.readouterr().out)["claims"][-1]
    assert (row["tag"], row["verdict"]) == ("own:x", "confirmed")


BAD = {
    "no claim": (lambda: (3,), "watched has 3 in it; expected a Claim"),
    "tag": (lambda: (replace(CLAIM, tag="Toy:other"),), "unknown tag of toy: 'Toy:other'"),
    "twice": (lambda: (CLAIM, CLAIM), "two of them have the same tag"),
    "raises": (lambda: 1 / 0, "ZeroDivisionError"),
}


@pytest.mark.parametrize("case", BAD)
def test_claims_that_cannot_be_used_are_left_out(install, case):  # noqa: F811
    made, sentence = BAD[case]
    install(toy_paper=replace(PAPER, watched=made))
    assert registry.problems() == ()
    assert "Toy:law" not in {claim.tag for claim in registry.watched_claims()}
    [problem] = registry.watched_problems()
    assert problem.startswith("the claims of the paper 'toy' on watched models were left out: ")
    assert sentence in problem


def test_a_column_that_is_no_function(install):  # noqa: F811
    install(toy_paper=replace(PAPER, watched=(CLAIM,)))
    assert "'watched' that is (Claim(" in registry.problems()[0]


def test_own_claims_without_any_of_a_paper(run, monkeypatch):
    kind = replace(registry._WATCHED, claims=tuple)
    monkeypatch.setattr(registry, "_SOURCES", {"watched": kind})
    own = fresh(run)
    assert [row.tag for row in ss.check(own, replace(CLAIM, tag="own:law"))] == ["own:law"]
    with pytest.raises(ss.InputError, match="put claims of your own"):
        ss.check(fresh(run))


def test_tags_of_our_claims_are_those_of_their_papers():
    clear()
    assert registry.watched_problems() == ()
