"""What `stagescope corpus` shows on a terminal."""

from collections.abc import Iterable
from typing import Any

from rich.console import Console
from rich.text import Text

from stagescope.errors import printable

TOKENS = {"word": "words", "lower": "lower-case words", "char": "characters", "bpe": "pieces of words (BPE)"}
LAYOUTS = {
    "text": "one document",
    "lines": "a document in each line",
    "separated": "documents separated by <|endoftext|>",
    "jsonl": "documents as JSON lines",
}


def print_corpus(found: dict[str, Any], about: Iterable[Any]) -> None:
    """Counts of a text, then what papers predict for it."""
    console = Console()
    _counts(console, found)
    for item in about:
        console.print(item)


def _counts(console: Console, found: dict[str, Any]) -> None:
    about = found["corpus"]
    how = f"{TOKENS[about['tokens']]}; {LAYOUTS[about['layout']]}"
    console.print(Text.assemble((printable(about["source"]), "bold"), f": {how}"))
    console.print(Text(f"sha256 {about['sha256']}", style="dim"))
    unit = "words and marks, before they are cut" if about["tokens"] == "bpe" else "tokens"
    for name, part in found["parts"].items():
        documents = f" in {part['documents']:,} documents" if part["documents"] > 1 else ""
        console.print(f"{name:<6} {part['tokens']:>12,} {unit}{documents}", highlight=False)
    types = "different ones" if about["tokens"] == "bpe" else "types"
    kept = f"{found['types']:,} {types}, vocabulary {found['vocabulary']:,}"
    split = f"{found['train_tokens']:,} tokens to train on, {found['held_out_tokens']:,} held out"
    console.print(f"{kept}; {split}", highlight=False)
    words = [printable(f"{word} {share:.3f}") for word, share in found["frequent"].items()]
    console.print(Text("\n".join(_lines("most frequent:", words, console.width))))
    nats = ", ".join(f"{name} {value:.3f}" for name, value in found["entropy"].items())
    console.print(Text(f"entropy in nats: {nats}"))


def _lines(first: str, words: list[str], width: int) -> list[str]:
    """Words in lines of a width; none is cut, so that a number stands beside its word."""
    lines = [" ".join([first, *words[:1]])]
    for word in words[1:]:
        if len(lines[-1]) + 2 + len(word) <= width:
            lines[-1] += f"  {word}"
        else:
            lines.append(f"  {word}")
    return lines
