"""Which loss belongs to which student of a lagged chain."""

from typing import Any

from stagescope.papers.incremental.loss import LaggedLoss
from stagescope.papers.incremental.model import LaggedModel
from stagescope.papers.incremental.process import LaggedChain
from stagescope.papers.incremental.students.content import ContentHeads
from stagescope.papers.incremental.students.content_loss import ContentLoss
from stagescope.papers.incremental.students.positional import PositionalHeads
from stagescope.papers.incremental.students.positional_loss import HeadsLoss
from stagescope.papers.incremental.students.transformer.loss import TransformerLoss
from stagescope.papers.incremental.students.transformer.model import Transformer


def student_loss(model: LaggedModel, process: LaggedChain, **choices: Any) -> LaggedLoss:
    """The loss of a student on a chain; `choices` are fields of the loss, such as sequences, batch, labels and seed.

    Args:
        model: the student.
        process: the chain.
        choices: fields of the loss.

    Examples:
        >>> student = ss.PositionalHeads(vocab=3, heads=2, context=2, targets=4)
        >>> type(ss.student_loss(student, lagged, sequences=50)).__name__
        'HeadsLoss'
    """
    losses: dict[type[LaggedModel], type[LaggedLoss]] = {
        PositionalHeads: HeadsLoss,
        ContentHeads: ContentLoss,
        Transformer: TransformerLoss,
    }
    engine = {"engine": "kernel"} if isinstance(model, Transformer) else {}
    return losses[type(model)](model=model, process=process, **engine, **choices)


def held_out(model: LaggedModel, process: LaggedChain, sequences: int = 3000, seed: int = 0, **choices: Any) -> LaggedLoss:
    """The loss on held-out sequences with the true law as label: `held_out(...).values(run.params)` [ISA:loss].

    Args:
        model: the student.
        process: the chain.
        sequences: how many are held out.
        seed: of the draw.
        choices: further fields of the loss.

    Examples:
        >>> student = ss.PositionalHeads(vocab=3, heads=2, context=2, targets=4)
        >>> print(f"{ss.held_out(student, lagged, sequences=100).value(student.init(seed=0)):.2f}")
        1.10
    """
    return student_loss(model, process, sequences=sequences, seed=seed, labels="soft", part="held-out", **choices)
