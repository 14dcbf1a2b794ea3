"""The study's options, what is refused, and the stages its presets show."""

from itertools import pairwise

import numpy as np
import pytest

import stagescope as ss
from stagescope.core.spec import build
from stagescope.papers.incremental.students import ngram_law
from stagescope.readings.published import published
from stagescope.readings.rebuild import rebuilt


def plan(preset=None, seed=0, **options):
    study = ss.study("incremental")
    return study.setup(study.configured(preset, **options), seed)


def test_options_reach_the_task_and_the_model():
    made = plan("gd-ladder", seed=4, heads=2, batch=10, reverse=True)
    chain, model = made.what.process, made.what.model
    assert chain.groups == ((3,), (2,), (1,))
    assert chain.importances == pytest.approx((1.7**2, 1.7, 1.0))
    assert (model.heads, model.context, model.targets) == (2, 8, 1)
    assert (made.what.seed, made.what.batch, made.what.labels) == (4, 10, "soft")
    assert made.params["a"].shape == (2, 1, 8)
    stepped = plan(spans=(4, 4), stride=2, span_weights=(0.4, 0.3, 0.2, 0.1), fresh=True).what
    assert stepped.process.groups == ((1, 2, 3, 4), (3, 4, 5, 6))
    assert stepped.process.weights == ((0.4, 0.3, 0.2, 0.1),) * 2
    assert stepped.fresh


def test_rates_are_step_sizes():
    adam = plan("ladder").dynamics
    assert (adam.lr, adam.lr * adam.rates["a"], adam.clip, adam.clock) == (0.05, pytest.approx(0.01), 1.0, "step")
    assert plan(optimizer="adamw", weight_decay=0.2).dynamics.optimizer == ss.AdamW(weight_decay=0.2)
    ball = plan(optimizer="heavy-ball", momentum=0.5, rate_values=2.0).dynamics
    assert (ball.clock, ball.times(10)["t"]) == ("t", pytest.approx(40.0))


def test_presets_are_the_settings_of_the_page():
    b = plan("gd-ladder")
    assert (b.dynamics.lr, b.dynamics.rates, b.dynamics.steps) == (5.0, {"V": 1.0, "a": 1.0}, 2400)
    assert (b.what.process.groups, b.what.model.positions, b.what.model.targets) == (((1,), (2,), (3,)), 8, 1)
    assert (b.what.process.vocab, b.what.process.features.kind, b.what.labels) == (10, "gram-schmidt", "soft")
    mirror, exact = plan("published-flow"), plan("ode-exact")
    assert (type(mirror.what), type(exact.what)) == (ss.MirrorFlow, ss.RegressionLoss)
    for made in (mirror, exact):
        assert (made.what.model.positions, made.what.model.heads) == (40, 3)
        assert made.what.model.gains == pytest.approx((1.7**2, 1.7, 1.0))
        weights = made.what.model.attention(made.params)
        assert np.std(weights) == pytest.approx(1e-6, rel=0.2)
        assert made.dynamics.rtol == 1e-12
    transformer = plan("regression-transformer")
    assert (transformer.what.batch, transformer.what.model.dim, transformer.dynamics.lr) == (128, 8, 0.03)


def test_initial_scores_have_a_draw_of_their_own():
    same, other = plan("gd-ladder", seed=8), plan("gd-ladder", seed=9)
    np.testing.assert_array_equal(same.params["a"], other.params["a"])
    assert same.what.seed != other.what.seed
    np.testing.assert_array_equal(plan(seed=3).params["a"], plan(seed=5, init_seed=3).params["a"])
    mirror = plan("published-flow", init_seed=4)
    np.testing.assert_array_equal(mirror.params["a"], mirror.what.model.init(4, 1e-6, "weights")["a"])


@pytest.mark.parametrize(("preset", "last"), [("published-flow", 300.0), ("ode-exact", 2000.0)])
def test_flows_show_three_stages(preset, last):
    found = ss.stages(ss.run_study("incremental", preset, progress=False, until=last))
    assert [stage.name for stage in found] == ["start", "plateau 1", "plateau 2", "plateau 3"]


def test_features_from_a_file(tmp_path):
    given = np.random.default_rng(0).normal(size=(3, 20, 20))
    np.save(tmp_path / "a.npy", given)
    made = plan(features=tmp_path / "a.npy")
    np.testing.assert_allclose(made.what.process.matrices, given * np.array([14.45, 8.5, 5.0])[:, None, None])
    assert len(made.facts["features_digest"]) == 64


def test_students_of_the_paper():
    """The minimal student of figure 1 and the full one, with the sizes of the paper."""
    minimal = plan("published", seed=2)
    assert minimal.what.model == ss.ContentHeads(vocab=50, heads=3, context=6, targets=20)
    assert (minimal.what.sequences, minimal.what.batch, minimal.what.precision) == (9000, 3000, "float32")
    assert (minimal.dynamics.lr, minimal.dynamics.clip, minimal.dynamics.rates) == (0.08, 1.0, {"V": 1.0, "W": 1.0})
    assert 0.9e-9 < np.abs(minimal.params["W"]).max() <= 1e-9
    xavier = plan("published-xavier").params
    assert [np.abs(xavier[name]).max() for name in "WV"] == pytest.approx([0.2, 0.2], rel=2e-3)
    whole = plan("published-transformer", dropout=0.0, places="sinusoidal").what
    assert whole.model == ss.Transformer(vocab=50, heads=3, context=12, targets=20, dropout=0.0, places="sinusoidal")
    assert (whole.model.width, whole.model.mlp, whole.precision) == (255, 64, "float32")
    assert plan("published-transformer", student="pre-norm").what.model.student == "pre-norm"
    first = plan("published-transformer", dropout_steps="first-of-pass").what
    assert [first.draw(step).get("kept") is None for step in range(4)] == [False, True, True, False]


def test_experiments_of_the_paper():
    """What distinguishes the published experiments: numbers of the page of settings."""
    two = plan("published-two-layers")
    assert {name: block.shape[0] for name, block in two.params.items()} == dict.fromkeys(("W1", "V1", "W2", "V2"), 3)
    assert two.params["V1"].shape[1:] == (81, 81)
    assert (two.what.sequences, two.dynamics.lr, two.what.process.importances[0]) == (27000, 0.04, 10 * 1.8**2)
    assert set(two.dynamics.rates) == set(two.params)
    deep = plan("published-transformer-2")
    assert (deep.what.model.layers, deep.dynamics.lr, deep.what.process.importances[0]) == (2, 0.001, pytest.approx(28.9))
    far = plan("published-reversed").what.process
    assert far.groups == (tuple(range(13, 15)), tuple(range(9, 13)), tuple(range(1, 9)))
    assert far.importances == pytest.approx((78.125, 31.25, 12.5))
    assert plan("published-reversed").dynamics.lr == 0.002
    matrices = plan("published-orthogonal").what.process.matrices
    assert np.einsum("iyx,jyx->ij", matrices, matrices) == pytest.approx(np.diag(np.square(matrices).sum(axis=(1, 2))), abs=1e-6)
    assert plan("published-weighted").what.process.group_weights(0) == (0.3, 0.7)
    assert plan("published-overlapping").what.model.heads == 4
    sgd = plan("published-sgd")
    assert (type(sgd.dynamics.optimizer).__name__, sgd.dynamics.lr, sgd.what.process.importances[0]) == ("HeavyBall", 0.2, 40.0)


def test_learned_ngrams_see_the_nearest_spans():
    """4-, 8- and 12-grams of spans 4 4 4; of reversed spans 2 4 8 the nearest are 8, then 4 lags."""
    lags = {
        ("published-transformer", 1): 4,
        ("published-transformer", 2): 8,
        ("published-reversed", 1): 8,
        ("published-reversed", 2): 12,
        ("published-overlapping", 2): 6,
    }
    for (preset, spans), context in lags.items():
        loss = plan(preset, ngram=spans, clip=None, sequences=40, batch=20, watched=10).what
        assert (loss.model.context, loss.model.targets, loss.drawn) == (context, 1, 20)
        assert loss.all.tokens.shape == (context + 1, 800)
    student = plan("published-xavier", sequences=40, batch=20, watched=10).what
    loss = plan("published-xavier", ngram=1, sequences=40, batch=20, watched=10).what
    tokens = student.all.by_sequence
    windows = loss.all.by_sequence.reshape(40, 20, 3)
    np.testing.assert_array_equal(windows[:, :, -1], tokens[:, 6:])
    np.testing.assert_array_equal(windows[:, 0, :2], tokens[:, 4:6])
    np.testing.assert_array_equal(loss.minibatch(3).by_sequence[::20, -1], student.minibatch(3).by_sequence[:, 6])
    run = ss.run_study(
        "incremental",
        "published-xavier",
        ngram=1,
        clip=None,
        vocab=6,
        sequences=40,
        batch=20,
        watched=10,
        steps=30,
        progress=False,
    )
    assert run.series["loss"][-1] < run.series["loss"][0]
    loss = rebuilt(run.spec["field"])
    law = ngram_law(loss, run.at(-1), loss.process.sample(np.random.default_rng(0), 5, 20))
    assert law.shape == (5, 20, 6)
    np.testing.assert_allclose(law.sum(axis=2), 1)
    with pytest.raises(ss.InputError, match="no claims are written for runs of 'incremental/ContentNgram'"):
        ss.check(run)


def test_features_listed_from_the_farthest(tmp_path):
    """The nearest group is the most important one, so the file is read backwards; with the farthest, as it is."""
    given = np.random.default_rng(0).normal(size=(3, 20, 20))
    np.save(tmp_path / "a.npy", given)
    for reverse, expected in ((False, given[::-1]), (True, given)):
        chain = plan(features=tmp_path / "a.npy", feature_order="farthest-first", reverse=reverse).what.process
        np.testing.assert_allclose(chain.matrices, expected * np.array([14.45, 8.5, 5.0])[:, None, None])


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"layers": 2}, "belongs to --model transformer"),
        ({"model": "content", "layers": 2}, "give --init xavier"),
        ({"student": "pre-norm"}, "belongs to --model transformer"),
        ({"ngram": 1}, "belongs to --model content or transformer"),
        ({"model": "content", "ngram": 4}, "there are 3 spans"),
        ({"model": "content", "ngram": 1, "labels": "soft"}, "the tokens drawn"),
        ({"model": "mirror", "precision": "float32"}, "the regression models are float64"),
        ({"init": "xavier"}, "belongs to --model content"),
        ({"model": "content", "init": "xavier", "init_scale": 0.1}, "the scale is that of --init xavier"),
        ({"model": "transformer", "rate_attention": 0.1}, "one step size"),
        ({"feature_order": "farthest-first"}, "the features are random"),
        ({"momentum": 0.5}, "--momentum 0.5 .* has no effect here: adam"),
        ({"weight_decay": 0.5}, "choose --optimizer adamw"),
        ({"features": "a.npy", "feature_kind": "centred"}, "the features come from --features"),
        ({"record": "every-step", "frames": 7}, "every step is recorded"),
        ({"spans": (2,), "stride": 3}, "--stride 3 .* one group"),
        ({"spans": (2,), "reverse": True}, "--reverse True .* one group"),
        ({"spans": (2,), "importance_ratio": 2.0}, "--importance-ratio 2.0 .* one group"),
        ({"spans": (2,), "features": "a.npy", "feature_order": "farthest-first"}, "--feature-order .* one group"),
        ({"model": "mirror", "positions": 2}, r"3 gains need at least 3 positions, got 2; raise .*--positions.*--gains"),
        ({"importance_ratio": 0.5}, r"^--importance-ratio: must be greater than or equal to 1, got 0\.5; the default is 1\.7$"),
        ({"batch": 4000}, "batch 4000 is larger than the 3000 sequences"),
        ({"model": "full"}, "model"),
        ({"positions": 12}, "--positions 12 .* belongs to the regression models"),
        ({"model": "regression", "vocab": 7}, "--vocab 7 .* regression is a flow"),
        ({"model": "mirror", "optimizer": "gd"}, "--optimizer gd .* mirror is a flow"),
        ({"model": "mirror", "batch": 3}, "--batch 3 .* mirror is a flow"),
        ({"model": "regression-transformer", "until": 5.0}, "--until 5.0 .* descends on vector tokens"),
    ],
)
def test_what_would_be_ignored_is_refused(options, words):
    with pytest.raises(ss.InputError, match=words):
        plan(**options)


def staircase(run, seed, sequences):
    """Held-out losses, computed levels, and the steps at which the loss is half-way between two levels."""
    law = build(run.spec["field"])
    levels = ss.class_levels(law.process, law.model.targets, law.model.context - law.process.reach).losses
    judge = ss.held_out(law.model, law.process, sequences, seed)
    loss = judge.values(run.params) - judge.floor + levels[-1]  # without the noise of the contexts drawn
    events = [run.step[np.argmax(loss < middle)] for middle in (levels[1:] + levels[:-1]) / 2]
    assert np.sum(run.step < events[0]) >= 5
    return run.step, loss, levels, [*events, run.step[-1] + 1]


def shoulders(step, loss, events):
    """The loss where it moves least per ln(step) between two events."""
    slope = np.abs(np.gradient(loss, np.log(np.maximum(step, 0.5))))
    between = [(step > first) & (step < last) for first, last in pairwise(events)]
    return [loss[inside][np.argmin(slope[inside])] for inside in between]


@pytest.fixture(scope="module")
def ladder():
    """Setting A on a draw of features and sequences."""
    return ss.run_study("incremental", "ladder", feature_seed=7, frames=120, progress=False)


@pytest.fixture(scope="module")
def found(ladder):
    return ss.stages(ladder)


@pytest.mark.long
def test_stages_of_setting_a(found):
    """Three transitions in order; heads agree on the dominant group, then split; the nearest class is the stage."""
    events = found.events
    assert 15 < events["t1"] < 40 < events["onset"] < events["t2"] < events["t3"]
    names = [stage.name for stage in found]
    assert names == ["start", "plateau 1", "passage 2", "plateau 3"], "on this draw the loss hardly slows down before t_3"
    first, second, last = facts = [stage.facts for stage in found][1:]
    assert (first["heads"], first["top_groups"]) == ("competitive", [1, 1, 1])
    assert (first["between"], second["between"]) == (True, False)
    assert last["heads"] == "cooperative"
    assert [fact["nearest_class"] for fact in facts] == [1, 2, 3]


@pytest.mark.long
def test_the_ladder_has_three_stages(ladder):
    step, loss, levels, events = staircase(ladder, 0, 2000)
    expected = published("stagescope.papers.incremental")["ladder-transitions"]
    for event, (low, high) in zip(events, expected.value, strict=False):
        assert (1 - expected.tolerance) * low < event < (1 + expected.tolerance) * high
    gaps = (shoulders(step, loss, events) - levels[1:]) / -np.diff(levels)
    assert np.all(gaps > -0.02)
    assert np.all(gaps < 0.12)


@pytest.mark.long
def test_gradient_descent_waits_at_the_levels_of_the_classes():
    """Scale 1, rate 5, 2400 steps: with the preset's draw of the initial scores all three stages show."""
    run = ss.run_study("incremental", "gd-ladder", seed=1, progress=False, frames=100)
    step, loss, levels, events = staircase(run, 1, 10000)
    assert events[0] < events[1] < events[2] < 2400
    gaps = (shoulders(step, loss, events) - levels[1:]) / -np.diff(levels)
    np.testing.assert_allclose(gaps, 0, atol=0.021)
