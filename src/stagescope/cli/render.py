"""What the commands show on a terminal."""

from typing import TYPE_CHECKING, Any

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from stagescope.claims.ledger import Ledger
from stagescope.detect.stage import Stages
from stagescope.landscape.ladder import Ladder
from stagescope.reporting.provenance import option_words

if TYPE_CHECKING:
    from stagescope.papers.incremental.stopping.study import EarlyStopping


def print_info(found: dict[str, Any]) -> None:
    table = _table()
    for name, value in found.items():
        if isinstance(value, dict):
            value = "\n".join(f"{key} = {_value(item)}" for key, item in value.items() if item is not None)
        table.add_row(Text(name, style="bold"), Text(_value(value)))
    Console().print(table)


def print_stages(found: Stages) -> None:
    console = Console()
    events = _table("event", found.clock, "")
    for name, when in found.events.items():
        shown = "not reached" if when is None else f"{when:.5g}"
        events.add_row(name, Text(shown, style="yellow" if when is None else ""), Text(found.notes.get(name, ""), style="dim"))
    console.print(events)
    stages = _table("stage", "from", "to", "evidence")
    for stage in found:
        stop = "end" if stage.stop is None else f"{stage.stop:.5g}"
        stages.add_row(Text(stage.name, style="bold"), f"{stage.start:.5g}", stop, Text(stage.evidence))
    console.print(stages)
    if found.status not in ("finished", "stopped"):
        console.print(Text(f"the run is {found.status}: events after its last frame are unknown", style="yellow"))


def print_ladder(found: Ladder) -> None:
    """One rung a row; what the numbers do not say is said below the table."""
    table = _table("rung", found.clock, "distance", "opens", "rate", "left at", "cosines")
    table.padding = (0, 1, 0, 0)
    for rung in found:
        rate = rung.rates[0] if rung.rates else None
        cells = (rung.label, _brief(rung.t), f"{rung.distance:.3f}" if rung.found else "-", rung.opening or "nothing")
        pairs = (_pair(rate, rung.measured_rate, 3), _pair(rung.predicted_escape, rung.measured_escape, 4))
        cosines = " ".join(f"{cosine:.3f}" for cosine in rung.cosines) or "-"
        table.add_row(*(Text(cell, style="" if rung.near else "dim") for cell in (*cells, *pairs, cosines)))
    console = Console()
    console.print(table)
    if any(rung.rates for rung in found):
        console.print(Text("rates and times as predicted, in brackets as measured; cosines of what opened with the prediction"))
    for rung in found:
        if rung.note:
            console.print(Text(f"{rung.label}: {rung.note}", style="dim"))
    if not len(found):
        console.print(Text("the run is never slower than before and after: it passes no critical point", style="yellow"))


def _pair(first: float | None, second: float | None, digits: int) -> str:
    return "-" if first is None and second is None else f"{_brief(first, digits)} ({_brief(second, digits)})"


def _brief(value: float | None, digits: int = 4) -> str:
    return "-" if value is None else f"{value:.{digits}g}"


def print_ledger(ledger: Ledger) -> None:
    """One claim after another, long reasons wrapped under their sentence."""
    from rich.padding import Padding

    console = Console()
    for line in ledger.text().split("\n"):
        indent = len(line.plain) - len(line.plain.lstrip(" "))
        console.print(Padding(line[indent:], (0, 0, 0, indent)) if indent else line)


def print_stopping(found: "EarlyStopping") -> None:
    """One size a row: losses as means over the runs, classes run by run."""
    from stagescope.papers.incremental.stopping.study import Agreement

    console = Console()
    summary = found.summary()
    table = _table("N", "oracle", "held-out", "adaptive", "end", "gain", "class", "best fit", "ridge")
    table.padding = (0, 1, 0, 0)
    for entry in summary:
        losses = [f"{entry['loss'][rule]:.3f}" for rule in ("oracle", "held-out", "adaptive", "end")]
        classes = [" ".join("?" if j is None else str(j) for j in entry[name]) for name in ("class_at_stop", "best_class")]
        rest = (f"{entry['stop_gain']:.3f}", *classes, f"{entry['loss']['ridge']:.3f}")
        table.add_row(str(entry["sequences"]), *losses, *rest)
    console.print(table)
    levels = " ".join(f"{level:.3f}" for level in found.levels)
    console.print(Text(f"losses to the true law, mean over runs; levels of the classes: {levels}", style="dim"))
    told = "class: nearest at the best stop, run by run; best fit: class of the best likelihood fit, ? where it has not settled"
    console.print(Text(f"{told}; ridge: best ridge fit; fits are to the same sequences and told the lags", style="dim"))
    wins, runs = (sum(entry[name] for entry in summary) for name in ("ridge_wins", "runs"))
    console.print(f"class at the best stop = class of the best likelihood fit in {Agreement.of(summary)}")
    _print_not_judged(console, found)
    console.print(f"the ridge fit predicts better than the best stop in {wins} of {runs} runs")


def _print_not_judged(console: Console, found: "EarlyStopping") -> None:
    """Why runs are outside the regime of the claim, size by size."""
    for size in sorted({row["sequences"] for row in found.rows}):
        reasons = [row["not_judged"] for row in found.rows if row["sequences"] == size and row.get("not_judged")]
        if reasons:
            more = f" (and {len(reasons) - 1} more)" if len(reasons) > 1 else ""
            console.print(Text(f"not judged at N = {size}: {reasons[0]}{more}", style="dim"))


def catalogue() -> dict[str, Any]:
    """Everything that can be named on the command line."""
    from stagescope.papers.registry import paper_of, studies

    return {
        name: {
            "title": study.title,
            "paper": paper_of(name).reference.text,
            "presets": {preset: dict(values) for preset, values in study.presets.items()},
            "sweeps": {key: sweep.title for key, sweep in study.sweeps.items()},
            "figures": {key: figure.title for key, figure in study.figures().items()},
            "claims": {claim.tag: claim.statement for claim in study.claims()},
        }
        for name, study in studies().items()
    }


def print_catalogue(found: dict[str, Any]) -> None:
    console = Console()
    for name, study in found.items():
        console.print(Text(name, style="bold"), Text(study["title"]))
        console.print(Text(study["paper"], style="dim"))
        presets = _table("preset", "settings")
        for preset, values in study["presets"].items():
            settings = " ".join(word for name, value in values.items() for word in option_words(name, value))
            presets.add_row(preset, Text(settings or "(defaults)", style="dim"))
        console.print(presets)
        sweeps = _table("sweep", "")
        for sweep, title in study["sweeps"].items():
            sweeps.add_row(sweep, Text(title))
        console.print(sweeps)
        figures = _table("figure", "")
        for figure, title in study["figures"].items():
            figures.add_row(figure, Text(title))
        console.print(figures)
        claims = _table("claim", "statement")
        for tag, statement in study["claims"].items():
            claims.add_row(tag, Text(statement))
        console.print(claims)


def _table(*columns: str) -> Table:
    return Table(*columns, box=box.SIMPLE_HEAD if columns else None, show_header=bool(columns), pad_edge=False)


def _value(value: Any) -> str:
    return f"{value:.6g}" if isinstance(value, float) else str(value)
