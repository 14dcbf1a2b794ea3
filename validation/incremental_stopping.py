"""Early stopping: the regret of rules that a user can follow against the best frame, over sizes, seeds and noise.

Beside them stands the ridge fit that knows the lags: where its number is negative it predicts better than the best frame.
"""

from collections.abc import Iterator

import numpy as np

import stagescope as ss
from stagescope.papers.incremental.stopping import stopping

SIZES = (50, 100, 200, 400, 800, 1600)
NOISES = {"all sequences": {}, "batches of 25": {"batch": 25}}
SEEDS = (41, 42, 43)
TASK = {"vocab": 12, "targets": 6, "steps": 900, "clip": 1.0}
RULES = ("held-out", "adaptive", "end")


def main() -> bool:
    rows = list(_rows())
    print(f"{'noise':<15} {'N':>5} {'oracle':>7}" + "".join(f" {rule:>17}" for rule in RULES) + f" {'ridge':>8}")
    for noise in NOISES:
        for size in SIZES:
            _line(f"{noise:<15} {size:>5}", [row for row in rows if row["noise"] == noise and row["size"] == size])
    _line(f"{'all':<15} {len(rows):>5}", rows)
    for rule in RULES:
        regrets = np.array([row[rule] for row in rows])
        spread = ", ".join(f"{value:.3f}" for value in np.quantile(regrets, [0.5, 0.9, 1.0]))
        print(f"{rule}: mean regret {regrets.mean():.3f} nats, median, 90 % and largest {spread}")
    mean = {rule: np.mean([row[rule] for row in rows]) for rule in RULES}
    return bool(mean["adaptive"] <= mean["held-out"] and mean["adaptive"] <= mean["end"])


def _rows() -> Iterator[dict]:
    """Regrets of each rule, the step at which it ends training, and the ridge fit, run by run."""
    for noise, changes in NOISES.items():
        for size in SIZES:
            for seed in SEEDS:
                options = {**TASK, **changes, "sequences": size, "feature_seed": seed}
                found = stopping(ss.run_study("incremental", seed=seed, progress=False, **options))
                best = found.loss("oracle")
                rules = {rule: found.loss(rule) - best for rule in RULES}
                steps = {f"{rule} step": float(found.step[found.stops[rule].decided]) for rule in RULES}
                ridge = float(np.nanmin(found.ridge)) - best
                yield {"noise": noise, "size": size, "oracle": best, "ridge": ridge, **rules, **steps}


def _line(name: str, rows: list[dict]) -> None:
    """Means: loss of the oracle, regret of each rule with the step at which it ends training, the ridge fit's distance."""
    cells = (f" {np.mean([r[rule] for r in rows]):>9.3f} ({np.mean([r[f'{rule} step'] for r in rows]):>4.0f})" for rule in RULES)
    print(f"{name} {np.mean([r['oracle'] for r in rows]):>7.3f}" + "".join(f" {cell}" for cell in cells), end="")
    print(f" {np.mean([r['ridge'] for r in rows]):>+8.3f}", flush=True)
