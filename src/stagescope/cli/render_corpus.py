"""What `stagescope corpus` shows on a terminal."""

from typing import Any

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

_SIGNS = {1: "focus comes first", -1: "it first leaves the frequent token", 0: "sign undecided"}


def print_corpus(found: dict[str, Any]) -> None:
    console = Console()
    _counts(console, found)
    _predictions(console, found["predictions"])
    _lags(console, found["lags"])
    if "bigram_events" in found:
        events = ", ".join(f"{name} {'not reached' if t is None else f'{t:.4g}'}" for name, t in found["bigram_events"].items())
        console.print(Text(f"\nthe bigram flow foretells for SGD (t): {events}"))


def _counts(console: Console, found: dict[str, Any]) -> None:
    about = found["corpus"]
    console.print(Text(about["source"], style="bold"), Text(f"{about['tokens']} tokens, layout {about['layout']}"))
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
    console.print(Text(f"most frequent: {words}"))
    nats = ", ".join(f"{name} {value:.3f}" for name, value in found["entropy"].items())
    console.print(Text(f"entropy in nats: {nats}"))


def _predictions(console: Console, made: dict[str, Any]) -> None:
    table = Table("before training", "", "", box=box.SIMPLE_HEAD, pad_edge=False)
    rows = (
        ("mu0", f"{made['mu0']:.4g}", "growth from a small start"),
        ("c on the bigram chain", f"{made['c_bigram']:+.3f}", "opening of attention, scale one"),
        (
            "c on real windows",
            f"{made['c_windows']:+.3f} +- {made['c_error']:.3f}",
            f"of {made['window']}: {_SIGNS[made['sign']]}",
        ),
        ("separability r", f"{made['separability']:.3f}", _modes(made["separability"])),
        (
            "r with residual",
            f"{made['separability_residual']:.3f}",
            f"with the last token added; {_modes(made['separability_residual'])}",
        ),
    )
    for row in rows:
        table.add_row(*map(Text, row))
    console.print(table)


def _modes(r: float) -> str:
    from stagescope.papers.focus_dilution.text.evidence import APART, TOGETHER

    if r < APART:
        return f"below {APART:g}: one mode grows alone, a plateau follows"
    return f"above {TOGETHER:g}: modes grow together, no stages" if r > TOGETHER else f"from {APART:g} to {TOGETHER:g}: between"


def _lags(console: Console, lags: dict[str, Any]) -> None:
    names = [str(lag) for lag in range(1, len(lags["alone"]) + 1)]
    table = Table("nats at lag", *names, box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_row("alone", *(f"{value:.3f}" for value in lags["alone"]))
    table.add_row("added", *(f"{value:.3f}" for value in lags["added"]))
    table.add_row("+-", *(f"{value:.3f}" for value in lags["errors"]))
    console.print(table)
    console.print(Text(f"order of importance: {' '.join(map(str, lags['order']))}"))
