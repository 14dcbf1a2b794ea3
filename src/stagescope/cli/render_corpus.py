"""What `stagescope corpus` shows on a terminal."""

from collections.abc import Iterable
from typing import Any

from rich.console import Console
from rich.text import Text

from stagescope.errors import printable


def print_corpus(found: dict[str, Any], about: Iterable[Any]) -> None:
    """Counts of a text, then what papers predict for it."""
    console = Console()
    _counts(console, found)
    for item in about:
        console.print(item)


def _counts(console: Console, found: dict[str, Any]) -> None:
    about = found["corpus"]
    console.print(Text(printable(about["source"]), style="bold"), Text(f"{about['tokens']} tokens, layout {about['layout']}"))
    console.print(Text(f"sha256 {about['sha256']}", style="dim"))
    unit = "words and marks, before they are cut" if about["tokens"] == "bpe" else "tokens"
    for name, part in found["parts"].items():
        documents = f" in {part['documents']:,} documents" if part["documents"] > 1 else ""
        console.print(f"{name:<6} {part['tokens']:>12,} {unit}{documents}", highlight=False)
    types = "different ones" if about["tokens"] == "bpe" else "types"
    kept = f"{found['types']:,} {types}, vocabulary {found['vocabulary']:,}"
    split = f"{found['train_tokens']:,} tokens to train on, {found['held_out_tokens']:,} held out"
    console.print(f"{kept}; {split}", highlight=False)
    words = "  ".join(f"{word} {share:.3f}" for word, share in found["frequent"].items())
    console.print(Text(printable(f"most frequent: {words}")))
    nats = ", ".join(f"{name} {value:.3f}" for name, value in found["entropy"].items())
    console.print(Text(f"entropy in nats: {nats}"))
