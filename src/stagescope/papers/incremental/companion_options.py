"""Options of the study with which claims are decided that a run cannot decide."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from stagescope.papers.incremental.evidence import Evidence
from stagescope.papers.incremental.regression import RegressionForms
from stagescope.papers.incremental.study import FLOWS, STUDENTS, IncrementalOptions


def _changed(evidence: Evidence, preserved: tuple[str, ...], **changes: Any) -> Mapping[str, Any] | None:
    """Options of another model: what is not kept or changed goes back to its default, since most would have no effect there."""
    config = evidence.config
    if config is None:
        return None
    fields = {name: field.default for name, field in IncrementalOptions.model_fields.items()}
    back = {name: default for name, default in fields.items() if name not in preserved and config.get(name) != default}
    return evidence.changed({**back, **changes})


def _gains(evidence: Evidence, largest: float) -> tuple[float, ...]:
    """The importances of the run, scaled."""
    gains = evidence.task.gains
    return tuple(float(f"{largest * gain / gains[0]:.4g}") for gain in gains)


def many_positions(evidence: Evidence) -> Mapping[str, Any] | None:
    """A flow of the same heads and importances over 400 positions, with g_1 >= 2 H: t_1 has its closed form to 4 %."""
    heads, model = evidence.task.heads, evidence.config["model"] if evidence.config else ""
    model = model if model in FLOWS else "mirror"
    gains = _gains(evidence, max(evidence.task.gains[0], 2.0 * heads))
    until = 3 * RegressionForms(gains, 400, heads, mirror=model == "mirror").first_time
    return _changed(
        evidence, ("heads",), model=model, positions=400, gains=gains, until=float(f"{until:.3g}"), init_scale=1e-6, heads=heads
    )


def long_plateau(evidence: Evidence) -> Mapping[str, Any] | None:
    """The flow with fewer positions, or wider gaps between the gains, so that the escape slope has come to its limit."""
    forms, config = evidence.task.forms, evidence.config
    if forms is None or config is None:
        return None
    for ratio in (1.0, 1.5, 2.0, 3.0, 5.0):
        gains = tuple(float(f"{gain * ratio ** (len(forms.gains) - 1 - i):.4g}") for i, gain in enumerate(forms.gains))
        candidate = RegressionForms(gains, len(gains), forms.heads, forms.mirror)
        if candidate.limit_error(1e-5) <= 0.04:
            until = 4 * candidate.escape_time(1e-5) + 100 * candidate.first_time
            sizes = {"gains": gains, "positions": len(gains), "until": float(f"{until:.3g}")}
            return evidence.changed({**sizes, "init_scale": 1e-5, "noise": "logits"})
    return None


def without_end(evidence: Evidence) -> Mapping[str, Any] | None:
    """The same student with new sequences at every step, for twice as many steps: nothing is overfitted, and it comes to rest.

    None where that would not help: nothing was sampled once and for all, or another assumption fails.
    """
    config = evidence.config
    if config is None or config["model"] not in STUDENTS or config["fresh"] or config["labels"] == "soft":
        return None
    if not all(holds for holds, _ in evidence.assumptions(noisy=False)):
        return None
    return evidence.changed({"fresh": True, "steps": 2 * int(config["steps"])})


def small_logits(evidence: Evidence) -> Mapping[str, Any] | None:
    """For flows and regression models, batches of contexts; for students, small true logits, single lags, one target."""
    config = evidence.config
    if config is None:
        return None
    heads, groups = evidence.task.heads, len(evidence.task.gains)
    if config["model"] in (*FLOWS, "regression-transformer"):
        gains = _gains(evidence, 2.89)
        positions = max(groups + 2, min(8, int(config["positions"])))
        sizes = {"positions": positions, "gains": gains, "dim": max(8, groups), "heads": heads, "steps": 4000}
        moves = {"rate_values": 0.03, "rate_attention": 0.03, "batch": 128, "init_scale": 1e-2}
        return _changed(evidence, ("init_seed",), model="regression-transformer", **sizes, **moves)
    ratio = min(float(config["importance_ratio"]), 2.0) if groups > 1 else 1.7
    vocab = max(groups + 3, 8)
    size = np.sqrt(sum(ratio ** (2 * i) for i in range(groups)) * vocab) / vocab  # rms of the true logits at scale 1
    rate = 0.2 * vocab**2  # a fifth of the flow's unit of time
    return _changed(
        evidence,
        ("init_seed", "feature_seed"),
        model="heads",
        vocab=vocab,
        spans=(1,) * groups,
        importance_ratio=ratio,
        scale=float(f"{0.2 / size:.3g}"),
        feature_kind="gram-schmidt",
        targets=1,
        pad=3,
        labels="soft",
        sequences=3000,
        heads=heads,
        optimizer="gd",
        rate_values=rate,
        rate_attention=rate,
        steps=2500,
        init_scale=1e-2,
    )
