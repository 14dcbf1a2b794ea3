"""Attention on lag groups, how heads split them, and the class a model predicts as."""

from itertools import permutations, product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import stagescope as ss
from stagescope.papers.incremental.levels import class_levels
from stagescope.papers.incremental.limits import LIMITS
from stagescope.papers.incremental.observables import LagCurves, contrast, specialisation


def curves(heads=3, targets=4, frames=1, **params):
    chain = ss.LaggedChain.spans(5, spans=(2, 1), scale=2.0)
    model = ss.PositionalHeads(vocab=5, heads=heads, context=chain.reach, targets=targets)
    law = ss.HeadsLoss(model=model, process=chain, sequences=50)
    start = {name: np.stack([block] * frames) for name, block in model.init(0, 0.0).items()}
    return LagCurves(np.arange(frames, dtype=float), start | params, law)


def looking_at(found, lags):
    """Scores that put head h on lag lags[h] for every target."""
    model = found.law.model
    scores = np.zeros((1, *model.shapes["a"]))
    for head, lag in enumerate(lags):
        for target in range(model.targets):
            scores[0, head, target, model.context + target - lag] = 60.0
    return scores


def test_mass_counts_positions_by_their_lag():
    """Groups are lags (1, 2) and (3): a head on lag 2 is in the first, one on lag 3 in the second."""
    base = curves()
    found = curves(a=looking_at(base, (1, 2, 3)))
    np.testing.assert_allclose(found.mass[0], [[1, 0], [1, 0], [0, 1]], atol=1e-12)
    assert found.agreement[0] == pytest.approx(0.0, abs=1e-12)
    flat = curves(targets=1)
    np.testing.assert_allclose(flat.mass[0], np.tile([2 / 3, 1 / 3], (3, 1)), atol=1e-12)
    assert flat.agreement[0] == pytest.approx(1.0)
    assert flat.contrast[0] == pytest.approx(0.0, abs=1e-12)


def test_contrast_of_a_perfect_split():
    assert contrast(np.eye(3)[None])[0] == pytest.approx(2 / 3)
    assert contrast(np.eye(3)[None, [2, 0, 1]])[0] == pytest.approx(2 / 3), "whoever takes which group"
    assert contrast(np.tile([1.0, 0.0, 0.0], (1, 3, 1)))[0] == pytest.approx(0.0)


def test_excess_is_measured_from_the_truth():
    """Values zero: the uniform prediction, ln d above nothing but the entropy; it predicts as class 0."""
    found = curves()
    entropy = found.held_out.floor
    assert found.excess[0] == pytest.approx(np.log(5) - entropy)
    assert np.argmin(found.divergences(0)) == 0
    assert found.divergences(0)[0] == pytest.approx(0.0, abs=1e-12)
    assert found.steps[-1] == pytest.approx(0.0, abs=0.01)


def test_the_true_heads_predict_as_the_last_class():
    """One head per lag with the true values: no excess, and the nearest class is the whole one."""
    base = curves()
    process = base.law.process
    values = np.stack([process.matrices[0], process.matrices[0], process.matrices[1]])[None]
    found = curves(a=looking_at(base, (1, 2, 3)), V=values)
    assert found.excess[0] == pytest.approx(0.0, abs=1e-9)
    assert np.argmin(found.divergences(0)) == 2
    assert len(class_levels(process, 4).losses) == 3


def content_curves(**params):
    chain = ss.LaggedChain.spans(5, spans=(2, 2), stride=1, scale=2.0)
    model = ss.ContentHeads(vocab=5, heads=2, context=chain.reach, targets=4)
    law = ss.ContentLoss(model=model, process=chain, sequences=50, precision="float32")
    start = {name: block[None] for name, block in model.init(0, 0.0).items()}
    return LagCurves(np.zeros(1), start | params, law)


def test_a_shared_lag_counts_in_both_groups():
    """Groups are lags (1, 2) and (2, 3); heads are put on lags 2 and 1 by the scores of their positions."""
    base = content_curves()
    model = base.law.model
    scores = np.zeros((1, *model.shapes["W"]))
    for head, lag in enumerate((2, 1)):
        for q in range(model.context - 1, model.positions):
            scores[0, head, 5 + q, 5 + q + 1 - lag] = 200.0
    found = content_curves(W=scores)
    np.testing.assert_allclose(found.mass[0], [[1, 1], [1, 0]], atol=1e-9)
    np.testing.assert_allclose(found.entropy, 0, atol=1e-6)
    assert found.agreement[0] == pytest.approx(0.0, abs=1e-9)
    assert found.held_out.precision == "float32"
    uniform = np.log(model.context + np.arange(4)).mean()
    np.testing.assert_allclose(base.entropy, uniform, rtol=1e-12)


def test_attention_by_content_is_a_mean_over_contexts():
    """A head that looks for token 0 finds it where it is: the mean says how often, agreement that heads do not look alike."""
    scores = np.zeros((1, 2, 11, 11))
    scores[0, 0, :5, 0] = 500.0
    found = content_curves(W=scores)
    model, tokens = found.law.model, found.contexts[: LIMITS.attended]
    zero = (tokens[:, None, : model.positions] == 0) & model.visible
    share = np.where(zero.any(axis=2, keepdims=True), zero / np.maximum(zero.sum(axis=2, keepdims=True), 1), model.visible)
    expected = (share / share.sum(axis=2, keepdims=True)).mean(axis=0)
    np.testing.assert_allclose(found.attention[0, 0], expected, atol=1e-9)
    assert found.agreement[0] < 0.8


def test_values_are_measured_along_the_features():
    base = content_curves()
    features = base.law.process.features.stack(2, 5)
    values = np.zeros((1, *base.law.model.shapes["V"]))
    values[0, :, :, :5] = 3.0 * features
    found = content_curves(V=values).alignment
    cosine = np.sum(features[0] * features[1]) / 5
    np.testing.assert_allclose(found[0], 3 * np.sqrt(5) * np.array([[1, cosine], [cosine, 1]]), atol=1e-12)


def test_divergence_from_the_truncated_teachers():
    """The true heads are the whole teacher, whose fitted class is the truth too."""
    base = curves()
    process = base.law.process
    values = np.stack([process.matrices[0], process.matrices[0], process.matrices[1]])[None]
    found = curves(a=looking_at(base, (1, 2, 3)), V=values)
    truncated, fitted = found.truncated_divergences(0), found.divergences(0)
    assert truncated[2] == pytest.approx(0.0, abs=1e-9)
    assert truncated[1] > fitted[1] > 0, "a truncated teacher is too sure of itself"
    assert truncated[0] == pytest.approx(fitted[0])
    assert found.nearest(0)[0] == 2


def test_other_runs_are_refused():
    run = ss.evolve(ss.JaxObjective(lambda p: p["x"] ** 2), {"x": np.array(1.0)}, ss.Descent(lr=0.1, steps=1))
    with pytest.raises(ss.InputError, match="own"):
        ss.lag_curves(run)


# against plain loops


def random_curves(kind, frames=3):
    """Random parameters of a student, frame by frame."""
    made = curves if kind == "heads" else content_curves
    law, rng = made().law, np.random.default_rng(4)
    params = {name: rng.normal(size=(frames, *shape)) for name, shape in law.model.shapes.items()}
    return LagCurves(np.arange(frames, dtype=float), params, law)


def mean_cosine(rows):
    """Every pair of heads by hand."""
    pairs = [(a, b) for i, a in enumerate(rows) for b in rows[:i]]
    dots = [sum(x * y for x, y in zip(a.ravel(), b.ravel(), strict=True)) for a, b in pairs]
    return np.mean([dot / np.sqrt(np.sum(a**2) * np.sum(b**2)) for dot, (a, b) in zip(dots, pairs, strict=True)])


def best_matching(mass):
    """Every way to give heads to groups, the larger side chosen from."""
    heads, groups = mass.shape
    if heads < groups:
        return best_matching(mass.T)
    return max(np.mean([mass[h, i] for i, h in enumerate(taken)]) for taken in permutations(range(heads), groups))


@pytest.mark.parametrize("kind", ["heads", "content"])
def test_observables_equal_plain_loops(kind):
    found = random_curves(kind)
    model, process = found.law.model, found.law.process
    features = process.features.stack(len(process.groups), 5)
    for frame in range(3):
        seen = model.seen(found.at(frame), found.contexts[: LIMITS.attended])
        mass = np.zeros((model.heads, len(process.groups)))
        for h in range(model.heads):
            for i, group in enumerate(process.groups):
                each = [seen[b, h, t, model.context + t - lag] for b in range(len(seen)) for t in range(4) for lag in group]
                mass[h, i] = sum(each) / (4 * len(seen))
        np.testing.assert_allclose(found.mass[frame], mass, atol=1e-12)
        assert found.agreement[frame] == pytest.approx(mean_cosine(np.swapaxes(seen, 0, 1)), abs=1e-12)
        assert found.mass_agreement[frame] == pytest.approx(mean_cosine(mass), abs=1e-12)
        assert found.specialisation[frame] == pytest.approx(best_matching(mass), abs=1e-12)
        assert found.contrast[frame] == pytest.approx(best_matching(mass - mass.mean(axis=0)), abs=1e-12)
        values = found.params["V"][frame][:, :, :5]
        assert found.value_agreement[frame] == pytest.approx(mean_cosine(values), abs=1e-12)
        for h, i in product(range(model.heads), range(len(process.groups))):
            along = sum(values[h, y, x] * features[i, y, x] for y in range(5) for x in range(5))
            assert found.alignment[frame, h, i] == pytest.approx(along / np.sqrt(np.sum(features[i] ** 2)), abs=1e-12)


def test_learned_shares_of_heads_that_read_tokens():
    """Column x of a map: the mean over contexts and targets with x at that lag of attention times values, lag by lag."""
    found = random_curves("content")
    model, process, tokens = found.law.model, found.law.process, found.contexts[: LIMITS.attended]
    seen = model.seen(found.at(1), tokens)
    values = found.params["V"][1][:, :, :5]
    for i, (group, matrix) in enumerate(zip(process.groups, process.matrices, strict=True)):
        for h in range(model.heads):
            share = 0.0
            for lag, x in product(group, range(5)):
                places = [(b, t) for b in range(len(tokens)) for t in range(4) if tokens[b, model.context + t - lag] == x]
                weight = np.mean([seen[b, h, t, model.context + t - lag] for b, t in places])
                share += weight * values[h, :, x] @ matrix[:, x]
            assert found.parts[1, h, i] == pytest.approx(share / (len(group) * np.sum(matrix**2)), abs=1e-12)


@given(st.integers(0, 10**6), st.integers(1, 4), st.integers(1, 4))
def test_matchings_are_the_best_of_all(seed, heads, groups):
    mass = np.random.default_rng(seed).random((1, heads, groups))
    assert specialisation(mass)[0] == pytest.approx(best_matching(mass[0]), abs=1e-12)
    assert contrast(mass)[0] == pytest.approx(best_matching(mass[0] - mass[0].mean(axis=0)), abs=1e-12)


@pytest.mark.parametrize("model", ["mirror", "regression-transformer"])
def test_regression_runs_have_the_same_observables(model):
    more = {"steps": 300, "rate_values": 0.1, "rate_attention": 0.1} if model == "regression-transformer" else {"until": 40.0}
    run = ss.run_study("incremental", model=model, positions=6, init_scale=0.3, frames=12, progress=False, **more)
    found = ss.head_curves(run)
    mass = found.attention[-1][:, :3]
    assert found.mass_agreement[-1] == pytest.approx(mean_cosine(mass), abs=1e-12)
    assert found.specialisation[-1] == pytest.approx(best_matching(mass), abs=1e-12)
    assert found.value_agreement[-1] == pytest.approx(mean_cosine(run.params["V"][-1]), abs=1e-12)
    assert np.isnan(found.value_agreement[0]), "values start at zero and point nowhere"


def test_a_transformer_with_norms_has_no_values_to_compare():
    chain = ss.LaggedChain.spans(5, spans=(2, 1), scale=2.0)
    sizes = {"vocab": 5, "heads": 3, "context": chain.reach, "targets": 2, "width": 6}
    for norm, mlp, is_map in (("layer", 4, False), ("none", 0, True)):
        model = ss.Transformer(**sizes, norm=norm, mlp=mlp)
        law = ss.TransformerLoss(model=model, process=chain, sequences=10)
        found = LagCurves(np.zeros(1), {name: block[None] for name, block in model.init(0).items()}, law)
        assert (found.value_agreement is not None) is is_map
        assert (found.alignment is not None) is is_map
        if is_map:
            assert found.value_agreement[0] == pytest.approx(mean_cosine(model.token_maps(found.at(0))), abs=1e-12)
