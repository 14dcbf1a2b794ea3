"""Claims over several runs: other noise at the start, the doubly stochastic prior, other numbers of lags."""

from typing import Any

import numpy as np

from stagescope.claims.claim import claim
from stagescope.claims.comparison import Comparison, Regime, at_least
from stagescope.claims.over_runs import OverRuns
from stagescope.errors import StagescopeError
from stagescope.papers.markov_icl import nulls
from stagescope.papers.markov_icl.claims.laws import on_plateau
from stagescope.papers.markov_icl.evidence import Evidence
from stagescope.papers.markov_icl.forms import effective_lags

NOISES = (0.0, 1e-3, 0.1, 0.5, 1.0)  # of the initial scores: those of the page
NOISE = 0.05  # largest change of t_2 over its law
FEWEST = 50  # effective lags of a start: with fewer the law itself is off by more than that
EARLIER = 1.1  # least ratio of the two times (page)
EQUAL_RATES = 1.0  # largest rho at which the match leads: above it attention does not wait for unigrams
ADAM = 0.2  # largest change of the number of steps over a factor of eight in the lags (page)
MOST_LAGS = 400  # of a companion run


def _made(evidence: Evidence, changes: list[dict[str, Any]]) -> list[Evidence]:
    """The runs that could be made."""
    return [each for each in evidence.others(changes) if not isinstance(each, StagescopeError)]


def _of_study(evidence: Evidence, regime: Regime) -> Regime:
    if regime.applies and regime.holds and evidence.run.config is None:
        return Regime(False, "the run was not made by the study, so it has no options to change")
    return regime


def _noise_regime(evidence: Evidence) -> Regime:
    regime = on_plateau(evidence)
    if regime.applies and regime.holds and float(np.std(evidence.start["v"])) > 1.3:
        return Regime(False, "the scores of the lags begin with more noise than one")
    if regime.applies and regime.holds and effective_lags(evidence.start["v"]) < FEWEST:
        return Regime(False, f"{effective_lags(evidence.start['v']):.0f} effective lags; at least {FEWEST} are needed")
    return _of_study(evidence, regime)


def _noise(evidence: Evidence) -> Comparison:
    """t_2 over its law at other noises beside that of the run, each with the lags of its own start."""
    made = _made(evidence, [{"init_scale": sigma, "until": None} for sigma in NOISES])
    runs = [each for each in made if each.plateau.leads and effective_lags(each.start["v"]) >= FEWEST]
    when = evidence.time("t2")[0]
    timed = [(each, each.time("t2")[0]) for each in runs]
    known = [(float(np.std(each.start["v"])), t / each.plateau_time) for each, t in timed if t is not None]
    if when is None or len(known) < 2:
        return Comparison(0.0, None, NOISE, None, "t_2 was not reached in this run, or in fewer than two beside it")
    own = when / evidence.plateau_time
    apart = max(abs(ratio / own - 1) for _, ratio in known)
    over = OverRuns(tuple(x for x, _ in known), tuple(y for _, y in known), (own,) * len(known), "noise of v", "t_2 over its law")
    shown = ", ".join(f"{y:.3f}" for _, y in known)
    reason = f"t_2 over its law is {own:.3f} here and {shown} at noises {', '.join(f'{x:.2g}' for x, _ in known)}"
    return Comparison(0.0, apart, NOISE, apart <= NOISE, reason, over_runs=over)


def _slower_lags(evidence: Evidence) -> Regime:
    if evidence.model not in ("R", "F", "T") or evidence.doubly:
        return Regime(False, "the claim compares R, F or T with the doubly stochastic prior", applies=False)
    if evidence.law.process.tokens > 2:
        return Regime(False, "the control of the paper has two tokens; with three, scaled rows are not faster", applies=False)
    if evidence.run.clock != "t":
        return Regime(False, "Adam has no plateau to be delayed on")
    gain = evidence.law.length**2 if evidence.model == "F" else 1  # logits of F are sums over the sequence
    rho = evidence.ratio / gain
    return _of_study(evidence, Regime(rho <= EQUAL_RATES, f"rho = {rho:.3g}, at most {EQUAL_RATES:g}"))


def _doubly(evidence: Evidence) -> Comparison:
    change: dict[str, Any] = {"doubly_stochastic": True}
    when, half = evidence.time("t2")
    runs = _made(evidence, [change | ({"until": None} if evidence.flow and evidence.model == "R" else {})])
    if when is None or not runs or runs[0].time("t2")[0] is None:
        return Comparison(EARLIER, None, "at least", None, "t_2 was not reached in both runs")
    other, error = runs[0].time("t2")
    ratio = when / other if other else np.inf
    spread = ratio * float(np.hypot(half / when, error / other)) if other else 0.0
    reason = f"t_2 is {when:.4g}, under the doubly stochastic prior {other:.4g}: {ratio:.3g} times as late"
    over = OverRuns((0.0, 1.0), (when, other), (), "doubly stochastic", f"t_2 ({evidence.run.clock})", log_y=True)
    found = at_least(ratio, EARLIER, reason, measured_error=spread)
    return Comparison(EARLIER, found.measured, "at least", found.holds, found.reason, None, spread, over_runs=over)


def _with_adam(evidence: Evidence) -> Regime:
    kind = (evidence.run.spec["dynamics"].get("optimizer") or {}).get("type")
    if evidence.model != "R" or evidence.doubly or kind != "Adam":
        return Regime(False, "the claim is about R with Adam", applies=False)
    return _of_study(evidence, Regime(evidence.from_zero, "steps of Adam from a match of zero"))


def _adam(evidence: Evidence) -> Comparison:
    """Steps to t_2 over a factor of eight in the number of lags."""
    own = evidence.lags
    factors = (0.5, 2, 4) if 4 * own <= MOST_LAGS else (0.5, 0.25, 0.125)
    counts = sorted({max(2, round(own * factor)) for factor in factors} - {own})
    runs = [evidence, *_made(evidence, [{"lags": count} for count in counts])]
    steps = [(each.lags, each.time("t2")[0]) for each in sorted(runs, key=lambda each: each.lags)]
    if len(steps) < 3 or any(when is None for _, when in steps):
        return Comparison(0.0, None, ADAM, None, "t_2 was not reached in all runs, or there are fewer than three")
    times = np.array([when for _, when in steps], dtype=float)
    apart = float(np.max(np.abs(times / times.mean() - 1)))
    over = OverRuns(tuple(float(n) for n, _ in steps), tuple(times), (times.mean(),) * len(times), "lags", "steps", log_x=True)
    reason = f"t_2 is at {', '.join(f'{t:.0f}' for t in times)} steps with {', '.join(str(n) for n, _ in steps)} lags"
    return Comparison(0.0, apart, ADAM, apart <= ADAM, reason, over_runs=over)


CLAIMS = (
    claim(
        "MIC:start-noise",
        "t_2 over its law does not depend on the noise of the initial scores",
        _noise_regime,
        _noise,
        "t2",
        kind="prediction",
        null=(nulls.STRETCHED,),
        cost="5 flows like this one",
    ),
    claim(
        "MIC:doubly-stochastic",
        "Bigrams come earlier where unigrams are useless",
        _slower_lags,
        _doubly,
        "t2",
        kind="pattern",
        null=(nulls.HURRIED,),
        cost="a run under the doubly stochastic prior",
    ),
    claim(
        "MIC:adam",
        "With Adam the number of steps does not depend on the number of lags",
        _with_adam,
        _adam,
        "t2",
        kind="pattern",
        null=(nulls.OTHER_STEP,),
        cost="3 runs with other numbers of lags",
    ),
)
