"""The critical point (r, rq) of TokenAttention from which a branch starts: where the small model's flow ends [FD:ladder]."""

from collections.abc import Callable

import numpy as np

from stagescope.errors import InputError
from stagescope.papers.focus_dilution.continuation.zeros import TokenZeros
from stagescope.papers.focus_dilution.forms import attention_rate
from stagescope.papers.focus_dilution.ladder.points import condensed_start
from stagescope.papers.focus_dilution.loss import TokenLoss, TokenPopulation
from stagescope.papers.focus_dilution.saddle_path.legs import Path, followed
from stagescope.papers.focus_dilution.saddle_path.small_flow import SmallModel
from stagescope.papers.focus_dilution.saddle_path.walk import walk
from stagescope.papers.focus_dilution.sampled import TokenSampled
from stagescope.papers.focus_dilution.stages import THRESHOLDS, Stay, stays

SMALL = 1e-3
"""Of the balanced start of a model of width 1."""
START, ETA, UNTIL = 1e-5, 0.02, 1e7
"""Scale of the start of a saddle path that passes further rungs, where its patterns join, and how far it is followed."""


def token_rung(family: Callable[[float], TokenLoss], label: tuple[int, ...], value: float) -> tuple[TokenZeros, np.ndarray]:
    """The zeros of the small model (r, rq) over a number, and the one that a run from a small start approaches at `value`."""
    loss = family(value)
    _check(loss, label)
    r, rq = label
    model, point, endless = _condensed(loss, rq) if r == 1 else _on_path(loss, r, rq)
    if endless:
        where = f"the critical point ({r},{rq}) lies at infinity at {value:g}: its flow never settles"
        raise InputError(f"{where}; begin at another value of what is varied, or at another rung")
    zeros, small = TokenZeros(family, r, rq, loss), model.unpacked(point)
    ranks = tuple(int(np.sum(np.linalg.svd(each, compute_uv=False) > THRESHOLDS.level)) for each in _both(loss, small))
    if ranks != (r, rq):
        raise InputError(
            f"no critical point ({r},{rq}) was found at {value:g}: the flow of its small model ends at {_name(ranks)}"
        )
    return zeros, zeros.vector(small, value)


def _both(loss: TokenLoss, small: dict[str, np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    return small["W0"], loss.model.scores(small)


def _name(label: tuple[int, ...]) -> str:
    return f"({','.join(map(str, label))})"


def _check(loss: TokenLoss, label: tuple[int, ...]) -> None:
    width, keys = loss.model.shapes["WQ"]
    least = min(width, loss.model.vocab)
    if len(label) != 2 or not (1 <= label[0] <= least and 0 <= label[1] <= min(label[0], keys)):
        most = f"r from 1 to {least}, rq from 0 to r and at most {keys}"
        raise InputError(
            f"the rung {_name(label)} does not exist here: a rung r,rq has {most}; (0,0) is the origin for all values"
        )
    if isinstance(loss, TokenSampled):
        raise InputError(
            "the contexts of --form sampled are drawn anew for every value, so nothing is continued; use another form"
        )


def _condensed(loss: TokenLoss, rq: int) -> tuple[SmallModel, np.ndarray, bool]:
    """Of width 1: from a balanced start along pi, which is symmetric where the chain is."""
    law = TokenPopulation(model=loss.model, process=loss.process)
    c = attention_rate(law.process.stationary, law.process.transition, law.model.scale)
    start = condensed_start(law, SMALL, 1.0 if c >= 0 else -1.0)
    model = SmallModel(loss, 1, rq)
    return model, *followed(model, model.packed(start if rq else {name: start[name] for name in ("W0", "W1")}), 0.0)


def _on_path(loss: TokenLoss, r: int, rq: int) -> tuple[SmallModel, np.ndarray, bool]:
    """Of larger width: from where the saddle path from a small start is slowest at this label."""
    path = Path(list(walk(loss, loss.model.init(0, START), ETA, UNTIL)), loss)
    met: list[Stay] = list(stays(path.time, path.values["E"], path.values["Q"]))
    stay = next((each for each in met if (each.r, each.rq) == (r, rq)), None)
    if stay is None:
        seen = ", ".join(dict.fromkeys(each.label for each in met))
        raise InputError(f"no run comes to ({r},{rq}) from a small start; it passes {seen}")
    return path.critical(stay)
