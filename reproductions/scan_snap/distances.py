"""The table "as published": every figure, number and statement of the paper, the same made again, verdict and cause.

Numbers stand in `reference.json` of the paper's package, statements in `statements.json` beside this file, each with where it was
read. A statement is judged by a claim of the ledger of a run, or by a number of `statements.py`.
"""

import math
from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any, Literal

import numpy as np
from pydantic import ConfigDict, TypeAdapter
from pydantic.dataclasses import dataclass
from scipy.stats import t

from stagescope.claims.claim import Verdict
from stagescope.claims.ledger import Ledger
from stagescope.core.options import option_words
from stagescope.core.progress import Progress
from stagescope.readings.published import Row
from stagescope.readings.reading import check

from . import figures, statements
from .figures import PUBLISHED, QUICK_SEEDS, SEEDS
from .text_figures import text_distances


@dataclass(frozen=True, config=ConfigDict(extra="forbid"))
class Statement:
    """A statement of the paper: judged by `claim` on the run of a `preset`, or by the number of `measure`, both with `given`.

    The number is compared with `reference` to `tolerance`, or is a bound: "at most" or "at least" the reference. `unit` says what
    the number is. A statement with neither claim nor measure is not decidable, and `cause` names what was tried.
    """

    section: str
    name: str
    claim: str = ""
    preset: str = "single-common-pinv"
    measure: str = ""
    given: dict[str, Any] | None = None
    unit: str = ""
    reference: float | None = None
    tolerance: float = 0.0
    bound: Literal["", "at most", "at least"] = ""
    change: str = ""
    cause: str = ""


@cache
def read_statements() -> tuple[Statement, ...]:
    text = Path(__file__).with_name("statements.json").read_bytes()
    return TypeAdapter(tuple[Statement, ...]).validate_json(text)


@cache
def ledger(preset: str, **given: Any) -> Ledger:
    """Verdicts on the run of a preset; what it cannot decide is decided by the companion runs that the claims name."""
    return check(statements.run_of(preset, **given), elsewhere=True)


def distances(progress: Progress, quick: bool = False) -> list[Row]:
    """All rows; `quick`: runs on batches with two seeds in place of ten."""
    seeds = QUICK_SEEDS if quick else SEEDS
    items = progress.each(read_statements(), "statements", "statements")
    return [*figure_rows(progress, seeds), *(claim_row(item) if item.claim else measured_row(item) for item in items)]


def claim_row(item: Statement) -> Row:
    """The verdict of a claim: its numbers where they are numbers, else 1 where it is confirmed and 0 where it is violated."""
    judged: Verdict = ledger(item.preset, **(item.given or {}))[item.claim]
    place, companion = f"run {item.preset}{options_text(item.given or {})}", judged.elsewhere
    if judged.verdict not in ("confirmed", "violated") and companion is not None and companion.verdict is not None:
        judged, place = companion.verdict, f"{place}{options_text(companion.options)}"
    cause = "; ".join(part for part in (f"{item.claim}, {place}: {judged.reason}", item.cause) if part)
    predicted, measured, tolerance = judged.predicted, judged.measured, judged.tolerance
    row = Row(item.section, item.name, item.unit or judged.unit or "", 1.0, None, 0.0, cause, item.change)
    if judged.verdict not in ("confirmed", "violated"):
        return replace(row, reference=None, tolerance=None)
    if isinstance(predicted, float) and isinstance(measured, float) and isinstance(tolerance, float):
        shown = replace(row, reference=predicted, ours=measured, tolerance=tolerance)
        if shown.within == (judged.verdict == "confirmed"):
            return shown
    return replace(row, at="1: confirmed", ours=float(judged.verdict == "confirmed"))


def options_text(options: Mapping[str, Any]) -> str:
    return "".join(f" {word}" for name, value in options.items() for word in option_words(name, value))


def measured_row(item: Statement) -> Row:
    # what rounding leaves differs between machines, so no more than 12 digits are kept
    ours = round(getattr(statements, item.measure)(**(item.given or {})), 12) if item.measure else None
    row = Row(item.section, item.name, item.unit, item.reference, ours, item.tolerance, item.cause, item.change)
    if not item.bound or ours is None or item.reference is None:
        return row if item.measure else replace(row, tolerance=None)
    inside = min(ours, item.reference) if item.bound == "at most" else max(ours, item.reference)
    return replace(row, reference=inside, at=f"{item.bound} {item.reference:g}{f': {item.unit}' if item.unit else ''}")


def holds(section: str, quantity: str, yes: bool, cause: str = "", change: str = "") -> Row:
    """A message of a figure: 1 where it holds."""
    return Row(section, quantity, "1: it holds", 1.0, float(yes), 0.0, cause, change)


def of_ten_seeds(row: Row, seeds: int) -> Row:
    """A row whose tolerance is for means over all seeds: fewer decide nothing."""
    return row if seeds == SEEDS else replace(row, tolerance=None, cause=f"{seeds} seeds in place of {SEEDS}; leave out --quick")


# The figures.


def figure_rows(progress: Progress, seeds: int) -> Iterator[Row]:
    drawing = "a drawing without numbers; its model and data are those of every run here (SnS:model, SnS:data)"
    yield Row("Figure 1", "model and classes", "", None, None, None, drawing)
    yield Row("Table 1", "notation", "", None, None, None, "nothing to measure; docs/notation.md has the symbols")
    on_text: dict[str, list[Row]] = {}
    for row in text_distances(progress, seeds < SEEDS):
        on_text.setdefault(row.section, []).append(row)
    yield from cartoon_rows(figures.overview(progress))
    yield from growth_rows(figures.growth_factors(progress))
    yield from syn_small_rows(figures.syn_small(progress, seeds))
    yield from adam_rows(figures.adam(progress, seeds))
    yield from entropy_rows(figures.entropy_grid(progress, seeds), seeds)
    yield from on_text["Figure 7"]
    yield from discrete_rows(figures.discrete(progress))
    yield from common_rows(figures.common_growth(progress))
    yield from on_text["Figure 10"]
    for name, by in (("11", "rate_z"), ("12", "ratio")):
        yield from recall_rows(name, figures.recall(progress, by, seeds), seeds)


def cartoon_rows(numbers: dict[str, Any]) -> Iterator[Row]:
    times = numbers["times"]
    order = "common tokens suppressed, winners, frozen: in this order"
    yield holds("Figure 2", order, 0 < times["winner"] < times["slow"] < times["snap"])
    late = f"attention is frozen at t = {times['snap']:.0f}, at equal rates, not at eta_Y >> eta_Z"
    why = f"the paper gives an order without a constant; {late}"
    yield Row("Figure 2", "when attention is frozen", "in units of K ln M/eta_Y", 1.0, times["snap"] / numbers["t0'"], None, why)


def growth_rows(numbers: dict[str, Any]) -> Iterator[Row]:
    curves, end = numbers["curves"], PUBLISHED["figure_3_axis"].value
    chi, printed = curves[0]["chi"][-1], curves[0]["printed"][-1]
    needed = numbers["axis"]["rate_z_needed"]
    bound = f"e^2B with the corrected C0 ({curves[0]['upper'][-1]:.3g})"
    cause = (
        f"theorem 3 bounds chi by e^2B, which the corrected C0 >= K/(K-1) lets reach {end} from eta_Z = {needed:.0f} on. "
        f"Tried: the flow under the modified decoder; {bound}; e^2B with C0 = rho0^4/K as printed and rho0 = 1 (143)"
    )
    yield Row("Figure 3", "growth factor at t = 700, eta_Y = .5: exact flow", "end of the axis", end, chi, 0.05 * end, cause)
    why = (
        f"C0 = rho0^4/K as printed with rho0^2 = {numbers['squares']:g}, chosen so that this number fits, which decides nothing; "
        "f_c^2 = 1/rho0^2 is then above 1, which no attention has"
    )
    yield Row("Figure 3", "the same: e^2B of theorem 4", "end of the axis", end, printed, None, why)
    ends = [curve["chi"][-1] for curve in curves]
    yield holds("Figure 3", "a slower decoder grows the winner further", all(a > b for a, b in pairwise(ends)))
    halves = [float(np.interp(0.5, (np.array(c["chi"]) - 1) / (c["chi"][-1] - 1), c["t"])) for c in curves]
    yield holds("Figure 3", "a slower decoder turns later", all(a > b for a, b in pairwise(halves)))


def syn_small_rows(numbers: dict[str, Any]) -> Iterator[Row]:
    slow, fast = numbers["panels"]
    limit, start = PUBLISHED["figure_4_entropy"].tolerance, PUBLISHED["start_entropy"]
    authors, other = PUBLISHED["figure_4_authors"].value, PUBLISHED["figure_4_entropy"].value["10"]
    seeds = f"mean of {numbers['seeds']} seeds"
    quantity, where = "entropy on distinct tokens", f"iteration 99, {seeds}"
    code = f"the authors' code, {len(authors)} seeds; the figure itself is colours"
    ours = slow["start_entropy"]
    yield Row("Figure 4", quantity, "iteration 0", start.value, ours, start.tolerance, "an independent implementation")
    yield Row("Figure 4", f"{quantity}, (1, 1)", where, float(np.mean(authors)), slow["entropy_at_99"][0], limit, code)
    rival = "an independent implementation; the authors' code was not run at this rate"
    yield Row("Figure 4", f"{quantity}, (10, 1)", where, other, fast["entropy_at_99"][0], limit, rival)
    why = f"it leads in {slow['top_is_frequent']:.0%} of classes and seeds"
    yield holds("Figure 4", "attention ends on the most frequent distinct token, (1, 1)", slow["top_is_frequent"] > 0.5, why)
    onsets = PUBLISHED["figure_4_onset"]
    less = f"by iteration 10 it has moved less of all attention: {fast['moved_at_10']:.3f} against {slow['moved_at_10']:.3f}"
    yield holds("Figure 4", "a larger eta_Y begins earlier", fast["onset"] < slow["onset"], less)
    for rates, panel in (("1", slow), ("10", fast)):
        where = f"step, {seeds}"
        quantity = f"common tokens have lost 2 % of attention, ({rates}, 1)"
        yield Row("Figure 4", quantity, where, onsets.value[rates], panel["onset"], onsets.tolerance, onsets.source)
    yield holds("Figure 4", "a larger eta_Y ends less sparse", fast["entropy_at_99"][0] > slow["entropy_at_99"][0])


def adam_rows(numbers: dict[str, Any]) -> Iterator[Row]:
    tops = [panel["top"] for panel in numbers["panels"]]
    for panel in numbers["panels"]:
        low, high = PUBLISHED["figure_5_leading_token"].value[f"{panel['lr']:g}"]
        inside = float(np.clip(panel["top"], low, high))
        where = f"rank {low} to {high} of 0 to 9, by an independent implementation"
        yield Row("Figure 5", f"leading distinct token at rate {panel['lr']:g}", where, inside, float(panel["top"]), 0.0)
    why = f"ranks {', '.join(map(str, tops))} lead; the paper's figure is colours and leaves the theory open"
    yield holds("Figure 5", "Adam at other rates selects other distinct tokens", len(set(tops)) == len(tops), why)


def entropy_rows(numbers: dict[str, Any], seeds: int) -> Iterator[Row]:
    quantity, wide = "entropy on distinct tokens", float(t.ppf(1 - 0.05 / 2 / len(numbers["published"]), 9))
    why = "the tolerance is Student's for the difference of two means of one spread: one of 64 is outside in 5 of 100 tables"
    for name, (mean, spread) in numbers["published"].items():
        last, rate, ratio = name.split("|")
        where = f"{last} queries, eta_Z {rate}, ratio {ratio}"
        limit = wide * spread * math.sqrt(10 / 9 * (1 / 10 + 1 / seeds)) + 0.0005  # the last is the rounding
        yield Row("Figure 6", quantity, where, mean, numbers["cells"][name][0], limit, why)
    gap = PUBLISHED["figure_6_entropy"].tolerance
    row = Row("Figure 6", "mean difference from the 64 means", "nats", 0.0, numbers["mean_abs_difference"], gap)
    yield of_ten_seeds(row, seeds)
    tables = [numbers[kind] for kind in ("published", "cells")]
    for quantity, axis, least in (("falls with eta_Z", 1, 0.0), ("rises with the ratio from 2 on", 2, 2.0)):
        theirs, ours = (_ordered(table, axis, least) for table in tables)
        yield of_ten_seeds(Row("Figure 6", quantity, "neighbouring cells", float(theirs), float(ours), 2.0), seeds)


def _ordered(cells: dict[str, Any], axis: int, least: float) -> int:
    """Of neighbouring cells along eta_Z (axis 1) or the ratio (2) from `least` on, those with less or with more entropy."""
    lines: dict[Any, list[tuple[float, float]]] = {}
    for name, (mean, _) in cells.items():
        parts = [float(part) for part in name.split("|")]
        at = parts.pop(axis)
        if at >= least:
            lines.setdefault(tuple(parts), []).append((at, mean))
    pairs = [(b - a) for line in lines.values() for (_, a), (_, b) in pairwise(sorted(line))]
    return sum(step < 0 if axis == 1 else step > 0 for step in pairs)


def discrete_rows(numbers: dict[str, Any]) -> Iterator[Row]:
    for panel in numbers["panels"]:
        gaps = np.array([curve["gap_over_bound"] for curve in panel["curves"]])
        where = f"M = {panel['M']}, five rates"
        for which, gap in (("least", gaps[:, 0].min()), ("largest", gaps[:, 1].max())):
            ours = round(float(gap), 12)
            yield Row("Figure 8", f"{which} (h* - h)/(2 eta_Y/M)", f"{where}: 0 to 1", min(max(ours, 0.0), 1.0), ours, 0.0)
        fall = max(curve["last_gap"] / curve["gap_over_bound"][1] for curve in panel["curves"])
        why = "it falls as ln t/t: see remark 2"
        yield Row("Figure 8", "the gap tends to 0: at 2 t0 over its largest", where, 0.0, fall, 0.5, why)


def common_rows(numbers: dict[str, Any]) -> Iterator[Row]:
    times, heights, tops = (PUBLISHED[f"figure_9_{name}"] for name in ("t0", "growth", "axis"))
    for panel in numbers["panels"]:
        outputs = str(panel["M"])
        exact = panel["curves"][0]["exact numerator"]
        why = (
            f"Gamma with (M-1)^2 as printed; with M (M-1), for which the exact flow decides, {exact:.4f}. "
            "The caption has nu = eta_Z/eta_Y, the panels eta_Y/eta_Z"
        )
        for curve, when in zip(panel["curves"], times.value[outputs], strict=True):
            where = f"M = {outputs}, eta_Z = {curve['rate_z']:g}"
            yield Row("Figure 9", "t0", where, when, curve["t0"], (times.tolerance or 0) * when)
            yield Row("Figure 9", "B(t0)", where, heights.value[outputs], curve["B(t0)"], heights.tolerance, why)
        top, largest = tops.value[outputs], max(curve["B"][-1] for curve in panel["curves"])
        yield Row("Figure 9", "largest B", f"M = {outputs}: end of the axis {top}", top, largest, 0.15 * top)


def recall_rows(name: str, numbers: dict[str, Any], seeds: int) -> Iterator[Row]:
    pairs, marks = PUBLISHED["recall_orderings"], PUBLISHED["figure_11_recall"]
    assert marks.tolerance is not None
    says = "a larger ratio falls more steeply" if name == "11" else "a larger eta_Z falls less steeply"
    row = Row(f"Figure {name}", says, "neighbouring curves", pairs.value[name], float(numbers["ordered"]), pairs.tolerance)
    yield of_ten_seeds(row, seeds)
    if name == "12":
        return
    why = "the published numbers are the outer marks of an axis; the tolerance is a mark and three standard errors over seeds"
    for row in numbers["rows"]:
        for rate, panel, errors in zip(numbers["columns"], row["curves"], row["errors"], strict=True):
            if (ends := marks.value.get(f"{row['num_last']}|{rate:g}")) is not None:
                where, ours = f"{row['num_last']} queries, eta_Z {rate:g}", (np.min(panel), np.max(panel))
                for which, mark, value, error in zip(("lowest recall", "highest recall"), ends, ours, errors, strict=True):
                    yield Row("Figure 11", which, where, mark, float(value), marks.tolerance + 3 * error, why)
