"""What the symbols in an answer mean, and what happens in each stage: the words of the page, on a terminal."""

from collections.abc import Iterable, Mapping
from contextlib import suppress

from rich.table import Table
from rich.text import Text

from stagescope.claims.ledger import Ledger
from stagescope.cli.render import new_table, show
from stagescope.detect.stage import Stages
from stagescope.papers.reading import Reading
from stagescope.views.explained import GLOSSARY, occurring

HINT = "What the symbols mean: --explain"


def print_captions(seen: Reading) -> None:
    """What happens in each stage, as the page says it."""
    table = new_table("stage", "from", "to", "what happens")
    for one in seen.explained.captions:
        stop = "end" if one.stop is None else f"{one.stop:.5g}"
        table.add_row(Text(one.title, style="bold"), f"{one.start:.5g}", stop, Text(one.text))
    show(table)


def print_stage_legend(seen: Reading, found: Stages) -> None:
    """Symbols of events, stages and their evidence."""
    names = [*found.estimates, *(stage.name for stage in found if not stage.aside)]
    own = _own(seen)
    _print(occurring(GLOSSARY, names) | occurring(own, [*names, *(stage.evidence for stage in found if not stage.aside)]))


def print_claim_legend(seen: Reading, found: Ledger) -> None:
    """Symbols of claims that apply to the run."""
    texts = [f"{row.statement} {row.reason}" for row in found if row.verdict != "not applicable"]
    _print(occurring(_own(seen), texts))


def _own(seen: Reading) -> Mapping[str, str]:
    """The glossary of the paper; none where the run cannot be explained, as its answer stands without it."""
    with suppress(Exception):
        return seen.explained.glossary
    return {}


def _print(legend: Mapping[str, tuple[Iterable[str], str]]) -> None:
    if not legend:
        return
    table = Table.grid(padding=(0, 2, 0, 0))
    for found, says in legend.values():
        first, *others = found
        table.add_row(Text(f"{first}, ..." if others else first, style="bold"), Text(says))
    show(Text("Symbols:", style="dim"))
    show(table)
