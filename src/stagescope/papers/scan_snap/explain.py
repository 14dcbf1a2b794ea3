"""A run of scan and snap in words: its classes, its model, and what happens in each stage."""

from typing import Any

import numpy as np

from stagescope.detect.stage import Stage
from stagescope.papers.scan_snap.reading import ScanSnapReading
from stagescope.views.view import Explained, SmallTable, captions, listed, motion_words, plain

MOST = 12
"""Classes and tokens up to which the laws of the classes are a small table."""
GLOSSARY = {
    "common token": "A token that occurs in the contexts of several classes: it does not tell which one.",
    "distinct token": "A token that occurs in the contexts of one class only: it tells which one.",
    "common mass": "Attention on tokens that several classes share, averaged over the classes.",
    "onset": "Event: attention on common tokens has visibly fallen.",
    "peak": "Event: attention moves fastest.",
    "winner": "Event: in every class on average a distinct token has more attention than every common one.",
    "slow": "Event: the speed of attention has fallen to a small share of its peak.",
    "snap": "Event: attention has gone almost all of its way and hardly changes from here on.",
    "uniform": "Stage before attention moves: every token has its frequency.",
    "scan": "Stage in which common tokens lose attention and distinct ones gain it.",
    "snapped": "Stage after the snap: attention is nearly frozen.",
    "c_n": "Attention of class n over the tokens of its contexts, in the limit of long sequences.",
}


def explain(reading: ScanSnapReading) -> Explained:
    law = reading.law
    said = captions(reading.told_stages, _said)
    return Explained(f"{_sentence(law)} {motion_words(reading.run)}", _table(law), said, GLOSSARY, "common-mass")


def _sentence(law: Any) -> str:
    process = law.process
    layer = f"One attention layer (scores Z, decoder Y) reads a context and a query and predicts one of {process.vocab:,} tokens"
    shared = f"{len(process.common)} tokens are common to several, {len(process.distinct)} are distinct"
    many = f"There are {len(process.classes)} classes of contexts; {shared}"
    return f"{layer}. {many}."


def _table(law: Any) -> SmallTable | None:
    process = law.process
    keys = tuple(process.keys)
    if len(process.classes) > MOST or len(keys) > MOST:
        return None
    rows = tuple(f"{each.query} → {each.target}" for each in process.classes)
    values = np.asarray(process.table(keys))
    return SmallTable("P(token | class): row = class (query → target)", rows, tuple(process.label(key) for key in keys), values)


def _said(stage: Stage) -> str:
    facts = stage.facts
    if "common_mass_start" not in facts:
        return plain(stage)
    fell = f"attention on common tokens goes from {facts['common_mass_start']:.3f} to {facts['common_mass_stop']:.3f}"
    if stage.name == "uniform":
        return f"Attention is still spread by frequency, while the decoder begins to tell the classes apart: {fell}."
    if stage.name == "scan":
        lead = facts.get("distinct_over_common")
        more = f"; the strongest distinct token ends with {lead:.3g} times the strongest common one" if lead is not None else ""
        return f"Scan: common tokens say little about the class and lose attention, distinct ones gain it. Now {fell}{more}."
    winners = listed([str(name) for name in facts.get("winners", ())])
    won = f" The strongest tokens are {winners}." if winners else ""
    return f"Snap: the loss is small, so almost nothing drives attention any more; {fell}.{won}"
