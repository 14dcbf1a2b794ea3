"""Predictions for a text, against sums written out, derivatives of the loss, and numbers measured elsewhere."""

from dataclasses import replace

import numpy as np
import pytest

import stagescope as ss
from stagescope.core.errors import InputError
from stagescope.corpora import corpus as corpora
from stagescope.papers.focus_dilution.family import attention_rate, plateau_amplitude
from stagescope.papers.focus_dilution.text import forms as text_forms
from stagescope.papers.focus_dilution.text.forms import predict, separability, window_attention_rate
from stagescope.readings.published import published
from tests.texts import needs

REFERENCE = published("stagescope.papers.focus_dilution")


@pytest.fixture(scope="module")
def corpus():
    return ss.read_corpus(vocab=20)


def counts_of(windows, size):
    counts = np.zeros((len(windows), size))
    for column in windows.T:
        counts[np.arange(len(windows)), column] += 1
    return counts / windows.shape[1]


def test_the_attention_rate_is_the_slope_of_the_loss_at_the_condensed_point(corpus):
    """With W0 = g e^T, W1 = e w^T and scores s g_q g_j, c = -dL/ds at s = 0: central differences of the loss on all windows."""
    length, pi = 12, corpus.stationary
    windows = corpus.windows(length + 1)
    shares, query, target = counts_of(windows[:, :-1], 20), windows[:, -2], windows[:, -1]
    size, centred = plateau_amplitude(pi), np.log(pi) - np.log(pi).mean()
    g, w = size * pi / np.linalg.norm(pi), size * centred / np.linalg.norm(centred)

    def loss(score):
        weights = shares * np.exp(score * g[query][:, None] * g)
        logits = (weights @ g / weights.sum(axis=1))[:, None] * w
        return np.mean(np.log(np.exp(logits).sum(axis=1)) - logits[np.arange(len(target)), target])

    slope = -(loss(1e-3) - loss(-1e-3)) / 2e-3
    found, error = window_attention_rate(corpus, length)
    assert found == pytest.approx(slope, rel=1e-4)
    assert 0 < error < abs(found)


def test_long_windows_of_a_chain_give_its_own_rate(tmp_path):
    chain = ss.LazyChain(pi=(0.5, 0.25, 0.15, 0.10), persistence=0.6)
    tokens = chain.sample(np.random.default_rng(0), 40, 10_000).ravel()
    (tmp_path / "chain.txt").write_text(" ".join("abcd"[token] for token in tokens))
    corpus = ss.read_corpus(tmp_path / "chain.txt", tokens="word", vocab=4, valid=0.0)
    found, error = window_attention_rate(corpus, 2000)
    assert abs(found - attention_rate(corpus.stationary, corpus.transition, 1.0)) < 3 * error
    assert error < 0.1 * abs(found)


def test_separability_is_that_of_the_matrix_written_out(corpus):
    length = 7
    windows = corpus.windows(length + 1)
    target = np.eye(20)[windows[:, -1]] - 1 / 20
    shares = counts_of(windows[:, :-1], 20)
    values = np.linalg.svd(shares.T @ target / len(windows), compute_uv=False)
    assert separability(corpus, length)[0] == pytest.approx(values[1] / values[0], rel=1e-9)
    values = np.linalg.svd((shares + np.eye(20)[windows[:, -2]]).T @ target / len(windows), compute_uv=False)
    assert separability(corpus, length)[1] == pytest.approx(values[1] / values[0], rel=1e-3)  # ends of the text


@pytest.mark.parametrize(("rate", "sign"), [(0.35, 1), (0.15, 0), (-0.15, 0), (-0.35, -1)])
def test_a_sign_within_three_errors_is_undecided(corpus, rate, sign):
    assert replace(predict(corpus, 12), c_windows=rate, c_error=0.1).sign == sign


@pytest.mark.parametrize("window", [1, 12])
def test_predictions_of_a_large_vocabulary_need_no_matrix(corpus, monkeypatch, window):
    """Sums that slide along the text, and over the pairs that occur, give what the matrices between all types give."""
    matrices, floor = predict(corpus, window), corpus.floor()
    monkeypatch.setattr(text_forms, "LARGE", 2)
    monkeypatch.setattr(corpora, "LARGE", 2)
    sums = predict(corpus, window)
    assert corpus.floor() == pytest.approx(floor, rel=1e-12)
    for name in ("c_bigram", "separability", "separability_residual"):
        assert getattr(sums, name) == pytest.approx(getattr(matrices, name), rel=1e-9), name


def test_a_window_of_nothing_is_refused(corpus):
    with pytest.raises(InputError, match="--window 0 has no token"):
        predict(corpus, 0)


def test_a_text_shorter_than_a_window_is_refused(corpus):
    with pytest.raises(InputError, match="shorter than one window"):
        predict(corpus, 10**6)


def as_measured_elsewhere(made, corpus):
    rate = REFERENCE["text_bigram_rate"]
    assert made.c_bigram == pytest.approx(rate.value[corpus], abs=rate.tolerance)
    for name in ("separability", "separability_residual"):
        expected = REFERENCE[f"{corpus}_{name}"]
        assert getattr(made, name) == pytest.approx(expected.value, abs=expected.tolerance), name


@pytest.mark.long
@needs("tinystories")
def test_tinystories_has_the_published_rates():
    """The sign depends on the length of the windows."""
    corpus = ss.read_corpus("tinystories")
    short, long = predict(corpus, 64), predict(corpus, 256)
    assert (short.sign, long.sign) == (-1, 1)
    rates = REFERENCE["text_attention_rate"].value["tinystories"]
    assert short.c_windows == pytest.approx(rates["64"], abs=2 * short.c_error)
    assert long.c_windows == pytest.approx(rates["256"], abs=2 * long.c_error)
    as_measured_elsewhere(long, "tinystories")


@needs("wikitext-2")
def test_wikitext_has_the_published_rates():
    made = predict(ss.read_corpus("wikitext-2"), 256)
    assert made.sign == -1
    as_measured_elsewhere(made, "wikitext-2")
