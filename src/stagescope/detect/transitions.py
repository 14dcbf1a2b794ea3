"""Events of any curve, with intervals: jump, sigmoid, ramp, spike or drift, decided by likelihood. Knows no paper.

A transition is a fast change between two slower stretches on the clock u = ln(time - origin + length/300). The curve is a
constant, a slope in u and shapes (`shapes.py`); what is left is noise, correlated between records, Brownian in time and
integrated Brownian in u. Power laws, knees, relaxations, drifts and walks are thereby noise or drift, and have no transition.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise

import numpy as np

from stagescope.detect.events import first_crossing
from stagescope.detect.noise import FLUTTER, flutter
from stagescope.detect.noise_kernel import deviance, search, whiten
from stagescope.detect.shapes import FORMS, LONGEST, STEPS, Dictionary, Shape, columns
from stagescope.detect.stage import Transition
from stagescope.errors import InputError


@dataclass(frozen=True)
class Limits:
    """What is searched for, and what counts."""

    share: float = 0.05  # least change, of the curve's range
    fewest: int = 15  # records; fewer carry no transition: two plateaus of five and a change of as many
    records: int = 5  # of a plateau: a median that two outliers do not move
    bins: int = 300  # a longer curve is averaged in as many bins, half even in u and half in time
    early: float = 1 / 300  # of a run's length is its beginning, in which the clock is even: the least that 300 records resolve
    events: int = 12  # of a curve; each costs a search


LIMITS = Limits()
QUIET = np.array([0.0, -12.0, -12.0])
"""White noise alone, as (atanh rho, ln Brownian, ln bend)."""
WALKS = ((-12.0, -12.0), (0.0, -12.0), (5.0, -12.0), (-12.0, 0.0), (-12.0, 4.0), (-12.0, 8.0), (3.0, 6.0))
STARTS = np.array([(rho, *walk) for rho in (0.0, 0.7) for walk in WALKS])
"""Noise from which its search starts."""


def record_origin(time: np.ndarray) -> float:
    """Where the clock of a curve begins unless it is given: one gap before the first record."""
    return float(2 * time[0] - time[1]) if len(time) > 1 else 0.0


def transitions(
    time: np.ndarray,
    curve: np.ndarray,
    *,
    origin: float | None = None,
    kinds: Sequence[str] = ("jump", "sigmoid", "ramp"),
    curves: int = 1,
) -> tuple[Transition, ...]:
    """The transitions of a curve in order of time; records that are not finite are left out.

    Args:
        time: of each record.
        curve: one number a record.
        origin: where the clock begins, for the clock is ln(time - origin); one gap before the first record unless given.
        kinds: of events to answer; `"spike"` is one that recovers.
        curves: that are searched together, each of which then has to show more.

    Examples:
        >>> time = np.geomspace(1, 1000, 200)
        >>> [round(each.t) for each in ss.transitions(time, 1 / (1 + (time / 30) ** 12))]
        [30]
    """
    return tuple(event for event in curve_events(time, curve, origin, curves) if event.kind in kinds)


def curve_events(time: np.ndarray, curve: np.ndarray, origin: float | None = None, curves: int = 1) -> tuple[Transition, ...]:
    """Transitions and spikes of a curve in order of time."""
    time, curve = np.asarray(time, dtype=float), np.asarray(curve, dtype=float)
    if time.shape != curve.shape or time.ndim != 1 or not np.all(np.diff(time) > 0):
        raise InputError(f"expected rising times, one for each value; got shapes {time.shape} and {curve.shape}")
    finite = np.isfinite(curve)
    time, curve = time[finite], curve[finite]
    if len(time) < LIMITS.fewest or np.ptp(curve / 2) <= 1e-12 * np.max(np.abs(curve)):
        return ()
    origin = record_origin(time) if origin is None else float(origin)
    if origin > time[0]:
        raise InputError(f"the origin {origin:g} is later than the first record at {time[0]:g}; give one before it")
    largest = float(np.max(np.abs(curve)))  # squares of a very large or small number are none
    found = Search.of(time, curve / largest, origin, curves).events()
    return tuple(replace(event, amplitude=event.amplitude * largest, origin=origin) for event in found)


@dataclass(frozen=True)
class Fit:
    """Noise, shapes, and -2 ln likelihood."""

    noise: np.ndarray
    shapes: tuple[Shape, ...]
    deviance: float


@dataclass(frozen=True)
class Search:
    """A curve with the records of its fit: `x` is the time since the origin, `curve` is in units of its standard deviation."""

    raw_time: np.ndarray
    raw: np.ndarray
    x: np.ndarray
    curve: np.ndarray
    first: np.ndarray
    last: np.ndarray
    unit: tuple[float, float]
    origin: float
    curves: int

    @classmethod
    def of(cls, time: np.ndarray, raw: np.ndarray, origin: float, curves: int) -> "Search":
        early = LIMITS.early * (time[-1] - time[0])
        kept = lone_deviations(time, raw) == 0
        x, values = time[kept] - origin + early, raw[kept]
        edge = _bin_edges(x)
        last = np.append(edge[1:], len(x)) - 1
        count = last - edge + 1
        mean, middle = (np.add.reduceat(each, edge) / count for each in (values, x))
        unit = float(mean[0]), float(np.std(mean) or 1.0)
        return cls(
            time, raw, middle, (mean - unit[0]) / unit[1], time[kept][edge], time[kept][last], unit, origin - early, curves
        )

    @property
    def time(self) -> np.ndarray:
        return self.x + self.origin

    @cached_property
    def size(self) -> np.ndarray:
        """The standard deviation of each record's noise, even or as the curve shows it, whichever is likelier."""
        even, local = np.ones(len(self.x)), flutter(self.x, self.curve)
        if not np.all(local > 0):
            return even
        local = local / np.median(local)
        table = np.column_stack([self.base, self.curve])
        values = [search(table, *self.gaps, size, STARTS, self.floor, 0.2)[1] for size in (even, local)]
        return (even, local)[int(np.argmin(values))]

    @cached_property
    def base(self) -> np.ndarray:
        u = np.log(self.x)
        return np.column_stack([np.ones(len(u)), u - u[0]])

    @cached_property
    def gaps(self) -> tuple[np.ndarray, np.ndarray]:
        u = np.log(self.x)
        return np.diff(self.x, prepend=self.x[0]) / (self.x[-1] - self.x[0]), np.diff(u, prepend=u[0])

    @cached_property
    def dictionary(self) -> Dictionary:
        return Dictionary(self.x)

    @cached_property
    def quiet_table(self) -> np.ndarray:
        return self.whitened(QUIET, self.dictionary.table)[0]

    @cached_property
    def penalty(self) -> np.ndarray:
        """What a shape has to gain (extended BIC): ln n for its height, 2 ln of the shapes it was chosen from."""
        count = np.bincount(self.dictionary.forms, minlength=len(FORMS))
        return np.log(len(self.x)) + 2 * np.log(np.maximum(count, 1) * len(FORMS) * self.curves)

    @cached_property
    def floor(self) -> float:
        """The least sum of squares of the noise: shapes are ideal, and err by a quarter of what counts.

        A step of `share` of the range with five records on each side still gains its penalty of 17: 5/2 (share/error)^2 = 40.
        """
        return len(self.x) * max(LIMITS.share / 4 * float(np.ptp(self.curve)), 1e-12) ** 2

    def whitened(self, noise: np.ndarray, table: np.ndarray) -> tuple[np.ndarray, float]:
        natural = np.array([np.tanh(noise[0]), np.exp(noise[1]), np.exp(noise[2])])
        out = np.empty_like(table)
        logs = whiten(np.ascontiguousarray(table), *self.gaps, self.size, natural, out)
        return out, logs

    def design(self, shapes: Sequence[Shape]) -> np.ndarray:
        return np.column_stack([self.base, *(shape.on(self.x) for shape in shapes)])

    def deviance(self, noise: np.ndarray, design: np.ndarray) -> float:
        table = np.column_stack([design, self.curve])
        return deviance(table, *self.gaps, self.size, noise, self.floor, np.empty_like(table))

    def fitted(self, shapes: tuple[Shape, ...], starts: np.ndarray, least: float = 0.2) -> Fit:
        table = np.column_stack([self.design(shapes), self.curve])
        noise, value = search(table, *self.gaps, self.size, np.atleast_2d(starts), self.floor, least)
        return Fit(noise, shapes, value)

    def refined(self, fit: Fit, j: int) -> Fit:
        """Centre and rise of one shape of least deviance at the noise of the fit, by a pattern search."""
        shape, best, step = fit.shapes[j], fit.deviance, 0.3
        others = self.design((*fit.shapes[:j], *fit.shapes[j + 1 :]))
        if shape.form == "jump":
            return fit
        while step > 0.01:
            improved = False
            for centre, rise in ((step, 0), (-step, 0), (0, step), (0, -step)):
                trial = replace(shape, centre=shape.centre * np.exp(centre * shape.rise), rise=shape.rise * np.exp(rise))
                if shape.form == "decay" and centre:
                    continue
                value = self.deviance(fit.noise, np.column_stack([others, trial.on(self.x)]))
                if value < best - 1e-6:
                    shape, best, improved = trial, value, True
            step *= 1.0 if improved else 0.5
        return Fit(fit.noise, (*fit.shapes[:j], shape, *fit.shapes[j + 1 :]), best)

    def proposals(self, fit: Fit) -> set[Shape]:
        """The shape of each form that gains most, at the noise of the fit and at white noise."""
        chosen = set()
        for noise in (fit.noise, QUIET):
            white, _ = self.whitened(noise, np.column_stack([self.design(fit.shapes), self.curve]))
            table = self.quiet_table if noise is QUIET else self.whitened(noise, self.dictionary.table)[0]
            basis = np.linalg.qr(white[:, :-1])[0]
            rest = white[:, -1] - basis @ (basis.T @ white[:, -1])
            total = np.einsum("ij,ij->j", table, table)
            own = total - np.sum((basis.T @ table) ** 2, axis=0)
            gain = np.where(own > 1e-6 * total, (rest @ table) ** 2 / np.maximum(own, 1e-300), 0.0)
            for form in range(len(FORMS)):
                places = np.flatnonzero(self.dictionary.forms == form)
                if places.size:
                    chosen.add(self.dictionary.shape(int(places[np.argmax(gain[places])])))
        return chosen

    def cost(self, fit: Fit) -> float:
        """Deviance and penalties."""
        return fit.deviance + sum(self.penalty[FORMS.index(shape.form)] for shape in fit.shapes)

    def best_fit(self) -> Fit:
        """Shapes are added while one gains more than it costs, then dropped while one gains less."""
        best = fit = self.fitted((), STARTS)
        while len(fit.shapes) <= min(len(best.shapes) + 1, LIMITS.events):  # two drops may gain together what one alone does not
            starts = np.stack([fit.noise, QUIET])
            tries = [self.fitted((*fit.shapes, shape), starts, 1.0) for shape in self.proposals(fit)]
            tries = sorted(tries, key=self.cost)[:2]
            tries = [self.fitted(each.shapes, each.noise) for each in (self.refined(one, len(one.shapes) - 1) for one in tries)]
            fit = min(tries, key=self.cost)
            best = min(best, fit, key=self.cost)
        fit = best
        while fit.shapes:
            tries = [self.fitted((*fit.shapes[:j], *fit.shapes[j + 1 :]), fit.noise) for j in range(len(fit.shapes))]
            best = min(tries, key=self.cost)
            if self.cost(best) >= self.cost(fit):
                break
            fit = best
        return fit

    def heights(self, fit: Fit) -> np.ndarray:
        white, _ = self.whitened(fit.noise, np.column_stack([self.design(fit.shapes), self.curve]))
        return _solved(white)[2:]

    def interval(self, fit: Fit, j: int) -> tuple[float, float]:
        """Ends of the 95 % interval of a step's centre: its posterior over centres, rises and forms, at the noise of the fit."""
        others = fit.shapes[:j] + fit.shapes[j + 1 :]
        white, _ = self.whitened(fit.noise, np.column_stack([self.design(others), self.curve]))
        basis = np.linalg.qr(white[:, :-1])[0]
        rest = white[:, -1] - basis @ (basis.T @ white[:, -1])
        total, n, p = float(rest @ rest), len(self.x), white.shape[1]
        centres, weights, u = [], [], np.log(self.x)

        def deviances(form: str, centre: np.ndarray, rise: np.ndarray) -> np.ndarray:
            table, _ = self.whitened(fit.noise, columns(form, self.x, centre, rise))
            table = table - basis @ (basis.T @ table)
            gain = (rest @ table) ** 2 / np.maximum(np.einsum("ij,ij->j", table, table), 1e-12)
            left = np.maximum(total - gain, 0.0) / self.floor
            return (n - p) * (np.log(np.maximum(left, 1)) + np.minimum(left, 1))

        shape = fit.shapes[j]
        spacing = np.interp(np.log(shape.centre), u[1:], np.diff(u))
        for k, form in enumerate(STEPS):
            if form == "jump":
                near = np.abs((u[1:] + u[:-1]) / 2 - np.log(shape.centre)) < max(LONGEST, 2 * shape.rise)
                centre = ((self.x[1:] + self.x[:-1]) / 2)[near]
                centres.append(centre)
                weights.append(
                    -deviances(form, centre, np.zeros(len(centre))) / 2 - self.penalty[k] / 2 + np.log(np.diff(u)[near])
                )
                continue
            middle, half = (
                np.array([np.log(shape.centre), np.log(max(shape.rise, spacing))]),
                np.array([max(shape.rise, 3 * spacing), 1.0]),
            )
            place, value = np.zeros((2, 1)), np.zeros(1)
            for _ in range(5):
                grid = np.stack(np.meshgrid(np.linspace(-1, 1, 25), np.linspace(-1, 1, 11), indexing="ij")).reshape(2, -1)
                place = middle[:, None] + half[:, None] * grid
                place[1] = np.minimum(place[1], np.log(2 * LONGEST))
                value = -deviances(form, np.exp(place[0]), np.exp(place[1])) / 2
                weight = np.exp(value - np.max(value))
                weight /= weight.sum()
                middle = place @ weight
                spread = np.sqrt(((place - middle[:, None]) ** 2) @ weight)
                fine = np.maximum(4 * spread, 1.2 * half / np.array([12, 5]))
                if np.all(fine > 0.5 * half):
                    break
                half = np.minimum(fine, 1.5 * half)
            centres.append(np.exp(place[0]))
            weights.append(value - self.penalty[k] / 2 + np.log(half[0] * half[1] / 275))
        centre, weight = np.concatenate(centres), np.concatenate(weights)
        order = np.argsort(centre)
        weight = np.exp(weight - np.max(weight))[order]
        share = np.cumsum(weight) - weight / 2
        low, high = np.interp([0.025 * weight.sum(), 0.975 * weight.sum()], share, centre[order])
        return float(low), float(high)

    def events(self) -> tuple[Transition, ...]:
        """What counts of the fit: groups of shapes with no rest between them, as transitions or spikes."""
        fit = self.best_fit()
        heights = self.heights(fit)
        fast = [j for j in range(len(fit.shapes)) if self.is_fast(fit.shapes[j])]
        spans = {j: self.records_around(*fit.shapes[j].span) for j in fast}
        fast.sort(key=lambda j: spans[j])
        groups: list[list[int]] = []
        for j in fast:
            back = bool(groups) and heights[j] * heights[groups[-1][-1]] < 0  # a spike rests for less than a plateau
            if groups and spans[j][0] - max(spans[k][1] for k in groups[-1]) < (LIMITS.records if back else 1):
                groups[-1].append(j)
            else:
                groups.append([j])
        found = [self.event(fit, heights, group, spans) for group in groups]
        found = list(self.counted([event for event in found if event is not None]))
        spikes = [each for each in self.lone_spikes() if not any(e.start <= each.t <= e.stop for e in found)]
        return tuple(sorted((*found, *spikes), key=lambda event: event.t))

    def lone_spikes(self) -> Iterator[Transition]:
        """Single records that stand out by more than the range of the thirty around them: heavy tails have few such."""
        time, raw = self.raw_time, self.raw
        away = lone_deviations(time, raw)
        for i in np.flatnonzero(np.abs(away) >= LIMITS.share * np.ptp(raw)):
            around = slice(max(0, i - FLUTTER // 2), i + FLUTTER // 2 + 1)
            if 0 < i < len(raw) - 1 and abs(away[i]) >= np.ptp(raw[around][away[around] == 0]):
                before, when, after = (float(each) for each in time[i - 1 : i + 2])
                yield Transition(when, before, after, before, after, float(away[i]), "spike")

    def is_fast(self, shape: Shape) -> bool:
        """Not drift: it is faster than a relaxation and than the run, and something rests before it and after it."""
        (start, stop), x = shape.span, self.x
        before, after = self.records_around(start, stop)
        brief = shape.rise <= LONGEST and stop - start <= (x[-1] - x[0]) / 2
        return brief and before + 1 >= LIMITS.records and len(x) - after >= LIMITS.records

    def records_around(self, low: float, high: float) -> tuple[int, int]:
        """The last record before a stretch and the first after it."""
        n = len(self.x)
        before, after = int(np.searchsorted(self.x, low)) - 1, int(np.searchsorted(self.x, high))
        return min(max(before, 0), n - 1), min(after, n - 1)

    def event(self, fit: Fit, heights: np.ndarray, group: list[int], spans: dict[int, tuple[int, int]]) -> Transition | None:
        """One transition or spike: a group of shapes that comes back by more than half is a spike."""
        begin, end = min(spans[j][0] for j in group), max(spans[j][1] for j in group)
        path = np.sum([heights[j] * fit.shapes[j].on(self.x) for j in group], axis=0)[begin : end + 1]
        way = path - path[0]
        net, top = float(way[-1]), int(np.argmax(np.abs(way)))
        spike = abs(net) < abs(way[top]) / 2
        main = group[0]
        if spike:
            when = float(self.x[begin + top])
            low, high = float(self.x[begin]), float(self.x[end])
        else:
            steps = [j for j in group if fit.shapes[j].form in STEPS and heights[j] * net > 0]
            if not steps:
                return None
            main = max(steps, key=lambda j: abs(heights[j]))
            low, high = self.interval(fit, main)
            when = fit.shapes[main].centre
            if len(group) > 1:
                crossed = first_crossing(self.x[begin : end + 1], way, net / 2, net > 0) or when
                low, high, when = low * crossed / when, high * crossed / when, crossed
        before, after = self.records_around(when, when)
        when, low, high = (float(each + self.origin) for each in (when, low, high))
        kind = "spike" if spike else fit.shapes[main].form
        kind = "sigmoid" if kind == "relaxation" else kind
        return Transition(
            when,
            float(min(low, when, self.first[before])),
            float(max(high, when, self.last[after])),
            float(self.last[begin]),
            float(self.first[end]),
            amplitude=float(way[top]) if spike else net,
            kind=kind,
        )

    def counted(self, events: list[Transition]) -> Iterator[Transition]:
        """Events by the change of the curve itself, where it is large enough."""
        stops = [self.raw_time[0], *(event.stop for event in events)]
        starts = [*(event.start for event in events), self.raw_time[-1]]
        levels = [
            (self.level(stop, start, False, event), self.level(after_stop, after_start, True, event))
            for event, (stop, after_stop), (start, after_start) in zip(events, pairwise(stops), pairwise(starts), strict=True)
        ]
        least = LIMITS.share * np.ptp(self.raw)
        for event, (before, after) in zip(events, levels, strict=True):
            change = after - before
            if event.kind == "spike":
                inside = self.raw[(self.raw_time >= event.start) & (self.raw_time <= event.stop)] - before
                change = float(inside[np.argmax(np.abs(inside))])
            elif change * event.amplitude < 0:
                continue
            if abs(change) < least:
                continue
            if event.kind != "spike":  # where the curve itself is half-way: shapes that do not fit have another middle
                inside = (self.time >= event.start) & (self.time <= event.stop)
                half = (
                    first_crossing(
                        self.time[inside], self.curve[inside], ((before + after) / 2 - self.unit[0]) / self.unit[1], change > 0
                    )
                    or event.t
                )
                event = replace(event, low=min(event.low, half), high=max(event.high, half))
            yield replace(event, amplitude=float(change))

    def level(self, begin: float, end: float, late: bool, event: Transition) -> float:
        """The median of a plateau next to an event: as long as the event in ln time, and at least five records."""
        inside = np.flatnonzero((self.raw_time >= begin) & (self.raw_time <= end))
        if not inside.size:
            inside = np.array([np.argmin(np.abs(self.raw_time - (event.stop if late else event.start)))])
        start, stop = event.start - self.origin, event.stop - self.origin
        near = self.raw_time[inside] - self.origin
        near = inside[near <= stop**2 / start * (1 + 1e-9)] if late else inside[near >= start**2 / stop * (1 - 1e-9)]
        few = inside[: LIMITS.records] if late else inside[-LIMITS.records :]
        return 2 * float(np.median(self.raw[near if len(near) > len(few) else few] / 2))


def _solved(white: np.ndarray) -> np.ndarray:
    """Least squares of the last column by the others; one that the others make up gets little height."""
    gram = white.T @ white
    scale = np.sqrt(np.diag(gram)[:-1]) + 1e-300
    correlation = gram[:-1, :-1] / np.outer(scale, scale) + 1e-11 * np.eye(len(scale))
    return np.linalg.solve(correlation, gram[:-1, -1] / scale) / scale


def lone_deviations(time: np.ndarray, curve: np.ndarray) -> np.ndarray:
    """By how much each record that stands out alone differs from the median of the five around it; 0 for all others.

    It stands out by more than sqrt(3 ln n) standard deviations: the penalty of a jump, ln n for its height and 2 ln n for its
    place. Of five records that rise or fall the median is the one in the middle.
    """
    around = np.lib.stride_tricks.sliding_window_view(np.pad(curve, 2, mode="edge"), 5)
    away = curve - np.median(around, axis=1)
    out = np.pad(np.abs(away) > np.sqrt(3 * np.log(len(curve))) * flutter(time, curve), 1)
    return np.where(out[1:-1] & ~out[:-2] & ~out[2:], away, 0.0)


def _bin_edges(x: np.ndarray) -> np.ndarray:
    """The first record of each of at most `bins` bins, half of them even in ln x and half in x; all of a shorter curve."""
    if len(x) <= LIMITS.bins:
        return np.arange(len(x))
    half = LIMITS.bins // 2
    marks = np.concatenate([np.geomspace(x[0], x[-1], half), np.linspace(x[0], x[-1], half)])
    return np.unique(np.clip(np.searchsorted(x, np.sort(marks)[:-1]), 0, len(x) - 1))
