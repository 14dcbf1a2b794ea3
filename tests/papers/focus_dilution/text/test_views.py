"""A page on a text: words for labels, probe words first, and rows that still sum to one where words are left out."""

import io
import shlex
import warnings
from dataclasses import replace

import numpy as np
import pytest

import stagescope as ss
from stagescope.cli.main import run as command
from stagescope.corpora.corpus import _tokenise
from stagescope.detect.stage import Stage
from stagescope.papers.focus_dilution.text import views as text_focus_views
from stagescope.readings.reading import reading
from stagescope.show.portrait import portrait, reproduce
from stagescope.show.static import drawings, text
from tests.show.runs import broken, small

SLOW = ("ledger", "ladder")


@pytest.fixture(scope="module")
def run():
    return small("text")


@pytest.fixture(scope="module")
def found(run):
    return portrait(run, skip=SLOW)


def view(found, slot):
    return next(view for view in found.views if view.slot == slot)


def by_hand(run, frame):
    """A_ij ~ pi_j exp(Phi_ij), from the counts of the text."""
    corpus, w = ss.read_corpus("topics", vocab=60), run.at(frame)
    weights = corpus.counts * np.exp(4**-0.5 * (w["W0"] @ w["WQ"]) @ (w["W0"] @ w["WK"]).T)
    return weights / weights.sum(axis=1, keepdims=True)


def test_the_map_has_words_and_one_column_for_the_rest(run, found):
    seen, words = view(found, "attention"), run.config["words"]
    assert seen.columns == (*seen.rows, "all others")
    assert set(seen.rows) == {*words[: text_focus_views.TYPES], "list"}
    np.testing.assert_allclose(seen.values.sum(axis=-1), 1.0)
    tokens = [words.index(word) for word in seen.rows]
    np.testing.assert_allclose(seen.values[-1, 0, :, :-1], by_hand(run, -1)[np.ix_(tokens, tokens)], atol=1e-12)


def test_a_small_vocabulary_is_shown_whole(run, monkeypatch):
    monkeypatch.setattr(text_focus_views, "TYPES", 60)
    made = (make() for make in text_focus_views.text_focus_views(reading(run)))  # a portrait keeps what it has made
    seen = next(view for view in made if view.slot == "attention")
    assert seen.columns == seen.rows
    assert len(seen.rows) == 60


def test_probe_words_come_first(run, found):
    attention, words = by_hand(run, -1), run.config["words"]
    for slot in ("focus", "itself"):
        assert [curve.name for curve in view(found, slot).curves[:2]] == ["list", "the"]
    assert view(found, "focus").curves[0].values[-1] == pytest.approx(attention[words.index("list"), 0])
    probe = view(found, "probe-1")
    assert "list" in probe.title
    for curve in probe.curves[:3]:
        assert curve.values[-1] == pytest.approx(attention[words.index("list"), words.index(curve.name)])
    entropy = view(found, "entropy")
    assert [curve.name for curve in entropy.curves if not curve.faint] == ["mean", "list", "the"]
    assert "list" in view(found, "embedding").labels


def test_stages_and_events_name_the_words(found):
    assert {"focus:list", "dilution:list", "focus:the"} <= set(found.stages.events)


def test_a_run_that_diverged_still_has_its_views(run):
    found = portrait(broken(run, first=10), skip=SLOW)
    slots = {item.slot for item in found.views}
    assert {"loss", "attention", "focus", "entropy", "embedding-values", "score-values", "alignment", "embedding"} <= slots
    values = view(found, "score-values").curves[0].values
    assert np.isfinite(values[:10]).all()
    assert np.isnan(values[10:]).all()


def test_the_command_on_the_page_makes_the_same_run(run, tmp_path):
    found = reproduce(run)
    assert found is not None
    words = shlex.split(found[0])
    words[words.index("--out") + 1] = str(tmp_path / "again")
    assert command([*words[1:], "--quiet"]) == 0
    assert ss.load(tmp_path / "again").config_digest == run.config_digest


def test_settings_list_some_of_the_words(found):
    listed = dict(found.provenance["settings"])["words"]
    assert listed.startswith("<unk> ")
    assert listed.endswith("(60 in all)")


def test_static_figures(found):
    """Words are drawn as they are, and no layout collapses."""
    made = drawings(found)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        attention, probe, values = (made[name]() for name in ("attention", "probe-1", "score-values"))
        values.savefig(io.BytesIO())
    labels = {label.get_text() for axes in attention.axes for label in axes.get_xticklabels()}
    assert {"<unk>", "the"} & labels
    assert "list" in probe.axes[0].get_title(loc="left")


def written_on(axes):
    return {text.get_text() for text in axes.texts}


def test_stages_of_parts_are_above_the_loss_alone(found):
    """Each track has lanes of its own; other panels show the stages of the run itself."""
    parts = (Stage("condensation", 0.0, 4.0, ""), Stage("rows focus", 0.0, 6.0, "", "rows"), Stage("focus", 4.0, None, ""))
    made = drawings(replace(found, stages=replace(found.stages, stages=parts)))
    loss, focus = (made[name]().axes[0] for name in ("loss", "focus"))
    assert {"condensation", "rows focus", "focus"} <= written_on(loss)
    assert {"condensation", "focus"} <= written_on(focus)
    assert "rows focus" not in written_on(focus)
    heights = {text.get_text(): text.get_position()[1] for text in loss.texts}
    assert heights["condensation"] == heights["focus"] < heights["rows focus"]


def test_attention_is_drawn_on_the_square_root_scale_of_the_page(found):
    image = drawings(found)["attention"]().axes[0].images[0]
    np.testing.assert_allclose(image.norm(np.array([0.0, 0.04, 0.25, 1.0])), [0.0, 0.2, 0.5, 1.0])


def test_a_run_whose_text_is_gone_has_its_views_and_stages(tmp_path):
    """Words, frequencies and the loss given the last token are kept; claims that look at the text are not decided."""
    text = tmp_path / "own.txt"
    text.write_text("the cat sat on the mat . a dog saw the cat and sat down . " * 60)
    options = {"vocab": 8, "width": 4, "window": 8, "steps": 40, "batch": 8, "watched": 32, "frames": 20}
    ss.run_study("text-focus", corpus=str(text), out=tmp_path / "run", progress=False, **options)
    before = portrait(ss.load(tmp_path / "run"), skip=SLOW)
    text.unlink()
    _tokenise.cache_clear()
    after = portrait(ss.load(tmp_path / "run"), skip=SLOW)
    assert [item.slot for item in after.views] == [item.slot for item in before.views]
    assert view(after, "attention").rows == view(before, "attention").rows
    np.testing.assert_array_equal(view(after, "attention").values, view(before, "attention").values)
    assert view(after, "loss").levels == view(before, "loss").levels
    assert after.stages == before.stages
    rows = {row.tag: row for row in ss.check(ss.load(tmp_path / "run"))}
    assert rows["FD:text-sign"].verdict == "inconclusive"
    assert "own.txt" in rows["FD:text-sign"].reason


def test_events_are_in_the_text(found):
    assert "focus:list" in text(found)
