"""The claims about linear attention: plateaus, merged heads, the first drop, several runs, heads of higher rank."""

import numpy as np

from stagescope.claims.claim import ClaimTable
from stagescope.claims.comparison import (
    Comparison,
    Condition,
    OverRuns,
    Regime,
    agreement,
    narrowed,
    not_applicable,
    regime_of,
    undecided,
)
from stagescope.detect.events import turns
from stagescope.detect.plateaus import thinned
from stagescope.papers.linear_icl import forms
from stagescope.papers.linear_icl.evidence import Evidence
from stagescope.papers.linear_icl.limits import LIMITS
from stagescope.papers.linear_icl.study import WORDS

claim = ClaimTable(WORDS.claims)


def _flow(evidence: Evidence, merged: bool, *conditions: Condition, holds: str = "", about: Condition = (True, "")) -> Regime:
    """A flow of merged or of separate heads under some conditions; not applicable to heads of the other kind or to steps.

    `about` is what the run must be for the claim to be applicable.
    """
    if evidence.model.merged != merged:
        return not_applicable(f"the claim is about {'merged' if merged else 'separate'} heads")
    if not evidence.exact_flow.holds:
        return not_applicable(f"the claim is about the exact flow: {evidence.exact_flow.sentence}")
    if not about[0]:
        return not_applicable(about[1])
    usual = f"separate heads from {evidence.size:.2g} of their final value, purity {evidence.purity:.2g}"
    return regime_of(*conditions, holds=holds or usual)


def _small_start(evidence: Evidence, largest: float) -> Condition:
    return (
        0 < evidence.size <= LIMITS.spread * largest,
        f"the start has rms {evidence.scale:.2g}, which is {evidence.size:.2g} of the final value of a head; "
        f"the claim is about starts above 0 and up to about {largest:g} of it",
    )


def _separated(evidence: Evidence) -> Condition:
    share = evidence.purity
    return share <= LIMITS.purity, f"eigenvalues are not separated at this scale: purity {share:.2g} is above {LIMITS.purity:g}"


def _all_drops(evidence: Evidence) -> Condition:
    """Whether the run lasts until the last drop that its heads can make."""
    return evidence.drops_reached == len(evidence.times), f"{evidence.drops_reached} of {len(evidence.times)} drops came"


def _plateaus(evidence: Evidence, holds: str = "", about: Condition = (True, "")) -> Regime:
    conditions = _small_start(evidence, LIMITS.small), _separated(evidence), _all_drops(evidence)
    return _flow(evidence, False, *conditions, holds=holds, about=about)


def _between(evidence: Evidence) -> dict[int, int]:
    """The frames of the plateaus after the first drop and before the last, by their number."""
    frames = {m: evidence.plateau(m) for m in range(1, evidence.model.reach)}
    return {m: frame for m, frame in frames.items() if frame is not None}


@claim("LIN:levels", _plateaus)
def _levels(evidence: Evidence) -> Comparison:
    """The worst plateau, in units of its own tolerance: short plateaus have a wider one.

    A direction may open inside a head while its value still rises, so plateaus inside heads of higher rank are not compared.
    """
    parts, off = [], []
    for m, frame in _between(evidence).items():
        if evidence.is_inside(m):
            continue
        room, mark = (LIMITS.short_level, ", short") if evidence.is_short(m) else (LIMITS.level, "")
        loss, level = float(evidence.loss[frame]), float(evidence.levels[m])
        off.append(abs(loss - level) / (room * evidence.trace))
        parts.append(f"{m}: {loss:.6g} ({level:.6g}{mark})")
    if not parts:
        return undecided("there is no plateau between two drops of different heads", 0.0, 1.0)
    reason = f"loss on plateaus, level in brackets: {'; '.join(parts)}"
    return agreement(0.0, max(off), 1.0, reason, unit="of the tolerance of a plateau")


@claim("LIN:order", _plateaus)
def _order(evidence: Evidence) -> Comparison:
    """By when M_ii first passes half of its final value."""
    passed = evidence.learned >= 0.5
    first = {i: int(np.argmax(row)) for i, row in enumerate(passed.T, start=1) if row.any()}
    order, expected = sorted(first, key=lambda i: evidence.time[first[i]]), list(range(1, evidence.model.reach + 1))
    words = ", ".join(map(str, order))
    return Comparison(
        ", ".join(map(str, expected)), words, "order", order == expected, f"directions are learned in the order {words}"
    )


@claim("LIN:pcr", _plateaus)
def _regression(evidence: Evidence) -> Comparison:
    """The largest entry by which M differs from principal component regression on a plateau on which heads become pure."""
    top, task = float(forms.final_map(evidence.task)[0]), evidence.task
    off = {
        m: float(np.max(np.abs(evidence.map[frame] - forms.regression_map(task, m)))) / top
        for m, frame in _between(evidence).items()
        if evidence.is_settled(m)
    }
    if not off:
        return undecided("no plateau between two drops is so long that heads lose what they have of later directions", 0.0)
    worst = max(off, key=lambda m: off[m])
    reason = f"on plateau {worst} M differs from regression on {worst} principal components by {off[worst]:.2g} of M_11"
    return agreement(0.0, off[worst], LIMITS.near, reason, unit="of M_11")


def _few(evidence: Evidence) -> Regime:
    model = evidence.model
    if not model.merged and model.reach == evidence.task.dim:
        return not_applicable(f"the heads can hold all {model.reach} directions")
    late = evidence.time >= 0.9 * evidence.time[-1]
    still = float(np.ptp(evidence.loss[late]))
    settled = still <= 0.01 * LIMITS.exact * evidence.trace, f"the loss still moves by {still:.1e} in the last tenth of the run"
    return _flow(evidence, False, _all_drops(evidence), settled, holds=f"{model.reach} directions, and the loss is at rest")


@claim("LIN:few-heads", _few)
def _end(evidence: Evidence) -> Comparison:
    level, loss = float(evidence.levels[-1]), float(evidence.loss[-1])
    reason = f"the loss ends at {loss:.8g}, level {level:.8g}"
    return agreement(level, loss, LIMITS.exact * evidence.trace, reason, unit="loss")


def _merged(evidence: Evidence) -> Regime:
    holds = f"merged heads from {evidence.size:.2g} of their final value"
    return _flow(evidence, True, _small_start(evidence, LIMITS.near), _all_drops(evidence), holds=holds)


@claim("LIN:merged", _merged)
def _one_drop(evidence: Evidence) -> Comparison:
    """Maxima of -dloss/dt that rise by more than a hundredth of the largest above what lies between them."""
    frames = thinned(evidence.time, LIMITS.slope_frames)
    time, loss = evidence.time[frames], evidence.loss[frames]
    middle, speed = (time[1:] + time[:-1]) / 2, -np.diff(loss) / np.diff(time)
    least = 0.01 * float(speed.max())
    count = sum(turn.rising for turn in turns(middle, speed, least, least))
    return Comparison(1, count, "exact", count == 1, f"-dloss/dt has {count} maxim{'um' if count == 1 else 'a'}")


@claim("LIN:merged-drop", _merged)
def _drop(evidence: Evidence) -> Comparison:
    predicted, measured = forms.merged_drop_time(evidence.task, evidence.start), evidence.times[0]
    if measured is None or not np.isfinite(predicted):
        return undecided("no drop came, or none is predicted", "-", LIMITS.drop)
    reason = f"the drop is at t={measured:.6g}, predicted {predicted:.6g} from the start"
    return agreement(predicted, measured, LIMITS.drop * predicted, reason, unit="t")


@claim("LIN:merged-rate", _merged)
def _rate(evidence: Evidence) -> Comparison:
    """The slope of ln c(t), the part of v and U along the growing direction, while it is alone and small."""
    rate = forms.merged_rate(evidence.task)
    grown = np.linalg.norm(forms.merged_growing(evidence.task, evidence.params), axis=1)
    inside = np.flatnonzero(grown <= LIMITS.far * grown.max())
    if inside.size < 5 or grown[inside[-1]] < np.e * grown[0]:
        return undecided("the start is too large: nothing grows e-fold while it is small", rate, LIMITS.near * rate)
    slope = float(np.polyfit(evidence.time[inside], np.log(grown[inside]), 1)[0])
    return agreement(rate, slope, LIMITS.near * rate, f"small heads grow at {slope:.5g}, predicted {rate:.5g}", unit="1/t")


def _white(evidence: Evidence) -> Regime:
    task = evidence.task
    if evidence.model.merged and np.ptp(task.spectrum) > 1e-12 * task.spectrum[0]:
        return not_applicable("the eigenvalues differ")
    start = evidence.map[0]
    mean, size = float(np.trace(start)) / task.dim, np.sqrt(np.sum(start**2) / task.dim)
    off = float(np.max(np.abs(start - mean * np.eye(task.dim)))) / size if size else np.inf
    unbalanced = np.max(np.abs(evidence.model.conserved(evidence.start)))
    balance = float(unbalanced) / evidence.scale**2 if evidence.scale else np.inf
    aligned = mean > 0 and max(off, balance) <= LIMITS.exact, "the start is not aligned and balanced"
    return _flow(evidence, True, aligned, holds="white inputs, aligned and balanced start")


@claim("LIN:logistic", _white)
def _logistic(evidence: Evidence) -> Comparison:
    mean = np.einsum("tii->t", evidence.map) / evidence.task.dim
    last = float(forms.final_map(evidence.task)[0])
    off = float(np.max(np.abs(mean - forms.logistic(evidence.task, float(mean[0]), evidence.time)))) / last
    return agreement(
        0.0, off, LIMITS.exact, f"m(t) differs from the logistic curve by at most {off:.1e} of its end", unit="of m_inf"
    )


def _first(evidence: Evidence) -> Regime:
    predicted = bool(evidence.predicted), "no head blows up from this start"
    return _flow(evidence, False, _small_start(evidence, LIMITS.first), predicted, _came(evidence))


def _came(evidence: Evidence) -> Condition:
    return evidence.drops_reached > 0, "the run ends before its first drop"


@claim("LIN:first-drop", _first)
def _first_drop(evidence: Evidence) -> Comparison:
    if not evidence.predicted or evidence.times[0] is None:
        return undecided("no first drop", "-")
    drop, measured = evidence.predicted[0], evidence.times[0]
    tolerance = LIMITS.near if _small_start(evidence, LIMITS.small)[0] else LIMITS.far
    reason = f"the first drop is at t={measured:.6g}, predicted {drop.time:.6g} from T of {evidence.model.heads} heads"
    # the drop comes earlier because other heads grow with the winner
    waits = np.array([wait for wait in drop.waits if np.isfinite(wait)])
    earlier = drop.time - forms.joint_drop(evidence.task, drop.direction, waits)
    return agreement(drop.time, measured, tolerance * drop.time, reason, predicted_error=earlier, unit="t")


def _several_heads(evidence: Evidence) -> Regime:
    regime = narrowed(_first(evidence), _heads_separate(evidence, np.inf))
    return not_applicable("there is one head") if regime.applies and evidence.model.heads == 1 else regime


@claim("LIN:blow-up", _several_heads)
def _winner(evidence: Evidence) -> Comparison:
    """The head whose value rises at the first drop."""
    if not evidence.predicted or evidence.times[0] is None:
        return undecided("no first drop", "-")
    drop = evidence.predicted[0]
    shares = np.abs(evidence.shares[int(np.searchsorted(evidence.time, evidence.times[0])), :, drop.direction])
    head = int(np.argmax(shares))
    reason = f"head {head + 1} makes the first drop; head {drop.head + 1} has the least T"
    return Comparison(drop.head + 1, head + 1, "exact", head == drop.head, reason, unit="head")


def _heads_separate(evidence: Evidence, without: float) -> Condition:
    """Whether no two heads are close to each other before the first drop; `without` is the ratio where none is predicted."""
    ratio = evidence.predicted[0].ratio if evidence.predicted else without
    return ratio >= LIMITS.separate, f"two heads are within a factor {ratio:.3g} of each other's T, below {LIMITS.separate:g}"


def _course_regime(evidence: Evidence) -> Regime:
    about = evidence.model.rank == 1, "the scalar law is of heads of rank one"
    regime = _flow(evidence, False, _small_start(evidence, LIMITS.course), about=about)
    if not regime.holds:
        return regime
    regime = narrowed(regime, _separated(evidence), _heads_separate(evidence, 0.0))
    return _first(evidence) if regime.holds else regime


@claim("LIN:scalar", _course_regime)
def _course(evidence: Evidence) -> Comparison:
    """|v| of the first winner from long before its drop to halfway to the second one, against the scalar law."""
    times = evidence.times
    if not evidence.predicted or (drop := evidence.predicted[0]).blow_up is None or times[0] is None:
        return undecided("no first drop", 0.0, LIMITS.near)
    after = times[1] if len(times) > 1 else None
    stop = evidence.end if after is None else (drop.time + after) / 2
    inside = np.flatnonzero((evidence.time > 0.5 * drop.time) & (evidence.time < stop))
    if inside.size < 5:
        return undecided("too few frames around the first drop", 0.0, LIMITS.near)
    values = np.abs(evidence.params["v"][inside, drop.head])
    law = forms.value_course(evidence.task, drop.direction, evidence.time[inside] - drop.blow_up)
    off = float(np.max(np.abs(values - law))) / forms.head_value(evidence.task, (drop.direction,))
    reason = f"|v| of head {drop.head + 1} differs from the scalar law by at most {off:.2g} of its end"
    reason += f"; it has {evidence.mixed:.2g} of other directions"
    # what a head has of other directions adds its square to E = v^2
    return agreement(0.0, off, LIMITS.near, reason, predicted_error=min(evidence.mixed**2 / 2, 1.0), unit="of v_inf")


def _cascades(evidence: Evidence) -> Regime:
    return _plateaus(
        evidence,
        f"separate heads from {evidence.size:.2g} of their final value, purity {evidence.purity:.2g}; "
        "drops after close heads are left out",
        (evidence.model.rank == 1 and evidence.model.reach > 1, "the cascade is of two or more heads of rank one"),
    )


def _judged(evidence: Evidence) -> list[tuple[float, float, bool]]:
    """Predicted and measured time of the later drops of a run, and whether the right head makes it.

    A drop counts where no two heads were close to each other at this or an earlier one.
    """
    rows = []
    for drop, measured in zip(evidence.predicted, evidence.times, strict=False):
        if drop.ratio < LIMITS.separate or measured is None:
            break
        rows.append((drop.time, measured, evidence.owners[drop.direction] == drop.head))
    return rows[1:]


@claim("LIN:cascade", _cascades, cost=f"{LIMITS.runs} flows from other seeds, each about as long as this one")
def _cascade(evidence: Evidence) -> Comparison:
    """The share of later drops that come within 15 % and by the right head, over this run and others; this run is one of them.

    So its own first drop, which is predicted to 1 %, must not be off by 15 % either.
    """
    if not evidence.predicted or evidence.times[0] is None:
        return undecided("no first drop", LIMITS.right)
    error_here = abs(evidence.times[0] / evidence.predicted[0].time - 1)
    if error_here > LIMITS.later:
        reason = f"the first drop of this run is off by {error_here:.1%}, so it is none of the runs that the cascade is about"
        return Comparison(LIMITS.right, 0.0, "at least", False, reason, unit="of later drops")
    runs = [evidence, *evidence.companions("from_seed", range(LIMITS.runs))]
    rows = [row for run in runs for row in _judged(run)]
    if len(rows) < LIMITS.least:
        return undecided(f"{len(rows)} later drops of {len(runs)} runs are in regime, fewer than {LIMITS.least}", LIMITS.right)
    predicted, measured, heads = zip(*rows, strict=True)
    errors = [abs(measured_time / law - 1) for law, measured_time, _ in rows]
    right = [head and error <= LIMITS.later for head, error in zip(heads, errors, strict=True)]
    share = float(np.mean(right))
    reason = (
        f"{sum(right)} of {len(rows)} later drops of {len(runs)} runs come within {LIMITS.later:.0%} by the right head;"
        f" median error {np.median(errors):.1%}, largest {max(errors):.1%}; the first drop of this run is off by {error_here:.1%}"
    )
    over = OverRuns(predicted, measured, predicted, "predicted t of later drops", "measured t", log_x=True, log_y=True)
    doubt = LIMITS.sure * float(np.sqrt(LIMITS.right * (1 - LIMITS.right) / len(rows)))
    holds = True if share >= LIMITS.right else False if share + doubt < LIMITS.right else None
    return Comparison(LIMITS.right, share, "at least", holds, reason, unit="of later drops", over_runs=over)


def _scales(evidence: Evidence) -> Regime:
    merged = evidence.model.merged
    return _flow(
        evidence,
        merged,
        _small_start(evidence, LIMITS.course if merged else LIMITS.small),
        _came(evidence),
        holds=f"{evidence.size:.2g} of the final value, and starts up to 10 times smaller",
    )


@claim("LIN:scale-law", _scales)
def _scale_law(evidence: Evidence) -> Comparison:
    """Separate heads: (d1 - delay) s is one number, an escape of order two. Merged: d1 grows by ln(1/s)/r, an exponential one."""
    if evidence.times[0] is None:
        return undecided("no first drop", "-", LIMITS.near)
    times = [evidence.times[0], *(evidence.companion("from_scaled", factor).times[0] for factor in LIMITS.factors[1:])]
    if None in times:
        return undecided("a companion run ended before its first drop", "-", LIMITS.near)
    first_drops, scales = np.array(times, dtype=float), evidence.scale * np.array(LIMITS.factors)
    merged = evidence.model.merged
    if merged:
        rate = forms.merged_rate(evidence.task)
        steps = (first_drops[1:] - first_drops[0]) / (np.log(scales[0] / scales[1:]) / rate)
        law, expected, unit = first_drops[-1] - np.log(scales / scales[-1]) / rate, 1.0, "of ln(1/s)/r"
        measured = float(steps[int(np.argmax(np.abs(steps - 1)))])
        reason = f"d1 grows by {', '.join(f'{value:.5g}' for value in steps)} of ln(1/s)/r"
    else:
        delay = forms.delay(evidence.task, 0)
        products = (first_drops - delay) * scales
        law, expected, unit = products[-1] / scales + delay, 0.0, "of the product"
        measured = float(np.max(np.abs(products / products[-1] - 1)))
        reason = f"(d1 - delay) x s is {', '.join(f'{value:.5g}' for value in products)}: it differs by {measured:.2%}"
    over = OverRuns(tuple(scales), tuple(first_drops), tuple(law), "rms of the start", "d1 (t)", log_x=True, log_y=not merged)
    return agreement(expected, measured, LIMITS.near, reason, unit=unit, over_runs=over)


def _ranked(evidence: Evidence) -> Regime:
    rank = evidence.model.rank
    return _plateaus(
        evidence,
        f"heads of rank {rank} from {evidence.size:.2g} of their final value",
        (rank != 1 and evidence.task.dim > 1, "the claim is about heads of rank above one, and several directions"),
    )


def opening_fits(evidence: Evidence) -> dict[int, tuple[float, float]]:
    """Measured and predicted rate of each direction that opens in a head that holds others, by direction.

    It is fitted over the last stretch on which v of the head is within 2 % of v_S and M_ii is small. What grows is (k_i + q_i)/2
    in rows of the head that hold nothing yet, for a head whose v ends below 0 (k_i - q_i)/2; a stretch of less than one e-fold
    of it is none.
    """
    values, owners, fits = evidence.params["v"], evidence.owners, {}
    for i in range(1, evidence.task.dim):
        head = owners[i]
        inside = [j for j in range(i) if owners[j] == head]
        if not inside:
            continue
        steady = np.abs(np.abs(values[:, head]) / forms.head_value(evidence.task, inside) - 1) <= LIMITS.steady
        good = np.flatnonzero(steady & (np.abs(evidence.learned[:, i]) < LIMITS.steady))
        if good.size < 5:
            continue
        stretch = np.split(good, np.flatnonzero(np.diff(good) > 1) + 1)[-1]
        keys, queries = (evidence.params[name][stretch, head] for name in ("K", "Q"))
        rows, sign = keys[:, :, inside], -1.0 if values[-1, head] < 0 else 1.0
        grown = ((keys + sign * queries) / 2)[:, :, i]
        free = grown - np.einsum("trm,tmi,ti->tr", rows, np.linalg.pinv(rows), grown)
        size = np.linalg.norm(free, axis=1)
        if len(size) < 5 or not np.all(size > 0) or size[-1] < np.e * size[0]:
            continue
        rate = float(np.polyfit(evidence.time[stretch], np.log(size), 1)[0])
        fits[i] = rate, forms.opening_rate(evidence.task, inside, i)
    return fits


@claim("LIN:rank", _ranked)
def _rates(evidence: Evidence) -> Comparison:
    fits = opening_fits(evidence)
    if not fits:
        return undecided("no direction opens for an e-fold while v of its head is at rest", 1.0, LIMITS.rate)
    worst = max((rate / law for rate, law in fits.values()), key=lambda ratio: abs(ratio - 1))
    parts = (f"direction {i + 1}: {rate:.4g} (v_S lambda^2 = {law:.4g})" for i, (rate, law) in fits.items())
    return agreement(1.0, worst, LIMITS.rate, f"rates of keys and queries: {'; '.join(parts)}", unit="of v_S lambda_i^2")


def _several_groups(evidence: Evidence) -> Regime:
    regime = _ranked(evidence)
    if regime.applies and (evidence.model.rank or 1) >= evidence.model.reach:
        return not_applicable("one head holds all directions")
    return regime


@claim("LIN:rank-plateaus", _several_groups)
def _long_plateaus(evidence: Evidence) -> Comparison:
    """The plateau before each new head against the longest inside the head before it.

    Drops at multiples of the rank need a new head, while heads fill up one after the other.
    """
    times = np.array([time for time in evidence.times if time is not None])
    rank = evidence.model.rank or 1
    ratios = {}
    for m in range(rank, min(evidence.model.reach, len(times)), rank):
        ratios[m] = float((times[m] - times[m - 1]) / np.diff(times[m - rank : m]).max())
    if not ratios:
        return undecided("no plateau at a multiple of the rank ended", 1.0)
    plateau = min(ratios, key=lambda m: ratios[m])
    reason = f"plateau {plateau} lasts {ratios[plateau]:.3g} times as long as the longest plateau inside the head before it"
    return Comparison(1.0, ratios[plateau], "above", ratios[plateau] > 1, reason, unit="of the longest plateau inside a head")


CLAIMS = claim.claims
