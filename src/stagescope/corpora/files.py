"""Text files, read in blocks and cut into documents: plain text, one document a line, separated, JSON lines."""

import json
import re
from collections.abc import Callable, Iterable, Iterator
from itertools import count
from pathlib import Path
from typing import BinaryIO, Literal

from stagescope.core.errors import InputError

Layout = Literal["text", "lines", "separated", "jsonl"]
SEPARATOR = "<|endoftext|>"
BLOCK = 1 << 23
"""Bytes read at a time: a corpus is never held as text."""
_BEGINNINGS = {b"\x1f\x8b": "gzip", b"PK": "zip", b"%PDF": "PDF", b"\x89PNG": "PNG", b"\xff\xfe": "UTF-16", b"\xfe\xff": "UTF-16"}
"""How files begin that are easily taken for text."""
_HALF = re.compile("[\ud800-\udfff]")
"""JSON can write half of a surrogate pair, which nothing can print or store."""


def guess_layout(path: Path) -> Layout:
    """JSON lines by the name's ending; separated if the first block holds a separator; else plain text."""
    if path.suffix.lower() in (".jsonl", ".ndjson"):
        return "jsonl"
    with _open(path) as file:
        return "separated" if SEPARATOR.encode() in file.read(BLOCK) else "text"


def documents(path: Path, layout: Layout, observe: Callable[[bytes], None]) -> Iterator[list[str]]:
    """The documents of a file, some at a time; plain text comes in pieces, which together are one document.

    Every block goes to `seen` as it is read: the one pass over the file also serves checksums and progress.
    """
    blocks = _blocks(path, observe, _after_line if layout in ("lines", "jsonl") else _between_words)
    if layout == "text":
        return ([text] for text in blocks)
    if layout == "lines":
        return (_filled(text.split("\n")) for text in blocks)
    return _separated(blocks) if layout == "separated" else _json_lines(path, blocks)


def _open(path: Path) -> BinaryIO:
    try:
        return path.open("rb")
    except OSError as error:
        raise InputError(f"cannot read the corpus {path}: {error.strerror}") from None


def _after_line(block: bytes) -> int:
    """Where the last whole line ends, 0 if there is none."""
    return block.rfind(b"\n") + 1


def _between_words(block: bytes) -> int:
    """The same, or before the last blank where a line is longer than the block: some corpora are one line."""
    return _after_line(block) or max(block.rfind(b" "), 0)


def _blocks(path: Path, observe: Callable[[bytes], None], cut_of: Callable[[bytes], int]) -> Iterator[str]:
    """The text of a file, block by block; an error names the place of a byte that is not text."""
    place, line, pending, start = 0, 1, bytearray(), b""
    with _open(path) as file:
        while block := file.read(BLOCK):
            observe(block)
            start = start or block[:8]
            if (zero := block.find(0)) >= 0:
                kind = next((name for mark, name in _BEGINNINGS.items() if start.startswith(mark)), None)
                guess = f", and it begins like a {kind} file" if kind else ""
                problem = f"the byte at position {place + len(pending) + zero:,} is zero{guess}"
                raise InputError(f"{path} is not a text file: {problem}; give text in UTF-8")
            cut = cut_of(block)
            pending += block[:cut] if cut else block
            if cut:
                yield _decoded(path, bytes(pending), place, line)
                place, line, pending = place + len(pending), line + pending.count(b"\n"), bytearray(block[cut:])
    if pending:
        yield _decoded(path, bytes(pending), place, line)


def _decoded(path: Path, block: bytes, place: int, line: int) -> str:
    try:
        text = block.decode()
    except UnicodeDecodeError as error:
        position, line_number = place + error.start, line + block[: error.start].count(b"\n")
        problem = f"the byte {block[error.start]:#04x} at position {position:,} (line {line_number:,}) does not belong there"
        remedy = "convert it first, such as with `iconv -f latin1 -t utf-8`"
        raise InputError(f"{path} is not UTF-8: {problem}; {remedy}") from None
    if place == 0:
        text = text.removeprefix("\ufeff")
    return text.replace("\r\n", "\n") if "\r" in text else text


def _filled(parts: Iterable[str]) -> list[str]:
    return [part.strip() for part in parts if part and not part.isspace()]


def _separated(blocks: Iterable[str]) -> Iterator[list[str]]:
    pending = ""
    for block in blocks:
        *complete, pending = (pending + block).split(SEPARATOR)
        yield _filled(complete)
    yield _filled([pending])


def _json_lines(path: Path, blocks: Iterable[str]) -> Iterator[list[str]]:
    """Every line a JSON string, or an object whose "text" is one."""
    numbers = count(1)
    for block in blocks:
        lines = zip(block.removesuffix("\n").split("\n"), numbers, strict=False)
        yield _filled(_text_of(path, number, line) for line, number in lines if line.strip())


def _text_of(path: Path, number: int, line: str) -> str:
    try:
        body = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise InputError(f"{path}, line {number:,}, is not JSON: {error}") from None
    text = body.get("text") if isinstance(body, dict) else body
    if not isinstance(text, str):
        if isinstance(body, dict) and "text" in body:
            raise InputError(f'{path}, line {number:,}: the field "text" must hold a string, not {json.dumps(text)[:40]}')
        names = ", ".join(map(repr, list(body)[:6])) if isinstance(body, dict) else type(body).__name__
        raise InputError(f'{path}, line {number:,}: expected an object with the field "text" or a string, found {names}')
    half = _HALF.search(text)
    if half is not None:
        reason = f"\\u{ord(half[0]):04x} is half of a pair and no character"
        raise InputError(f"{path}, line {number:,}: {reason}; write both halves, or leave it out")
    return text
