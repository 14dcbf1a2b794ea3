"""The figures of focus and dilution (arXiv 2605.01199)."""

from collections.abc import Callable
from importlib import import_module
from typing import Any

from stagescope.papers.focus_dilution.figures import chains, laws, numbers
from stagescope.papers.focus_dilution.text import figures as text_focus
from stagescope.views.figure import Figure, Numbers

LAWS = "focus_dilution_laws_draw"


def _draw(name: str, module: str = "focus_dilution_draw") -> Callable[[Numbers], Any]:
    """The drawing function of that name; matplotlib is imported when something is drawn, not when figures are listed."""

    def draw(numbers: Numbers) -> Any:
        return getattr(import_module(f"stagescope.figures.{module}"), name)(numbers)

    return draw


_ALL = (
    Figure("-embedding", "Rows of the embedding over time, in principal directions", numbers.embedding, _draw("embedding")),
    Figure("-singular-values", "Singular values of W0, W1 and Phi", numbers.singular_values, _draw("singular_values")),
    Figure("-attention", "Attention on the frequent token: focus and dilution", numbers.attention, _draw("attention")),
    Figure("-entropy", "Entropy of attention rows", numbers.entropy, _draw("entropy")),
    Figure("-norms", "Row norms of the embedding against the condensed plateau", numbers.norms, _draw("norms")),
    Figure("-loss", "Loss with the levels of the critical points, and its gradient", laws.loss, _draw("loss", LAWS)),
    Figure("-rates", "Escape rates predicted and measured", laws.rates, _draw("rates", LAWS)),
    Figure("-eps-law", "Times of events against the initial scale", laws.eps_law, _draw("eps_law", LAWS)),
    Figure("-delta-law", "Rates at (1,1) against asymmetry, and the stall without it", laws.delta_law, _draw("delta_law", LAWS)),
    Figure("-transitions", "Chains with one law that focus or move away", chains.transitions, _draw("transitions")),
    *text_focus.FIGURES.values(),
)
FIGURES = {figure.name.removeprefix("-"): figure for figure in _ALL}
