"""The study on the text every machine has, and on WikiText-2 against independently measured numbers."""

import numpy as np
import pytest

import stagescope as ss
from stagescope.cli.main import run as command
from stagescope.core.spec import build
from stagescope.papers.scan_snap.text import reading as text_reading
from stagescope.papers.scan_snap.text.claims import late_motion, rank_correlation
from stagescope.papers.scan_snap.text.observables import TopicAttention, held_out, text_attention
from stagescope.readings.published import published
from stagescope.readings.reading import reading
from stagescope.readings.registry import study
from tests.texts import needs

SMALL = {"model": "transformer", "vocab": 100, "width": 8, "window": 8, "batch": 4, "steps": 60, "progress": False}


def test_a_run_carries_its_words(tmp_path):
    run = ss.run_study("text-snap", steps=60, out=tmp_path / "run", progress=False)
    found = ss.load(tmp_path / "run").config
    assert found is not None
    assert found["words"][0] == "<unk>"
    assert len(found["words"]) == 1000
    assert len(found["next_words"]) == 8
    assert set(found["distinct_words"]) <= set(found["words"])
    assert ss.verify(tmp_path / "run") == []
    assert run.clock == "t"
    assert run.t[-1] == 60


def test_one_word_may_be_given_where_several_may():
    assert study("text-focus").configured(probe="the").probe == ("the",)  # pyright: ignore[reportAttributeAccessIssue]
    assert study("text-snap").configured(nexts="game").nexts == ("game",)  # pyright: ignore[reportAttributeAccessIssue]


def test_decay_is_a_clock_too():
    """t is the sum of the step sizes: lr (1 - q^n)/(1 - q), and q^n is what was asked for."""
    run = ss.run_study("text-snap", steps=50, decay=0.1, lr=2.0, progress=False)
    sizes = 2.0 * 0.1 ** (np.arange(50) / 50)
    assert run.t[-1] == pytest.approx(sizes.sum(), rel=1e-12)


def test_the_transformer_learns_and_is_read():
    run = ss.run_study("text-snap", **{**SMALL, "steps": 200})
    assert run.clock == "step"
    assert run.series["loss"][-1] < run.series["loss"][0] - 0.5
    curves = text_attention(run)
    assert curves.prior_loss < np.log(100)
    law = held_out(build(run.spec["field"]))
    (attention,) = law.attention(run.at(-1))
    rows = attention[:, 1:]
    entropy = -np.sum(rows * np.log(np.where(rows > 0, rows, 1)), axis=2).mean()
    assert curves.entropy[-1] == pytest.approx(entropy, rel=1e-5)
    assert curves.entropy[0] <= np.mean(np.log(np.arange(2, 9))) + 1e-6


def test_a_run_of_two_layers_is_read_by_its_lowest():
    run = ss.run_study("text-snap", **{**SMALL, "steps": 600, "layers": 2, "student": "published", "dropout": 0.1})
    curves = text_attention(run)
    law = held_out(build(run.spec["field"]))
    before, last = (law.attention(run.at(frame))[:, :, 1:] for frame in (-2, -1))
    assert last.shape == (2, 100, 7, 8)
    for i, layer in enumerate(curves.layers):
        assert layer.variation[-1] == pytest.approx(0.5 * np.abs(last[i] - before[i]).sum(axis=2).mean(), rel=1e-5)
        assert layer.argmax_kept[-1] == pytest.approx(np.mean(last[i].argmax(axis=2) == before[i].argmax(axis=2)))
    np.testing.assert_array_equal(curves.entropy, curves.layers[0].entropy)
    np.testing.assert_allclose(curves.motion.variation, curves.layers[0].variation, rtol=1e-5)
    assert not np.allclose(curves.entropy, curves.layers[1].entropy, rtol=1e-3)
    judged = {row.tag: row for row in ss.check(run)}
    for tag in ("SnS:text-rate", "SnS:text-freezing"):
        assert "layer 1" in judged[tag].reason or "lowest" in judged[tag].regime
    assert list(ss.stages(run).events) == ["prior", "peak", "snap"]


def test_a_run_too_short_for_two_checkpoints_is_read():
    run = ss.run_study("text-snap", **{**SMALL, "steps": 3, "layers": 2})
    assert ss.text_attention(run).layers[1].variation.shape == (0,)
    assert [stage.name for stage in ss.stages(run)] == ["prior"]
    assert all(row.verdict != "confirmed" and "raised" not in row.reason for row in ss.check(run))


def test_a_companion_too_large_for_memory_is_the_same_one(monkeypatch):
    """It goes through a folder that is gone afterwards."""
    run = ss.run_study("text-snap", **{**SMALL, "steps": 100, "dropout": 0.1})
    within = reading(run).with_steps({"lr": 1.0})
    monkeypatch.setattr(text_reading, "affordable", lambda *shape: False)
    through = reading(run).with_steps({"lr": 1.0})
    for name in ("step", "loss", "entropy"):
        np.testing.assert_array_equal(getattr(within, name), getattr(through, name))
    np.testing.assert_array_equal(within.motion.ahead, through.motion.ahead)


def test_the_lowest_mlp_has_a_rate_of_its_own():
    """Against the definition: what a step moves a block by is its rate times its gradient, clipped over all blocks."""
    run = ss.run_study("text-snap", **{**SMALL, "steps": 1, "layers": 2, "rate_mlp": 2.0, "lr": 0.1, "clip": 1e9})
    law = build(run.spec["field"])
    _, gradient = law.of_windows(run.at(0), law.minibatch(0))
    for name, block in gradient.items():
        rate = 0.2 if name in "MmNn" else 0.1
        np.testing.assert_allclose(run.params[name][1] - run.params[name][0], -rate * block, atol=1e-7, err_msg=name)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--query", "nonsense"], "no token"),
        (["--query", "sheep"], "no token"),
        (["--vocab", "50", "--query", "iterator"], "outside the vocabulary of 50"),
        (["--query", "of", "--nexts", "the", "of"], "is the query"),
        (["--model", "transformer", "--query", "a"], "belongs to --model topics"),
        (["--width", "8"], "belongs to --model transformer"),
        (["--nexts", "function", "module", "--topics", "3"], "named by --nexts"),
        (["--rate-y", "0"], "take a rate above 0"),
        (["--steps", "100000000000"], "frames would take"),
        (["--corpus", "nowhere.txt"], "there is no corpus 'nowhere.txt'"),
        (["--model", "transformer", "--layers", "9"], "must be less than or equal to 3, got 9"),
        (["--model", "transformer", "--layers", "0"], "must be greater than or equal to 1, got 0"),
        (["--model", "transformer", "--dropout", "1"], "must be less than 1"),
        (["--model", "transformer", "--vocab", "50", "--streams", "70000"], "take fewer --streams"),
        (["--model", "transformer", "--streams", "4", "--batch", "4"], "one window of each of the --streams"),
        (["--layers", "2"], "belongs to --model transformer"),
    ],
)
def test_bad_input_is_one_sentence(tmp_path, capsys, arguments, said):
    assert command(["run", "text-snap", "--out", str(tmp_path / "run"), *arguments]) == 2
    error = capsys.readouterr().err
    assert said in error
    assert "Traceback" not in error
    assert not (tmp_path / "run").exists()


@pytest.mark.long
@needs("wikitext-2")
def test_topical_classes_of_wikitext():
    reference, run = published("stagescope.papers.scan_snap"), ss.run_study("text-snap", "wikitext-2-named", progress=False)
    assert run.config is not None
    for part in ("train_windows", "held_out_windows"):
        expected = reference[f"text_{part}"]
        assert run.config[part] == pytest.approx(expected.value, rel=expected.tolerance)
    seen = text_attention(run)
    assert isinstance(seen, TopicAttention)
    assert seen.growth[seen.process.common].max() < 0
    for measured, name in (
        (rank_correlation(seen.growth, seen.process.distinctness), "rank_correlation"),
        (rank_correlation(seen.growth, seen.process.distinctness, seen.process.share), "rank_correlation"),
        (len(run.config["common_words"]), "common_types"),
        (seen.distinct_mass[-1] / seen.distinct_mass[0], "mass_growth"),
        (late_motion(seen), "late_motion"),
    ):
        expected = reference[f"text_{name}"]
        assert measured == pytest.approx(expected.value, abs=expected.tolerance), name
