"""Curves of two layers on in-context chains, and their stages: half steps between levels, and the nearest strategy [MIC:stages].

t1, t2, t3   the loss has half of the step from uniform to unigram, to bigram, to trigram
match        the match b has half of its value on the unigram plateau, in models that have such a value
lag          attention on the token before has twice its start
onset        attention on the token before is a half: the phase change
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np

from stagescope.detect.events import crossing
from stagescope.detect.levels import crossings, no_ladder
from stagescope.detect.stage import Event, Stage, Stages
from stagescope.errors import InputError
from stagescope.fields.softmax import log_softmax
from stagescope.papers.markov_icl.finite import FiniteExact, FiniteLoss, causal, pairs_before, strategies
from stagescope.papers.markov_icl.forms import Levels, levels
from stagescope.papers.markov_icl.loss import InContext, LinearPopulation, SoftmaxPopulation, TwoHeadPopulation
from stagescope.papers.markov_icl.model import LinearMatch
from stagescope.papers.rebuild import rebuilt
from stagescope.processes.strategies import Strategies
from stagescope.runs.run import Run

COMPARED, SEQUENCES = 100, 500
"""Frames at most at which strategies are compared, and sampled sequences at most on which they are."""


@dataclass(frozen=True, eq=False)
class MatchCurves:
    """A run of one of the models, frame by frame."""

    time: np.ndarray
    loss: np.ndarray
    params: dict[str, np.ndarray]
    law: Any

    def at(self, frame: int) -> dict[str, np.ndarray]:
        return {name: np.asarray(block[frame], dtype=float) for name, block in self.params.items()}

    @cached_property
    def levels(self) -> Levels:
        return levels(self.law)

    @cached_property
    def attention(self) -> np.ndarray:
        """Layer 1 by lag (frames, heads, lags)."""
        found = self.law.model.attention(self.params)
        return found if found.ndim == 3 else found[:, None]

    @property
    def previous(self) -> np.ndarray:
        """A_1 (frames,): attention of the first head on the token before."""
        return self.attention[:, 0, 1]

    @cached_property
    def match(self) -> np.ndarray:
        """b (frames,)."""
        return self.law.model.match(self.params)

    @cached_property
    def compared(self) -> np.ndarray:
        """The frames at which strategies are compared."""
        count = len(self.time)
        return np.unique(np.linspace(0, count - 1, min(count, COMPARED)).astype(int))

    @cached_property
    def strategies(self) -> Strategies:
        """What named strategies predict on the fixed contexts; a unigram that is uniform is left out [MIC:strategies]."""
        law = self.law
        if isinstance(law, FiniteLoss):
            return _finite_strategies(law)
        process = law.process
        shape = (law.tables["mass"].shape[1], process.tokens)
        unigram = np.broadcast_to(process.marginal[:, None, :], (process.chains, *shape))
        laws = {"uniform": np.full_like(unigram, 1 / process.tokens)}
        laws |= {} if process.doubly_stochastic else {"unigram": unigram}
        if isinstance(law, TwoHeadPopulation):
            laws |= {"bigram": process.bigrams[:, np.arange(shape[0]) % process.tokens], "trigram": law.tables["next"]}
        else:
            laws |= {"bigram": process.transitions}
        return Strategies(laws, law.tables["mass"])

    @cached_property
    def _logs(self) -> Callable[[dict[str, np.ndarray]], np.ndarray]:
        """Log probabilities on the contexts of `strategies`."""
        from stagescope.autodiff import jax

        law = self.law
        if isinstance(law, FiniteLoss):
            tokens = _tokens(law)
            logits = jax.jit(lambda params: law.logits(params, tokens, law.model))
            return lambda params: log_softmax(np.asarray(logits(params))[:, :-1])
        found = jax.jit(law.logs)
        return lambda params: np.asarray(found(params, law.data))

    def logs(self, frame: int) -> np.ndarray:
        """Log probabilities of the model at a frame (contexts, places, tokens)."""
        return self.logs_of(self.at(frame))

    def logs_of(self, params: dict[str, np.ndarray]) -> np.ndarray:
        """The same for any parameters. Where it is a few products of arrays, JAX is not asked."""
        law = self.law
        if isinstance(law, LinearPopulation):
            return _linear_logs(law, params)
        if isinstance(law, SoftmaxPopulation):
            return law.log_laws(params)
        return _finite_logs(law, params) if isinstance(law.model, LinearMatch) else self._logs(params)

    @cached_property
    def _compared(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        found = [(self.strategies.divergences(logs), *self.strategies.nearest(logs)) for logs in map(self.logs, self.compared)]
        kl, nearest, clear = zip(*found, strict=True)
        return np.array(kl), np.array(nearest), np.array(clear)

    @property
    def divergences(self) -> np.ndarray:
        """KL(strategy || model) at the frames compared (frames, strategies)."""
        return self._compared[0]

    @property
    def nearest(self) -> np.ndarray:
        """Place of the nearest strategy at the frames compared."""
        return self._compared[1]

    @property
    def clear(self) -> np.ndarray:
        """Whether it is nearest beyond doubt."""
        return self._compared[2]


def _linear_logs(law: LinearPopulation, params: dict[str, np.ndarray]) -> np.ndarray:
    mixed = np.tensordot(law.model.attention(params), law.tables["powers"], axes=1)
    return log_softmax(law.model.square(params["W"]) @ mixed)


def _finite_logs(law: FiniteLoss, params: dict[str, np.ndarray]) -> np.ndarray:
    tokens, model, v = _tokens(law), law.model, np.asarray(params["v"], dtype=float)
    assert isinstance(model, LinearMatch)
    pairs = pairs_before(tokens, causal(v, law.length), model.tokens)
    return log_softmax(np.einsum("ntm,ntmj->ntj", model.square(params["W"])[tokens], pairs)[:, :-1])


def _tokens(law: FiniteLoss) -> np.ndarray:
    """The sequences that strategies are compared on: all, or some of those watched."""
    tokens = law.data["tokens"]
    return tokens if isinstance(law, FiniteExact) else tokens[:SEQUENCES]


def _finite_strategies(law: FiniteLoss) -> Strategies:
    found = strategies(_tokens(law), law.model.tokens, law.process.concentration, law.process.order)
    if law.process.doubly_stochastic:
        del found["unigram"]
    if not isinstance(law, FiniteExact):
        return Strategies(found)
    return Strategies(found, np.repeat(law.data["weights"][:, None], law.length - 1, axis=1) / (law.length - 1))


def match_curves(run: Run) -> MatchCurves:
    """The curves of a run of markov-icl."""
    law = rebuilt(run.spec["field"])
    if not isinstance(law, InContext):
        raise InputError(f"expected a run of markov-icl, got one of {run.spec['field']['type']}")
    return MatchCurves(run.time, run.series["loss"], {name: run.params[name] for name in run.params}, law)


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
