"""Focus and dilution on real text: what should show there, as claims that can be put to a run on any corpus."""

import numpy as np

from stagescope.claims.claim import Claim, Comparison, Regime
from stagescope.papers.focus_dilution.forms import condensation_directions, condensation_rate
from stagescope.papers.focus_dilution.text import evidence as regimes
from stagescope.papers.focus_dilution.text.evidence import APART, LEARNED, TOGETHER, TextEvidence
from stagescope.papers.focus_dilution.text.stages import TextStory

RATE, COSINE = 0.05, 0.99
CLOSE = (0.8, 1.25)
"""How near the events of a text are to those of its bigram flow."""
ROWS = 0.95
FALL, RISE, AGAIN = 2.0, 1.0, 0.3
"""Nats by which the mean entropy falls, rises and falls again."""
RETRACT = 0.15
PLATEAU = 3.0
"""E2/E1 of a run with a plateau."""
NO_FLOW = "the steps of this optimiser have no flow time"


def _origin(evidence: TextEvidence) -> Comparison:
    """The mode that grows at the origin, |W0^T u + W1 w| with u ~ pi, w ~ pi - 1/d, from its start until embeddings open."""
    pi, opened = evidence.curves.pi, evidence.story.embeddings[0]
    predicted = condensation_rate(pi)
    if evidence.run.clock != "t":
        return Comparison(predicted, None, RATE, None, NO_FLOW)
    if opened is None:
        return Comparison(predicted, None, RATE, None, "the first embedding direction never opened")
    steps = int(np.ceil(np.interp(opened, evidence.curves.time, evidence.run.step)))
    seen = evidence.early(max(steps, 2))
    left, right = condensation_directions(pi)
    mode = np.einsum("kim,i->km", seen.params["W0"], left) + seen.params["W1"] @ right
    size = np.linalg.norm(mode, axis=1)
    if len(size) < 5 or size[-1] < np.e * size[0]:
        return Comparison(predicted, None, RATE, None, "the mode did not grow by a factor e before embeddings opened")
    rate = float(np.polyfit(seen.time, np.log(size), 1)[0])
    reason = f"the first mode grows at {rate:.4f} from {size[0]:.2g} to {size[-1]:.2g}; mu0 = {predicted:.4f}"
    return Comparison(predicted, rate, RATE, abs(rate / predicted - 1) <= RATE, reason)


def _order(evidence: TextEvidence) -> Comparison:
    named, words = evidence.story.opened, "E1 < Q1 < E2 < min(E3, Q2)"
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
    return [(name, evidence.story.opened.get(name)) for name in ("E1", "Q1", "E2", "E3", "Q2")]


def _bigram(evidence: TextEvidence) -> Comparison:
    """Ratios of E2, E3 and Q2 to those of the flow on the bigram chain from the same start."""
    tolerance = f"{CLOSE[0]} to {CLOSE[1]}"
    if evidence.run.clock != "t":
        return Comparison(1.0, None, tolerance, None, NO_FLOW)
    flow, text = evidence.flow_story.opened, evidence.story.opened
    ratios, lacking = {}, []
    for name in ("E2", "E3", "Q2"):
        here, there = text.get(name), flow.get(name)
        if here is None or there is None:
            lacking.append(f"{name} was not reached {'in the bigram flow' if here is not None else 'in the text'}")
        else:
            ratios[name] = here / there
    shown = ", ".join(f"{name} {text[name]:.4g} against {flow[name]:.4g} (x {ratio:.3f})" for name, ratio in ratios.items())
    if not ratios:
        return Comparison(1.0, None, tolerance, None, "; ".join(lacking))
    worst = max(ratios.values(), key=lambda ratio: abs(np.log(ratio)))
    near = all(CLOSE[0] <= ratio <= CLOSE[1] for ratio in ratios.values())
    holds = near and (None if lacking else True)
    return Comparison(1.0, float(worst), tolerance, holds, "; ".join([shown, *lacking]))


def _sign_regime(evidence: TextEvidence) -> Regime:
    """c is the rate at the condensed point: attention must open before a second embedding direction does."""
    at, made = regimes.attention_only(evidence), evidence.predictions
    opened, second = evidence.story.opened.get("Q1"), evidence.story.opened.get("E2")
    if at.holds and made.sign == 0:
        return Regime(False, f"c = {made.c_windows:+.2f} +- {made.c_error:.2f} on real windows: its sign is not decided")
    if at.holds and evidence.causal:
        return Regime(False, "the loss is at all positions: c on windows of full length is not its rate")
    if at.holds and second is not None and (opened is None or opened >= second):
        return Regime(False, f"W0 is no longer of rank one when attention opens: E2 is at {second:.4g}")
    return at


def _sign(evidence: TextEvidence) -> Comparison:
    made, found = evidence.predictions, evidence.story.direction
    said = f"c = {made.c_windows:+.2f} +- {made.c_error:.2f} on real windows (bigram {made.c_bigram:+.2f})"
    if found is None:
        return Comparison(f"{made.sign:+d}", None, COSINE, None, f"{said}; attention never opened")
    sign = "not decided by c" if made.sign == 0 else "as foretold" if made.sign * found > 0 else "the other one"
    size = "above" if abs(found) > COSINE else "not above"
    reason = f"{said}; cos(Phi, pi pi^T) = {found:+.4f} at Q1: its sign is {sign}, its size {size} {COSINE}"
    return Comparison(f"{made.sign:+d}", found, COSINE, made.sign * found > COSINE, reason)


def _waiting(evidence: TextEvidence) -> str | None:
    """Why a turn that was not seen may still come, whatever its curve did by the end."""
    if evidence.story.opened_late:
        return "attention opened late in the run or not at all"
    if evidence.learned < LEARNED:
        return f"half-way the loss had learned {max(evidence.learned, 0):.0%} of what the last token tells, below {LEARNED:.0%}"
    return None


def _rows(evidence: TextEvidence) -> Comparison:
    story = evidence.story
    share, count = len(story.diluted) / len(story.rows), len(story.rows)
    reason = (
        f"{len(story.focused)} of {count} rows (mass {story.mass(story.focused):.3f}) focus on the most frequent type, "
        f"{len(story.diluted)} (mass {story.mass(story.diluted):.3f}) then lose half of their gain"
    )
    late, waiting = len(story.on_their_way), _waiting(evidence)
    if share < ROWS and waiting:
        return Comparison(f">= {ROWS}", share, ROWS, None, f"{reason}; {waiting}")
    if share < ROWS <= share + late / count:
        return Comparison(f">= {ROWS}", share, ROWS, None, f"{reason}; {late} others may still: their focus is late in the run")
    return Comparison(f">= {ROWS}", share, ROWS, share >= ROWS, reason)


def _entropy_regime(evidence: TextEvidence) -> Regime:
    at, start = regimes.adaptive(evidence), float(evidence.curves.mean_entropy[0])
    if at.holds and start <= FALL:
        return Regime(False, f"the mean entropy starts at {start:.2f} nat and cannot fall by {FALL:g}")
    return at


def _entropy(evidence: TextEvidence) -> Comparison:
    wanted, found = f"falls > {FALL:g}, rises > {RISE:g}, falls > {AGAIN:g} nat", evidence.story.swings(AGAIN)
    shown = "; ".join(f"{turn.before:.2f} -> {turn.after:.2f}" for turn in evidence.story.entropy) or "it does not move"
    if found is None:
        waiting = _waiting(evidence) or ("it was on its way late in the run" if evidence.story.entropy_moves(AGAIN) else None)
        said = f"the mean entropy does not fall, rise and fall{' by the end' if waiting else ''}: {shown}"
        return Comparison(wanted, None, "shape", None if waiting else False, f"{said}; {waiting}" if waiting else said)
    holds = all(move > least for move, least in zip(found, (FALL, RISE, AGAIN), strict=True))
    measured = ", ".join(f"{move:.2f}" for move in found)
    return Comparison(wanted, measured, "shape", holds, f"it falls, rises and falls by {measured} nat")


def _norms(evidence: TextEvidence) -> Comparison:
    wanted = f"grow, retract by {RETRACT:.0%} or more, grow"
    least = float(-np.log(1 - RETRACT))
    turns = evidence.story.retraction(least)
    if turns is None:
        waiting = _waiting(evidence) or ("they were on their way late in the run" if evidence.story.norms_move(least) else None)
        said = f"the norms of rare rows do not grow, retract and grow again{' by the end' if waiting else ''}"
        return Comparison(wanted, None, RETRACT, None if waiting else False, f"{said}; {waiting}" if waiting else said)
    lost = float(1 - np.exp(turns[1].after - turns[1].before))
    sizes = [np.exp(turns[0].before), np.exp(turns[0].after), np.exp(turns[1].after), np.exp(turns[2].after)]
    shown = " -> ".join(f"{size:.3f}" for size in sizes)
    return Comparison(wanted, lost, RETRACT, lost >= RETRACT, f"mean norm of the rarer half of rows {shown}")


def _separable(evidence: TextEvidence) -> Regime:
    at = regimes.descent(evidence)
    if at.holds and APART < evidence.r < TOGETHER:
        return Regime(False, f"r = {evidence.r:.3f} is between {APART:g} and {TOGETHER:g} and predicts neither")
    return at


def _separability(evidence: TextEvidence) -> Comparison:
    """Whether there is a plateau with one embedding direction."""
    story, r = evidence.story, evidence.r
    predicted = "a plateau" if r <= APART else "no plateau" if r >= TOGETHER else "neither"
    ratio = plateau(story)
    if ratio is None:
        return Comparison(predicted, None, PLATEAU, None, f"r = {r:.3f}; E2 was not reached, or E1 was not")
    found = "a plateau" if ratio >= PLATEAU else "no plateau"
    sign = ">" if story.opened.get("E2") is None else "="  # a plateau may outlast the run
    reason = f"r = {r:.3f} predicts {predicted}; E2/E1 {sign} {ratio:.2f}: {found} (one is from {PLATEAU:g} on)"
    return Comparison(predicted, found, PLATEAU, found == predicted, reason)


def plateau(story: TextStory) -> float | None:
    """E2/E1, at least what the run has seen of it; None where it cannot be told."""
    first, second = story.opened["E1"], story.opened.get("E2")
    if first is None or first <= 0:
        return None
    if second is None:
        seen = float(story.curves.time[-1]) / first
        return seen if seen >= PLATEAU else None
    return second / first


CLAIMS = (
    Claim(
        tag="FD:text-origin",
        statement="The first mode grows at mu0 = |pi| |pi - 1/d|",
        regime=regimes.attention_only,
        compare=_origin,
        shown=("start", "E1"),
    ),
    Claim(
        tag="FD:text-order",
        statement="Embedding, attention, embedding open in this order, then the rest",
        regime=regimes.condensed,
        compare=_order,
        shown=("E1", "Q1", "E2", "E3", "Q2"),
    ),
    Claim(
        tag="FD:text-bigram",
        statement="The bigram flow gives the times of E2, E3 and Q2",
        regime=regimes.long_windows,
        compare=_bigram,
        shown=("E2", "E3", "Q2"),
    ),
    Claim(
        tag="FD:text-sign",
        statement="Attention opens along pi pi^T with the sign of c on real windows",
        regime=_sign_regime,
        compare=_sign,
        shown=("Q1",),
    ),
    Claim(
        tag="FD:text-rows",
        statement="Rows focus on the most frequent type, then lose half of their gain",
        regime=regimes.adaptive,
        compare=_rows,
        shown=("rows focus", "rows dilute"),
    ),
    Claim(
        tag="FD:text-entropy",
        statement="The entropy of attention falls, rises and falls again",
        regime=_entropy_regime,
        compare=_entropy,
        shown=("entropy *",),
    ),
    Claim(
        tag="FD:text-norms",
        statement="Embeddings of rare types grow, retract and grow again",
        regime=regimes.adaptive,
        compare=_norms,
        shown=("rare norms *",),
    ),
    Claim(
        tag="FD:text-separability",
        statement="Small r gives a plateau, large r none",
        regime=_separable,
        compare=_separability,
        shown=("E1", "E2"),
    ),
)
