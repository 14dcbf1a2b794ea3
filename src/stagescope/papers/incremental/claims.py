"""Claims about the ladder, the heads and the clock of incremental learning; the claims of all, in the order of the ledger."""

from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np

from stagescope.claims.comparison import Comparison, Regime, agreement, narrowed, not_applicable, regime_of, undecided
from stagescope.detect.events import crossing, first_crossing
from stagescope.detect.noise import TWO_SIDED, delay, flutter
from stagescope.detect.stage import Event
from stagescope.papers.incremental.claims_escape import claim, flows
from stagescope.papers.incremental.companion_options import many_positions, small_logits, without_end
from stagescope.papers.incremental.evidence import Curve, Evidence, not_averaged
from stagescope.papers.incremental.limits import LIMITS
from stagescope.papers.incremental.stopping import STOPPING_CLAIMS


def on_the_ladder(evidence: Evidence) -> Regime:
    """The regime of the ladder of levels."""
    if len(evidence.task.gains) == 1:
        return not_applicable("there is one group: a ladder needs two")
    words = "single lags" if evidence.task.span == 1 else f"spans of up to {evidence.task.span} lags"
    return regime_of(*evidence.assumptions(), holds=f"distinct importances, {words}")


def several_heads(evidence: Evidence) -> Regime:
    """The same for at least two heads that start alike, and at least two groups."""
    if evidence.task.heads == 1:
        return not_applicable("there is one head")
    if len(evidence.task.gains) == 1:
        return not_applicable("there is one group: heads cannot compete or divide groups")
    base = on_the_ladder(evidence)
    conditions = (base.holds, base.sentence), evidence.alike(LIMITS.together)
    return regime_of(*conditions, holds=f"{base.sentence}, heads alike at the start")


def parts(evidence: Evidence) -> Regime:
    """Heads that differ at the start: those that are exactly equal stay so."""
    if evidence.identical and evidence.task.heads > 1:
        return not_applicable("heads start exactly equal and stay so")
    return on_the_ladder(evidence)


SHARE = "of the step"


@claim("ISA:plateaus", on_the_ladder)
def _plateaus(evidence: Evidence) -> Comparison:
    """P1: where each plateau would end, less its level l_j, in shares of the step l_{j-1} - l_j; the worst of them.

    Above its level a run may still be falling, which its error counts. Below it by more than the error of the level it is no
    member of the class.
    """
    rests = evidence.rests
    if not rests:
        return undecided(evidence.no_rest(), 0.0, evidence.tolerance, SHARE)
    rows, sentences = [], []
    for plateau in rests:
        gap, error = evidence.gap(plateau)
        limit = evidence.allowed(gap, plateau.j)
        rows.append((agreement(0.0, gap, limit, "", measured_error=error, unit=SHARE).holds, abs(gap) / limit, gap, limit, error))
        sentences.append(
            f"plateau {plateau.j} at {plateau.loss:.4g}, level {plateau.level:.4g} (would end {gap:+.1%} ± {error:.1%} from it)"
        )
    verdicts = [row[0] for row in rows]
    holds = False if False in verdicts else None if None in verdicts else True
    _, _, gap, limit, error = max((row for row in rows if row[0] is holds), key=lambda row: row[1])
    return Comparison(0.0, gap, limit, holds, ", ".join(sentences) + _unseen(evidence), measured_error=error, unit=SHARE)


def _unseen(evidence: Evidence) -> str:
    """The reachable plateaus that are not compared."""
    compared = [plateau.j for plateau in evidence.rests]
    uncompared = [str(j) for j in range(1, evidence.task.reachable + 1) if j not in compared]
    return f"; not compared: plateau {', '.join(uncompared)}" if uncompared else ""


def _ordered(evidence: Evidence) -> Regime:
    if evidence.task.reachable < 2:
        return not_applicable("there is one head or one group: only one feature can be learned")
    return parts(evidence)


@claim("ISA:order", _ordered)
def _order(evidence: Evidence) -> Comparison:
    """P1: features are half-way to their learned share in the order of importance.

    A share is the component of the model's map along the true one, 1 where they agree. It need not be half-way at t_j. Two
    features whose intervals overlap have no order.
    """
    expected = "in order of importance"
    if evidence.learned is None:
        return undecided("the learned shares of features are not known for this model", expected, "order")
    events = [_acquired(evidence, share) for share in evidence.learned.T]
    listing = ", ".join(f"{i}: {event}" for i, event in enumerate(events, start=1))
    final_shares = "shares of the true maps at the end " + " ".join(f"{top:.2f}" for top in evidence.learned[-1])
    acquired_events = [event for event in events if event.state == "reached"]
    if any(event.state == "at the start" for event in events):
        return undecided(f"a feature is there at the start ({listing})", expected, "order")
    if len(acquired_events) < 2:
        few = f"fewer than two features were acquired ({listing}): {final_shares}, {LIMITS.majority:g} is needed"
        if evidence.reached > len(acquired_events):  # a loss may descend the ladder without the true maps
            few += f"; t_{evidence.reached} was passed nevertheless: other maps can predict as the class does"
        return undecided(few, expected, "order")
    reason = f"features are half learned at {evidence.run.clock} = {listing}; {final_shares}"
    ends = [(event.low or 0.0, event.high or 0.0) if event.state == "reached" else (np.inf, np.inf) for event in events]
    if any(later[1] < earlier[0] for i, earlier in enumerate(ends) for later in ends[i + 1 :]):
        return Comparison(expected, listing, "order", False, reason)
    clear = all(earlier[1] < later[0] for earlier, later in pairwise(ends[: len(acquired_events)]))
    return Comparison(expected, listing, "order", True if clear else None, reason + ("" if clear else "; intervals overlap"))


def _acquired(evidence: Evidence, share: np.ndarray) -> Event:
    """When half of what is learned of a feature in the end is learned; under steps, to within their noise."""
    time, level = evidence.time, float(share[-1]) / 2 if share[-1] >= LIMITS.majority else np.inf
    if evidence.heads.smooth:
        return crossing(time, share, level, rising=True)
    crossed = crossing(time, share, level, rising=True, error=TWO_SIDED * flutter(time, share))
    if crossed.time is None or crossed.low is None or crossed.high is None or getattr(evidence.law, "batch", None) is None:
        return crossed
    half = delay(time, share, level, crossed.time)  # batches move the share as a random walk
    return replace(crossed, low=max(0.0, min(crossed.low, crossed.time - half)), high=max(crossed.high, crossed.time + half))


def _predicts(evidence: Evidence) -> Regime:
    if not evidence.task.predicts:
        return not_applicable("a regression flow predicts no tokens")
    return on_the_ladder(evidence)


@claim("ISA:nearest", _predicts)
def _nearest(evidence: Evidence) -> Comparison:
    """P1: on plateau j the class nearest by KL(F_j || model) is j."""
    rests, expected = evidence.rests, "class = stage"
    if not rests:
        return undecided(evidence.no_rest(), expected, "exact")
    frames = {p.j: evidence.frame(p.t) for p in rests}
    classes = {j: evidence.heads.nearest(frame) for j, frame in frames.items()}
    if None in classes.values():
        return undecided("divergences from the classes are not known for this model", expected, "exact")
    sure = {j: evidence.heads.clear(frame) for j, frame in frames.items()}
    listing = ", ".join(f"plateau {j}: class {near}{'' if sure[j] else ' (not clear)'}" for j, near in classes.items())
    wrong = any(sure[j] and j != near for j, near in classes.items())
    holds = False if wrong else True if all(sure.values()) else None
    return Comparison(expected, listing, "exact", holds, listing + _unseen(evidence))


def _settling(evidence: Evidence) -> Regime:
    """Heads that differ, of a student that can come to rest on its last plateau."""
    base = parts(evidence)
    return narrowed(base, evidence.settles()) if base.applies else base


@claim("ISA:head-limit", _settling, elsewhere=without_end)
def _reachable(evidence: Evidence) -> Comparison:
    """P3: H heads end on plateau min(H, k)."""
    last, limit = evidence.task.reachable, evidence.tolerance
    low = float(evidence.heads.loss.min())
    below = float((low - evidence.levels[last]) / evidence.steps[last - 1])
    which = f"level {last} = min({evidence.task.heads}, {len(evidence.task.gains)})"
    reason = f"the least loss is {below:+.2%} of the step from {which}"
    error = (evidence.task.errors[last] if evidence.task.errors else 0.0) / float(evidence.steps[last - 1])
    if below + error < -evidence.allowed(below, last):
        return Comparison(0.0, below, limit, False, reason, measured_error=error, unit=SHARE)
    plateau = evidence.rested(last) if evidence.reached >= last else None
    if plateau is None:
        return Comparison(0.0, below, limit, None, f"{reason}; the run does not rest on plateau {last}", unit=SHARE)
    gap, error = evidence.gap(plateau)
    return agreement(0.0, gap, evidence.allowed(gap, last), reason, measured_error=error, unit=SHARE)


ATTENTION = "of the attention, above that on any other group"


@claim("ISA:competition", several_heads)
def _competition(evidence: Evidence) -> Comparison:
    """P2: on plateau 1 every head attends more to the most important group than to any other, wherever inside it.

    It must also have gained more there than elsewhere, as a share of what it could gain: uniform attention is on a large group
    without any learning.
    """
    plateau = next((p for p in evidence.rests if p.j == 1), None)
    if plateau is None:
        no_rest = evidence.no_rest() if not evidence.rests else "the run does not rest on plateau 1"
        return undecided(no_rest, "> 0", 0.0, ATTENTION)
    frame, mass = evidence.frame(plateau.t), evidence.heads.mass
    first, now, error = mass[0], mass[frame], evidence.change(frame, mass)
    gained = (now - first) / np.maximum(1 - first, 1e-12)
    margin = float(min(np.min(shares[:, :1] - shares[:, 1:]) for shares in (now, gained)))
    holds = True if margin > error else False if margin < -error else None
    first_shares = " ".join(f"{share:.2f}" for share in now[:, 0])
    reason = f"on plateau 1 the heads have {first_shares} of their attention on group 1, {first[:, 0].min():.2f} at the start"
    return Comparison("> 0", margin, 0.0, holds, reason, measured_error=error, unit=ATTENTION)


def _splitting(evidence: Evidence) -> Regime:
    """No more heads than groups: further heads share a group and stay alike."""
    base, heads, groups = several_heads(evidence), evidence.task.heads, len(evidence.task.gains)
    if not base.applies or not parts(evidence).applies:
        return base if not base.applies else parts(evidence)
    if not base.holds:
        return base
    shared = f"{heads} heads on {groups} groups: some heads share a group and stay alike"
    return narrowed(base, (heads <= groups, shared), evidence.settles())


@claim("ISA:cooperation", _splitting, elsewhere=without_end)
def _cooperation(evidence: Evidence) -> Comparison:
    """P2: heads part after t_1 and before plateau 2; on the last plateau each of the first min(H, k) groups has its own head."""
    last, unit = evidence.task.reachable, "groups"
    plateau, onset = evidence.rested(last) if evidence.reached >= last else None, evidence.heads.onset
    if plateau is None:
        return undecided(f"the run does not rest on plateau {last}: heads have not divided the groups yet", last, "all", unit)
    frame = evidence.frame(plateau.t)
    error = evidence.change(frame, evidence.heads.shares)
    owners = evidence.heads.owners(frame, error)
    owner_count = len({head for head in owners if head is not None})
    first, second = evidence.heads.crossings[0], evidence.plateaus[1]
    before = evidence.end if second is None else second.t
    owner_numbers = " ".join("-" if head is None else str(head + 1) for head in owners)
    reason = f"on plateau {last} the groups have heads {owner_numbers} (shares ± {error:.2f}); heads part at {onset}"
    reason += f", t_1 is {first}, plateau 2 is at {before:.4g}"
    shared = owner_count < sum(head is not None for head in owners)
    if onset.interval is None or first.interval is None:
        return Comparison(last, owner_count, "all", False if shared or onset.state == "at the start" else None, reason, unit=unit)
    outside = onset.interval[1] < first.interval[0] or onset.interval[0] > before
    inside = onset.interval[0] > first.interval[1] and onset.interval[1] <= before
    holds = False if outside or shared else True if inside and owner_count == last else None
    return Comparison(last, owner_count, "all", holds, reason, unit=unit)


def _equal_ladder(evidence: Evidence) -> Regime:
    if not evidence.identical or evidence.task.heads == 1:
        return not_applicable("heads do not start exactly equal, or there is one head")
    return on_the_ladder(evidence)


@claim("ISA:stays", _equal_ladder)
def _stays(evidence: Evidence) -> Comparison:
    """P3: equal heads never leave plateau 1."""
    first, limit, end = evidence.times[0], evidence.tolerance, evidence.end
    plateau = evidence.rested(1) if evidence.reached else None
    if first is None or end < LIMITS.decade * first or (plateau is None and evidence.reached == 1):
        no_rest = f"the run ends before {LIMITS.decade:g} t_1, or does not rest"
        return undecided("t_1 was not reached" if first is None else no_rest, 0.0, limit, SHARE)
    gap = float((evidence.heads.loss[-1] - evidence.levels[1]) / evidence.steps[0])
    error = 0.0 if plateau is None else evidence.gap(plateau)[1]
    reason = f"the last loss is {gap:+.2%} of the step from level 1 at {evidence.run.clock} = {end:.4g}, {end / first:.0f} t_1"
    early = float(np.interp(first, evidence.run.time, evidence.spread))
    if early <= LIMITS.rounding < float(evidence.spread.max()):
        parted = first_crossing(evidence.run.time, evidence.spread, LIMITS.rounding, rising=True)
        reason += "" if parted is None else f"; rounding parts the heads at {parted:.4g}"
        return Comparison(0.0, gap, limit, None, reason, unit=SHARE)
    return agreement(0.0, gap, evidence.allowed(gap, 1), reason, measured_error=error, unit=SHARE)


OF_FLOW = "times that of the flow"


def rungs(curve: Curve) -> np.ndarray:
    """The position of a loss on its own ladder: j on level j, linear between levels."""
    order = np.argsort(curve.levels)
    return np.interp(curve.loss, curve.levels[order], order.astype(float))


def departure(model: Curve, flow: Curve) -> float | None:
    """When the positions of model and flow on their ladders first differ by a tenth of a rung; None if never [ISA:clock]."""
    inside = model.time <= flow.time[-1]
    gap = np.abs(rungs(model) - np.interp(model.time, flow.time, rungs(flow)))[inside]
    return first_crossing(model.time[inside], gap, LIMITS.fair, rising=True)


def _many_positions(evidence: Evidence) -> Regime:
    """The closed form is a limit of many positions; what it leaves out is its error."""
    base, forms = flows(evidence), evidence.task.forms
    if forms is None:
        reason = "t_1 has a closed form for the regression flow, not for batches of contexts or a softmax over tokens"
        return Regime(False, reason, applies=False, elsewhere=True)
    if not base.holds:
        return base
    share = forms.first_error / forms.first_time
    sentence = f"{forms.positions} positions, H/g_1 = {forms.heads / forms.gains[0]:.2g}: the form leaves out {share:.0%} of t_1"
    if share > LIMITS.fair / 2:
        return Regime(False, f"{sentence}, more than half of the tolerance")
    return Regime(True, f"{base.sentence}, {sentence}")


@claim("ISA:first", _many_positions, elsewhere=many_positions)
def _first(evidence: Evidence) -> Comparison:
    """P6: t_1 against its closed form."""
    forms, event, limit = evidence.task.forms, evidence.heads.crossings[0], LIMITS.fair
    if forms is None or event.time is None or event.low is None:
        return undecided("t_1 was not reached" if forms else "there is no closed form", "-", limit, "t")
    reason = f"t_1 measured/predicted {event.time / forms.first_time:.3f}"
    errors: Any = {"predicted_error": forms.first_error, "measured_error": event.time - event.low}
    return agreement(forms.first_time, event.time, limit * forms.first_time, reason, **errors, unit="t")


def _clocked(evidence: Evidence) -> Regime:
    if evidence.clock is None:
        return Regime(False, not_averaged(evidence.run), applies=False, elsewhere=True)
    return evidence.clock.regime


@claim("ISA:clock", _clocked, elsewhere=small_logits)
def _clock(evidence: Evidence) -> Comparison:
    """t_j of the model over those of the flow; a transition that only one of them has bounds the ratio.

    Undecided where the flow has passed a transition by the end of the run and the model may still do so within the tolerance,
    and where only t_1 was reached by heads that can part: t_1 is the time of one head.
    """
    limit, end = evidence.clock.tolerance if evidence.clock else 0.0, evidence.end
    flow = evidence.companion("regression_flow", LIMITS.longer * end)
    model = Curve(evidence.time, evidence.heads.loss, evidence.levels)
    ratios, errors, late, ratio_texts, unseen = [], [], False, [], []
    for j, its in enumerate(flow.times, start=1):
        mine, half = evidence.heads.mean_crossing(j)
        if mine is not None and its is not None:
            ratios.append(mine / its)
            errors.append(half / its)
            ratio_texts.append(f"t_{j} {mine / its:.3f}")
        elif its is not None and end > (1 + limit) * its:
            late = True
            ratio_texts.append(f"t_{j} above {end / its:.3f}")
        elif mine is not None:
            late = True
            ratio_texts.append(f"t_{j} below {mine / (LIMITS.longer * end):.3f}")
        elif j <= evidence.task.reachable:
            unseen.append((j, its is not None and its <= end))
    departed = departure(model, flow)
    leaving = "the model does not leave the flow" if departed is None else f"the model leaves the flow at {departed:.4g}"
    if not ratios:
        return undecided(f"model and flow have no transition in common; {leaving}", 1.0, limit, OF_FLOW)
    index = int(np.argmax(np.abs(np.array(ratios) - 1)))
    worst, error = float(ratios[index]), float(errors[index])
    wide = evidence.clock.error if evidence.clock else 0.0
    holds = not late and agreement(1.0, worst, limit, "", predicted_error=wide, measured_error=error).holds
    reason = f"model over flow from the same logits: {', '.join(ratio_texts)}; {leaving}"
    if unseen:
        reason += f"; not compared: {', '.join(f't_{j}' for j, _ in unseen)}"
    objection = None
    if len(ratios) == 1 and evidence.task.reachable > 1 and not evidence.identical:
        objection = "t_1 alone does not test heads that part"
    elif any(due for _, due in unseen):
        objection = "the flow has reached it, but the run ends too early"
    if holds and objection:
        holds, reason = None, f"{reason}: {objection}"
    return Comparison(1.0, worst, limit, holds, reason, predicted_error=wide, measured_error=error, unit=OF_FLOW)


HEAD_CLAIMS = claim.claims
CLAIMS = (*HEAD_CLAIMS, *STOPPING_CLAIMS)
