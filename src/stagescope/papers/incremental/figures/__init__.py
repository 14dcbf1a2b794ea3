"""The figures of incremental learning of sparse attention (arXiv 2602.19143): the paper's nineteen, and four it lacks.

Figures that show one run (2 and 3, 6 and 7, ...) share it; the first of a pair shows losses or divergences, the other attention,
or the other way round as in the paper's order of stages: which of the two is which was not published with the numbers.
"""

from collections.abc import Callable
from importlib import import_module
from typing import Any

from stagescope.papers.incremental.figures import flows, numbers, places
from stagescope.papers.incremental.stopping.figures import STOPPING
from stagescope.views.figure import Figure, Numbers

FLOWS = "incremental_flows_draw"
FULL = "about {} on 2 cores"


def _draw(name: str, module: str = "incremental_draw") -> Callable[[Numbers], Any]:
    """The drawing function of that name; matplotlib is imported when something is drawn, not when figures are listed."""

    def draw(numbers: Numbers) -> Any:
        return getattr(import_module(f"stagescope.figures.{module}"), name)(numbers)

    return draw


def _hours(name: str, title: str, compute: Any, draw: str, hours: str) -> Figure:
    return Figure(name, title, compute, _draw(draw), cost=FULL.format(hours), full=True)


def _minutes(name: str, title: str, compute: Any, draw: str, minutes: str, module: str = "incremental_draw") -> Figure:
    return Figure(name, title, compute, _draw(draw, module), cost=FULL.format(minutes))


_HEADS, _ONLINE = "Heads that read tokens and positions", "New sequences at every step"
_WEIGHTS, _OVERLAP = "Weights .7 and .3 inside a span", "Overlapping spans"
_FAR, _TWO, _SGD = "Transformer, farthest span most important", "Transformer of two layers", "Transformer, heavy-ball descent"
_ALL = (
    _minutes("1", f"{_HEADS}: loss and divergences", numbers.minimal, "losses", "2 min"),
    _hours("2", "Transformer of one layer: attention", numbers.one_layer, "attention", "1 h"),
    _hours("3", "Transformer of one layer: divergences", numbers.one_layer, "divergences", "1 h"),
    _minutes("4", f"{_HEADS}: initial noise and ratios", numbers.inits_and_ratios, "inits_and_ratios", "12 min"),
    _minutes("5", "Number of training sequences", numbers.sizes, "sizes", "6 min"),
    _minutes("6", f"{_ONLINE}: loss and divergences", numbers.online, "losses", "5 min"),
    _minutes("7", f"{_ONLINE}: divergences", numbers.online, "divergences", "5 min"),
    _hours("8", f"{_FAR}: loss and divergences", numbers.reversed_importance, "losses", "1 h"),
    _hours("9", f"{_FAR}: attention", numbers.reversed_importance, "attention", "1 h"),
    _minutes("10", "Regression flow, mirror law", flows.flow, "flow", "10 s", FLOWS),
    _hours("11", f"{_TWO}: loss and divergences", numbers.two_layers, "losses", "3 h"),
    _hours("12", f"{_TWO}: attention of the first", numbers.two_layers, "attention", "3 h"),
    _minutes("13", f"{_WEIGHTS}: loss and divergences", numbers.weighted, "losses", "3 min"),
    _minutes("14", f"{_WEIGHTS}: attention", numbers.weighted, "attention", "3 min"),
    _minutes("15", f"{_OVERLAP}: loss and final attention", numbers.overlapping, "overlapping", "4 min"),
    _minutes("16", f"{_OVERLAP}: attention of three heads", numbers.overlapping, "attention_of_fewer", "4 min"),
    _minutes("17", f"{_OVERLAP}: attention of four heads", numbers.overlapping, "attention_of_more", "4 min"),
    _hours("18", f"{_SGD}: divergences", numbers.sgd, "divergences", "6 h"),
    _hours("19", f"{_SGD}: attention", numbers.sgd, "attention", "6 h"),
    _minutes("-clock", "Model and flow on one clock", flows.clocks, "clocks", "1 min", FLOWS),
    _minutes("-escape", "Escape from plateau 1 against the initial noise", flows.escapes, "escapes", "20 s", FLOWS),
    _minutes("-encodings", "One task, three position encodings", places.encodings, "encodings", "5 min", FLOWS),
    STOPPING,
)
FIGURES = {figure.name.removeprefix("-"): figure for figure in _ALL}
