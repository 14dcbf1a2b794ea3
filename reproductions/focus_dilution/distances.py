"""The table of distances: every reference number of the published experiment, the same made again, tolerance and verdict.

The rules below were written before seeds 10 to 13 were drawn, which make the table. A tolerance that is the range of four seeds
is exceeded by the mean of four others in 5 of 100 cases by chance alone (normal numbers).
"""

import json
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from stagescope.core.progress import Progress
from stagescope.flow.softmax import softmax
from stagescope.papers.focus_dilution import TokenCurves, last_token_losses, position_entropies
from stagescope.readings.published import Distance

from . import runs
from .figures import FROZEN_EPS, STEPS_BY_EPS, by_eps, chains, focus_times, text_panel
from .quantities import STEPS, first, quantities

SEEDS = (10, 11, 12, 13)
TEST = 60_000
"""Sequences of the test set of the reference; ours is the exact law."""
FLOOR, SPACING = 1e-3, 3.0
"""Least tolerance of a number and of a step: what a picture shows, and the spacing of frames."""


@cache
def reference() -> dict[str, Any]:
    return json.loads(Path(__file__).with_name("reference.json").read_text(encoding="utf-8"))


SHOWN_IN = {
    "Published run": ("1", "2"),
    "Caption of figure 2C": ("2",),
    "Changed settings": ("2",),
    "From the experiment to the theorem by eps": ("theorem-and-experiment",),
    "Frozen attention by eps": ("frozen",),
    "Blind to the transition matrix": ("blind",),
    "TinyStories": ("3",),
}
"""Figures by the beginning of a section of the table."""


def distances(progress: Progress, quick: bool = False) -> list[Distance]:
    """All of them; `quick`: one seed of the published run up to step 1500, and what the caption says."""
    rows = published_rows(progress, quick)
    progress.begin("settings", 1, "part")
    rows += caption_rows(quick)
    if not quick:
        rows += changed_rows() + adam_rows() + text_rows()
    return [
        replace(row, figures=next(names for start, names in SHOWN_IN.items() if row.section.startswith(start))) for row in rows
    ]


# The published run: fresh seeds against the four of the reference.


def published_rows(progress: Progress, quick: bool) -> list[Distance]:
    seeds, made, noise = (SEEDS[:1] if quick else SEEDS), [], {}
    for seed in progress.each(seeds, "published run", "seeds"):
        changes: dict[str, Any] = {"steps": 1500, "frames": 500} if quick else {}
        curves = runs.published_run(seed=seed, **changes)
        made.append(quantities(curves))
        noise = noise or sampling_errors(curves)
        del curves
    section = "Published run, mean of four fresh seeds" if len(seeds) == 4 else "Published run, one fresh seed (quick)"
    rows, chance = [], "the tolerance is the range of four seeds: 5 of 100 are outside by chance"
    for name, (mean, low, high) in reference()["published"]["values"].items():
        quantity, _, step = name.partition("@")
        if quick and (not step or int(step) > 1500):
            continue
        ours = [found[name] for found in made if name in found]
        value = float(np.mean(ours)) if len(ours) == len(made) else None
        limit, where = tolerance(name, high - low) + 3 * noise.get(name, 0.0), f"step {step}" if step else "run"
        rows.append(Distance(section, quantity, where, mean, value, limit, chance))
    return rows


def tolerance(name: str, spread: float) -> float:
    """The least distance that is outside: of losses and norms by the page of targets, else the range of the four seeds."""
    quantity, _, at = name.partition("@")
    step = int(at or 0)
    if at and quantity in ("loss", "S0", "S1", "S2", "S3"):
        if step < 240:
            return 0.005
        return 0.15 if step <= 300 and quantity in ("S1", "S2", "S3") else 0.03
    if at and quantity.startswith(("norm", "perp")):
        return 0.12 if step >= 2000 else 0.05
    return max(spread, SPACING if name.endswith("step") else FLOOR)


def sampling_errors(curves: TokenCurves, draws: int = 8) -> dict[str, float]:
    """The standard error of losses and entropies on a test set of TEST sequences, from several of them."""
    steps = [step for step in STEPS if step <= curves.time[-1]]
    frames = np.array([int(np.argmin(np.abs(curves.time - step))) for step in steps])
    some = TokenCurves(curves.time[frames], {name: block[frames] for name, block in curves.params.items()}, curves.law)
    found: dict[str, list[np.ndarray]] = {}
    for seed in range(draws):
        losses, entropy = last_token_losses(some, TEST, seed), position_entropies(some, TEST, seed)
        columns = {"loss": losses.total, "entmean": entropy @ losses.shares}
        for k in range(len(curves.pi)):
            columns |= {f"S{k}": losses.by_token[:, k], f"ent{k}": entropy[:, k]}
        for name, values in columns.items():
            found.setdefault(name, []).append(values)
    spread = {name: np.std(values, axis=0, ddof=1) for name, values in found.items()}
    return {f"{name}@{step}": float(error) for name, errors in spread.items() for step, error in zip(steps, errors, strict=True)}


# The caption of figure 2C, and other settings that the text allows.

CAPTION = (350.0, 550.0)
TRIED: dict[str, dict[str, Any]] = {
    "as published": {},
    "batch 32": {"batch": 32},
    "batch 128": {"batch": 128},
    "batch 512": {"batch": 512},
    "batch 2048": {"batch": 2048},
    "lr 5e-5": {"lr": 5e-5},
    "scale 1/16": {"scale": 1 / 16},
    "pi (8,4,2,1)/15": {"pi": (8 / 15, 4 / 15, 2 / 15, 1 / 15)},
    "persistence .65": {"persistence": 0.65},
    "persistence .5": {"persistence": 0.5},
    "persistence .5, scale 1/16": {"persistence": 0.5, "scale": 1 / 16},
    "lr 7e-5": {"lr": 7e-5},
    "lr 1e-4, scale 1/16": {"lr": 1e-4, "scale": 1 / 16},
    "pi (8,4,2,1)/15, scale 1/16": {"pi": (8 / 15, 4 / 15, 2 / 15, 1 / 15), "scale": 1 / 16},
    "pi (8,4,2,1)/15, lr 5.7e-5": {"pi": (8 / 15, 4 / 15, 2 / 15, 1 / 15), "lr": 5.7e-5},
}
"""Changes of the published setting, seed 0, 900 steps. The last four are ours, chosen after the others were seen. The rate that
the paper states is 1.5e-4: another one is no setting of its text."""
ABOVE = 0.9


@cache
def tried(name: str) -> dict[str, float | None]:
    """When all rare rows are above ABOVE, when the lowest of them is at its peak, when the first and last of them are below pi_0.

    With the word "unscaled" the same of scores without their factor, Phi / scale.
    """
    curves = runs.published_run(seed=0, steps=900, frames=451, **TRIED[name])
    plain = softmax(curves.scores / curves.law.model.scale + np.log(curves.pi))[:, 1:, 0]
    found = rows_turn(curves.time, curves.on_frequent[:, 1:], curves.pi[0])
    return found | {f"unscaled {key}": value for key, value in rows_turn(curves.time, plain, curves.pi[0]).items()}


def rows_turn(time: np.ndarray, rows: np.ndarray, base: float) -> dict[str, float | None]:
    peak = int(np.argmax(rows.min(axis=1)))
    below = [first(time, row < base, peak) for row in rows.T]
    found = {
        "focus": first(time, rows.min(axis=1) > ABOVE),
        "peak": float(time[peak]),
        "height": float(rows[peak].min()),
        "diluted": float(np.nanmin(below)) if np.isfinite(below).any() else np.nan,
        "all diluted": float(np.max(below)),
    }
    return {name: float(value) if np.isfinite(value) else None for name, value in found.items()}


def caption_rows(quick: bool) -> list[Distance]:
    """The caption of 2C: attention of all queries on token 0 rises and falls in steps 350 to 550. A setting fits within 10 %."""
    section, names = "Caption of figure 2C: steps 350 to 550; what was tried", ("as published", "lr 5e-5", "scale 1/16")
    names = names if quick else tuple(TRIED)
    targets = (("focus", f"all rows above {ABOVE:g}", CAPTION[0]), ("all diluted", "all rows below pi_0", CAPTION[1]))
    rows = [
        Distance(section, f"{name}: {quantity}", where, target, tried(name)[quantity], 0.1 * target)
        for name in names
        for quantity, where, target in targets
    ]
    both = [
        name
        for name, pair in zip(names, zip(rows[::2], rows[1::2], strict=True), strict=True)
        if {r.verdict for r in pair} == {"within"}
    ]
    why = f"within 10 % of both: {' and '.join(both) or f'none of these {len(names)} settings'}"
    return [replace(row, cause=why if row.quantity.startswith("as published") else "") for row in rows]


# The other numbers of the page of targets: changed settings, Adam's eps, chains, text. One run each, seed 0.
UNSCALED = "the reference read Phi without its factor 1/16: see the same number of unscaled scores"


def changed_rows() -> list[Distance]:
    section = "Changed settings, seed 0"
    rows = []
    for name, numbers in reference()["changed"]["values"].items():
        found = tried(name)
        for quantity, value in numbers.items():
            if value is None:  # the reference says that it does not come within the run
                ours = found[quantity]
                rows.append(Distance(section, f"{name}: {quantity}", "1 if it comes", 0.0, float(ours is not None), 0.5))
            else:
                limit = 0.005 if quantity.endswith("height") else 0.03 * value + SPACING
                why = UNSCALED if "scale" in name and "unscaled" not in quantity else ""
                rows.append(Distance(section, f"{name}: {quantity}", "", value, found[quantity], limit, why))
    return rows


def adam_rows() -> list[Distance]:
    """Adam's eps from the experiment to the theorem, and chains with other transition matrices, on infinitely long contexts."""
    rows, found = [], reference()["adam"]["values"]
    why = "the reference is another start: own generator of random numbers"
    for eps in STEPS_BY_EPS:
        point, expected = by_eps(eps), found["path"][f"{eps:g}"]
        for row, (ours, value) in enumerate(zip(point["peaks"], expected["peaks"], strict=True), 1):
            rows.append(
                Distance(
                    "From the experiment to the theorem by eps", f"peak of row {row}", f"eps {eps:g}", value, ours, 0.02, why
                )
            )
        for row, (ours, value) in enumerate(zip(point["norms"], expected["norms"], strict=True)):
            where = f"eps {eps:g}"
            rows.append(
                Distance(
                    "From the experiment to the theorem by eps",
                    f"norm of row {row} at norm .3 of row 0",
                    where,
                    value,
                    ours,
                    0.02,
                    why,
                )
            )
    theorem = runs.flow()
    for row, (ours, value) in enumerate(zip(theorem.on_frequent.max(axis=0)[1:], found["flow"], strict=True), 1):
        rows.append(
            Distance(
                "From the experiment to the theorem by eps", f"peak of row {row}", "gradient flow", value, float(ours), 0.005, why
            )
        )
    for eps in FROZEN_EPS:
        curves = runs.descended(700, eps=eps)
        value = found["opens"][f"{0 if eps < 1e-10 else eps:g}"]
        ours = focus_times(curves)[0]
        rows.append(
            Distance("Frozen attention by eps", "total focus of row 1 at step", f"eps {eps:g}", value, ours, 0.15 * value, why)
        )
    for name, value in found["blind"].items():
        curves = runs.descended(300, chains()[name], every=1)
        ours = first(curves.time, curves.on_frequent[:, 1] > 0.9)
        rows.append(Distance("Blind to the transition matrix", "row 1 above .9 at step", name, value, ours, 5.0, why))
    return rows


def text_rows() -> list[Distance]:
    rows, found = [], reference()["text"]["values"]
    panel = text_panel(runs.text_run("tinystories"))
    steps = np.array(panel["step"])
    for at, expected in found.items():
        frame = int(np.argmin(np.abs(steps - float(at))))
        for name, limit in (("attention", 0.06), ("norms", 0.03)):
            for word, values, value in zip(panel["words"], panel[name], expected[name], strict=True):
                rows.append(
                    Distance(
                        "TinyStories, attention of 'been' and norms", f"{name}: {word}", f"step {at}", value, values[frame], limit
                    )
                )
        rows.append(
            Distance(
                "TinyStories, attention of 'been' and norms", "loss", f"step {at}", expected["loss"], panel["loss"][frame], 0.05
            )
        )
    return rows
