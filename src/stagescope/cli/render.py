"""What the commands show on a terminal."""

from collections.abc import Iterable, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any, get_args

from rich import box
from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
from rich.segment import Segment
from rich.table import Table
from rich.text import Text

from stagescope.claims.claim import Outcome
from stagescope.claims.ledger import VERDICT_WIDTH, Ledger
from stagescope.core.errors import printable, sentence
from stagescope.detect.stage import Stages, span_text

if TYPE_CHECKING:
    from stagescope.landscape.continuation import Branch
    from stagescope.landscape.ladder import Ladder
    from stagescope.landscape.saddle_path import SaddlePath
    from stagescope.readings.reading import Reading
    from stagescope.readings.study import Study
    from stagescope.watching.heads import Heads

LEFT_OUT = ("not reached", "not counted")
"""States of events that `stages` lists only if asked."""
MANY_HEADS = 32
"""Heads from which on those without a name are counted instead of listed."""


class _Safe:
    """A renderable with every character spelled out that a terminal would obey: stored text may come from anybody."""

    def __init__(self, renderable: RenderableType) -> None:
        self._renderable = renderable

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        for segment in console.render(self._renderable, options):
            yield segment if segment.control else Segment(printable(segment.text), segment.style)


def show(renderable: RenderableType) -> None:
    """Print on the terminal: what the commands show in colours goes through here."""
    Console().print(_Safe(renderable))


def print_info(facts: dict[str, Any]) -> None:
    table = new_table()
    for name, value in facts.items():
        if value is None or value in ("", {}):
            continue
        if isinstance(value, dict):
            entries = {key: item for key, item in value.items() if item not in (None, {}, [], ())}
            value = "\n".join(f"{key} = {_value(item)}" for key, item in entries.items())
        table.add_row(Text(name, style="bold"), Text(_value(value)))
    show(table)


def print_stages(run_stages: Stages, all_events: bool = False) -> None:
    """Events with their intervals, stages, transitions of curves that are no events already, and notes.

    Events that were not reached are counted, or listed with their reasons where the `whole` is asked for.
    """
    if "replay" in run_stages.notes:
        show(Text(run_stages.notes["replay"], style="yellow"))
    unreached = [] if all_events else [name for name, event in run_stages.estimates.items() if event.state in LEFT_OUT]
    if len(run_stages.events) > len(unreached):
        show(_events(run_stages, unreached))
    if unreached:
        show(Text(f"not reached: {', '.join(unreached)} (--all lists them with reasons)", style="yellow"))
    stages = new_table("stage", "from", "to", "evidence")
    stages.columns[0].max_width = 20  # the evidence needs the room
    of_heads = [stage for stage in run_stages if stage.aside]
    for stage in run_stages if len(of_heads) <= MANY_HEADS else [stage for stage in run_stages if not stage.aside]:
        stop = "end" if stage.stop is None else f"{stage.stop:.5g}"
        name = Text.assemble((stage.name, "bold"), stage.label.removeprefix(stage.name))
        stages.add_row(name, f"{stage.start:.5g}", stop, Text(stage.evidence))
    show(stages)
    if len(of_heads) > MANY_HEADS:
        show(Text(f"{len(of_heads)} stages of heads are not listed here: `stagescope heads` lists them"))
    changes = [(curve, change) for curve, change in run_stages.transitions if change.t not in run_stages.events.values()]
    if changes:
        table = new_table("transition of", run_stages.clock, "95 % interval", "changes by")
        for curve, transition in changes:
            table.add_row(
                Text(curve),
                f"{transition.t:.5g}",
                span_text(transition.low, transition.high, " to "),
                f"{transition.amplitude:+.4g}",
            )
        show(table)
    for name, note in run_stages.notes.items():
        if name not in run_stages.events and name != "replay":
            show(Text(f"{name}: {note}", style="dim"))
    if run_stages.status not in ("finished", "stopped"):
        show(Text(f"the run is {run_stages.status}: events after its last frame are unknown", style="yellow"))


def _events(stages: Stages, unreached: list[str]) -> Table:
    """An event a row: its time and interval, or its state and why; sentences have the width of both columns."""
    timed = [event for event in stages.estimates.values() if event.time is not None]
    wide = max([len(stages.clock), *(len(f"{event.time:.5g}") for event in timed)])
    intervals = any(event.interval for event in timed)
    table = new_table("event", f"{stages.clock:<{wide}}" + ("  95 % interval" if intervals else ""))
    for name, event in stages.estimates.items():
        if name in unreached:
            continue
        note = stages.notes.get(name, "")
        cell = Text(
            f"{event.time:<{wide}.5g}" if event.time is not None else event.words,
            style="" if event.time is not None else "yellow",
        )
        if event.interval is not None:
            cell.append(f"  {span_text(*event.interval, ' to ')}")
        if note:
            cell.append(f"{'  ' if event.time is not None else ': '}{note}", style="dim")
        table.add_row(Text(name), cell)
    return table


def print_heads(run_heads: "Heads") -> None:
    """A head a row; of many, those that have or had a name. Notes are below."""
    heads = run_heads.heads if len(run_heads) <= MANY_HEADS else tuple(head for head in run_heads if head.spells)
    table = new_table("head", "does", "score", "chance", f"since {run_heads.clock}", "before")
    table.padding = (0, 1, 0, 0)
    for column in table.columns[:5]:
        column.no_wrap = True
    for head in heads:
        last, before = head.since, head.spells if head.since is None else head.spells[:-1]
        since = "" if last is None else "the start" if last.step is None else f"{last.step:.5g}"
        if last is not None and last.low is not None and last.high is not None:
            since += f"  {span_text(last.low, last.high, ' to ')}"
        numbers = ("" if value is None else f"{value:.2f}" for value in (head.score, head.chance))
        style = "dim" if last is None else ""
        cells = (head.label, head.name, *numbers, since, "; ".join(map(str, before)))
        table.add_row(*(Text(cell, style=style) for cell in cells))
    if heads:
        show(table)
    if len(heads) < len(run_heads):
        show(Text(f"{len(run_heads) - len(heads)} of {len(run_heads)} heads never had a name"))
    for name, note in run_heads.notes.items():
        show(Text(f"{name}: {note}", style="dim"))


def print_ladder(ladder: "Ladder") -> None:
    """One rung a row; notes are below the table."""
    table = new_table("rung", ladder.clock, "distance", "opens", "rate", "left at", "cosines")
    table.padding = (0, 1, 0, 0)
    for rung in ladder:
        rate = rung.rates[0] if rung.rates else None
        cells = (rung.label, _brief(rung.t), f"{rung.distance:.3f}" if rung.found else "-", rung.opening or "nothing")
        rate_text = rung.law_words or _pair(rate, rung.measured_rate, 3)
        pairs = (rate_text, _pair(rung.predicted_escape, rung.measured_escape, 4))
        cosines = " ".join(f"{cosine:.3f}" for cosine in rung.cosines) or "-"
        table.add_row(*(Text(cell, style="" if rung.near else "dim") for cell in (*cells, *pairs, cosines)))
    show(table)
    if any(rung.law or rung.rates for rung in ladder):
        show(Text("rates and times as predicted, in brackets as measured; cosines of what opened with the prediction"))
    for rung in ladder:
        if rung.note:
            show(Text(f"{rung.label}: {rung.note}", style="dim"))
    if not len(ladder):
        show(Text("the run is never slower than before and after: it passes no critical point", style="yellow"))


def _pair(first: float | None, second: float | None, digits: int) -> str:
    return "-" if first is None and second is None else f"{_brief(first, digits)} ({_brief(second, digits)})"


def _brief(value: float | None, digits: int = 4) -> str:
    return "-" if value is None else f"{value:.{digits}g}"


def print_ledger(ledger: Ledger) -> None:
    """One claim after another, long reasons wrapped under their sentence."""
    from rich.padding import Padding

    for line in ledger.text().split("\n"):
        indent = len(line.plain) - len(line.plain.lstrip(" "))
        if indent:
            show(Padding(line[indent:], (0, 0, 0, indent)))
        elif line.plain[:VERDICT_WIDTH].strip() in get_args(Outcome):
            row = Table.grid()
            row.add_column(width=VERDICT_WIDTH)
            row.add_row(line[:VERDICT_WIDTH], line[VERDICT_WIDTH:])
            show(row)
        else:
            show(line)


def print_text(value: Any) -> None:
    show(value.text())


def print_path(scale: float, seed: int, path: "SaddlePath") -> None:
    """A saddle path: events with their intervals, legs, and what is not predicted."""
    by_flow, settled = path.by == "flow", any(leg.rates for leg in path.legs)
    source = "" if path.by == "saddle path" else f"; times are those of the {path.by}"
    show(Text(f"start scale {scale:g}, seed {seed}{source}", style="bold"))
    events = new_table("event", path.clock, "interval")
    for name in path.sequence:
        event = path.events[name]
        events.add_row(Text(name, style="bold"), f"{event.t:.6g}", f"{event.low:.6g} to {event.high:.6g}")
    heads = ["leg", "from", "to", "loss", "opens"]
    if not by_flow:
        heads = [*heads[:-1], "state", "opens", "rate", *["at the point"] * settled]
    legs = new_table(*heads)
    legs.collapse_padding = True
    for column in legs.columns[4:6]:
        column.no_wrap = True
    for leg in path.legs:
        stop = "end" if leg.t_out is None else f"{leg.t_out:.5g}"
        row = [leg.label, f"{leg.t_in:.5g}", stop, f"{leg.loss:.4f}", leg.opens or ""]
        if not by_flow:
            rates = "" if leg.local_rate is None else f"{leg.local_rate:.4g}", " ".join(f"{rate:.4g}" for rate in leg.rates[:1])
            row = [*row[:-1], leg.state, *row[-1:], *rates[: 1 + settled]]
        legs.add_row(*row)
    for table in (events, legs):
        if table.row_count:
            show(table)
    for note in path.notes:
        show(Text(f"note: {note}", style="dim"))


def print_branch(over: str, rung: str, branch: "Branch") -> None:
    """A branch: some of its points, folds and crossings, and how it ends."""
    show(Text(f"critical points ({rung}) over {over}", style="bold"))
    table = new_table(over, "loss", "growing inside", "opens", "at rate")
    for i in sorted({*range(0, len(branch.points), max(1, len(branch.points) // 20)), len(branch.points) - 1}):
        point = branch.points[i]
        rate, kind = max(((rates[0], kind) for kind, rates in point.openings.items() if rates), default=(0.0, "nothing"))
        inside = "none: stable" if point.stable else str(point.index)
        table.add_row(f"{point.value:.4g}", f"{point.loss:.5f}", inside, kind, f"{rate:.4g}" if rate else "")
    show(table)
    for event in (*branch.folds, *branch.crossings):
        show(Text(f"{event.kind} at {over} = {event.value:.5g}, loss {event.loss:.5f}: {event.what}"))
    for note in branch.notes:
        show(Text(f"note: {note}", style="dim"))


def new_table(*columns: str) -> Table:
    table = Table(box=box.SIMPLE_HEAD if columns else None, show_header=bool(columns), pad_edge=False)
    for column in columns:
        table.add_column(Text(column))
    return table


def _value(value: Any) -> str:
    """A fact in words: numbers with a few digits, several things in a row."""
    if isinstance(value, dict):
        return ", ".join(
            f"{key} ({_value(item)})" if isinstance(item, dict) else f"{key} {_value(item)}" for key, item in value.items()
        )
    if isinstance(value, list | tuple):
        return ", ".join(f"({_value(item)})" if isinstance(item, dict | list | tuple) else _value(item) for item in value)
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:.6g}" if isinstance(value, float) else "-" if value is None else str(value)


def print_studies() -> None:
    """All studies: what each is about, and how many presets and named sweeps it has; on a terminal of 24 lines."""
    from stagescope.readings.registry import studies  # an answer that is kept is shown without papers

    table = new_table("study", "about", "presets")
    table.padding = (0, 1, 0, 0)
    table.columns[0].no_wrap, table.columns[2].justify = True, "right"
    for name, study in studies().items():
        table.add_row(Text(name, style="bold"), Text(study.title), f"{len(study.presets)}")
    show(table)
    show(Text("list STUDY: its presets, sweeps, figures and claims.  cite STUDY: its paper."))
    show(Text("run STUDY --preset NAME --out FOLDER: train it; without --preset the defaults."))


def catalogue(only: str | None = None) -> dict[str, Any]:
    """Everything that can be named on the command line, of all studies or of one."""
    from stagescope.readings.registry import studies

    return {name: _catalogued(study) for name, study in studies().items() if only in (None, name)}


def _catalogued(study: "Study") -> dict[str, Any]:
    """What one study has; figures and claims whose modules fail to load are left out, and `problems` says why."""
    from stagescope.readings.registry import paper_of

    facts = {
        "title": study.title,
        "paper": paper_of(study.name).reference.text,
        "presets": {preset: dict(values) for preset, values in study.presets.items()},
        "preset_notes": dict(study.preset_notes),
        "sweeps": {key: sweep.title for key, sweep in study.sweeps.items()},
        "measures": list(study.measures),
        "figures": {},
        "claims": {},
        "problems": [],
    }
    listed = {
        "figures": lambda: {key: figure.title for key, figure in study.figures().items()},
        "claims": lambda: {claim.tag: claim.statement for claim in study.claims()},
    }
    for part, names in listed.items():
        try:
            facts[part] = names()
        except Exception as error:  # of somebody else's paper: the others are listed all the same
            facts["problems"].append(f"the {part} of {study.name} cannot be listed: {sentence(error)}")
    return facts


def print_catalogue(listing: dict[str, Any]) -> None:
    from stagescope.core.options import option_words

    for name, study in listing.items():
        show(Text.assemble((name, "bold"), f" {study['title']}"))
        show(Text(study["paper"], style="dim"))
        settings = {
            preset: " ".join(word for name, value in values.items() for word in option_words(name, value)) or "(defaults)"
            for preset, values in study["presets"].items()
        }
        settings |= {preset: f"{note}: {settings[preset]}" for preset, note in study["preset_notes"].items()}
        _show_pairs("preset", "settings", settings, style="dim")
        _show_pairs("sweep", "", study["sweeps"])
        if study["measures"]:
            show(Text(f"measures of its own: {', '.join(study['measures'])}\n"))
        _show_pairs("figure", "", study["figures"])
        _show_pairs("claim", "statement", study["claims"])


def _show_pairs(first: str, second: str, texts: dict[str, str], style: str = "") -> None:
    """A table, where there is something in it."""
    if not texts:
        return
    table = new_table(first, second)
    for name, text in texts.items():
        table.add_row(Text(name), Text(text, style=style))
    show(table)


TOKENS = {
    "word": "words",
    "lower": "lower-case words",
    "basic": "words of basic_english",
    "char": "characters",
    "bpe": "pieces of words (BPE)",
}
LAYOUTS = {
    "text": "one document",
    "lines": "a document in each line",
    "separated": "documents separated by <|endoftext|>",
    "jsonl": "documents as JSON lines",
}


def print_corpus(facts: dict[str, Any], about: Iterable[Any]) -> None:
    """Counts of a text, then what papers predict for it."""
    console, text = Console(), facts["corpus"]
    kind = f"{TOKENS[text['tokens']]}; {LAYOUTS[text['layout']]}"
    console.print(Text.assemble((printable(text["source"]), "bold"), f": {kind}"))
    console.print(Text(f"sha256 {text['sha256']}", style="dim"))
    unit = "words and marks, before they are cut" if text["tokens"] == "bpe" else "tokens"
    for name, part in facts["parts"].items():
        documents = f" in {part['documents']:,} documents" if part["documents"] > 1 else ""
        console.print(f"{name:<6} {part['tokens']:>12,} {unit}{documents}", highlight=False)
    types = "different ones" if text["tokens"] == "bpe" else "types"
    vocabulary = f"{facts['types']:,} {types}, vocabulary {facts['vocabulary']:,}"
    split = f"{facts['train_tokens']:,} tokens to train on, {facts['held_out_tokens']:,} held out"
    console.print(f"{vocabulary}; {split}", highlight=False)
    words = [printable(f"{word} {share:.3f}") for word, share in facts["frequent"].items()]
    console.print(Text("\n".join(_lines("most frequent:", words, console.width))))
    nats = ", ".join(f"{name} {value:.3f}" for name, value in facts["entropy"].items())
    console.print(Text(f"entropy in nats: {nats}"))
    for item in about:
        console.print(item)


def _lines(first: str, words: list[str], width: int) -> list[str]:
    """Words in lines of a width; none is cut, so that a number stands beside its word."""
    lines = [" ".join([first, *words[:1]])]
    for word in words[1:]:
        if len(lines[-1]) + 2 + len(word) <= width:
            lines[-1] += f"  {word}"
        else:
            lines.append(f"  {word}")
    return lines


HINT = "What the symbols mean: --explain"


def print_captions(run_reading: "Reading") -> None:
    """What happens in each stage, as the page says it."""
    table = new_table("stage", "from", "to", "what happens")
    for one in run_reading.explained.captions:
        stop = "end" if one.stop is None else f"{one.stop:.5g}"
        table.add_row(Text(one.title, style="bold"), f"{one.start:.5g}", stop, Text(one.text))
    show(table)


def print_stage_legend(run_reading: "Reading", stages: Stages) -> None:
    """Symbols of events, stages and their evidence."""
    from stagescope.views.view import GLOSSARY, occurring

    names = [*stages.estimates, *(stage.name for stage in stages if not stage.aside)]
    glossary = _glossary(run_reading)
    _print(occurring(GLOSSARY, names) | occurring(glossary, [*names, *(stage.evidence for stage in stages if not stage.aside)]))


def print_claim_legend(run_reading: "Reading", ledger: Ledger) -> None:
    """Symbols of claims that apply to the run."""
    from stagescope.views.view import occurring

    texts = [f"{row.statement} {row.reason}" for row in ledger if row.verdict != "not applicable"]
    _print(occurring(_glossary(run_reading), texts))


def _glossary(run_reading: "Reading") -> Mapping[str, str]:
    """The glossary of the paper; none where the run cannot be explained, as its answer stands without it."""
    with suppress(Exception):
        return run_reading.explained.glossary
    return {}


def _print(legend: Mapping[str, tuple[Iterable[str], str]]) -> None:
    if not legend:
        return
    table = Table.grid(padding=(0, 2, 0, 0))
    for symbols, says in legend.values():
        first, *further = symbols
        table.add_row(Text(f"{first}, ..." if further else first, style="bold"), Text(says))
    show(Text("Symbols:", style="dim"))
    show(table)
