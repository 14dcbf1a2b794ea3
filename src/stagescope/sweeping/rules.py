"""Versions of the rules by which the claims of a sweep were judged: one column never mixes two of them."""

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from stagescope.claims.claim import Claim
from stagescope.sweeping.rows import Row, reached_end

UNWRITTEN = 1
"""The version of a row that says none: version 0.1.0 wrote such rows."""


@dataclass(frozen=True)
class Rules:
    """The rules in force: the version of each claim, and of the caller's own claims the digest of the module they are from."""

    versions: dict[str, int]
    own: dict[str, str]

    @classmethod
    def of(cls, claims: Iterable[Claim], own: Iterable[Claim] = (), source: str | None = None) -> "Rules":
        own = tuple(own)
        return cls({claim.tag: claim.rules for claim in (*claims, *own)}, {claim.tag: source or "" for claim in own})

    def row(self) -> dict[str, Any]:
        """What a row says of the rules it was judged by."""
        return {"rules": self.versions, **({"own": self.own} if self.own else {})}


def version(row: Row, tag: str) -> tuple[int, str | None]:
    """The version of the rules by which a row was judged, and the module of a claim of the caller's own.

    A tag that a paper uses twice is numbered.
    """
    rules = row.get("rules") or {}
    return rules.get(tag, rules.get(re.sub(r" \(\d+\)$", "", tag), UNWRITTEN)), (row.get("own") or {}).get(tag)


def newest_verdict(rows: Iterable[Row], tag: str) -> Callable[[Row], Any]:
    """Reads the verdict of a claim from the rows that were judged by the newest rules among them; None from the others.

    Of the caller's own modules the newest is the one that judged last: their digests have no order.
    """
    judged = [row for row in rows if tag in (row.get("verdicts") or {})]
    own = any(version(row, tag)[1] for row in judged)
    last = max(judged, key=lambda row: row.get("committed", 0) if own else version(row, tag)[0])
    newest = version(last, tag)
    return lambda row: (row.get("verdicts") or {}).get(tag) if version(row, tag) == newest else None


def outdated(row: Row, rules: Rules) -> bool:
    """Whether a row was judged when the claims, or the rules of one of them, were others than now."""
    judged_by = row.get("rules"), row.get("own") or {}
    return reached_end(row) and "verdicts" in row and judged_by != (rules.versions, rules.own)
