"""What a page shows of a watched run: the recorded numbers, with tokens as labels that nobody can misuse."""

from dataclasses import replace

import numpy as np
import pytest

import stagescope as ss
from stagescope.runs.run import Arrays
from stagescope.show.page import scene_title, scenes_of
from stagescope.show.portrait import portrait, provenance
from stagescope.views.view import Curves, Matrices
from stagescope.watching import views as watched_views
from stagescope.watching.source import RECORDED, token_label, token_labels
from tests.watching.forged import SHOWN, TYPES, Plant, forged, warm

SLOTS = {
    *("loss", "patterns", "roles", "role-previous-token", "role-positional", "lags", "types", "beyond", "agreement", "entropy"),
    *("moved", "repeat", "context", "embedding-values", "embedding-rank", "scores", "groups", "rate", "gradient"),
}


@pytest.fixture(scope="module")
def run():
    return forged({(0, 1): Plant("previous token")}, rate=warm, frames=60)


def views(run) -> dict[str, Curves | Matrices]:
    made = (make() for make in ss.reading(run).views)
    return {view.slot: view for view in made if view is not None}  # pyright: ignore[reportReturnType]


def test_every_recorded_array_has_its_view(run):
    found = views(run)
    assert set(found) == SLOTS
    assert set(run.series) <= {"step", *RECORDED}
    for view in found.values():
        assert view.title
        assert view.about.endswith(".")


def test_patterns_are_layers_by_heads(run):
    found = views(run)["patterns"]
    assert isinstance(found, Matrices)
    assert found.panels == tuple(f"layer {layer} head {head}" for layer in range(2) for head in range(3))
    assert (found.across, len(found.rows)) == (3, SHOWN)
    assert found.rows == found.columns == ("T", "h", "e", "␣", "c", "a", "t", ".")
    assert found.values[-1, 1] == pytest.approx(np.asarray(run.series["pattern"][-1, 0, 1], float))


def test_masses_and_scores_are_those_recorded(run):
    found = views(run)
    lags, types, roles = found["lags"], found["types"], found["roles"]
    assert isinstance(lags, Matrices)
    assert isinstance(types, Matrices)
    assert isinstance(roles, Matrices)
    assert lags.values[-1, 0, 1, 1] == pytest.approx(0.9, abs=0.02)
    assert types.columns == (*(f"type{k}" for k in range(TYPES)), "(rest)")
    assert roles.values[-1, 0, 1, roles.columns.index("previous token")] == pytest.approx(0.9, abs=0.02)
    assert roles.rows == lags.rows == types.rows


def test_levels_say_what_is_reached_without_context(run):
    loss, context = views(run)["loss"], views(run)["context"]
    assert isinstance(loss, Curves)
    assert isinstance(context, Curves)
    assert {level.name: level.value for level in loss.levels} == {"unigram entropy": 3.2, "uniform": pytest.approx(np.log(40))}
    assert [curve.name for curve in loss.curves if not curve.faint] == ["probe"]
    assert context.frames is not None
    assert context.frames.tolist() == [run.frames - 1]


def test_heads_without_room_are_those_that_moved_least(run, monkeypatch):
    monkeypatch.setattr(watched_views, "MOST_HEADS", 2)
    found = views(replace(run, memo={}))["patterns"]
    assert isinstance(found, Matrices)
    assert "layer 0 head 1" in found.panels
    assert found.across is None
    assert "The 2 of 6 heads" in found.about


def test_layers_of_unequal_heads(run):
    padded = {name: np.array(values) for name, values in run.series.items()}
    for values in padded.values():
        if values.ndim >= 3:
            values[:, 1, 2] = np.nan
    source = {**run.spec["source"], "heads": [3, 2]}
    found = views(replace(run, series=Arrays.of(padded), spec={**run.spec, "source": source}, memo={}))
    assert set(found) == SLOTS
    patterns = found["patterns"]
    assert isinstance(patterns, Matrices)
    assert len(patterns.panels) == 5
    assert np.isfinite(patterns.values).all()


def test_what_a_user_recorded_beside(run):
    extra = replace(run, series=Arrays.of({**run.series, "accuracy": np.linspace(0, 1, run.frames)}), memo={})
    extra = replace(extra, params=Arrays.of({"wte_weight": np.ones((run.frames, 3, 2))}))
    assert set(views(extra)) - SLOTS == {"series-accuracy", "norms", "values", "block-wte_weight"}


def test_absent_arrays_have_no_view():
    everything = tuple(name for name in forged({}, frames=4).series if name not in ("step", "loss"))
    bare = forged({}, frames=30, without=everything, source={"heads": [], "layers": []})
    assert set(views(bare)) == {"loss"}
    assert portrait(bare).stages is not None


@pytest.mark.parametrize(
    ("token", "label"),
    [
        (" the", "␣the"),
        ("\n", "↵"),
        ("\t\r", "⇥␍"),
        ("", "(empty)"),
        ("\x1b[31m", "\\x1b[31m"),
        ("\u202eabc", "\\u202eabc"),
        ("<b>", "<b>"),
        ("\x00", "\\x00"),
        ("é", "é"),
    ],
)
def test_tokens_as_labels(token, label):
    assert token_label(token) == label


def test_long_tokens_are_cut():
    assert len(token_label("x" * 10_000)) == 40
    assert len(token_label("\u202e" * 10_000)) <= 40
    assert token_labels(["a"], 3) == ("a", "1", "2")


def test_what_watch_records_is_known_here():
    observables = pytest.importorskip("stagescope.watching.observer")
    assert set(observables.AXES) <= set(RECORDED)


# several runs, and where a run comes from


def test_seeds_share_a_scene_and_other_models_do_not(run):
    second = forged({}, frames=40, seed=1)
    other = forged({}, frames=20, source={"model": "Other"})
    wider = forged({}, frames=20, heads=2)
    found = scenes_of([portrait(each, name) for each, name in ((run, "a"), (second, "b"), (other, "c"), (wider, "d"))])
    assert [[one.name for one in scene] for scene in found] == [["a", "b"], ["c"], ["d"]]
    assert (scene_title(run), scene_title(other)) == ("Forged", "Other")


def test_provenance_lists_model_and_probe(run):
    rows = dict(provenance(run)["model and probe"])
    assert (rows["model"], rows["heads"], rows["probe: length"]) == ("Forged", "3 3", "32")
    assert rows["probe: shown"].startswith('"T" "h" "e" " "')
    assert dict(provenance(run)["run"])["source"] == "training watched by ss.watch"
