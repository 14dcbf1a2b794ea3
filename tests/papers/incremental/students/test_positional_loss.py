"""Positional heads on a lagged chain: the kernel is the definition, draws by seed and step, labels, held-out sequences."""

import numpy as np
import pytest

import stagescope as ss
from stagescope.core.params import Layout
from stagescope.core.spec import build
from stagescope.flow.descent import CompiledLoop, Descent, GradientLoop
from stagescope.papers.incremental.positional_kernel import lists
from stagescope.papers.incremental.students import HeadsLoss

CHAIN = ss.LaggedChain.spans(5, spans=(2, 1), scale=2.0)
MODEL = ss.PositionalHeads(vocab=5, heads=2, context=4, targets=3)


def heads(sequences=60, **more):
    return HeadsLoss(model=MODEL, process=CHAIN, sequences=sequences, **{"seed": 7, **more})


def some_params(model=MODEL, scale=0.5, seed=0):
    rng = np.random.default_rng(seed)
    return {"a": rng.normal(size=model.shapes["a"]), "V": scale * rng.normal(size=model.shapes["V"])}


def tokens_of(loss):
    return loss.all.tokens.T.astype(int)


def test_loss_is_the_mean_over_targets():
    hard, soft, params = heads(), heads(labels="soft"), some_params()
    tokens = tokens_of(hard)
    logits = MODEL.logits(params, tokens)
    predicted = logits - np.log(np.exp(logits).sum(axis=-1, keepdims=True))
    drawn = np.take_along_axis(predicted, tokens[:, 4:, None], axis=-1)
    assert hard.value(params) == pytest.approx(-drawn.mean(), abs=1e-13)
    law = CHAIN.predictive(tokens, 4)
    assert soft.value(params) == pytest.approx(-(law * predicted).sum(axis=-1).mean(), abs=1e-13)


SIZES = [
    (5, 1, 3, 1, 1, "hard"),
    (7, 3, 9, 6, 333, "hard"),
    (46, 2, 4, 3, 50, "soft"),
    (2, 2, 3, 40, 30, "hard"),
    (7, 3, 4, 5, 300, "soft"),
]


@pytest.mark.long
@pytest.mark.parametrize(("vocab", "count", "context", "targets", "sequences", "labels"), SIZES)
def test_kernel_equals_the_definition(vocab, count, context, targets, sequences, labels):
    model = ss.PositionalHeads(vocab=vocab, heads=count, context=context, targets=targets)
    chain = ss.LaggedChain.spans(vocab, spans=(2, 1), scale=2.0)
    loss = HeadsLoss(model=model, process=chain, sequences=sequences, labels=labels)
    for scale in (0.3, 400.0):  # logits of some hundreds would overflow unless shifted
        params = some_params(model, scale)
        defined = float(loss._autodiff.value(params, loss.data))
        assert loss.value(params) == pytest.approx(defined, rel=1e-12, abs=1e-12)
        found, expected = loss.grad(params), loss._autodiff.grad(params, loss.data)
        for name in params:
            np.testing.assert_allclose(found[name], expected[name], rtol=0, atol=1e-12 * max(1.0, scale))
        assert not found["a"][:, ~model.visible].any()


@pytest.mark.long
@pytest.mark.parametrize(("vocab", "count", "context", "targets", "sequences", "labels"), SIZES)
def test_steps_in_single_precision_are_close(vocab, count, context, targets, sequences, labels):
    """Within 1e-6 of the largest slope; 5e-6 where logits of some hundreds cancel. Loss and gradient elsewhere are double."""
    model = ss.PositionalHeads(vocab=vocab, heads=count, context=context, targets=targets)
    chain = ss.LaggedChain.spans(vocab, spans=(2, 1), scale=2.0)
    exact = HeadsLoss(model=model, process=chain, sequences=sequences, labels=labels)
    single = exact.model_copy(update={"precision": "float32"})
    for scale, bound in ((0.3, 1e-6), (400.0, 5e-6)):
        params = some_params(model, scale)
        assert single.value(params) == exact.value(params)
        expected, found = exact.grad(params), single._step_gradient(params, 0)
        for name in params:
            gap = np.abs(found[name] - expected[name]).max()
            assert 0 < gap < bound * np.abs(expected[name]).max() or gap == np.abs(expected[name]).max() == 0
            np.testing.assert_array_equal(single.grad(params)[name], expected[name])
            np.testing.assert_array_equal(exact._step_gradient(params, 0)[name], expected[name])


@pytest.mark.parametrize(("count", "block"), [(1, 1), (10, 4), (8, 4), (5, 9)])
def test_lists_name_every_sequence_once(count, block):
    """Each position of each block: its sequences in their order, under the row of their token."""
    tokens = np.random.default_rng(0).integers(0, 3, (4, count)).astype(np.uint32)
    rows, order, runs, starts = lists(tokens, 3, min(block, count))
    np.testing.assert_array_equal(rows, (3 * np.arange(4)[:, None] + tokens).T)
    for b, s in np.ndindex(runs.shape[:2]):
        first = b * min(block, count)
        found = []
        for k in range(list(runs[b, s]).index(-1)):
            here = order[starts[b, s, k] : starts[b, s, k + 1]]
            assert list(here) == sorted(here)
            found += [(first + int(n), int(runs[b, s, k])) for n in here]
        assert sorted(found) == [(n, int(rows[n, s])) for n in range(first, min(first + block, count))]


def test_lists_are_made_once_for_all_steps():
    loss, params = heads(), some_params()
    loss._step_gradient(params, 0)
    kept = dict(loss.all.cache)
    loss._step_gradient(params, 1)
    assert kept
    assert all(loss.all.cache[name] is made for name, made in kept.items())


def test_gradient_by_finite_differences():
    loss, params, h = heads(), some_params(), 1e-6
    found = loss.grad(params)
    rng = np.random.default_rng(2)
    for _ in range(4):
        along = {name: rng.normal(size=block.shape) for name, block in params.items()}
        ahead, back = ({name: params[name] + sign * h * along[name] for name in params} for sign in (1, -1))
        slope = sum(np.sum(found[name] * along[name]) for name in params)
        assert (loss.value(ahead) - loss.value(back)) / (2 * h) == pytest.approx(slope, abs=1e-8)


def test_values_that_are_not_finite_give_no_number():
    params = some_params()
    params["V"][0, 0, 0] = np.inf
    assert np.isnan(heads().value(params))


def test_draws_depend_on_seed_and_part_alone():
    np.testing.assert_array_equal(heads().all.tokens, heads().all.tokens)
    np.testing.assert_array_equal(heads().all.tokens, heads(labels="soft", batch=5).all.tokens)
    assert not np.array_equal(heads().all.tokens, heads(seed=8).all.tokens)
    assert not np.array_equal(heads().all.tokens, heads(part="held-out").all.tokens)


def test_minibatches_are_parts_of_the_sample():
    loss = heads(batch=20)
    first, again, second = loss.minibatch(3).tokens, heads(batch=20).minibatch(3).tokens, loss.minibatch(4).tokens
    np.testing.assert_array_equal(first, again)
    assert not np.array_equal(first, second)
    assert {tuple(row) for row in first.T} <= {tuple(row) for row in loss.all.tokens.T}
    params, whole = some_params(), heads(batch=60, labels="soft")
    assert whole._kernel(params, whole.minibatch(0))[0] == pytest.approx(whole.value(params), abs=1e-13)
    assert heads().minibatch(0) is None


def test_fresh_sequences_never_repeat():
    loss = heads(fresh=True, batch=100)
    np.testing.assert_array_equal(loss.minibatch(3).tokens, heads(fresh=True, batch=100).minibatch(3).tokens)
    assert not np.array_equal(loss.minibatch(3).tokens, loss.minibatch(4).tokens)
    assert loss.minibatch(0).tokens.shape == (7, 100)
    assert heads(fresh=True).minibatch(0).tokens.shape == (7, 60)


def test_soft_labels_are_hard_ones_in_the_mean():
    params = some_params()
    gaps = [heads(2000, seed=s).value(params) - heads(2000, seed=s, labels="soft").value(params) for s in range(12)]
    assert abs(np.mean(gaps)) < 4 * np.std(gaps) / np.sqrt(12)
    assert np.std(gaps) < 0.03


FRESH = {"fresh": True, "batch": 16, "labels": "soft"}
STEPS = [(ss.GD(), {}), (ss.HeavyBall(momentum=0.8), {}), (ss.Adam(), {}), (ss.AdamW(weight_decay=0.1), {})]
STEPS += [(ss.HeavyBall(), {"batch": 16}), (ss.Adam(), FRESH)]


@pytest.mark.long
@pytest.mark.parametrize(("optimizer", "draws"), STEPS, ids=lambda o: getattr(type(o), "__name__", None))
def test_kernel_steps_equal_the_definition_with_optax(optimizer, draws):
    loss, start, steps = heads(**draws), some_params(scale=0.0), 200 if not draws else 40
    clip = 0.05 if optimizer.flow_time is None else None
    descent = Descent(optimizer=optimizer, rates={"a": 0.3}, lr=0.05, steps=steps, clip=clip)
    layout = Layout.of(start)
    ours = GradientLoop(descent, loss.field(), layout, loss.step_gradient(layout))
    defined = CompiledLoop(descent, loss.field(), layout)
    ends = []
    for loop in (ours, defined):
        carry, done = loop.advance(loop.restore(loop.start(layout.pack(start))), 0, steps)
        assert done == steps
        ends.append(loop.vector(carry))
    np.testing.assert_allclose(*ends, atol=1e-12)
    assert np.abs(ends[0] - layout.pack(start)).max() > 0.01


@pytest.mark.parametrize("draws", [{}, {"batch": 16}, {"fresh": True, "batch": 16}], ids=["all", "batch", "fresh"])
def test_recording_never_changes_a_run_and_masked_scores_stay_zero(draws):
    descent = Descent(optimizer=ss.AdamW(), lr=0.05, steps=40, clip=0.1)
    every, few = (ss.evolve(heads(**draws), MODEL.init(0, 0.1), descent, record=r) for r in (ss.Every(n=1), ss.Every(n=13)))
    for name in ("a", "V"):
        np.testing.assert_array_equal(few.params[name], every.params[name][few.step])
    assert not every.params["a"][:, :, ~MODEL.visible].any()
    assert every.clock == "step"


@pytest.mark.parametrize("precision", [pytest.param("float32", marks=pytest.mark.long), "float64"])
def test_equal_heads_stay_equal(precision):
    model = ss.PositionalHeads(vocab=5, heads=3, context=4, targets=3)
    loss = HeadsLoss(model=model, process=CHAIN, sequences=60, precision=precision)
    run = ss.evolve(loss, model.init(0, 0.0), Descent(optimizer=ss.Adam(), lr=0.05, steps=200), record=ss.Uniform(frames=2))
    for name in ("a", "V"):
        np.testing.assert_array_equal(run.params[name][-1, 0], run.params[name][-1, 1])
        np.testing.assert_array_equal(run.params[name][-1, 0], run.params[name][-1, 2])
    assert np.abs(run.params["V"][-1]).max() > 0.5


def test_held_out_loss_of_recorded_frames():
    run = ss.evolve(heads(), MODEL.init(0, 0.1), Descent(optimizer=ss.Adam(), lr=0.05, steps=30))
    judge = ss.held_out(MODEL, CHAIN, 500, seed=7)
    assert judge.labels == "soft"
    values = judge.values(run.params)
    assert values.shape == (31,)
    assert values[12] == judge.value(run.at(12))
    assert values[0] == pytest.approx(np.log(5), abs=1e-12)
    assert judge.all.soft.shape == (500, 15)
    assert judge.floor == pytest.approx(-(judge.all.soft * np.log(judge.all.soft)).sum() / 1500, abs=1e-12)
    assert np.all(values > judge.floor)


def test_describes_itself_and_refuses_a_flow_of_batches():
    loss = heads(batch=9, labels="soft", precision="float32")
    assert build(loss.describe()) == loss
    assert loss.judge(20).precision == "float32"
    old = {name: value for name, value in loss.describe().items() if name != "precision"}
    assert build(old).precision == "float64"
    with pytest.raises(ss.InputError, match="draws a batch for every step, and a flow has none"):
        ss.evolve(loss, MODEL.init(), ss.GradientFlow(), until=1.0)


def test_bad_choices():
    for fields, words in (
        ({"sequences": 0}, "sequences"),
        ({"batch": 61}, "batch 61 is larger than the 60 sequences"),
        ({"sequences": 10**9}, "these sequences would take .* above .* GiB; take fewer or shorter ones"),
        ({"fresh": True, "batch": 10**9}, "these sequences would take"),
        ({"part": "held-out", "fresh": True}, "held-out sequences are for evaluation"),
        ({"labels": "firm"}, "labels"),
        ({"model": ss.PositionalHeads(vocab=6, heads=1, context=4, targets=1)}, "vocabulary 6 differs from the chain's 5"),
        ({"model": ss.PositionalHeads(vocab=5, heads=1, context=2, targets=1)}, "does not reach back 3 lags"),
    ):
        with pytest.raises(ss.InputError, match=words):
            HeadsLoss(**{"model": MODEL, "process": CHAIN, "sequences": 60, **fields})
