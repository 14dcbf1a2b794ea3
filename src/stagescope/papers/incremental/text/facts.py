"""The facts of a text for incremental learning: the importance of each lag."""

from rich import box
from rich.table import Table
from rich.text import Text

from stagescope.corpora.corpus import TextCorpus
from stagescope.corpora.facts import AboutText
from stagescope.papers.incremental.text.information import lag_information


def about_text(corpus: TextCorpus, window: int, until: float | None = None, progress: bool | None = False) -> AboutText:
    """Information of the first lags, alone and added to the most informative one; it depends on no window and no time."""
    listed = 8
    found = lag_information(corpus, listed)
    facts = {name: getattr(found, name).tolist() for name in ("alone", "added", "errors")} | {"order": list(found.order)}
    table = Table("nats at lag", *(str(lag + 1) for lag in range(listed)), box=box.SIMPLE_HEAD, pad_edge=False)
    for name, label in (("alone", "alone"), ("added", "added"), ("errors", "+-")):
        table.add_row(label, *(f"{value:.3f}" for value in facts[name]))
    order = Text(f"order of importance: {' '.join(map(str, facts['order']))}")
    return AboutText({"lags": facts}, (table, order))
