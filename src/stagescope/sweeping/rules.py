"""Versions of the rules by which the claims of a sweep were judged: one column never mixes two of them."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from stagescope.claims.claim import Claim
from stagescope.sweeping.rows import Row, reached_end

UNWRITTEN = 1
"""The version of a row that says none: version 0.1.0 wrote such rows."""


def version(row: Row, tag: str) -> int:
    return (row.get("rules") or {}).get(tag, UNWRITTEN)


def newest_verdict(rows: Iterable[Row], tag: str) -> Callable[[Row], Any]:
    """Reads the verdict of a claim from the rows that were judged by the newest rules among them; None from the others."""
    newest = max(version(row, tag) for row in rows if tag in (row.get("verdicts") or {}))
    return lambda row: (row.get("verdicts") or {}).get(tag) if version(row, tag) == newest else None


def present(claims: Iterable[Claim]) -> dict[str, int]:
    """The versions of the rules in force."""
    return {claim.tag: claim.rules for claim in claims}


def outdated(row: Row, rules: Mapping[str, int]) -> bool:
    """Whether a verdict of a row was judged by rules that are no longer in force, or by a claim that is no longer there."""
    tags = row.get("verdicts") or {} if reached_end(row) else {}
    return any(version(row, tag) != rules.get(tag.partition(" (")[0]) for tag in tags)
