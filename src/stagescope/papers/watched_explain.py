"""A watched training in words: the model, the probe, and what the loss and the heads do in each stage, with their numbers."""

from stagescope.detect.stage import Stage
from stagescope.errors import InputError
from stagescope.papers.watched import ATTENTION, WatchedReading
from stagescope.views.view import Explained, any_explained, captions, listed, plain
from stagescope.watching.source import Model, model_of

GLOSSARY = {
    "attention #": "Event: numbers of one or more heads change fast, together.",
    "gate": "Changes of attention count only where the model has learned something from its context.",
    "induction": "A head that looks at what came after the last time the present token was seen.",
    "previous token": "A head that looks at the token just before.",
    "sink": "Attention on the first token, where a head looks when it has nothing to say.",
    "learning rate": "The size of a step of the optimiser; often raised at first (warm-up) and lowered later (decay).",
    "context gain": "How much lower the loss is late in a sequence than early: what the model takes from context.",
}
MOST = 3
"""Heads with a name that a caption lists."""


def explain(reading: WatchedReading) -> Explained:
    try:
        model = model_of(reading.run)
    except InputError:  # somebody else wrote the run
        return any_explained(reading)
    said = captions(reading.told_stages, lambda stage: _said(stage, reading))
    return Explained(_sentence(reading, model), captions=said, glossary=GLOSSARY)


def _sentence(reading: WatchedReading, model: Model) -> str:
    run, layers = reading.run, len(model.heads)
    heads = sorted(set(model.heads))
    each = f"{heads[0]} heads in each" if len(heads) == 1 else f"{sum(model.heads)} heads in all"
    words = "" if model.vocabulary is None else f", {model.vocabulary:,} tokens"
    how = "watched while it trained" if run.type == "watched" else "read from its checkpoints"
    when = f"{run.frames:,} records from {run.clock} {run.time[0]:,.0f} to {run.time[-1]:,.0f}"
    seen = f"The loss and the heads are those on a fixed probe of sequences of {model.length} tokens"
    return f"{model.name}: {layers} layer{'s' * (layers != 1)}, {each}{words}, {how}; {when}. {seen}."


def _said(stage: Stage, reading: WatchedReading) -> str:
    stop = float(reading.run.time[-1]) if stage.stop is None else stage.stop
    other = [one for one in reading.told_stages if one.track and stage.start <= one.start <= stop]
    moved = [one.facts["t"] for one in other if one.track == ATTENTION]
    named = [f"{one.name} ({one.track}, {one.start:,.0f})" for one in other if one.aside]
    heads = f" New names of heads: {listed(named, most=MOST)}." if named else ""
    many = f"Attention changes fast {len(moved)} time{'s' * (len(moved) != 1)}, first at {min(moved):,.0f}." if moved else ""
    return f"{plain(stage)} {many}{heads}".strip()
