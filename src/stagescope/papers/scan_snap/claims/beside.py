"""Options of the study with which a claim is decided, where a run is out of its regime."""

from typing import Any

from stagescope.papers.scan_snap.evidence import Evidence
from stagescope.papers.scan_snap.forms import transition_time
from stagescope.papers.scan_snap.study import GENERATOR, STUDY

FLOW = ("optimizer", "steps", "lr", "momentum", "length", "batch", "record", "frames", "columns", "init_scale", "method", "rtol")
"""Options at their defaults make the flow from zero."""
FEW, MANY = 2, 10
"""Fewest and most classes of a run beside: fewer make no common token, more cost more than they show."""


def _changed(evidence: Evidence, wanted: dict[str, Any]) -> dict[str, Any] | None:
    """Those of the wanted options that the run does not have; None if it has them all, and for a run of no study."""
    config = evidence.run.config
    if config is None or evidence.run.study != STUDY.name:
        return None
    return {name: value for name, value in wanted.items() if config.get(name) != value} or None


def _flow(evidence: Evidence, **wanted: Any) -> dict[str, Any]:
    """The flow from zero, on classes of the generator like those of the run, each with its own query."""
    fields = STUDY.options.model_fields
    defaults = {name: fields[name].default for name in FLOW}
    config = evidence.run.config or {}
    names = (*GENERATOR, "rate_y", "rate_z")
    kept = {name: config.get(name, fields[name].default) for name in names}
    if config.get("classes") is not None:
        kept |= {name: fields[name].default for name in GENERATOR}
    classes = min(MANY, max(FEW, kept["num_last"]))
    shape = {"classes": None, "num_last": classes, "num_next_per_last": 1, "num_common_per_last": 0}
    return {**defaults, **kept, **shape, "rate_z": kept["rate_z"] or 1.0, **wanted}


def one_query_each(evidence: Evidence) -> dict[str, Any] | None:
    """Theorem 2 on distinct tokens: the flow from zero, one query per class."""
    options = _flow(evidence)
    return _changed(evidence, options | {"num_common": max(1, options["num_common"]), **_until(evidence, options, 30)})


def symmetric_commons(evidence: Evidence) -> dict[str, Any] | None:
    """Theorem 2 on common tokens: the generator makes symmetric classes."""
    return one_query_each(evidence)


def fast_modified(evidence: Evidence) -> dict[str, Any] | None:
    """Theorems 1, 3, 4 and lemma 4: one common token, a modified decoder that is fast, to a few transition times."""
    options = _flow(evidence, decoder="pinv", num_common=1, common_p=0.5, umin=0.1, umax=1.0)
    options |= {"rate_y": 300 * options["rate_z"], "num_unique": max(5, options["num_unique"])}
    options["vocab"] = _outputs(evidence, options)
    return _changed(evidence, options | _until(evidence, options, 4))


def fast_gradient(evidence: Evidence) -> dict[str, Any] | None:
    """The transition: one weak common token, ten distinct ones, many outputs, a fast decoder."""
    options = _flow(evidence, decoder="gradient", num_common=1, common_p=0.5, umin=0.1, umax=1.0)
    options |= {"rate_y": 100 * options["rate_z"], "num_unique": max(10, options["num_unique"])}
    options["vocab"] = _outputs(evidence, options)
    return _changed(evidence, options | _until(evidence, options, 4))


def long_modified(evidence: Evidence) -> dict[str, Any] | None:
    """Snap, fixed combination, several tokens: the modified decoder at equal rates, to 300 transition times."""
    return _long(evidence, 1.0)


def slow_attention(evidence: Evidence) -> dict[str, Any] | None:
    """Sparsity: the same with a decoder ten times as fast as attention."""
    return _long(evidence, 10.0)


def _long(evidence: Evidence, ratio: float) -> dict[str, Any] | None:
    options = _flow(evidence, decoder="pinv", umin=0.1, umax=1.0)
    commons, unique = max(2, options["num_common"]), max(5, options["num_unique"])
    options |= {"num_common": commons, "num_unique": unique, "common_p": 1.0, "rate_y": ratio * options["rate_z"]}
    options["vocab"] = _outputs(evidence, options)
    return _changed(evidence, options | _until(evidence, options, 300))


def _outputs(evidence: Evidence, options: dict[str, Any]) -> int:
    """Many outputs: those of the run, at least 1000, and twice the tokens of the classes."""
    tokens = options["num_common"] + options["num_last"] * (options["num_unique"] + 2)
    return max(1000, evidence.outputs, 2 * tokens)


def _until(evidence: Evidence, options: dict[str, Any], times: float) -> dict[str, float]:
    """The end of the flow, as a multiple of K ln M / eta_Y, to three digits."""
    outputs = options.get("vocab") or evidence.outputs
    options["rate_y"] = options["rate_y"] or 1.0
    end = times * transition_time(outputs, options["num_last"], options["rate_y"])
    return {"until": float(f"{end:.3g}")}
