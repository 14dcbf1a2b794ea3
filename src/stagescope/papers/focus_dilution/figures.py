"""The figures of focus and dilution (arXiv 2605.01199). They are ours: the paper's own figures were not available."""

from typing import Any

from stagescope.papers.focus_dilution import figures_numbers
from stagescope.papers.focus_dilution.text import figures as text_figures
from stagescope.views.figure import Figure, Numbers

TITLES = {
    "embedding": "Rows of the embedding over time, in principal directions",
    "singular-values": "Singular values of W0, W1 and Phi",
    "attention": "Attention on the frequent token: focus and dilution",
    "entropy": "Entropy of attention rows",
    "norms": "Row norms of the embedding against the condensed plateau",
    "loss": "Loss with the levels of the critical points, and its gradient",
}


def _figure(name: str, title: str) -> Figure:
    """Numbers and drawing are by functions of its name; matplotlib is imported when something is drawn, not when it is listed."""
    twin = name.replace("-", "_")

    def draw(numbers: Numbers) -> Any:
        from stagescope.papers.focus_dilution import figures_draw

        return getattr(figures_draw, twin)(numbers)

    return Figure(f"-{name}", title, getattr(figures_numbers, twin), draw)


FIGURES = {name: _figure(name, title) for name, title in TITLES.items()} | text_figures.FIGURES
