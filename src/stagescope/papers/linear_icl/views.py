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
    evidence = Evidence(run, run, reading.law)
    views = [partial(make, reading, evidence) for make in (_loss, _values, _competition, _directions, _map, _distance)]
    return [*views, partial(speed_view, run), partial(norms_view, run)]


def _loss(reading: LinearReading, evidence: Evidence) -> View | None:
    about = "Squared error of the answer. A level l_m is the loss of regression on m principal components."
    names = [0, evidence.task.dim] if evidence.model.merged else range(len(evidence.levels))
    levels = tuple(Level(f"l_{m}", float(value)) for m, value in zip(names, evidence.levels, strict=True))
    return loss_view(reading.run, levels, about)


def _of_heads(evidence: Evidence, values: np.ndarray) -> tuple[Curve, ...]:
    """Heads in the order in which they learn directions, then by value. It is that of all views: a head has one colour."""
    largest = np.argsort(-np.abs(evidence.params["v"][-1]), kind="stable").tolist()
    winners = [] if evidence.model.merged else evidence.owners[: evidence.model.reach]
    names = [f"head {h + 1}" for h in range(evidence.model.heads)]
    return many_curves(values, names, first=list(dict.fromkeys([*winners, *largest])))


def _values(reading: LinearReading, evidence: Evidence) -> View:
    separate = "One rises at each drop; levels are the final values of a head of rank one with one direction."
    about = f"|v_h| of every head. {'All of them rise at the one drop.' if evidence.model.merged else separate}"
    directions = range(0 if evidence.model.merged else evidence.model.reach)
    levels = [Level(f"v of direction {i + 1}", forms.head_value(evidence.task, (i,))) for i in directions]
    lines = _of_heads(evidence, np.abs(evidence.params["v"]))
    return curves(
        "head-values", "Values of the heads", about + left_out(evidence.model.heads), "|v|", lines, levels=levels, log=True
    )


def _competition(reading: LinearReading, evidence: Evidence) -> View | None:
    """At each time, the blow-up times T_h that the cascade gives the heads still silent: the lowest line wins."""
    drops, winners = reading.curves.predicted, []
    if not drops:
        return None
    waits = np.full((len(evidence.time), evidence.model.heads), np.nan)
    for drop in drops:
        waits[evidence.time >= drop.since] = drop.waits
    waits = np.where(np.isfinite(waits), waits, np.nan)
    for m, (drop, time) in enumerate(zip_longest(drops[:8], reading.curves.times[: min(8, len(drops))]), start=1):
        measured = "-" if time is None else f"{time:.5g}"
        winners.append(f"d{m} head {drop.head + 1} at {drop.time:.5g} (measured {measured})")
    about = "When each silent head would blow up, predicted from the start after each drop. The least one wins:"
    now = np.where(evidence.time >= 0.3 * np.nanmin(waits), evidence.time, np.nan)  # earlier it would only stretch the axis
    lines = [*_of_heads(evidence, waits), Curve("now", now, faint=True)]
    return curves(
        "competition",
        "Head competition",
        f"{about} {'; '.join(winners)}.",
        "predicted blow-up time T_h",
        lines[: MOST + 1],
        log=True,
    )


def _directions(reading: LinearReading, evidence: Evidence) -> View:
    about = "M_ii over its final value 1/(lambda_i a_i): the share of each direction that is learned."
    names = [f"direction {i + 1}, lambda {value:.3g}" for i, value in enumerate(evidence.task.spectrum)]
    lines = many_curves(evidence.learned, names)
    return curves(
        "directions", "Learned directions", about + left_out(evidence.task.dim), "share", lines, levels=[Level("learned", 1.0)]
    )


def _map(reading: LinearReading, evidence: Evidence) -> View:
    """M of each frame, each entry over that of full regression on its row."""
    frames = shown(evidence.run, evidence.task.dim**2, CELLS).frames
    names = tuple(f"e_{i + 1}" for i in range(evidence.task.dim))
    values = (evidence.map / forms.final_map(evidence.task)[:, None])[slice(None) if frames is None else frames]
    about = (
        "M in the eigenbasis, each row over 1/(lambda_i a_i). Regression on m principal components has 1 on the first m places."
    )
    labels = {"rows": names, "columns": names, "row_axis": "direction", "column_axis": "query direction"}
    return matrix("map", "Map M", about, values, signed=True, frames=frames, **labels)


def _distance(reading: LinearReading, evidence: Evidence) -> View:
    """How far M is from regression on m components, for every m."""
    top = float(forms.final_map(evidence.task)[0])
    maps = [forms.regression_map(evidence.task, m) for m in range(evidence.task.dim + 1)]
    far = np.array([np.max(np.abs(evidence.map - best), axis=(1, 2)) for best in maps]).T / top
    about = "Largest entry by which M differs from least squares on m principal components, over M_11. A dip is a plateau."
    names = [f"{m} components" for m in range(evidence.task.dim + 1)]
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
    noun = "head" if model.heads == 1 else "heads"
    lengths = task.contexts[0] if len(task.contexts) == 1 else f"{min(task.contexts)} to {max(task.contexts)}"
    return (
        f"Linear attention with {model.heads} {noun} ({heads}) learns linear regression in context: from {lengths} pairs (x, y) "
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
    components = "the direction of largest variance" if count == 1 else f"the {count} directions of largest variance"
    best = f"the best that is possible so is {facts['level']:.5g}"
    return f"The model regresses on {components}: the loss is {facts['loss']:.5g}, and {best}."
