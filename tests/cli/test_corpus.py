"""`stagescope corpus`: what is known of a text before training, and what is said of one that cannot be read."""

import json
import re

import pytest

import stagescope as ss
from stagescope.cli.main import run
from stagescope.corpora import corpus as text_corpus
from stagescope.papers.focus_dilution.text.forms import predict
from stagescope.papers.focus_dilution.text.setup import _modes


@pytest.fixture
def call(capsys):
    def call(*words):
        try:
            code = run([str(word) for word in words])
        except SystemExit as end:
            code = int(end.code or 0)
        printed = capsys.readouterr()
        return code, printed.out, printed.err

    return call


def test_json_has_counts_predictions_lags_and_events(call):
    code, out, err = call("corpus", "topics", "--vocab", 20, "--window", 16, "--events", 20, "--json")
    assert (code, err) == (0, "")
    found = json.loads(out)
    assert found["corpus"]["source"] == "topics"
    assert found["parts"]["train"]["documents"] > 50
    assert found["train_tokens"] + found["held_out_tokens"] == found["parts"]["train"]["tokens"]
    assert len(found["frequent"]) == 20
    assert sum(found["frequent"].values()) == pytest.approx(1)
    assert found["predictions"]["mu0"] > 0
    assert found["predictions"]["sign"] in (-1, 0, 1)
    assert len(found["lags"]["alone"]) == 8
    assert found["bigram_events"]["E1"] is None or found["bigram_events"]["E1"] <= 20


def test_people_see_the_same(call):
    code, out, err = call("corpus", "topics", "--vocab", 20, "--window", 16)
    assert (code, err) == (0, "")
    for words in ("most frequent: <unk>", "mu0", "c on real windows", "separability r", "order of importance: 1"):
        assert words in out


def test_the_embedded_text_is_the_default_and_r_says_what_it_means(call):
    code, out, _ = call("corpus", "--vocab", 20, "--window", 16)
    assert code == 0
    assert out.startswith("topics")
    assert re.search(r"separability r +0\.(0[0-2]\d +below 0.03: one|0[3-9]\d +from 0.03|[1-9]\d\d +above 0.1: modes)", out)
    assert [_modes(r).split(":")[0] for r in (0.01, 0.073, 0.103)] == ["below 0.03", "from 0.03 to 0.1", "above 0.1"]


def test_c_is_that_of_the_claims(call):
    found = json.loads(call("corpus", "topics", "--vocab", 20, "--window", 16, "--json")[1])["predictions"]
    made = predict(ss.read_corpus("topics", vocab=20), 16)
    assert (found["c_windows"], found["c_bigram"]) == (made.c_windows, made.c_bigram)


def test_of_pieces_the_words_before_them_are_counted_as_such(call):
    code, out, _ = call("corpus", "--tokens", "bpe", "--vocab", 120, "--window", 16)
    assert code == 0
    assert re.search(r"train +[\d,]+ words and marks, before they are cut", out)
    assert re.search(r"[\d,]+ different ones, vocabulary 120; [\d,]+ tokens to train on", out)


def test_a_run_on_a_relative_path_is_read_from_any_folder(tmp_path, call, monkeypatch):
    for name in ("here", "there"):
        (tmp_path / name).mkdir()
    monkeypatch.chdir(tmp_path / "here")
    (tmp_path / "here" / "own.txt").write_text("a b c b a c a b " * 60)
    options = ("--vocab", 3, "--window", 2, "--heads", 2, "--steps", 20, "--frames", 12, "--quiet")
    assert call("run", "text-incremental", "--corpus", "own.txt", *options, "--out", tmp_path / "run")[0] == 0
    monkeypatch.chdir(tmp_path / "there")
    for command in ("stages", "check"):
        assert call(command, tmp_path / "run", "--json")[0] == 0
    code, out, _ = call("report", tmp_path / "run", "--skip", "ladder")
    assert (code, out.count("note: "), "own.txt" in out) == (0, 2, False)  # no page of a text is replayed; the text is elsewhere
    (tmp_path / "here" / "own.txt").unlink()
    text_corpus._tokenise.cache_clear()
    code, _, err = call("check", tmp_path / "run")
    assert (code, err.count("\n")) == (2, 1)
    assert "own.txt cannot be found any more: looked for own.txt with sha256" in err
    code, out, _ = call("report", tmp_path / "run", "--skip", "ladder")
    assert code == 0
    assert "note: the ledger could not be computed: the corpus own.txt cannot be found any more" in out
    assert "own.txt" in (tmp_path / "there" / "report.html").read_text()
    assert str(tmp_path) not in (tmp_path / "there" / "report.html").read_text()


BAD = {
    "empty": (b"", (), "is empty"),
    "binary": (b"ab\0cd", (), "position 2 is zero"),
    "latin": (b"na\xefve words here", (), "0xef at position 2 (line 1)"),
    "few types": (b"a b c a b c", ("--vocab", 50), "give --vocab from 2 to 3"),
    "short": (b"a b c " * 50, ("--vocab", 3), "shorter than one window of 257"),
    "no window": (b"a b c " * 50, ("--vocab", 3, "--window", 0), "--window 0 has no token"),
    "bad events": (b"a b", ("--events", -1), "--events -1"),
}


@pytest.mark.parametrize("name", BAD)
def test_a_text_that_cannot_be_used_is_one_sentence(tmp_path, call, name):
    content, options, words = BAD[name]
    (tmp_path / "bad.txt").write_bytes(content)
    code, out, err = call("corpus", tmp_path / "bad.txt", *options)
    assert (code, out) == (2, "")
    assert err.startswith("stagescope: ")
    assert err.count("\n") == 1
    assert words in err


def test_a_missing_corpus_says_where_it_was_looked_for(tmp_path, call, monkeypatch):
    monkeypatch.setenv("STAGESCOPE_DATA", str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    for arguments in (("corpus", "wikitext-2"), ("run", "text-incremental", "--corpus", "wikitext-2", "--out", tmp_path / "run")):
        code, _, err = call(*arguments)
        assert code == 2
        assert str(tmp_path / "wikitext-2") in err
        assert "stagescope[hub]" in err
        assert err.count("\n") == 1
    assert not (tmp_path / "run").exists()
