"""Views of a run of linear attention, and the run in words: who wins which direction and when, and M beside regression."""

from functools import partial
from itertools import zip_longest
from typing import Any

import numpy as np

from stagescope.detect.stage import Stage
from stagescope.papers.linear_icl import forms
from stagescope.papers.linear_icl.evidence import Evidence
from stagescope.papers.linear_icl.reading import LinearReading
from stagescope.papers.linear_icl.study import WORDS
from stagescope.views.any_run import loss_view, matrix, norms_view, speed_view
from stagescope.views.curves import CELLS, MOST, curves, left_out, many_curves, shown
from stagescope.views.view import LARGEST_TABLE, Curve, Explained, Level, Maker, SmallTable, View, captions, motion_words, plain


def linear_views(reading: LinearReading) -> list[Maker]:
    """Loss, heads, competition, directions, M beside regression, speed and norms. They show the frames of the run itself."""
    run = reading.run
    seen = Evidence(run, run, reading.law)
    own = [partial(make, reading, seen) for make in (_loss, _values, _competition, _directions, _map, _distance)]
    return [*own, partial(speed_view, run), partial(norms_view, run)]


def _loss(reading: LinearReading, seen: Evidence) -> View | None:
    about = "Squared error of the answer. A level l_m is the loss of regression on m principal components."
    names = [0, seen.task.dim] if seen.model.merged else range(len(seen.levels))
    levels = tuple(Level(f"l_{m}", float(value)) for m, value in zip(names, seen.levels, strict=True))
    return loss_view(reading.run, levels, about)


def _of_heads(seen: Evidence, values: np.ndarray) -> tuple[Curve, ...]:
    """Heads in the order in which they learn directions, then by value. It is that of all views: a head has one colour."""
    largest = np.argsort(-np.abs(seen.params["v"][-1]), kind="stable").tolist()
    winners = [] if seen.model.merged else seen.owners[: seen.model.reach]
    names = [f"head {h + 1}" for h in range(seen.model.heads)]
    return many_curves(values, names, first=list(dict.fromkeys([*winners, *largest])))


def _values(reading: LinearReading, seen: Evidence) -> View:
    separate = "One rises at each drop; levels are the final values of a head of rank one with one direction."
    about = f"|v_h| of every head. {'All of them rise at the one drop.' if seen.model.merged else separate}"
    held = range(0 if seen.model.merged else seen.model.reach)
    levels = [Level(f"v of direction {i + 1}", forms.head_value(seen.task, (i,))) for i in held]
    lines = _of_heads(seen, np.abs(seen.params["v"]))
    return curves("head-values", "Values of the heads", about + left_out(seen.model.heads), "|v|", lines, levels=levels, log=True)


def _competition(reading: LinearReading, seen: Evidence) -> View | None:
    """At each time, the blow-up times T_h that the cascade gives the heads still silent: the lowest line wins."""
    drops, winners = reading.curves.predicted, []
    if not drops:
        return None
    waits = np.full((len(seen.time), seen.model.heads), np.nan)
    for drop in drops:
        waits[seen.time >= drop.since] = drop.waits
    waits = np.where(np.isfinite(waits), waits, np.nan)
    for m, (drop, when) in enumerate(zip_longest(drops[:8], reading.curves.times[: min(8, len(drops))]), start=1):
        measured = "-" if when is None else f"{when:.5g}"
        winners.append(f"d{m} head {drop.head + 1} at {drop.time:.5g} (measured {measured})")
    about = "When each silent head would blow up, predicted from the start after each drop. The least one wins:"
    now = np.where(seen.time >= 0.3 * np.nanmin(waits), seen.time, np.nan)  # earlier it would only stretch the axis
    lines = [*_of_heads(seen, waits), Curve("now", now, faint=True)]
    return curves(
        "competition",
        "Head competition",
        f"{about} {'; '.join(winners)}.",
        "predicted blow-up time T_h",
        lines[: MOST + 1],
        log=True,
    )


def _directions(reading: LinearReading, seen: Evidence) -> View:
    about = "M_ii over its final value 1/(lambda_i a_i): the share of each direction that is learned."
    names = [f"direction {i + 1}, lambda {value:.3g}" for i, value in enumerate(seen.task.spectrum)]
    made = many_curves(seen.learned, names)
    return curves(
        "directions", "Learned directions", about + left_out(seen.task.dim), "share", made, levels=[Level("learned", 1.0)]
    )


def _map(reading: LinearReading, seen: Evidence) -> View:
    """M of each frame, each entry over that of full regression on its row."""
    frames = shown(seen.run, seen.task.dim**2, CELLS).frames
    names = tuple(f"e_{i + 1}" for i in range(seen.task.dim))
    values = (seen.map / forms.final_map(seen.task)[:, None])[slice(None) if frames is None else frames]
    about = (
        "M in the eigenbasis, each row over 1/(lambda_i a_i). Regression on m principal components has 1 on the first m places."
    )
    labels = {"rows": names, "columns": names, "row_axis": "direction", "column_axis": "query direction"}
    return matrix("map", "Map M", about, values, signed=True, frames=frames, **labels)


def _distance(reading: LinearReading, seen: Evidence) -> View:
    """How far M is from regression on m components, for every m."""
    top = float(forms.final_map(seen.task)[0])
    maps = [forms.regression_map(seen.task, m) for m in range(seen.task.dim + 1)]
    far = np.array([np.max(np.abs(seen.map - best), axis=(1, 2)) for best in maps]).T / top
    about = "Largest entry by which M differs from least squares on m principal components, over M_11. A dip is a plateau."
    names = [f"{m} components" for m in range(seen.task.dim + 1)]
    return curves(
        "regression", "Distance from principal component regression", about, "of M_11", many_curves(far, names), log=True
    )


def explain_run(reading: LinearReading) -> Explained:
    law = reading.law
    sentence = f"{_sentence(law)} {motion_words(reading.run)}"
    return Explained(sentence, _spectrum_table(law), captions(reading.told_stages, _caption), WORDS.glossary["run"])


def _sentence(law: Any) -> str:
    task, model = law.process, law.model
    heads = "merged key-query matrices" if model.merged else f"separate keys and queries of rank {model.rank}"
    many = "head" if model.heads == 1 else "heads"
    lengths = task.contexts[0] if len(task.contexts) == 1 else f"{min(task.contexts)} to {max(task.contexts)}"
    return (
        f"Linear attention with {model.heads} {many} ({heads}) learns linear regression in context: from {lengths} pairs (x, y) "
        f"with inputs in {task.dim} dimensions it predicts y of one more x; the weights are new in every sequence."
    )


def _spectrum_table(law: Any) -> SmallTable | None:
    values = np.asarray(law.process.eigenvalues, dtype=float)
    if len(values) > LARGEST_TABLE:
        return None
    return SmallTable(
        "Variance of the inputs in each direction", ("variance",), tuple(str(i + 1) for i in range(len(values))), values[None]
    )


def _caption(stage: Stage) -> str:
    facts = stage.facts
    if "components" not in facts:
        return plain(stage)
    count = facts["components"]
    if count == 0:
        return f"Nothing is learned yet: the loss rests at {facts['loss']:.5g}, and all heads are small."
    what = "the direction of largest variance" if count == 1 else f"the {count} directions of largest variance"
    best = f"the best that is possible so is {facts['level']:.5g}"
    return f"The model regresses on {what}: the loss is {facts['loss']:.5g}, and {best}."
