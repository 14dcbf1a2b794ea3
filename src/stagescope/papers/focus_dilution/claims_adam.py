"""Focus and dilution under normalised steps (Adam, RMSprop, sign descent), which the paper runs but does not prove.

Condensation forgets pi, attention opens before the unigram law is learned and without looking at P, all rows focus at once, and
dilute when the loss reverses the pull of the most frequent row. Companion runs are the head model's, never the whole model's.
"""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.stats import binom, norm

from stagescope.claims.claim import ClaimTable
from stagescope.claims.comparison import (
    Comparison,
    Condition,
    Regime,
    agreement,
    at_least,
    narrowed,
    not_applicable,
    regime_of,
    undecided,
)
from stagescope.core.params import Params, root_mean_square
from stagescope.detect.events import first_crossing
from stagescope.flow.descent import Adam
from stagescope.flow.softmax import softmax
from stagescope.papers.focus_dilution.evidence import Evidence
from stagescope.papers.focus_dilution.evidence_adam import StepsEvidence
from stagescope.papers.focus_dilution.family import plateau_amplitude
from stagescope.papers.focus_dilution.head_model import HeadModel
from stagescope.papers.focus_dilution.head_prediction import excess_loss, why_not_spoken
from stagescope.papers.focus_dilution.limits import LIMITS
from stagescope.papers.focus_dilution.loss import TokenCounts, TokenPopulation
from stagescope.papers.focus_dilution.observables import TokenCurves
from stagescope.papers.focus_dilution.stages import openings_of, row_cycles
from stagescope.papers.focus_dilution.study import WORDS

claim = ClaimTable(WORDS.claims)
Compare = Callable[[Evidence], Comparison]


def _in_regime(tag: str, regime: Callable[[Evidence], Regime]) -> Callable[[Compare], Compare]:
    """A claim whose numbers exist only in its regime."""

    def add(compare: Compare) -> Compare:
        def inside(evidence: Evidence) -> Comparison:
            decision = regime(evidence)
            return compare(evidence) if decision.holds else undecided(decision.sentence)

        claim(tag, regime)(inside)
        return compare

    return add


# Regimes: for which optimiser, start and contexts each claim is derived.


def normalised_steps(evidence: Evidence, *more: Condition, one: bool = True) -> Regime:
    """Adam, RMSprop or sign descent with eps below 1e-6 from a small start, on contexts where `one` direction condenses."""
    steps = evidence.steps
    if steps.descent is None or not isinstance(steps.descent.optimizer, Adam):
        return not_applicable("about Adam, RMSprop and sign descent; this run moves by gradients")
    assert steps.adam is not None
    eps = steps.adam.eps
    first = (
        evidence.equal_rates,
        (type(steps.adam) is Adam, "weight decay is not tested"),
        (steps.descent.clip is None and steps.descent.half_life is None, "clipped or shrinking steps are not tested"),
        (eps < LIMITS.small_eps, f"eps {eps:g} is not below {LIMITS.small_eps:g}: attention moves by gradients"),
    )
    plain = regime_of(*first, holds=f"{type(steps.adam).__name__} with eps {eps:g} from a small start")
    if not plain.holds:
        return plain
    reason = why_not_spoken(steps.law, evidence.start)
    leading, _, ratio = steps.origin.condensing
    signs = "all of one sign" if np.all(leading > 0) else "of mixed signs"
    several = (
        f"G = -dL/dM at the origin has sv_2/sv_1 {ratio:.2f} and rows {signs}: several embedding directions condense at "
        f"once, and one column of heads is of one (below {LIMITS.one_direction:g}, of one sign)"
    )
    alone = not one or (ratio < LIMITS.one_direction and bool(np.all(leading > 0)))
    return narrowed(plain, (not reason, reason), (alone, several), *more)


def _long(evidence: Evidence) -> Condition:
    return isinstance(evidence.steps.law, TokenPopulation), "contexts are finite"


def _grown(evidence: Evidence) -> Condition:
    grows = evidence.steps.fivefold is not None
    return grows, f"sv_1 of the embedding does not grow {LIMITS.condensation:g}-fold"


def _neurons(evidence: Evidence) -> Condition:
    width, least = evidence.steps.law.model.width, LIMITS.least_neurons
    return width >= least, f"with {width} neurons signs agree by chance; at least {least}"


def _condensing(evidence: Evidence) -> Regime:
    """One direction condenses while p is near uniform, in many steps: the start is far above a step and far below the plateau."""
    base = normalised_steps(evidence)
    if not base.holds:
        return base
    steps, start = evidence.steps, float(evidence.curves.embedding_values[0, 0])
    assert steps.descent is not None
    sigma, size = root_mean_square({"W0": evidence.start["W0"]}), plateau_amplitude(evidence.pi)
    slow = (
        sigma >= LIMITS.steps_of_start * steps.descent.lr,
        f"the start {sigma:.1e} is passed in a few steps of {steps.descent.lr:.1e}",
    )
    share = LIMITS.condensation * start / size
    early = share <= LIMITS.early, f"at {LIMITS.condensation:g} times the start the embedding has {share:.2f} of its plateau"
    return narrowed(base, _grown(evidence), _neurons(evidence), slow, early)


def _rowwise(evidence: Evidence) -> Regime:
    base = _condensing(evidence)
    if not base.holds:
        return base
    leading = evidence.steps.origin.condensing[0]
    cosine = float(leading.sum() / math.sqrt(len(leading)))
    uneven = cosine < LIMITS.flat_law, f"pi is nearly uniform (cosine {cosine:.3f} with equal rows)"
    return narrowed(base, uneven, _stationary(evidence))


def _focusing(evidence: Evidence) -> Regime:
    base = normalised_steps(evidence)
    return narrowed(base, (bool(evidence.steps.ups), "no row has a total focus")) if base.holds else base


def _early(evidence: Evidence) -> Regime:
    """The first focus comes before the unigram law is learned."""
    base = _focusing(evidence)
    if not base.holds:
        return base
    steps = evidence.steps
    remaining = excess_loss(steps.curves, min(steps.ups.values()), steps.losses)
    words = f"{remaining:.2f} of the excess loss is left at the first focus; the focus is blind above {LIMITS.blind:g}"
    return narrowed(Regime(True, words), (remaining > LIMITS.blind, words))


def _wide(evidence: Evidence) -> Regime:
    """The first focus comes early, and there are neurons enough for one column to stand for all."""
    base = _early(evidence)
    width, least = evidence.steps.law.model.width, LIMITS.head_neurons
    return narrowed(base, (width >= least, f"the head model was tested with {least} neurons and more, and has {width} here"))


def _stationary(evidence: Evidence) -> Condition:
    ratio = evidence.steps.origin.condensing[2]
    return ratio <= LIMITS.stationary, f"contexts are finite, and G has a second direction (sv_2/sv_1 {ratio:.2f})"


def _blind(evidence: Evidence) -> Regime:
    base = _early(evidence)
    return narrowed(base, _stationary(evidence)) if base.holds else base


def _named(evidence: Evidence) -> Regime:
    """The head model predicts a focus, and the run ends clearly after the last one in run and prediction."""
    base = normalised_steps(evidence)
    if not base.holds:
        return base
    predicted = [cycle.up for cycle in row_cycles(evidence.steps.head()) if cycle.up is not None]
    if not predicted:
        return Regime(False, "the head model predicts no focus before the end")
    last = max([*predicted, *evidence.steps.ups.values()])
    least_end = LIMITS.margin * max(predicted)
    return narrowed(
        base, (evidence.end >= max(least_end, LIMITS.time_factor * last), f"the run ends before step {least_end:.4g}")
    )


def _dragged(evidence: Evidence) -> Regime:
    """Every row has a total focus, and every rare row wants out when it comes: (P_i - p_i).b < 0, b the row of W1 along which
    W0 has condensed. Where b is above its mean for token 0 alone this says P_i0 < p_i0. The run lasts clearly longer.
    """
    base, steps = _focusing(evidence), evidence.steps
    base = narrowed(base, (len(steps.ups) == len(evidence.pi), "not every row has a total focus")) if base.holds else base
    if not base.holds:
        return base
    up = float(np.median(list(steps.ups.values())))
    frame = steps.frame(up)
    params = {name: block[frame] for name, block in steps.curves.params.items()}
    says = softmax(steps.curves.attention[frame] @ params["W0"] @ params["W1"])
    along = np.linalg.svd(params["W0"], full_matrices=False)[2][0]
    wants = (steps.law.process.transition - says) @ (np.sign(np.sum(params["W0"] @ along)) * along @ params["W1"])
    enough = evidence.end >= LIMITS.plateau * up, f"the run ends before {LIMITS.plateau:g} times the step of the focus"
    inward = [row for row in steps.rare if wants[row] >= 0]
    outward = not inward, f"rows {_words(inward)} lead to frequent tokens more often than the model says"
    return narrowed(base, outward, enough, _stationary(evidence))


def _remembering(evidence: Evidence) -> Regime:
    base = _focusing(evidence)
    if not base.holds:
        return base
    adam = evidence.steps.adam
    assert adam is not None
    memory = adam.b2 >= LIMITS.long_memory, f"beta2 {adam.b2:g} is below {LIMITS.long_memory:g}: steps forget the start"
    return narrowed(base, _long(evidence), memory, (bool(_windows(evidence)), "no rare row stays in focus long enough"))


def _captured(evidence: Evidence) -> Regime:
    base = normalised_steps(evidence, _long(evidence))
    if not base.holds:
        return base
    steps, largest = evidence.steps, evidence.curves.attention[-1].max(axis=1)
    tokens = np.argmax(evidence.curves.attention[-1], axis=1)
    shared = len(np.unique(tokens)) < len(tokens), "every row looks at a token of its own at the end"
    total = bool(largest.min() >= 1 - LIMITS.negligible), f"attention is not saturated at the end ({largest.min():.3f})"
    change = abs(float(steps.losses[-1]) - float(np.interp(LIMITS.settled_share * evidence.end, steps.curves.time, steps.losses)))
    rests = change <= LIMITS.stall_loss, f"the loss still moves by {change:.2g} in the last fifth of the run"
    return narrowed(base, shared, total, rests)


def _too_small(evidence: Evidence) -> Regime:
    """The head model has no focus from twice the start either, but has one without eps, and learns the unigram law by the end."""
    base = normalised_steps(evidence)
    if not base.holds:
        return base
    steps = evidence.steps
    if any(cycle.up is not None for cycle in row_cycles(steps.head(factor=2.0))):
        return Regime(False, "a start twice as large has a focus: sigma is above sigma_c / 2")
    if not any(cycle.up is not None for cycle in row_cycles(steps.head(eps=LIMITS.path_eps[0]))):
        return Regime(False, "there is no focus without eps either")
    head = steps.head()
    remaining = abs(excess_loss(head, evidence.end, _head_losses(head)))
    return narrowed(
        base, (remaining <= LIMITS.unigram, f"the unigram law is not learned by the end ({remaining:.3f} of it left)")
    )


def _head_losses(head: TokenCurves) -> np.ndarray:
    """The loss of the head model at the last frames: all that is asked for."""
    params = {name: block[-1] for name, block in head.params.items()}
    return np.full(len(head.time), head.law.value(params))


def _on_path(evidence: Evidence) -> Regime:
    """The head model has every rare row in total focus and diluted by the end."""
    base = normalised_steps(evidence)
    if not base.holds:
        return base
    rows = row_cycles(evidence.steps.head())
    back = all(rows[row].up is not None and rows[row].half is not None for row in evidence.steps.rare)
    return narrowed(base, (back, "not every rare row is predicted to have a total focus and its dilution"))


def _recurring(evidence: Evidence) -> Regime:
    """Finite contexts and events enough; columns of the start itself need no single direction."""
    base = normalised_steps(evidence, (isinstance(evidence.steps.law, TokenCounts), "contexts are infinitely long"), one=False)
    if not base.holds:
        return base
    count = len(_prediction_errors(evidence))
    few = count >= LIMITS.least_cycle_events, f"{count} events of later cycles are too few"
    return narrowed(base, few)


# Condensation.


@_in_regime("FDA:signs", _condensing)
def _signs(evidence: Evidence) -> Comparison:
    """Each neuron has the sign of |v|_1 X + |u|_1 Y of its own start: the top right vector of W0 says so."""
    steps, frame = evidence.steps, evidence.steps.fivefold
    assert frame is not None
    right = np.linalg.svd(steps.curves.params["W0"][frame])[2][0]
    share = float(np.mean(np.sign(right) == steps.origin.alignment(evidence.start)))
    share = max(share, 1 - share)
    return at_least(share, LIMITS.sign_share, f"{share:.1%} of {len(right)} neurons have the sign that their start predicts")


@_in_regime("FDA:rows", _rowwise)
def _rows(evidence: Evidence) -> Comparison:
    """W0(t) - W0(0) = 1 D^T: largest deviation of a row's displacement from the mean one, and the cosine with equal rows."""
    steps, frame = evidence.steps, evidence.steps.fivefold
    assert frame is not None
    w0 = steps.curves.params["W0"]
    displacement = w0[frame] - w0[0]
    mean = displacement.mean(axis=0)
    spread = float(np.linalg.norm(displacement - mean, axis=1).max() / np.linalg.norm(mean))
    cosine = abs(float(np.linalg.svd(w0[frame])[0][:, 0].sum())) / math.sqrt(len(w0[frame]))
    bar = LIMITS.row_spread if isinstance(steps.law, TokenPopulation) else LIMITS.row_spread_finite
    reason = f"rows move apart by {spread:.2g} of their common way; the cosine of W0 with equal rows is {cosine:.4f}"
    return Comparison(0.0, spread, bar, spread < bar and cosine > 1 - LIMITS.first_direction, reason)


def offsets(model: HeadModel, start: Params) -> tuple[np.ndarray, np.ndarray]:
    """Mean (d,) and covariance (d, d) of gamma_j = W0_j(0).al over starts of these sizes, each block normal.

    al is the sign of S = |v|_1 X + |u|_1 Y per neuron, X = W0^T u, Y = W1 v. So E[W0_ja sign S_a] = sqrt(2/pi) cov(W0_ja, S_a) /
    sd(S_a) =: n_j, and since sign^2 = 1 a neuron adds sigma^2 I - n n^T to the covariance.
    """
    left, right, _ = model.condensing
    embedding, output = (root_mean_square({name: start[name]}) for name in ("W0", "W1"))
    spread = np.hypot(np.abs(right).sum() * embedding, np.abs(left).sum() * output)  # u and v have length 1
    per_neuron = math.sqrt(2 / math.pi) * np.abs(right).sum() * left * embedding**2 / spread
    return model.model.width * per_neuron, model.model.width * (
        embedding**2 * np.eye(len(per_neuron)) - np.outer(per_neuron, per_neuron)
    )


def _alignment_of(curves: TokenCurves) -> np.ndarray:
    """al as a run shows it: signs of the top right vector of W0 when it has grown fivefold, turned so that W0 grows along al."""
    values = curves.embedding_values[:, 0]
    w0 = curves.params["W0"][np.flatnonzero(values >= LIMITS.condensation * values[0])[0]]
    al = np.sign(np.linalg.svd(w0)[2][0])
    return al * np.sign(np.sum(w0 @ al))


@_in_regime("FDA:offset", _condensing)
def _offset(evidence: Evidence) -> Comparison:
    """Slope of the run's own gamma_j - mean on its closed form; 0 where nothing is left of pi. Its error is that of the start."""
    closed, covariance = offsets(evidence.steps.origin, evidence.start)
    gamma, x = evidence.start["W0"] @ _alignment_of(evidence.curves), closed - closed.mean()
    slope = float(gamma @ x / (x @ x))
    deviation = math.sqrt(float(x @ covariance @ x)) / float(x @ x)
    error, bound = 1.96 * deviation, float(norm.isf(LIMITS.rare_chance / 2)) * deviation
    near, distinct = abs(slope - 1) <= error, slope > error
    holds = False if abs(slope - 1) > bound else True if near and distinct else None
    reason = f"slope {slope:.3f} of this start's offsets on the closed form; starts scatter by {error:.2f}"
    reason += "" if distinct else ": too much to tell it from 0"
    return Comparison(1.0, slope, error, holds, reason, error, None, "slope")


# The first focus.


@_in_regime("FDA:blind", _blind)
def _blindness(evidence: Evidence) -> Comparison:
    """The focus of each row over that of independent tokens; what the choice of columns changes in that is its error."""
    steps = evidence.steps
    choices = [steps.head(columns=LIMITS.columns, independent=True)]
    if steps.law.model.shapes["WQ"][1] > LIMITS.columns:
        choices.append(steps.head(columns=LIMITS.columns, independent=True, last=True))
    blind = [{cycle.row: cycle.up for cycle in row_cycles(curves)} for curves in choices]
    ratios, errors = {}, {}
    for row, up in steps.ups.items():
        ups = np.array([times[row] for times in blind], dtype=float)  # nan without a focus
        if np.isnan(ups).all():
            return Comparison(1.0, None, LIMITS.blind_times, False, f"with independent tokens row {row} has no focus")
        ratios[row], errors[row] = up / float(ups.mean()), float(np.ptp(ups) / ups.mean())
    if any(map(math.isnan, ratios.values())):
        return undecided("which columns are kept decides whether independent tokens have a focus", 1.0, LIMITS.blind_times)
    worst = max(ratios, key=lambda row: abs(ratios[row] - 1))
    listed = ", ".join(f"row {row} {ratio:.3f}" for row, ratio in ratios.items())
    reason = f"step of the focus over that of independent tokens: {listed}"
    return agreement(1.0, ratios[worst], LIMITS.blind_times, reason, predicted_error=errors[worst], unit="of the prediction")


@_in_regime("FDA:total", _named)
def _total(evidence: Evidence) -> Comparison:
    predicted = [cycle.row for cycle in row_cycles(evidence.steps.head()) if cycle.up is not None]
    texts = {name: _words(rows) for name, rows in (("predicted", predicted), ("measured", sorted(evidence.steps.ups)))}
    reason = f"rows with a total focus: predicted {texts['predicted']}, measured {texts['measured']}"
    return Comparison(texts["predicted"], texts["measured"], "exact", texts["predicted"] == texts["measured"], reason)


def _words(rows: list[int]) -> str:
    return " ".join(map(str, rows)) or "none"


@_in_regime("FDA:head", _wide)
def _head_events(evidence: Evidence) -> Comparison:
    """The largest error of an event before Q2 over its tolerance: up 3 %, peak .03 of attention, dilution and return 5 %.

    A return in which the row at the predicted step is within .03 of its base counts as met: rows may graze it.
    """
    steps, base = evidence.steps, float(evidence.pi.max())
    second = evidence.openings.get("Q2")
    off: dict[str, float] = {}
    for cycle, head_cycle in zip(steps.rows, row_cycles(steps.head()), strict=True):
        curve = steps.curves.on_frequent[:, cycle.row]
        times = {
            "up": (cycle.up, head_cycle.up),
            "dilution": (cycle.half, head_cycle.half),
            "return": (cycle.complete, head_cycle.complete),
        }
        for kind, (time, predicted) in times.items():
            if predicted is None and time is None:
                continue
            early = min(value for value in (time, predicted) if value is not None)
            if (cycle.row == evidence.curves.frequent and kind != "up") or (second is not None and early > second):
                continue
            tolerance = dict(LIMITS.head_tolerances)[kind]
            name = f"{kind}{cycle.row}"
            if time is None or predicted is None:
                near = LIMITS.time_factor * early > evidence.end  # the other may come after the end
                off |= {} if near else {name: math.inf}
                continue
            off[name] = abs(predicted / time - 1) / tolerance
            if kind == "return":
                off[name] = min(off[name], abs(float(np.interp(predicted, evidence.time, curve)) - base) / LIMITS.peak_height)
        if cycle.up is not None and head_cycle.up is not None:
            off[f"height{cycle.row}"] = abs(cycle.height - head_cycle.height) / LIMITS.peak_height
    if not off:
        return undecided("no event of the first cycle comes before the second head direction", 0.0, 1.0, "tolerances")
    worst = max(off, key=lambda name: off[name])
    unmet = "comes in run or prediction alone" if math.isinf(off[worst]) else f"is off by {off[worst]:.2f} of its tolerance"
    reason = f"the worst of {len(off)} numbers of the first cycle, {worst}, {unmet}"
    return Comparison(0.0, min(off[worst], 1e3), 1.0, off[worst] <= 1, reason, unit="tolerances")


def pulls(steps: StepsEvidence, frame: int) -> np.ndarray:
    """e_i = Q_i . sum_j S_ij K_j with S = -dL/dPhi: what each query row does to the common logit of attention."""
    params = {name: np.asarray(block[frame]) for name, block in steps.curves.params.items()}
    return -np.sum(steps.whole.slopes(params)[1] * steps.whole.model.scores(params), axis=1)


@_in_regime("FDA:drag", _dragged)
def _drag(evidence: Evidence) -> Comparison:
    """Whether attention stops growing when the sum of pulls turns: by d|WQ|^2/dt = 2 sum_i e_i it would at once under a flow.

    Steps with momentum lag behind, by no more than the time in which momentum and eps die out. The frequent token's row alone
    makes the sum positive before, since rare rows want out.
    """
    steps, frequent, time = evidence.steps, evidence.curves.frequent, evidence.time
    up = float(np.median(list(steps.ups.values())))
    first = steps.frame(up)
    at_up = pulls(steps, first)
    totals = np.array([pulls(steps, frame).sum() for frame in range(first, len(time))])
    turn = first_crossing(time[first:], totals, 0.0, rising=False)
    listed = f"pulls of rows at the focus: {' '.join(f'{value:.2g}' for value in at_up)}"
    if turn is None or not at_up[frequent] > 0 < totals[0]:
        return Comparison("turns", "never turns" if turn is None else "no drag", "order", False, f"{listed}; the sum never turns")
    sizes = evidence.curves.key_values[:, 0]
    until = (time >= up) & (time <= turn + 2 * LIMITS.transient * up)
    top = float(time[until][np.argmax(sizes[until])])
    spacing, lag = float(np.interp(top, time, np.gradient(time))), (top - turn) / up
    reason = (
        f"{listed}; their sum turns at step {turn:.4g} and sv_1(WQ WK^T) at {top:.4g}, {lag:+.2f} of the step of the focus later"
    )
    error = spacing / up
    return agreement(LIMITS.transient / 2, lag, LIMITS.transient / 2, reason, measured_error=error, unit="step of the focus")


# Saturation: what stands still, and what is never left.


def _windows(evidence: Evidence) -> dict[int, tuple[float, float]]:
    """From .3 of the step of a rare row's focus after it to as long before its dilution or the end: 40 steps as published.

    Not beyond 1 / (1 - beta2), after which the mean square of gradients forgets those before saturation, and only where every row
    is saturated: a row that looks elsewhere moves the embedding of the token it looks at. A change needs two frames inside.
    """
    windows, adam = {}, evidence.steps.adam
    assert adam is not None
    for row in evidence.steps.rare:
        cycle = evidence.steps.rows[row]
        if cycle.up is not None:
            stop = min(evidence.end if cycle.half is None else cycle.half, 1 / (1 - adam.b2))
            windows[row] = (1 + LIMITS.transient) * cycle.up, stop - LIMITS.transient * cycle.up
    return {row: (a, b) for row, (a, b) in windows.items() if b - a >= LIMITS.transient * a and _saturated(evidence, a, b)}


def _saturated(evidence: Evidence, begin: float, stop: float) -> bool:
    """Whether frames between two times show every row on the most frequent token, or nearly so."""
    inside = (evidence.time >= begin) & (evidence.time <= stop)
    return int(inside.sum()) > 1 and float(evidence.curves.on_frequent[inside].min()) >= 1 - LIMITS.negligible


@_in_regime("FDA:freeze", _remembering)
def _freeze(evidence: Evidence) -> Comparison:
    changes = {}
    for row, (begin, stop) in _windows(evidence).items():
        inside = (evidence.time >= begin) & (evidence.time <= stop)
        norms = evidence.curves.norms[inside, row]
        changes[row] = float(np.abs(norms / norms[0] - 1).max())
    worst = max(changes, key=lambda row: changes[row])
    grown = evidence.curves.norms[:, evidence.curves.frequent]
    begin, stop = _windows(evidence)[worst]
    growth = float(np.interp(stop, evidence.time, grown) / np.interp(begin, evidence.time, grown))
    sentence = f"while all rows are in focus the norm of row {worst} changes by {changes[worst]:.2%}"
    reason = f"{sentence}; that of row {evidence.curves.frequent} {growth:.2f}-fold"
    return Comparison(0.0, changes[worst], LIMITS.frozen_norm, changes[worst] < LIMITS.frozen_norm, reason)


def block_loss(pi: np.ndarray, transition: np.ndarray, looks_at: np.ndarray) -> float:
    """sum_B pi_B H(sum_{i in B} pi_i P_i / pi_B) over blocks B of rows that look at the same token: they share their prediction.

    Where all rare tokens look at one of them, the two blocks are the most frequent token and the rest.
    """
    total = 0.0
    for token in np.unique(looks_at):
        rows = looks_at == token
        share = float(pi[rows].sum())
        total += share * _entropy(pi[rows] @ transition[rows] / share)
    return total


def _entropy(law: np.ndarray) -> float:
    return float(-np.sum(law * np.log(np.where(law > 0, law, 1.0))))


@_in_regime("FDA:stall", _captured)
def _stalled(evidence: Evidence) -> Comparison:
    chain, loss = evidence.steps.law.process, float(evidence.steps.losses[-1])
    looks_at = np.argmax(evidence.curves.attention[-1], axis=1)
    predicted = block_loss(chain.stationary, chain.transition, looks_at)
    sentence = f"the loss rests at {loss:.5f} with rows looking at {_words(looks_at.tolist())}"
    reason = f"{sentence}; rows that look at one token allow {predicted:.5f}, the chain {chain.floor():.5f}"
    return agreement(predicted, loss, LIMITS.stall_loss, reason, unit="nats")


@_in_regime("FDA:frozen", _too_small)
def _frozen(evidence: Evidence) -> Comparison:
    """No total focus, the loss of the unigram law, and equal rows of W0."""
    steps = evidence.steps
    w0 = steps.curves.params["W0"][-1]
    mean = w0.mean(axis=0)
    spread = float(np.linalg.norm(w0 - mean, axis=1).max() / np.linalg.norm(mean))
    remaining = excess_loss(steps.curves, evidence.end, steps.losses)
    good = not steps.ups and abs(remaining) <= LIMITS.unigram and spread <= LIMITS.negligible
    focused = f"total focus of rows: {_words(sorted(steps.ups))}"
    reason = f"{focused}; {remaining:.3f} of the excess loss over H(pi) is left; rows of W0 differ by {spread:.2%}"
    return Comparison("frozen", "frozen" if good else "not frozen", "exact", good, reason)


# From the theorem to the experiment, and the later cycles.


def path_heights(evidence: Evidence) -> dict[float | str, list[float]]:
    """Largest attention of rare rows on the path by eps, of the head model; "momentum" is gradient descent from that start."""
    steps = evidence.steps
    assert steps.descent is not None
    path_steps = max(steps.descent.steps, LIMITS.path_steps)
    heights: dict[float | str, list[float]] = {}
    for eps in LIMITS.path_eps:
        heights[eps] = _heights(steps.head(eps=eps, steps=path_steps), steps.rare)
    heights["momentum"] = _heights(steps.head(momentum=True, steps=path_steps), steps.rare)
    return heights


def _heights(curves: TokenCurves, rare: list[int]) -> list[float]:
    rows = row_cycles(curves)
    return [rows[row].height for row in rare]


@_in_regime("FDA:path", _on_path)
def _path(evidence: Evidence) -> Comparison:
    """Peaks of the run, then of the head model at larger eps: all fall by more than their errors, none rises by more, and the
    last are as under gradients."""
    steps = evidence.steps
    assert steps.adam is not None
    by_eps, run_heights = path_heights(evidence), [steps.rows[row].height for row in steps.rare]
    larger = [eps for eps in LIMITS.path_eps if eps > steps.adam.eps]
    table = np.array([run_heights, *(by_eps[eps] for eps in larger)])
    last = float(np.abs(table[-1] - np.array(by_eps["momentum"])).max())
    rises, falls = float(np.diff(table, axis=0).max()), float((table[0] - table[-1]).min())
    listed = "; ".join(
        f"eps {eps:g}: {' '.join(f'{h:.3f}' for h in row)}" for eps, row in zip([steps.adam.eps, *larger], table, strict=True)
    )
    reason = f"largest attention of rare rows {listed}; gradient descent differs from the last by {last:.4f}"
    error = math.sqrt(2) * LIMITS.peak_height  # of the difference of two peaks
    way = "rises" if rises > error else "falls" if falls > error else "is flat"
    return Comparison("falls", way, "exact", way == "falls" and last <= LIMITS.peak_height, reason)


def _cycle_events(evidence: Evidence, curves: TokenCurves) -> dict[str, float]:
    """E_k, Q_k and selfK but E1 and Q1, clearly before the end of the run."""
    time, last = curves.time, evidence.end / LIMITS.time_factor
    events = openings_of(curves)
    for token in evidence.steps.rare:
        events[f"self{token}"] = first_crossing(time, curves.on_self[:, token], LIMITS.total, rising=True)
    return {
        name: moment for name, moment in events.items() if moment is not None and 0 < moment <= last and name not in ("E1", "Q1")
    }


def _prediction_errors(evidence: Evidence, **change: Any) -> dict[str, float]:
    """Relative errors of the events of later cycles by the head model; infinite where one comes in run or model alone."""
    head = evidence.steps.head(columns=LIMITS.columns, **change)
    measured, predicted = (_cycle_events(evidence, curves) for curves in (evidence.curves, head))
    return {
        name: abs(predicted[name] / measured[name] - 1) if name in measured and name in predicted else math.inf
        for name in measured | predicted
    }


@_in_regime("FDA:cycles", _recurring)
def _cycles(evidence: Evidence) -> Comparison:
    """The median error of its events from the run's own start, and on how many events it is nearer than another start.

    Where it is nearer no more often than a coin would say once in 2^5 = 32 times, the run shows nothing of its start.
    """
    errors = _prediction_errors(evidence)
    other_errors = _prediction_errors(evidence, seed=(evidence.run.seed or 0) + 1)
    error, compared = (
        float(np.median(list(errors.values()))),
        [name for name in errors if name in other_errors and errors[name] != other_errors[name]],
    )
    nearer = sum(errors[name] < other_errors[name] for name in compared)
    chance = float(binom.sf(nearer - 1, len(compared), 0.5))
    missed = [
        f"{name} {'alone' if math.isinf(off) else f'{off:.0%}'}" for name, off in errors.items() if off > LIMITS.cycle_times
    ]
    reason = f"{len(errors)} events E, Q and self are off by {error:.1%} in the median"
    reason += f", and nearer than from another start on {nearer} of {len(compared)} (chance {chance:.1%})"
    reason += f"; missed: {', '.join(missed)}" if missed else ""
    holds = False if error > LIMITS.cycle_times else True if chance <= 0.5**LIMITS.least_cycle_events else None
    return Comparison(0.0, min(error, 1.0), LIMITS.cycle_times, holds, reason, unit="of the step")


ADAM_CLAIMS = claim.claims
