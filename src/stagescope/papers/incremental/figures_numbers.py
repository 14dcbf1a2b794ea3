"""Numbers of the paper's figures: published values, runs and trials, and the distances between them."""

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from stagescope.detect.events import first_crossing
from stagescope.detect.transitions import transitions
from stagescope.errors import InputError
from stagescope.papers.incremental.limits import LIMITS
from stagescope.papers.incremental.observables import lag_curves
from stagescope.papers.published import published
from stagescope.papers.rebuild import ended
from stagescope.papers.registry import run_study
from stagescope.progress import Progress
from stagescope.threads import results
from stagescope.views.figure import Numbers

REFERENCE = published("stagescope.papers.incremental")


def value(name: str) -> Any:
    """A number, or a list or table of them."""
    return REFERENCE[name].value


def by_step(name: str) -> dict[int, Any]:
    """The values of a curve by step."""
    return _numbered(value(name))


def middles() -> list[float]:
    """The losses half-way between levels 1 and 2 and between levels 2 and 3."""
    return [(above + below) / 2 for above, below in pairwise(value("levels")[1:])]


def _numbered(curve: dict[str, Any]) -> dict[int, Any]:
    return {int(step): value for step, value in curve.items()}


Panel = dict[str, Any]
FILE = Path("reference") / "incremental_features_seed0.npz"
"""The authors' features of seed 0, farthest span first, in the folder STAGESCOPE_DATA; they are not part of this package."""
NOT_COMPARABLE = "random features, not those of the paper: not comparable"
WORKERS = min(2, os.cpu_count() or 1)


@dataclass(frozen=True)
class Trial:
    """One run of a figure: a preset with changes, recorded every `every` steps.

    `levels`: fit the classes, too. `compared`: number of sequences for the divergences; the error is 1 to 2 % at 500.
    `reference`: use the authors' features where they are at hand.
    """

    label: str
    preset: str
    steps: int
    every: int = 10
    changes: tuple[tuple[str, Any], ...] = ()
    levels: bool = False
    compared: int = LIMITS.compared
    reference: bool = True
    seed: int = 0

    def options(self) -> dict[str, Any]:
        """Options of the study."""
        options = {**dict(self.changes), "steps": self.steps, "record": "uniform", "frames": self.steps // self.every + 1}
        path = reference_features() if self.reference else None
        return options if path is None else {**options, "features": path, "feature_order": "farthest-first"}


def trial(
    label: str, preset: str, steps: int, every: int = 10, *, levels: bool = False, compared: int = LIMITS.compared, **changes: Any
) -> Trial:
    return Trial(label, preset, steps, every, tuple(sorted(changes.items())), levels, compared)


def reference_features() -> Path | None:
    """The file with the features of the published curves; None where STAGESCOPE_DATA is not set."""
    folder = os.environ.get("STAGESCOPE_DATA")
    if not folder:
        return None
    path = Path(folder) / FILE
    if not path.is_file():
        way = "put the file there, or unset STAGESCOPE_DATA to use random features, whose curves are not comparable"
        raise InputError(f"STAGESCOPE_DATA is {folder}, but {path} does not exist; {way}")
    return path


_MEASURED: dict[tuple[Trial, Path | None], Panel] = {}


def panels(trials: tuple[Trial, ...], progress: Progress) -> list[Panel]:
    """Measurements of each trial, in two processes where there are two cores; the longest runs start first."""
    path = reference_features()
    missing = sorted({item for item in trials if (item, path) not in _MEASURED}, key=lambda item: (-item.steps, item.label))
    progress.begin("runs", len(missing), "runs")
    for done, (number, panel) in enumerate(results(measured, missing, WORKERS), start=1):
        _MEASURED[missing[number], path] = panel
        progress.update(done)
    return [_MEASURED[item, path] for item in trials]


def measured(item: Trial) -> Panel:
    """Run a trial and measure it, over its steps: loss, divergences, attention [ISA:truncated] [ISA:levels] [ISA:mass]."""
    run = run_study("incremental", item.preset, seed=item.seed, progress=False, **item.options())
    curves = lag_curves(ended(run, f"the run of {item.label}"), item.compared)
    many = 20000  # sequences for a Bayes loss without fitted levels: its error is about .003
    bayes = curves.levels.bayes if item.levels else curves.law.process.floor(curves.law.model.targets, sequences=many)
    panel: Panel = {
        "label": item.label,
        "preset": item.preset,
        "options": dict(item.changes) | {"steps": item.steps, "seed": item.seed},
        "comparable": item.reference and reference_features() is not None,
        "groups": [list(group) for group in curves.law.process.groups],
        "bayes": round(bayes, 5),
        "step": curves.time.astype(int).tolist(),
        "excess": rounded(curves.excess),
        "loss": rounded(curves.excess + bayes),
        "kl_teachers": rounded([curves.truncated_divergences(frame)[1:] for frame in range(curves.frames)]),
        "mass": rounded(curves.mass),
        # of each head on each lag 1, 2, .. that all targets see, mean over targets and contexts
        "lags": rounded(np.stack([curves.lag_attention(lag) for lag in range(1, curves.law.model.context + 1)], axis=2), 4),
    }
    if item.levels:
        panel["levels"] = rounded(curves.levels.losses)
        panel["kl_classes"] = rounded([curves.divergences(frame)[1:] for frame in range(curves.frames)])
    return panel


def rounded(values: Any, digits: int = 5) -> Any:
    return np.round(np.asarray(values, dtype=float), digits).tolist()


def at(found: Panel, name: str, step: float) -> np.ndarray:
    """A curve of a panel at a step, interpolated."""
    values = np.asarray(found[name], dtype=float)
    flat = values.reshape(len(values), -1)
    mixed = [np.interp(step, found["step"], column) for column in flat.T]
    return np.array(mixed).reshape(values.shape[1:])


def crossing(found: Panel, name: str, level: float) -> float | None:
    """The step at which a curve first falls below a level; None if it never does."""
    return first_crossing(np.asarray(found["step"], dtype=float), np.asarray(found[name]), level, rising=False)


def _xavier(label: str, steps: int, every: int = 10, **changes: Any) -> Trial:
    """A minimal student with queries from Xavier's range, which replaces the scale; `--init xavier` needs its default."""
    return trial(label, "content", steps, every, init="xavier", init_scale=1e-3, **changes)


def _trials() -> dict[str, dict[str, tuple[Trial, ...]]]:
    """The runs by figure and variant. Where the step of a transition depends on the initial draw there are several draws."""
    minimal = trial("noise 1e-9", "content", 1000, levels=True, compared=3000)
    online = trial("new sequences at every step", "content", 2000, levels=True, compared=3000, fresh=True)
    xavier = (_xavier("Xavier", 1000, levels=True, init_seed=0), *(_xavier("Xavier", 600, init_seed=i) for i in range(1, 5)))
    few = {
        str(size): tuple(
            _xavier(f"{size} sequences", steps, 5, levels=True, sequences=size, batch=size, init_seed=i) for i in range(3)
        )
        for size, steps in ((600, 200), (2000, 500))
    }
    noises = {name: trial(f"noise {name}", "content", 1000, levels=True, init_scale=float(name)) for name in ("1e-3", "1e-6")} | {
        "1e-9": minimal,
        "0": trial("no noise", "content", 1000, levels=True, init_scale=0.0),
    }
    alone = {
        "minimal": minimal,  # figure 1, and noise 1e-9 of figure 4
        "one_layer": trial("one layer", "transformer", 1000),  # figures 2 and 3
        "online": online,  # figures 6 and 7
        # figures 8 and 9: the most important span is 2 lags, farthest back; then 4, then 8 nearest
        "reversed": trial("farthest span first", "transformer", 1000, spans=(2, 4, 8), reverse=True),
        "two_layers": trial("two layers", "transformer-2", 1000),  # figures 11 and 12
        "weighted": _xavier("weights .7 .3", 1000, levels=True, compared=3000, span_weights=(0.7, 0.3)),  # figures 13 and 14
        # figures 18 and 19
        "sgd": trial("heavy-ball", "transformer", 7000, 50, optimizer="heavy-ball", rate_values=0.2, importance_ratio=2.0),
    }
    return {
        **{name: {name: (item,)} for name, item in alone.items()},
        "xavier": {"Xavier": xavier},  # figure 4 left, five draws; the first is also figure 5 at 9000 sequences
        "noises": {name: (item,) for name, item in noises.items()},  # figure 4 left
        "ratios": {  # figure 4 right, three draws each
            ratio: tuple(_xavier(f"ratio {ratio}", 400, importance_ratio=float(ratio), init_seed=i) for i in range(3))
            for ratio in value("figure-4-ratios")
        },
        # figure 5: few sequences are overfitted, so the best loss depends on the draw
        "sizes": {**few, "9000": xavier[:1], "online": (online,)},
        "overlapping": {  # figures 15 to 17, by number of heads
            str(heads): (_xavier(f"{heads} heads", 1000, stride=2, heads=heads, spans=(4, 4, 4)),) for heads in (3, 4)
        },
    }


TRIALS = _trials()


def _measured(name: str, progress: Progress) -> dict[str, list[Panel]]:
    """The panels of a figure's runs, by variant and draw."""
    trials = TRIALS[name]
    ordered_panels = iter(panels(tuple(item for draws in trials.values() for item in draws), progress))
    return {variant: [next(ordered_panels) for _ in draws] for variant, draws in trials.items()}


def _of_one_run(trial_name: str, targets: Mapping[str, str], more: Callable[[Panel], Numbers]) -> Callable[[Progress], Numbers]:
    """A figure of one run: each curve is compared at the steps of a published one, given by name."""

    def numbers(progress: Progress) -> Numbers:
        ((trial_panels,),) = _measured(trial_name, progress).values()
        compared = {name: _compared(trial_panels, name, by_step(figure)) for name, figure in targets.items()}
        return _with_note({"panels": [trial_panels], "compared": compared, **more(trial_panels)})

    return numbers


def inits_and_ratios(progress: Progress) -> Numbers:
    """Figure 4: Xavier's range over draws, smaller noise, and ratios of importance."""
    left = _family(_measured("xavier", progress)["Xavier"], by_step("figure-4-xavier"))
    noises = {name: panel for name, (panel,) in _measured("noises", progress).items()}
    read = value("figure-4-ratios")
    right = {ratio: _family(drawn, _numbered(read[ratio])) for ratio, drawn in _measured("ratios", progress).items()}
    shown = {"Xavier": left["panels"][left["nearest"]], **noises}
    falls = {name: {"ours": _falls(shown[name]), "published": steps} for name, steps in value("figure-4-crossings").items()}
    return _with_note({"panels": list(noises.values()), "xavier": left, "ratios": right, "falls": falls})


def _falls(panel: Panel) -> list[float | None]:
    """Steps at which the excess loss crosses the middles between the published levels."""
    return [_brief(crossing(panel, "excess", level - value("bayes"))) for level in middles()]


def _family(drawn: list[Panel], targets: Mapping[int, float]) -> Numbers:
    """Runs that differ in the initial draw: least and largest excess, and the run nearest to the published values."""
    compared = [_compared(panel, "excess", targets) for panel in drawn]
    farthest = [0.0 if row["distance"] is None else max(np.abs(row["distance"])) for row in compared]
    nearest, values = int(np.argmin(farthest)), np.array([row["ours"] for row in compared])
    return {
        "panels": drawn,
        "nearest": nearest,
        "compared": compared[nearest],
        "range": rounded([values.min(axis=0), values.max(axis=0)], 4),
        "largest_distance": rounded(farthest, 4),
        "transitions_seen": [len(_transitions(panel)) for panel in drawn],
    }


def sizes(progress: Progress) -> Numbers:
    """Figure 5: the best moment of each run, and the class that predicts nearest to the model there; means over draws."""
    panels_by_size, read = _measured("sizes", progress), value("figure-5-best")
    best = {name: _best(drawn, read[name]) for name, drawn in panels_by_size.items()}
    return _with_note({"panels": [drawn[0] for drawn in panels_by_size.values()], "best": best})


def _best(drawn: list[Panel], read: Numbers) -> Numbers:
    frames = [int(np.argmin(panel["excess"])) for panel in drawn]
    values = [panel["excess"][frame] for panel, frame in zip(drawn, frames, strict=True)]
    return {f"published_{name}": number for name, number in read.items()} | {
        "step": drawn[0]["step"][frames[0]],
        "excess": values[0],
        "mean_excess": round(float(np.mean(values)), 4),
        "draws": values,
        "nearest": [1 + int(np.argmin(panel["kl_classes"][frame])) for panel, frame in zip(drawn, frames, strict=True)],
        "distance": round(float(np.mean(values)) - read["excess"], 4) if drawn[0]["comparable"] else None,
    }


def _weighted(found: Panel) -> Numbers:
    """The share of the first lag in the attention of each head on its span at the end."""
    last = np.array(found["lags"][-1])
    tops = np.array(found["mass"][-1]).argmax(axis=1)
    shares = []
    for head, top in enumerate(tops):
        first, second = (last[head, lag - 1] for lag in found["groups"][top])
        shares.append({"head": head, "group": int(top), "share": round(float(first / (first + second)), 4)})
    nearest = _nearest(found, "kl_classes", "figure-13-kl")
    return {"nearest": nearest, "shares": shares, "published_share": value("figure-13-share")}


def overlapping(progress: Progress) -> Numbers:
    """Figures 15 to 17: attention of each head at the end, by lag, and how much of it lies on lags of the spans."""
    panels_by_trial = _measured("overlapping", progress)
    inside, compared = {}, {}
    for name, (panel,) in panels_by_trial.items():
        union = sorted({lag for group in panel["groups"] for lag in group})
        inside[name] = rounded(np.array(panel["lags"][-1])[:, [lag - 1 for lag in union]].sum(axis=1), 4)
        compared[f"{name} heads"] = _compared(panel, "loss", by_step("figure-15-loss"))
    return _with_note({"panels": [panel for (panel,) in panels_by_trial.values()], "compared": compared, "mass_on_spans": inside})


def _nearest(panel: Panel, kind: str, figure: str) -> dict[str, int]:
    """The class or teacher of least divergence at the steps of a published curve, counted from 1."""
    return {str(step): int(np.argmin(at(panel, kind, step))) + 1 for step in by_step(figure)}


def _with_note(numbers: Numbers) -> Numbers:
    good = all(panel["comparable"] for panel in numbers["panels"])
    return {"comparable": good, "note": "" if good else NOT_COMPARABLE, **numbers}


def _compared(panel: Panel, name: str, targets: Mapping[int, Any]) -> Numbers:
    """Ours and the published values at those of their steps that the run has; None where features differ."""
    steps = [step for step in targets if step <= panel["step"][-1]]
    ours = [at(panel, name, step) for step in steps]
    gaps = np.array([mine - np.array(targets[step]) for mine, step in zip(ours, steps, strict=True)])
    comparable = bool(steps) and panel["comparable"]
    return {
        "step": steps,
        "ours": rounded(ours, 4),
        "published": [targets[step] for step in steps],
        "distance": rounded(gaps, 4) if comparable else None,
        "mean_abs_difference": round(float(np.abs(gaps).mean()), 4) if comparable else None,
    }


def _aligned(panel: Panel, targets: Mapping[int, float]) -> Numbers:
    """Losses after the second and third transition at equal numbers of steps after it, until the next one.

    Both transitions are crossings of the middles of the published levels, in the published curve by interpolation.
    """
    steps = np.array(list(targets), dtype=float)
    levels, rows = middles(), []
    theirs = [float(np.interp(-middle, -np.array(list(targets.values())), steps)) for middle in levels]
    ours = [crossing(panel, "loss", middle) for middle in levels]
    for j, (their, mine) in enumerate(zip(theirs, ours, strict=True)):
        ends = (theirs[j + 1], ours[j + 1]) if j + 1 < len(theirs) else (np.inf, panel["step"][-1] + 1)
        if mine is None or ends[1] is None:
            continue
        for step in steps[(steps > their) & (steps < ends[0])]:
            here = mine + step - their
            if here < ends[1]:
                value, target = float(at(panel, "loss", here)), targets[int(step)]
                row = {"plateau": j + 2, "published_step": int(step), "published": target, "step": round(float(here), 1)}
                rows.append(row | {"ours": round(value, 4), "distance": round(value - target, 4)})
    return {"aligned": rows, "transitions": {"published": rounded(theirs, 1), "ours": [_brief(when) for when in ours]}}


def _tops(panel: Panel, moments: Mapping[int, list[int]]) -> Numbers:
    """The group each head attends to most at some steps, sorted, 0 the most important one."""
    return {
        str(step): {"ours": sorted(at(panel, "mass", step).argmax(axis=1).tolist()), "published": list(target)}
        for step, target in moments.items()
        if step <= panel["step"][-1]
    }


def _transitions(panel: Panel) -> list[float]:
    """Falls of the excess loss, found without knowing any level."""
    step, excess = np.array(panel["step"], dtype=float), np.array(panel["excess"])
    return [transition.t for transition in transitions(step, excess) if transition.amplitude < 0]


def _brief(value: float | None) -> float | None:
    return None if value is None else round(value, 1)


# figure 1
minimal = _of_one_run(
    "minimal",
    {"loss": "figure-1-loss", "kl_teachers": "figure-1-kl"},
    lambda found: _aligned(found, by_step("figure-1-loss")),
)
# figures 2 and 3
one_layer = _of_one_run(
    "one_layer", {"kl_teachers": "figure-3-kl"}, lambda found: {"tops": _tops(found, by_step("figure-2-top-groups"))}
)
# figures 6 and 7
online = _of_one_run(
    "online",
    {"loss": "figure-6-loss", "kl_teachers": "figure-7-kl"},
    lambda found: {"final_excess": found["excess"][-1], **_aligned(found, by_step("figure-6-loss"))},
)
# figures 8 and 9
reversed_importance = _of_one_run(
    "reversed",
    {"loss": "figure-8-loss"},
    lambda found: {"transitions_seen": len(_transitions(found)), "tops": _tops(found, {80: [], 300: [], 990: []})},
)
# figures 11 and 12: published losses are those of the minimal student with two layers, ours the full one's
two_layers = _of_one_run(
    "two_layers",
    {"loss": "figure-11-loss"},
    lambda found: {"transitions_seen": len(_transitions(found)), "published_student": "minimal, two layers"},
)
# figures 13 and 14
weighted = _of_one_run("weighted", {"kl_classes": "figure-13-kl"}, _weighted)
# figures 18 and 19
sgd = _of_one_run(
    "sgd", {"kl_teachers": "figure-18-kl"}, lambda found: {"nearest": _nearest(found, "kl_teachers", "figure-18-kl")}
)
