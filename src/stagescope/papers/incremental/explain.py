"""A run of incremental learning in words: the groups of lags, the model, and which group is learned when."""

from typing import Any

import numpy as np

from stagescope.detect.stage import Stage
from stagescope.papers.incremental.reading import IncrementalReading
from stagescope.views.view import Explained, SmallTable, captions, motion_words, plain

MOST = 12
"""Lags up to which importances are a small table."""
GLOSSARY = {
    "t_#": "Event: the loss is halfway between two neighbouring levels, so a further group is being learned.",
    "onset": "Event: heads begin to differ.",
    "group #": "Lags that matter equally for the next token; groups are numbered by importance.",
    "start": "Stage before the first group is learned: the model predicts without context.",
    "passage #": "A stretch between two levels that is too short or too steep to be a plateau.",
    "agreement": "How alike the heads attend: 1 where all look at the same lags.",
    "contrast": "How much the heads differ in what they do with what they see.",
    "competitive": "All heads look mostly at the most important group.",
    "cooperative": "Each group has a head of its own.",
    "lag": "How many positions back a token is: lag 1 is the token before.",
}


def explain(reading: IncrementalReading) -> Explained:
    law = reading.law
    sentence = f"{_sentence(law)} {motion_words(reading.run)}"
    return Explained(sentence, _table(law), captions(reading.told_stages, _said), GLOSSARY)


def _sentence(law: Any) -> str:
    process = getattr(law, "process", None)
    heads = getattr(law.model, "heads", 1)
    many = f"{heads} attention heads learn" if heads > 1 else "One attention head learns"
    if process is None:
        return f"{many} a regression in which groups of positions matter differently."
    groups = len(process.groups)
    what = f"a process on {process.vocab} tokens whose next token depends on {groups} groups of lags of different importance"
    return f"{many} to predict {what}."


def _table(law: Any) -> SmallTable | None:
    process = getattr(law, "process", None)
    if process is None:
        return None
    lags = sorted(lag for group in process.groups for lag in group)
    if len(lags) > MOST:
        return None
    values = np.zeros((len(process.groups), len(lags)))
    for row, (group, importance) in enumerate(zip(process.groups, process.importances, strict=True)):
        for place, lag in enumerate(group):
            weight = 1.0 if process.weights is None else process.weights[row][place]
            values[row, lags.index(lag)] = importance * weight
    rows = tuple(f"group {i + 1}" for i in range(len(process.groups)))
    return SmallTable("Importance of each lag", rows, tuple(f"lag {lag}" for lag in lags), values)


def _said(stage: Stage) -> str:
    facts = stage.facts
    if stage.name == "start" and "level" in facts:
        return f"The model predicts without context; the loss is near {facts['level']:.4g}, the level of group 0."
    if "plateau" not in facts or "loss" not in facts:
        return plain(stage)
    j = facts["plateau"]
    known = "the most important group of lags" if j == 1 else f"the {j} most important groups of lags"
    rest = "The loss rests" if stage.name.startswith("plateau") else "The loss passes"
    said = f"{rest} at {facts['loss']:.4g}: the best that is possible with {known} is {facts['level']:.4g}."
    if "heads" in facts:
        words = {"cooperative": "Each group has a head of its own.", "competitive": "All heads look mostly at the first group."}
        said += f" {words[facts['heads']]}" if facts["heads"] in words else ""
    return said
