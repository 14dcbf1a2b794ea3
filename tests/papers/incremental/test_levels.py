"""Levels of the restricted classes: nested, exact where they can be, the numbers of the paper's tasks, and the cache."""

import os
from itertools import product
from pathlib import Path

import numpy as np
import pytest

import stagescope as ss
from stagescope.core.caches import VARIABLE, cache_folder
from stagescope.papers.incremental import levels as levels_module
from stagescope.papers.incremental.levels import _all_contexts, _levels, fit, true_moments
from stagescope.papers.incremental.panels import FILE
from stagescope.readings.published import published

REFERENCE = published("stagescope.papers.incremental")


@pytest.fixture(autouse=True)
def own_cache(tmp_path, monkeypatch):
    monkeypatch.setenv(VARIABLE, "")  # not delenv: what is set in a test would stay where there was nothing
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    _levels.cache_clear()


@pytest.mark.long
def test_levels_are_nested_and_below_the_truncated_teachers():
    """Setting A of the paper's task, two draws of the features."""
    for kind, seed in (("orthogonal", 1), ("centred", 0)):
        chain = ss.LaggedChain.spans(20, features=ss.RandomFeatures(kind=kind, seed=seed))
        found = ss.class_levels(chain, targets=10, sequences=1500)
        assert found.converged
        assert not found.exact
        assert found.losses[0] == np.log(20)
        assert np.all(np.diff(found.losses) < -0.1)
        assert found.bayes == found.losses[-1]
        np.testing.assert_allclose(found.losses, found.training, atol=0.03)
        expected = REFERENCE["ladder-levels"]
        low, high = np.transpose(expected.value)
        np.testing.assert_array_less(low - expected.tolerance, found.losses[1:])
        np.testing.assert_array_less(found.losses[1:], high + expected.tolerance)


def test_the_full_class_fitted_is_the_truth():
    """l_k is taken from the truth; a fit of F_k from zero agrees."""
    chain = ss.LaggedChain.spans(6, (1, 1), scale=2.0)
    contexts = _all_contexts(chain)
    known, moments = contexts.known_to(2), true_moments(contexts)
    matrices, converged = fit(known, moments)
    assert converged
    assert known.loss(matrices, moments) == pytest.approx(ss.class_levels(chain, 1).bayes, abs=1e-6)


def test_one_target_after_uniform_tokens_is_exact():
    """Levels by enumeration, against the mean law given what the class knows and against a large sample."""
    chain = ss.LaggedChain.spans(10, (1, 1, 1), scale=1.0, features=ss.RandomFeatures(kind="gram-schmidt"))
    found = ss.class_levels(chain, targets=1, pad=5)
    assert found.exact
    tokens = np.indices((10,) * 4).reshape(4, -1).T[::10]
    law = chain.predictive(tokens)[:, 0]
    nearest = np.array([law[tokens[:, 2] == x].mean(axis=0) for x in range(10)])
    assert found.losses[1] == pytest.approx(-np.sum(nearest * np.log(nearest)) / 10, abs=1e-6)
    np.testing.assert_allclose([item.loss(tokens) for item in found.fits], found.losses, atol=1e-12)
    sampled = ss.class_levels(chain, targets=1, pad=5, sequences=999)
    assert not sampled.exact
    np.testing.assert_allclose(sampled.losses, found.losses, atol=0.05)


def test_shared_lags_and_weights():
    chain = ss.LaggedChain.spans(6, (3, 3), scale=2.0, stride=1, span_weights=(0.6, 0.3, 0.1))
    found = ss.class_levels(chain, targets=5, sequences=1000)
    assert found.converged
    assert found.losses[0] > found.losses[1] > found.losses[2]
    assert [len(item.matrices) for item in found.fits] == [0, 1, 2]


def test_levels_are_kept_on_disk_and_in_memory(monkeypatch):
    chain = ss.LaggedChain.spans(5, (1, 1))
    first = ss.class_levels(chain, 3, sequences=50)
    assert ss.class_levels(chain, 3, sequences=50) is first
    with pytest.raises(ValueError, match="read-only"):
        first.losses[0] = 0
    _levels.cache_clear()
    with monkeypatch.context() as patch:
        patch.setattr(levels_module, "_fit_levels", None)
        again = ss.class_levels(chain, 3, sequences=50)
        with pytest.raises(TypeError):
            ss.class_levels(chain, 3, sequences=50, seed=1)
        with pytest.raises(TypeError):
            ss.class_levels(chain, 3, sequences=50, disk=False)
    np.testing.assert_array_equal(again.losses, first.losses)
    np.testing.assert_array_equal(again.fits[1].matrices, first.fits[1].matrices)


@pytest.mark.parametrize("damage", [b"", b"not safetensors", "cut", "flipped", "other shapes"])
def test_damaged_files_are_computed_anew(damage):
    chain = ss.LaggedChain.spans(5, (1, 1))
    first = ss.class_levels(chain, 3, sequences=50)
    (path,) = cache_folder("levels").iterdir()
    if damage == "other shapes":
        ss.class_levels(ss.LaggedChain.spans(4, (1, 1)), 3, sequences=50)
        damage = next(other for other in path.parent.iterdir() if other != path).read_bytes()
    whole = path.read_bytes()
    changed = {"cut": whole[:-8], "flipped": whole[:-50] + bytes([whole[-50] ^ 1]) + whole[-49:]}
    path.write_bytes(changed.get(damage, damage))
    _levels.cache_clear()
    np.testing.assert_array_equal(ss.class_levels(chain, 3, sequences=50).losses, first.losses)


def test_no_place_for_a_cache_is_no_error(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    assert ss.class_levels(ss.LaggedChain.spans(5, (1, 1)), 3, sequences=50).converged


def test_bad_requests():
    chain = ss.LaggedChain.spans(5, (1, 1))
    for fields, words in (((0,), "targets is 0"), ((3, -1), "pad is -1"), ((3, 0, 0), "sequences is 0")):
        with pytest.raises(ss.InputError, match=words):
            ss.class_levels(chain, *fields)
    with pytest.raises(ss.InputError, match=r"sample would take .* GiB .*; take fewer sequences"):
        ss.class_levels(chain, 20, sequences=10**9)


@pytest.mark.long
@pytest.mark.skipif("STAGESCOPE_DATA" not in os.environ, reason="STAGESCOPE_DATA is not set: no features of the authors' seed 0")
def test_the_levels_of_the_authors_task():
    """d = 50, scale 10, 20 targets. The file lists the farthest span first and the nearest one dominates, hence `reverse`."""
    path = Path(os.environ["STAGESCOPE_DATA"]) / FILE
    chain = ss.LaggedChain.spans(50, scale=10.0, features=ss.read_features(path, reverse=True))
    found = ss.class_levels(chain, targets=20, sequences=2000)
    levels, bayes = REFERENCE["levels"], REFERENCE["bayes"]
    np.testing.assert_allclose(found.losses, levels.value, atol=levels.tolerance)
    assert found.bayes == pytest.approx(bayes.value, abs=bayes.tolerance)


def test_levels_equal_a_brute_force_fit():
    """Three tokens, one target: every context listed, each class fitted by a general minimiser on a loss written out in loops."""
    from scipy.optimize import minimize

    chain = ss.LaggedChain.spans(3, (1, 2), scale=1.5, ratio=2.0, features=ss.RandomFeatures(seed=3))
    contexts = list(product(range(3), repeat=3))  # x_{t-1}, x_{t-2}, x_{t-3}
    features = chain.features.stack(2, 3)

    def softmax_of(z):
        return np.exp(z) / np.exp(z).sum()

    def law(context):
        near, middle, far = context
        return softmax_of(3.0 * features[0][:, near] + 1.5 * (features[1][:, middle] + features[1][:, far]))

    def loss(flat, groups):
        w, total = flat.reshape(groups, 3, 3), 0.0
        for context in contexts:
            z = w[0][:, context[0]]
            if groups == 2:
                z = z + w[1][:, context[1]] + w[1][:, context[2]]
            total -= law(context) @ np.log(softmax_of(z)) / len(contexts)
        return total

    found = ss.class_levels(chain, targets=1)
    assert found.exact
    for groups in (1, 2):
        best = minimize(loss, np.zeros(9 * groups), args=(groups,), method="BFGS", options={"gtol": 1e-7})
        assert found.losses[groups] == pytest.approx(best.fun, abs=1e-7)
    entropy = np.mean([-law(context) @ np.log(law(context)) for context in contexts])
    assert found.bayes == pytest.approx(entropy, abs=1e-12)
