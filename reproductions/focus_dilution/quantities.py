"""Every number of the reference measurements, from one run at the published setting; the names are those of reference.json."""

from typing import Any

import numpy as np

from stagescope.papers.focus_dilution import (
    TokenCurves,
    last_token_losses,
    mean_cosine,
    perpendicular_norms,
    position_entropies,
    principal_paths,
)

BLOCKS = ("W0", "WQ", "WK", "W1")
STEPS = (
    0,
    30,
    60,
    90,
    120,
    150,
    180,
    198,
    240,
    270,
    300,
    351,
    399,
    450,
    498,
    550,
    601,
    700,
    799,
    1000,
    1250,
    1498,
    2000,
    2498,
    3000,
)
OPENED = 3
"""A singular value has opened at this multiple of the largest one of the start."""


def quantities(curves: TokenCurves) -> dict[str, float]:
    """Numbers by name: NAME@STEP at the steps of STEPS that the run reaches, else a peak, a step or a share."""
    return {**at_steps(curves), **turning_points(curves)}


def at_steps(curves: TokenCurves) -> dict[str, float]:
    steps = [step for step in STEPS if step <= curves.time[-1]]
    frames = np.array([int(np.argmin(np.abs(curves.time - step))) for step in steps])
    some = TokenCurves(curves.time[frames], {name: block[frames] for name, block in curves.params.items()}, curves.law)
    losses, w0 = last_token_losses(some), some.params["W0"]
    entropy = position_entropies(some)
    tokens = range(len(curves.pi))
    columns: dict[str, np.ndarray] = {"loss": losses.total, "entmean": entropy @ losses.shares}
    for k in tokens:
        columns |= {
            f"S{k}": losses.by_token[:, k],
            f"ent{k}": entropy[:, k],
            f"norm{k}": some.norms[:, k],
            f"Hprobe{k}": some.probe_entropy[:, k],
            f"A{k}0": some.attention[:, k, 0],
        }
        if k:
            columns |= {f"perp{k}": perpendicular_norms(w0)[:, k], f"A{k}{k}": some.attention[:, k, k]}
    for name in BLOCKS:
        values = np.linalg.svd(some.params[name], compute_uv=False)
        columns |= {
            f"cos{name}": np.array([mean_cosine(block) for block in some.params[name]]),
            f"sr{name}": values[:, 1] / values[:, 0],
        }
    columns["cosW0rows"] = np.array([mean_cosine(block.T) for block in w0])
    centred = curves.pi - 1 / len(curves.pi)
    left, right = np.linalg.svd(w0)[0][:, :, 0], np.linalg.svd(some.params["W1"])[2][:, 0]
    columns |= {"W0~pi": _cosine(left, curves.pi), "W0~ones": _cosine(left, np.ones(len(curves.pi)))}
    columns |= {"W1~pi-1/d": _cosine(right, centred), "W1~sign": _cosine(right, np.sign(centred))}
    return {f"{name}@{step}": float(value) for name, values in columns.items() for step, value in zip(steps, values, strict=True)}


def _cosine(rows: np.ndarray, direction: np.ndarray) -> np.ndarray:
    return np.abs(rows @ direction) / np.linalg.norm(rows, axis=1) / np.linalg.norm(direction)


def turning_points(curves: TokenCurves) -> dict[str, float]:
    """Peaks of attention, steps at which levels are passed, tops and bottoms of norms; what has not come is left out."""
    time, attention, found = curves.time, curves.attention, {}
    rare = range(1, len(curves.pi))
    for row in rare:
        curve = attention[:, row, 0]
        peak = int(np.argmax(curve))
        found |= {f"focus{row}_peak": curve[peak], f"focus{row}_step": time[peak]}
        for level in (0.8, 0.9):
            found[f"row{row}>{level:g}".replace("0.", ".") + " step"] = first(time, curve > level)
        for level in (0.75, 0.5, 0.05):
            found[f"row{row}<{level:g}".replace("0.", ".") + " step"] = first(time, curve < level, peak)
        found |= _norm_turns(time, curves.norms[:, row], row)
    for row, column in ((2, 1), (3, 1), (3, 2)):  # the later cycles: the rest of the tokens on token 1, then on token 2
        curve = attention[:, row, column]
        peak = int(np.argmax(curve))
        found |= {f"A{row}{column}_peak": curve[peak], f"A{row}{column}_step": time[peak]}
        found[f"A{row}{column}<.5 step"] = first(time, curve < 0.5, peak)
    found |= {f"A{row}{row}>.9 step": first(time, attention[:, row, row] > 0.9) for row in rare}
    start = curves.embedding_values[0, 0]
    found |= {f"sv{k + 1}W0_0": value for k, value in enumerate(curves.embedding_values[0])}
    for k, values in enumerate(curves.embedding_values.T):
        found[f"sv{k + 1}W0 x3 step"] = first(time, values > OPENED * start)
    for k, values in enumerate(curves.score_values.T[:3]):
        found[f"Q{k + 1} sv_Phi>1 step"] = first(time, values > 1)
    for until in (550, 3000):
        if time[-1] >= until:
            shares = principal_paths(curves.params["W0"][time <= until])[1]
            found |= {f"pca{until}_{k + 1}": share for k, share in enumerate(shares)}
    return {name: float(value) for name, value in found.items() if np.isfinite(value)}


def first(time: np.ndarray, met: np.ndarray, start: int = 0) -> float:
    """The time of the first frame from `start` on that meets a condition, nan where none does."""
    later = np.flatnonzero(met[start:])
    return float(time[start + later[0]]) if len(later) else np.nan


def _norm_turns(time: np.ndarray, norm: np.ndarray, row: int) -> dict[str, Any]:
    """The first top of a norm and the bottom after it, and of row 2 the second top and bottom."""
    top = int(np.argmax(np.where(time < 260, norm, -np.inf)))
    bottom = top + int(np.argmin(np.where(time[top:] < 700, norm[top:], np.inf)))
    found = {f"norm{row}_max1": norm[top], f"norm{row}_max1_step": time[top]}
    if row == 2:
        until = (time > time[top]) & (time < 400)
        bottom = int(np.argmin(np.where(until, norm, np.inf)))
        again = bottom + int(np.argmax(np.where(time[bottom:] < 460, norm[bottom:], -np.inf)))
        low = again + int(np.argmin(np.where(time[again:] < 700, norm[again:], np.inf)))
        found |= {
            "norm2_max2": norm[again],
            "norm2_max2_step": time[again],
            "norm2_min2": norm[low],
            "norm2_min2_step": time[low],
        }
    return {**found, f"norm{row}_min1": norm[bottom], f"norm{row}_min1_step": time[bottom]}
