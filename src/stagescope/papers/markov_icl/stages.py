"""The stages of in-context chains: half steps between exact levels, and the nearest strategy [MIC:stages].

t1, t2, t3   the loss has half of the step from uniform to unigram, to bigram, to trigram
match        the match b has half of its value on the unigram plateau, in models that have such a value
lag          attention on the token before has twice its start
onset        attention on the token before is a half: the phase change
"""

from itertools import pairwise

import numpy as np

from stagescope.detect.events import crossing
from stagescope.detect.levels import crossings, no_ladder
from stagescope.detect.stage import Event, Stage, Stages
from stagescope.papers.markov_icl.observables import MatchCurves

NUMBERS = {"unigram": "t1", "bigram": "t2", "trigram": "t3"}
"""The event at whose half step a strategy is reached."""
DOUBLED, HALF = 2.0, 0.5
SOLVER = 1e-7
"""Error of a curve of a flow, relative to the level it crosses."""


def half_steps(curves: MatchCurves, smooth: bool) -> dict[str, Event]:
    """t1 .. by the name of the strategy they lead to; an event "at the start" where the run begins below it."""
    names, losses = curves.levels.names, curves.levels.losses
    if (why := no_ladder(losses)) is not None:
        return {NUMBERS[name]: Event.missing(how=why) for name in names[1:]}
    found = crossings(curves.time, curves.loss, losses, smooth)
    return {NUMBERS[name]: event for name, event in zip(names[1:], found, strict=True)}


def plateau_match(curves: MatchCurves) -> float | None:
    """b of the unigram class, where the model has one."""
    known = dict(zip(curves.levels.names, curves.levels.best, strict=True)).get("unigram")
    return None if known is None else float(known[1])


def layer_events(curves: MatchCurves) -> dict[str, Event]:
    """When layer 2 and layer 1 move [MIC:layers]."""
    goal, first = plateau_match(curves), float(curves.previous[0])
    found = {
        "lag": _rise(curves, curves.previous, DOUBLED * first, "attention on the token before over its start"),
        "onset": _rise(curves, curves.previous, HALF, "attention on the token before"),
    }
    if goal is None or goal <= 0:
        return found
    return {"match": _rise(curves, curves.match, HALF * goal, "the match over its value on the unigram plateau"), **found}


def _rise(curves: MatchCurves, curve: np.ndarray, level: float, how: str) -> Event:
    return crossing(curves.time, curve, level, rising=True, error=SOLVER * level, how=how)


def detect(curves: MatchCurves, *, clock: str, status: str) -> Stages:
    """Events, and a stage for every stretch in which one strategy is the nearest."""
    events = half_steps(curves, smooth="step" not in clock) | layer_events(curves)
    end = f"{clock}={curves.time[-1]:.4g}"
    notes = {}
    for name, event in events.items():
        if event.time is None:
            notes[name] = _why(name, event, curves, end)
    return Stages.of(status, clock, events, strategy_stages(curves), notes)


def _why(name: str, event: Event, curves: MatchCurves, end: str) -> str:
    if event.state == "at the start":
        return "it holds at the start already"
    if name == "lag":
        return f"attention on the token before is {curves.previous.max() / curves.previous[0]:.2f} times its start by {end}"
    if name == "onset":
        return f"attention on the token before is {curves.previous.max():.2f} by {end}"
    if name == "match":
        return event.how
    return f"the least loss is {curves.loss.min():.4g} by {end}; {event.how}"


def stretches(nearest: np.ndarray) -> list[tuple[int, int]]:
    """First and last place of every run of equal values."""
    cuts = [0, *(np.flatnonzero(np.diff(nearest)) + 1).tolist(), len(nearest)]
    return [(first, stop - 1) for first, stop in pairwise(cuts)]


def strategy_stages(curves: MatchCurves) -> tuple[Stage, ...]:
    names, found = curves.strategies.names, []
    for first, last in stretches(curves.nearest):
        place = int(curves.nearest[first])
        least = first + int(np.argmin(curves.divergences[first : last + 1, place]))
        kl = {name: max(0.0, float(value)) for name, value in zip(names, curves.divergences[least], strict=True)}
        stop = None if last + 1 == len(curves.nearest) else float(curves.time[curves.compared[last + 1]])
        said = ", ".join(f"{name} {value:.2g}" for name, value in kl.items())
        facts = {"strategy": names[place], "kl": kl, "clear": bool(curves.clear[least])}
        found.append(Stage(names[place], float(curves.time[curves.compared[first]]), stop, f"least KL from {said}", facts=facts))
    return tuple(found)
