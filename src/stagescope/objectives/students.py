"""Which loss belongs to which student of a lagged chain."""

from typing import Any

from stagescope.models.content_heads import ContentHeads
from stagescope.models.lagged_model import LaggedModel
from stagescope.models.positional_heads import PositionalHeads
from stagescope.models.transformer import Transformer
from stagescope.objectives.content import ContentLoss
from stagescope.objectives.heads import HeadsLoss
from stagescope.objectives.lagged_loss import LaggedLoss
from stagescope.objectives.transformer import TransformerLoss
from stagescope.processes.lagged_chain import LaggedChain

LOSSES: dict[type[LaggedModel], type[LaggedLoss]] = {
    PositionalHeads: HeadsLoss,
    ContentHeads: ContentLoss,
    Transformer: TransformerLoss,
}


def student_loss(model: LaggedModel, process: LaggedChain, **choices: Any) -> LaggedLoss:
    """The loss of a student on a chain; `choices` are the fields of its type, such as sequences, batch, labels and seed."""
    return LOSSES[type(model)](model=model, process=process, **choices)


def held_out(model: LaggedModel, process: LaggedChain, sequences: int = 3000, seed: int = 0, **choices: Any) -> LaggedLoss:
    """The loss on sequences no training sees, with the true law as label: `held_out(...).values(run.params)` [ISA:loss]."""
    return student_loss(model, process, sequences=sequences, seed=seed, labels="soft", part="held-out", **choices)
