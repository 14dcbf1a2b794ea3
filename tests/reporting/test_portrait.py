"""Portraits: every kind of run has one, its numbers are the run's, and what cannot be computed is said."""

import shlex
from dataclasses import replace

import numpy as np
import pytest

import stagescope as ss
from stagescope.cli.main import run as command
from stagescope.reporting.portrait import PARTS, VIEWS, portrait
from stagescope.reporting.provenance import reproduce
from stagescope.reporting.views import Curves, Matrices, Points
from tests.reporting.runs import SMALL, broken, small
from tests.runs.samples import memory_run

SLOW = ("ledger", "ladder")


@pytest.fixture(scope="module")
def made():
    runs = {kind: small(kind) for kind in SMALL}
    return {kind: (run, portrait(run, skip=SLOW)) for kind, run in runs.items()}


def view(found, slot):
    return next(view for view in found.views if view.slot == slot)


def curve(found, slot, name):
    return next(curve.values for curve in view(found, slot).curves if curve.name == name)


@pytest.mark.parametrize("kind", SMALL)
def test_every_view_can_be_made(made, kind):
    """No note but those on what was left out: a view that fails would leave one."""
    run, found = made[kind]
    assert all("left out" in note for note in found.notes), found.notes
    assert [item.slot for item in found.views[:2]] == ["loss", "attention"]
    assert {Curves, Matrices, Points} == {type(item) for item in found.views}
    assert len({item.slot for item in found.views}) == len(found.views)
    for item in found.views:
        frames = run.frames if item.frames is None else len(item.frames)
        arrays = [curve.values for curve in item.curves] if isinstance(item, Curves) else [item.values]
        assert all(len(values) == frames for values in arrays), item.slot
        assert isinstance(item, Curves) or np.isfinite(item.values).all()
        assert item.about.endswith((".", "zero"))
        if isinstance(item, Curves):
            assert 1 <= sum(not curve.faint for curve in item.curves) <= 9
    assert found.stages is not None


def test_a_slot_is_of_one_kind_in_every_run_of_a_study(made):
    """Runs of one study may share a scene, where views of one slot are drawn together."""
    kinds = {}
    for kind, (study, _) in SMALL.items():
        for item in made[kind][1].views:
            assert kinds.setdefault((study, item.slot), type(item)) is type(item), (kind, item.slot)


def test_every_field_type_that_is_read_has_views():
    from stagescope.reading import TABLE

    assert set(VIEWS) == set(TABLE)


def test_token_views_against_the_formula(made):
    """A_ij ~ pi_j exp(Phi_ij); floors are entropies; focus is the column of the frequent token."""
    run, found = made["token"]
    pi, last = np.array([0.5, 0.25, 0.15, 0.10]), run.at(-1)
    weights = pi * np.exp(4.0 * (last["W0"] @ last["WQ"]) @ (last["W0"] @ last["WK"]).T)
    attention = weights / weights.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(view(found, "attention").values[-1, 0], attention, atol=1e-12)
    np.testing.assert_allclose(curve(found, "focus", "query 2")[-1], attention[2, 0], atol=1e-12)
    levels = {level.name: level.value for level in view(found, "loss").levels}
    chain = 0.6 * np.eye(4) + 0.4 * pi
    assert levels["entropy rate"] == pytest.approx(-np.sum(pi[:, None] * chain * np.log(chain)))
    assert levels["without context, H(pi)"] == pytest.approx(-np.sum(pi * np.log(pi)))
    values = np.linalg.svd(last["W0"], compute_uv=False)
    np.testing.assert_allclose([curve(found, "embedding-values", str(k + 1))[-1] for k in range(4)], values)
    np.testing.assert_allclose(curve(found, "excess", "excess"), run.series["loss"] - levels["entropy rate"])


def test_class_attention_and_its_marks(made):
    found = made["pairwise"][1]
    attention = view(found, "attention")
    np.testing.assert_allclose(attention.values.sum(axis=-1), 1.0)
    assert attention.columns == tuple(str(i) for i in range(3 + 2 * 4))
    expected = [[1] * 3 + [2] * 4 + [0] * 4, [1] * 3 + [0] * 4 + [2] * 4]
    np.testing.assert_array_equal(attention.marks.cells, expected)
    mass = attention.values[:, 0, :, :3].sum(axis=-1).mean(axis=1)
    np.testing.assert_allclose(curve(found, "common-mass", "mean"), mass)


def test_a_law_without_a_loss_has_one_computed(made):
    """Along the modified decoder and the mirror law: the loss of the first frame is known."""
    run, found = made["pinv"]
    assert "loss" not in run.series
    assert curve(found, "loss", "loss")[0] == pytest.approx(np.log(run.spec["field"]["model"]["vocab"]))
    gains = np.array([2.89, 1.7, 1.0])
    assert curve(made["mirror"][1], "loss", "loss")[0] == pytest.approx(np.sum(gains**2) / 2)
    levels = [level.value for level in view(made["mirror"][1], "loss").levels]
    np.testing.assert_allclose(levels, [np.sum(gains[j:] ** 2) / 2 for j in range(4)])


def test_lags_of_heads(made):
    """Attention by lag is attention by position, read from each target backwards; marks are the groups."""
    found = made["heads"][1]
    attention, lags = view(found, "attention"), view(found, "lags")
    assert attention.values.shape[1:] == (2, 2, 4), "heads, targets, positions"
    by_hand = (attention.values[:, :, 0, 2] + attention.values[:, :, 1, 3]) / 2
    np.testing.assert_allclose(lags.values[:, 0, :, 0], by_hand)
    np.testing.assert_array_equal(lags.marks.cells, [[1, 2, 0]] * 2)
    np.testing.assert_array_equal(attention.marks.cells, [[0, 2, 1, 0], [0, 0, 2, 1]])
    assert view(found, "loss").levels[0].value == pytest.approx(np.log(4))


@pytest.mark.parametrize("kind", ["token", "pairwise", "heads", "regression"])
def test_numbers_that_are_not_finite_are_shown_as_they_are(made, kind):
    run = broken(made[kind][0], first=made[kind][0].frames // 2)
    found = portrait(run, skip=SLOW)
    assert any("diverged" in note for note in found.notes)
    loss = curve(found, "loss", "loss")
    assert np.isfinite(loss[: run.frames // 2]).all()
    assert np.isnan(loss[-1])
    assert {"loss", "norms"} <= {item.slot for item in found.views}


@pytest.mark.parametrize("kind", ["token", "pairwise", "heads", "regression"])
def test_a_single_frame(made, kind):
    run = replace(made[kind][0].only(np.array([0])), status="failed", reason="the solver gave up")
    found = portrait(run)
    assert any("single frame" in note for note in found.notes)
    assert any("the solver gave up" in note for note in found.notes)
    assert all(len(curve.values) == 1 for curve in view(found, "loss").curves)
    assert found.ladder is None


def test_no_frame_at_all(made):
    found = portrait(made["token"][0].only(np.array([], dtype=int)))
    assert found.views == ()
    assert any("no frame was recorded" in note for note in found.notes)


def test_a_run_of_ones_own():
    found = portrait(memory_run(frames=7))
    assert [item.slot for item in found.views] == ["loss", "norms", "values", "block-W"]
    np.testing.assert_allclose(curve(found, "norms", "W"), np.linalg.norm(found.run.params["W"], axis=(1, 2)))
    assert (found.stages, found.ledger, found.ladder) == (None, None, None)
    assert any("ss.saddle_ladder(run, objective)" in note for note in found.notes)
    assert found.provenance["run"]


def test_an_unknown_law_is_shown_as_any_run():
    run = memory_run()
    run = replace(run, spec={**run.spec, "field": {"type": "Unheard"}})
    found = portrait(run)
    assert "loss" in [item.slot for item in found.views]
    assert any("'Unheard'" in note for note in found.notes)


def test_parts_are_told_and_can_be_skipped(made):
    told = []
    found = portrait(made["pairwise"][0], skip=("ladder",), done=told.append)
    assert tuple(told) == PARTS
    assert found.ledger is not None
    assert found.ladder is None
    assert any("stagescope ladder" in note for note in found.notes)
    with pytest.raises(ss.InputError, match="views"):
        portrait(made["pairwise"][0], skip=("views",))


def test_a_large_general_ladder_is_left_out(made, monkeypatch):
    monkeypatch.setattr("stagescope.reporting.portrait.LARGE", 10)
    for kind in ("pairwise", "heads"):
        found = portrait(made[kind][0], skip=("ledger",))
        assert found.ladder is None
        assert any("takes minutes" in note and "stagescope ladder" in note for note in found.notes)


@pytest.mark.parametrize("kind", ["token", "pairwise", "heads", "regression"])
def test_the_command_on_the_page_makes_the_same_run(made, kind, tmp_path):
    """Parsed by the command line itself, with the same digest of the settings and the same numbers."""
    run = made[kind][0]
    line, python = reproduce(run)
    words = shlex.split(line)
    words[words.index("--out") + 1] = str(tmp_path / "again")
    assert command([*words[1:], "--quiet"]) == 0
    again = ss.load(tmp_path / "again")
    assert again.config_digest == run.config_digest
    np.testing.assert_array_equal(again.params[next(iter(run.params))][-1], run.params[next(iter(run.params))][-1])
    scope: dict = {}
    exec(python.replace("print(ss.check(run))", ""), scope)
    assert scope["run"].config_digest == run.config_digest
