"""The importance of lags: closed forms on small laws, limits, and a text whose nearest token is not the best one."""

import numpy as np
import pytest

import stagescope as ss
from stagescope.core.errors import InputError
from stagescope.papers.incremental.text.loss import lag_information


def text_of(tmp_path, tokens, vocab):
    """A corpus of letters from tokens; its own numbering is by frequency."""
    path = tmp_path / "made.txt"
    path.write_text(" ".join(chr(97 + token) for token in tokens))
    return ss.read_corpus(path, tokens="word", vocab=vocab, valid=0.0)


def chain(persistence=0.6):
    return ss.LazyChain(pi=(0.4, 0.3, 0.2, 0.1), persistence=persistence)


def test_on_a_chain_the_first_lag_tells_what_its_law_says_and_others_add_nothing(tmp_path):
    law = chain()
    corpus = text_of(tmp_path, law.sample(np.random.default_rng(0), 40, 5000).ravel(), 4)
    found = lag_information(corpus, 4)
    step, expected = law.transition, []
    for _ in range(4):
        expected.append(float(np.sum(law.stationary[:, None] * step * np.log(step / law.stationary))))
        step = step @ law.transition
    np.testing.assert_allclose(found.alone, expected, atol=0.006)
    assert found.first == 1
    assert np.all(np.abs(found.added[1:]) < 1e-4)


def test_a_text_of_independent_tokens_tells_nothing(tmp_path):
    corpus = text_of(tmp_path, np.random.default_rng(1).integers(0, 4, 100_000), 4)
    found = lag_information(corpus, 5)
    assert np.all(np.abs(found.alone) < 3e-4)
    assert found.bias == pytest.approx(9 / 2e5, rel=0.8)


def test_a_text_that_repeats_itself_is_not_taken_for_biased(tmp_path):
    """Two copies of it: one of the far lags is a whole copy away, where every token tells itself."""
    once = chain().sample(np.random.default_rng(5), 1, 6000)[0]
    alone, again = (lag_information(text_of(tmp_path, np.tile(once, copies), 4), 3) for copies in (1, 2))
    np.testing.assert_allclose(again.alone, alone.alone, atol=2e-3)
    assert again.spread < 1e-3


def test_importance_is_not_nearness(tmp_path):
    """Three chains take turns: the token three before is the best, and the one six before is all that another can add to."""
    parts = chain(0.8).sample(np.random.default_rng(2), 30, 5000).reshape(3, -1)
    found = lag_information(text_of(tmp_path, parts.T.ravel(), 4), 7)
    assert found.first == 3
    assert found.order[0] == 3
    assert np.argsort(-found.alone)[:2].tolist() == [2, 5]
    assert np.all(np.abs(np.delete(found.alone, [2, 5])) < 1e-3)


def test_added_is_at_most_what_three_tokens_tell():
    """By the data-processing inequality KL(x_{t-2}, x_t) is at most I(x_{t-2}; x_t | x_{t-1}) of the same counts."""
    corpus = ss.read_corpus(vocab=12)
    x = corpus.train.astype(int)
    triples = np.bincount((x * 12 + np.roll(x, -1)) * 12 + np.roll(x, -2), minlength=12**3).reshape(12, 12, 12) / len(x)
    middle = triples.sum(axis=(0, 2))
    product = triples.sum(axis=2)[:, :, None] * triples.sum(axis=0)[None] / middle[None, :, None]
    seen = triples > 0
    most = float(np.sum(triples[seen] * np.log(triples[seen] / product[seen])))
    found = lag_information(corpus, 3)
    assert found.first == 1
    assert 0 < found.added[1] < most


def test_errors_are_those_of_other_texts_of_the_same_law(tmp_path):
    """Two chains take turns, so lags 2 and 4 matter; over twelve such texts `added` varies as `errors` say."""
    found = []
    for seed in range(12):
        parts = chain(0.7).sample(np.random.default_rng(seed), 4, 2000).reshape(2, -1)
        found.append(lag_information(text_of(tmp_path, parts.T.ravel(), 4), 3))
    assert {one.first for one in found} == {2}
    said = np.mean([one.errors[1] for one in found])
    assert 0.5 < np.std([one.added[1] for one in found], ddof=1) / said < 2


def test_order_and_differences():
    found = lag_information(ss.read_corpus(vocab=40), 5)
    assert sorted(found.order) == [1, 2, 3, 4, 5]
    assert found.above(found.first, 2) or found.first == 2
    assert not found.above(2, found.first)
    assert not found.above(3, 3)


def test_a_text_too_short_to_compare_lags_is_refused(tmp_path):
    with pytest.raises(InputError, match="too few to compare 8 lags"):
        lag_information(text_of(tmp_path, [0, 1] * 20, 2), 8)
