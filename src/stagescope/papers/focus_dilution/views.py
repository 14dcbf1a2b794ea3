"""A focus-dilution run on a page: attention between token types, its focus and dilution, what opens, and all of it in words."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from stagescope.detect.stage import Stage, Stages
from stagescope.papers.focus_dilution.limits import LIMITS
from stagescope.papers.focus_dilution.loss import TokenFinite, TokenSampled
from stagescope.papers.focus_dilution.model import LazyChain
from stagescope.papers.focus_dilution.observables import TokenCurves, token_curves
from stagescope.papers.focus_dilution.reading import FocusDilutionReading
from stagescope.papers.focus_dilution.study import WORDS
from stagescope.readings.reading import Reading
from stagescope.runs.run import Run
from stagescope.views.any_run import excess_view, loss_view, matrix, norms_view, singular_values, speed_view
from stagescope.views.curves import MOST_POINTS, NAMED, OBSERVED, curves, left_out, many_curves, plane, shown
from stagescope.views.view import Curve, Explained, Level, Maker, Points, SmallTable, View, captions, listed, motion_words, plain

# A focus-dilution run on a page: attention between token types, its focus and dilution, and the directions that open.

BETWEEN = OBSERVED / 4
"""Most entries of a view of matrices between all tokens: 40 MB, all frames of 1000 up to 70 tokens."""


@dataclass(frozen=True)
class _Sample:
    """The curves of the frames shown."""

    curves: TokenCurves
    frames: np.ndarray | None

    @property
    def tokens(self) -> tuple[str, ...]:
        return tuple(str(i) for i in range(len(self.curves.pi)))

    @property
    def often(self) -> list[int]:
        """Tokens, most frequent first."""
        return np.argsort(-self.curves.pi, kind="stable").tolist()

    def rows(self, values: np.ndarray, word: str) -> tuple[Curve, ...]:
        """A curve for each token, the most frequent ones first."""
        return many_curves(values, [f"{word} {i}" for i in self.tokens], first=self.often, tokens=self.tokens)


def token_views(reading: Reading) -> list[Maker]:
    """Loss, attention, focus and dilution of its rows, singular values, norms, and the embedding."""
    run = reading.run
    rows = run.params["W0"][0]
    samples = shown(run, rows.size, OBSERVED), shown(run, len(rows) ** 2, BETWEEN)
    sample, few = (_Sample(token_curves(some.run), some.frames) for some in samples)
    return [
        partial(_loss, run, sample),
        partial(_between, few, "attention"),
        partial(_focus, sample),
        partial(_entropy, sample),
        partial(_values, sample, "W0"),
        partial(_values, sample, "scores"),
        partial(_embedding, sample),
        partial(_row_norms, sample),
        partial(_values, sample, "W1"),
        partial(norms_view, run),
        partial(_between, few, "scores"),
        partial(_excess, run, sample),
        partial(speed_view, run),
    ]


def _loss(run: Run, sample: _Sample) -> View | None:
    chain = sample.curves.law.process
    levels = (
        Level("uniform prediction, ln d", float(np.log(chain.vocab))),
        Level("without context, H(pi)", chain.unigram_loss()),
        Level("entropy rate", chain.floor()),
    )
    about = "Cross-entropy of the next token in nats. The entropy rate is the least any predictor can reach."
    return loss_view(run, levels, about)


def _excess(run: Run, sample: _Sample) -> View | None:
    if "loss" not in run.series:
        return None
    chain = sample.curves.law.process
    levels = (Level("without context", chain.unigram_loss() - chain.floor()),)
    return excess_view(np.asarray(run.series["loss"]) - chain.floor(), "the entropy rate of the chain", levels)


def _between(sample: _Sample, slot: str) -> View:
    """Attention or its scores between all tokens."""
    tokens, signed = sample.tokens, slot == "scores"
    title = "Attention scores" if signed else "Attention between token types"
    about = "Attention in an infinitely long context: row = query type, column = key type."
    about += f" Token {tokens[sample.curves.frequent]} is the most frequent."
    if signed:
        about = "Phi, before the softmax and without the frequencies of the tokens. Attention opens along a rank-one pattern."
    values = getattr(sample.curves, slot)
    return matrix(slot, title, about, values, signed=signed, rows=tokens, columns=tokens, tokens=True, frames=sample.frames)


def _focus(sample: _Sample) -> View:
    """Attention on the frequent token, row by row: up is focus, back is dilution."""
    run_curves, frequent = sample.curves, sample.curves.frequent
    base = Level(f"frequency of token {frequent}", float(run_curves.pi[frequent]))
    about = f"Attention of each query type on token {frequent}, the most frequent. Rising is focus, returning is dilution."
    lines = sample.rows(run_curves.on_frequent, "query")
    title, about, axis = "Focus and dilution, row by row", about + left_out(len(run_curves.pi)), f"attention on token {frequent}"
    return curves("focus", title, about, axis, lines, levels=[base], frames=sample.frames)


def _entropy(sample: _Sample) -> View:
    base = Level("entropy of the frequencies", sample.curves.law.process.unigram_loss())
    about = "Entropy of each row of attention, in nats: low where a query looks at few tokens." + left_out(len(sample.tokens))
    lines = sample.rows(sample.curves.entropy, "query")
    return curves("entropy", "Entropy of attention rows", about, "nats", lines, levels=[base], frames=sample.frames)


def _values(sample: _Sample, name: str) -> View:
    values = sample.curves.score_values if name == "scores" else singular_values(np.asarray(sample.curves.params[name]))
    levels = [level for event, level in sample.curves.levels.items() if event[0] == MATRICES[name][2][:1]]
    return openings_view(name, values, max(levels, default=LIMITS.level), sample.frames)


MATRICES = {
    "W0": ("embedding-values", "the embedding W0", "E_k"),
    "W1": ("output-values", "the output W1", ""),
    "scores": ("score-values", "the attention scores Phi", "Q_k"),
}
"""Slot, words and events of the views of singular values."""


def openings_view(name: str, values: np.ndarray, level: float, frames: np.ndarray | None) -> View:
    """Singular values with the level at which directions open, where that is an event."""
    slot, title, events = MATRICES[name]
    about = f"Singular values of {title}, largest first."
    if events:
        about += f" A direction opens when its value passes {level:.3g}: the events {events}."
    about += left_out(values.shape[1], NAMED, "values")
    lines = many_curves(values[:, :NAMED], [f"{k + 1}" for k in range(values.shape[1])])
    levels = [Level("a direction opens", level)] if events else []
    return curves(slot, f"Singular values of {title}", about, "singular value", lines, levels=levels, log=True, frames=frames)


def _row_norms(sample: _Sample) -> View:
    about = "Length of each token's row of W0. A row passes near zero while it dilutes." + left_out(len(sample.tokens))
    lines = sample.rows(sample.curves.norms, "token")
    return curves("row-norms", "Norms of the embedding's rows", about, "norm", lines, log=True, frames=sample.frames)


def _embedding(sample: _Sample) -> View:
    sentence = f" The {MOST_POINTS} most frequent of {len(sample.tokens):,} tokens are drawn."
    return embedding_view("tokens", sample.curves.params["W0"], sample.tokens, sample.often, sentence, sample.frames)


def embedding_view(
    kind: str, rows: np.ndarray, names: Sequence[str], order: list[int], drawn: str, frames: np.ndarray | None
) -> View:
    """Rows of W0 in a plane, the first ones of an order; `drawn` says which ones where these are not all."""
    indices = order[:MOST_POINTS]
    places, shares = plane(np.asarray(rows)[:, indices])
    about = "Rows of W0 in the plane of their largest variance, all frames together; a row at the origin is zero."
    about += drawn if len(names) > MOST_POINTS else ""
    labels, tokens = tuple(names[i] for i in indices), kind == "tokens"
    return Points("embedding", f"Embedding of the {kind}", about, places, labels, shares, tokens=tokens, frames=frames)


# A run of focus and dilution in words: the chain, the model, and what happens in each stage, with the numbers of the run.


def explain_run(reading: FocusDilutionReading) -> Explained:
    law = reading.law
    tokens = tuple(str(i) for i in range(law.process.vocab))
    matrix = np.asarray(law.process.transition)
    table = SmallTable("Transition matrix P: from row to column", tokens, tokens, matrix) if len(tokens) <= 12 else None
    frequent = int(np.argmax(law.process.stationary))
    stages, clock = reading.told_stages, reading.run.clock

    def words(stage: Stage) -> str:
        return " ".join([_said(stage, frequent, clock), *_total_focuses(stages, stage, clock)])

    texts = captions(stages, words, lambda *beside: _pause(reading, *beside))
    return Explained(f"{_sentence(law)} {motion_words(reading.run)}", table, texts, WORDS.glossary["run"], "focus")


def _sentence(law: Any) -> str:
    chain, model = law.process, law.model
    if isinstance(chain, LazyChain):
        repeat = f"which repeats its last token with probability {chain.persistence:g} and otherwise draws one by frequency"
    else:
        repeat = "with the transition matrix below"
    contexts = "infinitely long contexts"
    if isinstance(law, TokenFinite):
        contexts = f"all contexts of {law.length} tokens"
    elif isinstance(law, TokenSampled):
        contexts = f"{law.sequences:,} sampled contexts of {law.length} tokens"
    layer = f"One attention layer without positions (embedding of width {model.width}, scores times {model.scale:.3g})"
    return f"{layer} learns to predict the next token of a Markov chain on {chain.vocab} tokens, {repeat}. It sees {contexts}."


def _said(stage: Stage, frequent: int, clock: str) -> str:
    name, facts = stage.name, stage.facts
    if name == "condensation" and facts.get("E1") is None:
        return "Embeddings and outputs are still too small to matter; no embedding direction has opened."
    if name == "condensation":
        lined = f"All embeddings line up along one direction, which is open at {clock} = {facts['E1']:.4g} (E1)."
        return f"{lined} The model learns how frequent tokens are. Every query still looks at tokens by their frequency."
    if name in ("focus", "defocus") and facts.get("gains"):
        turn = "Attention turns to" if name == "focus" else "Attention turns away from"
        rows = listed([f"query {row} {gain:+.3f}" for row, gain in facts["gains"].items()])
        return f"{turn} token {frequent}, the most frequent one: in this direction attention grows fastest. At the peak: {rows}."
    if name == "dilution" and facts.get("norm_dips"):
        dips = [float(dip) for dip in facts["norm_dips"].values()]
        share = f"{100 * min(dips):.2g} % of their length"
        reason = f"their embeddings shrink to {share} and their queries turn away"
        if min(dips) < LIMITS.level:
            near = f"their embeddings pass near zero (down to {share})"
            reason = f"{near}, where a query asks for nothing and attention is by frequency alone"
        count_text = f"{facts['rows_diluted']} of {facts['rows_focused']} rows lost half of what they gained"
        return f"Rare tokens lose their attention on token {frequent} again: {reason}. {count_text}."
    if name == "lifting" or name.startswith("cycle"):
        order = {2: "second", 3: "third"}.get(facts["direction"], f"{facts['direction']}th")
        labels = ""
        if "label_after" in facts:
            labels = f", from the critical point {facts['label_before']} to {facts['label_after']}"
        opens = f"A {order} embedding direction opens{labels}"
        return f"{opens}: tokens become different from each other, and their queries focus and dilute once more."
    return plain(stage)


def _total_focuses(stages: Stages, stage: Stage, clock: str) -> Iterator[str]:
    """A sentence for each cycle on a token that begins in this stage of the run: after it began, and before the next one does."""
    later = min(
        (following.start for following in stages if not following.track and following.start > stage.start), default=np.inf
    )
    for cycle in stages:
        if cycle.name != "total focus" or not stage.start <= cycle.start < later:
            continue
        heights = cycle.facts["height"]
        rows = listed([f"query {row} ({height:.3f} at the most)" for row, height in heights.items()])
        until = "and has not let go of it" if cycle.stop is None else f"the last until {clock} = {cycle.stop:.4g}"
        gives = "gives" if len(heights) == 1 else "give"
        yield f"From {clock} = {cycle.start:.4g} on {rows} {gives} token {cycle.facts['token']} most attention, {until}."


def _pause(reading: FocusDilutionReading, before: Stage, after: Stage | None) -> str:
    if before.name != "dilution" or before.stop is None:
        return ""
    clock, last = reading.run.clock, float(reading.run.time[-1])
    grows = "A second embedding direction grows unseen, by a constant factor in each unit of time"
    opens = f", and opens at {clock} = {after.start:.4g} (E2)" if after is not None else ""
    span = (before.stop, last if after is None else after.start)
    return f"{_below(reading.curves, *span)} {_falls(reading, *span)}{grows}{opens}."


def _below(curves: TokenCurves, start: float, stop: float) -> str:
    """How far below the frequency of the frequent token its attention falls, or where it goes if it stays above."""
    inside = (curves.time >= start) & (curves.time <= stop)
    shares, frequency = curves.on_frequent[inside], float(curves.pi[curves.frequent])
    low = shares.min(axis=0)
    rows = [f"query {i} {share:.2f}" for i, share in enumerate(low) if share < frequency - LIMITS.negligible]
    if rows:
        lowest = f"At the lowest: {listed(rows)}"
        return f"Attention on token {curves.frequent} keeps falling, below its frequency {frequency:.2f}. {lowest}."
    ends = [f"query {i} {share:.2f}" for i, share in enumerate(shares[-1])]
    return f"Attention on token {curves.frequent} goes to: {listed(ends)}."


def _falls(reading: FocusDilutionReading, start: float, stop: float) -> str:
    """How far the loss falls, until when, and whether it rests then."""
    if "loss" not in reading.run.series:
        return ""
    time, loss = reading.run.time, reading.run.series["loss"]
    first, last = np.interp((start, stop), time, loss)
    if first - last <= LIMITS.negligible * np.ptp(loss):
        return f"The loss rests at {last:.4g}. "
    low = (time > start) & (loss <= first - 0.9 * (first - last))
    until = float(time[np.argmax(low)]) if low.any() else stop
    rests = ", and then it rests" if until - start < 0.5 * (stop - start) else ""
    return f"The loss falls from {first:.4g} to {last:.4g}, nine tenths of that by {reading.run.clock} = {until:.4g}{rests}. "
