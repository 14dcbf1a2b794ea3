"""Figures of the papers on in-context Markov chains, made again with the minimal models; `plateau` and `levels` are ours."""

from collections.abc import Callable

from stagescope.later import Later
from stagescope.papers.markov_icl.figures import numbers
from stagescope.progress import Progress
from stagescope.views.figure import Figure, Numbers


def _figure(name: str, title: str, compute: Callable[[Progress], Numbers], draw: str, cost: str = "") -> Figure:
    """Matplotlib is imported when a figure is drawn, not when figures are listed."""
    return Figure(f"-{name}", title, compute, Later(f"stagescope.papers.markov_icl.figures.draw:{draw}"), cost=cost)


FIGURES = {
    "minimal": _figure("minimal", "The minimal model: match first, then lag 1", numbers.minimal, "minimal", "half a minute"),
    "strategies": _figure("strategies", "KL of each strategy to a model with readout", numbers.readout, "strategies", "a minute"),
    "n-grams": _figure("n-grams", "Unigram, bigram, trigram on chains of order 2", numbers.trigram, "n_grams"),
    "plateau": _figure("plateau", "Time on the plateau over the number of lags, with the laws", numbers.plateau, "plateau"),
    "mixture": _figure("mixture", "t_2 over the share of doubly stochastic chains", numbers.mixture, "mixture"),
}
