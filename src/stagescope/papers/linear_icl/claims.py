"""The claims about linear attention: plateaus, merged heads, the first drop, several runs, heads of higher rank."""

import numpy as np

from stagescope.claims.claim import claim
from stagescope.claims.comparison import Comparison, Regime, agreement
from stagescope.claims.over_runs import OverRuns
from stagescope.detect.extrema import turns
from stagescope.detect.plateaus import thinned
from stagescope.papers.linear_icl import forms
from stagescope.papers.linear_icl.reading import LIMITS, Evidence, all_drops, of_flow, separated, small_start, undecided


def _separated_start(evidence: Evidence) -> Regime:
    holds = f"separate heads from {evidence.size:.2g} of their final value, purity {evidence.purity:.2g}"
    return of_flow(evidence, False, small_start(evidence, LIMITS.small), separated(evidence), all_drops(evidence), holds=holds)


def _between(evidence: Evidence) -> dict[int, int]:
    """The frames of the plateaus after the first drop and before the last, by their number."""
    found = {m: evidence.plateau(m) for m in range(1, evidence.model.reach)}
    return {m: frame for m, frame in found.items() if frame is not None}


def _levels(evidence: Evidence) -> Comparison:
    """The worst plateau, in units of its own tolerance: short plateaus have a wider one.

    A direction may open inside a head while its value still rises, so plateaus inside heads of higher rank are not compared.
    """
    frames = {m: frame for m, frame in _between(evidence).items() if not evidence.is_inside(m)}
    if not frames:
        return undecided("there is no plateau between two drops of different heads", 0.0, 1.0)
    parts, off = [], []
    for m, frame in frames.items():
        room = LIMITS.short_level if evidence.is_short(m) else LIMITS.level
        loss, level = float(evidence.curves.loss[frame]), float(evidence.curves.levels[m])
        off.append(abs(loss - level) / (room * evidence.trace))
        parts.append(f"{m}: {loss:.6g} ({level:.6g}{', short' if evidence.is_short(m) else ''})")
    reason = f"loss on plateaus, level in brackets: {'; '.join(parts)}"
    return agreement(0.0, max(off), 1.0, reason, unit="of the tolerance of a plateau")


def _learned_at(evidence: Evidence) -> list[float]:
    """When M_ii first passes half of its final value, by direction; infinite where it does not."""
    passed = evidence.curves.learned >= 0.5
    return [float(evidence.curves.time[int(np.argmax(row))]) if row.any() else np.inf for row in passed.T]


def _order(evidence: Evidence) -> Comparison:
    when = _learned_at(evidence)
    order = [i + 1 for i in sorted(range(len(when)), key=lambda i: when[i]) if np.isfinite(when[i])]
    wanted = list(range(1, evidence.model.reach + 1))
    said = ", ".join(map(str, order))
    return Comparison(", ".join(map(str, wanted)), said, "order", order == wanted, f"directions are learned in the order {said}")


def _regression(evidence: Evidence) -> Comparison:
    """The largest entry by which M differs from principal component regression on a plateau on which heads become pure."""
    frames = {m: frame for m, frame in _between(evidence).items() if evidence.is_settled(m)}
    if not frames:
        return undecided("no plateau between two drops is so long that heads lose what they have of later directions", 0.0)
    top = float(forms.final_map(evidence.task)[0])
    off = {
        m: float(np.max(np.abs(evidence.curves.whole[frame] - forms.regression_map(evidence.task, m)))) / top
        for m, frame in frames.items()
    }
    worst = max(off, key=lambda m: off[m])
    said = f"on plateau {worst} M differs from regression on {worst} principal components by {off[worst]:.2g} of M_11"
    return agreement(0.0, off[worst], 0.01, said, unit="of M_11")


def _few(evidence: Evidence) -> Regime:
    model = evidence.model
    if not model.merged and model.reach == evidence.task.dim:
        return Regime(False, f"the heads can hold all {model.reach} directions", applies=False)
    late = evidence.curves.time >= 0.9 * evidence.curves.time[-1]
    still = float(np.ptp(evidence.curves.loss[late]))
    settled = still <= 0.01 * LIMITS.end * evidence.trace, f"the loss still moves by {still:.1e} in the last tenth of the run"
    return of_flow(evidence, False, all_drops(evidence), settled, holds=f"{model.reach} directions, and the loss is at rest")


def _end(evidence: Evidence) -> Comparison:
    level, loss = float(evidence.curves.levels[-1]), float(evidence.curves.loss[-1])
    reason = f"the loss ends at {loss:.8g}, level {level:.8g}"
    return agreement(level, loss, LIMITS.end * evidence.trace, reason, unit="loss")


SMALL_MERGED = 1e-2
"""Largest rms of a start, in units of the final value of a head."""
DROP, RATE, LOGISTIC = 5e-3, 0.01, 1e-6
"""Relative tolerances of drop time and rate, and of m(t) in units of its end."""
LINEAR = 0.03
"""The rate is that of the growing part of the parameters up to this share of its end: M, its square, is then a thousandth."""
FRAMES = 2000
"""Frames of which a slope is taken at most: nearer ones differ by the solver's error."""
ALIGNED = 1e-6
"""How far from aligned and balanced a start may be for the closed form, relatively."""


def _small_merged(evidence: Evidence) -> Regime:
    return of_flow(
        evidence,
        True,
        small_start(evidence, SMALL_MERGED),
        all_drops(evidence),
        holds=f"merged heads from {evidence.size:.2g} of their final value",
    )


def _one_drop(evidence: Evidence) -> Comparison:
    """Maxima of -dloss/dt that rise by more than a hundredth of the largest above what lies between them."""
    chosen = thinned(evidence.curves.time, FRAMES)
    time, loss = evidence.curves.time[chosen], evidence.curves.loss[chosen]
    middle, speed = (time[1:] + time[:-1]) / 2, -np.diff(loss) / np.diff(time)
    least = 0.01 * float(speed.max())
    count = sum(turn.rising for turn in turns(middle, speed, least, least))
    return Comparison(1, count, "exact", count == 1, f"-dloss/dt has {count} maxim{'um' if count == 1 else 'a'}")


def _drop(evidence: Evidence) -> Comparison:
    predicted, measured = forms.merged_drop_time(evidence.task, evidence.start), evidence.times[0]
    if measured is None or not np.isfinite(predicted):
        return undecided("no drop came, or none is predicted", tolerance=DROP)
    reason = f"the drop is at t={measured:.6g}, predicted {predicted:.6g} from the start"
    return agreement(predicted, measured, DROP * predicted, reason, unit="t")


def _rate(evidence: Evidence) -> Comparison:
    """The slope of ln c(t), the part of v and U along the growing direction, while it is alone and small."""
    task, rate = evidence.task, forms.merged_rate(evidence.task)
    along = np.einsum("thii,i->th", np.asarray(evidence.curves.params["U"]), task.spectrum**2) / rate
    grown = np.linalg.norm((np.asarray(evidence.curves.params["v"]) + along) / 2, axis=1)
    inside = np.flatnonzero(grown <= LINEAR * grown.max())
    if inside.size < 5 or grown[inside[-1]] < np.e * grown[0]:
        return undecided("the start is too large: nothing grows e-fold while it is small", rate, RATE * rate)
    slope = float(np.polyfit(evidence.curves.time[inside], np.log(grown[inside]), 1)[0])
    return agreement(rate, slope, RATE * rate, f"small heads grow at {slope:.5g}, predicted {rate:.5g}", unit="1/t")


def _white(evidence: Evidence) -> Regime:
    task = evidence.task
    if evidence.model.merged and np.ptp(task.spectrum) > 1e-12 * task.spectrum[0]:
        return Regime(False, "the eigenvalues differ", applies=False)
    whole = evidence.curves.whole[0]
    mean, size = float(np.trace(whole)) / task.dim, np.sqrt(np.sum(whole**2) / task.dim)
    held = evidence.model.conserved(evidence.start)
    off = float(np.max(np.abs(whole - mean * np.eye(task.dim)))) / size if size else np.inf
    balance = float(np.max(np.abs(held))) / evidence.scale**2 if evidence.scale else np.inf
    good = mean > 0 and max(off, balance) <= ALIGNED
    holds = "white inputs, aligned and balanced start"
    return of_flow(evidence, True, (good, "the start is not aligned and balanced"), holds=holds)


def _logistic(evidence: Evidence) -> Comparison:
    first = float(np.trace(evidence.curves.whole[0])) / evidence.task.dim
    last = float(forms.final_map(evidence.task)[0])
    seen = np.einsum("tii->t", evidence.curves.whole) / evidence.task.dim
    off = float(np.max(np.abs(seen - forms.logistic(evidence.task, first, evidence.curves.time)))) / last
    return agreement(0.0, off, LOGISTIC, f"m(t) differs from the logistic curve by at most {off:.1e} of its end", unit="of m_inf")


NEAR, FAR = 0.01, 0.03
"""Relative tolerance of the first drop from small starts, and from larger ones."""
COURSE = 0.01
"""Tolerance of v(t), in units of v_inf."""


def _first(evidence: Evidence) -> Regime:
    return of_flow(
        evidence,
        False,
        small_start(evidence, LIMITS.first),
        (bool(evidence.predicted), "no head blows up from this start"),
        (evidence.reached > 0, "the run ends before its first drop"),
        holds=f"separate heads from {evidence.size:.2g} of their final value, purity {evidence.purity:.2g}",
    )


def _first_drop(evidence: Evidence) -> Comparison:
    if not evidence.predicted or evidence.times[0] is None:
        return undecided("no first drop")
    drop, measured = evidence.predicted[0], evidence.times[0]
    tolerance = NEAR if small_start(evidence, LIMITS.small)[0] else FAR
    reason = f"the first drop is at t={measured:.6g}, predicted {drop.time:.6g} from T of {evidence.model.heads} heads"
    return agreement(drop.time, measured, tolerance * drop.time, reason, predicted_error=_earlier(evidence), unit="t")


def _earlier(evidence: Evidence) -> float:
    """How much earlier the first drop comes because other heads grow with the winner."""
    drop = evidence.predicted[0]
    waits = np.array([wait for wait in drop.waits if np.isfinite(wait)])
    return drop.time - forms.joint_drop(evidence.task, drop.direction, waits)


def _winner(evidence: Evidence) -> Comparison:
    """The head whose value rises at the first drop."""
    if not evidence.predicted or evidence.times[0] is None:
        return undecided("no first drop")
    drop = evidence.predicted[0]
    shares = np.abs(evidence.curves.shares[int(np.searchsorted(evidence.curves.time, evidence.times[0])), :, drop.direction])
    head = int(np.argmax(shares))
    said = f"head {head + 1} makes the first drop; head {drop.head + 1} has the least T"
    return Comparison(drop.head + 1, head + 1, "exact", head == drop.head, said, unit="head")


def _several_heads(evidence: Evidence) -> Regime:
    found = _first(evidence)
    if found.applies and evidence.model.heads == 1:
        return Regime(False, "there is one head", applies=False)
    ratio = evidence.predicted[0].ratio if evidence.predicted else np.inf
    if found.holds and ratio < LIMITS.apart:
        return Regime(False, f"two heads are within a factor {ratio:.3g} of each other's T, below {LIMITS.apart:g}")
    return found


def _course_regime(evidence: Evidence) -> Regime:
    found = of_flow(evidence, False, small_start(evidence, LIMITS.course), holds="")
    if found.applies and evidence.model.rank != 1:
        return Regime(False, "the scalar law is of heads of rank one", applies=False)
    if not found.applies or not found.holds:
        return found
    if not (apart := separated(evidence))[0]:
        return Regime(False, apart[1])
    ratio = evidence.predicted[0].ratio if evidence.predicted else 0.0
    if ratio < LIMITS.apart:
        return Regime(False, f"two heads are within a factor {ratio:.3g} of each other's T, below {LIMITS.apart:g}")
    return _first(evidence)


def _course(evidence: Evidence) -> Comparison:
    """|v| of the first winner from long before its drop to halfway to the second one, against the scalar law."""
    if not evidence.predicted or evidence.predicted[0].blow_up is None or evidence.times[0] is None:
        return undecided("no first drop", 0.0, COURSE)
    drop, times = evidence.predicted[0], evidence.times
    begin, blow_up = evidence.predicted[0].time, evidence.predicted[0].blow_up
    assert blow_up is not None
    after = times[1] if len(times) > 1 else None
    stop = float(evidence.curves.time[-1]) if after is None else (begin + after) / 2
    inside = np.flatnonzero((evidence.curves.time > 0.5 * begin) & (evidence.curves.time < stop))
    if inside.size < 5:
        return undecided("too few frames around the first drop", 0.0, COURSE)
    seen = np.abs(np.asarray(evidence.curves.params["v"])[inside, drop.head])
    law = forms.value_course(evidence.task, drop.direction, evidence.curves.time[inside] - blow_up)
    off = float(np.max(np.abs(seen - law))) / forms.head_value(evidence.task, (drop.direction,))
    reason = f"|v| of head {drop.head + 1} differs from the scalar law by at most {off:.2g} of its end"
    reason += f"; it has {evidence.mixed:.2g} of other directions"
    # what a head has of other directions adds its square to E = v^2
    return agreement(0.0, off, COURSE, reason, predicted_error=min(evidence.mixed**2 / 2, 1.0), unit="of v_inf")


RUNS = 11
"""Flows from other seeds; with this run twelve."""
LEAST = 10
"""Later drops in regime that decide a share of nine tenths: one wrong is a tenth."""
SURE = 1.64
"""A share of nine tenths is missed where it is so many standard errors below: one run in twenty by chance."""
FACTORS = (1.0, 10**-0.5, 0.1)
"""Starts of the scale law, this run's first."""
LAW = 0.01
"""Relative tolerance of the scale law."""


def _cascades(evidence: Evidence) -> Regime:
    found = of_flow(
        evidence,
        False,
        small_start(evidence, LIMITS.small),
        separated(evidence),
        all_drops(evidence),
        (evidence.seeded is not None, "companion runs of companion runs are not made"),
        holds=f"separate heads from {evidence.size:.2g} of their final value, purity {evidence.purity:.2g}; "
        "drops after close heads are left out",
    )
    if found.applies and (evidence.model.rank != 1 or evidence.model.reach < 2):
        return Regime(False, "the cascade is of two or more heads of rank one", applies=False)
    return found


def _judged(evidence: Evidence) -> list[tuple[float, float, bool]]:
    """Predicted and measured time of the later drops of a run, and whether the right head makes it.

    A drop counts where no two heads were close to each other at this or an earlier one.
    """
    found = []
    for m, drop in enumerate(evidence.predicted):
        if drop.ratio < LIMITS.apart or m >= evidence.reached:
            break
        measured = evidence.times[m]
        assert measured is not None
        found.append((drop.time, measured, evidence.owners[drop.direction] == drop.head))
    return found[1:]


def _cascade(evidence: Evidence) -> Comparison:
    """The share of later drops that come within 15 % and by the right head, over this run and others; this run is one of them.

    So its own first drop, which is predicted to 1 %, must not be off by 15 % either.
    """
    if evidence.seeded is None or not evidence.predicted or evidence.times[0] is None:
        return undecided("no companion runs, or no first drop", LIMITS.right)
    own = abs(evidence.times[0] / evidence.predicted[0].time - 1)
    if own > LIMITS.later:
        reason = f"the first drop of this run is off by {own:.1%}, so it is none of the runs that the cascade is about"
        return Comparison(LIMITS.right, 0.0, "at least", False, reason, unit="of later drops")
    others = evidence.seeded(tuple(range(RUNS)))
    rows = [row for each in (evidence, *others) for row in _judged(each)]
    if len(rows) < LEAST:
        return undecided(f"{len(rows)} later drops of {1 + len(others)} runs are in regime, fewer than {LEAST}", LIMITS.right)
    right = [head and abs(seen / said - 1) <= LIMITS.later for said, seen, head in rows]
    share, error = float(np.mean(right)), [abs(seen / said - 1) for said, seen, _ in rows]
    reason = (
        f"{sum(right)} of {len(rows)} later drops of {1 + len(others)} runs come within {LIMITS.later:.0%} by the right head;"
    )
    reason += f" median error {np.median(error):.1%}, largest {max(error):.1%}; the first drop of this run is off by {own:.1%}"
    said, seen = (tuple(row[part] for row in rows) for part in (0, 1))
    over = OverRuns(said, seen, said, "predicted t of later drops", "measured t", log_x=True, log_y=True)
    doubt = SURE * float(np.sqrt(LIMITS.right * (1 - LIMITS.right) / len(rows)))
    holds = True if share >= LIMITS.right else False if share + doubt < LIMITS.right else None
    return Comparison(LIMITS.right, share, "at least", holds, reason, unit="of later drops", over_runs=over)


def _scales(evidence: Evidence) -> Regime:
    model = evidence.model
    made = evidence.scaled is not None, "companion runs of companion runs are not made"
    limit = small_start(evidence, LIMITS.course if model.merged else LIMITS.small)
    came = evidence.reached > 0, "the run ends before its first drop"
    return of_flow(
        evidence,
        model.merged,
        limit,
        came,
        made,
        holds=f"{evidence.size:.2g} of the final value, and starts up to 10 times smaller",
    )


def _scale_law(evidence: Evidence) -> Comparison:
    if evidence.scaled is None or evidence.times[0] is None:
        return undecided("no companion runs, or no first drop", tolerance=LAW)
    runs = [evidence, *(evidence.scaled(factor) for factor in FACTORS[1:])]
    times = [run.times[0] for run in runs]
    if None in times:
        return undecided("a companion run ended before its first drop", tolerance=LAW)
    seen, scales = np.array(times, dtype=float), evidence.scale * np.array(FACTORS)
    return (_logarithmic if evidence.model.merged else _inverse)(evidence, scales, seen)


def _inverse(evidence: Evidence, scales: np.ndarray, seen: np.ndarray) -> Comparison:
    """(d1 - delay) s is one number: an escape of order two."""
    delay = forms.delay(evidence.task, 0)
    products = (seen - delay) * scales
    off = float(np.max(np.abs(products / products[-1] - 1)))
    said = products[-1] / scales + delay
    over = OverRuns(tuple(scales), tuple(seen), tuple(said), "rms of the start", "d1 (t)", log_x=True, log_y=True)
    shown = ", ".join(f"{value:.5g}" for value in products)
    reason = f"(d1 - delay) x s is {shown}: it differs by {off:.2%}"
    return agreement(0.0, off, LAW, reason, unit="of the product", over_runs=over)


def _logarithmic(evidence: Evidence, scales: np.ndarray, seen: np.ndarray) -> Comparison:
    """d1 grows by ln(1/s)/r: an exponential escape."""
    rate = forms.merged_rate(evidence.task)
    steps = (seen[1:] - seen[0]) / (np.log(scales[0] / scales[1:]) / rate)
    worst = float(steps[int(np.argmax(np.abs(steps - 1)))])
    said = seen[-1] - np.log(scales / scales[-1]) / rate
    over = OverRuns(tuple(scales), tuple(seen), tuple(said), "rms of the start", "d1 (t)", log_x=True)
    reason = f"d1 grows by {', '.join(f'{value:.5g}' for value in steps)} of ln(1/s)/r"
    return agreement(1.0, worst, LAW, reason, unit="of ln(1/s)/r", over_runs=over)


OPENING = 0.02
"""An opening is fitted while M_ii is below this share of its end: the push on it is then as good as constant."""


def _ranked(evidence: Evidence) -> Regime:
    found = of_flow(
        evidence,
        False,
        small_start(evidence, LIMITS.small),
        separated(evidence),
        all_drops(evidence),
        holds=f"heads of rank {evidence.model.rank} from {evidence.size:.2g} of their final value",
    )
    if found.applies and (evidence.model.rank == 1 or evidence.task.dim == 1):
        return Regime(False, "the claim is about heads of rank above one, and several directions", applies=False)
    return found


def opening_fits(evidence: Evidence) -> dict[int, tuple[float, float]]:
    """Measured and predicted rate of each direction that opens in a head that holds others, by direction.

    It is fitted over the last stretch on which v of the head is within 2 % of v_S and M_ii is small. What grows is (k_i + q_i)/2
    in rows of the head that hold nothing yet; a stretch of less than one e-fold of it is none.
    """
    values, owners, found = np.abs(np.asarray(evidence.curves.params["v"])), evidence.owners, {}
    for i in range(1, evidence.task.dim):
        held = [j for j in range(i) if owners[j] == owners[i]]
        if not held:
            continue
        wanted = forms.head_value(evidence.task, held)
        steady = np.abs(values[:, owners[i]] / wanted - 1) <= LIMITS.steady
        good = np.flatnonzero(steady & (np.abs(evidence.curves.learned[:, i]) < OPENING))
        if good.size < 5:
            continue
        stretch = good[np.flatnonzero(np.diff(good) > 1)[-1] + 1 :] if np.any(np.diff(good) > 1) else good
        rate = _growth(evidence, stretch, owners[i], held, i)
        if rate is not None:
            found[i] = rate, forms.opening_rate(evidence.task, held, i)
    return found


def _growth(evidence: Evidence, stretch: np.ndarray, head: int, held: list[int], direction: int) -> float | None:
    """The rate at which a direction opens in the rows of a head that hold nothing; None for less than an e-fold."""
    keys, queries = (np.asarray(evidence.curves.params[name])[stretch, head] for name in ("K", "Q"))
    rows = keys[:, :, held]
    grown = ((keys + evidence.signs[head] * queries) / 2)[:, :, direction]
    free = grown - np.einsum("trm,tmi,ti->tr", rows, np.linalg.pinv(rows), grown)
    size = np.linalg.norm(free, axis=1)
    if len(size) < 5 or not np.all(size > 0) or size[-1] < np.e * size[0]:
        return None
    return float(np.polyfit(evidence.curves.time[stretch], np.log(size), 1)[0])


def _rates(evidence: Evidence) -> Comparison:
    found = opening_fits(evidence)
    if not found:
        return undecided("no direction opens for an e-fold while v of its head is at rest", 1.0, LIMITS.rate)
    ratios = {i: seen / said for i, (seen, said) in found.items()}
    worst = max(ratios, key=lambda i: abs(ratios[i] - 1))
    parts = (f"direction {i + 1}: {seen:.4g} (v_S lambda^2 = {said:.4g})" for i, (seen, said) in found.items())
    return agreement(1.0, ratios[worst], LIMITS.rate, f"rates of keys and queries: {'; '.join(parts)}", unit="of v_S lambda_i^2")


def _new_heads(evidence: Evidence) -> list[int]:
    """Drops that need a new head, by number from 1: at multiples of the rank, while heads fill up one after the other."""
    rank, reach = evidence.model.rank or 1, evidence.model.reach
    return [m for m in range(1, reach + 1) if (m - 1) % rank == 0]


def _several_groups(evidence: Evidence) -> Regime:
    found = _ranked(evidence)
    if found.applies and (evidence.model.rank or 1) >= evidence.model.reach:
        return Regime(False, "one head holds all directions", applies=False)
    return found


def _long_plateaus(evidence: Evidence) -> Comparison:
    """The plateau before each new head against the longest inside the head before it."""
    times = np.array([when for when in evidence.times if when is not None])
    rank = evidence.model.rank or 1
    least, where = np.inf, 0
    for m in _new_heads(evidence)[1:]:
        if m > len(times):
            break
        inside = np.diff(times[m - 1 - rank : m - 1])
        ratio = float((times[m - 1] - times[m - 2]) / inside.max())
        least, where = (ratio, m - 1) if ratio < least else (least, where)
    if not np.isfinite(least):
        return undecided("no plateau at a multiple of the rank ended", 1.0)
    reason = f"plateau {where} lasts {least:.3g} times as long as the longest plateau inside the head before it"
    return Comparison(1.0, least, "above", least > 1, reason, unit="of the longest plateau inside a head")


CLAIMS = (
    claim("LIN:levels", "Plateau m has the loss l_m", _separated_start, _levels, "d1", "d*", kind="prediction", rules=3),
    claim(
        "LIN:order",
        "Directions are learned in the order of the eigenvalues",
        _separated_start,
        _order,
        "d1",
        "d*",
        kind="pattern",
        rules=2,
    ),
    claim(
        "LIN:pcr",
        "On plateau m the model does regression on m principal components",
        _separated_start,
        _regression,
        "d1",
        "d*",
        kind="prediction",
        rules=2,
    ),
    claim("LIN:few-heads", "H heads of rank R with H R < D end at l_HR", _few, _end, "end", kind="prediction"),
    claim("LIN:merged", "Merged heads learn in one drop", _small_merged, _one_drop, "start", "end", kind="pattern", rules=2),
    claim(
        "LIN:merged-drop",
        "The drop of merged heads comes at t_ref + ln(eps/c)/r",
        _small_merged,
        _drop,
        "d1",
        kind="prediction",
        group="merged-clock",
        rules=2,
    ),
    claim(
        "LIN:merged-rate",
        "Merged heads leave the origin at the rate |Lambda^2|_F",
        _small_merged,
        _rate,
        "start",
        "d1",
        kind="prediction",
        group="merged-clock",
        rules=2,
    ),
    claim("LIN:logistic", "For white inputs M follows a logistic curve", _white, _logistic, "start", "end", kind="prediction"),
    claim(
        "LIN:first-drop",
        "The first drop comes at the least blow-up time of all heads, plus the delay of the scalar law",
        _first,
        _first_drop,
        "d1",
        kind="prediction",
        rules=2,
    ),
    claim(
        "LIN:blow-up",
        "The head with the least blow-up time makes the first drop",
        _several_heads,
        _winner,
        "d1",
        kind="pattern",
        rules=2,
    ),
    claim(
        "LIN:scalar",
        "The value of the first winner follows the scalar law, shifted to its blow-up time",
        _course_regime,
        _course,
        "d1",
        kind="prediction",
        rules=2,
    ),
    claim(
        "LIN:cascade",
        "Later drops come at the times and by the heads of the cascade, in nine of ten",
        _cascades,
        _cascade,
        "d1",
        "d*",
        kind="prediction",
        cost=f"{RUNS} flows from other seeds, each about as long as this one",
        rules=2,
    ),
    claim(
        "LIN:scale-law",
        "The first drop comes as 1/s; of merged heads as ln(1/s)",
        _scales,
        _scale_law,
        "d1",
        kind="prediction",
        cost="2 flows from smaller starts, up to their first drop",
        rules=2,
    ),
    claim(
        "LIN:rank",
        "A further direction of the same head opens at the rate v_S lambda_i^2",
        _ranked,
        _rates,
        "d1",
        "d*",
        kind="prediction",
        rules=2,
    ),
    claim(
        "LIN:rank-plateaus",
        "Plateaus are long at multiples of the rank",
        _several_groups,
        _long_plateaus,
        "d1",
        "d*",
        kind="pattern",
        rules=2,
    ),
)
