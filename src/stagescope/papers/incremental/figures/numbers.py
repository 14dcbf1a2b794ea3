"""Numbers of the paper's figures that show trained students (arXiv 2602.19143), with the published numbers.

Distances are ours minus published. Rounding decides the step of a transition for noise 1e-9 and online data: losses are also
compared at equal numbers of steps after the transition, by which the height of a plateau can be judged. The initial draw
decides it for Xavier's range: several draws are run, and the one nearest to the published curve is shown with the range of all.
"""

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from stagescope.detect.transitions import transitions
from stagescope.papers.incremental.figures import published
from stagescope.papers.incremental.figures.published import by_step, value
from stagescope.papers.incremental.figures.runs import NOT_COMPARABLE, Panel, at, crossing, panels, rounded
from stagescope.papers.incremental.figures.trials import TRIALS
from stagescope.progress import Progress
from stagescope.views.figure import Numbers


def minimal(progress: Progress) -> Numbers:
    """Figure 1."""
    (found,) = panels((TRIALS.minimal,), progress)
    loss = by_step("figure-1-loss")
    return _one_run(found, {"loss": loss, "kl_teachers": by_step("figure-1-kl")}, _aligned(found, loss))


def one_layer(progress: Progress) -> Numbers:
    """Figures 2 and 3."""
    (found,) = panels((TRIALS.one_layer,), progress)
    return _one_run(found, {"kl_teachers": by_step("figure-3-kl")}, {"tops": _tops(found, by_step("figure-2-top-groups"))})


def inits_and_ratios(progress: Progress) -> Numbers:
    """Figure 4: Xavier's range over draws, smaller noise, and ratios of importance."""
    wanted = (*TRIALS.xavier, *TRIALS.noises.values(), *(item for draws in TRIALS.ratios.values() for item in draws))
    found = dict(zip(wanted, panels(wanted, progress), strict=True))
    left = _family([found[item] for item in TRIALS.xavier], by_step("figure-4-xavier"))
    noises = {name: found[item] for name, item in TRIALS.noises.items()}
    read = published.ratios()
    right = {ratio: _family([found[item] for item in draws], read[ratio]) for ratio, draws in TRIALS.ratios.items()}
    shown = {"Xavier": left["panels"][left["nearest"]], **noises}
    falls = {name: {"ours": _falls(shown[name]), "published": steps} for name, steps in value("figure-4-crossings").items()}
    xavier = [_falls(panel) for panel in left["panels"]]
    return _with_note({"panels": list(noises.values()), "xavier": left, "ratios": right, "falls": falls, "xavier_falls": xavier})


def _falls(panel: Panel) -> list[float | None]:
    """Steps at which the excess loss crosses the middles between the published levels."""
    return [_brief(crossing(panel, "excess", level - value("bayes"))) for level in published.middles()]


def _family(drawn: list[Panel], targets: Mapping[int, float]) -> Numbers:
    """Runs that differ in the initial draw: least and largest excess, and the run nearest to the published values."""
    compared = [_compared(panel, "excess", targets) for panel in drawn]
    farthest = [0.0 if row["distance"] is None else max(np.abs(row["distance"])) for row in compared]
    nearest, values = int(np.argmin(farthest)), np.array([row["ours"] for row in compared])
    return {
        "panels": drawn,
        "nearest": nearest,
        "compared": compared[nearest],
        "mean": rounded(values.mean(axis=0), 4),
        "range": rounded([values.min(axis=0), values.max(axis=0)], 4),
        "largest_distance": rounded(farthest, 4),
        "transitions_seen": [len(_transitions(panel)) for panel in drawn],
    }


def sizes(progress: Progress) -> Numbers:
    """Figure 5: the best moment of each run, and the class that predicts nearest to the model there; means over draws."""
    wanted = tuple(item for draws in TRIALS.sizes.values() for item in draws)
    found = dict(zip(wanted, panels(wanted, progress), strict=True))
    read = value("figure-5-best")
    best = {name: _best([found[item] for item in draws], read[name]) for name, draws in TRIALS.sizes.items()}
    return _with_note({"panels": [found[draws[0]] for draws in TRIALS.sizes.values()], "best": best})


def _best(drawn: list[Panel], read: Numbers) -> Numbers:
    frames = [int(np.argmin(panel["excess"])) for panel in drawn]
    values = [panel["excess"][frame] for panel, frame in zip(drawn, frames, strict=True)]
    return {f"published_{name}": found for name, found in read.items()} | {
        "step": drawn[0]["step"][frames[0]],
        "excess": values[0],
        "mean_excess": round(float(np.mean(values)), 4),
        "draws": values,
        "nearest": [1 + int(np.argmin(panel["kl_classes"][frame])) for panel, frame in zip(drawn, frames, strict=True)],
        "distance": round(float(np.mean(values)) - read["excess"], 4) if drawn[0]["comparable"] else None,
    }


def online(progress: Progress) -> Numbers:
    """Figures 6 and 7."""
    (found,) = panels((TRIALS.online,), progress)
    loss = by_step("figure-6-loss")
    more = {"final_excess": found["excess"][-1], **_aligned(found, loss)}
    return _one_run(found, {"loss": loss, "kl_teachers": by_step("figure-7-kl")}, more)


def reversed_importance(progress: Progress) -> Numbers:
    """Figures 8 and 9."""
    (found,) = panels((TRIALS.reversed,), progress)
    more = {"transitions_seen": len(_transitions(found)), "tops": _tops(found, {80: [], 300: [], 990: []})}
    return _one_run(found, {"loss": by_step("figure-8-loss")}, more)


def two_layers(progress: Progress) -> Numbers:
    """Figures 11 and 12: published losses are those of the minimal student with two layers, ours the full one's."""
    (found,) = panels((TRIALS.two_layers,), progress)
    seen = {"transitions_seen": len(_transitions(found)), "published_student": "minimal, two layers"}
    return _one_run(found, {"loss": by_step("figure-11-loss")}, seen)


def weighted(progress: Progress) -> Numbers:
    """Figures 13 and 14, with the share of the first lag in the attention of each head on its span at the end."""
    (found,) = panels((TRIALS.weighted,), progress)
    last = np.array(found["lags"][-1])
    tops = np.array(found["mass"][-1]).argmax(axis=1)
    shares = []
    for head, top in enumerate(tops):
        first, second = (last[head, lag - 1] for lag in found["groups"][top])
        shares.append({"head": head, "group": int(top), "share": round(float(first / (first + second)), 4)})
    kl = by_step("figure-13-kl")
    more = {"nearest": _nearest(found, "kl_classes", kl), "shares": shares, "published_share": value("figure-13-share")}
    return _one_run(found, {"kl_classes": kl}, more)


def overlapping(progress: Progress) -> Numbers:
    """Figures 15 to 17: attention of each head at the end, by lag, and how much of it lies on lags of the spans."""
    found = panels(tuple(TRIALS.overlapping.values()), progress)
    inside, compared = {}, {}
    for name, panel in zip(TRIALS.overlapping, found, strict=True):
        union = sorted({lag for group in panel["groups"] for lag in group})
        inside[name] = rounded(np.array(panel["lags"][-1])[:, [lag - 1 for lag in union]].sum(axis=1), 4)
        compared[f"{name} heads"] = _compared(panel, "loss", by_step("figure-15-loss"))
    return _with_note({"panels": found, "compared": compared, "mass_on_spans": inside})


def sgd(progress: Progress) -> Numbers:
    """Figures 18 and 19."""
    (found,) = panels((TRIALS.sgd,), progress)
    kl = by_step("figure-18-kl")
    return _one_run(found, {"kl_teachers": kl}, {"nearest": _nearest(found, "kl_teachers", kl)})


def _nearest(panel: Panel, kind: str, steps: Iterable[int]) -> dict[str, int]:
    """The class or teacher of least divergence at some steps, counted from 1."""
    return {str(step): int(np.argmin(at(panel, kind, step))) + 1 for step in steps}


def _one_run(panel: Panel, targets: Mapping[str, Mapping[int, Any]], more: Numbers) -> Numbers:
    """A figure of one run: each curve is compared at the published steps."""
    compared = {name: _compared(panel, name, values) for name, values in targets.items()}
    return _with_note({"panels": [panel], "compared": compared, **more})


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
    middles = published.middles()
    rows = []
    theirs = [float(np.interp(-middle, -np.array(list(targets.values())), steps)) for middle in middles]
    ours = [crossing(panel, "loss", middle) for middle in middles]
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
    found = {}
    for step, target in moments.items():
        if step <= panel["step"][-1]:
            found[str(step)] = {"ours": sorted(at(panel, "mass", step).argmax(axis=1).tolist()), "published": list(target)}
    return found


def _transitions(panel: Panel) -> list[float]:
    """Falls of the excess loss, found without knowing any level."""
    step, excess = np.array(panel["step"], dtype=float), np.array(panel["excess"])
    return [found.t for found in transitions(step, excess) if found.amplitude < 0]


def _brief(value: float | None) -> float | None:
    return None if value is None else round(value, 1)
