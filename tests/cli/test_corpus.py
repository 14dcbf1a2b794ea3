"""`stagescope corpus`: what is known of a text before training, and what is said of one that cannot be read."""

import json

import pytest

from stagescope.cli.main import run


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


BAD = {
    "empty": (b"", (), "is empty"),
    "binary": (b"ab\0cd", (), "position 2 is zero"),
    "latin": (b"na\xefve words here", (), "0xef at position 2 (line 1)"),
    "few types": (b"a b c a b c", ("--vocab", 50), "choose 2 to"),
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
