"""Which strategies come in which order, on which levels, and which layer moves first."""

import numpy as np

from stagescope.claims.claim import claim
from stagescope.claims.comparison import Comparison, Regime, agreement
from stagescope.detect.levels import noise_near
from stagescope.fields.softmax import softmax
from stagescope.papers.markov_icl import nulls
from stagescope.papers.markov_icl.evidence import Evidence
from stagescope.papers.markov_icl.induction import induction_score
from stagescope.papers.markov_icl.ladder import in_form
from stagescope.papers.markov_icl.levels import class_of
from stagescope.papers.markov_icl.stages import stretches

LEVEL = 5e-4  # nats: the page's; a plateau of R at rho = .1 is 2e-4 from its class
SLOW = {"R": 0.1, "F": 1.0}  # largest t_b over the law of t_2 (R), and largest rho (F): the match then comes to rest
ENTROPY = 1e-3  # nats: what a softmax of finite scores is above the trigram entropy (page)
HEAD = 0.5  # induction score: half of the way from chance to its largest value
SAMPLED = 0.02  # two standard errors of that score on sampled sequences
SMALL = 0.05  # nats: KL of the uniform strategy to the model at a small start


def _begins_low(evidence: Evidence) -> Regime:
    """The run begins at the lowest strategy that its model has."""
    curves = evidence.curves
    if evidence.doubly:
        return Regime(False, "under a doubly stochastic prior a unigram is the uniform prediction", applies=False)
    if evidence.model in SLOW and not _reads_unigrams(evidence):
        return Regime(False, "the best unigram member of this model is nearer to another strategy: sequences are too short")
    first = int(curves.nearest[0])
    wanted = 1 if evidence.model in ("S", "S3") else 0
    wanted = min(wanted, len(curves.strategies.names) - 2)
    distance = max(0.0, float(curves.divergences[0, wanted]))
    name = curves.strategies.names[wanted]
    return Regime(first == wanted and distance < SMALL, f"at the start the {name} strategy is {distance:.2g} nats away")


def _reads_unigrams(evidence: Evidence) -> bool:
    """Whether the unigram class of R or F predicts most like the unigram strategy."""
    even = np.zeros(evidence.lags)
    best = class_of(evidence.law, softmax(even)).least()[1]
    logs = evidence.curves.logs_of({"W": in_form(evidence.law.model, best), "v": even})
    place, _ = evidence.curves.strategies.nearest(logs)
    return evidence.curves.strategies.names[place] == "unigram"


def _order(evidence: Evidence) -> Comparison:
    """The nearest strategies, each once, in the order of the ladder; the unigram one must be there."""
    curves = evidence.curves
    every = ("uniform", "unigram", "bigram", "trigram")[: 3 if evidence.model != "S3" else 4]
    expected = [name for name in every if not (name == "uniform" and evidence.model in ("S", "S3"))]
    places = [first for first, _ in stretches(curves.nearest)]
    seen = [curves.strategies.names[int(curves.nearest[place])] for place in places]
    settled = [seen[i] for i in range(len(seen)) if curves.clear[places[i]] or i in (0, len(seen) - 1)]
    path = [name for i, name in enumerate(settled) if i == 0 or name != settled[i - 1]]
    ended = bool(curves.clear[-1]) and path[-1] == expected[-1]
    holds = path == expected if ended else None
    reason = f"the nearest strategies are {', '.join(path)}; the order of the ladder is {', '.join(expected)}"
    return Comparison(", ".join(expected), ", ".join(path), "the same", holds, reason)


def _rests(evidence: Evidence) -> Regime:
    if evidence.model == "T" or not evidence.exact:
        return Regime(False, "levels are exact for R, S, S3, and F on all sequences", applies=False)
    if evidence.doubly and evidence.model in SLOW:
        return Regime(False, "under a doubly stochastic prior there is no unigram plateau", applies=False)
    slow = SLOW.get(evidence.model, np.inf)
    if evidence.model in SLOW and not evidence.from_zero:
        return Regime(False, "the match does not begin at zero")
    if evidence.model in SLOW and np.ptp(evidence.start["v"]) > 0.1:  # another class than that of even attention
        return Regime(False, "attention does not begin even over the lags")
    if not evidence.flow or evidence.model != "R":
        bound = f"rho = {evidence.ratio:g}, at most {slow:g} in a flow" if evidence.model in SLOW else "any rho in a flow"
        return Regime(evidence.flow and evidence.ratio <= slow, bound)
    law = evidence.plateau_time * evidence.rate
    share = evidence.plateau.grown(law) / law if np.isfinite(law) else np.inf
    return Regime(share <= slow, f"the match is at .9 of its plateau value at {share:.2g} of the law of t_2, at most {slow:g}")


def _levels(evidence: Evidence) -> Comparison:
    """R and F: the plateau between t_1 and t_2 is at its class. S and S3: the end is at the last entropy."""
    if evidence.model in SLOW:
        return _rest(evidence)
    loss, level = evidence.curves.loss, float(evidence.curves.levels.losses[-1])
    tolerance = LEVEL if evidence.model == "S" else ENTROPY
    last = "t2" if evidence.model == "S" else "t3"
    if evidence.time(last)[0] is None:
        return Comparison(level, None, tolerance, None, f"the run ends before {last}", unit="nats")
    left = _left(evidence)
    reason = f"the loss ends at {loss[-1]:.5f}, the entropy is {level:.5f}; it fell by {left:.1e} in the last half"
    return agreement(level, float(loss[-1]) - left / 2, tolerance, reason, measured_error=left / 2, unit="nats")


def _left(evidence: Evidence) -> float:
    """What the loss fell by in the last half of the run: one that falls like 1/t has as much before it."""
    time, loss = evidence.curves.time, evidence.curves.loss
    return float(np.ptp(loss[time >= 0.5 * time[-1]]))


def _rest(evidence: Evidence) -> Comparison:
    rest, when = evidence.rest, evidence.time("t2")[0]
    if rest is None or when is None:
        return Comparison(None, None, LEVEL, None, "the run has not passed t_1 and t_2", unit="nats")
    noise = 2 * noise_near(evidence.curves.time, evidence.curves.loss, rest.t)
    reason = f"the loss rests at {rest.loss:.5f} at t = {rest.t:.4g}; the unigram class has {rest.level:.5f}"
    return agreement(rest.level, rest.loss, LEVEL, reason, measured_error=noise, unit="nats")


def _plateau_known(evidence: Evidence) -> Regime:
    if evidence.model not in ("R", "F") or evidence.doubly:
        return Regime(False, "the match has no value on a unigram plateau in this model or under this prior", applies=False)
    if evidence.run.clock != "t":
        return Regime(False, "Adam moves all scores alike, whatever their gradients are")
    return Regime(evidence.from_zero, "the match begins at zero" if evidence.from_zero else "the match does not begin at zero")


def _layers(evidence: Evidence) -> Comparison:
    """Half of the match before twice the attention on the token before [MIC:layers]."""
    match, lag = evidence.events["match"], evidence.events["lag"]
    words = f"the match has half of its plateau value at {match}, attention on lag 1 twice its start at {lag}"
    if match.interval is None and lag.interval is None:
        return Comparison("layer 2", None, "earlier", None, words)
    if match.interval is None or lag.interval is None:
        holds = False if match.interval is None else None
        return Comparison("layer 2", "layer 1" if holds is False else None, "earlier", holds, words)
    holds = True if match.interval[1] < lag.interval[0] else False if match.interval[0] > lag.interval[1] else None
    return Comparison("layer 2", "layer 2" if holds else "layer 1", "earlier", holds, words)


def _two_heads(evidence: Evidence) -> Regime:
    return Regime(evidence.model == "S3", "two heads on chains of order 2", applies=evidence.model == "S3")


def _trigram(evidence: Evidence) -> Comparison:
    """Head 1 has most of its attention on lag 1, later head 2 on lag 2, and the loss ends at the trigram entropy."""
    curves = evidence.curves
    first, second = curves.attention[:, 0, 1], curves.attention[:, 1, 2]
    joined = [np.flatnonzero(mass > 0.5) for mass in (first, second)]
    gap = float(curves.loss[-1] - curves.levels.losses[-1])
    words = f"the loss ends {gap:+.1e} nats from the trigram entropy; attention ends {first[-1]:.2f} and {second[-1]:.2f}"
    if evidence.events["t3"].time is None or any(not found.size for found in joined):
        late = evidence.events["t3"].time is not None
        return Comparison(0.0, gap, ENTROPY, False if late else None, f"{words}; a head has not joined", unit="nats")
    times = [float(curves.time[found[0]]) for found in joined]
    words += f"; they join at {times[0]:.4g} and {times[1]:.4g}"
    if times[0] >= times[1]:
        return Comparison(0.0, gap, ENTROPY, False, words, unit="nats")
    falling = gap > ENTROPY >= gap - _left(evidence)
    return Comparison(0.0, gap, ENTROPY, None if falling else abs(gap) <= ENTROPY, words, unit="nats")


def _attends(evidence: Evidence) -> Regime:
    if evidence.model not in ("S", "T"):
        return Regime(False, "layer 2 of S and T alone is attention", applies=False)
    when = evidence.time("t2")[0]
    return Regime(when is not None, "t_2 was reached" if when is not None else "t_2 was not reached")


def _induction(evidence: Evidence) -> Comparison:
    """More than half of the way from chance to attention on what followed earlier occurrences, and less at the start."""
    first, last = (induction_score(evidence.law, evidence.curves.at(frame)) for frame in (0, len(evidence.curves.time) - 1))
    scores = f"{last:.3f} at the end and {round(first, 3) + 0.0:.3f} at the start"  # no -0.000
    reason = f"the induction score of layer 2 is {scores}, 0 by chance, 1 at most"
    error = 0.0 if evidence.model == "S" else SAMPLED
    holds = True if last - error >= HEAD and first < HEAD else False if last + error < HEAD else None
    return Comparison(HEAD, last, "at least", holds, reason, None, error)


CLAIMS = (
    claim(
        "MIC:order",
        "Predictions are uniform, then unigram, then bigram",
        _begins_low,
        _order,
        "uniform",
        "bigram",
        kind="pattern",
        null=(nulls.BACKWARDS,),
    ),
    claim(
        "MIC:levels",
        "The loss rests at the level of a class, or at an entropy",
        _rests,
        _levels,
        "t1",
        "t2",
        kind="prediction",
        null=(nulls.OTHER_PRIOR,),
        rules=2,
    ),
    claim(
        "MIC:layers",
        "Layer 2 aligns before layer 1",
        _plateau_known,
        _layers,
        "match",
        "lag",
        kind="pattern",
        null=(nulls.FAST_LAGS,),
    ),
    claim(
        "MIC:trigram",
        "The second head joins at lag 2 after the first at lag 1, and the loss ends at the trigram entropy",
        _two_heads,
        _trigram,
        "t2",
        "t3",
        kind="pattern",
        null=(nulls.EXCHANGED_HEADS,),
    ),
    claim(
        "MIC:induction",
        "Layer 2 becomes an induction head",
        _attends,
        _induction,
        "t2",
        "end",
        kind="pattern",
        null=(nulls.FLAT_LAGS,),
    ),
)
