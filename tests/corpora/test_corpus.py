"""Text as a process: parts, vocabulary, the law of its types and its bigram chain."""

import json

import numpy as np
import pytest

import stagescope as ss
from stagescope.core.errors import InputError
from stagescope.core.spec import build
from stagescope.corpora.corpus import _tokenise
from stagescope.corpora.reading import topics
from tests.texts import needs


@pytest.fixture(scope="module")
def corpus():
    return ss.read_corpus(vocab=60)


@pytest.fixture
def small(tmp_path):
    path = tmp_path / "small.txt"
    path.write_text("a b a c <|endoftext|> b a b d <|endoftext|> a a b c <|endoftext|>")
    return path


def test_the_embedded_text_needs_no_file(corpus):
    assert corpus.source == "topics"
    assert corpus.words[0] == "<unk>"
    assert "the" in corpus.words[:10]
    assert len(corpus.train) + len(corpus.held_out) > 50_000


def test_parts_are_whole_documents():
    """Put together again, train and held-out documents are those of the text."""
    parts, whole = ss.read_corpus(vocab=1000), ss.read_corpus(vocab=1000, valid=0.0)

    def split(corpus, stream):
        words = " ".join(corpus.words[token] if corpus.words[token] in shared else "?" for token in stream)
        return [text.strip() for text in words.split("endoftext")]

    shared = set(parts.words) & set(whole.words) - {"<unk>"}
    train, held, every = split(parts, parts.train), split(parts, parts.held_out), split(whole, whole.train)
    assert train[-1] == held[-1] == every[-1] == ""
    assert sorted([*train[:-1], *held[:-1]]) == sorted(every[:-1])
    assert len(held) - 1 == round(0.1 * len(topics()))
    assert len(whole.held_out) == 0


def test_pi_is_stationary_for_the_bigram_chain(corpus):
    np.testing.assert_allclose(corpus.stationary @ corpus.transition, corpus.stationary, atol=1e-15)
    np.testing.assert_allclose(corpus.transition.sum(axis=1), 1, atol=1e-14)
    np.testing.assert_allclose(corpus.bigram.stationary, corpus.stationary, atol=1e-13)
    assert corpus.floor() < corpus.unigram_loss()


def test_pairs_are_those_a_loop_counts(corpus):
    pairs = np.zeros((60, 60), dtype=int)
    for i, j in zip(corpus.train, [*corpus.train[1:], corpus.train[0]], strict=True):
        pairs[i, j] += 1
    assert np.array_equal(corpus.pairs, pairs)


def test_windows_are_neighbouring_tokens(corpus):
    windows = corpus.windows(5)
    assert windows.shape == (len(corpus.train) - 4, 5)
    assert np.array_equal(windows[7], corpus.train[7:12])
    assert np.array_equal(corpus.windows(3, "held-out")[0], corpus.held_out[:3])


def test_a_description_builds_the_same_corpus_and_holds_no_text(corpus):
    described = json.loads(json.dumps(corpus.describe()))
    again = build(described)
    assert again == corpus
    assert np.array_equal(again.train, corpus.train)
    assert len(json.dumps(described)) < 400


def test_the_split_depends_on_its_seed_and_nothing_else():
    one, two = (ss.read_corpus(vocab=60, split_seed=seed) for seed in (0, 1))
    assert len(one.held_out) != len(two.held_out)
    assert np.array_equal(one.held_out, ss.read_corpus(vocab=60, split_seed=0).held_out)


def test_a_file_of_ones_own(small):
    corpus = ss.read_corpus(small, vocab=3, valid=0.34)
    assert corpus.layout == "separated"
    assert corpus.tokens == "lower"
    assert corpus.words[0] == "<unk>"
    assert set(corpus.words) <= {"<unk>", "a", "b", "c", "d", "endoftext"}
    assert len(corpus.train) == 10
    assert len(corpus.held_out) == 5


def test_some_document_is_always_left_to_train_on(tmp_path):
    path = tmp_path / "two.txt"
    path.write_text("a b a b\nb a b a b a\n")
    corpus = ss.read_corpus(path, layout="lines", vocab=2, valid=0.95)
    assert sorted((len(corpus.train), len(corpus.held_out))) == [5, 7]


def test_plain_text_is_held_out_in_stretches(tmp_path):
    path = tmp_path / "plain.txt"
    path.write_text(" ".join("abcd"[i % 4] for i in range(1000)))
    corpus = ss.read_corpus(path, vocab=4)
    assert corpus.layout == "text"
    assert (len(corpus.train), len(corpus.held_out)) == (900, 100)


def test_characters_need_no_unknown_token(small):
    corpus = ss.read_corpus(small, tokens="char", vocab=6, valid=0.0)
    assert "<unk>" not in corpus.words
    assert corpus.label(corpus.token(" ")) == "␣"
    assert "".join(corpus.words[i] for i in corpus.train) == "a b a c<|endoftext|>b a b d<|endoftext|>a a b c<|endoftext|>"


def test_a_relative_path_is_good_from_any_folder(small, tmp_path, monkeypatch):
    monkeypatch.chdir(small.parent)
    described = ss.read_corpus(small.name, vocab=3).describe()
    (tmp_path / "other").mkdir()
    monkeypatch.chdir(tmp_path / "other")
    assert described["source"] == str(small)
    assert build(described).words == ss.read_corpus(small, vocab=3).words


def test_a_text_that_was_moved_is_known_by_its_name_and_sha256(small, tmp_path, monkeypatch):
    described = ss.read_corpus(small, vocab=3).describe()
    words, content = ss.read_corpus(small, vocab=3).words, small.read_text()
    small.unlink()
    data, here = tmp_path / "data", tmp_path / "here"
    for folder in (data, here):
        folder.mkdir()
    monkeypatch.setenv("STAGESCOPE_DATA", str(data))
    monkeypatch.chdir(here)
    _tokenise.cache_clear()
    with pytest.raises(InputError, match=rf"cannot be found any more: looked for .* in {here}, {data}, .* put it into"):
        _ = build(described).words
    (here / small.name).write_text("another text")
    with pytest.raises(InputError, match=rf"\(another text: {here / small.name}\)"):
        _ = build(described).words
    (data / small.name).write_text(content)
    assert build(described).words == words
    (data / small.name).rename(here / small.name)
    assert build(described).raw.parts["train"].ids.size


def test_a_changed_file_is_refused_when_a_run_is_opened_again(small):
    described = ss.read_corpus(small, vocab=3).describe()
    small.write_text("a b c d <|endoftext|> other words")
    with pytest.raises(InputError, match="has changed: its sha256 is"):
        _ = build(described | {"split_seed": 5}).train


def test_a_word_outside_the_vocabulary_says_its_rank_and_the_size_needed(corpus):
    with pytest.raises(InputError, match=r"its rank is (\d+), with .* use --vocab (\d+) or more") as error:
        corpus.token("continue")
    size = int(str(error.value).split("--vocab ")[1].split()[0])
    assert ss.read_corpus(vocab=size).token("continue") == size - 1
    with pytest.raises(InputError, match="outside"):
        ss.read_corpus(vocab=size - 1).token("continue")


def test_the_rarest_word_needs_all_types_and_no_unknown(tmp_path):
    path = tmp_path / "few.txt"
    path.write_text("a a a a b b b c c d")
    with pytest.raises(InputError, match=r"its rank is 4, .* use --vocab 4 or more"):
        ss.read_corpus(path, vocab=3, valid=0.0).token("d")
    assert ss.read_corpus(path, vocab=4, valid=0.0).token("d") == 3


def test_labels_show_what_cannot_be_seen(tmp_path):
    path = tmp_path / "signs.txt"
    path.write_text("a\tb c\n\x1b[1md\u00a0e" * 3)
    corpus = ss.read_corpus(path, tokens="char", vocab=13, valid=0.0)
    assert {"␣", "⏎", "⇥", "\\x1b", "\\xa0", "a"} <= {corpus.label(token) for token in range(13)}


def test_a_layout_that_the_embedded_text_cannot_have_is_refused():
    with pytest.raises(InputError, match="--layout lines does not fit topics"):
        ss.read_corpus(layout="lines")


def test_a_text_beyond_memory_is_refused_before_it_is_read(small, monkeypatch):
    monkeypatch.setattr("stagescope.core.memory.LIMIT", 16)
    with pytest.raises(InputError, match=r"the lower tokens of .* would take .* give a part of the text"):
        ss.read_corpus(small, vocab=4)


def test_a_word_that_is_not_there_names_near_ones(corpus):
    with pytest.raises(InputError, match=r"'thes' is no token .* near it: 'the'"):
        corpus.token("thes")


BAD = {
    "empty file": ("", {}, "is empty"),
    "only blanks": (" \n \n", {}, "nothing but white space"),
    "no such tokens": ("a b c", {"tokens": "words"}, "unknown tokens 'words'; did you mean 'word'"),
    "no such layout": ("a b c", {"layout": "csv"}, "unknown layout 'csv'; known: jsonl, lines"),
    "another script": ("Все люди рождаются свободными", {}, "--tokens word, char or bpe"),
    "larger than the types": ("a b c a b c", {"vocab": 4, "valid": 0.0}, "has 3 types: give --vocab from 2 to 3"),
    "one type": ("a a a", {"vocab": 2, "valid": 0.0}, "has 1 types: give more text"),
    "size of one": ("a b c", {"vocab": 1}, "--vocab 1 is no vocabulary"),
    "share held out": ("a b c", {"vocab": 2, "valid": 1.0}, "less than 1"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_text_is_refused(tmp_path, name):
    content, options, words = BAD[name]
    path = tmp_path / "bad.txt"
    path.write_text(content)
    with pytest.raises(InputError, match=words):
        ss.read_corpus(path, **options)


def test_a_text_shorter_than_one_window_says_so(small):
    corpus = ss.read_corpus(small, vocab=3, valid=0.34)
    with pytest.raises(InputError, match=r"train part of .* has 10 tokens, shorter than one window of 11"):
        corpus.windows(11)


@needs("wikitext-2")
def test_wikitext_has_its_published_counts():
    corpus = ss.read_corpus("wikitext-2")
    assert [len(part.ids) for part in corpus.raw.parts.values()] == [2_088_628, 217_646, 245_569]
    assert len(corpus.raw.types) == 33_278
    assert corpus.words[:3] == ("<unk>", "the", ",")
    assert corpus.stationary[0] == pytest.approx(0.463, abs=5e-4)
    assert len(corpus.held_out) == 217_646


@needs("tinystories")
def test_tinystories_has_its_counts():
    corpus = ss.read_corpus("tinystories")
    assert len(corpus.raw.parts["train"].ends) == 10_270
    assert corpus.stationary[0] == pytest.approx(0.224, abs=1e-3)
    plain = ss.read_corpus("tinystories", tokens="word", layout="text").raw
    assert int(np.count_nonzero(plain.parts["train"].ids != plain.types.index("<eos>"))) == 1_687_044


def test_shuffled_tokens_keep_their_numbers_and_lose_their_order():
    plain, one, again, other = (ss.read_corpus("topics", vocab=50, shuffle=seed) for seed in (None, 1, 1, 2))
    np.testing.assert_array_equal(one.counts, plain.counts)
    np.testing.assert_array_equal(one.train, again.train)
    assert (one.train != other.train).any()
    assert one.words == plain.words
    assert sorted(one.held_out) == sorted(plain.held_out)
    assert one.floor() > plain.floor() + 0.1  # the last token says nothing about the next
