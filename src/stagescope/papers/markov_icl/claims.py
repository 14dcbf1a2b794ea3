"""The claims about in-context Markov chains: strategies and levels, closed forms, and several runs."""

from typing import Any

import numpy as np

from stagescope.claims.claim import ClaimTable
from stagescope.claims.comparison import Comparison, OverRuns, Regime, agreement, at_least, narrowed, not_applicable, undecided
from stagescope.core.params import Params
from stagescope.detect.levels import noise_near
from stagescope.flow.softmax import softmax
from stagescope.papers.markov_icl.evidence import Evidence
from stagescope.papers.markov_icl.finite import FiniteLoss, causal
from stagescope.papers.markov_icl.forms import class_of, common_gain, effective_lags, first_gradient
from stagescope.papers.markov_icl.limits import LIMITS
from stagescope.papers.markov_icl.loss import SoftmaxPopulation
from stagescope.papers.markov_icl.study import WORDS
from stagescope.watching.heads import even_patterns, prefix_match

claim = ClaimTable(WORDS.claims)


def _begins_low(evidence: Evidence) -> Regime:
    """The run begins at the lowest strategy that its model has."""
    if evidence.doubly:
        return not_applicable("under a doubly stochastic prior a unigram is the uniform prediction")
    if evidence.model in LIMITS.slow and not _reads_unigrams(evidence):
        return Regime(False, "the best unigram member of this model is nearer to another strategy: sequences are too short")
    lowest = min(int(evidence.model in ("S", "S3")), len(evidence.strategies.names) - 2)
    distance = max(0.0, float(evidence.divergences[0, lowest]))
    reason = f"at the start the {evidence.strategies.names[lowest]} strategy is {distance:.2g} nats away"
    return Regime(int(evidence.nearest[0]) == lowest and distance < LIMITS.small, reason)


def _reads_unigrams(evidence: Evidence) -> bool:
    """Whether the unigram class of R or F predicts most like the unigram strategy."""
    even = np.zeros(evidence.lags)
    best = class_of(evidence.law, softmax(even)).least()[1]
    logs = evidence.logs_of({"W": evidence.law.model.in_form(*best), "v": even})
    place, _ = evidence.strategies.nearest(logs)
    return evidence.strategies.names[place] == "unigram"


@claim("MIC:order", _begins_low)
def _order(evidence: Evidence) -> Comparison:
    """The nearest strategies, each once, in the order of the ladder; the unigram one must be there."""
    names = ["uniform", "unigram", "bigram", "trigram"]
    expected = {"S": names[1:3], "S3": names[1:]}.get(evidence.model, names[:3])
    places = [first for first, _ in evidence.stretches]
    nearest = [evidence.strategies.names[int(evidence.nearest[place])] for place in places]
    settled = [nearest[i] for i in range(len(nearest)) if evidence.clear[places[i]] or i in (0, len(nearest) - 1)]
    path = [name for i, name in enumerate(settled) if i == 0 or name != settled[i - 1]]
    ended = bool(evidence.clear[-1]) and path[-1] == expected[-1]
    holds = path == expected if ended else None
    reason = f"the nearest strategies are {', '.join(path)}; the order of the ladder is {', '.join(expected)}"
    return Comparison(", ".join(expected), ", ".join(path), "the same", holds, reason)


def _rests(evidence: Evidence) -> Regime:
    if evidence.model == "T" or not evidence.exact:
        return not_applicable("levels are exact for R, S, S3, and F on all sequences")
    if evidence.doubly and evidence.model in LIMITS.slow:
        return not_applicable("under a doubly stochastic prior there is no unigram plateau")
    slow = LIMITS.slow.get(evidence.model, np.inf)
    if evidence.model in LIMITS.slow and not evidence.from_zero:
        return Regime(False, "the match does not begin at zero")
    if evidence.model in LIMITS.slow and np.ptp(evidence.start["v"]) > 0.1:  # another class than that of even attention
        return Regime(False, "attention does not begin even over the lags")
    if not evidence.flow or evidence.model != "R":
        bound = f"rho = {evidence.ratio:g}, at most {slow:g} in a flow" if evidence.model in LIMITS.slow else "any rho in a flow"
        return Regime(evidence.flow and evidence.ratio <= slow, bound)
    law = evidence.plateau_time * evidence.rate
    share = evidence.plateau.grown(law) / law if np.isfinite(law) else np.inf
    return Regime(share <= slow, f"the match is at .9 of its plateau value at {share:.2g} of the law of t_2, at most {slow:g}")


@claim("MIC:levels", _rests)
def _levels(evidence: Evidence) -> Comparison:
    """R and F: the plateau between t_1 and t_2 is at its class. S and S3: the end is at the last entropy."""
    if evidence.model in LIMITS.slow:
        if (plateau := evidence.plateau_between) is None or evidence.t2 is None:
            return undecided("the run has not passed t_1 and t_2", None, LIMITS.level, "nats")
        noise = 2 * noise_near(evidence.time, evidence.loss, plateau.t)
        reason = f"the loss rests at {plateau.loss:.5f} at t = {plateau.t:.4g}; the unigram class has {plateau.level:.5f}"
        return agreement(plateau.level, plateau.loss, LIMITS.level, reason, measured_error=noise, unit="nats")
    loss, level = evidence.loss, float(evidence.levels.losses[-1])
    tolerance, last = (LIMITS.level, "t2") if evidence.model == "S" else (LIMITS.entropy, "t3")
    if evidence.event_time(last)[0] is None:
        return undecided(f"the run ends before {last}", level, tolerance, "nats")
    last_fall = _last_fall(evidence)
    reason = f"the loss ends at {loss[-1]:.5f}, the entropy is {level:.5f}; it fell by {last_fall:.1e} in the last half"
    return agreement(level, float(loss[-1]) - last_fall / 2, tolerance, reason, measured_error=last_fall / 2, unit="nats")


def _last_fall(evidence: Evidence) -> float:
    """What the loss fell by in the last half of the run: one that falls like 1/t has as much before it."""
    time, loss = evidence.time, evidence.loss
    return float(np.ptp(loss[time >= 0.5 * time[-1]]))


def _plateau_known(evidence: Evidence) -> Regime:
    if evidence.model not in ("R", "F") or evidence.doubly:
        return not_applicable("the match has no value on a unigram plateau in this model or under this prior")
    if evidence.run.clock != "t":
        return Regime(False, "Adam moves all scores alike, whatever their gradients are")
    return Regime(evidence.from_zero, "the match begins at zero" if evidence.from_zero else "the match does not begin at zero")


@claim("MIC:layers", _plateau_known)
def _layers(evidence: Evidence) -> Comparison:
    """Half of the match before twice the attention on the token before [MIC:layers]."""
    match, lag = evidence.events["match"], evidence.events["lag"]
    words = f"the match has half of its plateau value at {match}, attention on lag 1 twice its start at {lag}"
    if match.interval is None and lag.interval is None:
        return undecided(words, "layer 2", "earlier")
    if match.interval is None or lag.interval is None:
        holds = False if match.interval is None else None
        return Comparison("layer 2", "layer 1" if holds is False else None, "earlier", holds, words)
    holds = True if match.interval[1] < lag.interval[0] else False if match.interval[0] > lag.interval[1] else None
    return Comparison("layer 2", "layer 2" if holds else "layer 1", "earlier", holds, words)


def _two_heads(evidence: Evidence) -> Regime:
    return Regime(evidence.model == "S3", "two heads on chains of order 2", applies=evidence.model == "S3")


@claim("MIC:trigram", _two_heads)
def _trigram(evidence: Evidence) -> Comparison:
    """Head 1 has most of its attention on lag 1, later head 2 on lag 2, and the loss ends at the trigram entropy."""
    first, second = evidence.attention[:, 0, 1], evidence.attention[:, 1, 2]
    frames_joined = [np.flatnonzero(mass > 0.5) for mass in (first, second)]
    gap = float(evidence.loss[-1] - evidence.levels.losses[-1])
    words = f"the loss ends {gap:+.1e} nats from the trigram entropy; attention ends {first[-1]:.2f} and {second[-1]:.2f}"
    if evidence.events["t3"].time is None or any(not frames.size for frames in frames_joined):
        late = evidence.events["t3"].time is not None
        return Comparison(0.0, gap, LIMITS.entropy, False if late else None, f"{words}; a head has not joined", unit="nats")
    times = [float(evidence.time[frames[0]]) for frames in frames_joined]
    words += f"; they join at {times[0]:.4g} and {times[1]:.4g}"
    if times[0] >= times[1]:
        return Comparison(0.0, gap, LIMITS.entropy, False, words, unit="nats")
    falling = gap > LIMITS.entropy >= gap - _last_fall(evidence)
    return Comparison(0.0, gap, LIMITS.entropy, None if falling else abs(gap) <= LIMITS.entropy, words, unit="nats")


def _attends(evidence: Evidence) -> Regime:
    if evidence.model not in ("S", "T"):
        return not_applicable("layer 2 of S and T alone is attention")
    t2 = evidence.t2
    return Regime(t2 is not None, "t_2 was reached" if t2 is not None else "t_2 was not reached")


@claim("MIC:induction", _attends)
def _induction(evidence: Evidence) -> Comparison:
    """More than half of the way from chance to attention on what followed earlier occurrences, and less at the start."""
    first, last = (induction_score(evidence.law, evidence.run.at(frame)) for frame in (0, len(evidence.time) - 1))
    scores = f"{last:.3f} at the end and {round(first, 3) + 0.0:.3f} at the start"  # no -0.000
    reason = f"the induction score of layer 2 is {scores}, 0 by chance, 1 at most"
    error = 0.0 if evidence.model == "S" else LIMITS.sampled
    holds = True if last - error >= LIMITS.half and first < LIMITS.half else False if last + error < LIMITS.half else None
    return Comparison(LIMITS.half, last, "at least", holds, reason, None, error)


def induction_score(law: SoftmaxPopulation | FiniteLoss, params: Params) -> float:
    """Share of the way from chance, 0, to attention on such places alone, 1."""
    value, chance = _window_score(law, params) if isinstance(law, SoftmaxPopulation) else _sequence_score(law, params)
    return (value - chance) / (1 - chance)


def _window_score(law: SoftmaxPopulation, params: Params) -> tuple[float, float]:
    """On an infinite context: windows whose token at lag 1 is the current one; even attention gives them sum_i pi_i^2."""
    tables, weights = law.tables, law.window_weights(params)
    windows = tables["windows"].reshape(len(tables["windows"]), -1)
    after = windows @ (weights * tables["digits"][:, :, 1]).T
    attended = float(np.sum(tables["mass"] * after / (windows @ weights.T)))
    return attended, float(np.sum(tables["mass"] * law.process.marginal))


def _sequence_score(law: FiniteLoss, params: Params) -> tuple[float, float]:
    """On sampled sequences, over attention on places after the current token alone, where there are some: the largest score."""
    tokens = law.data["tokens"][: LIMITS.compared]
    before = np.roll(tokens, 1, axis=1)
    matches = (tokens[:, :, None] == before[:, None, :]) & np.tri(tokens.shape[1], dtype=bool)
    matches[:, :, 0] = False
    alone = prefix_match(matches / np.maximum(matches.sum(axis=2, keepdims=True), 1), tokens)
    attended, even = (prefix_match(weights, tokens) for weights in (layer_two(law, params, tokens), even_patterns(*tokens.shape)))
    return attended / alone, even / alone


def layer_two(law: FiniteLoss, params: Params, tokens: np.ndarray) -> np.ndarray:
    """Causal attention of layer 2 of model T (sequences, query, key)."""
    length = tokens.shape[1]
    first = causal(np.asarray(params["v"], dtype=float), length)
    h = np.einsum("ts,nsm->ntm", first, (tokens[..., None] == np.arange(law.model.tokens)).astype(float))
    scores = np.einsum("ntm,nsm->nts", np.asarray(params["W"], dtype=float)[tokens], h)
    return softmax(np.where(np.tri(length, dtype=bool), scores, -np.inf))


def _infinite(evidence: Evidence) -> Regime:
    if evidence.model not in ("R", "S"):
        return not_applicable("closed forms are for R and S")
    if evidence.run.clock != "t":
        return Regime(False, "Adam moves all scores alike, whatever their gradients are")
    good = evidence.from_zero and bool(np.ptp(evidence.start["v"]) < LIMITS.rounding)
    reason = "the match begins at zero and attention even over the lags" if good else "the start is not even, or has a match"
    return Regime(good, reason)


def _first_speed(evidence: Evidence) -> float:
    """|F| at W = 0 by the closed forms."""
    gain, process = float(evidence.gains.mean()), evidence.law.process
    if evidence.model == "S":
        return abs(gain)
    if evidence.law.model.form == "parts":
        return float(np.hypot(common_gain(process), gain))
    return float(np.linalg.norm(first_gradient(process, evidence.lags)))


@claim("MIC:lag-gradient", _infinite)
def _lag_gradient(evidence: Evidence) -> Comparison:
    """The recorded |F| at the start is that of the closed forms, and scores of odd lags rise above those of their neighbours."""
    predicted, measured = _first_speed(evidence), float(evidence.run.series["speed"][0])
    lag = evidence.events["lag"].time
    if lag is None:
        return Comparison(
            predicted, measured, LIMITS.exact * predicted, None, "attention on lag 1 has not doubled yet", unit="1/t"
        )
    frame = int(np.searchsorted(evidence.time, lag))
    changes = (evidence.run.params["v"][frame] - evidence.run.params["v"][0])[: LIMITS.lags_compared]
    odd = range(1, len(changes), 2)
    zigzag = all(changes[d] > changes[d - 1] and (d + 1 >= len(changes) or changes[d] > changes[d + 1]) for d in odd)
    leads = int(np.argmax(changes)) == 1
    close = abs(measured / predicted - 1) <= LIMITS.exact
    shape = f"scores moved by {', '.join(f'{change:.2g}' for change in changes)} when attention on lag 1 had doubled"
    reason = f"|F| is {measured:.8g} at the start, the closed form {predicted:.8g}; {shape}"
    return Comparison(predicted, measured, LIMITS.exact * predicted, close and zigzag and leads, reason, unit="1/t")


def _softmax(evidence: Evidence) -> Regime:
    if evidence.model != "S":
        return not_applicable("the unigram point is exact for S alone")
    return Regime(evidence.from_zero, "the run begins at the unigram point" if evidence.from_zero else "b does not begin at zero")


@claim("MIC:near-stationary", _softmax)
def _near_stationary(evidence: Evidence) -> Comparison:
    """D |F| at the unigram point is C, the sum of the chi-square information of the lags; any attention weights them."""
    start = np.exp(evidence.start["v"] - evidence.start["v"].max())
    predicted = float(evidence.lags * abs(start @ evidence.gains) / start.sum())
    measured = float(evidence.lags * evidence.run.series["speed"][0] / evidence.rate)
    reason = f"D |F| is {measured:.8g} at the unigram point with D = {evidence.lags}; the sum over the lags is {predicted:.8g}"
    return agreement(predicted, measured, LIMITS.exact * predicted, reason)


def on_plateau(evidence: Evidence) -> Regime:
    """The regime of the law of the plateau."""
    if evidence.model != "R" or evidence.doubly:
        return not_applicable("the law is that of the unigram plateau of R")
    if not evidence.flow or not evidence.from_zero:
        return Regime(False, "the run is no flow from a match of zero")
    if evidence.lags < min(LIMITS.lags_needed):
        return Regime(False, f"{evidence.lags} lags; at least {min(LIMITS.lags_needed)} are needed")
    law = evidence.plateau_time
    if not np.isfinite(law):
        return Regime(False, "lag 1 does not lead on the plateau")
    pull = evidence.plateau.pull
    if int(np.argmax(evidence.start["v"] + np.log(np.maximum(pull - pull.mean(), 1e-300)))) != 1:
        return Regime(False, "another lag has the lead at this start")
    grown = evidence.plateau.grown(LIMITS.fifth * law * evidence.rate) / evidence.rate
    return Regime(bool(grown <= LIMITS.fifth * law), f"b is at .9 of its plateau value at t = {grown:.4g}; the law is {law:.4g}")


@claim("MIC:plateau-law", on_plateau)
def _law(evidence: Evidence) -> Comparison:
    lags = max(evidence.lags, min(LIMITS.lags_needed))
    return _timed(evidence, evidence.plateau_time, min(share for least, share in LIMITS.lags_needed.items() if lags >= least))


def _timed(evidence: Evidence, predicted: float, share: float) -> Comparison:
    """t_2 beside a law."""
    t2, half = evidence.event_time("t2")
    if t2 is None:
        late = evidence.end > (1 + share) * predicted
        words = f"t_2 was not reached by {evidence.time[-1]:.4g}; the law is {predicted:.4g}"
        return Comparison(predicted, None, share * predicted, False if late else None, words, unit="t")
    reason = f"t_2 is {t2:.5g}, the law {predicted:.5g}: {t2 / predicted:.3f} of it"
    return agreement(predicted, t2, share * predicted, reason, measured_error=half, unit="t")


def _two_steps(evidence: Evidence) -> Regime:
    if not (evidence.model == "S" or (evidence.model == "R" and evidence.doubly)):
        return not_applicable("the two-step law is for S, and for R under a doubly stochastic prior")
    if not evidence.flow or not evidence.from_zero:
        return Regime(False, "the run is no flow from a match of zero")
    if evidence.model == "R" and evidence.law.model.form != "parts" and evidence.law.process.tokens > 2:
        return Regime(False, "b is not one of the numbers that move: entries of W do, and b at another rate")
    if not np.isfinite(evidence.two_step):
        return Regime(False, "lag 1 does not lead at this start")
    later = float(evidence.two_step * evidence.rate * evidence.gains[1])
    words = f"rho = {evidence.ratio:g}, the law is for 1 to 10; it is {later:.2g} times the growth time of b at lag 1"
    return Regime(1 <= evidence.ratio <= 10 and later >= LIMITS.after, f"{words}, at least {LIMITS.after:g}")


@claim("MIC:two-step", _two_steps)
def _two_step(evidence: Evidence) -> Comparison:
    return _timed(evidence, evidence.two_step, LIMITS.fifth)


def _of_study(evidence: Evidence, regime: Regime) -> Regime:
    from_study = evidence.run.config is not None, "the run was not made by the study, so it has no options to change"
    return narrowed(regime, from_study)


def _noise_regime(evidence: Evidence) -> Regime:
    regime, scores = on_plateau(evidence), evidence.start["v"]
    if not regime.holds:
        return regime
    lags = effective_lags(scores)
    calm = bool(np.std(scores) <= 1.3), "the scores of the lags begin with more noise than one"
    enough_lags = lags >= LIMITS.fewest, f"{lags:.0f} effective lags; at least {LIMITS.fewest} are needed"
    return _of_study(evidence, narrowed(regime, calm, enough_lags))


@claim("MIC:start-noise", _noise_regime)
def _noise(evidence: Evidence) -> Comparison:
    """t_2 over its law at other noises beside that of the run, each with the lags of its own start."""
    companions = evidence.companions("changed", [{"init_scale": sigma, "until": None} for sigma in LIMITS.noises])
    runs = [
        companion for companion in companions if companion.plateau.leads and effective_lags(companion.start["v"]) >= LIMITS.fewest
    ]
    t2 = evidence.t2
    timed = [(companion, companion.t2) for companion in runs]
    ratios = [(float(np.std(companion.start["v"])), t / companion.plateau_time) for companion, t in timed if t is not None]
    if t2 is None or len(ratios) < 2:
        return undecided("t_2 was not reached in this run, or in fewer than two beside it", 0.0, LIMITS.small)
    ratio_here = t2 / evidence.plateau_time
    spread = max(abs(ratio / ratio_here - 1) for _, ratio in ratios)
    over = OverRuns(
        tuple(x for x, _ in ratios), tuple(y for _, y in ratios), (ratio_here,) * len(ratios), "noise of v", "t_2 over its law"
    )
    ratio_words = ", ".join(f"{y:.3f}" for _, y in ratios)
    reason = f"t_2 over its law is {ratio_here:.3f} here and {ratio_words} at noises {', '.join(f'{x:.2g}' for x, _ in ratios)}"
    return Comparison(0.0, spread, LIMITS.small, spread <= LIMITS.small, reason, over_runs=over)


def _slower_lags(evidence: Evidence) -> Regime:
    if evidence.model not in ("R", "F", "T") or evidence.doubly:
        return not_applicable("the claim compares R, F or T with the doubly stochastic prior")
    if evidence.law.process.tokens > 2:
        return not_applicable("the control of the paper has two tokens; with three, scaled rows are not faster")
    if evidence.run.clock != "t":
        return Regime(False, "Adam has no plateau to be delayed on")
    gain = evidence.law.length**2 if evidence.model == "F" else 1  # logits of F are sums over the sequence
    rho, largest = evidence.ratio / gain, LIMITS.slow["F"]  # above equal rates attention does not wait for unigrams
    return _of_study(evidence, Regime(rho <= largest, f"rho = {rho:.3g}, at most {largest:g}"))


@claim("MIC:doubly-stochastic", _slower_lags)
def _doubly(evidence: Evidence) -> Comparison:
    change: dict[str, Any] = {"doubly_stochastic": True}
    t2, half = evidence.event_time("t2")
    runs = evidence.companions("changed", [change | ({"until": None} if evidence.flow and evidence.model == "R" else {})])
    if t2 is None or not runs or runs[0].t2 is None:
        return undecided("t_2 was not reached in both runs", LIMITS.earlier, "at least")
    t2_doubly, error = runs[0].event_time("t2")
    ratio = t2 / t2_doubly if t2_doubly else np.inf
    spread = ratio * float(np.hypot(half / t2, error / t2_doubly)) if t2_doubly else 0.0
    reason = f"t_2 is {t2:.4g}, under the doubly stochastic prior {t2_doubly:.4g}: {ratio:.3g} times as late"
    over = OverRuns((0.0, 1.0), (t2, t2_doubly), (), "doubly stochastic", f"t_2 ({evidence.run.clock})", log_y=True)
    comparison = at_least(ratio, LIMITS.earlier, reason, measured_error=spread)
    return Comparison(
        LIMITS.earlier, comparison.measured, "at least", comparison.holds, comparison.reason, None, spread, over_runs=over
    )


def _with_adam(evidence: Evidence) -> Regime:
    kind = (evidence.dynamics.get("optimizer") or {}).get("type")
    if evidence.model != "R" or evidence.doubly or kind != "Adam":
        return not_applicable("the claim is about R with Adam")
    return _of_study(evidence, Regime(evidence.from_zero, "steps of Adam from a match of zero"))


@claim("MIC:adam", _with_adam)
def _adam(evidence: Evidence) -> Comparison:
    """Steps to t_2 over a factor of eight in the number of lags."""
    lags = evidence.lags
    factors = (0.5, 2, 4) if 4 * lags <= LIMITS.adam_lags else (0.5, 0.25, 0.125)
    counts = sorted({max(2, round(lags * factor)) for factor in factors} - {lags})
    runs = [evidence, *evidence.companions("changed", [{"lags": count} for count in counts])]
    steps = [(run.lags, run.t2) for run in sorted(runs, key=lambda run: run.lags)]
    if len(steps) < 3 or any(t2 is None for _, t2 in steps):
        return undecided("t_2 was not reached in all runs, or there are fewer than three", 0.0, LIMITS.fifth)
    times = np.array([t2 for _, t2 in steps], dtype=float)
    spread = float(np.max(np.abs(times / times.mean() - 1)))
    over = OverRuns(tuple(float(n) for n, _ in steps), tuple(times), (times.mean(),) * len(times), "lags", "steps", log_x=True)
    reason = f"t_2 is at {', '.join(f'{t:.0f}' for t in times)} steps with {', '.join(str(n) for n, _ in steps)} lags"
    return Comparison(0.0, spread, LIMITS.fifth, spread <= LIMITS.fifth, reason, over_runs=over)


CLAIMS = claim.claims
