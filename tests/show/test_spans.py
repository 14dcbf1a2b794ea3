"""Where a run shows what a claim is about."""

import re

import pytest

from stagescope.claims.claim import Verdict
from stagescope.detect.stage import Stage, Stages
from stagescope.readings.registry import studies
from stagescope.show.page import jump_target, span_of
from tests.runs.samples import memory_run

RUN = memory_run(frames=11)  # t from 0 to 1
STAGES = Stages(
    "finished",
    "t",
    {"E1": 0.2, "Q1": 0.5, "E2": None, "focus1": 0.55, "focus2": 0.6, "late": 3.0},
    (Stage("condensation", 0.0, 0.5, ""), Stage("plateau 1", 0.5, None, "")),
    {},
)


def span(*shown, stages=STAGES):
    return span_of(Verdict("SnS:lemma-1", "s", "r", None, None, None, "confirmed", "", shown), stages, RUN)


@pytest.mark.parametrize(
    ("shown", "expected"),
    [
        (("E1",), (0.2, 0.2)),
        (("start", "E1"), (0.0, 0.2)),
        (("Q1", "E2"), (0.5, 1.0)),  # not reached: until the end
        (("E2", "Q1"), None),  # not begun: not shown
        (("focus*",), (0.55, 0.6)),
        (("plateau *",), (0.5, 1.0)),
        (("condensation",), (0.0, 0.5)),
        (("late",), (1.0, 1.0)),  # a detector that saw more than the recorded frames
        (("end",), (1.0, 1.0)),
        (("nothing*",), None),
        ((), None),
    ],
)
def test_spans(shown, expected):
    assert span(*shown) == (None if expected is None else pytest.approx(expected))


def test_a_reader_lands_where_the_last_stage_begins():
    def lands(*shown):
        return jump_target(Verdict("SnS:lemma-1", "s", "r", None, None, None, "confirmed", "", shown), STAGES, RUN)

    assert lands("condensation", "plateau *") == pytest.approx(0.5)
    assert lands("start", "E1") == pytest.approx(0.0)  # an event is seen with what comes before it
    assert lands("E2") is None


def test_without_stages_only_the_ends_are_known():
    assert span("start", "end", stages=None) == pytest.approx((0.0, 1.0))
    assert span("E1", stages=None) is None


KNOWN = {
    "focus-dilution": r"[EQ]\d|focus\*|dilution\*|up\*|return\*|self\*",
    "scan-snap": "onset|winner|peak|slow|snap",
    "incremental": r"t\d|t\*|onset|plateau \d|plateau \*",
    "linear-icl": r"d\d|d\*",
    "markov-icl": r"t\d|match|lag|uniform|bigram",
    "text-snap": "prior|peak|snap",
    "text-incremental": r"t\d|t\*",
    "text-focus": r"[EQ]\d|rows focus|rows dilute|entropy \*|rare norms \*",
}
"""Names that the detectors give; an unknown one would never be found in any run."""


@pytest.mark.parametrize("name", studies())
def test_every_claim_says_where_it_is_shown(name):
    for claim in studies()[name].claims():
        assert claim.shown, claim.tag
        for word in claim.shown:
            assert re.fullmatch(f"start|end|{KNOWN[name]}", word), (claim.tag, word)
