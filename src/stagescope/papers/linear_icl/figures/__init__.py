"""The figures of linear attention in context (arXiv 2501.16265), and two that are not in the paper."""

from collections.abc import Callable

from stagescope.later import Later
from stagescope.papers.linear_icl.figures import numbers
from stagescope.progress import Progress
from stagescope.views.figure import Figure, Numbers


def _figure(name: str, title: str, compute: Callable[[Progress], Numbers], draw: str) -> Figure:
    """Matplotlib is imported when a figure is drawn, not when figures are listed."""
    return Figure(f"-{name}", title, compute, Later(f"stagescope.papers.linear_icl.figures.draw:{draw}"))


FIGURES = {
    "merged": _figure("merged", "Merged heads: one drop", numbers.abrupt, "abrupt"),
    "separate": _figure("separate", "Separate heads of rank one: saddle to saddle, six seeds", numbers.separate, "separate"),
    "low-rank": _figure("low-rank", "Heads of rank 1, 2, 4 and 8 on eight directions", numbers.low_rank, "low_rank"),
    "heads": _figure("heads", "Values of heads, and M on the plateaus", numbers.heads, "heads"),
    "cascade": _figure("cascade", "Drops predicted from the start and measured, 30 seeds", numbers.cascades, "cascades"),
    "scale-law": _figure("scale-law", "The first drop over the scale of the start", numbers.scale_law, "scale_law"),
}
