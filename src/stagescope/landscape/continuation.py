"""A critical point followed over a number that its loss depends on: the branch, its folds, and where rates cross."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import combinations

import numpy as np

from stagescope.landscape.branch import Branch, Crossing
from stagescope.landscape.follower import CLOSED, RULE, Follower, Spot, Zeros
from stagescope.landscape.tracking import Modes, Tracked, inside, outside

SAME = 1e-4
"""Share of the span within which crossings of one kind are one, and the zero of a rate is that of its fold."""

FAMILY = "critical points of equal loss go through each: the member nearest to that of the point before is shown, with its rates"
SMALL = 1e-3
"""A rate is zero where it is this share of those beside it; one that is not was taken for another mode's."""


def follow(zeros: Zeros, start: np.ndarray, value: float, low: float, high: float) -> Branch:
    """The branch of critical points through a start, to both sides, while the value is between `low` and `high`."""
    follower = Follower(zeros, start, value, low, high)
    down, ended = follower.side(-1.0)
    up, stopped = ([follower.first], "") if ended == CLOSED else follower.side(1.0)
    steps = [spot.step for spot in down[-2::-1]]
    back = [replace(spot, tangent=-spot.tangent, step=step) for spot, step in zip(down[:0:-1], steps, strict=True)]
    tracked = Tracked(zeros, [*back, *up])
    folds = list(_folds(follower, tracked))
    found = [*_zeros_inside(follower, tracked, folds), *_zeros_outside(follower, tracked), *_orders(follower, tracked)]
    notes = dict.fromkeys(note for note in (ended, stopped, FAMILY if follower.family else "") if note)
    return Branch(tracked.points, tuple(folds), tuple(_distinct(found, SAME * follower.span)), tuple(notes))


def _pairs(tracked: Tracked) -> Iterator[tuple[int, Spot, Spot]]:
    for i in range(len(tracked.spots) - 1):
        yield i, tracked.spots[i], tracked.spots[i + 1]


def _place(follower: Follower, spot: Spot, kind: str, what: str) -> Crossing:
    return Crossing(spot.value, follower.zeros.loss(spot.vector, spot.value), kind, what)


def _folds(follower: Follower, tracked: Tracked) -> Iterator[Crossing]:
    """Where the value turns back along the branch, by more than rounding."""
    for _, at, following in _pairs(tracked):
        if at.tangent[-1] * following.tangent[-1] < 0:
            spot = follower.located(at, following, lambda spot: float(spot.tangent[-1]))
            if max(abs(spot.value - at.value), abs(spot.value - following.value)) > RULE.level * follower.span:
                yield _place(follower, spot, "fold", "the branch turns back")


def _zeros_inside(follower: Follower, tracked: Tracked, folds: list[Crossing]) -> Iterator[Crossing]:
    """Where a rate inside the model is zero, folds left out: there one always is."""
    for i, at, following in _pairs(tracked):
        for mode in np.flatnonzero(tracked.signs[""][i] * tracked.signs[""][i + 1] < 0):
            rate = _rate(tracked.inside[i], tracked.inside[i + 1], int(mode), lambda spot: inside(follower.zeros, spot))
            spot = follower.located(at, following, rate)
            if abs(rate(spot)) > SMALL * max(abs(rate(at)), abs(rate(following))):
                continue  # two rates that do not cross
            if all(abs(spot.value - fold.value) > SAME * follower.span for fold in folds):
                yield _place(follower, spot, "bifurcation", "a rate inside the model is zero")


def _zeros_outside(follower: Follower, tracked: Tracked) -> Iterator[Crossing]:
    for name, modes in tracked.outside.items():
        for i, at, following in _pairs(tracked):
            for mode in np.flatnonzero(tracked.signs[name][i] * tracked.signs[name][i + 1] < 0):

                def here(spot: Spot, kind: str = name) -> Modes:
                    return outside(follower.zeros, spot)[kind]

                rate = _rate(modes[i], modes[i + 1], int(mode), here)
                spot = follower.located(at, following, rate)
                if abs(rate(spot)) <= SMALL * max(abs(rate(at)), abs(rate(following))):
                    yield _place(follower, spot, "opening", f"a rate of {name} is zero")


def _rate(before: Modes, after: Modes, mode: int, here: Callable[[Spot], Modes]) -> Callable[[Spot], float]:
    """The rate of one mode at a place between two points, by its directions at both."""
    left, right = (before.left + after.left)[:, mode], (before.right + after.right)[:, mode]

    def rate(spot: Spot) -> float:
        found = here(spot)
        alike = (left @ found.left) * (right @ found.right)
        best = int(np.argmax(np.abs(alike)))
        return float(found.rates[best] * np.sign(alike[best]))

    return rate


def _orders(follower: Follower, tracked: Tracked) -> Iterator[Crossing]:
    """Where two kinds of openings are equally fast, so that the order of what opens swaps."""
    for one, other in combinations(tracked.outside, 2):

        def lead(spot: Spot, names: tuple[str, str] = (one, other)) -> float:
            found = outside(follower.zeros, spot)
            return _top(found[names[0]]) - _top(found[names[1]])

        pairs = list(zip(tracked.outside[one], tracked.outside[other], strict=True))
        real = [min(_top(a), _top(b)) > zero for (a, b), zero in zip(pairs, tracked.zero, strict=True)]
        leads = [_top(a) - _top(b) for a, b in pairs]
        for i, at, following in _pairs(tracked):
            if real[i] and real[i + 1] and leads[i] * leads[i + 1] < 0:
                yield _place(follower, follower.located(at, following, lead), "order", f"{one} and {other} open equally fast")


def _top(modes: Modes) -> float:
    return float(np.abs(modes.rates).max(initial=0.0))


def _distinct(found: list[Crossing], close: float) -> Iterator[Crossing]:
    """Crossings of equal rates at one place are one."""
    kept: list[Crossing] = []
    for each in found:
        same = (old for old in kept if (old.kind, old.what) == (each.kind, each.what))
        if not any(abs(each.value - old.value) <= close and abs(each.loss - old.loss) <= close for old in same):
            kept.append(each)
            yield each
