"""The loss on windows of a text: kernel against definition, supports against counting, forms against each other."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import stagescope as ss
from stagescope.core.spec import build
from stagescope.papers.focus_dilution.loss import Contexts, context_slopes
from stagescope.papers.focus_dilution.text.kernel import Supported
from stagescope.papers.focus_dilution.text.model import AttentionVariant, TextCausal, TextCounts, TextVariant

BLOCKS = ("W0", "W1", "WQ", "WK")


@pytest.fixture(scope="module")
def corpus():
    return ss.read_corpus("topics", vocab=30)


@pytest.fixture(scope="module")
def model():
    return ss.TokenAttention(vocab=30, width=6, key_width=4, scale=0.7)


def loss_of(kind, corpus, model, **choices):
    return kind(model=model, process=corpus, **{"length": 20, "batch": 16, "watched": 300, "precision": "float64", **choices})


@pytest.mark.long
@pytest.mark.parametrize("batch", [1, 45], ids=["pairs", "table"])
@pytest.mark.parametrize("kind", [TextCounts, TextCausal])
def test_kernel_is_the_definition(corpus, model, kind, batch):
    law, params = loss_of(kind, corpus, model, watched=40, batch=batch), model.init(1, 0.8)
    assert law.passes.table == (batch == 45)
    definition = law._autodiff
    expected = definition.grad(params, law.data)
    assert law.value(params) == pytest.approx(float(definition.value(params, law.data)), rel=1e-13)
    for name, found in law.grad(params).items():
        np.testing.assert_allclose(found, expected[name], atol=1e-12 * np.max(np.abs(expected[name])))


@pytest.mark.parametrize("kind", [pytest.param(TextCounts, marks=pytest.mark.long), TextCausal])
def test_single_precision_agrees(corpus, model, kind):
    params = model.init(1, 0.8)
    exact, single = (loss_of(kind, corpus, model, precision=p, watched=40) for p in ("float64", "float32"))
    assert single.value(params) == pytest.approx(exact.value(params), rel=1e-5)
    for name, found in single.grad(params).items():
        reference = exact.grad(params)[name]
        np.testing.assert_allclose(found, reference, atol=1e-5 * np.max(np.abs(reference)))


def test_scores_far_apart_do_not_underflow(corpus, model):
    """The strongest type of a row is absent from most windows: what is present must not be lost."""
    params = model.init(3, 1.0)
    params["WQ"] = 40 * params["WQ"]
    exact, single = (loss_of(TextCounts, corpus, model, precision=p) for p in ("float64", "float32"))
    spread = np.ptp(model.scores(params), axis=1).max()
    assert spread > 200
    assert single.value(params) == pytest.approx(exact.value(params), rel=1e-4)


@pytest.mark.long
@pytest.mark.parametrize("size", [1e-2, 100.0], ids=["small", "large"])
def test_logits_of_any_size(corpus, model, size):
    """Large logits are shifted by the largest one, of real types alone: 30 types fill two panels of 16 but for two places."""
    params = model.init(3, 1.0)
    params["W1"] = size * (params["W1"] - 3 * np.abs(params["W0"]).mean())
    law = loss_of(TextCounts, corpus, model)
    exact, expected = float(law._autodiff.value(params, law.data)), law._autodiff.grad(params, law.data)
    assert law.value(params) == pytest.approx(exact, rel=1e-12)
    for name, found in law.grad(params).items():
        np.testing.assert_allclose(found, expected[name], atol=1e-12 * np.max(np.abs(expected[name])))
    single = loss_of(TextCounts, corpus, model, precision="float32")
    assert single.value(params) == pytest.approx(exact, rel=1e-5)


def test_a_number_that_is_not_finite_is_seen(corpus, model):
    params = model.init(0, 0.5)
    for name in params:
        law = loss_of(TextCounts, corpus, model, precision="float32")
        found = law.of_windows({**params, name: np.full_like(params[name], np.nan)}, law.seen)
        assert np.isnan(found[0]), name


def test_supports_are_counts(corpus, model):
    law = loss_of(TextCounts, corpus, model)
    starts = law.minibatch(0)
    found = law.passes.count(corpus.train, *law.spans(starts))
    for row, first in enumerate(starts.tolist()):
        window, here = corpus.train[first : first + 20], slice(*found.begins[row : row + 2].tolist())
        assert len(set(found.types[here])) == here.stop - here.start
        counts = np.zeros(30)
        counts[found.types[here]] = found.counts[here]
        np.testing.assert_array_equal(counts, np.bincount(window, minlength=30))
        assert (found.query[row], found.target[row]) == (window[-1], corpus.train[first + 20])


@settings(max_examples=40)
@given(
    seed=st.integers(0, 10**6),
    vocab=st.integers(2, 70),
    width=st.integers(1, 35),
    inner=st.integers(1, 20),
    length=st.integers(1, 40),
    contexts=st.integers(1, 140),
    unknown=st.sampled_from([0.0, 0.5, 0.97, 1.0]),
    table=st.booleans(),
)
def test_supports_give_what_counts_give(seed, vocab, width, inner, length, contexts, unknown, table):
    """Random windows, some of one type only, against the definition on the counts of all types."""
    draw = np.random.default_rng(seed)
    tokens = np.where(draw.random(500) < unknown, 0, draw.integers(0, vocab, 500)).astype(np.uint16)
    model = ss.TokenAttention(vocab=vocab, width=width, key_width=inner, scale=0.7)
    params, begin = model.init(seed, 0.9), draw.integers(0, 500 - length, contexts)
    support = Supported(model, "float64", length, vocab**2 if table else 0)
    loss, found = support.gradient(params, support.count(tokens, begin, begin + length))
    counts = np.array([np.bincount(tokens[first : first + length], minlength=vocab) for first in begin], dtype=float)
    weights = np.eye(vocab)[tokens[begin + length]] / contexts
    every = Contexts.of(counts, tokens[begin + length - 1].astype(np.int64), weights)
    exact, by_scores, by_product = context_slopes(model.scores(params), params["W0"] @ params["W1"], every)
    query, key = params["W0"] @ params["WQ"], params["W0"] @ params["WK"]
    by_query, by_key = 0.7 * by_scores @ key, 0.7 * by_scores.T @ query
    expected = {
        "W0": by_product @ params["W1"].T + by_query @ params["WQ"].T + by_key @ params["WK"].T,
        "W1": params["W0"].T @ by_product,
        "WQ": params["W0"].T @ by_query,
        "WK": params["W0"].T @ by_key,
    }
    assert loss == pytest.approx(exact, rel=1e-12)
    for name, block in expected.items():
        np.testing.assert_allclose(found[name], block, atol=1e-12 * max(1.0, np.max(np.abs(block))))


def test_a_run_of_version_0_1_0_is_refused(corpus, model):
    """A spec that names no kernel is that of an older run."""
    spec = loss_of(TextCounts, corpus, model).describe()
    assert build(spec).kernel == "support"
    with pytest.raises(ss.InputError, match=r"version 0\.1\.0"):
        build({name: value for name, value in spec.items() if name != "kernel"})


def test_long_windows_are_few_at_once(corpus):
    model = ss.TokenAttention(vocab=60_000, width=1, scale=1.0)
    passes = Supported(model, "float32", 50_000, 1)
    assert (passes.at_once, passes.table) == (83, False)


def test_all_positions_are_the_mean_of_all_prefixes(corpus, model):
    params, starts = model.init(2, 0.9), np.arange(0, 900, 31)
    every = loss_of(TextCausal, corpus, model, length=7).of_windows(params, starts)
    prefixes = [loss_of(TextCounts, corpus, model, length=n).of_windows(params, starts) for n in range(1, 8)]
    assert every[0] == pytest.approx(np.mean([loss for loss, _ in prefixes]), rel=1e-12)
    for name in BLOCKS:
        np.testing.assert_allclose(every[1][name], np.mean([grads[name] for _, grads in prefixes], axis=0), atol=1e-12)


def test_pieces_do_not_change_the_loss(corpus, model):
    params = model.init(2, 0.9)
    whole = loss_of(TextCounts, corpus, model).of_windows(params, np.arange(300))
    law = loss_of(TextCounts, corpus, model)
    parts = [law.of_windows(params, np.arange(first, first + 7)) for first in range(0, 294, 7)]
    parts.append(law.of_windows(params, np.arange(294, 300)))
    sizes = np.array([7] * 42 + [6]) / 300
    assert sizes @ [loss for loss, _ in parts] == pytest.approx(whole[0], rel=1e-12)
    np.testing.assert_allclose(sum(w * g["WQ"] for w, (_, g) in zip(sizes, parts, strict=True)), whole[1]["WQ"], atol=1e-14)


def test_batches_come_from_seed_and_step(corpus, model):
    law = loss_of(TextCounts, corpus, model)
    assert np.array_equal(law.minibatch(5), loss_of(TextCounts, corpus, model).minibatch(5))
    assert not np.array_equal(law.minibatch(5), law.minibatch(6))
    assert not np.array_equal(law.minibatch(5), loss_of(TextCounts, corpus, model, seed=1).minibatch(5))
    many = loss_of(TextCounts, corpus, model, batch=4096).minibatch(0)
    assert many.min() >= 0
    assert many.max() + 20 < len(corpus.train)


def test_windows_of_one_token_are_the_bigram_table(corpus, model):
    """Attention has a single token to look at: the loss is that of rows of W0 W1 under the bigram law, whatever the scores."""
    params = model.init(4, 0.5)
    law = loss_of(TextCounts, corpus, model, length=1, watched=10**9)
    logits = params["W0"] @ params["W1"]
    logs = logits - np.log(np.exp(logits).sum(axis=1, keepdims=True))
    pairs = np.zeros((30, 30))
    np.add.at(pairs, (corpus.train[:-1], corpus.train[1:]), 1 / (len(corpus.train) - 1))
    assert law.value(params) == pytest.approx(-np.sum(pairs * logs), rel=1e-12)


def variant_of(**parts):
    return AttentionVariant(vocab=30, width=6, key_width=4, scale=0.7, length=20, **parts)


def test_a_variant_without_parts_is_attention_alone(corpus, model):
    params = model.init(1, 0.8)
    plain, variant = loss_of(TextCounts, corpus, model), loss_of(TextVariant, corpus, variant_of())
    assert variant.value(params) == pytest.approx(plain.value(params), rel=1e-12)
    for name, found in variant.grad(params).items():
        np.testing.assert_allclose(found, plain.grad(params)[name], atol=1e-12)


@pytest.mark.long
@pytest.mark.parametrize("parts", [{"residual": True}, {"norm": True}, {"positions": True, "residual": True, "norm": True}])
def test_variants_window_by_window(corpus, parts):
    variant = variant_of(**parts)
    law, params = loss_of(TextVariant, corpus, variant, watched=12), variant.init(5, 0.8)
    losses = []
    for first in law.seen.tolist():
        tokens = corpus.train[first : first + 20]
        x = params["W0"][tokens] + (params["P"] if "positions" in parts else 0.0)
        scores = 0.7 * (x[-1] @ params["WQ"]) @ (x @ params["WK"]).T
        weights = np.exp(scores - scores.max())
        stream = weights / weights.sum() @ x + (x[-1] if "residual" in parts else 0.0)
        if "norm" in parts:
            stream = (stream - stream.mean()) / np.sqrt(stream.var() + 1e-10)
        logits = stream @ params["W1"]
        losses.append(np.log(np.exp(logits).sum()) - logits[corpus.train[first + 20]])
    assert law.value(params) == pytest.approx(np.mean(losses), rel=1e-12)


def test_too_short_a_text_is_refused(corpus, model):
    with pytest.raises(ss.InputError, match="too few for one window"):
        loss_of(TextCounts, corpus, model, length=60_000, part="held-out").value(model.init(0, 0.1))


def test_a_flow_is_refused(corpus, model):
    with pytest.raises(ss.InputError, match="batch for every step"):
        ss.evolve(loss_of(TextCounts, corpus, model), model.init(0, 0.1), ss.GradientFlow(), until=1.0, progress=False)


@pytest.mark.parametrize("optimizer", [ss.GD(), ss.Adam()])
def test_steps_in_pieces_are_the_same_steps(corpus, model, tmp_path, monkeypatch, optimizer):
    """A run that is interrupted and resumed ends bit for bit as one that was left alone."""
    from stagescope.flow import evolve as evolving

    law = loss_of(TextCounts, corpus, model, precision="float32")
    dynamics = ss.Descent(optimizer=optimizer, lr=0.01, steps=30)
    whole = ss.evolve(law, model.init(0, 0.1), dynamics, progress=False)
    walk = evolving.Journey.walk

    def cut(journey, state):
        for i, point in enumerate(walk(journey, state)):
            if i == 12:
                raise KeyboardInterrupt
            yield point

    monkeypatch.setattr(evolving, "FIRST_COMMIT", 0.0)
    monkeypatch.setattr(evolving, "NEXT_COMMIT", 0.0)
    with monkeypatch.context() as patch:
        patch.setattr(evolving.Journey, "walk", cut)
        with pytest.raises(ss.Interrupted):
            ss.evolve(law, model.init(0, 0.1), dynamics, out=tmp_path / "run", progress=False)
    resumed = ss.resume(tmp_path / "run", progress=False)
    assert resumed.frames == whole.frames
    for name in BLOCKS:
        np.testing.assert_array_equal(resumed.params[name], whole.params[name])
