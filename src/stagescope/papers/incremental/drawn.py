"""Inputs drawn by seed on which the claims of incremental learning are tried."""

from collections.abc import Callable
from typing import Any

import numpy as np

from stagescope.claims.inputs import Inputs
from stagescope.keys import key
from stagescope.papers.incremental.regression import RegressionForms
from stagescope.papers.incremental.study import STUDY
from stagescope.runs.run import Run


def draws(seed: int, *names: str) -> np.random.Generator:
    return key(seed, "incremental inputs", *names)


def log_uniform(rng: np.random.Generator, low: float, high: float) -> float:
    return float(np.exp(rng.uniform(np.log(low), np.log(high))))


def study(seed: int, **options: Any) -> Run:
    return STUDY.run(STUDY.configured(None, **options), seed=seed, progress=False)


def draw_gains(rng: np.random.Generator, groups: int) -> tuple[float, ...]:
    """Importances, each 1.35 to 2.5 times the next."""
    ratios = rng.uniform(1.35, 2.5, groups - 1)
    largest = log_uniform(rng, 1.5, 5.0)
    return tuple(float(f"{largest / np.prod(ratios[:i]):.4g}") for i in range(groups))


def _sizes(rng: np.random.Generator) -> tuple[int, int, int, tuple[float, ...]]:
    """Heads, groups, positions, gains."""
    groups = int(rng.integers(2, 4))
    heads, positions = int(rng.integers(2, groups + 2)), round(log_uniform(rng, groups + 1, 60))
    return heads, groups, positions, draw_gains(rng, groups)


def flow(seed: int, heads_of: Callable[[int, int], int] | None = None, least: float = 1e-8) -> Run:
    """A flow of either law, long enough for the last transition by the closed forms.

    `heads_of(heads, groups)` changes the number of heads drawn; `least` is the least noise.
    """
    rng = draws(seed, "flows")
    heads, groups, positions, gains = _sizes(rng)
    heads = heads if heads_of is None else heads_of(heads, groups)
    model = str(rng.choice(["regression", "mirror"]))
    sigma = log_uniform(rng, least, 1e-3)
    pairs = [RegressionForms(gains[i:], positions, heads, model == "mirror") for i in range(groups - 1)]
    until = 3 * (pairs[0].first_time + sum(pair.escape_time(sigma / 10) for pair in pairs)) + 50
    sizes = {"heads": heads, "positions": positions, "gains": gains}
    return study(seed, model=model, **sizes, init_scale=sigma, until=float(f"{until:.4g}"))


def wide_flow(seed: int) -> Run:
    """One head over 100 to 400 positions, long enough for t_1."""
    rng = draws(seed, "wide flows")
    heads, gains = 1, draw_gains(rng, int(rng.integers(2, 4)))
    model, positions = str(rng.choice(["regression", "mirror"])), int(rng.integers(100, 401))
    until = 12 * RegressionForms(gains, positions, heads, model == "mirror").first_time
    sizes = {"heads": heads, "positions": positions, "gains": gains}
    return study(seed, model=model, **sizes, init_scale=log_uniform(rng, 1e-8, 1e-3), until=float(f"{until:.4g}"))


def _lag_task(rng: np.random.Generator, groups: int) -> dict[str, Any]:
    return {
        "vocab": int(rng.integers(5, 11)),
        "importance_ratio": float(rng.uniform(1.4, 2.2)) if groups > 1 else 1.7,
        "feature_seed": int(rng.integers(2**31)),
        "feature_kind": "gram-schmidt",
        "reverse": bool(rng.random() < 0.5),
    }


def student(seed: int, size: float | None = None, **changes: Any) -> Run:
    """Positional heads on single lags by gradient descent, true law as labels; `size` is the rms of the true logits."""
    rng = draws(seed, "students")
    groups = int(rng.integers(2, 4))
    task, scale = _lag_task(rng, groups), log_uniform(rng, 0.25, 1.5)
    if size is not None:
        ratios = task["importance_ratio"] ** np.arange(groups)
        scale = size * float(np.sqrt(task["vocab"]) / np.linalg.norm(ratios))
    rate = 0.2 * task["vocab"] ** 2 * min(1.0, 0.35 / scale)
    options = {
        **task,
        "scale": scale,
        "spans": (1,) * groups,
        "pad": int(rng.integers(1, 4)),
        "targets": 1,
        "labels": "soft",
        "sequences": 1000,
        "heads": int(rng.integers(2, groups + 1)),
        "optimizer": "gd",
        "rate_values": rate,
        "rate_attention": rate,
        "steps": 2500,
        "init_scale": log_uniform(rng, 1e-4, 1e-2),
    }
    return study(seed, **{**options, **changes})


def _adam_student(seed: int) -> Run:
    """Positional heads on spans of lags by Adam, drawn tokens as labels: the paper's task, smaller."""
    rng = draws(seed, "adam")
    groups = int(rng.integers(2, 4))
    options = {
        "vocab": int(rng.integers(10, 17)),
        "feature_seed": int(rng.integers(2**31)),
        "importance_ratio": float(rng.uniform(1.5, 2.0)),
        "reverse": bool(rng.random() < 0.5),
        "scale": float(rng.uniform(3.0, 6.0)),
        "spans": (2,) * groups,
        "targets": 8,
        "sequences": 1500,
        "heads": groups,
        "steps": 800,
        "clip": 1.0,
        "init_scale": log_uniform(rng, 1e-4, 1e-2),
    }
    return study(seed, **options)


def _any_adam(seed: int) -> Run:
    """The same drawn more widely: fewer heads than groups, spans of different lengths, few tokens."""
    rng = draws(seed, "any adam")
    groups = int(rng.integers(2, 4))
    options = {
        **_lag_task(rng, groups),
        "feature_kind": str(rng.choice(["orthogonal", "gram-schmidt"])),
        "scale": float(rng.uniform(2.5, 5.0)),
        "spans": tuple(int(n) for n in rng.integers(1, 3, groups)),
        "targets": 6,
        "sequences": 2500,
        "heads": int(rng.integers(2, groups + 1)),
        "steps": 900,
        "clip": 1.0,
        "init_scale": log_uniform(rng, 1e-4, 1e-2),
    }
    return study(seed, **options)


def sampled(seed: int, **changes: Any) -> Run:
    """The regression transformer on batches of contexts."""
    rng = draws(seed, "sampled")
    groups = int(rng.integers(2, 4))
    ratios = rng.uniform(1.4, 1.8, groups - 1)
    last = float(rng.uniform(0.9, 1.3))
    options = {
        "model": "regression-transformer",
        "gains": tuple(float(f"{last * np.prod(ratios[i:]):.4g}") for i in range(groups)),
        "positions": int(rng.integers(groups + 1, 9)),
        "heads": int(rng.integers(2, groups + 1)),
        "dim": int(rng.integers(groups + 2, 10)),
        "batch": int(rng.choice([64, 128, 256])),
        "rate_values": 0.03,
        "rate_attention": 0.03,
        "steps": 4000,
        "feature_seed": int(rng.integers(2**31)),
        "init_scale": log_uniform(rng, 1e-3, 3e-2),
    }
    return study(seed, **{**options, **changes})


def _equal_heads(seed: int) -> Run:
    """Flows and students from exactly equal heads."""
    if seed % 3 == 0:
        return student(seed, init_scale=0.0)
    rng = draws(seed, "equal")
    heads, _, positions, gains = _sizes(rng)
    model = str(rng.choice(["regression", "mirror"]))
    until = 20 * RegressionForms(gains, positions, heads, model == "mirror").first_time + 50
    sizes = {"heads": heads, "positions": positions, "gains": gains}
    return study(seed, model=model, **sizes, init_scale=0.0, until=float(f"{until:.4g}"))


def few_sequences(seed: int, **changes: Any) -> Run:
    """Adam on few drawn sequences, which it overfits."""
    rng = draws(seed, "few")
    groups = int(rng.integers(2, 4))
    options = {
        "scale": float(rng.uniform(3.0, 5.0)),
        "spans": (1,) * groups,
        "targets": 6,
        "sequences": round(log_uniform(rng, 30, 500)),
        "heads": groups,
        "steps": 800,
        "clip": 1.0,
    }
    return study(seed, **{**_lag_task(rng, groups), "vocab": int(rng.integers(8, 13)), **options, **changes})


def inputs() -> tuple[Inputs, ...]:
    """Settings the paper is about."""
    return (
        Inputs("flows", "regression flows of both laws: gains, positions, heads and noise drawn", flow),
        Inputs("wide flows", "flows of one head over 100 to 400 positions, up to plateau 1", wide_flow),
        Inputs("equal heads", "flows and students whose heads start exactly equal", _equal_heads),
        Inputs("students", "positional heads on single lags by gradient descent", student),
        Inputs("Adam", "positional heads on spans of lags by Adam, drawn tokens as labels", _adam_student),
        Inputs("any Adam", "the same with 5 to 10 tokens, spans of 1 or 2, and maybe fewer heads than groups", _any_adam),
        Inputs("sampled", "the regression transformer on batches of contexts", sampled),
        Inputs("few sequences", "Adam on 30 to 500 drawn sequences", few_sequences),
    )
