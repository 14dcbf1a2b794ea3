"""The loss of positional heads on windows of a text [ISA:text-heads]."""

from functools import cached_property
from typing import Literal, Self

import numpy as np
from pydantic import Field as Limits
from pydantic import model_validator

from stagescope.corpora.corpus import TextCorpus
from stagescope.keys import key
from stagescope.memory import require_memory, require_work
from stagescope.papers.incremental.loss import Sequences
from stagescope.papers.incremental.students.positional_loss import HeadsKernel


class TextHeads(HeadsKernel):
    """L = -mean log softmax(sum_h V_h sum_l s_h(l) e_{x_{t-l}})_{x_t} over windows of a text [ISA:text-heads].

    Each step sees `batch` windows of the train part, drawn from (seed, step), or all of them. `value` and `grad`, and so the
    recorded loss, are over `watched` windows, equally spaced over the `part`.
    """

    process: TextCorpus
    batch: int | None = Limits(default=2048, ge=1)
    seed: int = Limits(default=0, ge=0, lt=2**63)
    watched: int = Limits(default=20_000, ge=1)
    part: Literal["train", "held-out"] = "train"

    @model_validator(mode="after")
    def _fits(self) -> Self:
        model = self.model
        if model.vocab != self.process.vocab:
            raise ValueError(f"model vocabulary {model.vocab} differs from the text's {self.process.vocab} tokens")
        if model.targets != 1:
            raise ValueError(f"a window has one target, the model {model.targets}; choose targets 1")
        work = "the work space of the heads"
        require_memory(work, "take a shorter --window or a smaller --vocab", model.positions, model.vocab, model.vocab)
        step, each = f"a step on {self.batch or 1:,} windows", max(model.vocab, model.heads * model.context)
        require_work(step, "lower --batch, --window, --heads or --vocab", self.batch or 1, each)
        return self

    @property
    def windows(self) -> np.ndarray:
        """All windows (n, P + 1) of the part, a view."""
        return self.process.windows(self.model.context + 1, self.part)

    @cached_property
    def all(self) -> Sequences:
        return Sequences.of(self.windows, None)

    @cached_property
    def seen(self) -> Sequences:
        return Sequences.of(self.seen_windows, None)

    @property
    def seen_windows(self) -> np.ndarray:
        """The windows (n, P + 1) of the recorded loss."""
        count = len(self.windows)
        return self.windows[np.linspace(0, count - 1, min(self.watched, count)).astype(np.int64)]

    def minibatch(self, step: int) -> Sequences | None:
        if self.batch is None:
            return None
        return self._chosen(key(self.seed, "batch", step).integers(0, len(self.windows), self.batch))

    def _chosen(self, windows: np.ndarray) -> Sequences:
        return Sequences.of(self.windows[windows], None)

    def judge(self) -> Self:
        """The same loss on the held-out part."""
        chosen = {"model": self.model, "process": self.process, "watched": self.watched, "precision": self.precision}
        return type(self)(**chosen, batch=None, seed=self.seed, part="held-out")
