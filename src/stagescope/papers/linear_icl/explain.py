"""A run of linear attention in words: the regression task, the heads, and which direction is learned when."""

from typing import Any

import numpy as np

from stagescope.detect.stage import Stage
from stagescope.papers.linear_icl.reading import LinearReading
from stagescope.views.view import Explained, SmallTable, captions, motion_words, plain

MOST = 12
"""Directions up to which the spectrum is a small table."""
GLOSSARY = {
    "d#": "Event: the loss is halfway down a step, so a further direction of the inputs is being learned.",
    "plateau #": "The loss rests while this many principal components are used.",
    "Lambda": "The covariance of the inputs; lambda_i are its eigenvalues.",
    "M": "What all heads do together, in the eigenbasis of the inputs: sum over heads of v_h U_h.",
}


def explain(reading: LinearReading) -> Explained:
    law = reading.law
    sentence = f"{_sentence(law)} {motion_words(reading.run)}"
    return Explained(sentence, _table(law), captions(reading.told_stages, _said), GLOSSARY)


def _sentence(law: Any) -> str:
    task, model = law.process, law.model
    heads = "merged key-query matrices" if model.merged else f"separate keys and queries of rank {model.rank}"
    many = "head" if model.heads == 1 else "heads"
    lengths = task.contexts[0] if len(task.contexts) == 1 else f"{min(task.contexts)} to {max(task.contexts)}"
    return (
        f"Linear attention with {model.heads} {many} ({heads}) learns linear regression in context: from {lengths} pairs (x, y) "
        f"with inputs in {task.dim} dimensions it predicts y of one more x; the weights are new in every sequence."
    )


def _table(law: Any) -> SmallTable | None:
    values = np.asarray(law.process.eigenvalues, dtype=float)
    if len(values) > MOST:
        return None
    return SmallTable(
        "Variance of the inputs in each direction", ("variance",), tuple(str(i + 1) for i in range(len(values))), values[None]
    )


def _said(stage: Stage) -> str:
    facts = stage.facts
    if "components" not in facts:
        return plain(stage)
    count = facts["components"]
    if count == 0:
        return f"Nothing is learned yet: the loss rests at {facts['loss']:.5g}, and all heads are small."
    what = "the direction of largest variance" if count == 1 else f"the {count} directions of largest variance"
    best = f"the best that is possible so is {facts['level']:.5g}"
    return f"The model regresses on {what}: the loss is {facts['loss']:.5g}, and {best}."
