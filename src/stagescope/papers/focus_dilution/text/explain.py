"""A run of focus and dilution on a text in words: the text, the model, and what happens in each stage, with its numbers."""

from typing import Any

from stagescope.detect.stage import Stage, Stages
from stagescope.papers.focus_dilution.explain import GLOSSARY
from stagescope.papers.focus_dilution.text.reading import TextFocusReading
from stagescope.views.view import Explained, captions, motion_words, plain

TEXT = {
    "focused": "Event: the mean entropy of attention rows has its first low.",
    "diluted": "Event: the mean entropy of attention rows has risen again.",
    "rows": "Rows of attention, one for each type of token as a query.",
    "rare norms": "The mean length of the embeddings of rare types.",
}


def explain(reading: TextFocusReading) -> Explained:
    stages = reading.told_stages
    said = f"{_sentence(reading.law)} {motion_words(reading.run)}"
    return Explained(said, captions=captions(stages, lambda stage: _said(stage, stages)), glossary={**GLOSSARY, **TEXT})


def _sentence(law: Any) -> str:
    model = law.model
    seen = f"the {model.vocab:,} most frequent types of the text {law.process.title}"
    layer = f"One attention layer (embedding of width {model.width}) learns to predict the next word among {seen}"
    return f"{layer}, from windows of {law.length} words."


def _said(stage: Stage, stages: Stages) -> str:
    facts = stage.facts
    if stage.name == "condensation" and facts.get("E1") is not None:
        lined = f"All embeddings line up along one direction, which is open at {stages.clock} = {facts['E1']:.4g} (E1)."
        second = facts.get("second_over_first")
        beside = "" if second is None else f" The second direction is {100 * second:.2g} % of the first then."
        return f"{lined}{beside} The model learns how frequent words are."
    if stage.name in ("focus", "defocus") and "cosine" in facts:
        turn = "to" if stage.name == "focus" else "away from"
        along = f"the scores open along the frequencies of the words (cosine {facts['cosine']:+.3f})"
        return f"Attention turns {turn} the most frequent word: {along}. {_rows(stages)}".strip()
    if "direction" in facts:
        order = {2: "second", 3: "third"}.get(facts["direction"], f"{facts['direction']}th")
        many = facts["attention_directions"]
        opened = f"{many} direction{'s' if many != 1 else ''} of the scores {'are' if many != 1 else 'is'} open"
        return f"A {order} embedding direction opens, {opened}: words become different from each other. {_rows(stages)}".strip()
    return plain(stage)


def _rows(stages: Stages) -> str:
    """How many rows focused, and how many of these diluted, over the whole run."""
    found = {stage.name: stage.facts for stage in stages if stage.track == "rows"}
    if "rows focus" not in found:
        return ""
    focus, dilute = found["rows focus"], found["rows dilute"]
    gain = f"{focus['rows']} of {focus['of_rows']} rows focus on it in this run (median gain {focus['median_gain']:.3f})"
    return f"{gain}, and {dilute['rows']} of these lose half of it again."
