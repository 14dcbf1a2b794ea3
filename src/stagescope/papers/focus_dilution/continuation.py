"""Critical points of the small models of TokenAttention over a number that the loss depends on, and lines of theory."""

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from stagescope.core.errors import InputError
from stagescope.landscape.follower import Zeros
from stagescope.papers.focus_dilution.family import attention_rate, escape_matrices, stall_boundary
from stagescope.papers.focus_dilution.ladder import condensed_start
from stagescope.papers.focus_dilution.limits import LIMITS
from stagescope.papers.focus_dilution.loss import TokenLoss, TokenPopulation, TokenSampled
from stagescope.papers.focus_dilution.saddle_path import Path, SmallModel, followed, walk
from stagescope.papers.focus_dilution.stages import open_directions, stays
from stagescope.papers.focus_dilution.study import FocusDilutionOptions

# Critical points of a small model (r, rq) of TokenAttention over a number that the loss depends on [FD:ladder].
#
# Rows besides F are what the flow conserves and what is 0 at the origin: W0^T W0 - W1 W1^T - WQ WQ^T - WK WK^T,
# WQ^T WQ - WK^T WK and W1 1. They pick the member of an orbit that runs from small starts approach.

WEIGHTS = ((2, -1 / 12), (1, 8 / 12), (-1, -8 / 12), (-2, 1 / 12))


class TokenZeros(Zeros):
    """The zeros of the small model (r, rq) of `family(value)`; at rq = 0 it has no queries and keys."""

    def __init__(self, family: Callable[[float], TokenLoss], r: int, rq: int, loss: TokenLoss) -> None:
        self.r, self.rq = r, rq
        width, keys = loss.model.shapes["WQ"]
        self._pairs = np.triu_indices(r), np.triu_indices(rq)
        self.room = ("embedding",) * (r < width) + ("attention",) * (rq < keys)
        self.model = lru_cache(maxsize=16)(lambda value: SmallModel(family(value), r, rq))

    def _whole(self, vectors: np.ndarray) -> np.ndarray:
        none = np.zeros((*vectors.shape[:-1], 2 * self.r))
        return vectors if self.rq else np.concatenate([vectors, none], axis=-1)

    def vector(self, small: dict[str, np.ndarray], value: float) -> np.ndarray:
        full = self.model(value).packed(small)
        return full if self.rq else full[: -2 * self.r]

    def params(self, vector: np.ndarray, value: float) -> dict[str, np.ndarray]:
        return self.model(value).unpacked(self._whole(vector))

    def rows(self, vector: np.ndarray, value: float) -> np.ndarray:
        velocity = self.model(value).velocity(self._whole(vector))[0][: len(vector)]
        return np.concatenate([velocity, self._conserved(vector, value)])

    def _conserved(self, vectors: np.ndarray, value: float) -> np.ndarray:
        """Of one vector, or of several along the first axis."""
        w0, w1, wq, wk = (self.params(vectors, value)[name] for name in ("W0", "W1", "WQ", "WK"))
        widths = _square(w0) - _square(w1.swapaxes(-1, -2)) - _square(wq.swapaxes(-1, -2)) - _square(wk.swapaxes(-1, -2))
        keys = _square(wq) - _square(wk)
        return np.concatenate([widths[..., *self._pairs[0]], keys[..., *self._pairs[1]], w1.sum(axis=-1)], axis=-1)

    def slopes(self, vector: np.ndarray, value: float) -> np.ndarray:
        """Differences of F; the other rows are of second degree, and their differences over any step are exact."""
        model, full, units = self.model(value), self._whole(vector), np.eye(len(vector))
        shifts = [LIMITS.difference * self._whole(unit) for unit in units]
        columns = [sum(weight * model.velocity(full + times * shift)[0] for times, weight in WEIGHTS) for shift in shifts]
        conserved = (self._conserved(vector + units, value) - self._conserved(vector - units, value)) / 2
        return np.hstack([np.array(columns)[:, : len(vector)] / LIMITS.difference, conserved]).T

    def loss(self, vector: np.ndarray, value: float) -> float:
        return self.model(value).velocity(self._whole(vector))[1]

    def openings(self, vector: np.ndarray, value: float) -> dict[str, np.ndarray]:
        matrices = escape_matrices(self.model(value).loss, self.params(vector, value))
        return {name: matrices[name] for name in self.room}

    def measures(self, vector: np.ndarray, value: float) -> dict[str, tuple[float, ...]]:
        """The size of the logits after each token as a share of all: the same for all members of a family of equal loss."""
        loss, small = self.model(value).loss, self.params(vector, value)
        logits = loss.model.attention(small, loss.process.stationary) @ small["W0"] @ small["W1"]
        return {"logits": tuple((np.linalg.norm(logits, axis=1) / np.linalg.norm(logits)).tolist())}


def _square(matrices: np.ndarray) -> np.ndarray:
    return matrices.swapaxes(-1, -2) @ matrices


# The critical point (r, rq) of TokenAttention from which a branch starts: where the small model's flow ends [FD:ladder].


def token_rung(family: Callable[[float], TokenLoss], label: tuple[int, ...], value: float) -> tuple[TokenZeros, np.ndarray]:
    """The zeros of the small model (r, rq) over a number, and the one that a run from a small start approaches at `value`."""
    loss = family(value)
    width, keys = loss.model.shapes["WQ"]
    least = min(width, loss.model.vocab)
    if len(label) != 2 or not (1 <= label[0] <= least and 0 <= label[1] <= min(label[0], keys)):
        bounds = f"r from 1 to {least}, rq from 0 to r and at most {keys}"
        sentence = f"the rung {_name(label)} does not exist here: a rung r,rq has {bounds}"
        raise InputError(f"{sentence}; (0,0) is the origin for all values")
    if isinstance(loss, TokenSampled):
        raise InputError(
            "the contexts of --form sampled are drawn anew for every value, so nothing is continued; use another form"
        )
    r, rq = label
    model, point, endless = _condensed(loss, rq) if r == 1 else _on_path(loss, r, rq)
    if endless:
        sentence = f"the critical point ({r},{rq}) lies at infinity at {value:g}: its flow never settles"
        raise InputError(f"{sentence}; begin at another value of what is varied, or at another rung")
    zeros, small = TokenZeros(family, r, rq, loss), model.unpacked(point)
    ranks = open_directions(loss, small)
    if ranks != (r, rq):
        raise InputError(
            f"no critical point ({r},{rq}) was found at {value:g}: the flow of its small model ends at {_name(ranks)}"
        )
    return zeros, zeros.vector(small, value)


def _name(label: tuple[int, ...]) -> str:
    return f"({','.join(map(str, label))})"


def _condensed(loss: TokenLoss, rq: int) -> tuple[SmallModel, np.ndarray, bool]:
    """Of width 1: from a balanced start along pi, which is symmetric where the chain is."""
    law = TokenPopulation(model=loss.model, process=loss.process)
    c = attention_rate(law.process.stationary, law.process.transition, law.model.scale)
    start = condensed_start(law, 1.0 if c >= 0 else -1.0)
    model = SmallModel(loss, 1, rq)
    return model, *followed(model, model.packed(start if rq else {name: start[name] for name in ("W0", "W1")}), 0.0)


def _on_path(loss: TokenLoss, r: int, rq: int) -> tuple[SmallModel, np.ndarray, bool]:
    """Of larger width: from where the saddle path from a small start is slowest at this label."""
    path = Path(list(walk(loss, loss.model.init(0, LIMITS.rung_start), LIMITS.outside, LIMITS.rung_until)), loss)
    path_stays = stays(path.time, path.values["E"], path.values["Q"])
    stay = next((stay for stay in path_stays if (stay.r, stay.rq) == (r, rq)), None)
    if stay is None:
        labels = ", ".join(dict.fromkeys(stay.label for stay in path_stays))
        raise InputError(f"no run comes to ({r},{rq}) from a small start; it passes {labels}")
    return path.critical(stay)


# Lines of theory over options of the study [FD:lambda-c].

TOKENS = int(FocusDilutionOptions.model_fields["tokens"].default)


def stall_line(options: Mapping[str, Any], values: Sequence[float]) -> list[float | None]:
    """lambda_c over pi0."""
    if options.get("transition") is not None:
        raise InputError("the boundary stall is one of lazy chains, and this sweep has a --transition of its own")
    tokens = options.get("tokens")
    return [stall_boundary(value, TOKENS if tokens is None else int(tokens)) if 0 < value < 1 else None for value in values]
