"""Pages of scan and snap and of heads on a text: words for labels, and numbers that are those of every window."""

import shlex

import numpy as np
import pytest

import stagescope as ss
from stagescope.cli.main import run as command
from stagescope.core.spec import build
from stagescope.papers.incremental.text.stages import text_lag_curves
from stagescope.papers.scan_snap.text import views as text_snap_views
from stagescope.papers.scan_snap.text.observables import held_out, known_windows
from stagescope.show.portrait import portrait, reproduce
from tests.show.runs import broken, small

SLOW = ("ledger", "ladder")
KINDS = ("topics", "text-transformer", "text-heads")


@pytest.fixture(scope="module")
def made():
    runs = {kind: small(kind) for kind in KINDS}
    return {kind: (run, portrait(run, skip=SLOW)) for kind, run in runs.items()}


def view(found, slot):
    return next(view for view in found.views if view.slot == slot)


def test_class_attention_is_the_mean_over_windows(made):
    """By a loop over the training windows at the last frame; kinds are marked, and the rest is one column."""
    run, found = made["topics"]
    process, seen = build(run.spec["field"]).process, view(found, "attention")
    windows, scores = process.part("train"), run.params["Z"][-1, 0]
    total, size = np.zeros((len(process.nexts), len(process.keys))), np.zeros(len(process.nexts))
    for i in range(len(windows)):
        inside = slice(windows.start[i], windows.start[i + 1])
        weights = windows.count[inside] * np.exp(scores[windows.key[inside]])
        total[windows.target[i], windows.key[inside]] += weights / weights.sum()
        size[windows.target[i]] += 1
    words = [process.label(token) for token in process.keys]
    columns = [words.index(word) for word in seen.columns[:-1]]
    assert seen.rows == tuple(run.config["next_words"])
    assert seen.columns[-1] == "all others"
    np.testing.assert_allclose(seen.values[-1, 0, :, :-1], (total / size[:, None])[:, columns], atol=1e-12)
    np.testing.assert_allclose(seen.values.sum(axis=-1), 1.0)
    marked = {seen.marks.names[kind - 1] for kind in seen.marks.cells[0] if kind}
    assert marked == {"common type", "distinct type"}
    assert {seen.columns[i] for i in np.flatnonzero(seen.marks.cells[0] == 2)} <= set(run.config["distinct_words"])


def test_scores_are_in_the_order_of_distinctness(made):
    run, found = made["topics"]
    process, seen = build(run.spec["field"]).process, view(found, "ranked")
    words = [process.label(token) for token in process.keys]
    order = [process.distinctness[words.index(word)] for word in seen.columns]
    assert order == sorted(order, reverse=True)
    last = dict(zip(seen.columns, seen.values[-1, 0, 0], strict=True))
    for curve in view(found, "scores").curves:
        assert curve.values[-1] == last[curve.name]


def test_maps_are_of_held_out_windows_with_their_words(made):
    run, found = made["text-transformer"]
    law = held_out(build(run.spec["field"]))
    chosen = known_windows(law.watched_tokens, law.process.words, text_snap_views.SIZES.maps)
    for slot, window in zip(("attention", "attention-2", "attention-3"), chosen, strict=True):
        seen = view(found, slot)
        assert seen.rows == seen.columns == tuple(law.process.label(int(token)) for token in law.watched_tokens[window])
        np.testing.assert_allclose(seen.values[-1, 0], law.attention(run.at(-1))[0, window], atol=1e-6)
        np.testing.assert_allclose(np.triu(seen.values[-1, 0], 1), 0)
    held = next(curve for curve in view(found, "loss").curves if curve.name == "held-out loss")
    assert held.values[-1] == pytest.approx(law.value(run.at(-1)), rel=1e-6)


def test_windows_are_chosen_for_their_known_words():
    tokens = np.array([[0, 0, 1], [2, 0, 1], [0, 3, 0], [1, 1, 1]])
    assert known_windows(tokens, ("<unk>", "a", "b", "c"), 2) == [1, 3]
    assert known_windows(tokens, ("a", "b", "c", "d"), 2) == [0, 2]
    assert known_windows(tokens[:1], ("<unk>", "a"), 3) == [0]


def test_heads_by_lag_and_by_words(made):
    run, found = made["text-heads"]
    curves, seen = text_lag_curves(run), view(found, "attention")
    np.testing.assert_array_equal(seen.values[:, 0], curves.mass)
    assert seen.columns == ("1", "2", "3", "4")
    values = view(found, "value-maps")
    assert values.rows == values.columns == tuple(run.config["words"])
    the, of = (run.config["words"].index(word) for word in ("the", "of"))
    assert values.values[-1, 1, of, the] == run.params["V"][-1, 1, the, of]  # what "of" adds to the logit of "the"


@pytest.mark.parametrize("kind", KINDS)
def test_a_run_that_diverged_still_has_its_views(made, kind):
    run = made[kind][0]
    found = portrait(broken(run, first=2), skip=SLOW)
    assert {"loss", "attention", "norms"} <= {item.slot for item in found.views}


@pytest.mark.parametrize("kind", KINDS)
def test_the_command_on_the_page_makes_the_same_run(made, tmp_path, kind):
    words = shlex.split(reproduce(made[kind][0])[0])
    words[words.index("--out") + 1] = str(tmp_path / "again")
    assert command([*words[1:], "--quiet"]) == 0
    assert ss.load(tmp_path / "again").config_digest == made[kind][0].config_digest
