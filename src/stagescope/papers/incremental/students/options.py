"""The students of a lagged chain, made from the options of the incremental study."""

from typing import TYPE_CHECKING, Any

from stagescope.papers.study import refuse_unused

if TYPE_CHECKING:
    from stagescope.papers.incremental.lagged_loss import LaggedLoss
    from stagescope.papers.incremental.model import LaggedModel
    from stagescope.papers.incremental.process import LaggedChain
    from stagescope.papers.incremental.study import IncrementalOptions
    from stagescope.params import Params

STUDENTS = ("heads", "content", "transformer")
_OF_TRANSFORMERS = ("layers", "width", "mlp", "dropout", "places")
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
        refuse_unused(options, _OF_TRANSFORMERS, "it belongs to --model transformer")
    else:
        refuse_unused(options, ("rate_attention",), "the transformer has one step size, --rate-values")
        refuse_unused(options, ("init_scale",), "the transformer starts at the scale of its layers")
    if options.model not in ("content", "transformer"):
        refuse_unused(options, ("precision",), "it is float64; choose --model content or transformer")
    if options.model != "content":
        refuse_unused(options, ("init",), "it belongs to --model content")
    elif options.init == "xavier":
        refuse_unused(options, ("init_scale",), "the scale is that of --init xavier")


def student(options: "IncrementalOptions", chain: "LaggedChain", seed: int) -> "LaggedLoss":
    """The loss of the student on its sequences, none of which is drawn yet."""
    from stagescope.papers.incremental.students.losses import student_loss

    names = ("sequences", "labels", "batch", "fresh", "watched", *(("precision",) if options.precision else ()))
    return student_loss(_model(options, chain), chain, seed=seed, **{name: getattr(options, name) for name in names})


def _model(options: "IncrementalOptions", chain: "LaggedChain") -> "LaggedModel":
    from stagescope.papers.incremental.students.content import ContentHeads
    from stagescope.papers.incremental.students.positional import PositionalHeads
    from stagescope.papers.incremental.students.transformer import Transformer

    sizes = {"vocab": options.vocab, "heads": options.heads, "context": chain.reach + options.pad, "targets": options.targets}
    if options.model == "transformer":
        return Transformer(**sizes, **{name: getattr(options, name) for name in _OF_TRANSFORMERS})
    return ContentHeads(**sizes) if options.model == "content" else PositionalHeads(**sizes)


def initial(options: "IncrementalOptions", model: Any, seed: int) -> "Params":
    """The initial parameters of the student."""
    if options.model == "transformer":
        return model.init(seed)
    kind = (options.init,) if options.model == "content" else ()
    return model.init(seed, options.init_scale, *kind)


def student_rates(options: "IncrementalOptions") -> dict[str, float]:
    """Rates of the blocks over that of the values."""
    ratio = options.rate_attention / options.rate_values
    return {} if options.model == "transformer" else {"V": 1.0, "W" if options.model == "content" else "a": ratio}
