"""Runs that share a scrubber, and their views that share a plot: only what is alike is drawn together."""

import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import takewhile
from typing import Any

import numpy as np

from stagescope.papers.reading import reading
from stagescope.runs.run import Run
from stagescope.views.axes import log_time, log_values
from stagescope.views.view import Curves, Level, Matrices, Portrait, View

Owned = tuple[str, View]
"""The name of a run, and a view of it."""


def scenes_of(portraits: Sequence[Portrait]) -> list[list[Portrait]]:
    """Runs by the clock and by what is shown of them: runs of unlike models do not share a plot, be they of one study."""
    scenes: dict[Any, list[Portrait]] = {}
    for portrait in portraits:
        scenes.setdefault((portrait.run.clock, _family(portrait.run)), []).append(portrait)
    return [joined(scene) for scene in scenes.values()]


def _family(run: Run) -> Any:
    """Runs whose views are made by the same function look alike; runs of no paper are alike where their fields are.

    Models that were trained elsewhere are alike where they have one name and as many heads.
    """
    seen, source = reading(run), run.spec.get("source") or {}
    return seen.type if seen.kind is None else (seen.kind.views, str(source.get("model")), str(source.get("heads")))


def starts_log(scene: Sequence[Portrait]) -> bool:
    """Whether the time of a scene, over the frames of all its runs, starts on a logarithmic axis."""
    return log_time(np.unique(np.concatenate([portrait.run.time for portrait in scene])))


def joined(scene: Sequence[Portrait]) -> list[Portrait]:
    """The portraits of a scene with views that can be drawn slot by slot.

    Views of a slot that mean different things, by title, axes or marks, get slots of their own. Those that stay together
    have one sentence, which says for which run it holds, and levels that are not the same in all of them name their run.
    """
    if len(scene) < 2:
        return list(scene)
    owned = [(portrait.name, view) for portrait in scene for view in portrait.views]
    made = iter(_together(_apart(owned)))
    return [replace(portrait, views=tuple(next(made) for _ in portrait.views)) for portrait in scene]


def _meaning(view: View) -> tuple[Any, ...]:
    """What two views of a slot must have in common to be drawn in one plot."""
    match view:
        case Curves():
            return ("curves", view.title, view.axis)
        case Matrices():
            marks = None if view.marks is None else view.marks.names
            return ("matrices", view.title, view.row_axis, view.column_axis, marks)
    return (type(view).__name__, view.title)


def _apart(owned: Sequence[Owned]) -> list[Owned]:
    """Views with a slot for each meaning; where titles of a slot's meanings are the same, they name their runs."""
    meanings: dict[str, dict[tuple[Any, ...], list[str]]] = {}
    for name, view in owned:
        meanings.setdefault(view.slot, {}).setdefault(_meaning(view), []).append(name)
    slots: dict[tuple[str, tuple[Any, ...]], str] = {}
    taken = set(meanings)
    for slot, found in meanings.items():
        for place, meaning in enumerate(found):
            slots[slot, meaning] = slot if place == 0 else _free(slot, taken)
    made = []
    for name, view in owned:
        found, meaning = meanings[view.slot], _meaning(view)
        alike = sum(other[1] == view.title for other in found) > 1
        title = f"{view.title} ({listed(found[meaning])})" if alike else view.title
        made.append((name, replace(view, slot=slots[view.slot, meaning], title=title)))
    return made


def _free(slot: str, taken: set[str]) -> str:
    number = 2
    while f"{slot}-{number}" in taken:
        number += 1
    taken.add(f"{slot}-{number}")
    return f"{slot}-{number}"


def _together(owned: Sequence[Owned]) -> list[View]:
    """Views with the sentence of their slot, and with levels that name their run where these differ."""
    slots = by_slot(owned)
    abouts = {slot: _about(found) for slot, found in slots.items()}
    made = []
    for name, view in owned:
        view = replace(view, about=abouts[view.slot])
        made.append(replace(view, levels=_levels(name, view, slots[view.slot])) if isinstance(view, Curves) else view)
    return made


def by_slot(owned: Iterable[Owned]) -> dict[str, list[Owned]]:
    found: dict[str, list[Owned]] = {}
    for name, view in owned:
        found.setdefault(view.slot, []).append((name, view))
    return found


def _about(owned: Sequence[Owned]) -> str:
    """The sentences that all views begin with, then those of single runs after their names."""
    split = [re.split(r"(?<=[.:]) ", view.about) for _, view in owned]
    shared = [same[0] for same in takewhile(lambda said: len(set(said)) == 1, zip(*split, strict=False))]
    rests: dict[str, list[str]] = {}
    for (name, _), sentences in zip(owned, split, strict=True):
        rests.setdefault(" ".join(sentences[len(shared) :]), []).append(name)
    return " ".join([*shared, *(f"{listed(names)}: {rest}" for rest, names in rests.items() if rest)])


def _levels(name: str, view: Curves, owned: Sequence[Owned]) -> tuple[Level, ...]:
    others = [other.levels for _, other in owned if isinstance(other, Curves)]
    named = (replace(level, name=f"{level.name} ({name})") for level in view.levels)
    return tuple(level if all(level in found for found in others) else own for level, own in zip(view.levels, named, strict=True))


def listed(names: Iterable[str], most: int = 3) -> str:
    """The first names, and the number of the others."""
    once = list(dict.fromkeys(names))
    more = len(once) - most
    return ", ".join(once[:most]) + (f" and {more} more" if more > 0 else "")


def shared(views: Sequence[View]) -> dict[str, Any]:
    """What all views of a slot start with: the range of colours, or whether values are on a logarithmic axis."""
    curves = [view for view in views if isinstance(view, Curves)]
    if curves:
        return {"start_log": log_values(curves)}
    ranges = [bounds(view) for view in views if isinstance(view, Matrices)]
    if not ranges:
        return {}
    low, high = min(one[0] for one in ranges), max(one[1] for one in ranges)
    if any(one[0] == -one[1] for one in ranges):
        high = max(-low, high)
        low = -high
    return {"low": low, "high": high}


def bounds(view: Matrices) -> tuple[float, float]:
    """The range of colours of one view; from 0 to 1 where its own is none."""
    good = -math.inf < view.low < view.high < math.inf
    return (float(view.low), float(view.high)) if good else (0.0, 1.0)
