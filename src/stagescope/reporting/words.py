"""What a page says of its runs in words, as it travels: names, explanations, symbols, and what differs between runs."""

import json
import math
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from stagescope.claims.claim import Verdict
from stagescope.papers.registry import tags
from stagescope.views.view import GLOSSARY, Explained, Matrices, Points, Portrait, captions, plain

OTHERS = "other claims"


def label(text: str | None, longest: int = 2000) -> str:
    """A name as it travels, empty for none: cleaned, and cut where nobody reads on; a page shows the rest in a tooltip."""
    whole = "" if text is None else clean(str(text))
    return whole if len(whole) <= longest else f"{whole[:longest]}… ({len(whole):,} characters)"


def labels(names: Iterable[str]) -> list[str]:
    return list(map(label, names))


def texts_of(found: Any, *names: str) -> dict[str, str]:
    """Texts of an object as they travel."""
    return {name: label(getattr(found, name)) for name in names}


def clean(text: str) -> str:
    """Halves of surrogate pairs are no characters; each is replaced by U+FFFD."""
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def number(value: float | None) -> float | None:
    """JSON has no infinity: what is not finite becomes null."""
    return None if value is None or not math.isfinite(value) else float(value)


def numbers_of(found: Any, *names: str) -> dict[str, float | None]:
    """Numbers of an object as they travel."""
    return {name: number(getattr(found, name)) for name in names}


def about(portrait: Portrait) -> dict[str, Any] | None:
    """The explanation of a run; without one, the evidence of its stages."""
    found = portrait.explained
    if found is None:
        if portrait.stages is None:
            return None
        found = Explained("", captions=captions(portrait.stages, plain))
    cited, table = portrait.reference, found.table
    return {
        **texts_of(found, "sentence", "lead"),
        "table": None
        if table is None
        else {
            "title": label(table.title),
            "rows": labels(table.rows),
            "columns": labels(table.columns),
            "values": [[number(float(value)) for value in row] for row in table.values],
        },
        "captions": [
            {**texts_of(one, "title", "text"), "start": number(one.start) or 0.0, "stop": number(one.stop)}
            for one in found.captions
        ],
        "paper": None if cited is None else texts_of(cited, "text", "arxiv"),
    }


def glossary(group: Sequence[Portrait]) -> dict[str, str]:
    """Symbols of all pages, then those of the papers of a scene."""
    own = [portrait.explained.glossary for portrait in group if portrait.explained is not None]
    return {label(symbol): label(says) for found in (GLOSSARY, *own) for symbol, says in found.items()}


def claim_place(row: Verdict) -> str:
    """Where a claim stands in its theory, such as a saddle or a stage."""
    known = tags().get(row.tag)
    return label(known.number) if known is not None else OTHERS


def places_of(group: Sequence[Portrait]) -> list[str]:
    """Places of all claims of a scene, in the order in which their papers declare them."""
    declared = list(tags())
    first: dict[tuple[str, str], int] = {}
    for rank, tag in enumerate(declared):
        first.setdefault((_paper(tag), label(tags()[tag].number)), rank)
    ranks: dict[str, int] = {}
    for row in (row for portrait in group for row in portrait.ledger or ()):
        place = claim_place(row)
        rank = first.get((_paper(row.tag), place), len(declared))
        ranks[place] = min(rank, ranks.get(place, rank))
    return sorted(ranks, key=lambda place: ranks[place])


def _paper(tag: str) -> str:
    return tag.split(":")[0]


def tokens_of(group: Sequence[Portrait]) -> list[str]:
    """Tokens of a scene in the order of their colours: that of the matrices between tokens, or of points."""
    views = [view for portrait in group for view in portrait.views]
    names = [name for view in views if isinstance(view, Matrices) and view.tokens for name in view.rows]
    names = names or [name for view in views if isinstance(view, Points) and view.tokens for name in view.labels]
    return labels(dict.fromkeys(names))[:1000]  # more than eight have no colour


def differing(group: Sequence[Portrait]) -> list[list[Any]]:
    """Options that are not the same in all runs of a scene: the name, and the value of each run."""
    configs = [portrait.run.config or {} for portrait in group]
    names = dict.fromkeys(name for config in configs for name in config)
    found = [[label(name), [_value(config.get(name)) for config in configs]] for name in names]
    return [[name, values] for name, values in found if len(set(values)) > 1][:12]


def _value(value: Any) -> str:
    """A setting as it is shown: of a file its name alone."""
    if isinstance(value, str):
        return label(Path(value).name if Path(value).is_absolute() else value)
    if isinstance(value, float):
        return f"{value:.6g}"
    if isinstance(value, list | tuple):
        return label(" ".join(map(_value, value)))
    return "–" if value is None else label(json.dumps(value, default=str))
