"""Options of the study with which claims are decided that a run cannot decide."""

from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from stagescope.papers.scan_snap.evidence import Evidence
from stagescope.papers.scan_snap.forms import t0_prime
from stagescope.papers.scan_snap.limits import LIMITS
from stagescope.papers.scan_snap.study import GENERATOR, STUDY

if TYPE_CHECKING:
    from stagescope.papers.scan_snap.text.claims import TextEvidence

FLOW = (
    *("optimizer", "steps", "lr", "momentum", "length", "batch", "record", "frames", "columns", "method", "rtol"),
    *("init_scale", "start_scores", "residual", "heads"),
)
"""Options at their defaults make the flow from zero."""
_RAMP: dict[str, Any] = {"umin": 0.1, "umax": 1.0}
_WEAK_COMMON = {"num_common": 1, "common_p": 0.5, **_RAMP}


def _companion_options(
    evidence: Evidence, times: float, least: dict[str, int], ratio: float | None = None, **wanted: Any
) -> dict[str, Any] | None:
    """The flow from zero to `times` K ln M / eta_Y, on classes of the generator like those of the run, each with its own query.

    One class has no common token, so there are two at least. `least` are smallest counts. With a `ratio` of the rates there are
    many outputs: those of the run, at least 1000, and twice the tokens of the classes. Only options that the run does not have
    are given; None if it has them all, and for a run of no study.
    """
    config, fields = evidence.run.config, STUDY.options.model_fields
    if config is None or evidence.run.study != STUDY.name:
        return None
    like = {} if config.get("classes") is not None else config
    options = {name: fields[name].default for name in FLOW}
    options |= {name: like.get(name, fields[name].default) for name in GENERATOR}
    options |= {name: config.get(name) or 1.0 for name in ("rate_y", "rate_z")}
    options |= {"classes": None, "num_last": min(LIMITS.classes, max(2, options["num_last"]))}
    options |= {"num_next_per_last": 1, "num_common_per_last": 0, **wanted}
    options |= {name: max(count, options[name]) for name, count in least.items()}
    outputs = evidence.outputs
    if ratio is not None:
        tokens = options["num_common"] + options["num_last"] * (options["num_unique"] + 2)
        outputs = max(1000, outputs, 2 * tokens)
        options |= {"rate_y": ratio * options["rate_z"], "vocab": outputs}
    end = times * t0_prime(outputs, options["num_last"], options["rate_y"])
    options["until"] = float(f"{end:.3g}")
    return evidence.changed(options)


one_query_each = partial(_companion_options, times=30, least={"num_common": 1})
"""Theorem 2: one query per class; the generator makes symmetric classes."""
fast_modified = partial(_companion_options, times=4, least={"num_unique": 5}, ratio=300, decoder="pinv", **_WEAK_COMMON)
"""Theorems 1, 3, 4 and lemmas 4 and 6: one common token, a modified decoder that is fast, to a few transition times."""
late_modified = partial(_companion_options, times=300, least={"num_unique": 5}, ratio=300, decoder="pinv", **_WEAK_COMMON)
"""Corollary 1: the same to 300 transition times, where the error falls as 1/t."""
fast_gradient = partial(_companion_options, times=4, least={"num_unique": 10}, ratio=100, decoder="gradient", **_WEAK_COMMON)
"""The transition: one weak common token, ten distinct ones, many outputs, a fast decoder."""
_LONG: dict[str, Any] = {"times": 300, "least": {"num_common": 2, "num_unique": 5}, "decoder": "pinv", "common_p": 1.0, **_RAMP}
long_modified = partial(_companion_options, ratio=1.0, **_LONG)
"""Snap, fixed combination, several tokens: the modified decoder at equal rates, to 300 transition times."""
slow_attention = partial(_companion_options, ratio=10.0, **_LONG)
"""Sparsity: the same with a decoder ten times as fast as attention."""


def fewer_windows(evidence: "TextEvidence") -> Mapping[str, Any] | None:
    """On a text: a lower --least with which enough types count, where there is one."""
    if evidence.topics is None or evidence.is_adam:
        return None
    process = evidence.topics.process
    counts = np.sort(process.held_share * len(process.part("held-out")))[::-1]
    if len(counts) < LIMITS.types or counts[LIMITS.types - 1] < 2:
        return None
    return {"least": min(process.least, int(counts[LIMITS.types - 1]))}
