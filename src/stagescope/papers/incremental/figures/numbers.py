"""Numbers of the paper's figures that show trained students (arXiv 2602.19143), published ones beside them.

Distances are ours minus published. Where the step of a transition is an accident of rounding (noise 1e-9 and online data),
losses are also compared at equal numbers of steps after it, which is what a plateau's height can be judged by. Where it is one
of the initial draw (Xavier's range), several are run; the nearest to the published one is shown with the range of all.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np

from stagescope.detect.shoulders import transitions_so_far
from stagescope.papers.incremental.figures import targets as published
from stagescope.papers.incremental.figures.runs import NOT_COMPARABLE, Panel, at, crossing, panels, rounded, trial
from stagescope.progress import Progress
from stagescope.views.figure import Numbers

XAVIER: dict[str, Any] = {"init": "xavier", "init_scale": 1e-3}
"""The scale is the default, which `--init xavier` insists on: its own replaces it."""
_SPANS: dict[str, Any] = {"spans": (4, 4, 4)}
SMALL = trial("noise 1e-9", "content", 1000, levels=True, compared=3000)
XAVIERS = tuple(
    trial("Xavier", "content", 1000 if draw == 0 else 600, levels=draw == 0, init_seed=draw, **XAVIER) for draw in range(5)
)
NOISES = {
    "1e-3": trial("noise 1e-3", "content", 1000, levels=True, init_scale=1e-3),
    "1e-6": trial("noise 1e-6", "content", 1000, levels=True, init_scale=1e-6),
    "1e-9": SMALL,
    "0": trial("no noise", "content", 1000, levels=True, init_scale=0.0),
}
RATIOS = {
    ratio: tuple(
        trial(f"ratio {ratio}", "content", 400, importance_ratio=float(ratio), init_seed=draw, **XAVIER) for draw in range(3)
    )
    for ratio in published.RATIOS
}
"""The step of a transition depends on the draw of the initial queries: several are run, and the published curve is one more."""
ONLINE = trial("new sequences at every step", "content", 2000, levels=True, compared=3000, fresh=True)
SIZES = {
    size: tuple(
        trial(
            f"{size} sequences", "content", steps, 5, levels=True, sequences=int(size), batch=int(size), init_seed=draw, **XAVIER
        )
        for draw in range(3)
    )
    for size, steps in (("600", 200), ("2000", 500))
}
SIZES |= {"9000": XAVIERS[:1], "online": (ONLINE,)}
"""Small samples are overfitted before all is learned, so their best loss hangs on when heads part: means of three draws."""
WEIGHTED = trial("weights .7 .3", "content", 1000, levels=True, compared=3000, span_weights=(0.7, 0.3), **XAVIER)
OVERLAPPING = {
    heads: trial(f"{heads} heads", "content", 1000, stride=2, heads=int(heads), **_SPANS, **XAVIER) for heads in ("3", "4")
}
ONE_LAYER = trial("one layer", "transformer", 1000)
TWO_LAYERS = trial("two layers", "transformer-2", 1000)
REVERSED = trial("farthest span first", "transformer", 1000, spans=(2, 4, 8), reverse=True)
SGD_OPTIONS: dict[str, Any] = {"optimizer": "heavy-ball", "rate_values": 0.2, "importance_ratio": 2.0}
SGD = trial("heavy-ball", "transformer", 7000, 50, **SGD_OPTIONS)
"""`reverse` lists the most important span first: 2 lags, farthest back; then 4, then 8 nearest."""


def minimal(progress: Progress) -> Numbers:
    """Figure 1."""
    (found,) = panels((SMALL,), progress)
    return _told([found], {"loss": published.MINIMAL, "kl_teachers": published.MINIMAL_KL}, _aligned(found, published.MINIMAL))


def one_layer(progress: Progress) -> Numbers:
    """Figures 2 and 3."""
    (found,) = panels((ONE_LAYER,), progress)
    return _told([found], {"kl_teachers": published.ONE_LAYER_KL}, {"tops": _tops(found, published.ONE_LAYER_TOPS)})


def inits_and_ratios(progress: Progress) -> Numbers:
    """Figure 4: Xavier's range over draws, smaller noise, and ratios of importance."""
    wanted = (*XAVIERS, *NOISES.values(), *(item for draws in RATIOS.values() for item in draws))
    found = dict(zip(wanted, panels(wanted, progress), strict=True))
    left = _family([found[item] for item in XAVIERS], published.XAVIER)
    noises = {name: found[item] for name, item in NOISES.items()}
    right = {ratio: _family([found[item] for item in draws], published.RATIOS[ratio]) for ratio, draws in RATIOS.items()}
    shown = {"Xavier": left["panels"][left["nearest"]], **noises}
    falls = {name: _falls(name, panel) for name, panel in shown.items()}
    xavier = [_falls("Xavier", panel)["ours"] for panel in left["panels"]]
    return _with_note({"panels": list(noises.values()), "xavier": left, "ratios": right, "falls": falls, "xavier_falls": xavier})


def _falls(name: str, panel: Panel) -> Numbers:
    """Steps at which the excess loss crosses the middles between levels."""
    ours = [_brief(crossing(panel, "excess", level)) for level in published.FALLS]
    return {"ours": ours, "published": [published.FIRST_FALL[name], published.SECOND_FALL[name]]}


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
    wanted = tuple(item for draws in SIZES.values() for item in draws)
    found = dict(zip(wanted, panels(wanted, progress), strict=True))
    best = {name: _best([found[item] for item in draws], *published.SIZES[name]) for name, draws in SIZES.items()}
    return _with_note({"panels": [found[draws[0]] for draws in SIZES.values()], "best": best})


def _best(drawn: list[Panel], step: int | None, excess: float, nearest: int | None) -> Numbers:
    frames = [int(np.argmin(panel["excess"])) for panel in drawn]
    values = [panel["excess"][frame] for panel, frame in zip(drawn, frames, strict=True)]
    told = {"published_step": step, "published_excess": excess, "published_nearest": nearest}
    return told | {
        "step": drawn[0]["step"][frames[0]],
        "excess": values[0],
        "mean_excess": round(float(np.mean(values)), 4),
        "draws": values,
        "nearest": [1 + int(np.argmin(panel["kl_classes"][frame])) for panel, frame in zip(drawn, frames, strict=True)],
        "distance": round(float(np.mean(values)) - excess, 4) if drawn[0]["comparable"] else None,
    }


def online(progress: Progress) -> Numbers:
    """Figures 6 and 7."""
    (found,) = panels((ONLINE,), progress)
    more = {"final_excess": found["excess"][-1], **_aligned(found, published.ONLINE)}
    return _told([found], {"loss": published.ONLINE, "kl_teachers": published.ONLINE_KL}, more)


def reversed_importance(progress: Progress) -> Numbers:
    """Figures 8 and 9."""
    (found,) = panels((REVERSED,), progress)
    moments: dict[int, tuple[int, ...]] = {80: (), 300: (), 990: ()}
    return _told(
        [found], {"loss": published.REVERSED}, {"transitions_seen": len(_transitions(found)), "tops": _tops(found, moments)}
    )


def two_layers(progress: Progress) -> Numbers:
    """Figures 11 and 12: published losses are those of the minimal student with two layers, ours the full one's."""
    (found,) = panels((TWO_LAYERS,), progress)
    seen = {"transitions_seen": len(_transitions(found)), "published_student": "minimal, two layers"}
    return _told([found], {"loss": published.TWO_LAYERS}, seen)


def weighted(progress: Progress) -> Numbers:
    """Figures 13 and 14, with the share of the first lag in what each head pays to its span at the end (published: .7)."""
    (found,) = panels((WEIGHTED,), progress)
    last = np.array(found["lags"][-1])
    tops = np.array(found["mass"][-1]).argmax(axis=1)
    shares = []
    for head, top in enumerate(tops):
        first, second = (last[head, lag - 1] for lag in found["groups"][top])
        shares.append({"head": head, "group": int(top), "share": round(float(first / (first + second)), 4)})
    minima = {str(step): int(np.argmin(at(found, "kl_classes", step))) + 1 for step in published.WEIGHTED_KL}
    return _told([found], {"kl_classes": published.WEIGHTED_KL}, {"nearest": minima, "shares": shares, "published_share": 0.7})


def overlapping(progress: Progress) -> Numbers:
    """Figures 15 to 17: attention of each head at the end, by lag, and how much of it lies on lags of the spans."""
    found = panels(tuple(OVERLAPPING.values()), progress)
    inside = {}
    for name, panel in zip(OVERLAPPING, found, strict=True):
        union = sorted({lag for group in panel["groups"] for lag in group})
        inside[name] = rounded(np.array(panel["lags"][-1])[:, [lag - 1 for lag in union]].sum(axis=1), 4)
    compared = {f"{name} heads": _compared(p, "loss", published.OVERLAPPING) for name, p in zip(OVERLAPPING, found, strict=True)}
    return _with_note({"panels": found, "compared": compared, "mass_on_spans": inside})


def sgd(progress: Progress) -> Numbers:
    """Figures 18 and 19."""
    (found,) = panels((SGD,), progress)
    minima = {str(step): int(np.argmin(at(found, "kl_teachers", step))) + 1 for step in published.SGD_KL}
    return _told([found], {"kl_teachers": published.SGD_KL}, {"nearest": minima})


def _told(found: list[Panel], targets: Mapping[str, Mapping[int, Any]], more: Numbers) -> Numbers:
    """The panel with each curve compared at the steps where it was read off."""
    compared = {name: _compared(found[0], name, values) for name, values in targets.items()}
    return _with_note({"panels": found, "compared": compared, **more})


def _with_note(numbers: Numbers) -> Numbers:
    good = all(panel["comparable"] for panel in numbers["panels"])
    return {"comparable": good, "note": "" if good else NOT_COMPARABLE, **numbers}


def _compared(panel: Panel, name: str, targets: Mapping[int, Any]) -> Numbers:
    """Ours and the published values at those of their steps that the run has; None where features differ."""
    steps = [step for step in targets if step <= panel["step"][-1]]
    ours = [at(panel, name, step) for step in steps]
    gaps = np.array([mine - np.array(targets[step]) for mine, step in zip(ours, steps, strict=True)])
    told = bool(steps) and panel["comparable"]
    return {
        "step": steps,
        "ours": rounded(ours, 4),
        "published": [targets[step] for step in steps],
        "distance": rounded(gaps, 4) if told else None,
        "mean_abs_difference": round(float(np.abs(gaps).mean()), 4) if told else None,
    }


def _aligned(panel: Panel, targets: Mapping[int, float]) -> Numbers:
    """Losses after the second and third transition at equal numbers of steps after it, until the next one.

    Both transitions are crossings of the middles of the published levels, in the published curve by interpolation.
    """
    steps = np.array(list(targets), dtype=float)
    middles = [(above + below) / 2 for above, below in zip(published.LEVELS[1:-1], published.LEVELS[2:], strict=True)]
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


def _tops(panel: Panel, moments: Mapping[int, tuple[int, ...]]) -> Numbers:
    """The group each head attends to most at some steps, sorted, 0 the most important one."""
    found = {}
    for step, target in moments.items():
        if step <= panel["step"][-1]:
            found[str(step)] = {"ours": sorted(at(panel, "mass", step).argmax(axis=1).tolist()), "published": list(target)}
    return found


def _transitions(panel: Panel) -> list[float]:
    """Falls of the excess loss that stand out, found without knowing any level [ISA:shoulders]."""
    step, excess = np.array(panel["step"], dtype=float), np.array(panel["excess"])
    return [float(step[item.peak]) for item in transitions_so_far(step, excess)]


def _brief(value: float | None) -> float | None:
    return None if value is None else round(value, 1)
