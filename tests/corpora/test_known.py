"""Where corpora are looked for, and what is said when they are not there."""

from pathlib import Path

import pytest

import stagescope as ss
from stagescope.core.errors import InputError
from stagescope.core.spec import build
from stagescope.corpora import hub as corpus_hub
from stagescope.corpora.known import KNOWN, locate


@pytest.fixture
def places(tmp_path, monkeypatch):
    monkeypatch.setenv("STAGESCOPE_DATA", str(tmp_path / "data"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(corpus_hub, "available", lambda: False)
    monkeypatch.chdir(tmp_path)
    return tmp_path / "data", tmp_path / "cache" / "stagescope" / "corpora"


def put(root, *files, text="a b c d"):
    for name in files:
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


def test_the_given_folder_comes_before_the_cache(places):
    data, cache = places
    put(cache, "tiny-shakespeare/input.txt")
    assert locate("tiny-shakespeare") == {"train": cache / "tiny-shakespeare/input.txt"}
    put(data, "tiny-shakespeare/input.txt")
    assert locate("tiny-shakespeare") == {"train": data / "tiny-shakespeare/input.txt"}


def test_a_corpus_must_be_complete(places):
    put(places[0], "wikitext-2/train.txt", "wikitext-2/valid.txt")
    with pytest.raises(InputError, match="not here"):
        locate("wikitext-2")
    put(places[0], "wikitext-2/test.txt")
    assert list(locate("wikitext-2")) == ["train", "valid", "test"]


@pytest.mark.parametrize("name", ["wikitext-2", "wikitext-103", "tinystories", "tiny-shakespeare"])
def test_a_missing_corpus_says_where_it_was_looked_for_and_how_to_get_it(places, name):
    with pytest.raises(InputError) as error:
        locate(name)
    said = str(error.value)
    assert str(places[0] / name) in said
    assert str(places[1] / name) in said
    assert "put " in said
    assert ("stagescope[hub]" in said) == (KNOWN[name].hub is not None)


def test_without_the_variable_it_is_named(places, monkeypatch):
    monkeypatch.delenv("STAGESCOPE_DATA")
    with pytest.raises(InputError, match="STAGESCOPE_DATA is not set"):
        locate("wikitext-2")


def test_paths_are_found_here_and_in_the_folders(places):
    put(places[0], "mine/a.txt")
    assert locate("mine/a.txt") == {"train": places[0] / "mine/a.txt"}
    put(places[0], "b/train.txt", "b/valid.txt")
    assert list(locate("b")) == ["train", "valid"]
    with pytest.raises(InputError, match=r"looked for it in .*; give the path of a text file or one of"):
        locate("nowhere/c.txt")
    with pytest.raises(InputError, match=r"has no train.txt"):
        locate("mine")


def test_a_name_that_nobody_has_says_where_it_was_looked_for(places):
    for name in ("novel", ""):
        with pytest.raises(InputError, match=r"there is no corpus .* looked for it in .* one of topics, wikitext-2"):
            locate(name)


@pytest.mark.parametrize("name", ["a" * 300 + ".txt", "~nobody-of-this-name/a.txt"])
def test_a_path_that_cannot_be_followed_is_named(places, name):
    with pytest.raises(InputError, match="cannot read the corpus"):
        locate(name)


def test_a_folder_that_may_not_be_entered_is_named(places, monkeypatch):
    """Told by a path that refuses, as tests may run with all rights."""

    def refused(path):
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr(Path, "is_file", refused)
    with pytest.raises(InputError, match=r"cannot read the corpus closed/a.txt: Permission denied"):
        locate("closed/a.txt")


def test_a_misspelt_name_gets_the_near_one(places):
    with pytest.raises(InputError, match="did you mean 'wikitext-2'"):
        locate("wikitext2")


def test_a_folder_with_its_own_valid_file_is_split_by_it(places):
    put(places[0], "own/train.txt", text="a b c a b c")
    put(places[0], "own/valid.txt", text="c b")
    corpus = ss.read_corpus("own", vocab=3)
    assert (len(corpus.train), len(corpus.held_out)) == (6, 2)


def test_where_one_part_ends_is_part_of_what_a_corpus_is(places):
    """The same bytes in all, cut elsewhere, are another corpus."""
    put(places[0], "own/train.txt", text="a b c a b c ")
    put(places[0], "own/valid.txt", text="c b a b")
    described = ss.read_corpus("own", vocab=3).describe()
    put(places[0], "own/train.txt", text="a b c a b c c ")
    put(places[0], "own/valid.txt", text="b a b")
    with pytest.raises(InputError, match="has changed"):
        _ = build(described | {"split_seed": 5}).train  # pyright: ignore[reportAttributeAccessIssue]


def test_a_file_that_is_not_the_known_one_is_refused(places):
    put(places[0], "tiny-shakespeare/input.txt")
    with pytest.raises(InputError, match=r"is not the known file: its sha256 is .* give its path"):
        ss.read_corpus("tiny-shakespeare")
    assert ss.read_corpus("tiny-shakespeare/input.txt", vocab=3).vocab == 3


def test_counts_are_checked_where_no_checksum_is_known(places):
    put(places[0], *(f"wikitext-103/{part}.txt" for part in ("train", "valid", "test")))
    with pytest.raises(InputError, match="it has 4 tokens, expected 103,227,021"):
        ss.read_corpus("wikitext-103")
