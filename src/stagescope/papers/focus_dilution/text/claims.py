"""Claims of focus and dilution on real text, for runs on any corpus."""

from dataclasses import dataclass

import numpy as np

from stagescope.claims.claim import claim
from stagescope.claims.comparison import Comparison, Regime
from stagescope.papers.focus_dilution.forms import condensation_directions, condensation_rate
from stagescope.papers.focus_dilution.text import evidence as regimes
from stagescope.papers.focus_dilution.text.evidence import TEXT_LIMITS, TextEvidence
from stagescope.papers.focus_dilution.text.stages import TextHistory


@dataclass(frozen=True)
class TextTolerances:
    """How near a run on a text must come to a claim. Chosen on TinyStories and WikiText-2, not on Tiny Shakespeare."""

    rate: float = 0.05  # relative, of the first growth rate
    cosine: float = 0.99  # least size of cos(Phi, pi pi^T) at Q1
    times: tuple[float, float] = (0.8, 1.25)  # event times over those of the bigram flow, seen to agree within 12 %
    rows: float = 0.95  # least share of rows that focus and dilute
    swings: tuple[float, float, float] = (2.0, 1.0, 0.3)  # nats by which the mean entropy falls, rises and falls again
    retraction: float = 0.15  # least relative retraction of rare norms
    plateau: float = 3.0  # least E2/E1 of a run with a plateau


TOLERANCES = TextTolerances()
NO_FLOW = "the steps of this optimiser have no flow time"
STILL_MOVING = "it still moved in the second half of the run"


def _origin(evidence: TextEvidence) -> Comparison:
    """The mode that grows at the origin, |W0^T u + W1 w| with u ~ pi, w ~ pi - 1/d, from the start to E1."""
    pi, opened = evidence.curves.pi, evidence.history.embeddings[0]
    predicted = condensation_rate(pi)
    if evidence.run.clock != "t":
        return Comparison(predicted, None, TOLERANCES.rate, None, NO_FLOW)
    if opened is None:
        return Comparison(predicted, None, TOLERANCES.rate, None, "E1 was not reached")
    steps = int(np.ceil(np.interp(opened, evidence.curves.time, evidence.run.step)))
    early = evidence.early(max(steps, 2))
    left, right = condensation_directions(pi)
    mode = np.einsum("kim,i->km", early.params["W0"], left) + early.params["W1"] @ right
    size = np.linalg.norm(mode, axis=1)
    if len(size) < 5 or size[-1] < np.e * size[0]:
        return Comparison(predicted, None, TOLERANCES.rate, None, "the mode did not grow by a factor e before E1")
    rate = float(np.polyfit(early.time, np.log(size), 1)[0])
    growth = f"while the first mode grows from {size[0]:.2g} to {size[-1]:.2g}"
    reason = f"rate predicted {predicted:.4f}, measured {rate:.4f} {growth}"
    return Comparison(predicted, rate, TOLERANCES.rate, abs(rate / predicted - 1) <= TOLERANCES.rate, reason)


def _order(evidence: TextEvidence) -> Comparison:
    named, words = evidence.history.opened, "E1 < Q1 < E2 < min(E3, Q2)"
    firsts = ("E1", "Q1", "E2")
    for name in firsts:
        if named.get(name) is None:
            return Comparison(words, None, "order", None, f"{name} was not reached")
    first, opened, second = (float(named[name] or 0.0) for name in firsts)
    third, end = [named.get(name) for name in ("E3", "Q2")], float(evidence.curves.time[-1])
    shown = ", ".join(f"{name} {'not reached' if when is None else f'{when:.4g}'}" for name, when in _listed(evidence))
    holds = first < opened < second < min(end if when is None else when for when in third)
    if holds and third == [None, None]:
        return Comparison(words, shown, "order", None, f"neither E3 nor Q2 was reached: {shown}")
    return Comparison(words, shown, "order", holds, shown)


def _listed(evidence: TextEvidence) -> list[tuple[str, float | None]]:
    return [(name, evidence.history.opened.get(name)) for name in ("E1", "Q1", "E2", "E3", "Q2")]


def _bigram(evidence: TextEvidence) -> Comparison:
    """Ratios of E2, E3 and Q2 to those of the flow on the bigram chain from the same start."""
    low, high = TOLERANCES.times
    tolerance = f"{low} to {high}"
    if evidence.run.clock != "t":
        return Comparison(1.0, None, tolerance, None, NO_FLOW)
    flow, text = evidence.flow_history.opened, evidence.history.opened
    ratios, lacking = {}, []
    for name in ("E2", "E3", "Q2"):
        here, there = text.get(name), flow.get(name)
        if here is None or there is None:
            lacking.append(f"{name} was not reached {'in the bigram flow' if here is not None else 'in the text'}")
        else:
            ratios[name] = here / there
    shown = ", ".join(
        f"{name} predicted {flow[name]:.4g}, measured {text[name]:.4g} (ratio {ratio:.3f})" for name, ratio in ratios.items()
    )
    if not ratios:
        return Comparison(1.0, None, tolerance, None, "; ".join(lacking))
    worst = max(ratios.values(), key=lambda ratio: abs(np.log(ratio)))
    near = all(low <= ratio <= high for ratio in ratios.values())
    holds = near and (None if lacking else True)
    return Comparison(1.0, float(worst), tolerance, holds, "; ".join([shown, *lacking]))


def _sign_regime(evidence: TextEvidence) -> Regime:
    """c is the rate at the condensed point: attention must open before a second embedding direction does."""
    at, made = regimes.attention_only(evidence), evidence.predictions
    opened, second = evidence.history.opened.get("Q1"), evidence.history.opened.get("E2")
    if at.holds and made.sign == 0:
        return Regime(False, f"c = {made.c_windows:+.2f} +- {made.c_error:.2f} on real windows: its sign is undecided")
    if at.holds and evidence.causal:
        return Regime(False, "the loss is at all positions, so c on windows of full length is not the rate of attention")
    if at.holds and second is not None and (opened is None or opened >= second):
        return Regime(False, f"W0 is no longer of rank one when attention opens: E2 is at {second:.4g}")
    return at


def _sign(evidence: TextEvidence) -> Comparison:
    made, found = evidence.predictions, evidence.history.direction
    c = f"c = {made.c_windows:+.2f} +- {made.c_error:.2f} on real windows (bigram {made.c_bigram:+.2f})"
    least = TOLERANCES.cosine
    if found is None:
        return Comparison(f"{made.sign:+d}", None, least, None, f"{c}; Q1 was not reached")
    sign = "not predicted" if made.sign == 0 else "as predicted" if made.sign * found > 0 else "not as predicted"
    size = "above" if abs(found) > least else "not above"
    reason = f"{c}; cos(Phi, pi pi^T) = {found:+.4f} at Q1: sign {sign}, size {size} {least}"
    return Comparison(f"{made.sign:+d}", found, least, made.sign * found > least, reason)


def _waiting(evidence: TextEvidence) -> str | None:
    """Why a turn that did not happen may still come; None where it would have come by now."""
    if evidence.history.opened_late:
        return "Q1 is in the second half of the run, or was not reached"
    if evidence.learned < TEXT_LIMITS.learned:
        share = f"{max(evidence.learned, 0):.0%} of H(pi) - H(next | last token)"
        return f"by the middle of the run the loss has gained {share}, below {TEXT_LIMITS.learned:.0%}"
    return None


def _rows(evidence: TextEvidence) -> Comparison:
    history = evidence.history
    share, count = len(history.diluted) / len(history.rows), len(history.rows)
    focused, diluted = (f"(frequency {history.mass(rows):.3f})" for rows in (history.focused, history.diluted))
    reason = f"{len(history.focused)} of {count} rows {focused} focus on the most frequent type"
    reason += f"; {len(history.diluted)} {diluted} then lose half of their gain"
    late, waiting, least = len(history.on_their_way), _waiting(evidence), TOLERANCES.rows
    if share < least and waiting:
        return Comparison(f">= {least}", share, least, None, f"{reason}; {waiting}")
    if share < least <= share + late / count:
        why = f"{late} more may follow: their focus is in the second half of the run"
        return Comparison(f">= {least}", share, least, None, f"{reason}; {why}")
    return Comparison(f">= {least}", share, least, share >= least, reason)


def _entropy_regime(evidence: TextEvidence) -> Regime:
    at, start, fall = regimes.adaptive(evidence), float(evidence.curves.mean_entropy[0]), TOLERANCES.swings[0]
    if at.holds and start <= fall:
        return Regime(False, f"the mean entropy starts at {start:.2f} nat and cannot fall by {fall:g}")
    return at


def _entropy(evidence: TextEvidence) -> Comparison:
    fall, rise, again = TOLERANCES.swings
    wanted, found = f"falls > {fall:g}, rises > {rise:g}, falls > {again:g} nat", evidence.history.swings(again)
    shown = "; ".join(f"{turn.before:.2f} -> {turn.after:.2f}" for turn in evidence.history.entropy) or "it does not move"
    if found is None:
        waiting = _waiting(evidence) or (STILL_MOVING if evidence.history.moves(evidence.history.mean_entropy, again) else None)
        sentence = f"the mean entropy does not fall, rise and fall{' by the end' if waiting else ''}: {shown}"
        return Comparison(wanted, None, "shape", None if waiting else False, f"{sentence}; {waiting}" if waiting else sentence)
    holds = all(move > least for move, least in zip(found, TOLERANCES.swings, strict=True))
    measured = ", ".join(f"{move:.2f}" for move in found)
    return Comparison(wanted, measured, "shape", holds, f"the mean entropy falls, rises and falls by {measured} nat")


def _norms(evidence: TextEvidence) -> Comparison:
    wanted, tolerance = f"grow, retract by {TOLERANCES.retraction:.0%} or more, grow", TOLERANCES.retraction
    least = float(-np.log(1 - tolerance))
    turns = evidence.history.retraction(least)
    if turns is None:
        waiting = _waiting(evidence) or (STILL_MOVING if evidence.history.moves(evidence.history.log_norm, least) else None)
        sentence = f"the mean norm of rare rows does not grow, retract and grow again{' by the end' if waiting else ''}"
        return Comparison(wanted, None, tolerance, None if waiting else False, f"{sentence}; {waiting}" if waiting else sentence)
    lost = float(1 - np.exp(turns[1].after - turns[1].before))
    sizes = [np.exp(turns[0].before), np.exp(turns[0].after), np.exp(turns[1].after), np.exp(turns[2].after)]
    shown = " -> ".join(f"{size:.3f}" for size in sizes)
    return Comparison(wanted, lost, tolerance, lost >= tolerance, f"mean norm of the rarer half of rows {shown}")


def _separable(evidence: TextEvidence) -> Regime:
    at = regimes.descent(evidence)
    if at.holds and TEXT_LIMITS.apart < evidence.r < TEXT_LIMITS.together:
        between = f"between {TEXT_LIMITS.apart:g} and {TEXT_LIMITS.together:g}"
        return Regime(False, f"r = {evidence.r:.3f} is {between}, where neither is predicted")
    return at


def _separability(evidence: TextEvidence) -> Comparison:
    """Whether there is a plateau with one embedding direction."""
    history, r, least = evidence.history, evidence.r, TOLERANCES.plateau
    predicted = "a plateau" if r <= TEXT_LIMITS.apart else "no plateau" if r >= TEXT_LIMITS.together else "neither"
    ratio = plateau(history)
    if ratio is None:
        return Comparison(predicted, None, least, None, f"r = {r:.3f}; E1 or E2 was not reached")
    found = "a plateau" if ratio >= least else "no plateau"
    sign = ">" if history.opened.get("E2") is None else "="  # a plateau may outlast the run
    reason = f"r = {r:.3f} predicts {predicted}; E2/E1 {sign} {ratio:.2f} is {found} (a plateau has {least:g} or more)"
    return Comparison(predicted, found, least, found == predicted, reason)


def plateau(history: TextHistory) -> float | None:
    """E2/E1, or a lower bound of it where the run ends before E2; None where that bound decides nothing."""
    first, second = history.opened["E1"], history.opened.get("E2")
    if first is None or first <= 0:
        return None
    if second is None:
        bound = float(history.curves.time[-1]) / first
        return bound if bound >= TOLERANCES.plateau else None
    return second / first


CLAIMS = (
    claim("FD:text-origin", "The first mode grows at mu0 = |pi| |pi - 1/d|", regimes.attention_only, _origin, "start", "E1"),
    claim(
        "FD:text-order",
        "Embedding, attention, embedding open in this order, then the rest",
        regimes.condensed,
        _order,
        "E1",
        "Q1",
        "E2",
        "E3",
        "Q2",
    ),
    claim("FD:text-bigram", "The bigram flow gives the times of E2, E3 and Q2", regimes.long_windows, _bigram, "E2", "E3", "Q2"),
    claim("FD:text-sign", "Attention opens along pi pi^T with the sign of c on real windows", _sign_regime, _sign, "Q1"),
    claim(
        "FD:text-rows",
        "Rows focus on the most frequent type, then lose half of their gain",
        regimes.adaptive,
        _rows,
        "rows focus",
        "rows dilute",
    ),
    claim("FD:text-entropy", "The entropy of attention falls, rises and falls again", _entropy_regime, _entropy, "entropy *"),
    claim("FD:text-norms", "Embeddings of rare types grow, retract and grow again", regimes.adaptive, _norms, "rare norms *"),
    claim("FD:text-separability", "Small r gives a plateau, large r none", _separable, _separability, "E1", "E2"),
)
