"""A focus-dilution run on a text, on a page: the same views with words for labels, where the probe words look, and captions."""

from dataclasses import dataclass
from functools import cached_property, partial

import numpy as np

from stagescope.detect.stage import Stage, Stages
from stagescope.papers.focus_dilution.study import WORDS
from stagescope.papers.focus_dilution.text.observables import TextCurves, text_curves
from stagescope.papers.focus_dilution.text.reading import TextFocusReading, probes
from stagescope.papers.focus_dilution.text.stages import opening_level
from stagescope.papers.focus_dilution.views import embedding_view, openings_view
from stagescope.readings.reading import Reading
from stagescope.runs.run import Run
from stagescope.views.any_run import loss_view, matrix, norms_view, speed_view
from stagescope.views.curves import MOST, MOST_POINTS, OBSERVED, curves, left_out, many_curves, shown
from stagescope.views.view import Curve, Explained, Level, Maker, View, captions, motion_words, plain

# A focus-dilution run on a text, on a page: the same views with words for labels, and where the probe words look.

TYPES = 40
"""Types of the attention map, with the probe words: more labels could not be read. All others are one column."""


@dataclass(frozen=True)
class _Sample:
    """The curves of the frames shown, and the words that are followed."""

    curves: TextCurves
    frames: np.ndarray | None
    probes: dict[str, int]

    @property
    def words(self) -> tuple[str, ...]:
        return self.curves.words

    @cached_property
    def often(self) -> list[int]:
        """Types, most frequent first."""
        return np.argsort(-self.curves.pi, kind="stable").tolist()

    @cached_property
    def first(self) -> list[int]:
        """Types in the order of curves: probe words, then by frequency."""
        probes = list(self.probes.values())
        return [*probes, *(token for token in self.often if token not in probes)]

    @cached_property
    def mapped(self) -> list[int]:
        """Types of the attention map, most frequent first: the most frequent ones, and the probe words."""
        tokens = {*self.often[:TYPES], *self.probes.values()}
        return [token for token in self.often if token in tokens]

    @property
    def most(self) -> str:
        """The most frequent type, in quotation marks."""
        return f"“{self.words[self.curves.frequent]}”"

    @property
    def whose(self) -> str:
        """Which of many words have curves with names, and how many words there are."""
        named = f" Named: the probe words, then the most frequent ones; {len(self.words):,} words in all."
        return named + left_out(len(self.words), what="words")


def text_focus_views(reading: Reading) -> list[Maker]:
    """Loss, attention between words, focus and dilution of their rows, where probe words look, singular values, embedding."""
    run = reading.run
    vocab = len(run.params["W0"][0])
    some = shown(run, vocab * max(TYPES, vocab / 25), OBSERVED)  # entropies need all rows, but of one frame at a time
    run_curves = text_curves(some.run)
    sample = _Sample(run_curves, some.frames, probes(run, run_curves))
    return [
        partial(_loss, run, sample),
        partial(_attention, sample),
        partial(_focus, sample),
        *(partial(_probe, sample, place) for place in range(min(4, len(sample.probes)))),
        partial(_entropy, sample),
        partial(_itself, sample),
        *(partial(_values, sample, name) for name in ("W0", "scores")),
        partial(_alignment, sample),
        partial(_embedding, sample),
        partial(_row_norms, sample),
        partial(norms_view, run),
        partial(speed_view, run),
    ]


def _loss(run: Run, sample: _Sample) -> View | None:
    levels = (
        Level("uniform prediction, ln d", float(np.log(len(sample.words)))),
        Level("without context, H(pi)", sample.curves.unigram),
        Level("given the last token alone", sample.curves.floor),
    )
    about = f"Cross-entropy of the next token in nats, on {run.spec['field']['watched']:,} windows of the text."
    return loss_view(run, levels, f"{about} Longer contexts may give a lower loss than the last token alone.")


def _attention(sample: _Sample) -> View:
    tokens, remaining = sample.mapped, len(sample.words) - len(sample.mapped)
    values = sample.curves.attention(tokens)[:, :, tokens]
    words = tuple(sample.words[token] for token in tokens)
    columns, about = words, "Row = query word, column = key word, in a long window with the frequencies of the text."
    if remaining:
        values = np.concatenate([values, 1 - values.sum(axis=2, keepdims=True)], axis=2)
        columns = (*words, "all others")
        about += (
            f" The most frequent words and the probe words; the last column is attention on the {remaining:,} others together."
        )
    return matrix(
        "attention",
        "Attention between words",
        about,
        values,
        rows=words,
        columns=columns,
        frames=sample.frames,
    )


def _focus(sample: _Sample) -> View:
    """Attention on the most frequent type, word by word: up is focus, back is dilution."""
    base = Level("its frequency in the text", float(sample.curves.pi[sample.curves.frequent]))
    about = f"Attention of each word's row on {sample.most}, the most frequent type. Rising is focus, returning is dilution."
    lines, title = many_curves(sample.curves.on_frequent, sample.words, first=sample.first), "Focus and dilution, word by word"
    return curves("focus", title, about + sample.whose, f"attention on {sample.most}", lines, levels=[base], frames=sample.frames)


def _probe(sample: _Sample, place: int) -> View:
    """The row of one probe word: the keys that ever have most of its attention."""
    word, token = list(sample.probes.items())[place]
    row = sample.curves.attention([token])[:, 0]
    tops = np.argsort(-np.max(row, axis=0, where=np.isfinite(row), initial=0.0), kind="stable").tolist()
    about = f"The attention row of “{word}”: the words that at some time have most of it." + left_out(len(tops), what="words")
    lines = many_curves(row, sample.words, first=tops)
    return curves(f"probe-{place + 1}", f"Where “{word}” looks", about, "attention", lines, frames=sample.frames)


def _entropy(sample: _Sample) -> View:
    base = Level("entropy of the frequencies", sample.curves.unigram)
    about = "Entropy of each word's row of attention, in nats: low where it looks at few words. Mean: weighed by frequency."
    rows = many_curves(sample.curves.entropy, sample.words, first=sample.first, named=len(sample.probes))
    lines = [Curve("mean", sample.curves.mean_entropy), *rows[: MOST - 1]]
    about += left_out(len(sample.words), MOST - 1, "words")
    return curves("entropy", "Entropy of attention rows", about, "nats", lines, levels=[base], frames=sample.frames)


def _itself(sample: _Sample) -> View:
    about = "Attention of each word's row on the word itself." + sample.whose
    lines = many_curves(sample.curves.on_itself, sample.words, first=sample.first)
    return curves("itself", "Attention on oneself", about, "attention on itself", lines, frames=sample.frames)


def _values(sample: _Sample, name: str) -> View:
    values = sample.curves.score_values if name == "scores" else sample.curves.embedding_values
    return openings_view(name, values, opening_level(values), sample.frames)


def _alignment(sample: _Sample) -> View:
    about = "cos(Phi, pi pi^T): +1 where attention opens towards frequent words, -1 where it opens away from them."
    lines = [Curve("alignment", sample.curves.alignment)]
    return curves("alignment", "Direction of the attention scores", about, "cosine", lines, frames=sample.frames)


def _row_norms(sample: _Sample) -> View:
    rows = many_curves(sample.curves.norms, sample.words, first=sample.first, named=len(sample.probes))
    lines = [Curve("the rarer half, mean", sample.curves.rare_norm), *rows[: MOST - 1]]
    about = "Length of each word's row of W0, and the geometric mean over the less frequent half of the words."
    about += left_out(len(sample.words), MOST - 1, "words")
    return curves("row-norms", "Norms of the embedding's rows", about, "norm", lines, log=True, frames=sample.frames)


def _embedding(sample: _Sample) -> View:
    sentence = f" The probe words and the most frequent of {len(sample.words):,} words, {MOST_POINTS} in all, are drawn."
    return embedding_view("words", sample.curves.params["W0"], sample.words, sample.first, sentence, sample.frames)


# A run of focus and dilution on a text in words: the text, the model, and what happens in each stage, with its numbers.


def explain_run(reading: TextFocusReading) -> Explained:
    stages, law = reading.told_stages, reading.law
    types = f"the {law.model.vocab:,} most frequent types of the text {law.process.title}"
    layer = f"One attention layer (embedding of width {law.model.width}) learns to predict the next word among {types}"
    sentence = f"{layer}, from windows of {law.length} words. {motion_words(reading.run)}"
    return Explained(
        sentence,
        captions=captions(stages, lambda stage: _said(stage, stages)),
        glossary={**WORDS.glossary["run"], **WORDS.glossary["text"]},
    )


def _said(stage: Stage, stages: Stages) -> str:
    facts = stage.facts
    if stage.name == "condensation" and facts.get("E1") is not None:
        lined = f"All embeddings line up along one direction, which is open at {stages.clock} = {facts['E1']:.4g} (E1)."
        second = facts.get("second_over_first")
        second_text = "" if second is None else f" The second direction is {100 * second:.2g} % of the first then."
        return f"{lined}{second_text} The model learns how frequent words are."
    if stage.name in ("focus", "defocus") and "cosine" in facts:
        turn = "to" if stage.name == "focus" else "away from"
        along = f"the scores open along the frequencies of the words (cosine {facts['cosine']:+.3f})"
        return f"Attention turns {turn} the most frequent word: {along}. {_rows(stages)}".strip()
    if "direction" in facts:
        order = {2: "second", 3: "third"}.get(facts["direction"], f"{facts['direction']}th")
        count = facts["attention_directions"]
        open_text = f"{count} direction{'s' if count != 1 else ''} of the scores {'are' if count != 1 else 'is'} open"
        return (
            f"A {order} embedding direction opens, {open_text}: words become different from each other. {_rows(stages)}".strip()
        )
    return plain(stage)


def _rows(stages: Stages) -> str:
    """How many rows focused, and how many of these diluted, over the whole run."""
    facts = {stage.name: stage.facts for stage in stages if stage.track == "rows"}
    if "rows focus" not in facts:
        return ""
    focus, dilute = facts["rows focus"], facts["rows dilute"]
    gain = f"{focus['rows']} of {focus['of_rows']} rows focus on it in this run (median gain {focus['median_gain']:.3f})"
    return f"{gain}, and {dilute['rows']} of these lose half of it again."
