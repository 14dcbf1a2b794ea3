"""The figures of incremental learning of sparse attention (arXiv 2602.19143): the paper's nineteen, and one of our own.

Figures that show one run (2 and 3, 6 and 7, ...) share it. Which of a pair shows losses and which attention was not published
with the numbers: it is our choice.
"""

from typing import Any

from stagescope.papers.incremental import figures_numbers as paper
from stagescope.papers.incremental import figures_own as own
from stagescope.views.figure import Figure, Numbers


def _figure(name: str, title: str, compute: Any, draw: str, cost: str, **more: Any) -> Figure:
    """Matplotlib is imported when a figure is drawn, not when figures are listed."""

    def drawn(numbers: Numbers) -> Any:
        from stagescope.papers.incremental import figures_draw

        return getattr(figures_draw, draw)(numbers)

    return Figure(name, title, compute, drawn, cost=f"about {cost} on 2 cores" if cost else "", **more)


_HEADS, _ONLINE = "Heads that read tokens and positions", "New sequences at every step"
_WEIGHTS, _OVERLAP = "Weights .7 and .3 inside a span", "Overlapping spans"
_FAR, _TWO, _SGD = "Transformer, farthest span most important", "Transformer of two layers", "Transformer, heavy-ball descent"
FIGURES = {
    figure.name.removeprefix("-"): figure
    for figure in (
        _figure("1", f"{_HEADS}: loss and divergences", paper.minimal, "losses", "2 min"),
        _figure("2", "Transformer of one layer: attention", paper.one_layer, "attention", "10 min"),
        _figure("3", "Transformer of one layer: divergences", paper.one_layer, "divergences", "10 min"),
        _figure("4", f"{_HEADS}: initial noise and ratios", paper.inits_and_ratios, "inits_and_ratios", "12 min"),
        _figure("5", "Number of training sequences", paper.sizes, "sizes", "6 min"),
        _figure("6", f"{_ONLINE}: loss and divergences", paper.online, "losses", "5 min"),
        _figure("7", f"{_ONLINE}: divergences", paper.online, "divergences", "5 min"),
        _figure("8", f"{_FAR}: loss and divergences", paper.reversed_importance, "losses", "10 min"),
        _figure("9", f"{_FAR}: attention", paper.reversed_importance, "attention", "10 min"),
        _figure("10", "Regression flow, mirror law", own.flow, "flow", "10 s"),
        _figure("11", f"{_TWO}: loss and divergences", paper.two_layers, "losses", "65 min", full=True),
        _figure("12", f"{_TWO}: attention of the first", paper.two_layers, "attention", "65 min", full=True),
        _figure("13", f"{_WEIGHTS}: loss and divergences", paper.weighted, "losses", "3 min"),
        _figure("14", f"{_WEIGHTS}: attention", paper.weighted, "attention", "3 min"),
        _figure("15", f"{_OVERLAP}: loss and final attention", paper.overlapping, "overlapping", "4 min"),
        _figure("16", f"{_OVERLAP}: attention of three heads", paper.overlapping, "attention", "4 min"),
        _figure("17", f"{_OVERLAP}: attention of four heads", paper.overlapping, "attention_of_last", "4 min"),
        _figure("18", f"{_SGD}: divergences", paper.sgd, "divergences", "75 min", full=True),
        _figure("19", f"{_SGD}: attention", paper.sgd, "attention", "75 min", full=True),
        _figure(
            "-stopping",
            "Where to stop, what it costs, and which class it is",
            own.stopping_numbers,
            "stopping_rules",
            "",
            sweep="early-stopping",
        ),
    )
}
