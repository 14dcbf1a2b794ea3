"""The numbers of every figure; `drawings.py` draws them. Figures of one run share it, from the user's cache."""

from collections.abc import Callable, Mapping
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np

from stagescope.core.progress import Progress
from stagescope.detect.transitions import transitions
from stagescope.papers.incremental.panels import Panel, at_published, by_step, crossing, numbered, panels, rounded, value
from stagescope.views.figure import Figure, Numbers

from . import own, runs

NOT_COMPARABLE = "random features, not those of the paper: not comparable"


def with_note(numbers: Numbers) -> Numbers:
    good = all(panel["comparable"] for panel in numbers["panels"])
    return {"comparable": good, "note": "" if good else NOT_COMPARABLE, **numbers}


def one_run(name: str, curves: Mapping[str, str], progress: Progress, quick: bool = False) -> Numbers:
    """A figure of one run, with the published curves by the name of ours; a quick version is compared with none."""
    if quick:
        (panel,) = panels((runs.QUICK[name],), progress)
        return {**with_note({"panels": [panel], "published": {}}), "quick": runs.quick_note(name)}
    ((panel,),) = runs.measurements(name, progress).values()
    return with_note({"panels": [panel], "published": {ours: value(theirs) for ours, theirs in curves.items()}})


def quick_flow(progress: Progress) -> Numbers:
    return {**own.flow(progress, draws=2), "quick": "quick version: two draws of five"}


def inits_and_ratios(progress: Progress) -> Numbers:
    """Figure 4: Xavier's range over draws, smaller noise, and ratios of importance."""
    left = family(runs.measurements("xavier", progress)["Xavier"], by_step("figure-4-xavier"))
    noises = {name: panel for name, (panel,) in runs.measurements("noises", progress).items()}
    read = value("figure-4-ratios")
    right = {ratio: family(drawn, numbered(read[ratio])) for ratio, drawn in runs.measurements("ratios", progress).items()}
    shown = {"Xavier": left["panels"][left["nearest"]], **noises}
    falls = {name: {"ours": falls_of(shown[name]), "published": steps} for name, steps in value("figure-4-crossings").items()}
    return with_note({"panels": list(noises.values()), "xavier": left, "ratios": right, "falls": falls})


def middles() -> list[float]:
    """The losses half-way between levels 1 and 2 and between levels 2 and 3."""
    levels = value("levels")[1:]
    return [(above + below) / 2 for above, below in pairwise(levels)]


def falls_of(panel: Panel) -> list[float | None]:
    """Steps at which the excess loss crosses the middles between the published levels."""
    when = [crossing(panel, "excess", level - value("bayes")) for level in middles()]
    return [None if step is None else round(step, 1) for step in when]


def family(drawn: list[Panel], targets: Mapping[int, float]) -> Numbers:
    """Runs that differ in the initial draw: their range, and the run nearest to the published values."""
    ours = np.array([[float(at_published(panel, "excess", step)) for step in targets] for panel in drawn])
    farthest = np.abs(ours - np.array(list(targets.values()))).max(axis=1)
    nearest = int(np.argmin(farthest))
    return {
        "panels": drawn,
        "nearest": nearest,
        "step": list(targets),
        "published": list(targets.values()),
        "ours": rounded(ours[nearest], 4),
        "range": rounded([ours.min(axis=0), ours.max(axis=0)], 4),
        "largest_distance": rounded(farthest, 4),
        "falls": [count_falls(panel) for panel in drawn],
    }


def count_falls(panel: Panel) -> int:
    """Falls of the excess loss, found without any level."""
    step, excess = np.array(panel["step"], dtype=float), np.array(panel["excess"])
    return sum(event.amplitude < 0 for event in transitions(step, excess))


def sizes(progress: Progress) -> Numbers:
    """Figure 5: the best moment of each run, and the class that predicts nearest to the model there; means over draws."""
    measured, read = runs.measurements("sizes", progress), value("figure-5-best")
    best = {name: best_of(drawn, read[name]) for name, drawn in measured.items()}
    return with_note({"panels": [drawn[0] for drawn in measured.values()], "best": best})


def best_of(drawn: list[Panel], read: Numbers) -> Numbers:
    frames = [int(np.argmin(panel["excess"])) for panel in drawn]
    values = [panel["excess"][frame] for panel, frame in zip(drawn, frames, strict=True)]
    return {f"published_{name}": number for name, number in read.items()} | {
        "step": drawn[0]["step"][frames[0]],
        "excess": values[0],
        "mean_excess": round(float(np.mean(values)), 4),
        "draws": values,
        "nearest": [1 + int(np.argmin(panel["kl_classes"][frame])) for panel, frame in zip(drawn, frames, strict=True)],
    }


_KL, _LEARNED = {"kl_teachers": "figure-{}-kl"}, {"kl_learned": "figure-{}-learned"}
_HEADS, _FULL = "Heads that read tokens and positions", "Transformer"


def _figure(name: str, title: str, trials: Any, draw: str, cost: str, **more: Any) -> Figure:
    """`trials`: a function of the progress, or the name of one run and its published curves."""

    def drawn(numbers: Numbers) -> Any:
        from . import drawings

        return getattr(drawings, draw)(numbers)

    compute: Callable[[Progress], Numbers] = trials
    if isinstance(trials, tuple):
        run, curves = trials
        compute = partial(one_run, run, {ours: theirs.format(name) for ours, theirs in curves.items()})
        full = run in runs.LONG
        quick = partial(compute, quick=True) if run in runs.QUICK else None
        more = {"full": full, "quick": quick, **more}
    return Figure(name, title, compute, drawn, cost=f"about {cost} of one core" if cost else "", **more)


FIGURES = {
    figure.name.removeprefix("-"): figure
    for figure in (
        _figure(
            "1", f"{_HEADS}: loss, divergences, attention", ("minimal", {"loss": "figure-1-loss", **_KL}), "overview", "3 min"
        ),
        _figure("2", f"{_FULL} of one layer: attention", ("one_layer", {}), "combined", "15 min"),
        _figure("3", f"{_FULL} of one layer: divergences", ("one_layer", {**_KL, **_LEARNED}), "two_divergences", "15 min"),
        _figure("4", f"{_HEADS}: initial noise and ratios", inits_and_ratios, "inits_and_ratios", "25 min"),
        _figure("5", "Number of training sequences", sizes, "sizes", "12 min"),
        _figure("6", "New sequences at every step: attention", ("online", {}), "combined", "6 min"),
        _figure(
            "7",
            "New sequences at every step: loss and divergences",
            ("online", {"loss": "figure-7-loss", **_KL}),
            "losses",
            "6 min",
        ),
        _figure("8", f"{_FULL}, farthest span most important: attention", ("reversed", {}), "combined", "15 min"),
        _figure(
            "9", f"{_FULL}, farthest span most important", ("reversed", {"loss": "figure-9-loss", **_KL}), "losses", "15 min"
        ),
        _figure("10", "Regression flow, mirror law", own.flow, "flow", "10 s", quick=quick_flow),
        _figure("11", "Two layers of content heads", ("two_minimal", {"loss": "figure-11-loss", **_KL}), "losses", "15 min"),
        _figure("12", f"{_FULL} of two layers", ("two_layers", {"loss": "figure-12-loss", **_KL}), "losses", "1 hour"),
        _figure("13", "Weights .3 and .7 inside a span: divergences", ("weighted", _LEARNED), "learned", "8 min"),
        _figure("14", "Weights .3 and .7 inside a span: attention", ("weighted", {}), "combined", "8 min"),
        _figure(
            "15",
            "Overlapping spans, four heads",
            ("overlapping", {"loss": "figure-15-loss", **_LEARNED}),
            "learned_and_loss",
            "12 min",
        ),
        _figure("16", "Overlapping spans: attention of three heads", ("overlapping_3", {}), "by_head", "4 min"),
        _figure("17", "Overlapping spans: attention of four heads", ("overlapping", {}), "by_head", "12 min"),
        _figure("18", f"{_FULL}, heavy-ball descent: divergences", ("sgd", _LEARNED), "learned", "2 hours"),
        _figure("19", f"{_FULL}, heavy-ball descent: attention", ("sgd", {}), "combined", "2 hours"),
        _figure(
            "-stopping",
            "Where to stop, what it costs, and which class it is",
            own.stopping_numbers,
            "stopping_rules",
            "",
            sweep="early-stopping",
        ),
    )
}
