"""The claims on heads of a text, on made-up heads: each can hold, fail, and stay open."""

from dataclasses import replace
from functools import partial
from types import SimpleNamespace

import numpy as np
import pytest

from stagescope.papers.incremental.text.claims import TEXT_CLAIMS
from stagescope.papers.incremental.text.loss import LagInformation
from stagescope.papers.incremental.text.stages import TextEvidence
from stagescope.readings.reading import check
from tests.papers.incremental.text.test_stages import heads as few_heads
from validation.nulls import incremental_text as nulls

heads = partial(few_heads, lags=8)
"""With eight lags, three of them in order are rarer than one in a hundred by chance; two are not."""
SURE = np.zeros((8, 2))
"""Stretches that all say the same."""


def known(added, alone=None, parts=SURE):
    """Importances of the first lags; later ones have less and less."""
    added = np.concatenate([added, 0.01 / np.arange(1, 9 - len(added))])
    alone = added if alone is None else np.concatenate([alone, added[len(alone) :]])
    return LagInformation(alone, added, 0.01, 0.001, parts)


IMPORTANT = known([0.9, 0.2, 0.1, 0.05], [0.9, 0.4, 0.2, 0.1])
LEVELS = np.array([3.0, 2.0])
"""Losses of those who see nothing, and lag 1 alone."""
LONG = 300
"""Last of what heads do comes before t = 50: by then it is long over."""
THIRD_FIRST = known([0.1, 0.2, 0.9, 0.04])


def verdicts(made, information=IMPORTANT, loss=None, done=True, held=None, gain=0.2):
    if loss is not None:
        made = replace(made, loss=loss)
    run = SimpleNamespace(clock="step", done=done, status="finished" if done else "running", reason="")
    evidence = TextEvidence(run, made, information, LEVELS, held or information, gain)
    return {claim.tag.removeprefix("ISA:text-"): claim.judge(run, evidence).verdict for claim in TEXT_CLAIMS}


def resting(made, level):
    """A loss that falls to a level by t1 and rests there until t2."""
    return np.interp(made.time, [0, 10, 20, 30], [4.0, level, level, level - 0.5])


def test_a_ladder_of_lags_confirms_every_claim():
    made = heads([1, 1, 1], [1, 2, 2], [1, 1, 3])
    assert set(verdicts(made, loss=resting(made, 2.05)).values()) == {"confirmed"}


def test_importance_not_nearness_decides():
    made = heads([3, 3, 3], [3, 2, 2], [3, 3, 1])
    found = verdicts(made, THIRD_FIRST)
    assert (found["order"], found["competition"]) == ("confirmed", "confirmed")
    wrong = verdicts(heads([1, 1, 1], [1, 2, 2], [1, 1, 3]), THIRD_FIRST)
    assert (wrong["order"], wrong["competition"]) == ("violated", "violated")


def test_a_lag_that_was_passed_over_violates_the_order():
    assert verdicts(heads([1, 1], [1, 4]))["order"] == "violated"


def test_lags_of_equal_importance_may_come_in_any_order():
    equal = known([0.9, 0.1, 0.1005, 0.05])
    assert verdicts(heads([1, 1, 1], [1, 2, 2], [1, 1, 3]), equal, held=IMPORTANT)["order"] == "confirmed"


def test_stretches_that_disagree_leave_the_order_of_two_lags_open():
    """Lag 3 is above lag 2 on average, but not in every stretch: its coming later does not speak against the order."""
    added, unsure = [0.9, 0.1, 0.15, 0.05], SURE.copy()
    unsure[1:3] = [[0.0, 0.2], [0.2, 0.1]]
    came = heads([1, 1, 1], [1, 2, 2], [1, 1, 3])
    assert verdicts(came, known(added))["order"] == "violated"
    assert verdicts(came, known(added, parts=unsure), held=IMPORTANT)["order"] == "confirmed"


def test_one_lag_decides_no_order():
    found = verdicts(heads([1], [1]))
    assert (found["order"], found["parting"]) == ("inconclusive",) * 2


def test_heads_that_part_at_once_violate_competition():
    assert verdicts(heads([1, 1], [2, 2]))["competition"] == "violated"


def test_heads_that_leave_together_violate_parting():
    assert verdicts(heads([1, 1], [1, 2], [1, 2]))["parting"] == "violated"


@pytest.mark.parametrize(("level", "verdict"), [(2.1, "confirmed"), (1.9, "confirmed"), (2.4, "violated"), (1.6, "violated")])
def test_the_loss_must_rest_near_its_level(level, verdict):
    made = heads([1, 1], [1, 2])
    assert verdicts(made, loss=resting(made, level))["level"] == verdict


@pytest.mark.long
@pytest.mark.parametrize(("end", "verdict"), [(12, "inconclusive"), (20, "inconclusive"), (LONG, "violated")])
def test_before_the_second_lag_the_level_is_open_until_the_loss_rests(end, verdict):
    """The loss passes +40 % of the step on its way down, and then stays there."""
    made = heads([1, 1], [1, 1], end=end, frames=1201)
    way = np.interp(made.time, [0, 10, 14], [4.0, 2.9, 2.4])
    assert verdicts(made, loss=way)["level"] == verdict
    assert verdicts(made, loss=way - 0.4)["level"] == {"violated": "confirmed"}.get(verdict, verdict)


def test_a_loss_that_still_falls_has_no_level():
    made = heads([1, 1], [1, 1], end=LONG)
    assert verdicts(made, loss=np.interp(made.time, [0, LONG], [4.0, 2.4]))["level"] == "inconclusive"


def test_out_of_regime_nothing_is_confirmed():
    close = known([0.9, 0.8, 0.1, 0.05])
    nothing = LagInformation(np.full(8, 1e-4), np.full(8, 1e-4), 0.01, 0.001, SURE)
    made = heads([1, 1, 1], [1, 2, 2], [1, 1, 3])
    for information in (close, nothing):
        assert set(verdicts(made, information).values()) == {"inconclusive"}
    assert set(verdicts(made, done=False).values()) == {"inconclusive"}


def test_one_head_has_no_competition():
    found = verdicts(heads([1, 2, 3]))
    assert (found["competition"], found["parting"]) == ("not applicable",) * 2
    assert found["order"] != "violated"


def test_what_is_of_no_use_on_held_out_text_confirms_nothing():
    made = heads([1, 1, 1], [1, 2, 2], [1, 1, 3])
    assert set(verdicts(made, loss=resting(made, 2.05), gain=0.04).values()) == {"inconclusive"}


def test_the_order_is_judged_on_held_out_text():
    """The order in which heads turned to lags is that of the training text; on held-out text the far lags have more."""
    made = heads([1, 1, 1], [1, 2, 2], [1, 1, 3])
    other = LagInformation(IMPORTANT.alone, IMPORTANT.added[::-1], 0.01, 0.001, SURE)
    assert verdicts(made, held=other)["order"] == "violated"


def test_two_lags_in_order_may_be_chance():
    assert verdicts(heads([1, 1], [1, 2]))["order"] == "inconclusive"


@pytest.mark.long
@pytest.mark.parametrize(("null", "tag"), [("other_lags", "order"), ("other_lags", "competition"), ("equal_heads", "parting")])
def test_nulls_on_the_embedded_text(null, tag, monkeypatch):
    monkeypatch.setattr(nulls, "CORPORA", ("topics",))
    rows = {row.tag: row.verdict for row in check(getattr(nulls, null)(301))}
    assert rows[f"ISA:text-{tag}"] == "violated"


@pytest.mark.long
def test_shuffled_text_confirms_nothing(monkeypatch):
    monkeypatch.setattr(nulls, "CORPORA", ("topics",))
    assert "confirmed" not in {row.verdict for row in check(nulls.shuffled(302))}
