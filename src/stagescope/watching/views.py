"""What the page shows of a watched model: losses, patterns of all heads, what heads do, embedding, sizes, learning rate."""

from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from stagescope.runs.run import Arrays, Run
from stagescope.views.any_run import any_views
from stagescope.views.curves import MOST, NAMED, curves, left_out, many_curves
from stagescope.views.view import Curve, HasRun, Level, Maker, View
from stagescope.watching.gate import LIMITS
from stagescope.watching.head_views import head_views
from stagescope.watching.labels import token_label
from stagescope.watching.source import RECORDED, Model, model_of

WIDE = 30
"""Ratio of the largest to the smallest probe loss from which on a logarithmic axis is offered, whatever batches do."""


def watched_views(reading: HasRun) -> list[Maker]:
    """All views of a watched run; arrays that `ss.watch` does not make itself, and recorded parameters, as in any run."""
    run = reading.run
    model = model_of(run)
    first: list[Maker] = [partial(losses_view, run, model), *head_views(run)]
    sizes = [partial(embedding_view, run), partial(rank_view, run), partial(scores_view, run), partial(groups_view, run, model)]
    return [
        *first,
        partial(repeat_view, run, model),
        partial(context_view, run),
        *sizes,
        partial(rate_view, run),
        partial(gradient_view, run),
        *other_views(run),
    ]


def losses_view(run: Run, model: Model) -> View | None:
    """Losses on the probe and of the batches, with what can be had without context."""
    names = {"loss": "probe", "train_loss": "training batch"}
    found = {name: _series(run, key) for key, name in names.items() if _known(run, key)}
    if not found:
        return None
    made = [Curve(name, values, faint=name == "training batch") for name, values in found.items()]
    levels = [] if model.unigram_entropy is None else [Level("unigram entropy", model.unigram_entropy)]
    if model.vocabulary:
        levels.append(Level("uniform", float(np.log(model.vocabulary))))
    about = "Next-token loss on the probe; faint, of the training batches. Without context it ends at the unigram entropy."
    probe = found.get("probe", np.ones(1))
    wide = float(np.nanmax(probe)) > WIDE * max(float(np.nanmin(probe)), 1e-300)
    return curves("loss", "Loss", about, "nats a token", made, levels=levels, log=wide)


def repeat_view(run: Run, model: Model) -> View | None:
    """Loss where only copying helps."""
    if not _known(run, "repeat_loss"):
        return None
    about = "Loss on the second half of random tokens that are said twice: it falls where the model copies from the first half."
    levels = [Level("uniform", float(np.log(model.vocabulary)))] if model.vocabulary else []
    made = [Curve("said twice", _series(run, "repeat_loss"))]
    return curves("repeat", "Loss on tokens said twice", about, "nats a token", made, levels=levels, log=True)


def _series(run: Run, name: str) -> np.ndarray:
    return np.asarray(run.series[name], dtype=float)


def _known(run: Run, name: str) -> bool:
    return name in run.series and run.series[name].ndim == 1 and bool(np.isfinite(run.series[name]).any())


def context_view(run: Run) -> View | None:
    """What context is worth, at the records where it was measured."""
    if not _known(run, "context_gain"):
        return None
    gain = _series(run, "context_gain")
    frames = np.flatnonzero(np.isfinite(gain))
    made = [Curve("context gain", gain[frames])]
    if "context_gain_error" in run.series:
        error = _series(run, "context_gain_error")[frames]
        for end, side in (("upper", 1), ("lower", -1)):
            made.append(Curve(f"{end} end of the 95 % interval", gain[frames] + side * LIMITS.errors * error, faint=True))
    about = (
        "How much the loss rises if all tokens before the current one are those of another sequence: 0 without use of context."
    )
    levels = [Level("no use of context", 0.0)]
    return curves("context", "What context is worth", about, "nats a token", made, levels=levels, frames=frames)


def embedding_view(run: Run) -> View | None:
    """Singular values of the token embedding."""
    values = _table(run, "embedding_values")
    if values is None:
        return None
    names = [f"value {k + 1}" for k in range(values.shape[1])]
    about = "Singular values of the token embedding, less its mean, largest first." + left_out(len(names), what="values")
    return curves("embedding-values", "Embedding: singular values", about, "singular value", many_curves(values, names), log=True)


def _table(run: Run, name: str) -> np.ndarray | None:
    """An array (records, n), None where there is none."""
    found = run.series.get(name)
    return None if found is None or found.ndim != 2 or not found.shape[1] else np.asarray(found, dtype=float)


def rank_view(run: Run) -> View | None:
    if not _known(run, "embedding_rank"):
        return None
    about = "Effective rank of the token embedding: (sum s^2)^2 / sum s^4 over its singular values s."
    made = [Curve("effective rank", _series(run, "embedding_rank"))]
    return curves("embedding-rank", "Embedding: effective rank", about, "rank", made)


def scores_view(run: Run) -> View | None:
    """The largest singular value of the scores of each head."""
    found = run.series.get("score_values")
    if found is None or found.ndim != 4:
        return None
    tops = np.asarray(found[..., 0], dtype=float)
    heads = [at for at in model_of(run).each() if np.isfinite(tops[:, at[0], at[1]]).any()]
    made = [
        Curve(f"layer {layer} head {head}", tops[:, layer, head], f"layer {layer}", faint=place >= NAMED)
        for place, (layer, head) in enumerate(heads[:MOST])
    ]
    about = "Largest singular value of each head's attention scores on the probe, less their mean over keys."
    return (
        curves("scores", "Size of scores", about + left_out(len(heads), what="heads"), "singular value", made, log=True)
        if made
        else None
    )


def groups_view(run: Run, model: Model) -> View | None:
    values = _table(run, "group_norms")
    if values is None:
        return None
    names = [token_label(model.groups[k]) if k < len(model.groups) else f"group {k}" for k in range(values.shape[1])]
    about = "Square root of the sum of squares of each group of parameters." + left_out(len(names), what="groups")
    return curves("groups", "Norms of parameters", about, "norm", many_curves(values, names), log=True)


def rate_view(run: Run) -> View | None:
    if not _known(run, "learning_rate"):
        return None
    made = [Curve("learning rate", _series(run, "learning_rate"))]
    return curves("rate", "Learning rate", "That of the optimizer's first group.", "learning rate", made)


def gradient_view(run: Run) -> View | None:
    if not _known(run, "gradient_norm"):
        return None
    made = [Curve("gradient norm", _series(run, "gradient_norm"))]
    return curves("gradient", "Norm of the gradient", "Of the batch at each recorded step.", "norm", made, log=True)


def other_views(run: Run) -> list[Maker]:
    """Whatever else was recorded: parameters by name, and arrays that a user gave."""
    rest = [name for name in run.series if name == run.clock or name not in RECORDED]
    if len(rest) == 1 and not len(run.params):
        return []
    return any_views(_Rest(replace(run, series=Arrays(tuple(rest), lambda name: run.series[name]), memo={})))


@dataclass
class _Rest:
    """A run with some of its arrays."""

    run: Run
