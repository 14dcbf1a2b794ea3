"""The saddle path of TokenAttention: from the start to the sequence of stages and their times, without a run [FD:ladder]."""

from dataclasses import dataclass

import numpy as np

from stagescope.errors import InputError
from stagescope.landscape.saddle_path import SOLVER, SaddlePath, of_two_sizes, plain_time, unsure
from stagescope.papers.focus_dilution.counts import TokenCounts
from stagescope.papers.focus_dilution.loss import BLOCKS, TokenLoss
from stagescope.papers.focus_dilution.saddle_path.legs import Path
from stagescope.papers.focus_dilution.saddle_path.walk import enough, walk
from stagescope.papers.focus_dilution.sampled import TokenSampled
from stagescope.params import Params


@dataclass(frozen=True)
class PathRule:
    """How large a start may be, and from which size on a direction belongs to the path."""

    largest: float = 3e-3  # rms of the start above which directions open together, so that there is no sequence
    least_eta: float = 0.02
    most_eta: float = 0.05
    slow: float = 0.1  # what lies outside, of size s, moves nothing before this many times s^-2
    room: float = 1.5  # eta / 2 is at least this many times the largest pattern of the start


RULE = PathRule()
UNTRIED = "of paths on finite or sampled contexts E1 alone was compared with a flow"


def token_path(loss: TokenLoss, start: Params, until: float, seen: float = np.inf) -> SaddlePath:
    """The path from a start near the origin, followed up to the time `until`, or to the first event after the time `seen`.

    It is computed twice, with eta and with half of it: times are extrapolated, and the interval is a multiple of the difference.
    """
    _check(loss, start)
    eta = _eta(start)
    coarse, fine = _both(loss, start, eta, until, seen)
    ending = fine.walked[-1].ending
    assert ending is not None
    end = _reach(fine, until) if ending.final else float(fine.time[-1])
    error = SOLVER + _rms(start)  # what lies outside the path is left out to second order: a share of its own size
    reason = f"{ending.reason}, which is known up to t={plain_time(end, 2)}" if ending.final else ending.reason
    shared = {"reason": reason, "end": end, "absent": ending.final, "error": error}
    events = {name: of_two_sizes(*_times(coarse, fine, name, seen), **shared) for name in fine.events}
    notes = [UNTRIED] * isinstance(loss, TokenCounts) + unsure(events)
    along = {"time": coarse.time, "sizes": coarse.sizes, "rates": coarse.rates, "losses": coarse.losses}
    return SaddlePath(tuple(coarse.legs()), events, tuple(notes), eta, **along)


def _both(loss: TokenLoss, start: Params, eta: float, until: float, seen: float) -> tuple[Path, Path]:
    """The paths with eta and with half of it, up to an event whose interval lies after `seen`; without one, to their ends."""
    coarse, fine = (Path(list(walk(loss, start, size, until, seen)), loss) for size in (eta, eta / 2))
    lows = [of_two_sizes(coarse.events[name], when, "").low for name, when in fine.events.items()]
    clear = any(low is not None and low > seen for low in lows)
    if clear or not any(path.walked[-1].ending == enough(seen) for path in (coarse, fine)):
        return coarse, fine
    return _both(loss, start, eta, until, np.inf)


def _times(coarse: Path, fine: Path, name: str, seen: float) -> tuple[float | None, float | None]:
    """When an event comes with both sizes; None for both where one of them is not followed so far, an event less."""
    found = coarse.events[name], fine.events[name]
    short = [path.walked[-1].ending for path, when in zip((coarse, fine), found, strict=True) if when is None]
    return (None, None) if enough(seen) in short else found


def _reach(path: Path, until: float) -> float:
    """Up to when the end of a path is its end: what lies outside, of size s, acts on the path at the rate s^2 at most."""
    size = max(float(values[-1]) for values in path.sizes.values())
    return max(float(path.time[-1]), min(until, RULE.slow * float(np.exp(-2 * min(size, 0.0)))))


def _rms(start: Params) -> float:
    return float(np.sqrt(np.mean(np.concatenate([np.ravel(start[name]) for name in BLOCKS]) ** 2)))


def _top(start: Params) -> float:
    """The size of the largest pattern of both stacks."""
    stacks = [np.vstack([start["W0"], start["W1"].T, start["WQ"].T, start["WK"].T]), np.vstack([start["WQ"], start["WK"]])]
    return max(float(np.linalg.norm(stack, 2)) for stack in stacks)


def _eta(start: Params) -> float:
    """The geometric mean of the start and 1, and well above the largest pattern of the start."""
    wanted = max(np.sqrt(_rms(start)), 2 * RULE.room * _top(start))
    return float(np.clip(wanted, RULE.least_eta, RULE.most_eta))


def _check(loss: TokenLoss, start: Params) -> None:
    if isinstance(loss, TokenSampled) and loss.batch is not None:
        raise InputError("this loss draws a batch for every step, so it has no flow to predict; use it without batches")
    rms = _rms(start)
    if not rms <= RULE.largest:
        much = f"{rms / RULE.largest:.3g} times the largest for which one direction opens after the other, {RULE.largest:g}"
        raise InputError(f"the start has rms {rms:.3g}, {much}: it is not near the origin; take a smaller init scale")
    if not (np.any(start["W0"]) or np.any(start["W1"])):
        raise InputError("W0 and W1 start at 0, so nothing ever moves; give one of them a start above 0")
    most, top = RULE.most_eta / (2 * RULE.room), _top(start)
    if top > most:
        small = f"{top / most:.3g} times the largest that is small beside what opens, {most:.3g}"
        raise InputError(f"the start has a pattern of size {top:.3g}, {small}; take a smaller init scale for this width")
