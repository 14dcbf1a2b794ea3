"""Options of the students of a lagged chain: presets of the paper, and what has an effect on which student."""

from typing import TYPE_CHECKING, Any

from stagescope.options import refuse_unused

if TYPE_CHECKING:
    from stagescope.papers.incremental.study import IncrementalOptions

STUDENTS = ("heads", "content", "transformer")
OF_TRANSFORMERS = ("layers", "width", "mlp", "dropout", "places")
_PAPER: dict[str, Any] = {"vocab": 50, "scale": 10.0, "targets": 20, "sequences": 9000, "batch": 3000}
_ADAMW: dict[str, Any] = {"optimizer": "adamw", "clip": 1.0, "watched": 500, "precision": "float32"}
_RATES: dict[str, Any] = {"rate_values": 0.08, "rate_attention": 0.08}
_FULL: dict[str, Any] = {"model": "transformer", "spans": (4, 4, 4), **_PAPER, **_ADAMW, "rate_values": 0.003, "frames": 60}
PRESETS: dict[str, dict[str, Any]] = {
    "content": {"model": "content", **_PAPER, **_ADAMW, **_RATES, "init_scale": 1e-9, "frames": 200},
    "transformer": _FULL,
    "transformer-2": {**_FULL, "layers": 2, "importance_ratio": 1.8},
}
"""The paper's minimal student of figure 1, its full one-layer student, and the two-layer one of figure 11."""


def check_student(options: "IncrementalOptions") -> None:
    """Refuse what has no effect on the student that was chosen."""
    if options.model != "transformer":
        refuse_unused(options, OF_TRANSFORMERS, "it belongs to --model transformer")
    else:
        refuse_unused(options, ("rate_attention",), "the transformer has one step size, --rate-values")
        refuse_unused(options, ("init_scale",), "the transformer starts at the scale of its layers")
    if options.model not in STUDENTS:
        refuse_unused(options, ("precision",), "the regression models are float64; choose --model heads, content or transformer")
    if options.model != "content":
        refuse_unused(options, ("init",), "it belongs to --model content")
    elif options.init == "xavier":
        refuse_unused(options, ("init_scale",), "the scale is that of --init xavier")
