"""Read a corpus once: every part tokenised, checksummed, and checked against what is known of it."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from stagescope.core.errors import InputError
from stagescope.core.memory import require_memory
from stagescope.core.progress import Progress
from stagescope.corpora.files import Layout, documents
from stagescope.corpora.known import KNOWN, TOPICS, Known, Part, anchored, folders, locate, texts_of_this_name
from stagescope.corpora.tokens import Reader, Stream, Tokens
from stagescope.runs import files

_texts: dict[tuple[object, ...], "RawText"] = {}


@dataclass(frozen=True)
class RawText:
    """All tokens of a corpus before a vocabulary is chosen: types in order of first appearance, a stream for each part."""

    types: tuple[str, ...]
    parts: Mapping[str, Stream]
    sha256: str


def read_text(source: str, tokens: Tokens, layout: Layout, progress: Progress | None = None) -> RawText:
    """Tokens of all parts of a corpus; the last few that were read are kept while their files do not change."""
    paths = {} if source == TOPICS else locate(source)
    state = tuple((part, path, path.stat().st_mtime_ns, path.stat().st_size) for part, path in paths.items())
    name = (source, tokens, layout, state)
    if name not in _texts:
        if paths:
            text = _read_parts(source, paths, tokens, layout, progress or Progress())
        else:
            texts, reader = topics(), Reader(tokens)
            stream = reader.stream([texts], with_marks=True)
            text = RawText(reader.types, {"train": stream}, hashlib.sha256("\0".join(texts).encode()).hexdigest())
        while len(_texts) >= 3:  # texts that stay in memory, so that a run and its reading share one pass over the files
            _texts.pop(next(iter(_texts)))
        _texts[name] = text
    return _texts[name]


def read_again(source: str, sha256: str, tokens: Tokens, layout: Layout) -> RawText:
    """The text of this sha256: at its source, else one of the same name in the current folder or the folders of corpora."""
    text = read_text(source, tokens, layout) if _is_there(source) else None
    if text is not None and text.sha256 == sha256:
        return text
    candidates = {} if source in KNOWN else texts_of_this_name(source)
    copy = next((path for path, parts in candidates.items() if _digest(list(map(_file_digest, parts.values()))) == sha256), None)
    if copy is not None:
        return read_text(str(copy), tokens, layout)
    if text is not None:
        change = f"its sha256 is {text.sha256[:12]}... where {sha256[:12]}... was used"
        raise InputError(f"the corpus {source} has changed: {change}; bring the old text back")
    places = ", ".join(str(root) for root in (Path.cwd(), *folders()))
    different = f" (another text: {', '.join(map(str, candidates))})" if candidates else ""
    looked = f"looked for {Path(source).name} with sha256 {sha256[:12]}... in {places}{different}"
    raise InputError(
        f"the corpus {source} cannot be found any more: {looked}; bring it back, or put it into one of these folders"
    )


def _is_there(source: str) -> bool:
    """Whether there is a text to read. A missing file of a known corpus is reported when it is read."""
    try:
        return bool(anchored(source))
    except InputError:
        return False


def _file_digest(path: Path) -> str:
    try:
        return files.sha256(path)
    except OSError as error:
        raise InputError(f"cannot read the corpus {path}: {error.strerror}") from None


def _read_parts(source: str, paths: Mapping[str, Path], tokens: Tokens, layout: Layout, progress: Progress) -> RawText:
    reader, parts, digests = Reader(tokens), {}, []
    usual, done, blank, size = KNOWN.get(source), 0, True, sum(path.stat().st_size for path in paths.values())
    numbers = size // 2 if tokens == "char" else size // 8  # a token takes four bytes, and a word has at least four letters
    require_memory(f"the {tokens} tokens of {source}", "give a part of the text", numbers)
    with progress as bar:
        bar.begin(f"reading {source}", size, "bytes")
        for part, path in paths.items():
            sha256, before = hashlib.sha256(), done

            def observe(block: bytes, sha256=sha256) -> None:  # noqa: ANN001
                nonlocal done, blank
                done, blank = done + len(block), blank and block.isspace()
                sha256.update(block)
                bar.update(done)

            parts[part] = reader.stream(documents(path, layout, observe), with_marks=layout != "text")
            if done == before:
                raise InputError(f"the corpus {path} is empty; give a file that holds text")
            digests.append(sha256.hexdigest())
            if usual is not None:
                _verify(usual, tokens, layout, path, digests[-1], parts[part])
    if not len(parts["train"].ids):
        if blank:
            raise InputError(f"the corpus {paths['train']} holds nothing but white space; give a file that holds text")
        reason = "lower finds a-z only: choose --tokens word, char or bpe" if tokens == "lower" else "it is all white space"
        raise InputError(f"{paths['train']} holds no {tokens} tokens; {reason}")
    return RawText(reader.types, parts, _digest(digests))


def _digest(digests: list[str]) -> str:
    """The sha256 of a corpus: that of its file, or of the list of those of its files."""
    return digests[0] if len(digests) == 1 else hashlib.sha256(" ".join(digests).encode()).hexdigest()


def _verify(known: Known, tokens: Tokens, layout: Layout, path: Path, sha256: str, stream: Stream) -> None:
    """Refuse a file under a known name that is not the known one."""
    part = next((item for edition in known.editions for item in edition.values() if item.file == path.name), Part(path.name))
    remedy = "give its path instead of the name to use it as it is"
    if part.sha256 is not None and sha256 != part.sha256:
        raise InputError(
            f"{path} is not the known file: its sha256 is {sha256[:12]}..., expected {part.sha256[:12]}...; {remedy}"
        )
    usual = (tokens, layout) == (known.tokens, known.layout)
    for unit, expected, actual in (("tokens", part.tokens, len(stream.ids)), ("documents", part.documents, len(stream.ends))):
        if usual and expected is not None and actual != expected:
            raise InputError(f"{path} is not the known file: it has {actual:,} {unit}, expected {expected:,}; {remedy}")


def topics() -> list[str]:
    """The reference topics that ship inside CPython, in the order of their names."""
    from pydoc_data.topics import topics as found

    return [found[name] for name in sorted(found)]
