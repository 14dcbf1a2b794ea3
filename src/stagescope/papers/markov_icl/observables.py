"""Observables of two layers on in-context chains: attention by lag, match, KL of each strategy to the model."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from stagescope.errors import InputError
from stagescope.fields.softmax import log_softmax
from stagescope.papers.markov_icl.finite import FiniteExact, FiniteLoss
from stagescope.papers.markov_icl.levels import Levels, levels
from stagescope.papers.markov_icl.loss import InContext, LinearPopulation
from stagescope.papers.markov_icl.model import LinearMatch
from stagescope.papers.markov_icl.sequences import causal, pairs_before, strategies
from stagescope.papers.markov_icl.windows import SoftmaxPopulation, TwoHeadPopulation
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
