"""The numbers of the figures. Targets are those read off the plots that the authors stored (science page, section 8)."""

from functools import cached_property
from typing import Any

import numpy as np

from stagescope.dynamics.evolve import evolve
from stagescope.dynamics.flow import GradientFlow
from stagescope.dynamics.record import LogSpaced
from stagescope.papers.markov_icl.loss import LinearPopulation
from stagescope.papers.markov_icl.model import LinearMatch
from stagescope.papers.markov_icl.process import ChainPrior
from stagescope.papers.markov_icl.study import STUDY
from stagescope.papers.reading import reading
from stagescope.progress import Progress
from stagescope.runs.run import Run
from stagescope.views.figure import Numbers, rounded

MINIMAL = {"match": [0.08, 0.10], "previous score": [6.2, 6.3]}
"""Ends of the stored minimal models: diagonal of W, v at lag 1. There layer 1 also saw the future."""


def _run(preset: str, **changes: Any) -> Run:
    return STUDY.run(STUDY.configured(preset, **changes), progress=False)


def _curves(run: Run) -> dict[str, Any]:
    found = reading(run).curves
    return {
        "time": rounded(found.time),
        "loss": rounded(found.loss),
        "match": rounded(found.match),
        "previous": rounded(found.previous),
        "levels": dict(zip(found.levels.names, rounded(found.levels.losses), strict=True)),
        "compared": rounded(found.time[found.compared]),
        "kl": rounded(found.divergences),
        "strategies": list(found.strategies.names),
    }


def minimal(progress: Progress) -> Numbers:
    """F on batches of 100 tokens, as the papers' minimal model."""
    run = _run("minimal")
    scores = np.asarray(run.params["v"])[:, 1]
    return {**_curves(run), "score": rounded(scores), "moments": _moments(run), "targets": MINIMAL}


FIRST_LAGS = 16
"""Lags of a panel: the later ones stay even."""


def _moments(run: Run) -> list[dict[str, Any]]:
    """Layer 1 by lag at the start, where attention on lag 1 is first five times its start, and at the end."""
    attention = reading(run).curves.attention[:, 0]
    emerging = int(np.argmax(attention[:, 1] >= min(5 * attention[0, 1], attention[-1, 1])))
    frames = (0, emerging, len(attention) - 1)
    return [{"t": float(run.time[frame]), "attention": rounded(attention[frame, :FIRST_LAGS])} for frame in frames]


def readout(progress: Progress) -> Numbers:
    """T on batches, both priors."""
    return {"full": _curves(_run("readout")), "doubly stochastic": _curves(_run("readout-doubly"))}


def trigram(progress: Progress) -> Numbers:
    run = _run("trigram")
    attention = reading(run).curves.attention
    return {**_curves(run), "first": rounded(attention[:, 0, 1]), "second": rounded(attention[:, 1, 2])}


def plateau(progress: Progress) -> Numbers:
    """t_2 of R over D and rho, with D/(rho b* gamma_1), and under the doubly stochastic prior with the two-step law."""
    rows = []
    for rho in (0.01, 0.1, 1.0):
        for lags in (12, 25, 50, 100):
            for doubly in (False, True):
                found = reading(_run("ref", lags=lags, ratio=rho, doubly_stochastic=doubly)).evidence
                law = found.two_step if doubly else found.plateau_time
                when = found.time("t2")[0]
                rows.append({"ratio": rho, "lags": lags, "doubly": doubly, "t2": when, "law": law})
    return {"rows": rows}


class MixedPrior(ChainPrior):
    """Some share of doubly stochastic chains among those with free rows."""

    share: float = 0.0

    @property
    def chains(self) -> int:
        return self.nodes**2 + self.nodes

    @cached_property
    def _quadrature(self) -> tuple[np.ndarray, np.ndarray]:
        free, doubly = ChainPrior(nodes=self.nodes), ChainPrior(nodes=self.nodes, doubly_stochastic=True)
        weights = np.concatenate([(1 - self.share) * free.weights, self.share * doubly.weights])
        return np.concatenate([free.transitions, doubly.transitions]), weights


def mixture(progress: Progress) -> Numbers:
    """When the loss of R has half of the step to its last level, over the share of doubly stochastic chains."""
    shares, times = [0.0, 0.25, 0.5, 0.75, 0.9, 1.0], []
    for share in shares:
        law = LinearPopulation(model=LinearMatch(tokens=2, lags=50), process=MixedPrior(nodes=16, share=share))
        run = evolve(
            law,
            law.model.init(),
            GradientFlow(rates={"v": 0.1}),
            until=2e4,
            record=LogSpaced(frames=400, first=1e-3),
            progress=False,
        )
        times.append(reading(run).evidence.time("t2")[0])
    return {"share": shares, "t2": times}
