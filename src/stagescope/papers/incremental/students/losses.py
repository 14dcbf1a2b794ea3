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
    """The loss of a student on a chain; `choices` are fields of the loss, such as sequences, batch, labels and seed."""
    losses: dict[type[LaggedModel], type[LaggedLoss]] = {
        PositionalHeads: HeadsLoss,
        ContentHeads: ContentLoss,
        Transformer: TransformerLoss,
    }
    engine = {"engine": "kernel"} if isinstance(model, Transformer) else {}
    return losses[type(model)](model=model, process=process, **engine, **choices)


def held_out(model: LaggedModel, process: LaggedChain, sequences: int = 3000, seed: int = 0, **choices: Any) -> LaggedLoss:
    """The loss on held-out sequences with the true law as label: `held_out(...).values(run.params)` [ISA:loss]."""
    return student_loss(model, process, sequences=sequences, seed=seed, labels="soft", part="held-out", **choices)
