"""Views of the heads of a watched model: patterns, what they do, where they look, how they agree."""

from dataclasses import dataclass
from functools import cached_property, partial

import numpy as np

from stagescope.runs.run import Run
from stagescope.views.any_run import largest, matrix
from stagescope.views.curves import CELLS, MOST, NAMED, curves, left_out, shown
from stagescope.views.view import Curve, Curves, Level, Maker, Matrices, View
from stagescope.watching.head_scores import THRESHOLDS, Chance, Score, scores
from stagescope.watching.labels import token_labels
from stagescope.watching.source import Model, head_name, model_of

MOST_HEADS = 144
"""Heads that are drawn: twelve layers of twelve. Of more, those whose patterns moved furthest."""
WORTH = 0.5
"""Of the strength that gives a name: a score that no head brings so far has no plot."""
KEYS = {
    "induction": "the token after the earlier occurrence, on random tokens that are said twice",
    "duplicate": "the earlier occurrence of the same token, on random tokens that are said twice",
    "previous token": "the token before",
    "sink": "the first token",
    "positional": "what position alone decides, times the share of keys that are left out",
}
"""Where the attention goes that a score measures."""


@dataclass(frozen=True, eq=False)
class Drawn:
    """A run, its model, and which heads are drawn."""

    run: Run
    model: Model

    @cached_property
    def heads(self) -> list[tuple[int, int]]:
        """Layer and head of each head that is drawn."""
        every = list(self.model.each())
        if len(every) <= MOST_HEADS:
            return every
        far = self._moved()
        return sorted(sorted(every, key=lambda at: -far[at])[:MOST_HEADS])

    def _moved(self) -> np.ndarray:
        """How far each pattern is from its first record, at the end; 0 where that is not known."""
        sketch = self.run.series.get("sketch")
        if sketch is None:
            return np.zeros((len(self.model.heads), max(self.model.heads)))
        return np.nan_to_num(np.linalg.norm(np.asarray(sketch[-1], dtype=float) - sketch[0], axis=-1))

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
        return tuple(head_name(*at) for at in self.heads)

    def rows(self, values: np.ndarray) -> np.ndarray:
        """(frames, head drawn, ...) of an array (frames, layer, head, ...)."""
        layers, heads = zip(*self.heads, strict=True)
        return np.asarray(values[:, list(layers), list(heads)], dtype=float)


def head_views(run: Run) -> list[Maker]:
    """All views of heads; none where attention was not recorded."""
    drawn = Drawn(run, model_of(run))
    if not sum(drawn.model.heads):
        return []
    found = scores(run)
    made: list[Maker] = [partial(pattern_view, drawn), partial(roles_view, drawn, found)]
    made += [partial(role_view, drawn, name, score) for name, score in found.items()]
    made += [partial(lag_view, drawn), partial(type_view, drawn), partial(beyond_view, drawn)]
    return [*made, partial(agreement_view, drawn), partial(entropy_view, drawn), partial(moved_view, drawn)]


def pattern_view(drawn: Drawn) -> View | None:
    """The pattern of each head on the first tokens of the probe."""
    if "pattern" not in drawn.run.series:
        return None
    size = drawn.run.series["pattern"].shape[-1]
    seen = shown(drawn.run, len(drawn.heads) * size**2, CELLS)
    labels = token_labels(drawn.model.shown, size)
    about = f"Attention of every head on the first {size} tokens of the probe: each row sums to 1.{drawn.left_out}"
    values = drawn.rows(seen.run.series["pattern"])
    title, across = "Patterns of heads", drawn.across
    return Matrices("patterns", title, about, values, drawn.names, labels, labels, across=across, frames=seen.frames)


def roles_view(drawn: Drawn, found: dict[str, Score]) -> View | None:
    """What every head does at a frame: heads by names."""
    if not found:
        return None
    values = np.stack([drawn.rows(score.value) for score in found.values()], axis=-1)
    about = "Share of its attention that each head gives to the keys of a name; the timeline shows since when it has one."
    labels = {"rows": drawn.names, "columns": tuple(found), "row_axis": "", "column_axis": "score"}
    return matrix("roles", "What heads do", about + drawn.left_out, values, **labels)


def role_view(drawn: Drawn, name: str, score: Score) -> View | None:
    """One score of every head over time, where some head comes near the name."""
    strength = drawn.rows(score.strength)
    if not np.any(np.nan_to_num(strength, nan=0.0) >= WORTH):
        return None
    chance = Chance(drawn.model.length, drawn.model.causal)
    starts = {"previous token": 1, "sink": 4, "induction": drawn.model.period, "duplicate": drawn.model.period}
    even = chance.mean(starts[name]) if name in starts else 0.0
    levels = [Level("even attention", even)] if name in starts else []
    if name in starts:
        levels.append(Level("name from here", even + THRESHOLDS.share))
    about = f"Attention of each head to {KEYS[name]}."
    return _curves(drawn, f"role-{name.replace(' ', '-')}", f"Score: {name}", about, "share", drawn.rows(score.value), levels)


def _curves(
    drawn: Drawn, slot: str, title: str, about: str, axis: str, values: np.ndarray, levels: list[Level], *, low: bool = False
) -> Curves:
    """One curve a head; the heads with the largest values at the end have names, or those with the lowest."""
    last = np.nan_to_num(values[-1], nan=0.0) * (1 if low else -1)
    order = np.argsort(last, kind="stable")[:MOST]
    named = set(order[:NAMED].tolist())
    made = [
        Curve(drawn.names[i], values[:, i], f"layer {drawn.heads[i][0]}", faint=i not in named) for i in sorted(order.tolist())
    ]
    return curves(slot, title, about + left_out(len(drawn.heads), what="heads"), axis, made, levels=levels)


def lag_view(drawn: Drawn) -> View | None:
    """Heads by lags."""
    if "lag_mass" not in drawn.run.series:
        return None
    values = drawn.rows(drawn.run.series["lag_mass"])
    about = "Mean attention to the key so many places before the query: 0 is the token itself, 1 the one before."
    columns = tuple(str(lag) for lag in range(values.shape[-1]))
    labels = {"rows": drawn.names, "columns": columns, "row_axis": "", "column_axis": "lag", "high": largest(values)}
    return matrix("lags", "Attention by lag", about + drawn.left_out, values, **labels)


def _types(drawn: Drawn, count: int) -> tuple[str, ...]:
    return (*token_labels(drawn.model.types, count - 1), "(rest)")


def type_view(drawn: Drawn) -> View | None:
    """Heads by the tokens they attend to."""
    if "type_mass" not in drawn.run.series:
        return None
    values = drawn.rows(drawn.run.series["type_mass"])
    about = "Attention that each head gives to the most frequent tokens of the probe, most frequent first, and to all others."
    labels = {"rows": drawn.names, "columns": _types(drawn, values.shape[-1]), "row_axis": "", "column_axis": "token"}
    return matrix("types", "Attention by token", about + drawn.left_out, values, **labels, high=largest(values[..., :-1]))


def beyond_view(drawn: Drawn) -> View | None:
    """The same less what position alone gives."""
    arrays = drawn.run.series
    if "type_mass" not in arrays or "type_mass_mean" not in arrays:
        return None
    values = drawn.rows(arrays["type_mass"]) - drawn.rows(arrays["type_mass_mean"])
    about = "The same less what the mean pattern of all sequences gives: above 0 where a head looks for a token itself."
    labels = {"rows": drawn.names, "columns": _types(drawn, values.shape[-1]), "row_axis": "", "column_axis": "token"}
    return matrix("beyond", "Attention by token beyond position", about + drawn.left_out, values, signed=True, **labels)


def agreement_view(drawn: Drawn) -> View | None:
    """Cosines between the patterns of the heads of one layer."""
    if "agreement" not in drawn.run.series or max(drawn.model.heads) < 2:
        return None
    values = np.asarray(drawn.run.series["agreement"], dtype=float)
    layers, heads = values.shape[1], tuple(str(head) for head in range(values.shape[2]))
    kept = min(layers, MOST_HEADS)
    about = "Cosine between the patterns of two heads of a layer." + left_out(layers, kept, "layers")
    panels = tuple(f"layer {layer}" for layer in range(kept))
    seen = shown(drawn.run, kept * len(heads) ** 2, CELLS)
    values = values[:, :kept] if seen.frames is None else values[seen.frames, :kept]
    title = "Agreement of heads"
    return Matrices("agreement", title, about, values, panels, heads, heads, "head", "head", frames=seen.frames)


def entropy_view(drawn: Drawn) -> View | None:
    """Entropy of rows by head."""
    if "entropy" not in drawn.run.series:
        return None
    values = drawn.rows(drawn.run.series["entropy"])
    about = "Mean entropy of a row of each head: low where it attends to few keys."
    even = [Level("even attention", Chance(drawn.model.length, drawn.model.causal).entropy)]
    return _curves(drawn, "entropy", "Entropy of attention", about, "nats", values, even, low=True)


def moved_view(drawn: Drawn) -> View | None:
    """Distance of patterns from the first record, by head."""
    if "sketch" not in drawn.run.series:
        return None
    sketch = drawn.rows(drawn.run.series["sketch"])
    values = np.linalg.norm(sketch - sketch[:1], axis=-1)
    about = "Root mean square distance of each head's rows from those of the first record, known to 10 to 30 %."
    return _curves(drawn, "moved", "How far patterns moved", about, "distance", values, [])
