"""A run of in-context Markov chains in words: the prior, the model, and which strategy it predicts by."""

from typing import Any

from stagescope.detect.stage import Stage
from stagescope.papers.markov_icl.reading import MarkovReading
from stagescope.views.view import Explained, captions, motion_words, plain

GLOSSARY = {
    "uniform": "Predicting every token equally often.",
    "unigram": "Predicting a token as often as it occurred in the context.",
    "bigram": "Predicting a token as often as it followed the last token in the context: an induction head.",
    "trigram": "Predicting a token as often as it followed the last two tokens in the context.",
    "lag": "Event: attention on the token before has visibly grown.",
    "onset": "Event: the first layer attends mostly to the token before.",
    "match": "Event: the second layer looks for earlier places with the same token.",
    "KL": "Kullback-Leibler divergence, in nats: 0 where two predictions are equal.",
    "t_#": "Event: the loss is halfway between two neighbouring levels.",
}
SAID = {
    "uniform": "The model predicts every token equally often: it uses nothing of the context.",
    "unigram": "The model counts tokens: it predicts each as often as it occurred in the context.",
    "bigram": "The model has an induction head: it predicts what followed the last token earlier in the context.",
    "trigram": "The model predicts what followed the last two tokens earlier in the context.",
}
EXACT = 1e-9
"""Nats below which a prediction is the strategy itself."""
MODELS = {
    "LinearPopulation": ("R", "a linear second layer"),
    "SoftmaxMatch": ("S", "a second layer by softmax, whose average of tokens is the prediction"),
    "TwoHeadMatch": ("S3", "two heads in the first layer, the second by softmax"),
    "LinearMatch": ("F", "a linear second layer"),
    "ReadoutMatch": ("T", "a second layer by softmax, and a readout"),
}
"""Letter and second layer, by the type of the loss or of the model."""


def explain(reading: MarkovReading) -> Explained:
    law = reading.law
    return Explained(f"{_sentence(law)} {motion_words(reading.run)}", None, captions(reading.told_stages, _said), GLOSSARY)


def _sentence(law: Any) -> str:
    prior, model = law.process, law.model
    rows = "doubly stochastic" if prior.doubly_stochastic else f"rows drawn from Dirichlet({prior.concentration:g})"
    order = "" if prior.order == 1 else f" of order {prior.order}"
    what = f"Markov chains{order} on {prior.tokens} tokens, a new one in every sequence ({rows})"
    seen = f"Sequences have {law.length} tokens." if hasattr(law, "length") else "The context is infinite."
    letter, layers = MODELS[type(law).__name__ if type(law).__name__ in MODELS else type(model).__name__]
    words = f"Model {letter} has {layers}; the first looks back by up to {model.lags - 1} tokens. {seen}"
    return f"Two layers of attention learn to predict {what}. {words}"


def _said(stage: Stage) -> str:
    if stage.name not in SAID or "kl" not in stage.facts:
        return plain(stage)
    near = stage.facts["kl"].get(stage.name)
    away = "" if near is None or near < EXACT else f" At its nearest it is {near:.2g} nats (KL) away from that."
    return SAID[stage.name] + away
