"""Early stopping over the number of training sequences: rules, classes at the stop, and convex fits on the same data."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any

import numpy as np

from stagescope.errors import InputError
from stagescope.papers.incremental.levels import ClassLevels, class_levels
from stagescope.papers.incremental.stopping.claims import decided
from stagescope.papers.incremental.stopping.observables import VALIDATION, Stopping, check_rules, no_stopping, stopping
from stagescope.papers.incremental.study import FLOWS, STUDY, IncrementalOptions
from stagescope.progress import Progress, progress_for
from stagescope.workers import results

SIZES = "50:3200:7"
RULES = ("oracle", "held-out", "adaptive", "end")
CURVES = ("step", "training", "held", "validation")

Row = dict[str, Any]
Task = tuple[IncrementalOptions, int, int | None, float | None]
"""Options, seed, held-out sequences, patience: all that decides one row."""


@dataclass(frozen=True)
class Agreement:
    """In how many of the judged runs the class at the best stop is that of the best likelihood fit."""

    same: int
    judged: int
    runs: int

    @staticmethod
    def of(summary: list[dict[str, Any]]) -> "Agreement":
        return Agreement(*(sum(entry[name] for entry in summary) for name in ("same_class", "judged", "runs")))

    def __str__(self) -> str:
        rest = self.runs - self.judged
        return f"{self.same} of {self.judged} runs" + (f", {rest} not judged" if rest else "")


@dataclass(frozen=True)
class EarlyStopping:
    """What `early_stopping` found: a row for every run, in the order of sizes and seeds, with its curves.

    `levels` are those of the classes F_0 .. F_k; `settings` the options all runs share. A run that did not reach its end has
    a row with its status and reason and no numbers.
    """

    settings: Mapping[str, Any]
    levels: tuple[float, ...]
    rows: tuple[Row, ...]
    curves: tuple[Mapping[str, np.ndarray], ...]

    @property
    def failed(self) -> list[Row]:
        return [row for row in self.rows if "rules" not in row]

    def summary(self) -> list[dict[str, Any]]:
        """Means over the repetitions of each size; [least, largest] where they are called a range.

        `same_class` counts among the `judged` runs, those inside the regime of the claim; `not_judged` of a row says why not.
        """
        sizes = sorted({row["sequences"] for row in self.rows})
        groups = ((size, [row for row in self.rows if row["sequences"] == size and "rules" in row]) for size in sizes)
        return [_summary(size, rows) for size, rows in groups if rows]

    def json(self) -> dict[str, Any]:
        return {
            "settings": dict(self.settings),
            "levels": list(self.levels),
            "summary": self.summary(),
            "runs": [dict(row) for row in self.rows],
        }


def _summary(size: int, rows: list[Row]) -> dict[str, Any]:
    losses = {rule: [row["rules"][rule]["loss"] for row in rows] for rule in RULES}
    losses["ridge"] = [min(row["ridge"]) for row in rows]
    losses["likelihood"] = [min(row["likelihood"]["1e-05"]) for row in rows]
    judged = [row for row in rows if row["not_judged"] is None]
    gains = [row["stop_gain"] for row in rows]
    return {
        "sequences": size,
        "runs": len(rows),
        "loss": {name: float(np.mean(found)) for name, found in losses.items()},
        "loss_range": {name: [min(found), max(found)] for name, found in losses.items()},
        "stop_gain": float(np.mean(gains)),
        "stop_gain_range": [min(gains), max(gains)],
        "step": {rule: float(np.mean([row["rules"][rule]["step"] for row in rows])) for rule in RULES},
        "decided": {rule: float(np.mean([row["rules"][rule]["decided"] for row in rows])) for rule in RULES},
        "class_at_stop": [row["rules"]["oracle"]["class"] for row in rows],
        "best_class": [row["best_class"] for row in rows],
        "best_by_ridge": {ridge: [row["best_by_ridge"][ridge] for row in rows] for ridge in rows[0]["best_by_ridge"]},
        "same_class": sum(row["rules"]["oracle"]["class"] == row["best_class"] for row in judged),
        "judged": len(judged),
        "ridge_wins": sum(ridge < stop for ridge, stop in zip(losses["ridge"], losses["oracle"], strict=True)),
        "likelihood_by_class": np.mean([row["likelihood"]["1e-05"] for row in rows], axis=0).tolist(),
        "ridge_by_class": np.mean([row["ridge"] for row in rows], axis=0).tolist(),
    }


def early_stopping(
    preset: str | None = "ladder",
    *,
    sizes: Sequence[int] | str = SIZES,
    repetitions: int = 5,
    seed: int = 0,
    held_sequences: int | None = None,
    patience: float | None = None,
    workers: int = 1,
    progress: Progress | bool | None = None,
    **options: Any,
) -> EarlyStopping:
    """Train on N sequences for every size N and judge where each rule stops [ISA:early-stopping].

    `sizes` are numbers of training sequences, or "lo:hi:n" for n of them at equal ratios. Repetition r has the seed
    `seed` + r: other sequences and initial scores on the same task. `options` are those of the study. `held_sequences`
    and `patience` as in `stopping`. Results do not depend on `workers`, the number of processes.
    """
    chosen = checked_sizes(sizes)
    _check_counts(repetitions, seed, workers)
    check_rules(held_sequences, patience)
    if "sequences" in options:
        raise InputError(f"sequences {options['sequences']}: the numbers of training sequences are given as sizes")
    configured: list[Any] = [STUDY.configured(preset, **{**options, "sequences": size}) for size in chosen]
    levels = _prepared(configured, seed)
    tasks: list[Task] = [(each, seed + r, held_sequences, patience) for each in configured for r in range(repetitions)]
    found: dict[int, tuple[Row, Mapping[str, np.ndarray]]] = {}
    with nullcontext(progress) if isinstance(progress, Progress) else progress_for(progress) as bar:
        bar.begin("early stopping", len(tasks), "runs")
        for number, row, curves in _results(tasks, workers):
            found[number] = row, curves
            bar.update(len(found))
    rows = [found[number] for number in range(len(tasks))]
    shared = {name: value for name, value in configured[0].model_dump(mode="json").items() if name != "sequences"}
    settings = {"preset": preset, "sizes": list(chosen), "repetitions": repetitions, "seed": seed, "validation": VALIDATION}
    losses = tuple(float(value) for value in levels.losses)
    return EarlyStopping({**settings, **shared}, losses, tuple(row for row, _ in rows), tuple(curves for _, curves in rows))


def checked_sizes(sizes: Sequence[int] | str) -> tuple[int, ...]:
    """Rising numbers of sequences from a list, from "50,200,800" or from "lo:hi:n"."""
    found = _read_sizes(sizes) if isinstance(sizes, str) else tuple(sizes)
    if not found:
        raise InputError("no sizes given; give numbers of training sequences, such as 50,200,800 or 50:3200:7")
    for size in found:
        if isinstance(size, bool) or size != int(size) or size < 2:
            raise InputError(f"size {size} must be a whole number of training sequences, at least 2")
    if len(set(found)) < len(found):
        raise InputError(f"sizes {found} repeat one another; give fewer or different ones")
    return tuple(sorted(int(size) for size in found))


def _read_sizes(text: str) -> tuple[int, ...]:
    try:
        if ":" not in text:
            return tuple(int(word) for word in text.replace(",", " ").split())
        low, high, count = (int(word) for word in text.split(":"))
    except ValueError:
        raise InputError(f"sizes {text!r} are neither numbers like 50,200,800 nor a range lo:hi:n like 50:3200:7") from None
    if not (2 <= low < high and count >= 2):
        raise InputError(f"sizes {text!r}: a range lo:hi:n needs 2 <= lo < hi and n >= 2")
    return tuple(int(size) for size in np.rint(np.geomspace(low, high, count)))


def _check_counts(repetitions: int, seed: int, workers: int) -> None:
    if repetitions < 2:
        raise InputError(f"repetitions is {repetitions}, but it takes at least 2 runs of a size to show their spread")
    if not 0 <= seed < 2**62:
        raise InputError(f"seed is {seed}, but must be >= 0 and below 2^62")
    if workers < 1:
        raise InputError(f"workers is {workers}, but at least 1 process is needed")


def _prepared(configured: list[IncrementalOptions], seed: int) -> ClassLevels:
    """Refuse what cannot run before anything does; the levels of the task, which workers then find in the cache."""
    if configured[0].model in (*FLOWS, "regression-transformer"):
        raise InputError(
            f"model {configured[0].model} draws no sequences; early stopping is of students of a chain, such as heads"
        )
    laws: list[Any] = [STUDY.setup(options, seed).what for options in configured]
    why = next((found for found in map(no_stopping, laws) if found), None)
    if why is not None:
        raise InputError(why)
    model, process = laws[0].model, laws[0].process
    return class_levels(process, model.targets, model.context - process.reach)


def _one(task: Task) -> tuple[Row, Mapping[str, np.ndarray]]:
    """One run with everything measured on it; it depends on nothing but the task."""
    options, seed, held, patience = task
    run = STUDY.run(options, seed=seed, progress=False)
    if not run.done:
        return {"sequences": options.sequences, "seed": seed, "status": run.status, "reason": run.reason}, {}
    found: Stopping = stopping(run, held, patience)
    regime = decided(found)
    row = {**found.row(), "status": run.status, "not_judged": None if regime.holds else regime.sentence}
    return row, {name: getattr(found, name) for name in CURVES}


def _results(tasks: list[Task], workers: int) -> Iterator[tuple[int, Row, Mapping[str, np.ndarray]]]:
    """Results with the numbers of their tasks, as they come; the long ones are begun first."""
    order = sorted(range(len(tasks)), key=lambda number: -tasks[number][0].sequences)
    for place, found in results(_one, [tasks[number] for number in order], workers):
        yield order[place], *found
