"""Inputs drawn by seed on which the claims of incremental learning are tried, and nulls, on which they are false."""

from typing import Any

import numpy as np

from stagescope.claims.inputs import Inputs
from stagescope.dynamics.evolve import evolve
from stagescope.dynamics.flow import GradientFlow
from stagescope.dynamics.record import LogSpaced
from stagescope.keys import key
from stagescope.papers.incremental.forms import RegressionForms
from stagescope.papers.incremental.regression.loss import RegressionLoss
from stagescope.papers.incremental.regression.model import RegressionHeads
from stagescope.papers.incremental.study import STUDY
from stagescope.runs.run import Run

FIXED = 40.0
"""A logit this far above the others keeps the attention where it is: its gradient is e^-40."""


def _rng(seed: int, *names: str) -> np.random.Generator:
    return key(seed, "incremental inputs", *names)


def _log_uniform(rng: np.random.Generator, low: float, high: float) -> float:
    return float(np.exp(rng.uniform(np.log(low), np.log(high))))


def _study(seed: int, **options: Any) -> Run:
    return STUDY.run(STUDY.configured(None, **options), seed=seed, progress=False)


def _gains(rng: np.random.Generator, groups: int) -> tuple[float, ...]:
    """Importances, each 1.35 to 2.5 times the next."""
    ratios = rng.uniform(1.35, 2.5, groups - 1)
    largest = _log_uniform(rng, 1.5, 5.0)
    return tuple(float(f"{largest / np.prod(ratios[:i]):.4g}") for i in range(groups))


def _sizes(rng: np.random.Generator) -> tuple[int, int, int, tuple[float, ...]]:
    """Heads, groups, positions, gains."""
    groups = int(rng.integers(2, 4))
    heads, positions = int(rng.integers(2, groups + 2)), round(_log_uniform(rng, groups + 1, 60))
    return heads, groups, positions, _gains(rng, groups)


def _flow(seed: int, model: str = "") -> Run:
    """A flow of either law, long enough for the last transition by the closed forms."""
    rng = _rng(seed, "flows")
    heads, groups, positions, gains = _sizes(rng)
    model = model or str(rng.choice(["regression", "mirror"]))
    sigma = _log_uniform(rng, 1e-8, 1e-3)
    pairs = [RegressionForms(gains[i:], positions, heads, model == "mirror") for i in range(groups - 1)]
    until = 3 * (pairs[0].first_time + sum(pair.escape_time(sigma / 10) for pair in pairs)) + 50
    sizes = {"heads": heads, "positions": positions, "gains": gains}
    return _study(seed, model=model, **sizes, init_scale=sigma, until=float(f"{until:.4g}"))


def _wide_flow(seed: int) -> Run:
    """One head over 100 to 400 positions, long enough for t_1."""
    rng = _rng(seed, "wide flows")
    heads, gains = 1, _gains(rng, int(rng.integers(2, 4)))
    model, positions = str(rng.choice(["regression", "mirror"])), int(rng.integers(100, 401))
    until = 12 * RegressionForms(gains, positions, heads, model == "mirror").first_time
    sizes = {"heads": heads, "positions": positions, "gains": gains}
    return _study(seed, model=model, **sizes, init_scale=_log_uniform(rng, 1e-8, 1e-3), until=float(f"{until:.4g}"))


def _lag_task(rng: np.random.Generator, groups: int) -> dict[str, Any]:
    return {
        "vocab": int(rng.integers(5, 11)),
        "importance_ratio": float(rng.uniform(1.4, 2.2)) if groups > 1 else 1.7,
        "feature_seed": int(rng.integers(2**31)),
        "feature_kind": "gram-schmidt",
        "reverse": bool(rng.random() < 0.5),
    }


def _student(seed: int, **changes: Any) -> Run:
    """Positional heads on single lags by gradient descent, true law as labels."""
    rng = _rng(seed, "students")
    groups = int(rng.integers(2, 4))
    task, scale = _lag_task(rng, groups), _log_uniform(rng, 0.25, 1.5)
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
        "init_scale": _log_uniform(rng, 1e-4, 1e-2),
    }
    return _study(seed, **{**options, **changes})


def _adam_student(seed: int) -> Run:
    """Positional heads on spans of lags by Adam, drawn tokens as labels: the paper's task, smaller."""
    rng = _rng(seed, "adam")
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
        "init_scale": _log_uniform(rng, 1e-4, 1e-2),
    }
    return _study(seed, **options)


def _any_adam(seed: int) -> Run:
    """The same drawn more widely: fewer heads than groups, spans of different lengths, few tokens."""
    rng = _rng(seed, "any adam")
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
        "init_scale": _log_uniform(rng, 1e-4, 1e-2),
    }
    return _study(seed, **options)


def _sampled(seed: int, **changes: Any) -> Run:
    """The regression transformer on batches of contexts."""
    rng = _rng(seed, "sampled")
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
        "steps": 5000,
        "feature_seed": int(rng.integers(2**31)),
        "init_scale": _log_uniform(rng, 1e-3, 3e-2),
    }
    return _study(seed, **{**options, **changes})


def _equal_heads(seed: int) -> Run:
    """Flows and students from exactly equal heads."""
    if seed % 3 == 0:
        return _student(seed, init_scale=0.0)
    rng = _rng(seed, "equal")
    heads, _, positions, gains = _sizes(rng)
    model = str(rng.choice(["regression", "mirror"]))
    until = 20 * RegressionForms(gains, positions, heads, model == "mirror").first_time + 50
    sizes = {"heads": heads, "positions": positions, "gains": gains}
    return _study(seed, model=model, **sizes, init_scale=0.0, until=float(f"{until:.4g}"))


def _few_sequences(seed: int, **changes: Any) -> Run:
    """Adam on few drawn sequences, which it overfits."""
    rng = _rng(seed, "few")
    groups = int(rng.integers(2, 4))
    options = {
        "scale": float(rng.uniform(3.0, 5.0)),
        "spans": (1,) * groups,
        "targets": 6,
        "sequences": round(_log_uniform(rng, 30, 500)),
        "heads": groups,
        "steps": 800,
        "clip": 1.0,
    }
    return _study(seed, **{**_lag_task(rng, groups), "vocab": int(rng.integers(8, 13)), **options, **changes})


def inputs() -> tuple[Inputs, ...]:
    """Settings the paper is about."""
    return (
        Inputs("flows", "regression flows of both laws: gains, positions, heads and noise drawn", _flow),
        Inputs("wide flows", "flows of one head over 100 to 400 positions, up to plateau 1", _wide_flow),
        Inputs("equal heads", "flows and students whose heads start exactly equal", _equal_heads),
        Inputs("students", "positional heads on single lags by gradient descent", _student),
        Inputs("Adam", "positional heads on spans of lags by Adam, drawn tokens as labels", _adam_student),
        Inputs("any Adam", "the same with 5 to 10 tokens, spans of 1 or 2, and maybe fewer heads than groups", _any_adam),
        Inputs("sampled", "the regression transformer on batches of contexts", _sampled),
        Inputs("few sequences", "Adam on 30 to 500 drawn sequences", _few_sequences),
    )


def _placed(seed: int, place: int | None, strength: float, noise: float) -> Run:
    """The exact flow from heads that start on features of their own, or all on one; -1 is the least important."""
    rng = _rng(seed, "placed")
    groups = int(rng.integers(2, 4))
    heads = groups if place is None else int(rng.integers(2, groups + 1))
    model = RegressionHeads(positions=int(rng.integers(groups + 1, 12)), gains=_gains(rng, groups), heads=heads)
    start = model.init(seed, noise)
    start["a"][np.arange(heads), np.arange(heads) if place is None else place % groups] += strength
    flow = GradientFlow(rtol=1e-12)
    return evolve(
        RegressionLoss(model=model), start, flow, until=2000.0, record=LogSpaced(frames=300, first=1e-2), progress=False
    )


def _cut(seed: int, after_first: bool) -> Run:
    """A flow up to a time before t_1, or between t_1 and t_2 by the closed forms."""
    rng = _rng(seed, "cut")
    heads, _, positions, gains = _sizes(rng)
    model = str(rng.choice(["regression", "mirror"]))
    forms = RegressionForms(gains, positions, heads, model == "mirror")
    share = float(rng.uniform(0.05, 0.5))
    until = forms.first_time * (1.3 + share) if after_first else forms.first_time * share
    sizes = {"heads": heads, "positions": positions, "gains": gains}
    return _study(seed, model=model, **sizes, init_scale=1e-8, until=float(f"{until:.4g}"))


def _biased_student(seed: int, few: bool) -> Run:
    """A student whose heads stay on the lag of the least important group."""
    made = _few_sequences(seed, steps=2) if few else _student(seed, steps=2)
    plan = STUDY.setup(STUDY.options(**{name: made.config[name] for name in STUDY.options.model_fields}), seed)  # type: ignore[index]
    model, lag = plan.what.model, plan.what.process.groups[-1][0]  # type: ignore[attr-defined]
    start = {name: np.array(block) for name, block in plan.params.items()}
    targets = np.arange(model.targets)
    start["a"][:, targets, model.context + targets - lag] += FIXED
    dynamics = plan.dynamics.model_copy(update={"steps": 800})
    return evolve(plan.what, start, dynamics, record=LogSpaced(frames=300), seed=seed, progress=False)


FROZEN = Inputs(
    "frozen attention",
    "each head starts on a feature of its own and stays there: the loss is one exponential without stages, and all features "
    "are learned at once",
    lambda seed: _placed(seed, place=None, strength=FIXED, noise=0.0),
)
BIASED = Inputs(
    "heads on the least important feature",
    "all heads start there, so it is learned first",
    lambda seed: _placed(seed, place=-1, strength=5.0, noise=1e-3),
)
BIASED_STUDENT = Inputs(
    "students on the least important lag",
    "all heads of a student stay on it: it never predicts as a class of the ladder",
    lambda seed: _biased_student(seed, few=False),
)
STUCK = Inputs(
    "few sequences, heads on the least important lag",
    "the same trained on few drawn sequences: no stop can pick the best class",
    lambda seed: _biased_student(seed, few=True),
)
EQUAL_BIASED = Inputs(
    "equal heads on the least important feature",
    "they stay there, and never come to plateau 1",
    lambda seed: _placed(seed, place=-1, strength=FIXED, noise=0.0),
)
FIRST_ONLY = Inputs(
    "heads kept on the first feature",
    "all heads stay on the most important feature: nothing parts them, and they end on plateau 1",
    lambda seed: _placed(seed, place=0, strength=FIXED, noise=1e-3),
)
CUT = Inputs("cut before t_2", "the run ends before heads part", lambda seed: _cut(seed, after_first=True))
CUT_FIRST = Inputs("cut before t_1", "the run ends before the first transition", lambda seed: _cut(seed, after_first=False))
UNRELATED = Inputs(
    "tokens without a past",
    "importances near zero: the tokens are independent, and all classes predict alike",
    lambda seed: _student(seed, scale=1e-3, steps=600),
)
FEW_UNRELATED = Inputs(
    "few tokens without a past",
    "importances near zero and few sequences: to know the lags is of no use",
    lambda seed: _few_sequences(seed, scale=1e-3, steps=300),
)
SHAKEN = Inputs(
    "batches of one context",
    "heads are parted by the noise of single contexts, not by the landscape",
    lambda seed: _sampled(seed, batch=1, rate_values=0.05, rate_attention=0.05, steps=3000),
)
