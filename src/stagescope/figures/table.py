"""Figures by paper; this module imports no drawing code until a paper is chosen."""

from stagescope.errors import unknown
from stagescope.figures.figure import Figure

PAPERS = ("scan-snap",)


def figures(paper: str) -> dict[str, Figure]:
    """The figures of a paper by name."""
    if paper == "scan-snap":
        from stagescope.figures.scan_snap import FIGURES

        return FIGURES
    raise unknown("paper", paper, PAPERS)
