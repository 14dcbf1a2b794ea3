"""The figures of scan and snap (arXiv 2305.16380): eleven of the paper and three that are not in it."""

from collections.abc import Callable

from stagescope.later import Later
from stagescope.papers.scan_snap.figures import numbers
from stagescope.papers.scan_snap.text import figures as text
from stagescope.progress import Progress
from stagescope.views.figure import Figure, Numbers


def _figure(name: str, title: str, compute: Callable[[Progress], Numbers], draw: str) -> Figure:
    """Matplotlib is imported when a figure is drawn, not when figures are listed."""
    return Figure(name, title, compute, Later(f"stagescope.papers.scan_snap.figures.draw:{draw}"))


FIGURES = {
    "2": _figure("2", "Attention of a class before, during and after the scan", numbers.overview, "overview"),
    "3": _figure("3", "Growth factor of the winning token", numbers.growth_factors, "growth_factors"),
    "4": _figure("4", "SGD on Syn-Small at two decoder rates", numbers.syn_small, "syn_small"),
    "5": _figure("5", "Adam selects different distinct tokens at different rates", numbers.adam, "adam"),
    "6": _figure(
        "6", "Entropy over rates and number of classes, against the published means", numbers.entropy_grid, "entropy_grid"
    ),
    "7": text.FIGURES["7"],
    "8": _figure("8", "Discrete against continuous h", numbers.discrete, "discrete"),
    "9": _figure("9", "B(t), the fall of the common token", numbers.common_growth, "common_growth"),
    "10": text.FIGURES["10"],
    "11": _figure("11", "Recall of distinct tokens, 2 and 6 classes", numbers.recall((1, 3)), "recall"),
    "12": _figure("12", "Recall of distinct tokens, 10 and 20 classes", numbers.recall((5, 10)), "recall"),
    "finite-step": _figure("-finite-step", "Flow against heavy ball over the rate", numbers.finite_step, "finite_step"),
    "collapse": _figure("-collapse", "Transition times collapse on K ln M / eta_Y", numbers.collapse, "collapse"),
    "topics": text.FIGURES["topics"],
}
