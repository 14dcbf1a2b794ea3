"""Stages on a text, from curves whose turns are known."""

import json
from types import SimpleNamespace

import numpy as np
import pytest

from stagescope.papers.focus_dilution.text.stages import TextHistory, detect, openings, row_cycles, smoothed

TIME = np.linspace(0, 100, 401)


def bumps(*heights):
    """A curve through heights at equal distances, smoothly."""
    places = np.linspace(0, 100, len(heights))
    at = np.clip(np.searchsorted(places, TIME, side="right") - 1, 0, len(heights) - 2)
    share = (TIME - places[at]) / (places[1] - places[0])
    bend = (1 - np.cos(np.pi * share)) / 2
    heights = np.array(heights)
    return heights[at] + bend * (heights[at + 1] - heights[at])


def noise(curve, size, seed=0):
    return curve + size * np.random.default_rng(seed).normal(size=curve.shape)


def test_a_start_on_a_floor_of_noise_must_be_left_by_a_factor():
    rising = np.exp(0.1 * TIME)[:, None]
    assert openings(TIME, 0.001 * rising)[0] == pytest.approx(np.log(100) / 0.1, rel=1e-6)
    assert openings(TIME, 0.2 * rising)[0] == pytest.approx(np.log(3) / 0.1, rel=1e-6)
    assert openings(TIME, np.full((401, 1), 0.2)) == [None]


def test_median_leaves_a_ramp_and_takes_a_spike():
    ramp = np.linspace(0, 1, 401)
    spiked = ramp.copy()
    spiked[200] = 9
    np.testing.assert_allclose(smoothed(ramp)[4:-4], ramp[4:-4])
    assert smoothed(spiked)[200] == pytest.approx(ramp[200], abs=0.01)


@pytest.mark.parametrize("size", [0.0, 0.01])
def test_rows_that_focus_and_dilute(size):
    rows = [
        bumps(0.2, 0.9, 0.1, 0.1),  # focuses, loses all
        bumps(0.2, 0.9, 0.8, 0.8),  # keeps most of its gain
        bumps(0.2, 0.22, 0.2, 0.2),  # hardly moves
        bumps(0.2, 0.1, 0.6, 0.2),  # moves away first
        bumps(0.2, 0.3, 0.6, 0.9),  # still rising
    ]
    curves = smoothed(np.stack([noise(row, size, i) for i, row in enumerate(rows)], axis=1))
    found = row_cycles(TIME, curves)
    assert [cycle.focus is not None for cycle in found] == [True, True, False, True, False]
    assert [cycle.half is not None for cycle in found] == [True, False, False, True, False]
    assert found[0].focus == pytest.approx(100 / 3, abs=2)
    assert found[0].gain == pytest.approx(0.7, abs=0.03)
    level = 0.9 - 0.35
    exact = TIME[np.flatnonzero((rows[0] <= level) & (TIME > 100 / 3))[0]]
    assert found[0].half == pytest.approx(exact, abs=1)
    assert found[3].focus == pytest.approx(200 / 3, abs=2)


def curves(**given):
    """Curves of four types, the first the most frequent."""
    flat = {
        "time": TIME,
        "pi": np.array([0.5, 0.3, 0.1, 0.1]),
        "frequent": 0,
        "embedding_values": np.stack([0.01 * np.exp(0.2 * TIME), 0.01 * np.exp(0.06 * TIME)], axis=1),
        "score_values": np.stack([0.001 * np.exp(0.12 * TIME), np.full(401, 1e-4)], axis=1),
        "alignment": np.full(401, -0.995),
        "condensed": 0.01 * np.exp(0.2 * TIME),
        "on_frequent": np.tile(bumps(0.5, 0.9, 0.2)[:, None], (1, 4)),
        "mean_entropy": bumps(3.0, 0.5, 2.0, 1.0),
        "rare_norm": np.exp(bumps(-3.0, 0.2, -0.3, 0.5)),
    }
    return SimpleNamespace(**{**flat, **given})


def test_events_of_a_run():
    found = detect(curves(), {"the": 1}, clock="t", status="finished")
    assert found.events["E1"] == pytest.approx(np.log(10) / 0.2, rel=1e-3)
    assert found.events["E2"] == pytest.approx(np.log(10) / 0.06, rel=1e-3)
    assert found.events["Q1"] == pytest.approx(np.log(100) / 0.12, rel=1e-3)
    assert found.events["Q2"] is None
    assert "Q2" in found.notes
    assert found.events["focused"] == pytest.approx(100 / 3, abs=1.5)
    assert found.events["diluted"] == pytest.approx(200 / 3, abs=1.5)
    assert found.events["focus:the"] == pytest.approx(50, abs=2)
    names = [stage.name for stage in found]
    assert {"condensation", "defocus", "lifting", "rows focus", "rows dilute"} <= set(names)
    assert names.count("entropy falls") == 2
    tracks = [stage.track for stage in found]
    assert list(dict.fromkeys(tracks)) == ["", "rows", "entropy", "rare norms", "row 'the'"]
    for track in set(tracks):
        starts = [stage.start for stage in found if stage.track == track]
        assert starts == sorted(starts)


def test_stages_carry_their_numbers():
    found = detect(curves(), {}, clock="t", status="finished")
    assert json.loads(json.dumps(found.json())) == found.json()
    facts = {stage.name: stage.facts for stage in reversed(tuple(found))}  # the first stage of each name
    first = found.events["E1"]
    assert facts["condensation"] == pytest.approx(
        {"E1": first, "condensed": 0.1, "second_over_first": np.exp(-0.14 * first)}, rel=1e-2
    )
    assert facts["defocus"]["cosine"] == pytest.approx(-0.995)
    assert facts["lifting"] == {"direction": 2, "attention_directions": 1}
    assert facts["rows focus"] == pytest.approx({"rows": 4, "of_rows": 4, "mass": 1, "median_gain": 0.4}, abs=0.01)
    assert facts["rows dilute"] == pytest.approx({"rows": 4, "of_rows": 4, "mass": 1})
    assert facts["entropy falls"] == pytest.approx({"before": 3.0, "after": 0.5, "turned": True}, abs=0.01)
    assert facts["rare norms retract"] == pytest.approx({"before": 0.2, "after": -0.3, "turned": True}, abs=0.01)


def test_an_embedding_of_width_one_has_stages():
    values = 0.01 * np.exp(0.2 * TIME)[:, None]
    found = detect(curves(embedding_values=values, score_values=values), {}, clock="t", status="finished")
    assert found.events["E1"] == pytest.approx(np.log(10) / 0.2, rel=1e-3)
    condensation = next(stage for stage in found if stage.name == "condensation")
    assert "second_over_first" not in condensation.facts


def test_more_frames_do_not_change_the_story():
    coarse = curves()
    half = {name: value[::2] for name, value in vars(coarse).items() if isinstance(value, np.ndarray) and len(value) == 401}
    first, second = TextHistory(coarse), TextHistory(curves(**half))
    assert first.swings(0.3) == pytest.approx(second.swings(0.3), abs=0.02)
    assert [cycle.half for cycle in first.rows] == pytest.approx([cycle.half for cycle in second.rows], abs=1)


def test_swings_want_a_fall_first_and_all_three():
    assert TextHistory(curves()).swings(0.3) == pytest.approx((2.5, 1.5, 1.0), abs=0.03)
    assert TextHistory(curves(mean_entropy=bumps(3.0, 0.5, 2.0))).swings(0.3) is None
    assert TextHistory(curves(mean_entropy=bumps(1.0, 3.0, 0.5, 2.0, 1.0))).swings(0.3) == pytest.approx(
        (2.5, 1.5, 1.0), abs=0.03
    )
    assert TextHistory(curves(rare_norm=np.exp(bumps(-3.0, 0.5)))).retraction(0.16) is None


@pytest.mark.parametrize(
    ("curve", "open_end"),
    [
        (bumps(3.0, 0.5), True),  # still falling at the end
        (bumps(3.0, 0.5, 0.5, 0.5, 0.5), False),  # fell early and stayed
        (bumps(3.0, 3.0, 3.0, 0.5), True),  # fell late
        (bumps(3.0, 0.5, 2.0, 2.0, 2.0, 2.0, 2.0), False),  # rose early and stayed
        (bumps(3.0, 3.0), False),  # never moved
    ],
)
def test_what_came_to_rest_early_decides(curve, open_end):
    history = TextHistory(curves(mean_entropy=curve, rare_norm=np.exp(curve)))
    assert history.moves(history.mean_entropy, 0.3) is open_end
    assert history.moves(history.log_norm, 0.16) is open_end


def test_a_probe_word_has_one_stage_with_all_its_turns():
    found = detect(
        curves(on_frequent=np.tile(bumps(0.2, 0.9, 0.1, 0.6)[:, None], (1, 4))), {"the": 1}, clock="t", status="finished"
    )
    (row,) = [stage for stage in found if stage.name == "row 'the'"]
    assert row.stop is None
    assert row.facts["word"] == "the"
    assert row.facts["attention"] == pytest.approx([0.2, 0.9, 0.1, 0.6], abs=0.01)
