"""Observables of scan and snap on held-out text: how sparse attention is, which types it is on, how far it moves."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from scipy.special import entr

from stagescope.corpora.vocabulary import UNKNOWN
from stagescope.papers.scan_snap.limits import LIMITS
from stagescope.papers.scan_snap.text.loss import PairwiseWindows, TextTransformerLoss
from stagescope.papers.scan_snap.text.process import TopicWindows
from stagescope.readings.rebuild import rebuilt
from stagescope.runs.run import Run

Masses = tuple[np.ndarray, np.ndarray]
"""Held-out attention on common and on distinct types, over the frames."""


@dataclass(frozen=True)
class Motion:
    """Total variation of attention from one checkpoint to the next, mean over queries; `start` and `stop` are clock times.

    `ahead` is the total variation from each `start` to the end of the run: the motion that is still to come, without the
    noise that attention comes back from.
    """

    start: np.ndarray
    stop: np.ndarray
    variation: np.ndarray
    ahead: np.ndarray


@dataclass(frozen=True)
class LayerAttention:
    """Held-out attention of one layer of a transformer: its entropy (frames,), and from one checkpoint to the next its total
    variation and the share of queries whose strongest token stayed the same.
    """

    entropy: np.ndarray
    variation: np.ndarray
    argmax_kept: np.ndarray


@dataclass(frozen=True)
class TextAttention:
    """Curves over the frames of a run; `entropy` and `motion` are of attention on held-out windows [SnS:text-motion].

    Of a transformer they are those of the lowest layer; `layers` has those of each.

    Examples:
        >>> from stagescope.papers.scan_snap.text.loss import on_windows
        >>> windows = ss.topic_windows(ss.read_corpus("words.txt", vocab=9), "the", ("cat", "dog"), window=4, least=1)
        >>> pairwise = on_windows(windows)
        >>> law = ss.PairwiseWindows(model=pairwise, process=windows, batch=None)
        >>> trained = ss.evolve(law, pairwise.init(), ss.Descent(lr=1.0, steps=20), record=ss.Every(n=10))
        >>> ss.text_attention(trained).step.tolist()
        [0, 10, 20]
    """

    time: np.ndarray
    step: np.ndarray
    loss: np.ndarray
    prior_loss: float
    entropy: np.ndarray
    motion: Motion
    held_loss: float
    """The loss on held-out windows at the end."""

    masses: Masses | None = None
    """Attention on common and on distinct types, where the model has such types."""

    layers: tuple[LayerAttention, ...] = ()
    """Of each layer of a transformer, the lowest first."""

    @property
    def whose(self) -> str:
        """What its sentences say of which layer is meant, where there are several."""
        return " of layer 1" if len(self.layers) > 1 else ""


@dataclass(frozen=True, kw_only=True)
class TopicAttention(TextAttention):
    """The same curves of topical classes, with the attention on common and on distinct types.

    `scores` are z_l (frames, keys); `process` says which keys are common and which are distinct.
    """

    process: TopicWindows
    law: PairwiseWindows
    scores: np.ndarray
    masses: Masses  # pyright: ignore[reportGeneralTypeIssues]  # always given

    @property
    def common_mass(self) -> np.ndarray:
        return self.masses[0]

    @property
    def distinct_mass(self) -> np.ndarray:
        return self.masses[1]

    @cached_property
    def growth(self) -> np.ndarray:
        """The change of each score from the start to the end (keys,)."""
        return self.scores[-1] - self.scores[0]


def row_entropy(attention: np.ndarray) -> np.ndarray:
    """Of each row of attention, in nats (..., rows)."""
    return entr(attention).sum(axis=-1)


def variation(one: np.ndarray, other: np.ndarray) -> np.ndarray:
    """Total variation between each row of two attentions, from 0 to 1 (..., rows)."""
    return 0.5 * np.abs(one - other).sum(axis=-1, dtype=float)


def argmax_kept(one: np.ndarray, other: np.ndarray) -> np.ndarray:
    """Whether the strongest token of each row is the same in both (..., rows)."""
    return one.argmax(axis=-1) == other.argmax(axis=-1)


def checkpoints(step: np.ndarray) -> np.ndarray:
    """The frames whose attention is compared: those at multiples of the interval."""
    return np.flatnonzero(step % LIMITS.interval == 0)


def recorded_finely(run: Run) -> bool:
    """Whether there is a frame at every multiple of the interval up to the end."""
    return len(checkpoints(run.step)) == int(run.step[-1]) // LIMITS.interval + 1


def text_attention(run: Run) -> TextAttention:
    """Curves of a run of topical classes or of the transformer.

    Args:
        run: a run of text-snap.

    Examples:
        >>> from stagescope.papers.scan_snap.text.loss import on_windows
        >>> windows = ss.topic_windows(ss.read_corpus("words.txt", vocab=9), "the", ("cat", "dog"), window=4, least=1)
        >>> pairwise = on_windows(windows)
        >>> law = ss.PairwiseWindows(model=pairwise, process=windows, batch=None)
        >>> trained = ss.evolve(law, pairwise.init(), ss.Descent(lr=1.0, steps=20), record=ss.Every(n=10))
        >>> len(ss.text_attention(trained).entropy)
        3
    """
    law: Any = rebuilt(run.spec["field"])
    return _topics(run, law) if isinstance(law, PairwiseWindows) else _transformer(run, law)


def _topics(run: Run, law: PairwiseWindows) -> TopicAttention:
    process = law.process
    windows = process.part("held-out")
    scores = run.params["Z"][:, 0, law.rows]
    common, distinct = process.common[windows.key], process.distinct[windows.key]
    sums: list[list[float]] = []

    def see(now: np.ndarray, before: np.ndarray | None) -> None:
        (attention,) = now
        sums.append([attention[common].sum(), attention[distinct].sum(), entr(attention).sum()])

    motion = _motion(run, lambda frame: windows.attention(scores[frame])[None], len(windows), see)
    means = np.array(sums).T / len(windows)
    return TopicAttention(
        **_shared(run, process.prior_loss, means[2], motion),
        held_loss=on_held_out(law).value(run.at(-1)),
        process=process,
        law=law,
        scores=scores,
        masses=(means[0], means[1]),
    )


def _transformer(run: Run, law: TextTransformerLoss) -> TextAttention:
    """From all rows of attention on held-out windows but the first, which has one token only."""
    judge = held_out(law)
    rows = len(judge.seen) * (law.length - 1)
    entropy, variations, unchanged = [], [], []

    def see(now: np.ndarray, before: np.ndarray | None) -> None:
        entropy.append([float(row_entropy(layer).mean()) for layer in now])
        if before is not None:
            variations.append(variation(before, now).mean(axis=(1, 2)))
            unchanged.append(argmax_kept(before, now).mean(axis=(1, 2)))

    motion = _motion(run, lambda frame: judge.attention(run.at(frame))[:, :, 1:], rows, see)
    series = (entropy, variations[1:], unchanged[1:])  # the first checkpoint was compared with itself
    curves = [np.array(numbers).reshape(-1, law.model.layers) for numbers in series]
    layers = tuple(LayerAttention(*(curve[:, i] for curve in curves)) for i in range(law.model.layers))
    shared = _shared(run, law.process.unigram_loss(), layers[0].entropy, motion)
    return TextAttention(**shared, held_loss=judge.value(run.at(-1)), layers=layers)


def _motion(run: Run, attention: Callable[[int], np.ndarray], rows: int, see: Callable[..., Any]) -> Motion:
    """How attention (layers, ...) of the lowest layer moves from checkpoint to checkpoint, mean over `rows` queries.

    `see` gets the attention of every frame, and at a checkpoint also that of the checkpoint before.
    """

    def distance(one: np.ndarray, other: np.ndarray) -> float:
        return 0.5 * float(np.abs(one[0] - other[0]).sum(dtype=float)) / rows

    compared = checkpoints(run.step)
    end, before = attention(int(compared[-1])), attention(int(compared[0]))
    variations, ahead = [], []
    for frame in range(run.frames):
        now = attention(frame)
        see(now, before if frame in compared else None)
        if frame in compared:
            variations.append(distance(now, before))
            ahead.append(distance(now, end))
            before = now
    time = run.time[compared]
    return Motion(time[:-1], time[1:], np.array(variations[1:]), np.array(ahead[:-1]))


def known_windows(tokens: np.ndarray, words: tuple[str, ...], count: int) -> list[int]:
    """Rows of `tokens` to show: of each of `count` equal parts, the window with the fewest unknown tokens."""
    unknown = np.sum(tokens == (words.index(UNKNOWN) if UNKNOWN in words else -1), axis=1)
    stretches = np.array_split(np.arange(len(tokens)), min(count, len(tokens)))
    return [int(some[np.argmin(unknown[some])]) for some in stretches]


def on_held_out(law: PairwiseWindows) -> PairwiseWindows:
    """The same loss of topical classes on held-out windows, all at once."""
    return PairwiseWindows(model=law.model, process=law.process, part="held-out", batch=None)


def held_out(law: TextTransformerLoss) -> TextTransformerLoss:
    """The same loss on windows of the held-out part."""
    fields = {name: getattr(law, name) for name in type(law).model_fields}
    return TextTransformerLoss(**{**fields, "part": "held-out"})


def _shared(run: Run, prior_loss: float, entropy: np.ndarray, motion: Motion) -> dict[str, Any]:
    curves = {"time": run.time, "step": run.step, "loss": np.asarray(run.series["loss"])}
    return {**curves, "prior_loss": prior_loss, "entropy": entropy, "motion": motion}
