"""Runs drawn by seed on which the claims of focus and dilution are tried: chains of every kind, and nulls.

A null is a run on which a claim is false by construction. Flows of the model obey its theorems, so most nulls show a flow
under the law of another chain: what is predicted is then false by a known amount, and near enough that the claim is judged.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from stagescope.claims.inputs import Inputs
from stagescope.dynamics.evolve import evolve
from stagescope.dynamics.flow import GradientFlow
from stagescope.dynamics.record import Uniform
from stagescope.papers.focus_dilution.forms import attention_rate, condensation_rate
from stagescope.papers.focus_dilution.ladder.points import condensed_start, small_point
from stagescope.papers.focus_dilution.loss import TokenPopulation
from stagescope.papers.focus_dilution.model import TokenAttention
from stagescope.papers.focus_dilution.process import LazyChain, asymmetric_law
from stagescope.processes.markov_chain import Chain, MarkovChain
from stagescope.runs.run import Run

FRAMES, LONGEST = 600, 3e4
WIDTHS = ((4, 3), (8, 8))


@dataclass(frozen=True)
class Setting:
    """A chain, and how the flow on it starts."""

    chain: Chain
    scale: float
    eps: float
    width: int
    key_width: int
    seed: int

    def law(self, chain: Chain | None = None) -> TokenPopulation:
        chain = chain or self.chain
        model = TokenAttention(vocab=chain.vocab, width=self.width, key_width=self.key_width, scale=self.scale)
        return TokenPopulation(model=model, process=chain)

    @property
    def until(self) -> float:
        """Three times as long as the rates at (0,0), (1,0) and (1,1) need for E2; where nothing opens at (1,1), c/4 is taken."""
        law, c = self.law(), attention_rate(*_law(self.chain), self.scale)
        opening = small_point(law, condensed_start(law, 1e-3, float(np.sign(c))), 1, 1).opening
        rates = condensation_rate(self.chain.stationary), abs(c), abs(c) / 4 if opening is None else opening.rate
        return float(min(LONGEST, 3 * sum(np.log(1 / self.eps) / max(rate, 1e-9) for rate in rates)))

    def run(self, until: float | None = None) -> Run:
        law = self.law()
        start = law.model.init(self.seed, self.eps)
        until = self.until if until is None else until
        return evolve(law, start, GradientFlow(), until=until, record=Uniform(frames=FRAMES), seed=self.seed, progress=False)

    def shown_under(self, chain: Chain) -> Run:
        """The run as if it had been made on another chain."""
        run = self.run()
        return replace(run, spec={**run.spec, "field": self.law(chain).describe()}, memo={})


def _law(chain: Chain) -> tuple[np.ndarray, np.ndarray]:
    return chain.stationary, chain.transition


def _setting(seed: int, draw: Callable[[np.random.Generator], Chain]) -> Setting:
    """Scale of the scores .35 to 4 and start 1e-5 to 1e-3, both log-uniform; two widths, because each is compiled anew."""
    rng = np.random.default_rng(seed)
    chain = draw(rng)
    scale, eps = float(np.exp(rng.uniform(np.log(0.35), np.log(4)))), float(10 ** rng.uniform(-5, -3))
    width, key_width = WIDTHS[int(rng.integers(len(WIDTHS)))]
    return Setting(chain, scale, eps, width, key_width, seed)


def lazy_chain(rng: np.random.Generator) -> LazyChain:
    pi = rng.dirichlet(np.full(int(rng.integers(3, 8)), 2.0))
    return LazyChain(pi=tuple(pi.tolist()), persistence=float(rng.uniform(0.2, 0.8)))


def any_chain(rng: np.random.Generator) -> MarkovChain:
    d = int(rng.integers(3, 8))
    return MarkovChain(rows=tuple(tuple(row) for row in rng.dirichlet(np.ones(d), size=d).tolist()))


def almost_equal(rng: np.random.Generator) -> LazyChain:
    """One frequent token and rare ones that are equal, or differ by up to a tenth of their mean."""
    d, first = int(rng.integers(3, 7)), float(rng.uniform(0.35, 0.7))
    shape = rng.normal(size=d - 1)
    shape = (shape - shape.mean()) / np.abs(shape - shape.mean()).max()
    delta = float(rng.choice([0.0, 0.03, 0.1])) * (1 - first) / (d - 1)
    return LazyChain(pi=asymmetric_law(first, d, tuple(shape.tolist()), delta), persistence=float(rng.uniform(0.2, 0.7)))


def _lazy(seed: int) -> Run:
    return _setting(seed, lazy_chain).run()


def _any(seed: int) -> Run:
    return _setting(seed, any_chain).run()


def _almost_equal(seed: int) -> Run:
    found = _setting(seed, almost_equal)
    return replace(found, scale=max(found.scale, 1.0)).run()


def _other_law(seed: int) -> Run:
    """pi of the chain that is named is flatter or sharper, so that mu0 and the direction pi are other ones."""
    setting = _setting(seed, lazy_chain)
    pi, rng = setting.chain.stationary, np.random.default_rng([seed, 1])
    assert isinstance(setting.chain, LazyChain)
    order = np.argsort(pi)
    other = pi.copy()
    other[order[-1]], other[order[0]] = pi[order[0]], pi[order[-1]]  # the most and the least frequent token change places
    other = other ** float(rng.choice([0.6, 1.6]))
    return setting.shown_under(LazyChain(pi=tuple((other / other.sum()).tolist()), persistence=setting.chain.persistence))


def _other_persistence(seed: int) -> Run:
    """The same pi, so the same points (0,0) and (1,0); c is proportional to the persistence, and here off by 30 % or more."""
    setting = _setting(seed, lazy_chain)
    assert isinstance(setting.chain, LazyChain)
    kept = setting.chain.persistence
    other = kept * 0.6 if kept > 0.5 else min(kept * 1.7, 0.95)
    return setting.shown_under(LazyChain(pi=setting.chain.pi, persistence=other))


def _opposite(seed: int) -> Run:
    """The same pi and a negative persistence: the sign of c is the opposite."""
    setting = _setting(seed, lazy_chain)
    assert isinstance(setting.chain, LazyChain)
    least = min(setting.chain.pi)
    return setting.shown_under(LazyChain(pi=setting.chain.pi, persistence=-0.9 * least / (1 - least)))


def _walk(seed: int) -> Run:
    """Parameters that wander: random walks of every block from the start of a flow, as far as the flow's fastest block goes."""
    run, rng, knots = _setting(seed, lazy_chain).run(), np.random.default_rng([seed, 2]), 60
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


def _still_after(seed: int) -> Run:
    """A flow that stands still from E2 on: the second cycle cannot come."""
    run = _setting(seed, lazy_chain).run()
    values = np.linalg.svd(run.params["W0"], compute_uv=False)
    opened = np.flatnonzero(values[:, 1] > 0.1)
    stop = int(opened[0]) + 1 if opened.size else run.frames - 1
    kept = np.minimum(np.arange(run.frames), stop)
    return replace(run, params={name: run.params[name][kept] for name in run.params}, memo={})


def _cut(seed: int) -> Run:
    """A flow that ends halfway to E1."""
    setting = _setting(seed, lazy_chain)
    return setting.run(until=0.5 * float(np.log(0.1 / setting.eps)) / condensation_rate(setting.chain.stationary))


def _no_memory(seed: int) -> Run:
    """Tokens drawn independently: every row of P is pi, and attention has nothing to learn."""
    setting = _setting(seed, lambda rng: LazyChain(pi=tuple(rng.dirichlet(np.full(5, 2.0)).tolist()), persistence=0.0))
    return setting.run(until=60 * np.log(1 / setting.eps))


def _persistent(seed: int) -> Run:
    """Equal rare tokens and a persistence above lambda_c, which is below .76 up to pi_0 = .82 (four tokens, scale 4)."""
    rng = np.random.default_rng(seed)
    pi = asymmetric_law(float(rng.uniform(0.4, 0.7)), 4, (0.0, 0.0, 0.0), 0.0)
    chain = LazyChain(pi=pi, persistence=float(rng.uniform(0.8, 0.9)))
    return Setting(chain, 4.0, 1e-3, 6, 6, seed).run()


OTHER_LAW = Inputs("another law", "a flow shown under a chain whose pi is another one: mu0 and pi are false", _other_law)
OTHER_PERSISTENCE = Inputs(
    "another persistence", "a flow shown under a chain of the same pi whose c is off by 30 % or more", _other_persistence
)
OPPOSITE = Inputs("opposite sign", "a flow that focuses, shown under a chain whose c is negative", _opposite)
WALK = Inputs("wandering parameters", "random walks of all blocks: no law, no stages", _walk)
STILL = Inputs("still after E2", "a flow that stands still from E2 on: nothing recurs", _still_after)
CUT = Inputs("cut before E1", "a flow that ends before the first direction is open", _cut)
NO_MEMORY = Inputs("independent tokens", "every row of P is pi: c = 0, and attention has nothing to learn", _no_memory)
PERSISTENT = Inputs(
    "persistent equal tokens", "equal rare tokens, persistence above lambda_c: the point is unstable", _persistent
)


def inputs() -> tuple[Inputs, ...]:
    """The settings that the paper is about, drawn widely."""
    spread = "scale .35 to 4, start 1e-5 to 1e-3, width 4 or 8"
    return (
        Inputs("lazy chains", f"flows on lazy chains, d 3 to 7, Dirichlet pi, persistence .2 to .8; {spread}", _lazy),
        Inputs("any chains", f"flows on chains with Dirichlet rows, d 3 to 7, c of either sign; {spread}", _any),
        Inputs(
            "almost equal rare tokens", f"flows on lazy chains with equal or almost equal rare tokens; {spread}", _almost_equal
        ),
    )
