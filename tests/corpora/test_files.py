"""Files become documents, and what is no text is refused with its place."""

import json

import pytest

from stagescope.core.errors import InputError
from stagescope.corpora import files as text_files
from stagescope.corpora.files import documents, guess_layout
from stagescope.corpora.tokens import SPLIT


def read(path, layout):
    return [document for block in documents(path, layout, lambda _: None) for document in block]


def write(folder, content, name="a.txt"):
    path = folder / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


LAYOUTS = {
    "text": ("one two\nthree", ["one two\n", "three"]),
    "lines": ("one two\n\n  \nthree\n", ["one two", "three"]),
    "separated": ("one\ntwo<|endoftext|>\nthree\n<|endoftext|>\n", ["one\ntwo", "three"]),
    "jsonl": (json.dumps({"text": "one\ntwo"}) + "\n\n" + json.dumps("three") + "\n", ["one\ntwo", "three"]),
}


@pytest.mark.parametrize("layout", LAYOUTS)
def test_documents_of_each_layout(tmp_path, layout):
    content, expected = LAYOUTS[layout]
    assert read(write(tmp_path, content), layout) == expected


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("block", [1, 3, 7, 64])
def test_the_size_of_a_block_does_not_matter(tmp_path, monkeypatch, layout, block):
    content = "".join(LAYOUTS[layout][0].replace("three", f"drei é {i}") for i in range(5))
    path = write(tmp_path, content)
    whole = read(path, layout)
    monkeypatch.setattr(text_files, "BLOCK", block)
    found = read(path, layout)
    assert ("".join(found), "".join(whole)) == (content, content) if layout == "text" else found == whole


def test_every_byte_is_seen_once(tmp_path, monkeypatch):
    path = write(tmp_path, "a\nb\ncde")
    monkeypatch.setattr(text_files, "BLOCK", 2)
    blocks = []
    assert len(list(documents(path, "text", blocks.append))) == 3
    assert b"".join(blocks) == path.read_bytes()


def test_a_byte_order_mark_and_carriage_returns_are_no_text(tmp_path):
    assert read(write(tmp_path, b"\xef\xbb\xbfone\r\ntwo\r\n"), "text") == ["one\ntwo\n"]


def test_the_layout_is_guessed(tmp_path):
    assert guess_layout(write(tmp_path, "a b")) == "text"
    assert guess_layout(write(tmp_path, "a <|endoftext|> b")) == "separated"
    assert guess_layout(write(tmp_path, "{}", "b.jsonl")) == "jsonl"


@pytest.mark.parametrize("before", [0, 1, 1000])
def test_a_wrong_encoding_says_where(tmp_path, monkeypatch, before):
    monkeypatch.setattr(text_files, "BLOCK", 64)
    head = b"plain line\n" * before
    with pytest.raises(InputError, match=rf"0xe9 at position {len(head) + 3:,} \(line {before + 1:,}\).*iconv"):
        read(write(tmp_path, head + b"caf\xe9 au lait\n"), "text")


def test_a_wrong_byte_after_a_byte_order_mark_has_its_own_place(tmp_path):
    with pytest.raises(InputError, match="position 4 "):
        read(write(tmp_path, b"\xef\xbb\xbfa\xe9\n"), "text")


@pytest.mark.parametrize(
    ("content", "words"), [(b"ab\0c", "position 2"), (b"\x1f\x8b\x08\0x", "gzip"), ("ab".encode("utf-16"), "UTF-16")]
)
def test_a_binary_file_is_refused(tmp_path, content, words):
    with pytest.raises(InputError, match=f"is not a text file.*{words}"):
        read(write(tmp_path, content), "text")


@pytest.mark.parametrize("layout", ["text", "separated"])
def test_a_line_longer_than_a_block_is_cut_between_words(tmp_path, monkeypatch, layout):
    """Corpora of one line are never held whole."""
    path = write(tmp_path, "some words  in one line" * 20)
    monkeypatch.setattr(text_files, "BLOCK", 16)
    found = [block[0] for block in documents(path, layout, lambda _: None) if block]
    assert "".join(found) == path.read_text()
    assert layout == "separated" or max(map(len, found)) <= 32
    pieces = [piece for text in found for piece in SPLIT["bpe"](text)]
    assert pieces == SPLIT["bpe"](path.read_text())


HALF = r'{"text": "half \ud83d"}'


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("{", "line 2, is not JSON"),
        ('{"body": 1}', "'body'"),
        ('{"text": 5}', "must hold a string, not 5"),
        ("3", "found int"),
        (HALF, r"line 2: \\ud83d is half of a pair"),
    ],
)
def test_bad_json_lines_are_named(tmp_path, line, words):
    with pytest.raises(InputError, match=words):
        read(write(tmp_path, f'"fine"\n{line}\n'), "jsonl")


def test_both_halves_of_a_pair_are_a_character(tmp_path):
    assert read(write(tmp_path, r'{"text": "\ud83d\ude00"}'), "jsonl") == ["\U0001f600"]


def test_a_file_that_cannot_be_opened_is_named(tmp_path):
    with pytest.raises(InputError, match="cannot read the corpus"):
        guess_layout(tmp_path)
