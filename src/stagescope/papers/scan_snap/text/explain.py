"""A run of scan and snap on a text in words: the text, the model, and what happens in each stage, with the numbers of the run."""

from typing import Any

from stagescope.detect.stage import Stage
from stagescope.papers.scan_snap.text.loss import PairwiseWindows
from stagescope.papers.scan_snap.text.reading import TextSnapReading
from stagescope.views.view import Explained, captions, listed, motion_words, plain

GLOSSARY = {
    "common type": "A word that is in many windows of every class: it does not tell which word comes next.",
    "distinct type": "A word that is seen far more often before some next words than before others.",
    "common mass": "Attention on common types, averaged over held-out windows.",
    "distinct mass": "Attention on distinct types, averaged over held-out windows.",
    "entropy": "Of attention, in nats: low where it is on few words.",
    "prior": "Event: the model knows how frequent the next words are, before it uses the context.",
    "onset": "Event: after the prior, common types have lost 2 % of their attention.",
    "doubled": "Event: distinct types have twice the attention they started with.",
    "peak": "Event: attention moves fastest after the prior.",
    "snap": "Event: an eighth of the way of attention since the prior is still to go.",
    "scan": "Stage after the prior: attention leaves common words for distinct ones.",
    "snapped": "Stage after the snap: attention hardly moves any more.",
}


def explain(reading: TextSnapReading) -> Explained:
    said = f"{_sentence(reading.law)} {motion_words(reading.run)}"
    return Explained(said, captions=captions(reading.told_stages, _said), glossary=GLOSSARY)


def _sentence(law: Any) -> str:
    if isinstance(law, PairwiseWindows):
        windows = law.process
        nexts = listed([f'"{word}"' for word in windows.nexts], most=8)
        layer = (
            f'One attention layer reads the {windows.window} words before "{windows.query}" in the text {windows.corpus.title}'
        )
        return f"{layer} and predicts which of these words comes next: {nexts}."
    model = law.model
    layer = f"A transformer of one layer (width {model.width}, {model.vocab:,} tokens) predicts every next word"
    return f"{layer} of windows of {law.length} words of the text {law.process.title}."


def _said(stage: Stage) -> str:
    facts = stage.facts
    if "entropy_start" not in facts:
        return plain(stage)
    moved = f"The entropy of attention goes from {facts['entropy_start']:.3f} to {facts['entropy_stop']:.3f} nats"
    if "common_mass_start" in facts:
        common = f"attention on common words from {facts['common_mass_start']:.3f} to {facts['common_mass_stop']:.3f}"
        moved += f", {common}, on distinct ones from {facts['distinct_mass_start']:.3f} to {facts['distinct_mass_stop']:.3f}"
    happens = {
        "prior": "The model learns how frequent the next words are; it does this through any word that is often there.",
        "scan": "Scan: attention leaves words that are everywhere for words that tell what comes next.",
        "snapped": "Snap: almost all of the motion of attention is over.",
    }
    return f"{happens.get(stage.name, plain(stage))} {moved}."
