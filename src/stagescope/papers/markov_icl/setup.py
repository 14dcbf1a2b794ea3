"""From the options of in-context Markov chains to what `evolve` needs."""

import math
from typing import Any

import numpy as np

from stagescope.core.errors import InputError
from stagescope.flow.record import LogSpaced, Record
from stagescope.papers.markov_icl.finite import FiniteExact, FiniteSampled
from stagescope.papers.markov_icl.forms import Plateau, chi_squares, lag_gains, two_step
from stagescope.papers.markov_icl.limits import LIMITS
from stagescope.papers.markov_icl.loss import LinearPopulation, SoftmaxPopulation, TwoHeadPopulation
from stagescope.papers.markov_icl.model import LinearMatch, ReadoutMatch, SoftmaxMatch, TwoHeadMatch
from stagescope.papers.markov_icl.process import ChainPrior
from stagescope.papers.markov_icl.study import NODES, MarkovOptions, check_use, lags, length, sampled
from stagescope.readings.setup import make_dynamics, make_record
from stagescope.readings.study import Setup


def study_setup(options: MarkovOptions, seed: int) -> Setup:
    check_use(options)
    law = _law(options, seed)
    flow = options.optimizer == "flow"
    if flow and sampled(options):
        raise InputError("sampled sequences need steps: choose --optimizer gd, heavy-ball or adam")
    rates = {name: options.ratio if name == "v" else 1.0 for name in law.model.shapes}
    start = law.model.init(seed, options.init_scale, options.init_match)
    return Setup(
        what=law,
        params=start,
        dynamics=make_dynamics(options, rates=rates),
        until=(options.until or _until(law, start["v"], options.ratio)) if flow else None,
        record=_record(options),
    )


def _record(options: MarkovOptions) -> Record | None:
    if options.optimizer == "flow" and options.record in ("auto", "log"):
        return LogSpaced(
            frames=options.frames, first=LIMITS.first if options.until is None else min(LIMITS.first, options.until * 1e-4)
        )
    return make_record(options)


def prior(options: MarkovOptions) -> ChainPrior:
    return ChainPrior(
        tokens=options.tokens,
        concentration=options.prior,
        doubly_stochastic=options.doubly_stochastic,
        order=2 if options.model == "S3" else 1,
        nodes=options.nodes or NODES[options.model],
        draws=options.draws,
        seed=options.chain_seed,
    )


def _law(options: MarkovOptions, seed: int) -> Any:
    size: dict[str, int] = {"tokens": options.tokens, "lags": lags(options)}
    chains = prior(options)
    if options.model == "R":
        form = "free" if options.whole_match else "parts"
        return LinearPopulation(model=LinearMatch(**size, form=form), process=chains)
    if options.model == "S":
        return SoftmaxPopulation(model=SoftmaxMatch(**size), process=chains)
    if options.model == "S3":
        return TwoHeadPopulation(model=TwoHeadMatch(**size), process=chains)
    form = "free" if options.whole_match else "entries"
    model = ReadoutMatch(**size) if options.model == "T" else LinearMatch(**size, form=form)
    if not sampled(options):
        return FiniteExact(model=model, process=chains, length=length(options))
    return FiniteSampled(
        model=model, process=chains, length=length(options), batch=options.batch or 64, watched=options.watched, seed=seed
    )


def _until(law: Any, v: np.ndarray, rho: float) -> float:
    """The end of a flow whose end is not given."""
    if isinstance(law, FiniteExact):
        return LIMITS.slowest[law.letter] / min(rho, 1.0)
    if isinstance(law, TwoHeadPopulation):
        return LIMITS.slowest[law.letter] * law.model.lags / min(rho, 1.0)
    gains = (chi_squares if isinstance(law, SoftmaxPopulation) else lag_gains)(law.process, law.model.lags)
    times = [two_step(gains, v, rho)]
    if isinstance(law, LinearPopulation) and not law.process.doubly_stochastic:
        plateau = Plateau(law, v)
        t2 = plateau.time(rho)
        times.append(t2)
        if math.isfinite(t2):  # where the match is slower than the lags, it decides
            times.append(min(plateau.grown(LIMITS.farthest * t2), LIMITS.farthest * t2))
    latest = np.nanmax(times) if np.isfinite(times).any() else math.nan
    if not math.isfinite(latest):
        raise InputError("lag 1 does not lead here, so t_2 has no law; give the end of the flow with --until")
    if latest * np.finfo(float).eps > 1:  # a step of the flow is below its rounding
        raise InputError(f"by its law t_2 is {latest:.1g}, too late for a flow; take less noise, or give its end with --until")
    return max(LIMITS.settles, float(f"{LIMITS.later[law.letter] * latest:.3g}"))
