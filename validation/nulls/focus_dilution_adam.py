"""Runs drawn by seed on which the claims about normalised steps are tried: chains and contexts, and nulls.

Runs have 64 neurons and columns of queries and keys at scale 1, and a step size (256/64)^(2/3) times the published one, so that
sizes go as published. Those of 256 neurons have 8 columns: one then counts for 32, which `scale` and `eps` make up for. A null is
the run of another optimiser, start or chain shown under the spec of the first, or frames that no training makes: warped in time,
straight from start to end, stopped.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from stagescope.claims.inputs import Inputs
from stagescope.core.errors import InputError
from stagescope.core.params import Params
from stagescope.flow.descent import Adam, Descent
from stagescope.flow.evolve import evolve
from stagescope.flow.record import Uniform
from stagescope.papers.focus_dilution.evidence_adam import path_rate
from stagescope.papers.focus_dilution.head_prediction import head_curves
from stagescope.papers.focus_dilution.loss import TokenFinite, TokenLoss, TokenPopulation
from stagescope.papers.focus_dilution.model import LazyChain, TokenAttention
from stagescope.papers.focus_dilution.observables import token_curves
from stagescope.papers.focus_dilution.stages import row_cycles
from stagescope.processes.markov_chain import Chain, MarkovChain
from stagescope.runs.run import Run

FRAMES, LENGTH = 400, 24
NARROW, WIDE = (64, 64), (256, 8)
"""Width and key width."""
TRIES = 40
"""Other starts that are tried until one is predicted to have other rows in focus."""


@dataclass(frozen=True)
class Training:
    """A chain, contexts and an optimiser."""

    chain: Chain
    seed: int
    steps: int = 900
    size: tuple[int, int] = NARROW
    smaller: float = 1.0
    length: int | None = None
    optimizer: Adam = Adam()  # noqa: RUF009 (frozen)
    gradient: float | None = None

    @property
    def law(self) -> TokenLoss:
        """As if there were as many columns as neurons, and scores of scale 1."""
        width, keys = self.size
        model = TokenAttention(vocab=self.chain.vocab, width=width, key_width=keys, scale=width / keys)
        if self.length is None:
            return TokenPopulation(model=model, process=self.chain)
        return TokenFinite(model=model, process=self.chain, length=self.length, start="uniform")

    @property
    def descent(self) -> Descent:
        width, keys = self.size
        optimizer = self.optimizer.model_copy(update={"eps": self.optimizer.eps * width / keys})
        return Descent(optimizer=optimizer, lr=self.gradient or 1.5e-4 * (256 / width) ** (2 / 3), steps=self.steps)

    @property
    def sigma(self) -> float:
        return 1 / (self.smaller * self.size[0])

    def run(self) -> Run:
        law = self.law
        start = law.model.init(self.seed, self.sigma)
        return evolve(law, start, self.descent, record=Uniform(frames=FRAMES), seed=self.seed, progress=False)

    def shown_as(self, other: "Training") -> Run:
        """The run as if it had been made by another training."""
        run = self.run()
        spec = {**run.spec, "field": other.law.describe(), "dynamics": other.descent.describe()}
        return replace(run, spec=spec, seed=other.seed, memo={})


def _law(rng: np.random.Generator, most: int, gap: float = 0.0) -> np.ndarray:
    """Dirichlet(2) on 3 to `most` tokens, most frequent first by at least `gap`."""
    while True:
        pi = np.sort(rng.dirichlet(np.full(int(rng.integers(3, most + 1)), 2.0)))[::-1]
        if pi[0] - pi[1] > gap and pi[-1] > 0.01:
            return pi


def _lazy(pi: np.ndarray, persistence: float) -> LazyChain:
    return LazyChain(pi=tuple(pi.tolist()), persistence=persistence)


def long_contexts(seed: int, gap: float = 0.0) -> Training:
    """Lazy, general or mixed chains of 3 to 6 tokens in long contexts."""
    rng = np.random.default_rng([seed, 20])
    lazy = _lazy(_law(rng, 6, gap), float(rng.uniform(0.3, 0.9)))
    kind = int(rng.integers(3))
    if kind == 0 or gap:
        return Training(lazy, seed, size=WIDE)
    general = rng.dirichlet(np.ones(lazy.vocab), size=lazy.vocab)
    rows = general if kind == 1 else (lazy.transition + general) / 2
    return Training(MarkovChain(rows=tuple(tuple(row) for row in rows.tolist())), seed, size=WIDE)


def clear_lead(seed: int) -> Training:
    """Lazy chains of 3 to 6 tokens with pi_0 - pi_1 above .2 and persistence .6 to .9 in long contexts."""
    rng = np.random.default_rng([seed, 21])
    return Training(_lazy(_law(rng, 6, 0.2), float(rng.uniform(0.6, 0.9))), seed)


def short_contexts(seed: int) -> Training:
    """Lazy chains of 3 tokens, persistence .5 to .8, in contexts of 24 tokens with a uniform first one."""
    rng = np.random.default_rng([seed, 22])
    return Training(_lazy(_law(rng, 3, 0.1), float(rng.uniform(0.5, 0.8))), seed, steps=1200, length=LENGTH)


def long_focus(seed: int) -> Training:
    """Lazy chains of 3 to 6 tokens with pi_0 - pi_1 above .2 and persistence .2 to .5 in long contexts: rows stay in focus."""
    rng = np.random.default_rng([seed, 25])
    return Training(_lazy(_law(rng, 6, 0.2), float(rng.uniform(0.2, 0.5))), seed, size=WIDE)


def small_gap(seed: int) -> Training:
    """Lazy chains of 3 to 5 tokens whose two most frequent ones differ by less than .05, in long contexts."""
    rng = np.random.default_rng([seed, 26])
    while True:
        pi = _law(rng, 5)
        if pi[0] - pi[1] < 0.05:
            return Training(_lazy(pi, float(rng.uniform(0.3, 0.9))), seed, size=WIDE)


def small_start(seed: int) -> Training:
    """Lazy chains of 3 or 4 tokens from a start 30 to 200 times smaller than 1/m."""
    rng = np.random.default_rng([seed, 23])
    chain = _lazy(_law(rng, 4, 0.1), float(rng.uniform(0.3, 0.9)))
    return Training(chain, seed, steps=1500, smaller=float(np.exp(rng.uniform(np.log(30), np.log(200)))))


def long_run(seed: int) -> Training:
    """Lazy chains of 3 or 4 tokens in long contexts, for 2500 steps."""
    rng = np.random.default_rng([seed, 24])
    chain = _lazy(_law(rng, 4), float(rng.uniform(0.5, 0.9)))
    return Training(chain, seed, steps=2500)


def _made(draw: Callable[[int], Training], seed: int) -> Run:
    return draw(seed).run()


# Nulls.


def _other_start(draw: Callable[[int], Training], seed: int) -> Run:
    """The first frame is the start of another seed."""
    drawn = draw(seed)
    run, other = drawn.run(), drawn.law.model.init(seed + 1_000_000, drawn.sigma)
    params = {name: np.concatenate([other[name][None], run.params[name][1:]]) for name in run.params}
    return replace(run, params=params, memo={})


def _at_steps(run: Run, steps: np.ndarray) -> Run:
    """A run whose frame k has the parameters and the loss that it has at `steps[k]`, straight between frames."""
    time = run.step.astype(float)
    where = np.clip(np.searchsorted(time, steps) - 1, 0, len(time) - 2)
    share = np.clip((steps - time[where]) / (time[where + 1] - time[where]), 0.0, 1.0)
    params = {}
    for name in run.params:
        block = np.asarray(run.params[name])
        weight = share.reshape(-1, *(1,) * (block.ndim - 1))
        params[name] = (1 - weight) * block[where] + weight * block[where + 1]
    return replace(run, params=params, series={**run.series, "loss": np.interp(steps, time, run.series["loss"])}, memo={})


def _warped(draw: Callable[[int], Training], seed: int) -> Run:
    """Every state is true, and comes 1.15 times too late."""
    run = draw(seed).run()
    return _at_steps(run, run.step / 1.15)


def _late(draw: Callable[[int], Training], seed: int) -> Run:
    """Queries and keys wait for the transition matrix: they come later by a share that grows with persistence, .1 to .5.

    Where row i leads to token i with probability P_ii, what there is to learn from the last token is sum_i pi_i (P_ii - pi_i).
    """
    drawn = draw(seed)
    run, pi = drawn.run(), drawn.chain.stationary
    informed = float(pi @ (np.diag(drawn.chain.transition) - pi)) / float(1 - pi @ pi)
    slow = _at_steps(run, run.step / (1.1 + 0.4 * max(informed, 0.0)))
    return replace(run, params={name: (slow if name in ("WQ", "WK") else run).params[name] for name in run.params}, memo={})


def _growing_keys(seed: int) -> Run:
    """From the first total focus on keys keep growing, by a factor of itself in as many steps: attention never lets go."""
    run = clear_lead(seed).run()
    ups = [cycle.up for cycle in row_cycles(token_curves(run)) if cycle.up is not None]
    first = float(np.median(ups)) if ups else run.step[-1] / 4
    keys = np.array(run.params["WK"])
    at = int(np.searchsorted(run.step, first))
    factor = np.maximum(run.step / first, 1.0)[:, None, None] ** 2
    params = {name: run.params[name] for name in run.params}
    held = np.asarray(run.params["WQ"])
    queries = np.concatenate([held[:at], np.repeat(held[at : at + 1], len(held) - at, axis=0)])
    keys = np.concatenate([keys[:at], np.repeat(keys[at : at + 1], len(keys) - at, axis=0)]) * factor
    return replace(run, params={**params, "WQ": queries, "WK": keys}, memo={})


def _other_rows(seed: int) -> Run:
    """At a small gap pi_0 - pi_1, below .05: the first frame is a start whose head model names other rows."""
    named = small_gap(seed)
    run, law = named.run(), named.law
    own = _focused(law, named.law.model.init(seed, named.sigma), named)
    starts = (law.model.init(other, named.sigma) for other in range(seed + 1_000_000, seed + 1_000_000 + TRIES))
    start = next((start for start in starts if _focused(law, start, named) not in ((), own)), None)
    if start is None:
        raise InputError(f"{TRIES} starts have the same rows in focus")
    params = {name: np.concatenate([start[name][None], run.params[name][1:]]) for name in run.params}
    return replace(run, params=params, memo={})


def _focused(law: TokenLoss, start: Params, named: Training) -> tuple[int, ...]:
    return tuple(cycle.row for cycle in row_cycles(head_curves(law, start, named.descent)) if cycle.up is not None)


def _stopped(draw: Callable[[int], Training], seed: int) -> Run:
    """The run stands still from its first total focus on."""
    run = draw(seed).run()
    ups = [cycle.up for cycle in row_cycles(token_curves(run)) if cycle.up is not None]
    return _at_steps(run, np.minimum(run.step, 1.05 * np.median(ups) if ups else run.step[-1] / 4))


def _straight(draw: Callable[[int], Training], seed: int) -> Run:
    """Parameters go straight from the start to the end."""
    run = draw(seed).run()
    share = run.step / run.step[-1]
    blocks = {name: np.asarray(run.params[name]) for name in run.params}
    params = {
        name: block[:1] + share.reshape(-1, *(1,) * (block.ndim - 1)) * (block[-1:] - block[:1]) for name, block in blocks.items()
    }
    return replace(run, params=params, memo={})


def _gradients(seed: int) -> Run:
    """The end of the path: eps 1 and steps of .05 times the mean gradient, shown as Adam with its usual eps."""
    named = clear_lead(seed)
    made = replace(named, optimizer=Adam(eps=1.0), gradient=path_rate(named.descent, 1.0), steps=1500)
    return made.shown_as(replace(named, steps=1500))


def _growing(seed: int) -> Run:
    """From the first total focus on embeddings of rare tokens grow by a quarter in as many steps: they do not stand still."""
    run = long_focus(seed).run()
    curves = token_curves(run)
    ups = [cycle.up for cycle in row_cycles(curves) if cycle.up is not None]
    first = float(np.median(ups)) if ups else run.step[-1] / 4
    factor = 1 + 0.25 * np.clip(run.step / first - 1, 0.0, None)
    w0 = np.array(run.params["W0"])
    rare = np.arange(w0.shape[1]) != curves.frequent
    w0[:, rare] *= factor[:, None, None]
    return replace(run, params={name: w0 if name == "W0" else run.params[name] for name in run.params}, memo={})


def _other_persistence(seed: int) -> Run:
    """The same pi and another persistence: rows that look at one token have other means."""
    made = long_run(seed)
    assert isinstance(made.chain, LazyChain)
    kept = made.chain.persistence
    named = kept - 0.25 if kept > 0.7 else kept + 0.2
    return made.shown_as(replace(made, chain=LazyChain(pi=made.chain.pi, persistence=named)))


def _opened(seed: int) -> Run:
    """The same small start without eps: attention opens; shown with the eps below which it would not."""
    named = small_start(seed)
    return replace(named, optimizer=Adam(eps=1e-30)).shown_as(named)


def _shuffled(seed: int) -> Run:
    """The most and the least frequent token change places in the law that is named."""
    made = long_contexts(seed, 0.3)
    pi = np.array(made.chain.stationary)
    pi[[0, -1]] = pi[[-1, 0]]
    assert isinstance(made.chain, LazyChain)
    return made.shown_as(replace(made, chain=_lazy(pi, made.chain.persistence)))


OTHER_START = Inputs("Adam, another start", "the first frame is another start", partial(_other_start, long_focus))
OTHER_START_SHORT = Inputs(
    "Adam, another start, short contexts", "the first frame is another start", partial(_other_start, short_contexts)
)
WARPED = Inputs("Adam, warped", "all states of a run, 1.15 times too late", partial(_warped, long_focus))
WARPED_SHORT = Inputs(
    "Adam, warped, short contexts", "all states of a run, 1.15 times too late", partial(_warped, short_contexts)
)
STRAIGHT = Inputs("Adam, straight", "parameters go straight from start to end", partial(_straight, long_focus))
STOPPED = Inputs("Adam, stopped", "the run stands still from its first focus on", partial(_stopped, clear_lead))
GRADIENTS = Inputs("Adam, gradients", "gradient descent with momentum, shown as Adam", _gradients)
GROWING = Inputs("Adam, growing rows", "embeddings of rare tokens grow while in focus", _growing)
OTHER_PERSISTENCE = Inputs("Adam, another persistence", "the same pi, P of another persistence", _other_persistence)
OPENED = Inputs("Adam, opened", "eps 1e-30 from a start that eps freezes, shown with that eps", _opened)
LATE = Inputs("Adam, late attention", "queries and keys wait the longer the more P tells", partial(_late, long_focus))
GROWING_KEYS = Inputs("Adam, growing keys", "keys grow on from the first focus", _growing_keys)
OTHER_ROWS = Inputs("Adam, small gap, another start", "the first frame is a start from which other rows focus", _other_rows)
SHUFFLED = Inputs("Adam, shuffled pi", "the law that is named exchanges the most and the least frequent token", _shuffled)

INPUTS: tuple[Inputs, ...] = tuple(
    Inputs(
        f"Adam, {name}",
        f"Adam: {(draw.__doc__ or '').partition('.')[0]}",
        partial(_made, draw),
        "FDA:",
    )
    for name, draw in (
        ("long contexts", long_contexts),
        ("clear lead", clear_lead),
        ("small gap", small_gap),
        ("long focus", long_focus),
        ("short contexts", short_contexts),
        ("small start", small_start),
        ("long run", long_run),
    )
)
NULLS: dict[str, tuple[Inputs, ...]] = {
    "FDA:signs": (OTHER_START, STRAIGHT),
    "FDA:rows": (STRAIGHT,),
    "FDA:offset": (SHUFFLED, OTHER_START),
    "FDA:blind": (WARPED, LATE),
    "FDA:total": (GRADIENTS, OTHER_ROWS),
    "FDA:head": (OTHER_START, WARPED, STRAIGHT),
    "FDA:drag": (STOPPED, GROWING_KEYS),
    "FDA:freeze": (GROWING,),
    "FDA:stall": (OTHER_PERSISTENCE,),
    "FDA:frozen": (OPENED,),
    "FDA:path": (GRADIENTS,),
    "FDA:cycles": (WARPED_SHORT, OTHER_START_SHORT),
}
