"""Tokens as labels. They are texts of strangers: what is not seen is spelled out, and what is long is cut."""

from collections.abc import Iterable

from stagescope.errors import printable

LONGEST = 40
_SEEN = str.maketrans({" ": "␣", "\n": "↵", "\t": "⇥", "\r": "␍"})


def token_label(token: str) -> str:
    """A token on one line in which blanks and line ends are seen."""
    text = token[: LONGEST + 1].translate(_SEEN)
    shown = printable(text) or "(empty)"
    return shown if len(token) <= LONGEST and len(shown) <= 2 * LONGEST else f"{shown[: LONGEST - 1]}…"


def token_labels(tokens: Iterable[str], count: int) -> tuple[str, ...]:
    """Labels of the first `count` tokens; numbers where a run does not say what they are."""
    known = [token_label(token) for _, token in zip(range(count), tokens, strict=False)]
    return (*known, *(str(place) for place in range(len(known), count)))
