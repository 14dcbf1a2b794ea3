"""Versions of the rules by which the claims of a sweep were judged: one column never mixes two of them."""

import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from stagescope.claims.claim import Claim
from stagescope.sweeping.rows import Row, reached_end

UNWRITTEN = 1
"""The version of a row that says none: version 0.1.0 wrote such rows."""


def version(row: Row, tag: str) -> int:
    """The version of the rules by which a row was judged; a tag that a paper uses twice is numbered."""
    rules = row.get("rules") or {}
    return rules.get(tag, rules.get(re.sub(r" \(\d+\)$", "", tag), UNWRITTEN))


def newest_verdict(rows: Iterable[Row], tag: str) -> Callable[[Row], Any]:
    """Reads the verdict of a claim from the rows that were judged by the newest rules among them; None from the others."""
    newest = max(version(row, tag) for row in rows if tag in (row.get("verdicts") or {}))
    return lambda row: (row.get("verdicts") or {}).get(tag) if version(row, tag) == newest else None


def present(claims: Iterable[Claim]) -> dict[str, int]:
    """The versions of the rules in force."""
    return {claim.tag: claim.rules for claim in claims}


def outdated(row: Row, rules: Mapping[str, int]) -> bool:
    """Whether a row was judged when the claims, or the rules of one of them, were others than now."""
    return reached_end(row) and "verdicts" in row and row.get("rules") != dict(rules)
