"""Stages of focus and dilution: rows against measured values, later cycles, fresh chains, independence of recording."""

import json
from gc import collect
from itertools import pairwise
from weakref import ref as ref_to

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import stagescope as ss
from stagescope.papers.focus_dilution.family import attention_rate, condensation_rate
from stagescope.papers.focus_dilution.observables import token_curves
from stagescope.papers.focus_dilution.reading import FocusDilutionReading
from stagescope.papers.focus_dilution.stages import first_move, stays
from stagescope.readings.published import published
from stagescope.readings.reading import reading

REFERENCE = published("stagescope.papers.focus_dilution")


@pytest.fixture(scope="module")
def ref():
    return ss.run_study("focus-dilution", "ref", seed=3, frames=3000)


@pytest.fixture(scope="module")
def skewed():
    return ss.run_study("focus-dilution", "flow-skewed", frames=3000)


@pytest.fixture(scope="module")
def ref_stages(ref):
    return ss.stages(ref)


@pytest.fixture(scope="module")
def skewed_stages(skewed):
    return ss.stages(skewed)


def turned(found, name, row):
    """Stages of that name of one row."""
    return [stage for stage in found if stage.name == name and stage.facts["row"] == row]


def values(stage):
    return stage.facts["before"], stage.facts["after"]


def refocus(preset):
    """Attention of row 1 on the frequent token before and after its rise in the second cycle."""
    return REFERENCE["refocus_from"].value[preset], REFERENCE["refocus_to"].value[preset]


def agree(answers, rel=5e-3):
    for name, value in answers[0].items():
        for other in answers[1:]:
            assert (value is None) == (other[name] is None), name
            if value is not None:
                assert other[name] == pytest.approx(value, rel=rel), name


@pytest.mark.long
def test_rows_of_ref_peak_and_dilute_as_measured(ref, ref_stages):
    found = ref_stages
    attention = token_curves(ref).attention[:, :, 0]
    second = found.events["E2"]
    tops, bottoms = REFERENCE["peaks"], REFERENCE["troughs"]
    for row in (1, 2, 3):
        focus = found.events[f"focus{row}"]
        assert focus is not None
        cycle = (ref.t >= focus - 2) & (ref.t <= second)
        assert attention[cycle, row].max() == pytest.approx(tops.value["ref"][str(row)], abs=tops.tolerance)
        assert attention[cycle, row].min() == pytest.approx(bottoms.value["ref"][str(row)], abs=bottoms.tolerance)
        assert focus < found.events[f"dilution{row}"] < second
    assert [stage.name for stage in found][:4] == ["condensation", "focus", "dilution", "lifting"]


def test_stages_carry_their_numbers(ref_stages):
    condensation, focus, dilution, lifting = (stage.facts for stage in tuple(ref_stages)[:4])
    assert condensation["E1"] == ref_stages.events["E1"]
    assert condensation["second_over_first"] < 0.1
    assert condensation["attention_growth"] == pytest.approx(1, abs=5e-4)
    assert condensation["stable_rank"] == pytest.approx(1, abs=5e-4)
    gains = {row: peak - 0.5 for row, peak in REFERENCE["peaks"].value["ref"].items()}
    assert focus["gains"] == pytest.approx(gains, abs=REFERENCE["peaks"].tolerance)
    assert focus["rows_without"] == []
    assert (dilution["rows_diluted"], dilution["rows_focused"]) == (3, 3)
    assert max(dilution["norm_dips"].values()) < 0.1
    assert dilution["probe_entropies"] == pytest.approx({"1": 1, "2": 1, "3": 1}, abs=5e-4)
    assert lifting == {"direction": 2, "label_before": "(1,1)", "label_after": "(2,1)"}


@pytest.mark.long
def test_facts_are_plain_json(ref_stages, skewed_stages):
    for found in (ref_stages, skewed_stages):
        assert json.loads(json.dumps(found.json())) == found.json()
        assert all(stage.facts for stage in found)


@pytest.mark.long
@pytest.mark.parametrize("preset", ["ref", "flow-skewed"])
def test_events_do_not_depend_on_recording(preset):
    agree([ss.stages(ss.run_study("focus-dilution", preset, frames=frames)).events for frames in (20, 300, 4000)])


@pytest.mark.long
def test_events_do_not_depend_on_the_end_of_the_run():
    """A run hundreds of times longer than its first cycle shows the same cycle."""
    short, long = (ss.stages(ss.run_study("focus-dilution", until=until, frames=50)).events for until in (300.0, 60_000.0))
    reached = {name: when for name, when in short.items() if when is not None}
    assert {"E1", "Q1", "E2", "focus3", "dilution3", "refocus2"} <= set(reached)
    agree([reached, {name: long[name] for name in reached}])


@pytest.mark.long
@pytest.mark.parametrize("options", [{"optimizer": "gd", "steps": 2500}, {"optimizer": "adam", "lr": 0.01, "steps": 400}])
def test_descents_do_not_depend_on_recording(options):
    runs = [ss.run_study("focus-dilution", frames=frames, **options) for frames in (15, 1200)]
    assert runs[0].clock == {"gd": "t", "adam": "step"}[options["optimizer"]]
    agree([ss.stages(run).events for run in runs], rel=0.01)


@pytest.mark.long
def test_descent_with_small_steps_agrees_with_the_flow():
    """Within 3 % through the first cycle, also when hardly anything was recorded."""
    flow = ss.stages(ss.run_study("focus-dilution", until=250.0)).events
    steps = ss.stages(ss.run_study("focus-dilution", optimizer="gd", steps=2500, frames=12)).events
    for name in ("E1", "Q1", "E2", "focus1", "focus2", "focus3", "dilution1", "dilution2", "dilution3"):
        assert steps[name] == pytest.approx(flow[name], rel=0.03), name


def test_a_large_start_has_its_openings_at_the_start():
    found = ss.stages(ss.run_study("focus-dilution", init_scale=1.0, until=50.0))
    assert {found.states[name] for name in ("E1", "E2", "Q1")} == {"at the start"}
    assert all(when is None or when > 0 for when in found.events.values())
    assert not [stage for stage in found if stage.name in ("refocus", "redilution")]


def test_intervals_of_a_flow_are_tiny_and_hold_their_event(ref_stages):
    for name, when in ref_stages.events.items():
        if when is not None:
            low, high = ref_stages.intervals[name]
            assert low <= when <= high
            assert high - low < 0.02 * when


@pytest.fixture(scope="module")
def sgd():
    """`ref` by descent on batches of 16, past its first two cycles."""
    return ss.run_study("focus-dilution", form="sampled", optimizer="sgd", batch=16, steps=5000, length=512)


@pytest.mark.long
def test_intervals_of_a_sampled_run_say_what_other_data_would_change(sgd):
    """The flow from the same start lies inside; the sample alone leaves per cents open, and batches add to them."""
    found, flow = ss.stages(sgd), ss.stages(ss.run_study("focus-dilution", until=300.0)).events
    spread = reading(sgd).draws
    assert spread.batches
    for name in ("E1", "Q1", "E2"):
        ends, truth = found.intervals[name], flow[name]
        assert ends is not None
        assert truth is not None
        assert ends[0] <= truth <= ends[1], name
        assert (ends[1] - ends[0]) / 2 >= spread.sample[name] > 0.005 * truth


@pytest.mark.long
def test_focus_is_less_sure_than_the_opening_before_it(sgd):
    """Batches go on moving the score from Q1 to the focus: over 30 draws of batches the spread grew by a fifth to a third."""
    found = ss.stages(sgd).intervals
    widths = {name: np.ptp(found[name]) for name in ("Q1", "focus1", "focus2", "focus3", "dilution1")}
    assert all(1.1 * widths["Q1"] < widths[name] < 1.8 * widths["Q1"] for name in widths if name != "Q1")


def test_each_run_has_other_samples_beside_it(monkeypatch):
    """Eight samples that are few for all runs alike would mislead all of them alike."""
    used = {1: [], 2: []}

    def other(self, seed):
        used[self.run.seed].append(seed)
        return {}

    monkeypatch.setattr(FocusDilutionReading, "on_other_pairs", other)
    for seed in (1, 2):
        assert not reading(ss.run_study("focus-dilution", "sampled", seed=seed, sequences=64, steps=4)).draws.sample
    assert len({*used[1], *used[2]}) == len(used[1]) + len(used[2]) == 16


@pytest.mark.long
def test_noise_of_batches_is_no_cycle(sgd):
    """The flow has two refocus and no redilution; without a noise floor this run has tens."""
    found = ss.stages(sgd)
    reached = [name for name, when in found.events.items() if when is not None]
    assert 1 <= sum(name.startswith("refocus") for name in reached) <= 3
    assert sum(name.startswith("redilution") for name in reached) <= 1


def test_each_row_has_stages_of_its_own(ref_stages):
    for row in (1, 2, 3):
        names = [stage.name for stage in ref_stages if stage.track == f"row {row}"]
        assert names[:2] == ["focus", "dilution"]
    assert [stage.name for stage in ref_stages if not stage.track][:3] == ["condensation", "focus", "dilution"]


def test_second_cycle_of_flow_skewed(skewed, skewed_stages):
    """Row 1 refocuses, then dilutes again to the end; row 0, which stayed in the first cycle, dilutes."""
    found = skewed_stages
    (rise,) = turned(found, "refocus", 1)
    assert rise.stop == found.events["refocus1"] == pytest.approx(REFERENCE["refocus_time"].value["flow-skewed"], rel=0.02)
    assert values(rise) == pytest.approx(refocus("flow-skewed"), abs=0.01)
    (fall,) = turned(found, "redilution", 1)
    assert fall.stop is None
    assert found.events["redilution1"] is None
    (own,) = turned(found, "redilution", 0)
    assert own.stop is None
    assert values(own)[0] > 0.98
    curves = token_curves(skewed)
    at = [np.interp(4000, curves.time, curves.attention[:, row, 0]) for row in (0, 1)]
    assert at == pytest.approx(list(REFERENCE["attention_at_4000"].value.values()), abs=REFERENCE["attention_at_4000"].tolerance)
    assert values(own)[1] < at[0]


def test_second_cycle_of_ref(ref_stages):
    found = ref_stages
    (rise,) = turned(found, "refocus", 1)
    assert values(rise) == pytest.approx(refocus("ref"), abs=0.003)
    assert rise.stop == pytest.approx(REFERENCE["refocus_time"].value["ref"], rel=REFERENCE["refocus_time"].tolerance)
    assert found.events["redilution0"] is None


def test_rows_without_focus_are_listed(skewed_stages):
    """Rows 2 and 3 of flow-skewed gain less than .005: no focus, and no dilution either."""
    found = skewed_stages
    for row in (2, 3):
        assert found.events[f"focus{row}"] is None
    focus = next(stage for stage in found if stage.name == "focus")
    assert list(focus.facts["gains"]) == ["1"]
    assert focus.facts["rows_without"] == [2, 3]


def test_a_gain_within_the_solver_error_is_no_focus():
    """Gains are compared with five times the tolerance as well: row 3 of ref gains .022, row 2 .044."""
    found = ss.stages(ss.run_study("focus-dilution", rtol=0.006, until=300.0))
    assert found.events["focus3"] is None
    assert "focus3" in found.notes
    assert found.events["focus1"] is not None


def test_what_is_not_reached_has_a_note():
    found = ss.stages(ss.run_study("focus-dilution", until=10.0))
    assert set(found.events.values()) == {None}
    assert set(found.notes) == set(found.events)
    assert [stage.stop for stage in found] == [None]


def test_stall_without_asymmetry():
    """Equal rare tokens at pi_0 = .4, persistence .3: no second direction opens by t = 4000."""
    found = ss.stages(ss.run_study("focus-dilution", pi=(0.4, 0.2, 0.2, 0.2), persistence=0.3, until=4000.0))
    opened = found.events["Q1"]
    assert opened is not None
    low, high = REFERENCE["stall_opening"].value
    assert low < opened < high
    assert found.events["E2"] is None
    assert {"E2", "refocus1"} <= set(found.notes)


EDGES = {
    "two tokens": {"pi": (0.7, 0.3)},
    "two equal tokens": {"pi": (0.5, 0.5), "until": 50.0},
    "equally frequent": {"pi": (0.4, 0.4, 0.2)},
    "all equal": {"pi": (0.25,) * 4, "until": 50.0},
    "no memory": {"persistence": 0.0},
    "width 1": {"width": 1},
    "zero embeddings": {"init_scale_w0": 0.0, "init_scale_w1": 0.0, "until": 50.0},
    "large start": {"init_scale": 1.0, "until": 50.0},
    "diverged": {"optimizer": "gd", "lr": 50.0, "steps": 300},
    "three frames": {"frames": 3, "until": 100.0},
}


@pytest.mark.long
@pytest.mark.parametrize("name", EDGES)
def test_edges_have_an_answer(name):
    sane(ss.run_study("focus-dilution", **EDGES[name]))


def test_width_1_has_no_second_direction():
    found = ss.stages(ss.run_study("focus-dilution", width=1))
    assert "E2" not in found.events
    assert found.events["dilution1"] is not None
    assert {stage.name for stage in found} == {"condensation", "focus", "dilution"}


def fresh(number):
    """A chain and a run nobody listed: lazy or any transition matrix, 3 to 6 tokens, widths 2 to 8, long enough to open."""
    key = np.random.default_rng([77, number])
    size = int(key.integers(3, 7))
    if number % 2:
        chain = ss.LazyChain(pi=tuple(key.dirichlet(np.full(size, 3.0))), persistence=float(key.uniform(0.2, 0.8)))
    else:
        chain = ss.MarkovChain(rows=0.97 * key.dirichlet(np.full(size, 0.7), size=size) + 0.03 / size)
    model = ss.TokenAttention(vocab=size, width=int(key.choice([2, 5, 8])), scale=4.0)
    rate = abs(attention_rate(chain.stationary, chain.transition, 4.0))
    until = min(5000.0, 15 / condensation_rate(chain.stationary) + 25 / rate)
    problem, start = ss.TokenPopulation(model=model, process=chain), model.init(int(key.integers(1000)), 1e-3)
    return lambda frames: ss.evolve(problem, start, ss.GradientFlow(), until=until, record=ss.Uniform(frames=frames))


def sane(run):
    """What every answer must satisfy, whatever the run."""
    found = ss.stages(run)
    end = float(run.time[-1])
    assert set(found.notes) == {name for name, when in found.events.items() if when is None}
    assert all(0 <= when <= end for when in found.events.values() if when is not None)
    for letter in "EQ":
        opened = [when for name, when in found.events.items() if name[0] == letter and when is not None]
        assert opened == sorted(opened)
    for stage in found:
        assert stage.stop is None or stage.start < stage.stop <= end
        if stage.name in ("refocus", "redilution"):
            before, after = values(stage)
            assert 0 <= min(before, after) <= max(before, after) <= 1
            assert (after > before) == (stage.name == "refocus")
    agreeing(found)
    curves = token_curves(run)
    ladder = stays(curves.time, curves.embedding_values, curves.score_values)
    assert ladder[0].start == 0
    assert all(one.stop == other.start and one.label != other.label for one, other in pairwise(ladder))
    return found


def agreeing(found):
    """A global dilution begins after every focus, to a hundredth of the time; otherwise one stage says that rows differ."""
    peaks = [when for name, when in found.events.items() if name.startswith("focus") and when is not None]
    halves = [when for name, when in found.events.items() if name.startswith("dilution") and when is not None]
    whole = {stage.name for stage in found if not stage.track}
    if peaks and halves:
        differ = max(peaks) - min(halves) > 0.01 * max(peaks)
        assert ("rows differ" in whole, "dilution" in whole) == (differ, not differ)


@pytest.mark.long
@pytest.mark.parametrize("number", range(8))
def test_fresh_chains(number):
    """Attention opens after the embedding; the sign of c decides between focus and defocus; frames do not matter."""
    make = fresh(number)
    run = make(25)
    found = sane(run)
    curves = token_curves(run)
    c = attention_rate(curves.pi, curves.law.process.transition, curves.law.model.scale)
    first, opened = found.events["E1"], found.events["Q1"]
    if opened is not None:
        assert first is not None
        assert first < opened
        assert {"focus" if c > 0 else "defocus", "rows differ"} & {stage.name for stage in found}
    if number < 4:
        agree([found.events, ss.stages(make(900)).events], rel=0.01)


def test_a_defocus_is_named():
    """Tokens that are followed by others, rarely by themselves: c < 0, rows lose attention on the frequent token first."""
    pi = np.array([0.4, 0.25, 0.2, 0.15])
    away = (pi - np.diag(np.full(4, 0.14))) / 0.86
    chain = ss.MarkovChain(rows=away / away.sum(axis=1, keepdims=True))
    assert attention_rate(chain.stationary, chain.transition, 4.0) < 0
    model = ss.TokenAttention(vocab=4, width=8, scale=4.0)
    run = ss.evolve(
        ss.TokenPopulation(model=model, process=chain),
        model.init(1),
        ss.GradientFlow(),
        until=3000.0,
        record=ss.Uniform(frames=60),
    )
    found = sane(run)
    stage = next(stage for stage in found if stage.name in ("defocus", "rows differ") and not stage.track)
    assert stage.facts["gains"]
    assert max(stage.facts["gains"].values()) < 0
    assert (first_move(token_curves(run)) or 0) < -0.01


def test_the_first_move_is_a_focus_where_one_is_seen(ref):
    assert (first_move(token_curves(ref)) or 0) > 0.01


def test_visits_are_the_events(ref, ref_stages):
    curves = reading(ref).curves
    ladder = stays(curves.time, curves.embedding_values, curves.score_values)
    events = ref_stages.events
    assert [stay.label for stay in ladder] == ["(0,0)", "(1,0)", "(1,1)", "(2,1)", "(2,2)", "(3,2)"]
    assert [stay.start for stay in ladder[1:]] == pytest.approx([events[name] for name in ("E1", "Q1", "E2", "Q2", "E3")])
    assert ladder[-1].stop is None


@given(st.floats(1e-4, 0.009), st.integers(3, 400))
def test_flicker_is_no_visit(width, frames):
    """A singular value that dips below the level for less than a hundredth of the time passed stays open, at any frames."""
    time = np.union1d(np.linspace(0, 10, frames), [4, 4.9, 5 - 2.5 * width, 5, 5 + 2.5 * width, 5.1])
    rise = np.interp(time, [0, 2, 4, 5 - 2.5 * width, 5, 5 + 2.5 * width, 10], [0.01, 0.05, 0.11, 0.11, 0.09, 0.11, 1])
    ladder = stays(time, rise[:, None], np.full((len(time), 1), 1e-5))
    assert [stay.label for stay in ladder] == ["(0,0)", "(1,0)"]


def test_a_value_that_closes_again_is_a_visit():
    time = np.linspace(0, 10, 101)
    hump = 0.5 * np.exp(-((time - 5) ** 2)) + 1e-3
    ladder = stays(time, hump[:, None], np.zeros((101, 1)))
    assert [stay.label for stay in ladder] == ["(0,0)", "(1,0)", "(0,0)"]


def test_singular_values_of_scores_come_from_small_factors():
    """With more tokens than widths they are those of Phi itself, which has no more than the width."""
    key = np.random.default_rng(0)
    model = ss.TokenAttention(vocab=9, width=3, scale=2.0)
    chain = ss.LazyChain(pi=tuple(key.dirichlet(np.ones(9))), persistence=0.5)
    run = ss.evolve(ss.TokenPopulation(model=model, process=chain), model.init(0, 0.5), ss.GradientFlow(), until=1.0)
    curves = token_curves(run)
    assert curves.score_values == pytest.approx(np.linalg.svd(curves.scores, compute_uv=False)[:, :3], abs=1e-12)


@pytest.mark.long
def test_dense_curves_are_made_once_and_go_with_their_run():
    run = ss.run_study("focus-dilution", "ref", until=20.0)
    kept = ref_to(reading(run).curves)
    assert kept() is reading(run).curves
    del run
    collect()
    assert kept() is None


def test_the_note_of_a_missing_onset_names_no_event_that_is_missing_too():
    found = ss.stages(ss.run_study("focus-dilution", until=10.0))
    assert found.events["onset"] is None
    assert found.events["E2"] is None
    assert found.notes["onset"].endswith("by t=10")
