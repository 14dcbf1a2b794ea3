"""Events of any curve, with intervals: jump, sigmoid, ramp, spike or drift, decided by likelihood. Knows no paper.

A transition is a fast change between two slower stretches on the clock u = ln(time - origin + length/300). The curve is a
constant, a slope in u and shapes (`shapes.py`); what is left is noise, correlated between records, Brownian in time and
integrated Brownian in u. Power laws, knees, relaxations, drifts and walks are thereby noise or drift, and have no transition.

What goes and comes back is a spike, unless it stays between for 5 % of the run, or from x to 5 x: then it is two transitions.

The integrated motion is the bend of a drift: without a bound it would be any smooth curve, a smooth drop as well. Over the rise
of the slowest change that is called fast, it leaves its slope by no more than the least change that counts.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise

import numpy as np

from stagescope.core.errors import InputError
from stagescope.detect.events import around, first_crossing
from stagescope.detect.limits import LIMITS
from stagescope.detect.noise import FLUTTER, flutter
from stagescope.detect.noise_kernel import deviance, search, whiten
from stagescope.detect.shapes import FORMS, LONGEST, STEPS, Dictionary, Shape, columns
from stagescope.detect.stage import Transition

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
    early = LIMITS.early * (time[-1] - time[0])
    events = Search.of(time, curve / largest, origin - early, curves).events()
    return tuple(replace(event, amplitude=event.amplitude * largest, origin=origin) for event in events)


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
        """A curve whose clock begins at `origin`: records that stand out alone are left out, the others averaged in bins."""
        regular = lone_deviations(time, raw) == 0
        x, values = time[regular] - origin, raw[regular]
        edge = _bin_edges(x)
        last = np.append(edge[1:], len(x)) - 1
        count = last - edge + 1
        mean, middle = (np.add.reduceat(numbers, edge) / count for numbers in (values, x))
        unit = float(mean[0]), float(np.std(mean) or 1.0)
        return cls(time, raw, middle, (mean - unit[0]) / unit[1], time[regular][edge], time[regular][last], unit, origin, curves)

    def around(self, begin: int, end: int) -> "Search":
        """The records from one of this fit to another, in bins of their own."""
        inside = (self.raw_time >= self.first[begin]) & (self.raw_time <= self.last[end])
        return Search.of(self.raw_time[inside], self.raw[inside], self.origin, self.curves)

    @property
    def time(self) -> np.ndarray:
        return self.x + self.origin

    @cached_property
    def size(self) -> np.ndarray:
        """The standard deviation of each record's noise, even or as the curve shows it, whichever is likelier."""
        even, local = np.ones(len(self.x)), flutter(self.x, self.curve)
        if not np.all(local > 1e-9):  # what rounding leaves of a clock that is far from 0 is no noise
            return even
        local = local / np.median(local)
        table = np.column_stack([self.base, self.curve])
        values = [search(table, *self.gaps, size, STARTS, self.floor, self.most_bend, 0.2)[1] for size in (even, local)]
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
    def least(self) -> float:
        """The least change that counts, in units of the curve."""
        return LIMITS.share * float(np.ptp(self.curve))

    @cached_property
    def floor(self) -> float:
        """The least sum of squares: shapes are ideal, and miss a change as large as the range over a rise of few records."""
        return len(self.x) * max(LIMITS.share * (LIMITS.misfit * float(np.ptp(self.curve))) ** 2, 1e-24)

    @cached_property
    def most_bend(self) -> float:
        """The variance per unit of u of the slope of a drift: bend L^3/3 is that of its departure from a line over L."""
        return 3 * self.least**2 / LONGEST**3

    def whitened(self, noise: np.ndarray, table: np.ndarray) -> tuple[np.ndarray, float]:
        natural = np.array([np.tanh(noise[0]), np.exp(noise[1]), np.exp(noise[2])])
        out = np.empty_like(table)
        logs = whiten(np.ascontiguousarray(table), *self.gaps, self.size, natural, out)
        return out, logs

    def design(self, shapes: Sequence[Shape]) -> np.ndarray:
        return np.column_stack([self.base, *(shape.on(self.x) for shape in shapes)])

    def deviance(self, noise: np.ndarray, design: np.ndarray) -> float:
        table = np.column_stack([design, self.curve])
        return deviance(table, *self.gaps, self.size, noise, self.floor, self.most_bend, np.empty_like(table))

    def fitted(self, shapes: tuple[Shape, ...], starts: np.ndarray, least: float = 0.2) -> Fit:
        table = np.column_stack([self.design(shapes), self.curve])
        noise, value = search(table, *self.gaps, self.size, np.atleast_2d(starts), self.floor, self.most_bend, least)
        return Fit(noise, shapes, value)

    def refined(self, fit: Fit, j: int) -> Fit:
        """Centre and rise of one shape of least deviance at the noise of the fit, by a pattern search."""
        shape, best, step = fit.shapes[j], fit.deviance, 0.3
        design = self.design((*fit.shapes[:j], *fit.shapes[j + 1 :]))
        if shape.form == "jump":
            return fit
        while step > 0.01:
            improved = False
            for centre, rise in ((step, 0), (-step, 0), (0, step), (0, -step)):
                trial = replace(shape, centre=shape.centre * np.exp(centre * shape.rise), rise=shape.rise * np.exp(rise))
                if (shape.form == "decay" and centre) or trial.rise > max(shape.rise, shape.slowest):
                    continue
                value = self.deviance(fit.noise, np.column_stack([design, trial.on(self.x)]))
                if value < best - 1e-6:
                    shape, best, improved = trial, value, True
            step *= 1.0 if improved else 0.5
        return Fit(fit.noise, (*fit.shapes[:j], shape, *fit.shapes[j + 1 :]), best)

    def proposals(self, fit: Fit) -> list[Shape]:
        """The shape of each form that gains most, at the noise of the fit and at white noise."""
        shapes = []
        for noise in (fit.noise, QUIET):
            white, _ = self.whitened(noise, np.column_stack([self.design(fit.shapes), self.curve]))
            table = self.quiet_table if noise is QUIET else self.whitened(noise, self.dictionary.table)[0]
            basis = np.linalg.qr(white[:, :-1])[0]
            residual = white[:, -1] - basis @ (basis.T @ white[:, -1])
            total = np.einsum("ij,ij->j", table, table)
            norms = total - np.sum((basis.T @ table) ** 2, axis=0)
            gain = np.where(norms > 1e-6 * total, (residual @ table) ** 2 / np.maximum(norms, 1e-300), 0.0)
            for form in range(len(FORMS)):
                places = np.flatnonzero(self.dictionary.forms == form)
                if places.size:
                    shapes.append(self.dictionary.shape(int(places[np.argmax(gain[places])])))
        return list(dict.fromkeys(shapes))

    def cost(self, fit: Fit) -> float:
        """Deviance and penalties."""
        return fit.deviance + sum(self.penalty[FORMS.index(shape.form)] for shape in fit.shapes)

    def best_fit(self) -> Fit:
        """Shapes and noise of least cost, from both ends: all is noise, and shapes are added; all is shape, and they are dropped.

        A walk can look like several drops, none of which gains alone; with white noise alone every one of them gains.
        """
        noisy, quiet = self.fitted((), STARTS), Fit(QUIET, (), self.deviance(QUIET, self.base))
        best = min((self.pruned(self.grown(fit)) for fit in (noisy, quiet)), key=self.cost)
        for j in range(len(best.shapes)):
            best = self.refined(best, j)
        return best

    def grown(self, fit: Fit) -> Fit:
        """Shapes are added while one gains more than it costs. Noise that is white stays so until all are there."""
        best, white = fit, fit.noise is QUIET
        while len(fit.shapes) <= min(len(best.shapes) + 1, LIMITS.events):  # two drops may gain together what one alone does not
            tries = [(*fit.shapes, shape) for shape in self.proposals(fit)]
            starts = np.stack([fit.noise, QUIET])
            fits = [Fit(QUIET, t, self.deviance(QUIET, self.design(t))) if white else self.fitted(t, starts, 1.0) for t in tries]
            fits = [self.refined(trial, len(fit.shapes)) for trial in sorted(fits, key=self.cost)[: len(FORMS)]]
            fit = min(fits if white else [self.fitted(trial.shapes, trial.noise) for trial in fits], key=self.cost)
            best = min(best, fit, key=self.cost)
        return self.fitted(best.shapes, STARTS) if white else best

    def pruned(self, fit: Fit) -> Fit:
        """The fit of least cost on the way to no shape, on which the shape that is least sure is dropped."""
        best = fit
        while fit.shapes:
            heights, errors = self.heights(fit)
            j = int(np.argmin(np.abs(heights / errors)))
            fit = self.fitted((*fit.shapes[:j], *fit.shapes[j + 1 :]), np.stack([fit.noise, *STARTS]))
            best = min(best, fit, key=self.cost)
        return best

    def heights(self, fit: Fit) -> tuple[np.ndarray, np.ndarray]:
        """Heights of the shapes by least squares, and their errors in units of the noise; one that repeats others gets little."""
        white, _ = self.whitened(fit.noise, np.column_stack([self.design(fit.shapes), self.curve]))
        scale = np.sqrt(np.einsum("ij,ij->j", white, white)[:-1]) + 1e-300
        columns = white[:, :-1] / scale
        inverse = np.linalg.inv(columns.T @ columns + 1e-11 * np.eye(len(scale)))
        shapes = slice(self.base.shape[1], None)
        return (inverse @ (columns.T @ white[:, -1]) / scale)[shapes], (np.sqrt(np.diag(inverse)) / scale)[shapes]

    def interval(self, fit: Fit, j: int) -> tuple[float, float]:
        """Ends of the 95 % interval of a step's centre: its posterior over centres, rises and forms, at the noise of the fit."""
        fixed = fit.shapes[:j] + fit.shapes[j + 1 :]
        white, _ = self.whitened(fit.noise, np.column_stack([self.design(fixed), self.curve]))
        basis = np.linalg.qr(white[:, :-1])[0]
        residual = white[:, -1] - basis @ (basis.T @ white[:, -1])
        total, n, p = float(residual @ residual), len(self.x), white.shape[1]
        floor = max(self.floor, n * (LIMITS.misfit * float(self.heights(fit)[0][j])) ** 2)
        centres, weights, u = [], [], np.log(self.x)

        def deviances(form: str, centre: np.ndarray, rise: np.ndarray) -> np.ndarray:
            table, _ = self.whitened(fit.noise, columns(form, self.x, centre, rise))
            table = table - basis @ (basis.T @ table)
            gain = (residual @ table) ** 2 / np.maximum(np.einsum("ij,ij->j", table, table), 1e-12)
            remaining = np.maximum(total - gain, 0.0) / floor
            return (n - p) * (np.log(np.maximum(remaining, 1)) + np.minimum(remaining, 1))

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
        before, after = self.records_around(*shape.span)
        if after - before <= 1:  # it may lie anywhere in the bins beside it
            return float(min(low, self.first[before] - self.origin)), float(max(high, self.last[after] - self.origin))
        shift = (
            LIMITS.misfit * shape.slope_length
        )  # what the nearest shape misses moves its middle, however many records there are
        low, high = low - shift, high + shift
        return float(low), float(high)

    def closer(self, fit: Fit, j: int, spans: dict[int, tuple[int, int]]) -> tuple["Search", Fit, int]:
        """A brief step among the records around it alone, as long as they were averaged: by its length, or by two plateaus."""
        begin, end = spans[j]
        if end - begin >= LIMITS.fewest:
            return self, fit, j
        side = max(2 * LIMITS.records, end - begin)
        first = max([0, begin - side, *(span[1] for k, span in spans.items() if k != j and span[1] <= begin)])
        last = min([len(self.x) - 1, end + side, *(span[0] for k, span in spans.items() if k != j and span[0] >= end)])
        near = self.around(first, last)
        if len(near.x) <= last - first + 1:
            return self, fit, j
        empty = Fit(QUIET, (), 0.0)
        fits = [near.fitted((shape,), STARTS) for shape in near.proposals(empty) if shape.form in STEPS]
        refined_fit = near.refined(min(fits, key=near.cost), 0)
        return near.closer(refined_fit, 0, {0: near.records_around(*refined_fit.shapes[0].span)})

    def events(self) -> tuple[Transition, ...]:
        """What counts of the fit: groups of shapes with no rest between them, as transitions or spikes."""
        fit = self.best_fit()
        heights, _ = self.heights(fit)
        fast = [j for j in range(len(fit.shapes)) if self.is_fast(fit.shapes[j]) and abs(heights[j]) >= self.least]
        spans = {j: self.records_around(*fit.shapes[j].span) for j in fast}
        fast.sort(key=lambda j: spans[j])
        groups: list[list[int]] = []
        for j in fast:
            back = bool(groups) and heights[j] * heights[groups[-1][-1]] < 0  # a spike rests for less than a plateau
            if groups and spans[j][0] - max(spans[k][1] for k in groups[-1]) < (LIMITS.records if back else 1):
                groups[-1].append(j)
            else:
                groups.append([j])
        self.join_excursions(groups, fit, heights, spans)
        events = [self.event(fit, heights, group, spans) for group in groups]
        events = list(self.counted([event for event in events if event is not None]))
        spikes = [spike for spike in self.lone_spikes() if not any(e.start <= spike.t <= e.stop for e in events)]
        return tuple(sorted((*events, *spikes), key=lambda event: event.t))

    def join_excursions(self, groups: list[list[int]], fit: Fit, heights: np.ndarray, spans: dict[int, tuple[int, int]]) -> None:
        """A change and its opposite are one spike if the stay between them is no stage: it lasts for less than `share` of the
        run, and ends before 5 x if it begins at x."""
        i = 0
        while i < len(groups):
            for k in range(len(groups) - 1, i, -1):
                members = [j for group in groups[i : k + 1] for j in group]
                begin, end = self.x[max(spans[j][1] for j in groups[i])], self.x[min(spans[j][0] for j in groups[k])]
                brief = end - begin < LIMITS.share * (self.x[-1] - self.x[0]) and np.log(end / begin) < LONGEST
                if brief and self.returns(fit, heights, members):
                    groups[i : k + 1] = [members]
                    break
            i += 1

    def returns(self, fit: Fit, heights: np.ndarray, group: list[int]) -> bool:
        """Whether shapes together leave no change that counts, or none of which the records are sure (BIC: ln n)."""
        steps = [j for j in group if fit.shapes[j].form in STEPS]
        net = sum(float(heights[j]) for j in steps)
        if abs(net) < self.least:
            return True
        path = sum(heights[j] * fit.shapes[j].on(self.x) for j in group) - net * fit.shapes[steps[-1]].on(self.x)
        outside = self.design([shape for j, shape in enumerate(fit.shapes) if j not in group])
        return self.deviance(fit.noise, np.column_stack([outside, path])) - fit.deviance < np.log(len(self.x))

    def lone_spikes(self) -> Iterator[Transition]:
        """Single records that stand out by more than the range of the thirty around them: heavy tails have few such."""
        time, raw = self.raw_time, self.raw
        away = lone_deviations(time, raw)
        for i in np.flatnonzero(np.abs(away) >= LIMITS.share * np.ptp(raw)):
            around = slice(max(0, i - FLUTTER // 2), i + FLUTTER // 2 + 1)
            if 0 < i < len(raw) - 1 and abs(away[i]) >= np.ptp(raw[around][away[around] == 0]):
                before, middle, after = (float(moment) for moment in time[i - 1 : i + 2])
                yield Transition(middle, before, after, before, after, float(away[i]), "spike")

    def is_fast(self, shape: Shape) -> bool:
        """Not drift: it is faster than a relaxation and than the run, and something rests before it and after it."""
        (start, stop), time = shape.span, self.raw_time - self.origin
        brief = shape.rise <= LONGEST and stop - start <= (self.x[-1] - self.x[0]) / 2
        return brief and bool(min(np.sum(time < start), np.sum(time >= stop)) >= LIMITS.records)

    def is_jump(self, fit: Fit, j: int) -> bool:
        """Whether no record tells its rise from a jump: none lies inside, or one that noise may move (BIC: ln n)."""
        first, last = self.records_around(*fit.shapes[j].span)
        if last - first != 2:
            return last - first < 2
        other_shapes = (*fit.shapes[:j], *fit.shapes[j + 1 :])
        jumps = [Shape("jump", float(np.mean(self.x[i : i + 2])), 0.0) for i in (first, first + 1)]
        likeliest = min(self.deviance(fit.noise, self.design((*other_shapes, jump))) for jump in jumps)
        return likeliest - fit.deviance < np.log(len(self.x))

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
        near, one, k = self, fit, group[0]
        if spike:
            centre = float(self.x[begin + top])
            low, high = float(self.x[begin]), float(self.x[end])
        else:
            steps = [j for j in group if fit.shapes[j].form in STEPS and heights[j] * net > 0]
            if not steps:
                return None
            main = max(steps, key=lambda j: abs(heights[j]))
            near, one, k = self.closer(fit, main, spans) if len(group) == 1 else (self, fit, main)
            (low, high), centre = near.interval(one, k), one.shapes[k].centre
            if len(group) > 1:
                crossed = first_crossing(self.x[begin : end + 1], way, net / 2, net > 0) or centre
                low, high, centre = low * crossed / centre, high * crossed / centre, crossed
        centre, low, high = (float(place + self.origin) for place in (centre, low, high))
        before, after = around(self.raw_time, centre)
        kind = "spike" if spike else one.shapes[k].form
        if kind in STEPS and near.is_jump(one, k):
            kind = "jump"
        kind = "sigmoid" if kind == "relaxation" else kind
        return Transition(
            centre,
            float(min(low, centre, before)),
            float(max(high, centre, after)),
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
            inside = (self.time >= event.start) & (self.time <= event.stop)
            if event.kind != "spike" and np.count_nonzero(inside) >= LIMITS.records:  # shapes that do not fit have another middle
                middle = ((before + after) / 2 - self.unit[0]) / self.unit[1]
                half = first_crossing(self.time[inside], self.curve[inside], middle, change > 0) or event.t
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
