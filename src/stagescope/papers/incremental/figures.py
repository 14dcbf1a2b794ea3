"""The figures of incremental learning of sparse attention (arXiv 2602.19143): the paper's nineteen, and four of our own.

Figures that show one run (2 and 3, 6 and 7, ...) share it. Which of a pair shows losses and which attention was not published
with the numbers: it is our choice.
"""

from typing import Any

from stagescope.later import Later
from stagescope.papers.incremental.figures_flows import clocks, encodings, escapes, flow
from stagescope.papers.incremental.figures_numbers import (
    inits_and_ratios,
    minimal,
    one_layer,
    online,
    overlapping,
    reversed_importance,
    sgd,
    sizes,
    two_layers,
    weighted,
)
from stagescope.papers.incremental.stopping_figures import STOPPING
from stagescope.views.figure import Figure


def _figure(name: str, title: str, compute: Any, draw: str, cost: str, *, full: bool = False, module: str = "draw") -> Figure:
    """Matplotlib is imported when a figure is drawn, not when figures are listed."""
    drawn = Later(f"stagescope.papers.incremental.figures.{module}:{draw}")
    return Figure(name, title, compute, drawn, cost=f"about {cost} on 2 cores", full=full)


def _long(name: str, title: str, compute: Any, draw: str, cost: str) -> Figure:
    return _figure(name, title, compute, draw, cost, full=True)


def _flows(name: str, title: str, compute: Any, draw: str, cost: str) -> Figure:
    return _figure(name, title, compute, draw, cost, module="flows_draw")


_HEADS, _ONLINE = "Heads that read tokens and positions", "New sequences at every step"
_WEIGHTS, _OVERLAP = "Weights .7 and .3 inside a span", "Overlapping spans"
_FAR, _TWO, _SGD = "Transformer, farthest span most important", "Transformer of two layers", "Transformer, heavy-ball descent"
FIGURES = {
    figure.name.removeprefix("-"): figure
    for figure in (
        _figure("1", f"{_HEADS}: loss and divergences", minimal, "losses", "2 min"),
        _figure("2", "Transformer of one layer: attention", one_layer, "attention", "10 min"),
        _figure("3", "Transformer of one layer: divergences", one_layer, "divergences", "10 min"),
        _figure("4", f"{_HEADS}: initial noise and ratios", inits_and_ratios, "inits_and_ratios", "12 min"),
        _figure("5", "Number of training sequences", sizes, "sizes", "6 min"),
        _figure("6", f"{_ONLINE}: loss and divergences", online, "losses", "5 min"),
        _figure("7", f"{_ONLINE}: divergences", online, "divergences", "5 min"),
        _figure("8", f"{_FAR}: loss and divergences", reversed_importance, "losses", "10 min"),
        _figure("9", f"{_FAR}: attention", reversed_importance, "attention", "10 min"),
        _flows("10", "Regression flow, mirror law", flow, "flow", "10 s"),
        _long("11", f"{_TWO}: loss and divergences", two_layers, "losses", "65 min"),
        _long("12", f"{_TWO}: attention of the first", two_layers, "attention", "65 min"),
        _figure("13", f"{_WEIGHTS}: loss and divergences", weighted, "losses", "3 min"),
        _figure("14", f"{_WEIGHTS}: attention", weighted, "attention", "3 min"),
        _figure("15", f"{_OVERLAP}: loss and final attention", overlapping, "overlapping", "4 min"),
        _figure("16", f"{_OVERLAP}: attention of three heads", overlapping, "attention", "4 min"),
        _figure("17", f"{_OVERLAP}: attention of four heads", overlapping, "attention_of_last", "4 min"),
        _long("18", f"{_SGD}: divergences", sgd, "divergences", "75 min"),
        _long("19", f"{_SGD}: attention", sgd, "attention", "75 min"),
        _flows("-clock", "Model and flow on one clock", clocks, "clocks", "1 min"),
        _flows("-escape", "Escape from plateau 1 against the initial noise", escapes, "escapes", "20 s"),
        _flows("-encodings", "One task, five position encodings", encodings, "encodings", "5 min"),
        STOPPING,
    )
}
