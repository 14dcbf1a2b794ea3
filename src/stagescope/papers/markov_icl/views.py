"""A run of in-context chains on a page and in words: layer 1 by lag, layer 2 by match, the composed path, KL to each strategy."""

from functools import partial
from typing import Any

import numpy as np

from stagescope.detect.stage import Stage
from stagescope.papers.markov_icl.evidence import Evidence
from stagescope.papers.markov_icl.limits import LIMITS
from stagescope.papers.markov_icl.model import LinearMatch
from stagescope.papers.markov_icl.reading import MarkovReading
from stagescope.papers.markov_icl.study import WORDS
from stagescope.views.any_run import loss_view, matrix, norms_view, speed_view
from stagescope.views.curves import CELLS, curves, many_curves, shown
from stagescope.views.view import Curve, Explained, Level, Maker, View, captions, motion_words, plain

LAGS = 40
"""Lags that a heat map shows: the first ones, since attention by lag ends at lag 1 or 2."""


def markov_views(reading: Any) -> list[Maker]:
    """Loss with its levels, the two layers, what they do together, strategies, norms and speed."""
    views = [partial(make, reading.curves) for make in (_loss, _lags, _match, _path, _previous, _strategies)]
    return [*views, partial(norms_view, reading.run), partial(speed_view, reading.run)]


def _loss(evidence: Evidence) -> View | None:
    levels = [Level(name, float(loss)) for name, loss in zip(evidence.levels.names, evidence.levels.losses, strict=True)]
    about = "Cross-entropy of the next token. Levels: the best loss of each class (R, F), or the loss of each strategy."
    return loss_view(evidence.run, tuple(levels), about)


def _by_lag(evidence: Evidence, slot: str, title: str, about: str, factor: Any, rows: list[str], axis: str, signed: bool) -> View:
    """Attention on the first lags at the frames that are shown, times a factor (frames,)."""
    count = min(LAGS, evidence.lags)
    frames = shown(evidence.run, evidence.attention.shape[1] * count, CELLS).frames
    values = (factor[:, None, None] * evidence.attention[:, :, :count])[slice(None) if frames is None else frames]
    names = {"rows": tuple(rows), "columns": tuple(map(str, range(count))), "row_axis": axis, "column_axis": "lag"}
    return matrix(slot, title, about, values, **names, signed=signed, frames=frames)


def _lags(evidence: Evidence) -> View:
    suffix = f" The other {evidence.lags - LAGS} lags are not shown." if evidence.lags > LAGS else ""
    about = f"Attention of each head of layer 1 on the token so many places before.{suffix}"
    heads = [f"head {h + 1}" for h in range(evidence.attention.shape[1])]
    return _by_lag(evidence, "attention", "Layer 1 by lag", about, np.ones(len(evidence.time)), heads, "head", False)


def _match(evidence: Evidence) -> View:
    """The match, and in linear models what all tokens get."""
    model, lines = evidence.law.model, [Curve("match b", evidence.match)]
    weights = np.asarray(evidence.run.params["W"], dtype=float)
    if isinstance(model, LinearMatch):
        lines.append(Curve("common part a", model.parts(weights)[:, 0]))
    elif weights.shape[1:] == (2,):
        lines.append(Curve("second match b_2", weights[:, 1]))
    about = "Score that layer 2 gives a place whose layer 1 holds the current token, beyond that of other tokens."
    return curves("match", "Layer 2 by match", about, "score", lines)


def _path(evidence: Evidence) -> View | None:
    """b A_d: what a token at a lag before a place does to the score of that place."""
    if evidence.attention.shape[1] > 1:
        return None
    about = "Match times attention: score of a place when the current token stands so many places before it."
    return _by_lag(evidence, "path", "The composed path", about, evidence.match, ["current token"], "token", True)


def _previous(evidence: Evidence) -> View:
    lines = [Curve(f"head {h + 1}, lag {h + 1}", evidence.attention[:, h, h + 1]) for h in range(evidence.attention.shape[1])]
    about = "Attention of layer 1 on the lag that the n-gram needs: the token before, for a second head the one before that."
    return curves("previous", "Attention on the lag that wins", about, "attention", lines)


def _strategies(evidence: Evidence) -> View:
    lines = many_curves(np.maximum(evidence.divergences, 1e-8), list(evidence.strategies.names))
    about = "KL(strategy || model) on fixed contexts, in nats: the model predicts as the lowest one."
    return curves("strategies", "Distance from each strategy", about, "nats", lines, log=True, frames=evidence.compared)


SENTENCES = {
    "uniform": "The model predicts every token equally often: it uses nothing of the context.",
    "unigram": "The model counts tokens: it predicts each as often as it occurred in the context.",
    "bigram": "The model has an induction head: it predicts what followed the last token earlier in the context.",
    "trigram": "The model predicts what followed the last two tokens earlier in the context.",
}
MODELS = {
    "LinearPopulation": ("R", "a linear second layer"),
    "SoftmaxMatch": ("S", "a second layer by softmax, whose average of tokens is the prediction"),
    "TwoHeadMatch": ("S3", "two heads in the first layer, the second by softmax"),
    "LinearMatch": ("F", "a linear second layer"),
    "ReadoutMatch": ("T", "a second layer by softmax, and a readout"),
}
"""Letter and second layer, by the type of the loss or of the model."""


def explain_run(reading: MarkovReading) -> Explained:
    law = reading.law
    return Explained(
        f"{_sentence(law)} {motion_words(reading.run)}", None, captions(reading.told_stages, _caption), WORDS.glossary["run"]
    )


def _sentence(law: Any) -> str:
    prior, model = law.process, law.model
    rows = "doubly stochastic" if prior.doubly_stochastic else f"rows drawn from Dirichlet({prior.concentration:g})"
    order = "" if prior.order == 1 else f" of order {prior.order}"
    chains = f"Markov chains{order} on {prior.tokens} tokens, a new one in every sequence ({rows})"
    context = f"Sequences have {law.length} tokens." if hasattr(law, "length") else "The context is infinite."
    letter, layers = MODELS[type(law).__name__ if type(law).__name__ in MODELS else type(model).__name__]
    words = f"Model {letter} has {layers}; the first looks back by up to {model.lags - 1} tokens. {context}"
    return f"Two layers of attention learn to predict {chains}. {words}"


def _caption(stage: Stage) -> str:
    if stage.name not in SENTENCES or "kl" not in stage.facts:
        return plain(stage)
    near = stage.facts["kl"].get(stage.name)
    away = "" if near is None or near < LIMITS.rounding else f" At its nearest it is {near:.2g} nats (KL) away from that."
    return SENTENCES[stage.name] + away
