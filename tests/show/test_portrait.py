"""Portraits: every kind of run has one, its numbers are the run's, and what cannot be computed is said."""

import shlex
import tracemalloc
from dataclasses import replace

import numpy as np
import pytest

import stagescope as ss
from stagescope.cli.main import run as command
from stagescope.core.ids import named_object
from stagescope.corpora import corpus as text_corpus
from stagescope.readings.registry import studies
from stagescope.runs.run import Arrays, how_to_resume
from stagescope.show.portrait import PARTS, portrait, reproduce
from stagescope.views.any_run import largest, norms
from stagescope.views.view import Curves, Matrices, Points
from tests.runs.samples import memory_run
from tests.show.runs import SMALL, broken, small

SLOW = ("ledger", "ladder")


class Portraits(dict):
    """A small run of each kind and its portrait, made when a test asks for the kind."""

    def __missing__(self, kind):
        run = small(kind)
        self[kind] = run, portrait(run, skip=SLOW)
        return self[kind]


@pytest.fixture(scope="module")
def made():
    return Portraits()


def view(found, slot):
    return next(view for view in found.views if view.slot == slot)


def curve(found, slot, name):
    return next(curve.values for curve in view(found, slot).curves if curve.name == name)


@pytest.mark.long
@pytest.mark.parametrize("kind", SMALL)
def test_every_view_can_be_made(made, kind):
    """No note but those on what was left out: a view that fails would leave one."""
    run, found = made[kind]
    assert all("left out" in note or "no saddle ladder" in note for note in found.notes), found.notes
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


@pytest.mark.long
def test_a_slot_is_of_one_kind_in_every_run_of_a_study(made):
    """Runs of one study may share a scene, where views of one slot are drawn together."""
    kinds = {}
    for kind, (study, _) in SMALL.items():
        for item in made[kind][1].views:
            assert kinds.setdefault((study, item.slot), type(item)) is type(item), (kind, item.slot)


def test_every_field_type_that_is_read_has_views():
    for study in studies().values():
        for kind in study.kinds:
            assert callable(kind.views)
            assert callable(kind.read)
            assert kind.claims()
            assert all(named_object(target) for target in kind.fields)


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


@pytest.mark.long
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
    assert found.stages is not None
    assert [stage.name for stage in found.stages] == ["whole run"]
    assert (found.ledger, found.ladder) == (None, None)
    assert any("--objective" in note for note in found.notes)
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


def test_one_part_to_skip_may_be_a_word(made):
    found = portrait(made["pairwise"][0], skip="ladder")
    assert found.ladder is None
    assert found.ledger is not None
    with pytest.raises(ss.InputError, match="did you mean 'ledger'"):
        portrait(made["pairwise"][0], skip="legder")


def test_a_page_that_is_sent_says_no_path(tmp_path):
    """Neither in commands, nor in what to do with an interrupted run, nor in settings."""
    folder = tmp_path / "secret" / "flow"
    run = memory_run(frames=3).save(folder)
    run = replace(run, status="interrupted", reason=f"interrupted; {how_to_resume(folder, run.spec)}")
    run = replace(
        run,
        config={"transition": "/home/secret/chain.csv"},
        spec={**run.spec, "field": {"type": "focus-dilution/TokenPopulation"}},
    )
    found = portrait(run, skip=SLOW)
    said = [*found.notes, found.run.reason, str(found.provenance)]
    assert not [text for text in said if "secret" in text]
    assert "resume" in found.run.reason
    assert any("`stagescope check` on the folder" in note for note in found.notes)
    assert ("transition", "chain.csv") in found.provenance["settings"]


def test_a_text_that_is_not_at_hand_is_named_without_its_folder(tmp_path, monkeypatch):
    """Nor are the folders named in which it was looked for."""
    monkeypatch.setenv("STAGESCOPE_DATA", str(tmp_path / "secret place" / "data"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "secret"))
    path = tmp_path / "secret place" / "novel.txt"
    path.parent.mkdir()
    path.write_text("a b c b a c a b " * 60)
    monkeypatch.chdir(path.parent)
    options = {"vocab": 3, "window": 2, "heads": 2, "steps": 20, "frames": 12}
    run = ss.run_study("text-incremental", corpus="novel.txt", **options, progress=False)
    whole = portrait(run, skip=SLOW)
    path.unlink()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(text_corpus, "_tokenise", text_corpus._tokenise.__wrapped__)
    found = portrait(run)
    assert any("the corpus novel.txt cannot be found any more: looked for novel.txt with sha256" in note for note in found.notes)
    assert not [note for note in (*found.notes, str(found.provenance)) if "secret" in note]
    assert found.ledger is None
    assert found.stages == whole.stages
    assert [item.slot for item in found.views] == [item.slot for item in whole.views]
    assert view(found, "value-maps").rows == view(whole, "value-maps").rows == ("a", "b", "c")
    np.testing.assert_array_equal(curve(found, "loss", "loss"), curve(whole, "loss", "loss"))


def about_of(run, slot):
    """Read afresh: limits may have changed since the run was read."""
    return view(portrait(replace(run, memo={}), skip=SLOW), slot).about


@pytest.mark.parametrize(
    ("kind", "slot", "where", "limit", "said"),
    [
        ("pairwise", "tokens", "papers.scan_snap.views.NAMED", 2, "The first 1 of 2 classes are drawn."),
        ("pairwise", "embedding", "papers.scan_snap.views.MOST_POINTS", 3, "The first 3 of 11 tokens are drawn."),
        ("pairwise", "decoder", "papers.scan_snap.views.WIDEST", 5, "The first 5 of 11 tokens are drawn."),
        ("token", "embedding-values", "papers.focus_dilution.views.NAMED", 2, "The first 2 of 4 values are drawn."),
        ("token", "embedding", "papers.focus_dilution.views.MOST_POINTS", 2, "The 2 most frequent of 4 tokens are drawn."),
        ("transformer", "embedding", "papers.incremental.views.MOST_POINTS", 3, "The first 3 of 4 tokens are drawn."),
        ("heads", "loss", "papers.incremental.views.CELLS", 100, "The held-out loss is known at fewer frames"),
        ("heads", "values", "views.any_run.LARGEST_VALUES", 1, "At most 1 of each matrix are drawn, of up to 4."),
    ],
)
def test_what_is_left_out_is_said(made, kind, slot, where, limit, said, monkeypatch):
    run, whole = made[kind]
    assert said not in view(whole, slot).about
    monkeypatch.setattr(f"stagescope.{where}", limit)
    assert said in about_of(run, slot)


def test_blocks_that_are_not_drawn_are_counted(monkeypatch):
    run = memory_run(frames=3)
    assert "too large" not in about_of(run, "norms")
    many = replace(run, params=Arrays.of({f"w{i}": np.ones((3, 1)) for i in range(14)}))
    found = portrait(many, skip=SLOW)
    assert sum(item.slot.startswith("block-") for item in found.views) == 12
    assert "The first 12 of 14 small blocks are drawn." in view(found, "norms").about
    wide = np.ones((3, 1, 129))
    run = replace(run, params=Arrays.of({"wide": wide}), axes={"wide": ("t", "wide_0", "wide_1")})
    assert "Blocks too large to be drawn cell by cell: 1 of" in about_of(run, "norms")


def test_blocks_without_named_axes():
    """A stack of matrices has parts with values, a vector is one row with the name of its block."""
    rng = np.random.default_rng(0)
    blocks = {"S": rng.normal(size=(4, 2, 3, 3)), "v": rng.normal(size=(4, 5))}
    run = replace(memory_run(frames=4), params=Arrays.of(blocks), axes={"S": ("t", "S_0", "S_1", "S_2"), "v": ("t", "v_0")})
    found = portrait(run)
    largest_ones = [np.linalg.norm(block, 2) for block in blocks["S"][:, 1]]
    np.testing.assert_allclose(curve(found, "values", "S part 2, value 1"), largest_ones)
    stack, vector = view(found, "block-S"), view(found, "block-v")
    assert stack.panels == ("S, part 1", "S, part 2")
    assert (stack.row_axis, stack.column_axis) == ("row", "column")
    assert (vector.rows, vector.row_axis, vector.column_axis) == (("v",), "block", "column")


def test_levels_do_not_end_in_a_number(made):
    """The page puts the value behind the name: "opens at 0.1 0.1" would be read as one."""
    for kind in ("token", "heads"):
        for item in made[kind][1].views:
            for level in item.levels if isinstance(item, Curves) else ():
                assert item.slot == "focus" or not level.name[-1].isdigit(), level.name


def test_norms_in_parts_are_the_norms(monkeypatch):
    block = np.random.default_rng(0).normal(size=(23, 4, 5)).astype(np.float32)
    monkeypatch.setattr("stagescope.views.curves.TOGETHER", 60)
    np.testing.assert_allclose(norms(block), np.sqrt(np.sum(block.astype(float) ** 2, axis=(1, 2))))
    assert norms(np.ones((3,))).tolist() == [1.0] * 3


def test_norms_and_ranges_need_no_copy_of_a_block():
    block = np.ones((1600, 100, 100))
    tracemalloc.start()
    assert norms(block)[0] == 100
    assert largest(block) == 1
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < block.nbytes * 0.75


def test_a_large_general_ladder_is_left_out(made, monkeypatch):
    monkeypatch.setattr("stagescope.show.portrait.LARGE", 10)
    for kind in ("pairwise", "heads"):
        found = portrait(made[kind][0], skip=("ledger",))
        assert found.ladder is None
        assert any("from minutes to hours" in note and "stagescope ladder" in note for note in found.notes)


@pytest.mark.parametrize("kind", ["token", "pairwise", "heads", "regression"])
def test_the_command_on_the_page_makes_the_same_run(made, kind, tmp_path):
    """Parsed by the command line itself, with the same digest of the settings and the same numbers."""
    run = made[kind][0]
    found = reproduce(run)
    assert found is not None
    line, python = found
    words = shlex.split(line)
    words[words.index("--out") + 1] = str(tmp_path / "again")
    assert command([*words[1:], "--quiet"]) == 0
    again = ss.load(tmp_path / "again")
    assert again.config_digest == run.config_digest
    np.testing.assert_array_equal(again.params[next(iter(run.params))][-1], run.params[next(iter(run.params))][-1])
    scope: dict = {}
    exec(python.replace("print(ss.check(run))", ""), scope)
    assert scope["run"].config_digest == run.config_digest
