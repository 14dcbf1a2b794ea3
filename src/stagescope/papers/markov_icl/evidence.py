"""A run of in-context chains as its claims read it: curves, closed forms, and stages [MIC:stages].

Stages are half steps between exact levels, and the nearest strategy.

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

from stagescope.core.errors import InputError
from stagescope.core.params import Params
from stagescope.detect.events import crossing
from stagescope.detect.levels import Plateau as Rest
from stagescope.detect.levels import crossings, no_ladder, plateaus
from stagescope.detect.stage import Event, Stage, Stages
from stagescope.flow.softmax import log_softmax
from stagescope.papers.markov_icl.finite import FiniteExact, FiniteLoss, causal, pairs_before, strategies
from stagescope.papers.markov_icl.forms import Levels, Plateau, chi_squares, lag_gains, levels, two_step
from stagescope.papers.markov_icl.limits import LIMITS
from stagescope.papers.markov_icl.loss import InContext, LinearPopulation, SoftmaxPopulation, TwoHeadPopulation
from stagescope.papers.markov_icl.model import LinearMatch
from stagescope.processes.strategies import Strategies
from stagescope.readings.evidence import Evidence as BaseEvidence
from stagescope.readings.rebuild import rebuilt

NUMBERS = {"unigram": "t1", "bigram": "t2", "trigram": "t3"}
"""The event at whose half step a strategy is reached."""
Logs = Callable[[Params], np.ndarray]


@dataclass(frozen=True, eq=False)
class Evidence(BaseEvidence):
    """A run of one of the models, frame by frame."""

    @cached_property
    def law(self) -> Any:
        law = rebuilt(self.run.spec["field"])
        if not isinstance(law, InContext):
            raise InputError(f"expected a run of markov-icl, got one of {self.run.spec['field']['type']}")
        return law

    @property
    def model(self) -> str:
        """R, S, S3, F or T."""
        return self.law.letter

    @property
    def exact(self) -> bool:
        """Whether the recorded loss is the population's."""
        return not isinstance(self.law, FiniteLoss) or isinstance(self.law, FiniteExact)

    @property
    def flow(self) -> bool:
        """Whether the run is a gradient flow, whose times closed forms give."""
        return "step" not in self.run.series

    @property
    def doubly(self) -> bool:
        return bool(self.law.process.doubly_stochastic)

    @property
    def lags(self) -> int:
        return int(self.law.model.lags)

    @property
    def loss(self) -> np.ndarray:
        return self.run.series["loss"]

    @property
    def from_zero(self) -> bool:
        """Whether the match begins at zero."""
        return bool(np.all(self.start["W"] == 0))

    @cached_property
    def attention(self) -> np.ndarray:
        """Layer 1 by lag (frames, heads, lags)."""
        attention = self.law.model.attention(self.run.params)
        return attention if attention.ndim == 3 else attention[:, None]

    @property
    def previous(self) -> np.ndarray:
        """A_1 (frames,): attention of the first head on the token before."""
        return self.attention[:, 0, 1]

    @cached_property
    def match(self) -> np.ndarray:
        """b (frames,)."""
        return self.law.model.match(self.run.params)

    # closed forms

    @cached_property
    def rate(self) -> float:
        """The rate of the match: the clock of the closed forms has it at one."""
        return float(self.dynamics.get("rates", {}).get("W", 1.0))

    @cached_property
    def ratio(self) -> float:
        """rho: the rate of the lags over that of the match."""
        return float(self.dynamics.get("rates", {}).get("v", 1.0)) / self.rate

    @cached_property
    def levels(self) -> Levels:
        return levels(self.law)

    @cached_property
    def plateau(self) -> Plateau:
        """The closed forms of the unigram plateau of R."""
        return Plateau(self.law, self.start["v"])

    @cached_property
    def gains(self) -> np.ndarray:
        """g_d of R, c_d of S."""
        return (lag_gains if self.model == "R" else chi_squares)(self.law.process, self.lags)

    @property
    def two_step(self) -> float:
        return two_step(self.gains, self.start["v"], self.ratio) / self.rate

    @property
    def plateau_time(self) -> float:
        return self.plateau.time(self.ratio) / self.rate

    # strategies

    @cached_property
    def compared(self) -> np.ndarray:
        """The frames at which strategies are compared."""
        count = len(self.time)
        return np.unique(np.linspace(0, count - 1, min(count, LIMITS.compared)).astype(int))

    @cached_property
    def _tokens(self) -> np.ndarray:
        """The sequences of a finite loss that strategies are compared on: all, or some of those watched."""
        tokens = self.law.data["tokens"]
        return tokens if self.exact else tokens[: LIMITS.sequences]

    @cached_property
    def strategies(self) -> Strategies:
        """What named strategies predict on the fixed contexts; a unigram that is uniform is left out [MIC:strategies]."""
        law, process = self.law, self.law.process
        if isinstance(law, FiniteLoss):
            laws, weights = strategies(self._tokens, process.tokens, process.concentration, process.order), None
            if self.exact:
                weights = np.repeat(law.data["weights"][:, None], law.length - 1, axis=1) / (law.length - 1)
        else:
            weights = law.tables["mass"]
            states = weights.shape[1]
            unigram = np.broadcast_to(process.marginal[:, None, :], (process.chains, states, process.tokens))
            laws = {"uniform": np.full_like(unigram, 1 / process.tokens), "unigram": unigram, "bigram": process.transitions}
            if isinstance(law, TwoHeadPopulation):
                laws |= {"bigram": process.bigrams[:, np.arange(states) % process.tokens], "trigram": law.tables["next"]}
        if self.doubly:
            del laws["unigram"]
        return Strategies(laws, weights)

    def logs_of(self, params: Params) -> np.ndarray:
        """Log probabilities of a model (contexts, places, tokens). Where they are a few products of arrays, JAX is not asked."""
        law, model = self.law, self.law.model
        if isinstance(law, LinearPopulation):
            mixed = np.tensordot(model.attention(params), law.tables["powers"], axes=1)
            return log_softmax(model.square(params["W"]) @ mixed)
        if isinstance(law, SoftmaxPopulation):
            return law.log_laws(params)
        if not isinstance(model, LinearMatch):
            return self._traced_logs(params)
        pairs = pairs_before(self._tokens, causal(np.asarray(params["v"], dtype=float), law.length), model.tokens)
        return log_softmax(np.einsum("ntm,ntmj->ntj", model.square(params["W"])[self._tokens], pairs)[:, :-1])

    @cached_property
    def _traced_logs(self) -> Logs:
        from stagescope.flow.autodiff import jax

        law = self.law
        if isinstance(law, FiniteLoss):
            logits = jax.jit(lambda params: law.logits(params, self._tokens, law.model))
            return lambda params: log_softmax(np.asarray(logits(params))[:, :-1])
        logs = jax.jit(law.logs)
        return lambda params: np.asarray(logs(params, law.data))

    @cached_property
    def _comparison(self) -> tuple[np.ndarray, ...]:
        rows = []
        for frame in self.compared:
            logs = self.logs_of(self.run.at(frame))
            rows.append((self.strategies.divergences(logs), *self.strategies.nearest(logs)))
        return tuple(map(np.array, zip(*rows, strict=True)))

    @property
    def divergences(self) -> np.ndarray:
        """KL(strategy || model) at the frames compared (frames, strategies)."""
        return self._comparison[0]

    @property
    def nearest(self) -> np.ndarray:
        """Place of the nearest strategy at the frames compared."""
        return self._comparison[1]

    @property
    def clear(self) -> np.ndarray:
        """Whether it is nearest beyond doubt."""
        return self._comparison[2]

    @cached_property
    def stretches(self) -> list[tuple[int, int]]:
        """First and last place of every run of equal nearest strategies."""
        cuts = [0, *(np.flatnonzero(np.diff(self.nearest)) + 1).tolist(), len(self.nearest)]
        return [(first, stop - 1) for first, stop in pairwise(cuts)]

    # events and stages

    @cached_property
    def events(self) -> dict[str, Event]:
        return self._events(self.flow)

    def _events(self, smooth: bool) -> dict[str, Event]:
        """t1 .. by the strategy they lead to, "at the start" where the run begins below; when the layers move [MIC:layers]."""
        names, losses, best = self.levels.names, self.levels.losses, self.levels.best
        if (reason := no_ladder(losses)) is not None:
            events = {NUMBERS[name]: Event.missing(how=reason) for name in names[1:]}
        else:
            steps = crossings(self.time, self.loss, losses, smooth)
            events = {NUMBERS[name]: event for name, event in zip(names[1:], steps, strict=True)}
        unigram = dict(zip(names, best, strict=True)).get("unigram")  # (a, b) of its class
        if unigram is not None and unigram[1] > 0:
            goal = LIMITS.half * float(unigram[1])
            events["match"] = self._rise(self.match, goal, "the match over its value on the unigram plateau")
        first = 2 * float(self.previous[0])
        events["lag"] = self._rise(self.previous, first, "attention on the token before over its start")
        events["onset"] = self._rise(self.previous, LIMITS.half, "attention on the token before")
        return events

    def _rise(self, curve: np.ndarray, level: float, rule: str) -> Event:
        return crossing(self.time, curve, level, rising=True, error=LIMITS.solver * level, how=rule)

    def event_time(self, name: str) -> tuple[float | None, float]:
        """When an event was, and half of its interval."""
        event = self.events.get(name, Event.missing())
        half = 0.0 if event.interval is None else (event.interval[1] - event.interval[0]) / 2
        return event.time, half

    @property
    def t2(self) -> float | None:
        return self.event_time("t2")[0]

    @cached_property
    def plateau_between(self) -> Rest | None:
        """The plateau between t_1 and t_2: where the loss falls least in a unit of ln t."""
        names, losses = self.levels.names, self.levels.losses
        if "unigram" not in names or no_ladder(losses) is not None:
            return None
        return plateaus(self.time, self.loss, losses)[names.index("unigram") - 1]

    def stages(self, status: str) -> Stages:
        """Events, and a stage for every stretch in which one strategy is the nearest."""
        names, stages = self.strategies.names, []
        for first, last in self.stretches:
            place = int(self.nearest[first])
            least = first + int(np.argmin(self.divergences[first : last + 1, place]))
            kl = {name: max(0.0, float(value)) for name, value in zip(names, self.divergences[least], strict=True)}
            begin, stop = self.time[self.compared[first]], self.time[self.compared[last + 1 :]]
            words = ", ".join(f"{name} {value:.2g}" for name, value in kl.items())
            facts = {"strategy": names[place], "kl": kl, "clear": bool(self.clear[least])}
            end = float(stop[0]) if stop.size else None
            stages.append(Stage(names[place], float(begin), end, f"least KL from {words}", facts=facts))
        events = self._events("step" not in self.run.clock)
        notes = {name: self._why_missing(name, event) for name, event in events.items() if event.time is None}
        return Stages.of(status, self.run.clock, events, tuple(stages), notes)

    def _why_missing(self, name: str, event: Event) -> str:
        end = f"{self.run.clock}={self.time[-1]:.4g}"
        if event.state == "at the start":
            return "it holds at the start already"
        if name == "lag":
            return f"attention on the token before is {self.previous.max() / self.previous[0]:.2f} times its start by {end}"
        if name == "onset":
            return f"attention on the token before is {self.previous.max():.2f} by {end}"
        if name == "match":
            return event.how
        return f"the least loss is {self.loss.min():.4g} by {end}; {event.how}"
