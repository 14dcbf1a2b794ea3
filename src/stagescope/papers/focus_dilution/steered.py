"""Runs drawn by seed whose motion was steered away from what the claims of focus and dilution say.

They start as a flow does and are of its law, so that the claims apply to them.
"""

from dataclasses import replace

import numpy as np

from stagescope.claims.inputs import Inputs
from stagescope.papers.focus_dilution.loss import TokenPopulation
from stagescope.papers.focus_dilution.nulls import Setting, lazy_chain, setting
from stagescope.papers.focus_dilution.observables import token_curves
from stagescope.papers.focus_dilution.stages import THRESHOLDS
from stagescope.runs.run import Run


def _walk(seed: int) -> Run:
    """Parameters that wander: random walks of every block from the start of a flow, as far as the flow's fastest block goes."""
    run, rng, knots = setting(seed, lazy_chain).run(), np.random.default_rng([seed, 2]), 60
    at, params = np.linspace(0, 1, knots), {}
    share = run.time / run.time[-1]
    size = max(float(np.sqrt(np.mean((run.params[name][-1] - run.params[name][0]) ** 2))) for name in run.params)
    for name in run.params:
        block = run.params[name]
        path = np.concatenate([np.zeros((1, block[0].size)), np.cumsum(rng.normal(size=(knots - 1, block[0].size)), axis=0)])
        path *= size / np.sqrt(knots)
        moved = np.stack([np.interp(share, at, column) for column in path.T], axis=1)
        params[name] = block[0] + moved.reshape(len(share), *block[0].shape)
    return replace(run, params=params, memo={})


def _wide(seed: int) -> Setting:
    """A lazy chain with a model that can have any scores: width and key width are at least the number of tokens."""
    return replace(setting(seed, lazy_chain), width=8, key_width=8)


def _steered(run: Run, law: TokenPopulation, first: int, attention: np.ndarray) -> Run:
    """The run with the attention given from a frame on; embeddings move as they did.

    Scores log(A / pi) need WQ WK^T = W0^+ log(A / pi) W0^+T / scale, which exists for embeddings of full rank.
    """
    params = {name: np.array(run.params[name]) for name in run.params}
    inverse = np.linalg.pinv(params["W0"][first:], rcond=1e-14)
    scores = np.log(attention / law.process.stationary) / law.model.scale
    params["WQ"][first:] = inverse @ scores @ np.swapaxes(inverse, 1, 2)
    params["WK"][first:] = np.eye(law.model.width)
    return replace(run, params=params, memo={})


def _opened(values: np.ndarray, which: int) -> int:
    """The first frame in which a singular value is above its level, or the last frame."""
    above = np.flatnonzero(values[:, which] > THRESHOLDS.level)
    return int(above[0]) if above.size else len(values) - 1


def _monotone(seed: int) -> Run:
    """From E2 on every row of attention goes straight to where it ended: no row rises and falls again."""
    drawn = _wide(seed)
    run, law = drawn.run(), drawn.law()
    curves = token_curves(run)
    first = _opened(curves.embedding_values, 1)
    share = ((run.time[first:] - run.time[first]) / max(run.time[-1] - run.time[first], 1e-9))[:, None, None]
    return _steered(run, law, first, (1 - share) * curves.attention[first] + share * curves.attention[-1])


def _held(seed: int) -> Run:
    """Attention stays as it is when the first rare row is largest between E1 and E2: no row is diluted."""
    drawn = _wide(seed)
    run, law = drawn.run(), drawn.law()
    curves = token_curves(run)
    begin, end = (_opened(curves.embedding_values, which) for which in (0, 1))
    rare = np.delete(curves.on_frequent[begin : end + 1], curves.frequent, axis=1)
    first = begin + int(np.argmax(rare, axis=0).min())
    return _steered(run, law, first, np.repeat(curves.attention[first][None], run.frames - first, axis=0))


def _exaggerated(seed: int) -> Run:
    """From halfway between E1 and Q1 on the embedding W0 moves 1.5 times as far: attention does not account for its motion."""
    run = setting(seed, lazy_chain).run()
    curves = token_curves(run)
    first, opened = _opened(curves.embedding_values, 0), _opened(curves.score_values, 0)
    middle = int(np.searchsorted(run.time, (run.time[first] + run.time[opened]) / 2))
    w0 = np.array(run.params["W0"])
    w0[middle:] += 0.5 * (w0[middle:] - w0[middle])
    return replace(run, params={name: w0 if name == "W0" else run.params[name] for name in run.params}, memo={})


def _swapped(seed: int) -> Run:
    """From Q1 on what W0 has outside its first direction is handed from token to token: another direction opens."""
    run = setting(seed, lazy_chain).run()
    curves = token_curves(run)
    first = _opened(curves.score_values, 0)
    w0 = np.array(run.params["W0"])
    rows = np.concatenate([w0, np.swapaxes(run.params["W1"], 1, 2)], axis=1)[first:]
    along = np.linalg.svd(rows, full_matrices=False)[2][:, :1]
    inside = w0[first:] @ np.swapaxes(along, 1, 2) @ along
    w0[first:] = inside + np.roll(w0[first:] - inside, 1, axis=1)
    return replace(run, params={name: w0 if name == "W0" else run.params[name] for name in run.params}, memo={})


def _early(seed: int) -> Run:
    """Queries and keys go to where they are at Q1 by half of E1, and stay: attention is not frozen, and opens first."""
    run = setting(seed, lazy_chain).run()
    curves = token_curves(run)
    half = run.time[_opened(curves.embedding_values, 0)] / 2
    opened = run.time[_opened(curves.score_values, 0)]
    at = np.searchsorted(run.time, opened * np.minimum(run.time / half, 1.0))
    moved = {name: run.params[name][np.minimum(at, run.frames - 1)] for name in ("WQ", "WK")}
    return replace(run, params={name: moved.get(name, run.params[name]) for name in run.params}, memo={})


WALK = Inputs("wandering parameters", "random walks of all blocks: no law, no stages", _walk)
EARLY = Inputs("early attention", "queries and keys open before the embeddings condense, and stay", _early)
HELD = Inputs("held focus", "attention stays at the focus of its first row, embeddings go on: no row is diluted", _held)
MONOTONE = Inputs("monotone rows", "from E2 on each row goes straight to its end, which the loss of a flow has", _monotone)
EXAGGERATED = Inputs("exaggerated motion", "embeddings move 1.5 times as far as attention drives them", _exaggerated)
SWAPPED = Inputs("swapped direction", "what opens in W0 after Q1 is handed from token to token", _swapped)
