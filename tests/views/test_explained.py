"""Explanations: every paper says what is shown, with the numbers of the run; any other run has a general one."""

import re

import numpy as np
import pytest

import stagescope as ss
from stagescope.core.errors import InputError
from stagescope.detect.stage import Stage, Stages
from stagescope.views.view import SmallTable, any_explained, captions, occurring, plain
from tests.show.runs import small
from tests.watching.forged import Plant, forged, warm


def test_gaps_between_stages_have_captions():
    stages = (Stage("rise", 0.0, 1.0, "it rises"), Stage("part", 0.0, None, "", "row 1"), Stage("fall", 2.0, None, "it falls."))
    found = Stages("finished", "t", {}, stages, {})
    made = captions(found, plain, lambda before, after: f"{before.name} to {after.name if after else 'end'}")
    assert [(one.title, one.start, one.stop, one.text) for one in made] == [
        ("rise", 0.0, 1.0, "it rises."),
        ("after rise", 1.0, 2.0, "rise to fall"),
        ("fall", 2.0, None, "it falls."),
    ]


def test_symbols_that_occur_are_found_as_on_the_page():
    """`#` is a number, a longer symbol wins, and a symbol is a word of its own."""
    glossary = {
        "E#": "event",
        "focus": "stage",
        "focus#": "peak",
        "(#,#)": "point",
        "cycle #": "later",
        "pi": "law",
        "H(pi)": "entropy",
    }
    met = occurring(glossary, ["E2 E10 E1", "focus1", "from (1,1) to cycle 3", "H(pi) of typing"])
    assert met == {
        "E#": (["E1", "E2", "E10"], "event"),
        "focus#": (["focus1"], "peak"),
        "(#,#)": (["(1,1)"], "point"),
        "cycle #": (["cycle 3"], "later"),
        "H(pi)": (["H(pi)"], "entropy"),
    }
    assert occurring({}, ["E1"]) == {}


def test_a_table_has_a_name_for_each_row_and_column():
    with pytest.raises(InputError, match="2 x 1 names"):
        SmallTable("P", ("a", "b"), ("c",), np.eye(2))


@pytest.mark.parametrize("kind", ["token", "pairwise", "heads", "regression"])
def test_papers_explain_their_runs(kind):
    seen = ss.reading(small(kind))
    found = seen.explained
    own = [stage.name for stage in seen.told_stages if not stage.track]
    assert [one.title for one in found.captions if not one.title.startswith("after ")] == own
    assert all(len(one.text) > 20 for one in found.captions)
    assert found.sentence.count(".") >= 2
    assert found.sentence != any_explained(seen).sentence
    assert found.glossary


def test_captions_have_the_numbers_of_the_run():
    """The gain of each row in words is that of the stage's facts, and the table is the chain's own."""
    seen = ss.reading(small("token"))
    focus = next(stage for stage in seen.told_stages if stage.name == "focus")
    caption = next(one for one in seen.explained.captions if one.title == "focus")
    for row, gain in focus.facts["gains"].items():
        assert f"query {row} {gain:+.3f}" in caption.text
    table = seen.explained.table
    assert table is not None
    assert table.values.sum(axis=1) == pytest.approx(1.0)
    assert np.diag(table.values) == pytest.approx(0.6 + 0.4 * np.array([0.5, 0.25, 0.15, 0.1]))


def test_any_run_has_an_explanation():
    seen = ss.reading(small("token"))
    found = any_explained(seen)
    assert "gradient flow up to t = 120" in found.sentence
    assert [one.text for one in found.captions] == [plain(stage) for stage in seen.told_stages if not stage.track]


TEXTS = {
    "text-snap": {"steps": 60},
    "text-incremental": {"steps": 40, "vocab": 100, "batch": 256, "watched": 500},
    "text-focus": {"vocab": 40, "width": 8, "steps": 100, "batch": 64, "watched": 256, "window": 32},
}


@pytest.mark.parametrize("study", TEXTS)
def test_studies_on_texts_explain_their_runs(study):
    """The sentence names text and model; each caption has a number of the facts of its stage."""
    seen = ss.reading(ss.run_study(study, progress=False, **TEXTS[study]))
    assert "the text topics" in seen.explained.sentence
    assert f"take {TEXTS[study]['steps']} steps" in seen.explained.sentence
    own = [stage for stage in seen.told_stages if not stage.track]
    assert len(own) == len(seen.explained.captions) > 0
    for stage, caption in zip(own, seen.explained.captions, strict=True):
        numbers = [f"{value:.{digits}g}" for value in stage.facts.values() if isinstance(value, float) for digits in (3, 4)]
        numbers += [f"{value:.3f}" for value in stage.facts.values() if isinstance(value, float)]
        assert any(number in caption.text for number in numbers) or not numbers, (stage, caption)
        assert caption.text != plain(stage)


def test_a_watched_training_is_explained_with_its_heads():
    seen = ss.reading(forged({(0, 1): Plant("previous token", 300), (1, 0): Plant("induction", 310)}, rate=warm))
    assert "2 layers, 3 heads in each, 40 tokens" in seen.explained.sentence
    falls = next(one for one in seen.explained.captions if one.title == "transition 1")
    assert float(re.search(r"The loss falls by ([\d.]+\d)", falls.text)[1]) == pytest.approx(2, rel=0.02)
    assert "previous token (layer 0 head 1, " in falls.text
    assert "induction (layer 1 head 0, " in falls.text


def test_after_dilution_the_rows_and_the_loss_fall_on():
    """The caption has the lowest shares in its stretch, and the time by which the loss made nine tenths of its fall."""
    seen = ss.reading(small("token"))
    caption = next(one for one in seen.explained.captions if one.title == "after dilution")
    time, loss, curves = seen.run.time, seen.run.series["loss"], seen.curves
    inside = curves.time >= caption.start
    for row in (1, 2, 3):
        assert f"query {row} {curves.attention[inside, row, 0].min():.2f}" in caption.text
    assert "query 0" not in caption.text
    said = re.search(r"falls from (\S+) to (\S+), nine tenths of that by t = ([\d.]+), and then it rests", caption.text)
    assert said is not None, caption.text
    first, last, until = map(float, said.groups())
    assert (first, last) == pytest.approx((np.interp(caption.start, time, loss), loss[-1]), rel=1e-3)
    gap = float(np.diff(time).max())
    for when, sign in ((until - gap - 0.1, 1), (until + 0.1, -1)):
        assert sign * (np.interp(when, time, loss) - (last + 0.1 * (first - last))) > -1e-3
