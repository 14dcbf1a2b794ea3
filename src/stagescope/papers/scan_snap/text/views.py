"""Views of a scan-and-snap run on a text: class attention by words, common and distinct types, motion; transformer maps."""

from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import numpy as np

from stagescope.corpora.corpus import TextCorpus
from stagescope.detect.stage import Stage
from stagescope.papers.scan_snap.limits import LIMITS
from stagescope.papers.scan_snap.study import WORDS
from stagescope.papers.scan_snap.text.loss import PairwiseWindows, TextTransformerLoss
from stagescope.papers.scan_snap.text.observables import (
    TextAttention,
    TopicAttention,
    checkpoints,
    held_out,
    known_windows,
    text_attention,
)
from stagescope.papers.scan_snap.text.reading import TextSnapReading
from stagescope.readings.reading import Reading
from stagescope.readings.rebuild import rebuilt
from stagescope.runs.run import Run
from stagescope.views.any_run import largest, matrix, norms_view, values_view
from stagescope.views.curves import CELLS, MOST, MOST_POINTS, OBSERVED, curves, left_out, plane, shown
from stagescope.views.view import Curve, Explained, Level, Maker, Marks, Points, View, captions, listed, motion_words, plain


@dataclass(frozen=True)
class Sizes:
    """How much each view shows; more labels could not be read."""

    types: int = 16  # types of each kind in the map of class attention; all others share one column
    named: int = 4  # scores named at each end
    ranked: int = 400  # columns of the scores by distinctness
    maps: int = 3  # held-out windows whose attention is drawn
    words: int = 60  # words of the embedding


SIZES = Sizes()
KINDS = ("common type", "distinct type")


@dataclass(frozen=True)
class _TopicPage:
    """The curves of the frames shown."""

    run: Run
    curves: TopicAttention
    frames: np.ndarray | None

    @cached_property
    def words(self) -> tuple[str, ...]:
        """The types that can have attention."""
        return tuple(map(self.curves.process.label, self.curves.process.keys))

    @cached_property
    def kinds(self) -> np.ndarray:
        """1 for common types, 2 for distinct ones; a type that is both counts as distinct."""
        process = self.curves.process
        return np.where(process.distinct, 2, np.where(process.common, 1, 0)).astype(np.uint8)

    @cached_property
    def attention(self) -> np.ndarray:
        """Mean attention of the training windows of each class on each type (frames, K, keys)."""
        process = self.curves.process
        windows, keys, classes = process.part("train"), len(process.keys), len(process.nexts)
        cell = windows.target[windows.of] * keys + windows.key
        sums = [np.bincount(cell, windows.attention(score), minlength=classes * keys) for score in self.curves.scores]
        size = np.bincount(windows.target, minlength=classes)
        return np.array(sums).reshape(-1, classes, keys) / size[:, None]

    @cached_property
    def mapped(self) -> np.ndarray:
        """Types of the attention map: those of each kind that end with most attention, common ones first."""
        last = self.attention[-1].max(axis=0)
        chosen_types = [sorted(np.flatnonzero(self.kinds == kind), key=lambda i: -last[i])[: SIZES.types] for kind in (1, 2)]
        return np.array([*chosen_types[0], *chosen_types[1]], dtype=int)

    def topic_loss(self) -> View:
        attention, law = self.curves, self.curves.law
        judge = PairwiseWindows(model=law.model, process=law.process, part="held-out")
        levels = (_uniform(law.model.vocab), Level("prior of the next words", attention.prior_loss))
        words = ", ".join(attention.process.nexts)
        about = f"Cross-entropy of the word after “{attention.process.query}” in nats; next words: {words}. The prior is the "
        about += "least loss without a window. Where the held-out loss rises again, the model fits noise of the training windows."
        lines = [Curve("loss", attention.loss), Curve("held-out loss", judge.values(self.run.params))]
        return curves("loss", "Loss", about, "nats", lines, levels=levels, log=True, frames=self.frames)

    def masses(self) -> View:
        attention = self.curves
        lines = [Curve("common types", attention.common_mass), Curve("distinct types", attention.distinct_mass)]
        counts = int(attention.process.common.sum()), int(attention.process.distinct.sum())
        about = f"Attention of held-out windows on the {counts[0]} common and the {counts[1]} distinct types; some may be both."
        about += " Attention on common types first rises, because the prior is learned through them; then it falls."
        levels = [Level("twice the start, distinct types", 2 * float(attention.distinct_mass[0]))]
        return curves(
            "masses", "Attention on common and distinct types", about, "attention", lines, levels=levels, frames=self.frames
        )

    def attention_map(self) -> View:
        types, values = self.mapped, self.attention
        remaining = values.sum(axis=2) - values[:, :, types].sum(axis=2)
        cells = np.tile(np.append(self.kinds[types], 0), (values.shape[1], 1))
        process = self.curves.process
        note = f" The {len(types)} common and distinct types with most attention at the end, of {len(self.words)} types in all."
        return matrix(
            "attention",
            "Class attention",
            "c_n, the mean over the training windows of each class:"
            f" row = next word after “{process.query}”, column = type.{note}",
            np.concatenate([values[:, :, types], remaining[:, :, None]], axis=2),
            rows=process.nexts,
            columns=(*(self.words[i] for i in types), "all others"),
            row_axis="next word",
            column_axis="type",
            high=largest(values[:, :, types]) if len(types) else 1.0,
            marks=Marks(KINDS, cells),
            frames=self.frames,
        )

    def strongest(self) -> View:
        """For each class, the type that ends with most attention; common types are left out."""
        last, lines = np.where(self.curves.process.common, 0.0, self.attention[-1]), []
        for n, word in enumerate(self.curves.process.nexts[:MOST]):
            top = int(np.argmax(last[n]))
            lines.append(Curve(f"{word}: {self.words[top]}", self.attention[:, n, top], f"next word {word}"))
        about = "For each next word, the type that ends with most attention; common types are left out. Names: “next word: type”."
        return curves("tokens", "The strongest type of each next word", about, "attention", lines, frames=self.frames)

    def scores(self) -> View:
        """The highest scores and the lowest of common types by name; other types are drawn faintly behind them."""
        scores, kinds = self.curves.scores, self.kinds
        order = np.argsort(-scores[-1])
        common = [i for i in order[::-1] if self.curves.process.common[i]]
        named = [*order[: SIZES.named], *(i for i in common[: SIZES.named] if i not in order[: SIZES.named])]
        unnamed = [i for i in order if i not in named]
        behind = unnamed[:: max(1, len(unnamed) // (MOST - len(named)))][: MOST - len(named)]
        family = ("types that are neither", "common types", "distinct types")
        first = [Curve(self.words[i], scores[:, i], family[kinds[i]]) for i in named]
        lines = [*first, *(Curve(self.words[i], scores[:, i], family[kinds[i]], faint=True) for i in behind)]
        ends = f"the {SIZES.named} highest, and the {SIZES.named} lowest of common types"
        about = f"z_l, before the softmax. By name: {ends}; drawn faintly: {len(behind)} of the other {len(unnamed)}."
        about += " Scores of distinct types grow, those of common types fall."
        return curves("scores", "Scores of types", about, "z", lines, frames=self.frames)

    def ranked(self) -> View:
        """All scores, ordered by distinctness: where the two rank alike, the colour changes steadily from left to right."""
        process, scores = self.curves.process, self.curves.scores
        order = np.argsort(-process.distinctness, kind="stable")[: SIZES.ranked]
        high = largest(scores)
        about = "z_l of the types, the most distinct first: KL(next | type || next) falls from left to right."
        return matrix(
            "ranked",
            "Scores by distinctness",
            about + left_out(len(self.words), SIZES.ranked, "types"),
            scores[:, None, order],
            rows=(process.query,),
            columns=tuple(self.words[i] for i in order),
            column_axis="type",
            low=-high,
            high=high,
            marks=Marks(KINDS, self.kinds[order][None]),
            frames=self.frames,
        )

    def decoder(self) -> View:
        """Y of the types of the attention map, in the same layout: one column for each type, wide enough for its label."""
        process, model = self.curves.process, self.curves.law.model
        types = self.mapped if len(self.mapped) else np.argsort(-process.distinctness, kind="stable")[: SIZES.types]
        row = self.curves.law.rows[types]
        some = shown(self.run, len(row) * self.run.params["Y"].shape[2], CELLS)
        values = np.swapaxes(np.asarray(some.run.params["Y"])[:, row], 1, 2)
        rest_label = (f"each of {model.rest} others",) if model.rest else ()
        frames = some.frames if self.frames is None or some.frames is None else self.frames[some.frames]
        return matrix(
            "decoder",
            "Decoder Y",
            "What a type (column) adds to the logit of each next word (row) if it has all the attention."
            f" The types are those of class attention, {len(types)} of {len(self.words)}.",
            values,
            rows=(*map(process.label, model.outputs), *rest_label),
            columns=tuple(self.words[i] for i in types),
            row_axis="next word",
            column_axis="type",
            marks=Marks(KINDS, np.tile(self.kinds[types], (values.shape[1], 1))),
            signed=True,
            frames=self.frames if frames is None else frames,
        )

    def plane(self) -> View:
        order = np.argsort(-self.curves.process.distinctness, kind="stable")[:MOST_POINTS]
        places, shares = plane(np.asarray(self.run.params["Y"])[:, self.curves.law.rows[order]])
        about = "Rows of Y in the plane of their largest variance over all frames. Types of one topic move together."
        about += left_out(len(self.words), MOST_POINTS, "types")
        labels = tuple(self.words[i] for i in order)
        return Points("embedding", "Types by their decoder rows", about, places, labels, shares, frames=self.frames)


def topic_views(reading: Reading) -> list[Maker]:
    """Loss, attention on common and distinct types, class attention, scores, motion, entropy, decoder."""
    run = reading.run
    law = rebuilt(run.spec["field"])
    some = shown(run, len(law.process.part("train").key), OBSERVED)
    attention = text_attention(some.run)
    assert isinstance(attention, TopicAttention)
    page = _TopicPage(some.run, attention, some.frames)
    return [
        page.topic_loss,
        page.attention_map,
        page.masses,
        page.strongest,
        page.scores,
        page.ranked,
        partial(_motion, attention, page.frames),
        partial(_entropy, attention, page.frames, "types of a window"),
        page.decoder,
        page.plane,
        partial(norms_view, run),
    ]


def _uniform(vocab: int) -> Level:
    return Level("uniform prediction, ln M", float(np.log(vocab)))


def _motion(attention: TextAttention, frames: np.ndarray | None) -> View | None:
    stops = checkpoints(attention.step)[1:]
    if not len(stops) or len(stops) != len(attention.motion.variation):
        return None
    about = f"Total variation of held-out attention{attention.whose} between checkpoints {LIMITS.interval} steps apart. "
    about += "The batches alone move it by 0.01 to 0.02. "
    about += "Attention has snapped where an eighth of the motion since the prior is still to come."
    lines = [Curve("total variation", attention.motion.variation), *_higher(attention, "variation")]
    stop_frames = stops if frames is None else frames[stops]
    title, axis = "Motion of attention", f"per {LIMITS.interval} steps"
    return curves("motion", title, about, axis, lines, levels=[Level("frozen below", LIMITS.small)], log=True, frames=stop_frames)


def _entropy(attention: TextAttention, frames: np.ndarray | None, rows: str) -> View:
    about = f"Mean entropy of held-out attention{attention.whose} over the {rows}, in nats. Lower is sparser."
    lines = [Curve("entropy", attention.entropy), *_higher(attention, "entropy")]
    return curves("entropy", "Entropy of attention", about, "nats", lines, frames=frames)


def _higher(attention: TextAttention, name: str) -> list[Curve]:
    """A curve of each layer above the lowest."""
    return [Curve(f"layer {i}", getattr(layer, name)) for i, layer in enumerate(attention.layers[1:], start=2)]


def transformer_views(reading: Reading) -> list[Maker]:
    """Loss, attention in held-out windows with their words, motion, entropy, singular values."""
    run = reading.run
    law: Any = rebuilt(run.spec["field"])
    some = shown(run, law.watched * law.length**2, OBSERVED)
    attention, judge = text_attention(some.run), held_out(law)
    tokens = judge.watched_tokens
    windows = known_windows(tokens, law.process.words, SIZES.maps)
    maps = np.array([judge.attention(some.run.at(frame))[0, windows] for frame in range(some.run.frames)])
    words = [tuple(map(law.process.label, tokens[i].tolist())) for i in windows]
    return [
        partial(_text_loss, some.run, law, judge, some.frames),
        *(partial(_map, maps[:, i], words[i], i, attention.whose, some.frames) for i in range(len(words))),
        partial(_entropy, attention, some.frames, "tokens before a query"),
        partial(_motion, attention, some.frames),
        partial(_embedding, run, law.process),
        partial(values_view, run),
        partial(norms_view, run),
    ]


def _text_loss(run: Run, law: TextTransformerLoss, judge: TextTransformerLoss, frames: np.ndarray | None) -> View:
    corpus = law.process
    levels = (_uniform(corpus.vocab), Level("entropy of the words", corpus.unigram_loss()))
    about = f"Cross-entropy of the next word at every position, in nats, over {law.watched} windows of each part."
    judged = Curve("held-out loss", np.array([judge.value(run.at(frame)) for frame in range(run.frames)]))
    lines = [Curve("loss", np.asarray(run.series["loss"], dtype=float)), judged]
    return curves("loss", "Loss", about, "nats", lines, levels=levels, log=True, frames=frames)


def _map(values: np.ndarray, words: tuple[str, ...], place: int, whose: str, frames: np.ndarray | None) -> View:
    return matrix(
        "attention" if place == 0 else f"attention-{place + 1}",
        f"Attention{whose} in a held-out window, {place + 1} of {SIZES.maps}",
        f"Row = query, column = attended word, up to the query itself. The window begins “{' '.join(words[:8])}”.",
        values,
        rows=words,
        columns=words,
        frames=frames,
    )


def _embedding(run: Run, corpus: TextCorpus) -> View:
    """The most frequent words: tokens are ordered by frequency."""
    some = shown(run, run.params["E"][0].size, OBSERVED)
    places, shares = plane(np.asarray(some.run.params["E"][:, : SIZES.words], dtype=float))
    about = "Rows of the embedding E in the plane of their largest variance over all frames."
    about += left_out(corpus.vocab, SIZES.words, "words, the most frequent,")
    labels = tuple(map(corpus.label, range(places.shape[1])))
    return Points("embedding", "Embedding of the words", about, places, labels, shares, frames=some.frames)


# A run of scan and snap on a text in words: the text, the model, and what happens in each stage, with the numbers of the run.


def explain_text(reading: TextSnapReading) -> Explained:
    text = f"{_sentence(reading.law)} {motion_words(reading.run)}"
    return Explained(text, captions=captions(reading.told_stages, _said), glossary=WORDS.glossary["text"])


def _sentence(law: Any) -> str:
    if isinstance(law, PairwiseWindows):
        windows = law.process
        nexts = listed([f'"{word}"' for word in windows.nexts], most=8)
        layer = (
            f'One attention layer reads the {windows.window} words before "{windows.query}" in the text {windows.corpus.title}'
        )
        return f"{layer} and predicts which of these words comes next: {nexts}."
    model = law.model
    layers = "one layer" if model.layers == 1 else f"{model.layers} layers"
    predicts = f"A transformer of {layers} (width {model.width}, {model.vocab:,} tokens) predicts every next word"
    lowest = "" if model.layers == 1 else " Stages and claims are about attention in its lowest layer."
    return f"{predicts} of windows of {law.length} words of the text {law.process.title}.{lowest}"


def _said(stage: Stage) -> str:
    facts = stage.facts
    if "entropy_start" not in facts:
        return plain(stage)
    sentence = f"The entropy of attention goes from {facts['entropy_start']:.3f} to {facts['entropy_stop']:.3f} nats"
    if "common_mass_start" in facts:
        common = f"attention on common words from {facts['common_mass_start']:.3f} to {facts['common_mass_stop']:.3f}"
        sentence += f", {common}, on distinct ones from {facts['distinct_mass_start']:.3f} to {facts['distinct_mass_stop']:.3f}"
    happens = {
        "prior": "The model learns how frequent the next words are; it does this through any word that is often there.",
        "scan": "Scan: attention leaves words that are everywhere for words that tell what comes next.",
        "snapped": "Snap: almost all of the motion of attention is over.",
    }
    return f"{happens.get(stage.name, plain(stage))} {sentence}."
