"""The figures of scan and snap (arXiv 2305.16380): eleven of the paper and three it lacks."""

from collections.abc import Callable
from typing import Any

from stagescope.papers.scan_snap.figures import numbers
from stagescope.papers.scan_snap.text import figures as text_snap
from stagescope.views.figure import Figure, Numbers


def _draw(name: str) -> Callable[[Numbers], Any]:
    """The drawing function of that name; matplotlib is imported when something is drawn, not when figures are listed."""

    def draw(numbers: Numbers) -> Any:
        from stagescope.papers.scan_snap.figures import draw as scan_snap_draw

        return getattr(scan_snap_draw, name)(numbers)

    return draw


_ALL = (
    Figure("2", "Attention of a class before, during and after the scan", numbers.overview, _draw("overview")),
    Figure("3", "Growth factor of the winning token", numbers.growth_factors, _draw("growth_factors")),
    Figure("4", "SGD on Syn-Small at two decoder rates", numbers.syn_small, _draw("syn_small")),
    Figure("5", "Adam selects different distinct tokens at different rates", numbers.adam, _draw("adam")),
    Figure(
        "6", "Entropy over rates and number of classes, against the published means", numbers.entropy_grid, _draw("entropy_grid")
    ),
    text_snap.FIGURES["7"],
    Figure("8", "Discrete against continuous h", numbers.discrete, _draw("discrete")),
    Figure("9", "B(t), the fall of the common token", numbers.common_growth, _draw("common_growth")),
    text_snap.FIGURES["10"],
    Figure("11", "Recall of distinct tokens, 2 and 6 classes", numbers.recall((1, 3)), _draw("recall")),
    Figure("12", "Recall of distinct tokens, 10 and 20 classes", numbers.recall((5, 10)), _draw("recall")),
    Figure("-finite-step", "Flow against heavy ball over the rate", numbers.finite_step, _draw("finite_step")),
    Figure("-collapse", "Transition times collapse on K ln M / eta_Y", numbers.collapse, _draw("collapse")),
    text_snap.FIGURES["topics"],
)
FIGURES = {figure.name.removeprefix("-"): figure for figure in _ALL}
