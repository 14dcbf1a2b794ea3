"""Heads on windows of a text: what lags tell of the next word, the loss, and the setup of a run."""

from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any, Literal, Self

import numpy as np
from pydantic import Field as Limits
from pydantic import model_validator

from stagescope.core.errors import InputError
from stagescope.core.memory import require_memory, require_work
from stagescope.core.params import key
from stagescope.corpora.corpus import PartName, TextCorpus
from stagescope.corpora.kernel import lagged_pairs
from stagescope.corpora.options import text_facts
from stagescope.corpora.vocabulary import tally
from stagescope.flow.record import LogSpaced
from stagescope.papers.incremental.loss import Sequences
from stagescope.papers.incremental.students import HeadsKernel, PositionalHeads
from stagescope.papers.incremental.text.study import TextIncrementalOptions, check_use
from stagescope.readings.setup import make_descent
from stagescope.readings.study import Setup

FAR = 4
"""Number of lags so far away that they have no information: what is measured there is the bias of finite counts.

Its median is subtracted everywhere: a text that repeats itself may have a lot of information at one of them.
"""


@dataclass(frozen=True)
class LagInformation:
    """Information about the next token at each lag 1 .. P, in nats, minus the bias of finite counts.

    `bias` is that of `alone`, with standard error `spread`.

    `alone` is the mutual information I(x_{t-l}; x_t). `added` is a lower bound of what lag l adds to the most informative one, m:
    KL of the joint law of (x_{t-l}, x_t) from the one that follows if x_t depends on x_{t-m} only. By the data-processing
    inequality that is a lower bound of I(x_{t-l}; x_t | x_{t-m}); it is zero if the text is a chain. At m itself it is `alone`.
    `parts` (P, stretches) are the means of the logarithm in `added` over stretches of the text.
    """

    alone: np.ndarray
    added: np.ndarray
    bias: float
    spread: float
    parts: np.ndarray

    @property
    def errors(self) -> np.ndarray:
        """Standard errors of `added` (P,)."""
        return self._error(self.parts)

    def _error(self, parts: np.ndarray) -> np.ndarray:
        return np.hypot(np.std(parts, axis=-1, ddof=1) / np.sqrt(parts.shape[-1]), self.spread)

    @property
    def first(self) -> int:
        """The most informative lag."""
        return int(np.argmax(self.alone)) + 1

    @property
    def order(self) -> tuple[int, ...]:
        """Lags by importance: the most informative one, then by what they add to it."""
        ranked = np.argsort(-self.added, kind="stable") + 1
        return (self.first, *(int(lag) for lag in ranked if lag != self.first))

    @property
    def facts(self) -> dict[str, Any]:
        """What is stored of it."""
        return {name: getattr(self, name).tolist() for name in ("alone", "added", "errors")} | {"order": list(self.order)}

    def above(self, one: int, other: int) -> bool:
        """Whether the importance of one lag is above another's by more than three times the error of their difference.

        Over stretches of the text the two importances are correlated, so the error is that of their differences.
        """
        if self.first in (one, other):
            return one == self.first
        error = self._error(self.parts[one - 1] - self.parts[other - 1])
        return bool(self.added[one - 1] - self.added[other - 1] > 3 * error)


def lag_information(corpus: TextCorpus, lags: int, part: PartName = "train") -> LagInformation:
    """Importances of the lags 1 .. `lags` on a part of the text, from counts of pairs."""
    stream = corpus.part(part)
    if len(stream) <= (FAR + 2) * (lags + 1):
        raise InputError(f"the {part} part of {corpus.source} has {len(stream):,} tokens, too few to compare {lags} lags")
    require_memory("the pairs of tokens", "choose a smaller --vocab", corpus.vocab, corpus.vocab)
    pairs, near = _Pairs(stream, corpus.vocab), range(1, lags + 1)
    far = [len(stream) * (k + 1) // (FAR + 2) for k in range(FAR)]
    alone, nothing = (np.array([pairs.mean(lag, pairs.surprise(lag)) for lag in which]) for which in (near, far))
    first = int(np.argmax(alone)) + 1
    shares = np.maximum(tally(stream, corpus.vocab), 1) / len(stream)  # a type may be missing in the held-out part
    follows = pairs.at(first) / shares[:, None]
    bias = np.array([pairs.mean(lag, pairs.surprise(lag, first, follows)) for lag in far])
    # neighbouring tokens are not independent: standard errors are those of means over 100 stretches of the text
    added, parts = np.empty(lags), np.empty((lags, min(100, len(stream) // 2)))
    for lag in near:
        gain = pairs.surprise(lag) if lag == first else pairs.surprise(lag, first, follows)
        added[lag - 1] = pairs.mean(lag, gain) - float(np.median(nothing if lag == first else bias))
        parts[lag - 1] = pairs.means(lag, gain, parts.shape[1])
    # 1.4826: the standard deviation of normal numbers over their median absolute deviation
    spread = 1.4826 * float(np.median(np.abs(bias - np.median(bias))))
    return LagInformation(alone - np.median(nothing), added, float(np.median(nothing)), spread, parts)


@dataclass(frozen=True)
class _Pairs:
    """Joint laws of two tokens of a text at some distance, and means over all such pairs."""

    stream: np.ndarray
    size: int

    def at(self, lag: int) -> np.ndarray:
        """(d, d): the earlier token by row, the later one by column; for a negative lag the other way round.

        The end of the text is joined to its start, so all lags have equally many pairs and the same bias.
        """
        return lagged_pairs(self.stream, lag, self.size) / len(self.stream)

    def surprise(self, lag: int, first: int | None = None, follows: np.ndarray | None = None) -> np.ndarray:
        """log of the law of (x_{t-lag}, x_t) over that of independent ones, or the one if x_t depends on x_{t-first} only.

        (d, d); zero where a pair never occurs. Where it occurs so do (x_{t-lag}, x_{t-first}) and (x_{t-first}, x_t), so the
        law in the denominator is positive there.
        """
        joint = self.at(lag)
        if first is None or follows is None:
            expected = joint.sum(axis=1, keepdims=True) * joint.sum(axis=0)
        else:
            expected = self.at(lag - first) @ follows
        return np.log(np.divide(joint, expected, where=joint > 0, out=np.ones_like(joint)))

    def mean(self, lag: int, values: np.ndarray) -> float:
        """Of values (d, d) over all pairs."""
        return float(np.sum(self.at(lag) * values))

    def means(self, lag: int, values: np.ndarray, stretches: int) -> np.ndarray:
        """The same over each of some stretches of the text."""
        cuts, means = np.linspace(0, len(self.stream), stretches + 1).round().astype(int), []
        for start, stop in pairwise(cuts.tolist()):
            later = self.stream.take(np.arange(start + lag, stop + lag), mode="wrap")
            means.append(values[self.stream[start:stop], later].mean())
        return np.array(means)


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
        step, size = f"a step on {self.batch or 1:,} windows", max(model.vocab, model.heads * model.context)
        require_work(step, "lower --batch, --window, --heads or --vocab", self.batch or 1, size)
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
        indices = key(self.seed, "batch", step).integers(0, len(self.windows), self.batch)
        return Sequences.of(self.windows[indices], None)

    def judge(self) -> Self:
        """The same loss on the held-out part."""
        settings = {"model": self.model, "process": self.process, "watched": self.watched, "precision": self.precision}
        return type(self)(**settings, batch=None, seed=self.seed, part="held-out")


RATES = {"adam": 0.01, "sgd": 5.0, "heavy-ball": 0.5}


def text_setup(options: TextIncrementalOptions, seed: int) -> Setup:
    check_use(options)
    corpus = options.read()
    model = PositionalHeads(vocab=corpus.vocab, heads=options.heads, context=options.window, targets=1)
    loss = TextHeads(model=model, process=corpus, batch=options.batch, seed=seed, watched=options.watched)
    rate = options.rate_values or RATES[options.optimizer]
    attention = rate if options.rate_attention is None else options.rate_attention
    for part in ("train", "held-out"):
        corpus.windows(options.window + 1, part)  # a part shorter than one window is refused here
    return Setup(
        what=loss,
        params=model.init(seed, options.init_scale),
        # rates are relative to that of the values, so that t, where there is one, is its sum
        dynamics=make_descent(options, lr=rate, rates={"V": 1.0, "a": attention / rate}),
        record=LogSpaced(frames=options.frames),
        facts=text_facts(corpus),
    )
