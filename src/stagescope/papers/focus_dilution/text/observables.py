"""What a focus-dilution run on a text shows: singular values, attention rows by query word, entropies, embedding norms.

With many types the matrices of all frames together are large, so everything is made frame by frame, attention some rows at a
time, and only what the curves need is kept.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from stagescope.corpora.corpus import TextCorpus, written
from stagescope.corpora.window_loss import WindowLoss
from stagescope.detect.events import Turn, around, crossing
from stagescope.detect.noise import TWO_SIDED, delay, flutter
from stagescope.detect.stage import Event
from stagescope.flow.softmax import softmax
from stagescope.papers.focus_dilution.loss import TokenLoss
from stagescope.papers.focus_dilution.model import TokenAttention
from stagescope.papers.focus_dilution.observables import spectra, triangle
from stagescope.readings.rebuild import rebuilt
from stagescope.runs.run import Run


@dataclass(frozen=True)
class TextCurves:
    """A run of attention between the types of a text, frame by frame; rows are query types.

    `pi` is the law of types, `words` their labels, `floor` the loss of the best prediction from the last token alone.
    """

    time: np.ndarray
    params: dict[str, np.ndarray]
    model: TokenAttention
    pi: np.ndarray
    words: tuple[str, ...]
    floor: float

    @property
    def unigram(self) -> float:
        """H(pi), the loss of the best prediction without context."""
        return float(-np.sum(self.pi * np.log(self.pi)))

    @property
    def frequent(self) -> int:
        """The most frequent type."""
        return int(np.argmax(self.pi))

    @cached_property
    def rare(self) -> np.ndarray:
        """The less frequent half of the types."""
        return np.argsort(self.pi, kind="stable")[: len(self.pi) // 2]

    def _factors(self) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """W0 WQ and W0 WK (d, .) of one frame after another; their product times the scale is Phi."""
        for w0, wq, wk in zip(*(self.params[name] for name in ("W0", "WQ", "WK")), strict=True):
            yield w0 @ wq, w0 @ wk

    @cached_property
    def embedding_values(self) -> np.ndarray:
        """Singular values of W0 (frames, .)."""
        return spectra(np.array([triangle(w0) for w0 in self.params["W0"]]))

    @cached_property
    def norms(self) -> np.ndarray:
        """Row norms of W0 (frames, d)."""
        return np.linalg.norm(self.params["W0"], axis=2)

    @cached_property
    def score_values(self) -> np.ndarray:
        """Singular values of Phi (frames, .), of two small factors: Phi is never formed."""
        small = [triangle(query) @ triangle(key).T for query, key in self._factors()]
        return self.model.scale * spectra(np.array(small))

    @cached_property
    def alignment(self) -> np.ndarray:
        """cos(Phi, pi pi^T) (frames,): +1 where attention focuses on frequent types, -1 where it moves away from them."""
        products = [
            ((self.pi @ query) @ (self.pi @ key), np.sum((query.T @ query) * (key.T @ key))) for query, key in self._factors()
        ]
        along, square = np.array(products).T
        return along / np.maximum(np.sqrt(np.maximum(square, 0)) * np.sum(self.pi**2), np.finfo(float).tiny)

    @cached_property
    def condensed(self) -> np.ndarray:
        """|W0^T pi| / |pi| (frames,): how far embeddings have grown in the direction that grows first [FD:origin]."""
        return np.linalg.norm(np.einsum("kim,i->km", self.params["W0"], self.pi), axis=1) / np.linalg.norm(self.pi)

    @cached_property
    def rare_norm(self) -> np.ndarray:
        """Geometric mean of the row norms of rare types (frames,)."""
        return np.exp(np.mean(np.log(np.maximum(self.norms[:, self.rare], np.finfo(float).tiny)), axis=1))

    @cached_property
    def _rows(self) -> np.ndarray:
        """Of every frame's attention (d, d): its column of the most frequent type, its diagonal, its entropies (frames, 3, d)."""
        from stagescope.papers.focus_dilution.blocked_kernel import attention_rows

        rows, nothing = np.empty((len(self.time), 3, len(self.pi))), np.empty((0, 0))
        for out, (query, key) in zip(rows, self._factors(), strict=True):
            attention_rows(query, np.ascontiguousarray(self.model.scale * key.T), self.pi, self.frequent, nothing, out)
        return rows

    @property
    def on_frequent(self) -> np.ndarray:
        """Attention of every row on the most frequent type (frames, d)."""
        return self._rows[:, 0]

    @property
    def on_itself(self) -> np.ndarray:
        """Attention of every row on its own type (frames, d)."""
        return self._rows[:, 1]

    @property
    def entropy(self) -> np.ndarray:
        """Entropy of every row (frames, d), in nats."""
        return self._rows[:, 2]

    @cached_property
    def mean_entropy(self) -> np.ndarray:
        """Entropy of attention rows, each with the frequency of its query (frames,)."""
        return self.entropy @ self.pi

    def attention(self, tokens: Sequence[int]) -> np.ndarray:
        """Attention of some query types on every type (frames, queries, d), for windows with the frequencies pi."""
        rows, logs = list(tokens), np.log(self.pi)
        return np.array([softmax(self.model.scale * query[rows] @ key.T + logs) for query, key in self._factors()])


def text_curves(run: Run) -> TextCurves:
    """The curves of a focus-dilution run on a text. The text itself is not needed: the run keeps frequencies and words."""
    params, config = {name: run.params[name] for name in run.params}, run.config or {}
    if "frequencies" in config:
        words = tuple(map(written, config["words"]))
        model = rebuilt(run.spec["field"]["model"])
        return TextCurves(run.time, params, model, np.array(config["frequencies"]), words, config["last_token_loss"])
    law = rebuilt(run.spec["field"])
    assert isinstance(law, TokenLoss | WindowLoss)
    assert isinstance(law.process, TextCorpus)
    words = tuple(map(law.process.label, range(law.process.vocab)))
    return TextCurves(run.time, params, law.model, law.process.stationary, words, law.process.floor())


# Events of focus and dilution on a text as estimates: the spacing of records, and the noise of batches in the run's curves.

HOW = "interval from the spacing of records and the noise of batches in this run"


def noise(time: np.ndarray, curve: np.ndarray) -> np.ndarray:
    """The 95 % half-width of each value of a curve, from how records differ from their neighbours."""
    return TWO_SIDED * flutter(time, curve)


def opening(time: np.ndarray, values: np.ndarray, level: float, when: float | None) -> Event:
    """When a singular value passes a level; it grows exponentially, so noise is gathered in its logarithm."""
    if when is None:
        return Event.missing(how=HOW)
    wide = delay(time, np.log(np.maximum(values, 1e-300)), float(np.log(level)), when)
    low, high = around(time, when)
    return Event(when, min(low, when - wide), min(max(high, when + wide), float(time[-1])), how=HOW)


def turned(turn: Turn | None) -> Event:
    """When a rise or a fall ends."""
    if turn is None or turn.stop is None:
        return Event.missing(how=HOW)
    return Event(turn.stop, min(turn.low, turn.stop), max(turn.high, turn.stop), how=HOW)


def halved(time: np.ndarray, curve: np.ndarray, level: float, after: float | None) -> Event:
    """When a row has fallen to a level after its top."""
    if after is None:
        return Event.missing(how=HOW)
    return crossing(time, curve, level, False, error=noise(time, curve), after=after, how=HOW)


def before(first: Event, second: Event) -> bool | None:
    """Whether one event comes before another; None where their intervals overlap, or one has no time."""
    if first.low is None or first.high is None or second.low is None or second.high is None:
        return None
    return True if first.high < second.low else False if second.high < first.low else None
