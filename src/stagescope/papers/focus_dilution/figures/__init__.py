"""The figures of focus and dilution (arXiv 2605.01199). They are ours: the paper's own figures were not available."""

from stagescope.later import Later
from stagescope.papers.focus_dilution.figures import chains, laws, numbers
from stagescope.papers.focus_dilution.figures import predicted as paths
from stagescope.papers.focus_dilution.text import figures as text_figures
from stagescope.views.figure import Figure


def _draw(name: str, module: str = "draw") -> Later:
    """The drawing function of that name; matplotlib is imported when something is drawn, not when figures are listed."""
    return Later(f"stagescope.papers.focus_dilution.figures.{module}:{name}")


_ALL = (
    Figure("-embedding", "Rows of the embedding over time, in principal directions", numbers.embedding, _draw("embedding")),
    Figure("-singular-values", "Singular values of W0, W1 and Phi", numbers.singular_values, _draw("singular_values")),
    Figure("-attention", "Attention on the frequent token: focus and dilution", numbers.attention, _draw("attention")),
    Figure("-entropy", "Entropy of attention rows", numbers.entropy, _draw("entropy")),
    Figure("-norms", "Row norms of the embedding against the condensed plateau", numbers.norms, _draw("norms")),
    Figure("-loss", "Loss with the levels of the critical points, and its gradient", laws.loss, _draw("loss", "laws_draw")),
    Figure("-rates", "Escape rates predicted and measured", laws.rates, _draw("rates", "laws_draw")),
    Figure("-eps-law", "Times of events against the initial scale", laws.eps_law, _draw("eps_law", "laws_draw")),
    Figure(
        "-delta-law", "Rates at (1,1) against asymmetry; the stall without it", laws.delta_law, _draw("delta_law", "laws_draw")
    ),
    Figure(
        "-predicted",
        "Times of events predicted from starts down to 1e-60, and those of flows",
        paths.predicted,
        _draw("predicted", "predicted_draw"),
    ),
    Figure("-transitions", "Chains with one stationary law that focus or defocus", chains.transitions, _draw("transitions")),
    *text_figures.FIGURES.values(),
)
FIGURES = {figure.name.removeprefix("-"): figure for figure in _ALL}
