"""The losses of focus and dilution: TokenAttention on contexts of a chain that are infinitely long, finite or sampled."""

import math
from abc import abstractmethod
from bisect import bisect_left
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from types import ModuleType
from typing import Any, Literal, Self

import numpy as np
from pydantic import Field as Limits
from pydantic import SerializeAsAny, model_validator

from stagescope.core.errors import InputError
from stagescope.core.params import Layout, Params, key
from stagescope.core.spec import Described, Spec
from stagescope.flow.field import Compiled, FlatField, Found, Objective, OfModel, TaylorField, flat_field
from stagescope.papers.focus_dilution.model import TokenAttention
from stagescope.processes.markov_chain import Chain, Start

# Focus and dilution in the limit of long contexts: the exact population loss of TokenAttention on a chain.

BLOCKS = ("W0", "W1", "WQ", "WK")
MOST_BY_LOOPS = 16
"""Tokens up to which loops over all pairs are the fastest way; with more, a gradient is computed by blocks of queries."""


class TokenLoss(OfModel, Described, Objective):
    """A loss of TokenAttention on a chain; the forms differ in the contexts they average over [FD:model]."""

    model: TokenAttention
    process: SerializeAsAny[Chain]

    @model_validator(mode="after")
    def _fits(self) -> "TokenLoss":
        if self.model.vocab != self.process.vocab:
            raise ValueError(f"model vocabulary {self.model.vocab} differs from the chain's {self.process.vocab} tokens")
        return self

    @abstractmethod
    def _kernel(self, params: Params) -> Found:
        """The loss and its gradient."""

    def value(self, params: Params) -> float:
        return self._kernel(params)[0]

    def grad(self, params: Params) -> dict[str, np.ndarray]:
        return self._kernel(params)[1]


class TokenPopulation(TokenLoss):
    """L = - sum_i pi_i sum_k P_ik log softmax(A_i W0 W1)_k, counts replaced by pi (s -> infinity) [FD:population].

    `kernel` computes the gradient; the two differ in rounding. It is by blocks above 16 tokens, and only there is it in a spec:
    runs of more tokens that were begun before there was a choice go on as they began.

    Args:
        model: the attention.
        process: the chain.
        kernel: how the gradient is computed.

    Examples:
        >>> law = ss.TokenPopulation(model=model, process=chain)
        >>> print(f"{law.value(model.init(seed=0, scale=1e-3)):.4f}")
        1.0986
    """

    kernel: Literal["plain", "blocked"] = Limits(
        default_factory=lambda fields: "plain" if fields["model"].vocab <= MOST_BY_LOOPS else "blocked"
    )

    def describe(self) -> Spec:
        description = super().describe()
        return description if self.kernel != "plain" else {name: value for name, value in description.items() if name != "kernel"}

    @classmethod
    def restored(cls, fields: Spec) -> Self:
        return super().restored({"kernel": "plain", **fields})

    @property
    def data(self) -> Any:
        return {"pi": self.process.stationary, "transition": self.process.transition, "scale": self.model.scale}

    def loss(self, params: Any, data: Any) -> Any:
        from stagescope.flow.autodiff import jax, jnp

        w0 = params["W0"]
        scores = data["scale"] * (w0 @ params["WQ"]) @ (w0 @ params["WK"]).T
        attention = jax.nn.softmax(scores + jnp.log(data["pi"]), axis=1)
        predicted = jax.nn.log_softmax(attention @ w0 @ params["W1"], axis=1)
        return -jnp.sum(data["pi"][:, None] * data["transition"] * predicted)

    def _kernel(self, params: Params) -> Found:
        layout = Layout.of({name: params[name] for name in BLOCKS})
        out = np.empty(layout.size)
        return self._module.gradient(layout.pack(params), out, self._held.copy()), layout.unpack(out)

    def flat(self, layout: Layout, rates: Mapping[str, float]) -> Compiled:
        """The kernel with everything but parameters bound; each has its own work space."""
        from stagescope.flow.compiled import direct

        buffer = self._held.copy()
        buffer[self._module.WEIGHTS] = [-rates[name] for name in BLOCKS]
        return direct(self._module.gradient, layout.size, buffer)

    def taylor(self, layout: Layout) -> TaylorField:
        """Taylor terms of -grad L along lines, without JAX."""
        if self.model.vocab > MOST_BY_LOOPS:
            from stagescope.papers.focus_dilution.taylor import many_lines as along_lines
        else:
            from stagescope.papers.focus_dilution.taylor import along_lines

        return along_lines(self._sizes, self.model.scale, self.process.stationary, self.process.transition)

    @property
    def _sizes(self) -> tuple[int, int, int]:
        """Tokens, width and key width."""
        return (*self.model.shapes["W0"], self.model.shapes["WQ"][1])

    @property
    def _module(self) -> ModuleType:
        if self.kernel == "plain":
            from stagescope.papers.focus_dilution import kernel
        else:
            from stagescope.papers.focus_dilution import blocked_kernel as kernel
        return kernel

    @cached_property
    def _held(self) -> np.ndarray:
        return self._module.hold(self._sizes, self.model.scale, self.process.stationary, self.process.transition)


# Focus and dilution on contexts of finite length: a context enters only through its counts and its last token.

Steps = Callable[[np.ndarray, np.ndarray, int, int], int]
"""(parameters, momentum buffer, first step, how many) -> steps that stayed finite; both vectors are changed in place."""


@dataclass(frozen=True)
class Contexts:
    """Contexts sorted by their query: `counts` (d, S), those of query i from `starts[i]` to `starts[i + 1]`, and
    `weights` (d, S), the joint probability of a context and the token after it."""

    counts: np.ndarray
    weights: np.ndarray
    starts: np.ndarray

    @classmethod
    def of(cls, counts: np.ndarray, query: np.ndarray, weights: np.ndarray) -> "Contexts":
        """From rows (S, d) in any order."""
        order = np.argsort(query, kind="stable")
        starts = np.searchsorted(query[order], np.arange(counts.shape[1] + 1))
        return cls(np.ascontiguousarray(counts[order].T, dtype=float), np.ascontiguousarray(weights[order].T), starts)

    @cached_property
    def mass(self) -> np.ndarray:
        """The probability of each context (S,)."""
        return self.weights.sum(axis=0)

    @property
    def query(self) -> np.ndarray:
        return np.repeat(np.arange(len(self.counts)), np.diff(self.starts))

    def arrays(self) -> dict[str, Any]:
        """What the JAX definition reads, one context a row; a token that is absent has log count -inf, attention zero."""
        return context_arrays(self.counts.T, self.query, self.weights.T)


def context_arrays(counts: np.ndarray, query: np.ndarray, weights: np.ndarray) -> dict[str, Any]:
    """The data of `contexts_loss`."""
    from stagescope.flow.autodiff import jnp

    with np.errstate(divide="ignore"):
        logs = np.log(counts)
    return {"log_counts": jnp.asarray(logs), "query": jnp.asarray(query), "weights": jnp.asarray(weights)}


def contexts_loss(scale: float, params: Any, data: Any) -> Any:
    """- sum_(n,i) sum_k p(n, i, k) log softmax(A(n, i) W0 W1)_k with A_j ~ n_j exp(Phi_ij), in JAX [FD:finite]."""
    from stagescope.flow.autodiff import jax, jnp

    w0 = params["W0"]
    scores = scale * (w0 @ params["WQ"]) @ (w0 @ params["WK"]).T
    attention = jax.nn.softmax(scores[data["query"]] + data["log_counts"], axis=1)
    predicted = jax.nn.log_softmax(attention @ (w0 @ params["W1"]), axis=1)
    return -jnp.sum(data["weights"] * predicted)


def context_slopes(scores: np.ndarray, logits: np.ndarray, contexts: Contexts) -> tuple[float, np.ndarray, np.ndarray]:
    """The loss and its derivatives in Phi and M = W0 W1."""
    from stagescope.papers.focus_dilution.kernel import context_loss

    d_scores, d_logits = np.empty_like(scores), np.empty_like(logits)
    arrays = (contexts.counts, contexts.weights, contexts.mass, contexts.starts)
    return context_loss(*arrays, scores, logits, d_scores, d_logits), d_scores, d_logits


class TokenCounts(TokenLoss):
    """L = - sum_(n,i) sum_k p(n, i, k) log softmax(A(n, i) W0 W1)_k with A_j ~ n_j exp(Phi_ij) [FD:finite].

    A subclass gives the contexts, and a minibatch of them for each step where it is stochastic.
    """

    @cached_property
    @abstractmethod
    def contexts(self) -> Contexts:
        """The contexts that `value` and `grad` are over."""

    def minibatch(self, step: int) -> Contexts | None:
        """The contexts of one step, None where every step sees all of them."""
        return None

    @cached_property
    def _arrays(self) -> Any:
        return self.contexts.arrays()

    @property
    def data(self) -> Any:
        return self._arrays

    def draw(self, step: int) -> Any:
        batch = self.minibatch(step)
        return None if batch is None else batch.arrays()

    def loss(self, params: Any, data: Any) -> Any:
        return contexts_loss(self.model.scale, params, data)

    def slopes(self, params: Params) -> tuple[np.ndarray, np.ndarray]:
        """GM = dL/dM for M = W0 W1, and GP = scale dL/dPhi, as in the reduced family."""
        derivatives = context_slopes(self.model.scores(params), params["W0"] @ params["W1"], self.contexts)
        return derivatives[2], self.model.scale * derivatives[1]

    def _kernel(self, params: Params, contexts: Contexts | None = None) -> Found:
        """The kernel's derivatives in Phi and M = W0 W1, taken back to the four blocks; of all contexts unless some are given."""
        w0, w1, wq, wk = (np.asarray(params[name], dtype=float) for name in BLOCKS)
        query, key, scale = w0 @ wq, w0 @ wk, self.model.scale
        loss, d_scores, d_logits = context_slopes(scale * query @ key.T, w0 @ w1, contexts or self.contexts)
        d_query, d_key = scale * d_scores @ key, scale * d_scores.T @ query
        d_w0 = d_logits @ w1.T + d_query @ wq.T + d_key @ wk.T
        return loss, {"W0": d_w0, "W1": w0.T @ d_logits, "WQ": w0.T @ d_query, "WK": w0.T @ d_key}

    def flat(self, layout: Layout, rates: Mapping[str, float]) -> FlatField:
        return flat_field(self._kernel, layout, rates)

    def fused(self, layout: Layout, decay: float, lr: Mapping[str, float]) -> Steps:
        """Steps with the kernel: memory <- decay memory + gradient, theta_b <- theta_b - lr_b memory_b."""
        rates = layout.pack({name: np.full(shape, lr[name]) for name, shape in layout.shapes})

        @np.errstate(over="ignore", invalid="ignore")  # a divergence is reported once, as the outcome
        def steps(theta: np.ndarray, memory: np.ndarray, first: int, count: int) -> int:
            for done in range(count):
                gradient = self._kernel(layout.unpack(theta), self.minibatch(first + done))[1]
                memory *= decay
                memory += layout.pack(gradient)
                theta -= rates * memory
                if not np.max(np.abs(theta)) < 1e15:  # a parameter beyond this has diverged
                    return done
            return count

        return steps


# The exact law of a finite context of a chain: (token counts, last token), by a dynamic programme over counts [FD:finite].
#
# Counts other than the last token's own run over the compositions of s - 1 into d parts. They are listed by their tails
# r_k = n_k + ... + n_d, smallest r_2 first, then r_3, ...: the place of a composition depends on its tails alone, so those of
# every shorter context are the first rows of the list, and the place after one more token is the own place plus binomials.

MOST_NUMBERS = 2**24
"""Largest states x tokens: two such arrays of float64 are kept, .27 GB."""


@dataclass(frozen=True)
class ContextLaw:
    """p(n, i): `earlier` (C, d) are the counts of the tokens before the last one, `probability` (C, d) is that of
    counts earlier + e_i with last token i."""

    earlier: np.ndarray
    probability: np.ndarray


def state_count(vocab: int, length: int) -> int:
    """d x C(s + d - 2, d - 1): the pairs (n, i) with sum n = s and n_i >= 1."""
    return vocab * math.comb(length + vocab - 2, vocab - 1)


def context_law(chain: Chain, length: int, start: Start = "stationary") -> ContextLaw:
    """p_1(0, i) = start_i; p_{t+1}(m, j) = sum_i p_t(m - e_i, i) P_ij, where m counts the tokens before the last [FD:finite]."""
    check_size(chain.vocab, length)
    tails = _tails(length - 1, chain.vocab)
    after = _places(tails, length)
    p = chain.initial(start)[None, :]
    for t in range(1, length):
        longer = np.zeros((math.comb(t + chain.vocab - 1, chain.vocab - 1), chain.vocab))
        for i, row in enumerate(chain.transition):
            longer[after[: len(p), i]] += p[:, i, None] * row
        p = longer
    ends = np.hstack([np.full((len(tails), 1), length - 1), tails, np.zeros((len(tails), 1), dtype=int)])
    return ContextLaw(ends[:, :-1] - ends[:, 1:], p)


def check_size(vocab: int, length: int) -> None:
    """Refuse a law that would not fit in memory or take too long, before anything is made."""
    if _fits(vocab, length):
        return
    longest = bisect_left(range(1, 2**15), True, key=lambda tokens: not _fits(vocab, tokens))  # two tokens: up to 20,000
    size = math.log10(state_count(vocab, length))
    states = f"{10**size:.3g}" if size < 15 else f"1e{size:.0f}"
    limit = f"at most {MOST_NUMBERS // vocab:.3g} states" + (f" and length {longest}" if longest else "")
    remedy = "use a shorter length" if longest else "use fewer tokens"
    has = f"the exact law of contexts of length {length} has {states} states"
    raise InputError(f"{has}, but {limit} are summed for {vocab} tokens; {remedy} or the sampled form")


def _fits(vocab: int, length: int) -> bool:
    states = state_count(vocab, length)
    return states * vocab <= MOST_NUMBERS and states * length <= 8e8  # the programme takes about ten seconds


def _tails(total: int, parts: int) -> np.ndarray:
    """(r_2, ..., r_d) with total >= r_2 >= ... >= r_d >= 0, in lexicographic order."""
    tails = np.arange(total + 1)[:, None]
    for _ in range(parts - 2):
        counts = tails[:, -1] + 1
        begin = np.repeat(np.cumsum(counts) - counts, counts)
        tails = np.hstack([np.repeat(tails, counts, axis=0), (np.arange(counts.sum()) - begin)[:, None]])
    return tails


def _places(tails: np.ndarray, length: int) -> np.ndarray:
    """Where each composition goes when token i joins it (C, d).

    A composition is preceded by sum_k C(r_k + d - k, d - k + 1) others; token i raises r_2 ... r_i by one, and each of
    these terms by C(r_k + d - k, d - k).
    """
    vocab = tails.shape[1] + 1
    steps = [np.array([math.comb(r + vocab - k, vocab - k) for r in range(length)]) for k in range(2, vocab + 1)]
    raised = np.stack([np.zeros(len(tails), dtype=int), *(step[tails[:, k]] for k, step in enumerate(steps))], axis=1)
    return np.arange(len(tails))[:, None] + np.cumsum(raised, axis=1)


# Focus and dilution at a finite context length, exactly: the sum over all counts and last tokens of a chain.


class TokenFinite(TokenCounts):
    """L = - sum_(n,i) p(n, i) sum_k P_ik log softmax(A(n, i) W0 W1)_k over contexts of `length` tokens [FD:finite].

    p is the law of counts and last token of a context started from the stationary or the uniform law; A_j ~ n_j exp(Phi_ij).

    Args:
        model: the attention.
        process: the chain.
        length: tokens of a context.
        start: law of the first token.

    Examples:
        >>> short = ss.TokenFinite(model=model, process=chain, length=4)
        >>> print(f"{short.value(model.init(seed=0, scale=1e-3)):.4f}")
        1.0986
    """

    length: int = Limits(ge=1)
    start: Start = "stationary"

    @model_validator(mode="after")
    def _small_enough(self) -> "TokenFinite":
        check_size(self.process.vocab, self.length)
        return self

    @cached_property
    def contexts(self) -> Contexts:
        law, d = context_law(self.process, self.length, self.start), self.process.vocab
        p = law.probability.T
        possible = p > 0  # a chain with forbidden steps never has some of its counts
        counts, weights = (np.empty((d, np.count_nonzero(possible))) for _ in range(2))
        starts = np.concatenate([[0], np.cumsum(np.count_nonzero(possible, axis=1))])
        for i in range(d):
            columns = slice(starts[i], starts[i + 1])
            counts[:, columns] = law.earlier[possible[i]].T
            counts[i, columns] += 1
            weights[:, columns] = self.process.transition[i][:, None] * p[i, possible[i]]
        return Contexts(counts, weights, starts)


# Focus and dilution on sampled sequences, kept as counts, last token and the token after it.


class TokenSampled(TokenCounts):
    """Mean cross-entropy of the token after each of `sequences` contexts of `length` tokens, drawn once [FD:sampled].

    With `batch`, each step of a descent sees that many of the sequences, drawn without repetition from (seed, step); `value`
    and `grad`, and so the recorded loss, are always over all of them. A flow has no steps and refuses a batch.

    Args:
        model: the attention.
        process: the chain.
        sequences: contexts that are drawn.
        length: tokens of a context.
        seed: of the draw.
        batch: contexts in a step; None takes all.
        start: law of the first token.

    Examples:
        >>> law = ss.TokenSampled(model=model, process=chain, sequences=20, length=8)
        >>> print(f"{law.value(model.init(seed=0, scale=1e-3)):.4f}")
        1.0986
    """

    sequences: int = Limits(ge=1)
    length: int = Limits(ge=1)
    seed: int = Limits(default=0, ge=0, lt=2**63)
    batch: int | None = Limits(default=None, ge=1)
    start: Start = "stationary"

    @model_validator(mode="after")
    def _sizes(self) -> "TokenSampled":
        if self.batch is not None and self.batch > self.sequences:
            raise ValueError(f"batch {self.batch} is larger than the {self.sequences} sequences; lower it or draw more sequences")
        numbers, draws = 2**24, 2**32  # about 1 GB while equal contexts are merged; about two minutes
        if self.sequences * self.process.vocab > numbers:
            largest, d = numbers // self.process.vocab, self.process.vocab
            raise ValueError(f"{self.sequences} sequences of {d} tokens are too many to keep in memory; use at most {largest}")
        at_once = max(self.sequences, 1000)  # a place of few sequences takes as long as one of a thousand
        if at_once * self.length > draws:
            request, largest = f"{self.sequences:,} sequences of length {self.length:,}", draws // at_once
            raise ValueError(f"{request} would take long to draw; use a length of at most {largest:,}, or fewer sequences")
        return self

    @cached_property
    def sample(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Counts (N, d), last token and target (N,) of every sequence."""
        return self.process.sample_counts(key(self.seed, "sequences"), self.sequences, self.length, self.start)

    @cached_property
    def contexts(self) -> Contexts:
        """Equal contexts are one, with the share of each token that follows them as weights."""
        counts, last, target = self.sample
        rows, context_index = np.column_stack([last, counts]), np.empty(self.sequences, int)
        order = np.lexsort(rows.T[::-1])  # as np.unique(rows, axis=0), in a sixth of its time
        rows = rows[order]
        new = np.append(True, np.any(rows[1:] != rows[:-1], axis=1))
        rows, context_index[order] = rows[new], np.cumsum(new) - 1
        weights = np.zeros((len(rows), self.process.vocab))
        np.add.at(weights, (context_index, target), 1 / self.sequences)
        return Contexts.of(rows[:, 1:], rows[:, 0], weights)

    def minibatch(self, step: int) -> Contexts | None:
        if self.batch is None:
            return None
        indices = key(self.seed, "batch", step).choice(self.sequences, self.batch, replace=False, shuffle=False)
        counts, last, target = (values[indices] for values in self.sample)
        weights = np.zeros((self.batch, self.process.vocab))
        weights[np.arange(self.batch), target] = 1 / self.batch
        return Contexts.of(counts, last, weights)


# What a sample of pairs leaves open: the same model on infinitely long contexts, with other draws of (last token, next).


class TokenPairs(TokenCounts):
    """L = - sum_ik J_ik log softmax(A_i W0 W1)_k with counts replaced by pi; J is the law of `sequences` pairs drawn from P.

    Of a sample of long contexts, the pairs (last token, token after it) vary most from draw to draw [FD:sampled].
    """

    sequences: int = Limits(ge=1)
    seed: int = Limits(default=0, ge=0, lt=2**63)

    @cached_property
    def contexts(self) -> Contexts:
        pi, d = self.process.stationary, self.process.vocab
        joint = (pi[:, None] * self.process.transition).ravel()
        pair_counts = key(self.seed, "pairs").multinomial(self.sequences, joint / joint.sum()).reshape(d, d)
        return Contexts.of(np.tile(pi, (d, 1)), np.arange(d), pair_counts / self.sequences)
