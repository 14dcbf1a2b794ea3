"""A run of focus and dilution in words: the chain, the model, and what happens in each stage, with the numbers of the run."""

from typing import Any

import numpy as np

from stagescope.detect.stage import Stage
from stagescope.papers.focus_dilution.finite import TokenFinite
from stagescope.papers.focus_dilution.observables import TokenCurves
from stagescope.papers.focus_dilution.process import LazyChain
from stagescope.papers.focus_dilution.reading import FocusDilutionReading
from stagescope.papers.focus_dilution.sampled import TokenSampled
from stagescope.views.view import Explained, SmallTable, captions, listed, motion_words, plain

MOST = 12
"""Tokens up to which the transition matrix is a small table."""
LITTLE = 0.01
"""Attention, or share of the loss's range, that is not spoken of."""
GLOSSARY = {
    "E#": "Event: the k-th singular value of the embedding W0 passes 0.1, so the k-th embedding direction is open.",
    "Q#": "Event: the k-th singular value of the attention scores Phi passes 0.1, so the k-th attention direction is open.",
    "E_k": "Events E1, E2, ...: the k-th singular value of the embedding W0 passes 0.1.",
    "Q_k": "Events Q1, Q2, ...: the k-th singular value of the attention scores Phi passes 0.1.",
    "(#,#)": "A critical point (r,rq): r embedding directions and rq attention directions are open there.",
    "(r,rq)": "How many embedding directions (r) and attention directions (rq) are open: the name of a critical point.",
    "onset": "Event: attention first moves away from the frequencies of the tokens.",
    "focus#": "Event: the row of this query has its largest attention on the most frequent token: the end of its stage focus.",
    "dilution#": "Event: the row of this query has lost half of what it gained.",
    "refocus#": "Event: after E2 the row of this query has its largest attention there again: the end of its stage refocus.",
    "redilution#": "Event: after E2 that attention is smallest again: the end of its stage redilution.",
    "condensation": "Stage I: all embeddings line up along one direction, and attention does not move yet.",
    "focus": "Stage II: queries turn to the most frequent token.",
    "defocus": "Stage II where the sign is reversed: queries turn away from the most frequent token.",
    "dilution": "Stage III: the queries of rare tokens lose that attention again, as their embeddings pass near zero.",
    "lifting": "Stage IV: a second embedding direction opens, and the rows differ.",
    "cycle #": "A further embedding direction opens, and focus and dilution may come again.",
    "gamma_i": "The embedding of token i along the direction that opened first; where it is zero, its query asks for nothing.",
    "W0": "The embedding: one row for each token.",
    "W1": "The output matrix: from the embedding back to the tokens.",
    "WQ": "The query matrix.",
    "WK": "The key matrix.",
    "Phi": "Attention scores between types of tokens, before the softmax: scale (W0 WQ)(W0 WK)^T.",
    "H(pi)": "Entropy of the frequencies of the tokens: the least loss without context.",
    "pi": "The frequencies of the tokens: the stationary law of the chain.",
    "kappa": "The fastest embedding rate at (1,1) divided by delta, the asymmetry of the rare tokens.",
    "mu0": "The growth rate at the origin, |pi| |pi - 1/d|.",
    "delta": "How much the frequencies of the rare tokens differ from their mean.",
}


def explain(reading: FocusDilutionReading) -> Explained:
    law = reading.law
    tokens = tuple(str(i) for i in range(law.process.vocab))
    matrix = np.asarray(law.process.transition)
    table = SmallTable("Transition matrix P: from row to column", tokens, tokens, matrix) if len(tokens) <= MOST else None
    frequent = int(np.argmax(law.process.stationary))
    said = captions(reading.told_stages, lambda stage: _said(stage, frequent), lambda *beside: _between(reading, *beside))
    return Explained(f"{_sentence(law)} {motion_words(reading.run)}", table, said, GLOSSARY, "focus")


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


def _said(stage: Stage, frequent: int) -> str:
    name, facts = stage.name, stage.facts
    if name == "condensation":
        return _condensation(stage)
    if name in ("focus", "defocus") and facts.get("gains"):
        turn = "Attention turns to" if name == "focus" else "Attention turns away from"
        rows = listed([f"query {row} {gain:+.3f}" for row, gain in facts["gains"].items()])
        return f"{turn} token {frequent}, the most frequent one: in this direction attention grows fastest. At the peak: {rows}."
    if name == "dilution" and facts.get("norm_dips"):
        dips = [float(dip) for dip in facts["norm_dips"].values()]
        near = f"their embeddings pass near zero (down to {100 * min(dips):.2g} % of their length)"
        why = f"{near}, where a query asks for nothing and attention is by frequency alone"
        many = f"{facts['rows_diluted']} of {facts['rows_focused']} rows lost half of what they gained"
        return f"Rare tokens lose their attention on token {frequent} again: {why}. {many}."
    if name == "lifting" or name.startswith("cycle"):
        return _opening(stage)
    return plain(stage)


def _condensation(stage: Stage) -> str:
    opened = stage.facts.get("E1")
    if opened is None:
        return "Embeddings and outputs are still too small to matter; no embedding direction has opened."
    return (
        f"All embeddings line up along one direction, which is open at t = {opened:.4g} (E1). The model learns how frequent "
        "tokens are. Every query still looks at tokens by their frequency."
    )


def _opening(stage: Stage) -> str:
    facts = stage.facts
    order = {2: "second", 3: "third"}.get(facts["direction"], f"{facts['direction']}th")
    said = f"A {order} embedding direction opens"
    if "label_after" in facts:
        said += f", from the critical point {facts['label_before']} to {facts['label_after']}"
    return f"{said}: tokens become different from each other, and their queries focus and dilute once more."


def _between(reading: FocusDilutionReading, before: Stage, after: Stage | None) -> str:
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
    rows = [f"query {i} {share:.2f}" for i, share in enumerate(low) if share < frequency - LITTLE]
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
    if first - last <= LITTLE * np.ptp(loss):
        return f"The loss rests at {last:.4g}. "
    reached = (time > start) & (loss <= first - 0.9 * (first - last))
    until = float(time[np.argmax(reached)]) if reached.any() else stop
    rests = ", and then it rests" if until - start < 0.5 * (stop - start) else ""
    return f"The loss falls from {first:.4g} to {last:.4g}, nine tenths of that by {reading.run.clock} = {until:.4g}{rests}. "
