"""The students of a lagged chain, made from the options of the incremental study."""

from typing import Any

from stagescope.papers.incremental.loss import LaggedLoss
from stagescope.papers.incremental.model import LaggedModel
from stagescope.papers.incremental.process import LaggedChain
from stagescope.papers.incremental.students.content import ContentHeads
from stagescope.papers.incremental.students.losses import student_loss
from stagescope.papers.incremental.students.options import OF_TRANSFORMERS
from stagescope.papers.incremental.students.positional import PositionalHeads
from stagescope.papers.incremental.students.transformer.model import Transformer
from stagescope.papers.incremental.study import IncrementalOptions
from stagescope.params import Params


def student(options: IncrementalOptions, chain: LaggedChain, seed: int) -> LaggedLoss:
    """The loss of the student on its sequences, none of which is drawn yet."""
    names = ("sequences", "labels", "batch", "fresh", "watched", *(("precision",) if options.precision else ()))
    return student_loss(_model(options, chain), chain, seed=seed, **{name: getattr(options, name) for name in names})


def _model(options: IncrementalOptions, chain: LaggedChain) -> LaggedModel:
    sizes = {"vocab": options.vocab, "heads": options.heads, "context": chain.reach + options.pad, "targets": options.targets}
    if options.model == "transformer":
        return Transformer(**sizes, **{name: getattr(options, name) for name in OF_TRANSFORMERS})
    return ContentHeads(**sizes) if options.model == "content" else PositionalHeads(**sizes)


def initial(options: IncrementalOptions, model: Any, seed: int) -> Params:
    """The initial parameters of the student."""
    if options.model == "transformer":
        return model.init(seed)
    kind = (options.init,) if options.model == "content" else ()
    return model.init(seed, options.init_scale, *kind)


def student_rates(options: IncrementalOptions) -> dict[str, float]:
    """Rates of the blocks over that of the values."""
    ratio = options.rate_attention / options.rate_values
    return {} if options.model == "transformer" else {"V": 1.0, "W" if options.model == "content" else "a": ratio}
