"""The studies there are, on one screen; and what one of them has."""

from typing import TYPE_CHECKING, Any

from rich.text import Text

from stagescope.cli.render import new_table, show
from stagescope.errors import sentence
from stagescope.options import option_words
from stagescope.papers.registry import paper_of, studies

if TYPE_CHECKING:
    from stagescope.papers.study import Study


def print_studies() -> None:
    """All studies: what each is about, and how many presets and named sweeps it has; on a terminal of 24 lines."""
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
    return {name: _catalogued(study) for name, study in studies().items() if only in (None, name)}


def _catalogued(study: "Study") -> dict[str, Any]:
    """What one study has; figures and claims whose modules fail to load are left out, and `problems` says why."""
    found = {
        "title": study.title,
        "paper": paper_of(study.name).reference.text,
        "presets": {preset: dict(values) for preset, values in study.presets.items()},
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
            found[part] = names()
        except Exception as error:  # of somebody else's paper: the others are listed all the same
            found["problems"].append(f"the {part} of {study.name} cannot be listed: {sentence(error)}")
    return found


def print_catalogue(found: dict[str, Any]) -> None:
    for name, study in found.items():
        show(Text.assemble((name, "bold"), f" {study['title']}"))
        show(Text(study["paper"], style="dim"))
        settings = {
            preset: " ".join(word for name, value in values.items() for word in option_words(name, value)) or "(defaults)"
            for preset, values in study["presets"].items()
        }
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
