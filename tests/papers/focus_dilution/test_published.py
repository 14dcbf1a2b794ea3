"""The published experiment: total focus on one token after the other, by the rules that hold for any start and optimiser."""

from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import stagescope as ss
from stagescope.papers.focus_dilution.evidence import Evidence
from stagescope.papers.focus_dilution.limits import LIMITS
from stagescope.papers.focus_dilution.observables import opening_levels, token_curves
from stagescope.papers.focus_dilution.reading import SAMPLES
from stagescope.papers.focus_dilution.stages import detect, row_cycles, token_cycles, total_level
from stagescope.readings.published import published
from stagescope.readings.reading import reading

REFERENCE = published("stagescope.papers.focus_dilution")


def read(run, **more):
    """The stages of the frames of a run as they are, without companion runs."""
    return detect(token_curves(run), clock=run.clock, status=run.status, **{"normalised": True, **more})


@pytest.fixture(scope="module")
def short():
    """A fifth of the data and a quarter of the steps: the first cycle, and the second up to its peak."""
    return ss.run_study("focus-dilution", "published", seed=7, steps=700, sequences=20_000, frames=141)


@pytest.fixture(scope="module")
def found(short):
    return read(short)


def cycles(found):
    return {stage.facts["token"]: stage for stage in found if stage.name == "total focus"}


def test_the_preset_is_the_published_command():
    options = ss.study("focus-dilution").configured("published")
    assert (options.pi, options.persistence) == ((0.75, 0.19, 0.05, 0.01), 0.8)
    assert (options.scale, options.width, options.init_scale) == (1.0, 256, 1 / 256)
    assert (options.form, options.sequences, options.length, options.start) == ("sampled", 100_000, 19, "uniform")
    assert (options.optimizer, options.lr, options.steps) == ("adam", 1.5e-4, 3000)
    other = ss.study("focus-dilution").configured("published-halving")
    assert np.allclose(np.array(other.pi) / other.pi[0], 0.5 ** np.arange(4))


@pytest.mark.parametrize("name", ["focus-dilution", "text-focus"])
def test_presets_say_what_is_not_published(name):
    study = ss.study(name)
    assert {preset for preset in study.presets if preset.startswith("published")} <= set(study.preset_notes)


def test_the_first_cycle_is_total_and_of_all_rare_rows(found):
    """Targets of an independent implementation; with a fifth of the data times may differ by a tenth."""
    first = cycles(found)[0]
    assert first.facts["rows"] == [1, 2, 3]
    targets = REFERENCE["published_steps"].value
    for row in (1, 2, 3):
        up, peak, down, back = (found.events[f"{kind}{row}"] for kind in ("up", "focus", "dilution", "return"))
        assert up < peak < down < back < first.facts["half"][str(row)]
        assert peak == pytest.approx(np.mean(targets[f"focus{row}"]), rel=0.1)
        assert first.facts["half"][str(row)] == pytest.approx(np.mean(targets[f"half{row}"]), rel=0.1)
        assert first.facts["height"][str(row)] > 0.995
    assert first.stop == max(first.facts["half"].values())


def test_the_second_cycle_is_on_token_1_by_rows_2_and_3(found):
    second = cycles(found)[1]
    assert second.facts["rows"] == [2, 3]
    assert second.track == "token 1"
    targets = REFERENCE["published_steps"].value
    for row in (2, 3):
        assert found.events[f"on1focus{row}"] == pytest.approx(np.mean(targets[f"on1focus{row}"]), rel=0.1)
    assert found.events["self1"] == pytest.approx(second.start, rel=0.1)


def test_a_direction_opens_above_what_the_start_has(short, found):
    """Three times the largest value at the start: .1 would call the drift of the second direction an opening, before the peak."""
    curves = token_curves(short)
    assert curves.levels["E2"] == pytest.approx(3 * curves.embedding_values[0, 0])
    assert curves.levels["Q1"] == LIMITS.level
    drifted = np.interp(found.events["focus1"], curves.time, curves.embedding_values[:, 1])
    assert drifted > LIMITS.level
    assert found.events["E1"] < found.events["Q1"] < found.events["focus1"] < found.events["E2"]


@pytest.mark.long
def test_the_whole_experiment_has_three_cycles():
    found = ss.stages(ss.run_study("focus-dilution", "published", seed=8))
    assert {token: stage.facts["rows"] for token, stage in cycles(found).items()} == {0: [1, 2, 3], 1: [2, 3], 2: [3]}
    for name, (low, high) in REFERENCE["published_steps"].value.items():
        if name in found.events:
            room = high - low + REFERENCE["published_steps"].tolerance
            assert low - room <= found.events[name] <= high + room, name


def test_where_nothing_dilutes_the_focus_has_no_end():
    """At persistence .5 and scale 1 attention saturates and stays (measured by an independent implementation)."""
    found = read(ss.run_study("focus-dilution", "published", persistence=0.5, steps=450, sequences=5000, frames=91, seed=3))
    (only,) = cycles(found).values()
    assert (only.facts["token"], only.facts["rows"], only.stop) == (0, [1, 2, 3], None)
    assert {found.events[f"{kind}{row}"] for kind in ("dilution", "return") for row in (1, 2, 3)} == {None}


def test_a_tiny_start_has_no_focus():
    """Below sigma_c = .09/m, measured by an independent implementation, eps freezes attention: E1 opens, and no row moves."""
    chain = {"pi": (0.75, 0.19, 0.05, 0.01), "persistence": 0.8, "scale": 1.0, "width": 256, "init_scale": 0.01 / 256}
    steps = {"optimizer": "adam", "lr": 1.5e-4, "steps": 400, "frames": 81}
    found = read(ss.run_study("focus-dilution", **chain, **steps))
    assert found.events["E1"] is not None
    assert not cycles(found)
    assert all(found.events[f"{kind}{row}"] is None for kind in ("up", "focus") for row in (1, 2, 3))
    assert all(f"up{row}" in found.notes for row in (1, 2, 3))


def test_from_a_large_start_attention_may_open_before_embeddings_do():
    """Four times the published start: E1, threefold growth, comes after the first cycle, which is named all the same."""
    large = {"init_scale": 4 / 256, "steps": 300, "sequences": 4000, "frames": 76}
    found = read(ss.run_study("focus-dilution", "published", **large))
    assert found.events["Q1"] < found.events["focus3"] < found.events["dilution3"] < found.events["E1"]
    assert 0 in cycles(found)


# The rules, on curves that are drawn by hand.

TIME = np.linspace(0.0, 100.0, 1001)


def hill(top, left, right, base, after):
    """From `base` up to a top between two times, then to `after`."""
    return np.interp(TIME, [0, left, (left + right) / 2, right, 100], [base, base, top, after, after])


def drawn(rows, token=0, pi=(0.6, 0.3, 0.1)):
    """Curves in which row i gives a token what `rows[i]` says, and nothing else moves."""
    pi = np.array(pi)
    attention = np.tile(pi, (len(TIME), len(pi), 1))
    for row, curve in rows.items():
        attention[:, row, token] = curve
    return SimpleNamespace(
        time=TIME, pi=pi, frequent=0, sign=1.0, on_frequent=attention[:, :, 0], on_token=lambda k: attention[:, :, k]
    )


@pytest.mark.parametrize("window", [(2.0, 30.0), None])
def test_a_row_that_rises_at_e2_is_followed_to_its_own_return(window):
    curves = drawn({1: hill(0.99, 20, 60, 0.6, 0.1), 2: hill(0.95, 5, 25, 0.6, 0.6)})
    _, late, early = row_cycles(curves, window=window)
    assert (late.row, early.row) == (1, 2)
    assert late.focus == pytest.approx(40, abs=0.1)
    assert late.up == pytest.approx(np.interp(total_level(0.6), [0.6, 0.99], [20, 40]), abs=0.1)
    assert late.focus < late.half < late.complete < 60
    assert early.focus == pytest.approx(15, abs=0.1)


def test_a_second_hill_is_a_second_cycle():
    """Each begins after a return to the frequency of the token; a dip that stays above it is none."""
    twice = np.maximum(hill(0.9, 10, 30, 0.3, 0.3), hill(0.8, 50, 70, 0.3, 0.3))
    dips = np.maximum(hill(0.9, 10, 30, 0.35, 0.35), hill(0.8, 50, 70, 0.35, 0.35))
    found = token_cycles(drawn({0: twice, 2: dips}, token=1))
    assert [(cycle.row, cycle.turn, round(cycle.peak)) for cycle in found if cycle.row == 0] == [(0, 1, 20), (0, 2, 60)]
    (once,) = [cycle for cycle in found if cycle.row == 2]
    assert (round(once.peak), once.back, once.end) == (20, None, once.half)


@given(st.floats(0.05, 0.9), st.floats(0.02, 0.98))
def test_a_focus_is_total_from_half_of_what_can_be_gained(base, share):
    top = base + share * (1 - base)
    found = token_cycles(drawn({1: hill(top, 10, 30, base, base)}, pi=(base, 1 - base)))
    assert len(found) == (top > total_level(base))
    for cycle in found:
        assert cycle.up < cycle.peak < cycle.down
        assert cycle.height == pytest.approx(top, abs=0.01)


@given(st.lists(st.floats(1e-6, 10.0), min_size=1, max_size=5), st.floats(0.2, 5.0))
def test_levels_leave_nothing_of_the_start_above_them(values, size):
    """A value is either open at the start, above a third of what it goes to, or must grow at least threefold."""
    start = np.sort(values)[::-1]
    levels = opening_levels(start, size)
    small = 3 * start < size
    assert np.all(levels[small] >= max(LIMITS.level, 3 * start[small].max(initial=0.0)) * (1 - 1e-12))
    assert np.all(levels[~small] == LIMITS.level)
    assert np.all(opening_levels(1e-3 * start[start < 1], size) == LIMITS.level)


# Other draws of the data, and what theorems on flows say of steps.


@pytest.fixture(scope="module")
def wide():
    """Wider than what is read by flows on other pairs, and small enough to be quick."""
    options = {"steps": 500, "sequences": 4000, "width": 32, "lr": 6e-4, "init_scale": 1 / 32, "frames": 126}
    return ss.run_study("focus-dilution", "published", **options)


def test_other_samples_are_steps_of_the_head_model(wide):
    """Times spread; fewer sequences spread them more, as their root; never the run's own sample."""
    draws = reading(wide).draws
    names = [f"dilution{row}" for row in (1, 2, 3) if f"dilution{row}" in draws.sample]
    assert names
    assert all(draws.sample[name] > 0 for name in ("E1", "Q1", *names))
    assert "head model" in draws.how
    assert not draws.batches


def test_samples_shrink_with_the_cost_and_then_are_left_out(wide, monkeypatch):
    steps, contexts = 500, len(reading(wide).curves.law.contexts.mass)
    for most, expected in ((SAMPLES.count * steps * contexts / 4, 0.25), (SAMPLES.count * steps * contexts / 100, 0.0)):
        found = type(reading(wide))(wide)
        monkeypatch.setattr("stagescope.papers.focus_dilution.reading.SAMPLES", SAMPLES.__class__(contexts=most))
        assert found._other_sample[1] == pytest.approx(expected)
        if not expected:
            assert not found.draws.sample
            assert "longer than the run" in found.draws.how


def test_theorems_on_flows_do_not_apply_to_adam(wide):
    found = reading(wide)
    claims = {claim.tag: claim for claim in found.kind.claims()}
    rows = found.judge([claims[tag] for tag in ("FD:origin", "FD:attention-rate", "FD:dilution", "FD:eps-law")])
    assert {row.verdict for row in rows} == {"not applicable"}
    assert all(row.elsewhere is not None and row.elsewhere.options["optimizer"] == "flow" for row in rows)


@pytest.mark.parametrize(("init_scale", "holds"), [(1e-3, True), (1 / 256, True), (1 / 32, False)])
def test_a_start_is_small_by_its_norm_against_the_plateau(init_scale, holds):
    run = ss.run_study("focus-dilution", "published-flow", init_scale=init_scale, until=0.1, frames=3)
    assert all(good for good, _ in Evidence(run, token_curves(run)).small) == holds
