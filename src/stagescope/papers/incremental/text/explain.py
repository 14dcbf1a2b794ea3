"""A run of heads on a text in words: the text, the model, and which lags the heads have acquired, with the numbers of the run."""

from typing import Any

from stagescope.detect.stage import Stage
from stagescope.papers.incremental.text.reading import TextIncrementalReading
from stagescope.views.view import Explained, captions, listed, motion_words, plain

GLOSSARY = {
    "lag": "How many tokens back: lag 1 is the token before the one that is predicted.",
    "lag #": "The token that many places before the one that is predicted.",
    "t#": "Event: a head first gives a further lag half of its attention.",
    "agreement": "How alike the attention of the heads is: 1 where all look at the same lags.",
    "start": "Stage before any lag is acquired.",
    "# lag": "Stage in which one lag is acquired: some head gives it at least half of its attention.",
    "# lags": "Stage in which so many lags are acquired: each has at least half of some head's attention.",
}


def explain(reading: TextIncrementalReading) -> Explained:
    law = reading.law
    heads, lags = law.model.heads, law.model.context
    layer = f"{heads} attention head{'s' * (heads > 1)}, which see positions only, predict each token from the {lags} before it"
    said = f"{layer}, in the text {law.process.title} ({law.process.vocab:,} types). {motion_words(reading.run)}"
    return Explained(said, captions=captions(reading.told_stages, _said), glossary=GLOSSARY)


def _said(stage: Stage) -> str:
    facts = stage.facts
    if "top_lags" not in facts:
        return plain(stage)
    loss = f"The loss goes from {facts['loss_start']:.4g} to {facts['loss_end']:.4g} nats"
    tops = listed([f"head {i} lag {lag} with {share:.2f}" for i, (lag, share) in enumerate(_pairs(facts))], most=6)
    if not facts["acquired"]:
        return f"No head has turned to a lag yet. {loss}. At the end of this stage the heads look most at: {tops}."
    newest = facts["acquired"][-1]
    known = listed([str(lag) for lag in sorted(facts["acquired"])], most=8)
    return f"A head has turned to lag {newest}; acquired so far: lag {known}. {loss}. At the end heads look most at: {tops}."


def _pairs(facts: Any) -> list[tuple[int, float]]:
    return list(zip(facts["top_lags"], facts["top_attention"], strict=True))
