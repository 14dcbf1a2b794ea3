"""Small pieces of HTML for notebooks. All text is escaped, there is no script, and colours are those of the notebook."""

from collections.abc import Iterable, Sequence
from html import escape

CELL = "text-align:left;vertical-align:top;padding:2px 14px 2px 0;white-space:normal"
SHORT = f"{CELL};white-space:nowrap"


def escaped(text: str, longest: int = 300) -> str:
    """Escaped, without half characters, and not longer than anybody reads."""
    valid = text.encode("utf-8", "replace").decode()
    return escape(valid if len(valid) <= longest else valid[:longest] + "…")


def number(value: float | str | None, nothing: str = "–", digits: int = 4) -> str:
    """A number with some digits; words as they are."""
    if value is None:
        return nothing
    return value if isinstance(value, str) else f"{value:.{digits}g}"


def title(text: str, more: str = "") -> str:
    """A line in bold, and what follows it."""
    return f"<p><strong>{escaped(text)}</strong> {escaped(more)}</p>"


def note(text: str) -> str:
    """A sentence below a table."""
    return f'<p style="opacity:.75;font-size:90%">{escaped(text, 1000)}</p>'


def table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table of texts."""
    top = "".join(f'<th style="{SHORT}">{escaped(head)}</th>' for head in heads)
    cells = (
        "".join(f'<td style="{SHORT if len(text) <= 22 else CELL}">{escaped(text, 600)}</td>' for text in row) for row in rows
    )
    body = "".join(f"<tr>{row}</tr>" for row in cells)
    return f'<table style="font-size:90%"><thead><tr>{top}</tr></thead><tbody>{body}</tbody></table>'


def folded(summary: str, inside: str) -> str:
    """HTML that a click opens."""
    return f"<details><summary>{escaped(summary)}</summary>{inside}</details>"


def block(*parts: str) -> str:
    """Pieces of HTML as one; empty ones are left out."""
    return f"<div>{''.join(filter(None, parts))}</div>"
