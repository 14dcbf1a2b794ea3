"""A focus-dilution run on a page: attention between token types, its focus and dilution, and the directions that open."""

from dataclasses import dataclass
from functools import partial

import numpy as np

from stagescope.papers.focus_dilution.observables import TokenCurves, token_curves
from stagescope.papers.focus_dilution.stages import THRESHOLDS
from stagescope.papers.reading import Reading
from stagescope.runs.run import Run
from stagescope.views.any_run import excess_view, loss_view, matrix, norms_view, singular_values, speed_view
from stagescope.views.curves import MOST_POINTS, NAMED, OBSERVED, Shown, curves, left_out, many_curves, plane, shown
from stagescope.views.view import Level, Maker, Points, View

BETWEEN = OBSERVED / 4
"""Most entries of a view of matrices between all tokens: 40 MB, all frames of 1000 up to 70 tokens."""


@dataclass(frozen=True)
class _Seen:
    """The curves of the frames shown."""

    curves: TokenCurves
    frames: np.ndarray | None

    @property
    def tokens(self) -> tuple[str, ...]:
        return tuple(str(i) for i in range(len(self.curves.pi)))

    @property
    def often(self) -> list[int]:
        """Tokens, most frequent first."""
        return np.argsort(-self.curves.pi, kind="stable").tolist()


def _seen(some: Shown) -> _Seen:
    return _Seen(token_curves(some.run), some.frames)


def token_views(reading: Reading) -> list[Maker]:
    """Loss, attention, focus and dilution of its rows, singular values, norms, and the embedding."""
    run = reading.run
    rows = run.params["W0"][0]
    seen, few = (_seen(shown(run, size, most)) for size, most in ((rows.size, OBSERVED), (len(rows) ** 2, BETWEEN)))
    return [
        partial(_loss, run, seen),
        partial(_attention, few),
        partial(_focus, seen),
        partial(_entropy, seen),
        partial(_values, seen, "W0", "embedding-values", "E_k"),
        partial(_values, seen, "scores", "score-values", "Q_k"),
        partial(_embedding, seen),
        partial(_row_norms, seen),
        partial(_values, seen, "W1", "output-values", None),
        partial(norms_view, run),
        partial(_scores, few),
        partial(_excess, run, seen),
        partial(speed_view, run),
    ]


def _loss(run: Run, seen: _Seen) -> View | None:
    chain = seen.curves.law.process
    levels = (
        Level("uniform prediction, ln d", float(np.log(chain.vocab))),
        Level("without context, H(pi)", chain.unigram_loss()),
        Level("entropy rate", chain.floor()),
    )
    about = "Cross-entropy of the next token in nats. The entropy rate is the least any predictor can reach."
    return loss_view(run, levels, about)


def _excess(run: Run, seen: _Seen) -> View | None:
    if "loss" not in run.series:
        return None
    chain = seen.curves.law.process
    levels = (Level("without context", chain.unigram_loss() - chain.floor()),)
    return excess_view(np.asarray(run.series["loss"]) - chain.floor(), "the entropy rate of the chain", levels)


def _attention(seen: _Seen) -> View:
    most = seen.tokens[seen.curves.frequent]
    about = f"Attention in an infinitely long context: row = query type, column = key type. Token {most} is the most frequent."
    return _between(seen, "attention", "Attention between token types", about, seen.curves.attention)


def _scores(seen: _Seen) -> View:
    about = "Phi, before the softmax and without the frequencies of the tokens. Attention opens along a rank-one pattern."
    return _between(seen, "scores", "Attention scores", about, seen.curves.scores, signed=True)


def _between(seen: _Seen, slot: str, title: str, about: str, values: np.ndarray, signed: bool = False) -> View:
    tokens = seen.tokens
    return matrix(slot, title, about, values, signed=signed, rows=tokens, columns=tokens, tokens=True, frames=seen.frames)


def _focus(seen: _Seen) -> View:
    """Attention on the frequent token, row by row: up is focus, back is dilution."""
    found, most = seen.curves, seen.curves.frequent
    base = Level(f"frequency of token {most}", float(found.pi[most]))
    about = f"Attention of each query type on token {most}, the most frequent. Rising is focus, returning is dilution."
    made = many_curves(found.on_frequent, [f"query {i}" for i in seen.tokens], first=seen.often, tokens=seen.tokens)
    title, about, axis = "Focus and dilution, row by row", about + left_out(len(found.pi)), f"attention on token {most}"
    return curves("focus", title, about, axis, made, levels=[base], frames=seen.frames)


def _entropy(seen: _Seen) -> View:
    base = Level("entropy of the frequencies", seen.curves.law.process.unigram_loss())
    about = "Entropy of each row of attention, in nats: low where a query looks at few tokens." + left_out(len(seen.tokens))
    made = many_curves(seen.curves.entropy, [f"query {i}" for i in seen.tokens], first=seen.often, tokens=seen.tokens)
    return curves("entropy", "Entropy of attention rows", about, "nats", made, levels=[base], frames=seen.frames)


def _values(seen: _Seen, name: str, slot: str, events: str | None) -> View:
    found = seen.curves
    values = _score_values(found) if name == "scores" else singular_values(np.asarray(found.params[name]))
    what = {"W0": "the embedding W0", "W1": "the output W1", "scores": "the attention scores Phi"}[name]
    about = f"Singular values of {what}, largest first."
    if events is not None:
        about += f" A direction opens when its value passes {THRESHOLDS.level:g}: the events {events}."
    about += left_out(values.shape[1], NAMED, "values")
    made = many_curves(values[:, :NAMED], [f"{k + 1}" for k in range(values.shape[1])])
    levels = [Level("a direction opens", THRESHOLDS.level)] if events is not None else []
    title = f"Singular values of {what}"
    return curves(slot, title, about, "singular value", made, levels=levels, log=True, frames=seen.frames)


def _score_values(found: TokenCurves) -> np.ndarray:
    """Singular values of Phi; nan where a frame has numbers that are not finite."""
    good = np.all([np.isfinite(block).all(axis=(1, 2)) for block in found.params.values()], axis=0)
    if good.all():
        return found.score_values
    known = TokenCurves(found.time[good], {name: block[good] for name, block in found.params.items()}, found.law).score_values
    values = np.full((len(good), known.shape[1]), np.nan)
    values[good] = known
    return values


def _row_norms(seen: _Seen) -> View:
    about = "Length of each token's row of W0. A row passes near zero while it dilutes." + left_out(len(seen.tokens))
    made = many_curves(seen.curves.norms, [f"token {i}" for i in seen.tokens], first=seen.often, tokens=seen.tokens)
    return curves("row-norms", "Norms of the embedding's rows", about, "norm", made, log=True, frames=seen.frames)


def _embedding(seen: _Seen) -> View:
    chosen = seen.often[:MOST_POINTS]
    places, shares = plane(np.asarray(seen.curves.params["W0"])[:, chosen])
    about = "Rows of W0 in the plane of their largest variance, all frames together; a row at the origin is zero."
    if len(seen.tokens) > MOST_POINTS:
        about += f" The {MOST_POINTS} most frequent of {len(seen.tokens):,} tokens are drawn."
    labels = tuple(seen.tokens[i] for i in chosen)
    return Points("embedding", "Embedding of the tokens", about, places, labels, shares, tokens=True, frames=seen.frames)
