"""Claims of papers on watched transformers: confirmed where planted, not where nothing is learned, nor beside such a control."""

from dataclasses import replace

import numpy as np
import pytest
import torch

import stagescope as ss
from stagescope.claims.comparison import at_least
from stagescope.readings.registry import tags, watched_claims
from stagescope.runs.run import Arrays
from stagescope.watching.events import first_above, moves, together
from tests.watching.forged import Plant
from tests.watching.forged import forged as whole
from validation.nulls import watching as nulls

RANK, ORDER, TOGETHER, PART = "FD:watched-rank", "FD:watched-order", "ISA:watched-together", "ISA:watched-part"
SAME = {(0, head): Plant("previous token", 200, amount=0.6) for head in range(3)}
OWN = {(0, head): Plant(what, 200, amount=0.6) for head, what in enumerate(("previous token", "sink", "duplicate"))}


def forged(plants=None, **options):
    """A short run of one layer."""
    return whole(plants, layers=1, frames=50, **options)


def verdicts(run, control=None):
    return {row.tag: row for row in ss.check(run, control=control)}


def with_series(run, **changed):
    """The run with other numbers in some series."""
    return replace(run, series=Arrays.of({**run.series, **changed}), memo={})


def rank(run, *levels):
    """An embedding whose rank goes through some levels, one after another."""
    places = np.linspace(0, len(levels) - 1, run.frames)
    return with_series(run, embedding_rank=np.interp(places, range(len(levels)), levels).astype(np.float32))


def grows(run, first, second):
    """An embedding whose two largest singular values reach twice the first one at two steps."""
    step = run.time[:, None]
    values = np.where(step >= np.array([first, second]), 8.0, np.array([4.0, 3.0]))
    return with_series(run, embedding_values=values.astype(np.float32))


@pytest.fixture(scope="module")
def same():
    return forged(SAME)


@pytest.fixture(scope="module")
def own():
    return forged(OWN)


@pytest.mark.parametrize(
    ("levels", "verdict"),
    [((20, 5, 15), "confirmed"), ((20, 5, 5), "violated"), ((20, 15, 20), "violated"), ((20, 20), "violated")],
)
def test_an_embedding_that_condenses_and_opens_again(own, levels, verdict):
    assert verdicts(rank(own, *levels))[RANK].verdict == verdict


def test_a_rank_that_is_noisy_decides_nothing_at_the_bar(own):
    """It ends at 1.5 times its minimum, with noise of a tenth."""
    run = rank(own, 20, 5, 7.5, 7.5)
    noise = np.random.default_rng(0).normal(scale=0.5, size=run.frames)
    noise[: run.frames // 2] = 0
    row = verdicts(with_series(run, embedding_rank=run.series["embedding_rank"] + noise))[RANK]
    assert row.verdict == "inconclusive"
    assert row.measured_error is not None
    assert row.measured_error > 0


@pytest.mark.parametrize(
    ("first", "second", "verdict"),
    [
        (20, 800, "confirmed"),
        (20, 60, "violated"),
        (500, 800, "violated"),
        (20, 5000, "inconclusive"),
        (5000, 5000, "inconclusive"),
    ],
)
def test_the_order_of_embedding_and_attention(same, first, second, verdict):
    """Attention moves around step 200."""
    row = verdicts(grows(same, first, second))[ORDER]
    assert row.verdict == verdict, row.reason


def test_attention_that_never_moves_is_in_no_order():
    assert verdicts(grows(forged(), 20, 800))[ORDER].verdict == "violated"


def test_heads_that_move_alike_are_together_and_those_with_patterns_of_their_own_are_not(same, own):
    assert verdicts(same)[TOGETHER].verdict == "confirmed"
    assert verdicts(same)[TOGETHER].measured == pytest.approx(1.0, abs=1e-3)
    assert verdicts(own)[TOGETHER].verdict != "confirmed"
    assert verdicts(own)[TOGETHER].measured < 0.8


def test_heads_part_where_their_patterns_do(same):
    assert verdicts(same)[PART].verdict == "violated"
    leaving = {**SAME, (0, 1): Plant("previous token", 200, amount=0.6, until=500)}
    assert verdicts(forged(leaving))[PART].measured == pytest.approx(2 / 3, abs=0.4)
    assert verdicts(forged(OWN))[PART].verdict == "inconclusive"


@pytest.mark.parametrize(
    "closed",
    [{"loss": lambda step: 3.2 + 0 * step}, {"gain": (0.5, 0.4)}, {"gain": (0.01, 0.001)}, {"without": ("context_gain",)}],
)
def test_nothing_is_confirmed_behind_a_closed_gate(closed):
    """Nothing learned; context worth too little; or nobody measured it."""
    rows = verdicts(rank(grows(forged(SAME, **closed), 20, 800), 20, 5, 15))
    assert {row.verdict for row in rows.values()} == {"inconclusive"}
    assert not any(row.in_regime for row in rows.values())


def test_what_a_control_shows_too_is_not_confirmed(same):
    run = rank(grows(same, 20, 800), 20, 5, 15)
    alike, other = rank(grows(forged(SAME, seed=1), 20, 800), 20, 5, 15), rank(grows(forged(OWN, seed=1), 500, 800), 20, 5)
    for tag in (RANK, ORDER, TOGETHER):
        assert verdicts(run)[tag].verdict == "confirmed"
        assert verdicts(run, alike)[tag].verdict == "inconclusive"
        assert verdicts(run, other)[tag].verdict == "confirmed"


def test_a_run_without_sketches_is_another_kind_of_run():
    rows = verdicts(forged(without=("sketch",)))
    assert {tag for tag, row in rows.items() if row.verdict == "not applicable"} == {ORDER, TOGETHER, PART}


def test_every_claim_has_a_tag_and_a_null():
    claims = watched_claims()
    assert {claim.tag for claim in claims} == {RANK, ORDER, TOGETHER, PART}
    assert all(claim.tag in tags() and nulls.NULLS["watched"][claim.tag] for claim in claims)


@pytest.mark.long
@pytest.mark.parametrize("null", [nulls.shuffled, nulls.bigram, nulls.frozen])
def test_no_claim_about_attention_is_confirmed_on_its_nulls(null):
    """Short trainings, seed fixed; `python -m validation watched_claims` has long ones."""
    torch.set_num_threads(1)
    run = null(11, nulls.Setting(steps=120, width=16, length=16, characters=40_000))
    rows = verdicts(run)
    assert [tag for tag in (ORDER, TOGETHER, PART) if rows[tag].verdict == "confirmed"] == []
    assert run.status == "finished"


def test_a_number_beside_a_bar_and_a_control():
    assert at_least(2.0, 1.0, "so").holds is True
    assert at_least(0.5, 1.0, "so").holds is False
    assert at_least(1.1, 1.0, "so", measured_error=0.2).holds is None
    assert at_least(2.0, 1.0, "so", control=0.5).holds is True
    beside = at_least(2.0, 1.0, "so", control=1.5)
    assert beside.holds is None
    assert "reaches the bar too" in beside.reason


def test_moves_are_those_of_the_patterns(same):
    """From even attention to .54 of the token before: the distance of a row is .54 |one - even|."""
    length = np.linalg.norm(moves(same), axis=-1)
    assert np.all(length[0] == 0)
    assert length[-1, 0] == pytest.approx(np.full(3, length[-1, 0, 0]))
    assert 0.3 < length[-1, 0, 0] < 0.7
    assert together(same, 0, same.frames - 1).cosine == pytest.approx(1.0, abs=1e-6)


def test_a_single_record_above_a_bar_is_none():
    assert first_above(np.array([0, 1, 0, 1, 1, 1, 0]), 0.5) == 3
    assert first_above(np.array([0, 1, 0, 0]), 0.5) is None
    assert first_above(np.array([0, 0, 1]), 0.5) == 2
