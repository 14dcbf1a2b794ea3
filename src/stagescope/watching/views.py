"""What the page shows of a watched model: losses, patterns of all heads, what heads do, embedding, sizes, learning rate."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any

import numpy as np

from stagescope.runs.run import Arrays, Run
from stagescope.views.any_run import any_views, largest, matrix
from stagescope.views.axes import is_wide
from stagescope.views.curves import CELLS, MOST, NAMED, curves, left_out, many_curves, shown
from stagescope.views.view import Curve, Curves, HasRun, Level, Maker, Matrices, View
from stagescope.watching.events import moves
from stagescope.watching.heads import SEEN_FROM, THRESHOLDS, Chance, Score, scores
from stagescope.watching.source import LIMITS, RECORDED, Model, curve_of, head_name, model_of, token_label, token_labels

MOST_HEADS = 144
"""Heads that are drawn: twelve layers of twelve. Of more, those whose patterns moved furthest."""
KEYS = {
    "induction": "the token after the earlier occurrence, on random tokens that are said twice",
    "duplicate": "the earlier occurrence of the same token, on random tokens that are said twice",
    "previous token": "the token before",
    "sink": "the first token",
    "positional": "what position alone decides, times the share of keys that are left out",
}
"""Where the attention goes that a score measures."""


@dataclass(frozen=True, eq=False)
class Selection:
    """A run, its model, and which heads are drawn."""

    run: Run
    model: Model

    @cached_property
    def heads(self) -> list[tuple[int, int]]:
        """Layer and head of each head that is drawn."""
        heads = list(self.model.head_places())
        if len(heads) <= MOST_HEADS:
            return heads
        if "sketch" not in self.run.series:
            return heads[:MOST_HEADS]
        far = np.nan_to_num(np.linalg.norm(moves(self.run)[-1], axis=-1))
        return sorted(sorted(heads, key=lambda place: -far[place])[:MOST_HEADS])

    @property
    def left_out(self) -> str:
        count = sum(self.model.heads)
        if count <= MOST_HEADS:
            return ""
        return f" The {MOST_HEADS} of {count:,} heads whose patterns moved furthest are drawn."

    @property
    def across(self) -> int | None:
        """Heads of a layer, where all of them are drawn and all layers have as many."""
        counts = set(self.model.heads)
        return counts.pop() if len(counts) == 1 and len(self.heads) == sum(self.model.heads) else None

    @cached_property
    def names(self) -> tuple[str, ...]:
        return tuple(head_name(*place) for place in self.heads)

    def rows(self, values: np.ndarray) -> np.ndarray:
        """(frames, head drawn, ...) of an array (frames, layer, head, ...)."""
        layers, heads = zip(*self.heads, strict=True)
        return np.asarray(values[:, list(layers), list(heads)], dtype=float)


def head_views(run: Run) -> list[Maker]:
    """All views of heads; none where attention was not recorded."""
    selection = Selection(run, model_of(run))
    if not sum(selection.model.heads):
        return []
    by_name = scores(run)
    of_scores = [partial(roles_view, selection, by_name)] if by_name else []
    of_scores += [partial(role_view, selection, name, score) for name, score in by_name.items()]
    views = {"lag_mass": lag_view, "type_mass": type_view, "type_mass_mean": beyond_view, "agreement": agreement_view}
    views |= {"entropy": entropy_view, "sketch": moved_view}
    pattern = [partial(pattern_view, selection)] if "pattern" in run.series else []
    return [*pattern, *of_scores, *(partial(view, selection) for name, view in views.items() if name in run.series)]


def pattern_view(selection: Selection) -> View:
    """The pattern of each head on the first tokens of the probe."""
    size = selection.run.series["pattern"].shape[-1]
    sample = shown(selection.run, len(selection.heads) * size**2, CELLS)
    labels = token_labels(selection.model.tokens, size)
    about = f"Attention of every head on the first {size} tokens of the probe: each row sums to 1.{selection.left_out}"
    values = selection.rows(sample.run.series["pattern"])
    title, across = "Patterns of heads", selection.across
    return Matrices("patterns", title, about, values, selection.names, labels, labels, across=across, frames=sample.frames)


def roles_view(selection: Selection, by_name: dict[str, Score]) -> View:
    """What every head does at a frame: heads by names."""
    values = np.stack([selection.rows(score.value) for score in by_name.values()], axis=-1)
    about = "Share of its attention that each head gives to the keys of a name; the timeline shows since when it has one."
    return _matrix(selection, "roles", "What heads do", about, values, tuple(by_name), "score")


def _matrix(
    selection: Selection,
    slot: str,
    title: str,
    about: str,
    values: np.ndarray,
    columns: tuple[str, ...],
    axis: str,
    **colours: Any,
) -> Matrices:
    """Heads by what stands in the columns."""
    labels = {"rows": selection.names, "columns": columns, "row_axis": "", "column_axis": axis}
    return matrix(slot, title, about + selection.left_out, values, **labels, **colours)


def role_view(selection: Selection, name: str, score: Score) -> View | None:
    """One score of every head over time, where some head has half of the strength that gives the name."""
    strength = selection.rows(score.strength)
    if not np.any(np.nan_to_num(strength, nan=0.0) >= 0.5):
        return None
    chance = Chance(selection.model.length, selection.model.causal)
    starts = {"previous token": 1, "sink": SEEN_FROM, "induction": selection.model.period, "duplicate": selection.model.period}
    even = chance.mean(starts[name]) if name in starts else 0.0
    levels = [Level("even attention", even), Level("name from here", even + THRESHOLDS.share)] if name in starts else []
    about = f"Attention of each head to {KEYS[name]}."
    return _curves(
        selection, f"role-{name.replace(' ', '-')}", f"Score: {name}", about, "share", selection.rows(score.value), levels
    )


def _curves(
    selection: Selection,
    slot: str,
    title: str,
    about: str,
    axis: str,
    values: np.ndarray,
    levels: list[Level],
    *,
    low: bool = False,
) -> Curves:
    """One curve a head; the heads with the largest values at the end have names, or those with the lowest."""
    last = np.nan_to_num(values[-1], nan=0.0) * (1 if low else -1)
    order = np.argsort(last, kind="stable")[:MOST]
    named = set(order[:NAMED].tolist())
    head_lines = [
        Curve(selection.names[i], values[:, i], f"layer {selection.heads[i][0]}", faint=i not in named)
        for i in sorted(order.tolist())
    ]
    return curves(slot, title, about + left_out(len(selection.heads), what="heads"), axis, head_lines, levels=levels)


def lag_view(selection: Selection) -> View:
    """Heads by lags."""
    values = selection.rows(selection.run.series["lag_mass"])
    about = "Mean attention to the key so many places before the query: 0 is the token itself, 1 the one before."
    columns = tuple(str(lag) for lag in range(values.shape[-1]))
    return _matrix(selection, "lags", "Attention by lag", about, values, columns, "lag", high=largest(values))


def _tokens(selection: Selection, values: np.ndarray) -> tuple[str, ...]:
    return (*token_labels(selection.model.types, values.shape[-1] - 1), "(rest)")


def type_view(selection: Selection) -> View:
    """Heads by the tokens they attend to."""
    values = selection.rows(selection.run.series["type_mass"])
    about = "Attention that each head gives to the most frequent tokens of the probe, most frequent first, and to all others."
    columns, high = _tokens(selection, values), largest(values[..., :-1])
    return _matrix(selection, "types", "Attention by token", about, values, columns, "token", high=high)


def beyond_view(selection: Selection) -> View | None:
    """The same less what position alone gives."""
    arrays = selection.run.series
    if "type_mass" not in arrays:
        return None
    values = selection.rows(arrays["type_mass"]) - selection.rows(arrays["type_mass_mean"])
    about = "The same less what the mean pattern of all sequences gives: above 0 where a head looks for a token itself."
    title = "Attention by token beyond position"
    return _matrix(selection, "beyond", title, about, values, _tokens(selection, values), "token", signed=True)


def agreement_view(selection: Selection) -> View | None:
    """Cosines between the patterns of the heads of one layer."""
    if max(selection.model.heads) < 2:
        return None
    values = np.asarray(selection.run.series["agreement"], dtype=float)
    layers, heads = values.shape[1], tuple(str(head) for head in range(values.shape[2]))
    count = min(layers, MOST_HEADS)
    about = "Cosine between the patterns of two heads of a layer." + left_out(layers, count, "layers")
    panels = tuple(f"layer {layer}" for layer in range(count))
    sample = shown(selection.run, count * len(heads) ** 2, CELLS)
    values = values[:, :count] if sample.frames is None else values[sample.frames, :count]
    title = "Agreement of heads"
    return Matrices("agreement", title, about, values, panels, heads, heads, "head", "head", frames=sample.frames)


def entropy_view(selection: Selection) -> View:
    """Entropy of rows by head."""
    values = selection.rows(selection.run.series["entropy"])
    about = "Mean entropy of a row of each head: low where it attends to few keys."
    even = [Level("even attention", Chance(selection.model.length, selection.model.causal).entropy)]
    return _curves(selection, "entropy", "Entropy of attention", about, "nats", values, even, low=True)


def moved_view(selection: Selection) -> View:
    """Distance of patterns from the first record, by head."""
    values = selection.rows(np.linalg.norm(moves(selection.run), axis=-1))
    about = "Root mean square distance of each head's rows from those of the first record, known to 10 to 30 %."
    return _curves(selection, "moved", "How far patterns moved", about, "distance", values, [])


def watched_views(reading: HasRun) -> list[Maker]:
    """All views of a watched run; arrays that `ss.watch` does not make itself, and recorded parameters, as in any run."""
    run = reading.run
    model = model_of(run)
    uniform = [Level("uniform", float(np.log(model.vocabulary)))] if model.vocabulary else []
    return [
        partial(losses_view, run, model, uniform),
        *head_views(run),
        partial(plain_view, run, "repeat_loss", uniform),
        partial(context_view, run),
        partial(embedding_view, run),
        partial(plain_view, run, "embedding_rank"),
        partial(scores_view, run),
        partial(groups_view, run, model),
        partial(plain_view, run, "learning_rate"),
        partial(plain_view, run, "gradient_norm"),
        *other_views(run),
    ]


def losses_view(run: Run, model: Model, uniform: list[Level]) -> View | None:
    """Losses on the probe and of the batches, with what can be had without context."""
    names = {"loss": "probe", "train_loss": "training batch"}
    curves_of_losses = {name: curve_of(run, key) for key, name in names.items() if _recorded(run, key)}
    if not curves_of_losses:
        return None
    lines = [Curve(name, values, faint=name == "training batch") for name, values in curves_of_losses.items()]
    levels = [] if model.unigram_entropy is None else [Level("unigram entropy", model.unigram_entropy)]
    levels += uniform
    about = "Next-token loss on the probe; faint, of the training batches. Without context it ends at the unigram entropy."
    probe = curves_of_losses.get("probe", np.ones(1))
    # a logarithmic axis is offered by the probe loss alone, whatever batches do
    return curves("loss", "Loss", about, "nats a token", lines, levels=levels, log=is_wide(probe[probe > 0]))


def _recorded(run: Run, name: str) -> bool:
    return bool(np.isfinite(curve_of(run, name)).any())


def context_view(run: Run) -> View | None:
    """What context is worth, at the records where it was measured."""
    if not _recorded(run, "context_gain"):
        return None
    gain = curve_of(run, "context_gain")
    frames = np.flatnonzero(np.isfinite(gain))
    lines = [Curve("context gain", gain[frames])]
    if "context_gain_error" in run.series:
        error = curve_of(run, "context_gain_error")[frames]
        for end, side in (("upper", 1), ("lower", -1)):
            lines.append(Curve(f"{end} end of the 95 % interval", gain[frames] + side * LIMITS.errors * error, faint=True))
    about = (
        "How much the loss rises if all tokens before the current one are those of another sequence: 0 without use of context."
    )
    levels = [Level("no use of context", 0.0)]
    return curves("context", "What context is worth", about, "nats a token", lines, levels=levels, frames=frames)


def embedding_view(run: Run) -> View | None:
    """Singular values of the token embedding."""
    about = "Singular values of the token embedding, less its mean, largest first."
    labels = "embedding-values", "Embedding: singular values", about, "singular value"
    return _table_view(run, "embedding_values", labels, "values", lambda k: f"value {k + 1}")


def _table_view(run: Run, array: str, labels: tuple[str, str, str, str], kind: str, name: Callable[[int], str]) -> View | None:
    """One curve for each column of an array (records, n); None where there is no such array."""
    values = run.series.get(array)
    if values is None or values.ndim != 2 or not values.shape[1]:
        return None
    slot, title, about, axis = labels
    lines = many_curves(np.asarray(values, dtype=float), [name(k) for k in range(values.shape[1])])
    return curves(slot, title, about + left_out(values.shape[1], what=kind), axis, lines, log=True)


def scores_view(run: Run) -> View | None:
    """The largest singular value of the scores of each head."""
    values = run.series.get("score_values")
    if values is None or values.ndim != 4:
        return None
    tops = np.asarray(values[..., 0], dtype=float)
    heads = [place for place in model_of(run).head_places() if np.isfinite(tops[:, place[0], place[1]]).any()]
    lines = [
        Curve(head_name(layer, head), tops[:, layer, head], f"layer {layer}", faint=place >= NAMED)
        for place, (layer, head) in enumerate(heads[:MOST])
    ]
    about = "Largest singular value of each head's attention scores on the probe, less their mean over keys."
    about += left_out(len(heads), what="heads")
    return curves("scores", "Size of scores", about, "singular value", lines, log=True) if lines else None


def groups_view(run: Run, model: Model) -> View | None:
    labels = "groups", "Norms of parameters", "Square root of the sum of squares of each group of parameters.", "norm"
    label_of = dict(enumerate(map(token_label, model.groups)))
    return _table_view(run, "group_norms", labels, "groups", lambda k: label_of.get(k, f"group {k}"))


ONE_CURVE = {
    "repeat_loss": (
        "repeat",
        "Loss on tokens said twice",
        "Loss on the second half of random tokens that are said twice: it falls where the model copies from the first half.",
        "nats a token",
        "said twice",
        True,
    ),
    "embedding_rank": (
        "embedding-rank",
        "Embedding: effective rank",
        "Effective rank of the token embedding: (sum s^2)^2 / sum s^4 over its singular values s.",
        "rank",
        "effective rank",
        False,
    ),
    "learning_rate": ("rate", "Learning rate", "That of the optimizer's first group.", "learning rate", "learning rate", False),
    "gradient_norm": ("gradient", "Norm of the gradient", "Of the batch at each recorded step.", "norm", "gradient norm", True),
}
"""What is one number a record, by the name of its array: slot, title, words, axis, name of the curve, logarithmic axis."""


def plain_view(run: Run, name: str, levels: Sequence[Level] = ()) -> View | None:
    """A view of one curve; none where it was not recorded."""
    if not _recorded(run, name):
        return None
    slot, title, about, axis, curve, log = ONE_CURVE[name]
    return curves(slot, title, about, axis, [Curve(curve, curve_of(run, name))], levels=levels, log=log)


def other_views(run: Run) -> list[Maker]:
    """Whatever else was recorded: parameters by name, and arrays that a user gave."""
    names = [name for name in run.series if name == run.clock or name not in RECORDED]
    if len(names) == 1 and not len(run.params):
        return []
    part = replace(run, series=Arrays(tuple(names), lambda name: run.series[name]), memo={})
    return any_views(_Part(part))


@dataclass
class _Part:
    """A run with some of its arrays."""

    run: Run
