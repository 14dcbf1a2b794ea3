"""Runs drawn by seed on which the claims of focus and dilution are tried: chains of every kind, and nulls.

A null is a run on which a claim is false by construction. Flows of the model obey its theorems, so most nulls show a flow
under the law of another chain: what is predicted is then false by a known amount, and near enough that the claim is judged.
Others steer the attention of a flow away from what is claimed.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from stagescope.claims.inputs import Inputs
from stagescope.dynamics.evolve import evolve
from stagescope.dynamics.flow import GradientFlow
from stagescope.dynamics.record import AtTimes
from stagescope.fields.objective import as_field
from stagescope.papers.focus_dilution.forms import attention_rate, condensation_rate
from stagescope.papers.focus_dilution.ladder.points import condensed_start, small_point
from stagescope.papers.focus_dilution.loss import TokenPopulation
from stagescope.papers.focus_dilution.model import TokenAttention
from stagescope.papers.focus_dilution.observables import token_curves
from stagescope.papers.focus_dilution.process import LazyChain, asymmetric_law
from stagescope.papers.focus_dilution.stages import THRESHOLDS
from stagescope.papers.reading import reading
from stagescope.processes.markov_chain import Chain, MarkovChain
from stagescope.runs.run import Run

FRAMES, LONGEST = 600, 3e4
VOCABULARIES, WIDTHS = (3, 4, 6), ((4, 3), (8, 8))
"""Few sizes, because each is compiled anew."""


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

    def run(self) -> Run:
        """The flow, in frames even in time and in its logarithm."""
        law = self.law()
        until = self.until
        even, early = np.linspace(0, until, FRAMES), np.geomspace(1e-5 * until, until, FRAMES)
        kept = AtTimes(at=tuple(np.unique(np.concatenate([even, early])).tolist()))
        start = law.model.init(self.seed, self.eps)
        return evolve(law, start, GradientFlow(), until=until, record=kept, seed=self.seed, progress=False)

    def shown_under(self, chain: Chain) -> Run:
        """The run as if it had been made on another chain; flows beside it are of the chain that made it."""
        run = self.run()
        shown = replace(run, spec={**run.spec, "field": self.law(chain).describe()}, memo={})
        vars(reading(shown))["field"] = as_field(self.law())
        return shown


def _law(chain: Chain) -> tuple[np.ndarray, np.ndarray]:
    return chain.stationary, chain.transition


def _setting(seed: int, draw: Callable[[np.random.Generator], Chain]) -> Setting:
    """Scale of the scores .35 to 4 and start 1e-5 to 1e-3, both log-uniform."""
    rng = np.random.default_rng(seed)
    chain = draw(rng)
    scale, eps = float(np.exp(rng.uniform(np.log(0.35), np.log(4)))), float(10 ** rng.uniform(-5, -3))
    width, key_width = WIDTHS[int(rng.integers(len(WIDTHS)))]
    return Setting(chain, scale, eps, width, key_width, seed)


def lazy_chain(rng: np.random.Generator) -> LazyChain:
    pi = rng.dirichlet(np.full(int(rng.choice(VOCABULARIES)), 2.0))
    return LazyChain(pi=tuple(pi.tolist()), persistence=float(rng.uniform(0.2, 0.8)))


def any_chain(rng: np.random.Generator) -> MarkovChain:
    d = int(rng.choice(VOCABULARIES))
    return MarkovChain(rows=tuple(tuple(row) for row in rng.dirichlet(np.ones(d), size=d).tolist()))


def almost_equal(rng: np.random.Generator) -> LazyChain:
    """One frequent token and rare ones that are equal, or differ by up to a tenth of their mean."""
    d, first = int(rng.choice(VOCABULARIES)), float(rng.uniform(0.35, 0.7))
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


def _stretched(seed: int) -> Run:
    """Times are those of the flow times 1.4, or over it: every point of the run is true, and every rate is false."""
    run = _setting(seed, lazy_chain).run()
    factor = float(np.random.default_rng([seed, 3]).choice([1.4, 1 / 1.4]))
    shown = replace(run, series={**run.series, "t": factor * run.t}, memo={})
    vars(reading(shown))["curves"] = token_curves(shown)  # a replay that ends at the minimum could not be told from it
    return shown


def _wide(seed: int) -> Setting:
    """A lazy chain with a model that can have any scores: width and key width are at least the number of tokens."""
    return replace(_setting(seed, lazy_chain), width=8, key_width=8)


def _steered(run: Run, law: TokenPopulation, first: int, attention: np.ndarray) -> Run:
    """The run with the attention given from a frame on; embeddings move as they did.

    Scores log(A / pi) need WQ WK^T = W0^+ log(A / pi) W0^+T / scale, which exists for embeddings of full rank.
    """
    params = {name: np.array(run.params[name]) for name in run.params}
    inverse = np.linalg.pinv(params["W0"][first:], rcond=1e-14)
    scores = np.log(attention / law.process.stationary) / law.model.scale
    params["WQ"][first:] = inverse @ scores @ np.swapaxes(inverse, 1, 2)
    params["WK"][first:] = np.eye(law.model.width)
    return replace(run, params=params, memo={})


def _opened(values: np.ndarray, which: int) -> int:
    """The first frame in which a singular value is above its level, or the last frame."""
    above = np.flatnonzero(values[:, which] > THRESHOLDS.level)
    return int(above[0]) if above.size else len(values) - 1


def _monotone(seed: int) -> Run:
    """From E2 on every row of attention goes straight to where it ended: no row rises and falls again."""
    setting = _wide(seed)
    run, law = setting.run(), setting.law()
    curves = token_curves(run)
    first = _opened(curves.embedding_values, 1)
    share = ((run.time[first:] - run.time[first]) / max(run.time[-1] - run.time[first], 1e-9))[:, None, None]
    return _steered(run, law, first, (1 - share) * curves.attention[first] + share * curves.attention[-1])


def _held(seed: int) -> Run:
    """Attention stays as it is when the first rare row is largest between E1 and E2: no row is diluted."""
    setting = _wide(seed)
    run, law = setting.run(), setting.law()
    curves = token_curves(run)
    begin, end = (_opened(curves.embedding_values, which) for which in (0, 1))
    rare = np.delete(curves.attention[begin : end + 1, :, curves.frequent], curves.frequent, axis=1)
    first = begin + int(np.argmax(rare, axis=0).min())
    return _steered(run, law, first, np.repeat(curves.attention[first][None], run.frames - first, axis=0))


def _early(seed: int) -> Run:
    """Queries and keys go to where they are at Q1 by half of E1, and stay: attention is not frozen, and opens first."""
    run = _setting(seed, lazy_chain).run()
    curves = token_curves(run)
    half = run.time[_opened(curves.embedding_values, 0)] / 2
    opened = run.time[_opened(curves.score_values, 0)]
    at = np.searchsorted(run.time, opened * np.minimum(run.time / half, 1.0))
    moved = {name: run.params[name][np.minimum(at, run.frames - 1)] for name in ("WQ", "WK")}
    return replace(run, params={name: moved.get(name, run.params[name]) for name in run.params}, memo={})


def _unequal(seed: int) -> Run:
    """Rare tokens that differ by a tenth to a quarter of their mean lift the point; the chain that is named has equal ones."""
    rng = np.random.default_rng(seed)
    first, persistence = float(rng.uniform(0.35, 0.45)), float(rng.uniform(0.2, 0.3))
    laws = [asymmetric_law(first, 4, (1.0, 0.0, -1.0), share * (1 - first) / 3) for share in (float(rng.uniform(0.1, 0.25)), 0.0)]
    made, named = (LazyChain(pi=pi, persistence=persistence) for pi in laws)
    return Setting(made, 4.0, 1e-3, 8, 8, seed).shown_under(named)


def _persistent(seed: int) -> Run:
    """Equal rare tokens and a persistence above lambda_c, which is below .76 up to pi_0 = .82 (four tokens, scale 4)."""
    rng = np.random.default_rng(seed)
    pi = asymmetric_law(float(rng.uniform(0.4, 0.7)), 4, (0.0, 0.0, 0.0), 0.0)
    chain = LazyChain(pi=pi, persistence=float(rng.uniform(0.8, 0.9)))
    return Setting(chain, 4.0, 1e-3, 8, 8, seed).run()


OTHER_LAW = Inputs("another law", "a flow shown under a chain whose pi is another one: mu0 and pi are false", _other_law)
OTHER_PERSISTENCE = Inputs(
    "another persistence", "a flow shown under a chain of the same pi whose c is off by 30 % or more", _other_persistence
)
OPPOSITE = Inputs("opposite sign", "a flow that focuses, shown under a chain whose c is negative", _opposite)
STRETCHED = Inputs("stretched time", "flows whose times are 1.4 times too long or too short: rates are false", _stretched)
WALK = Inputs("wandering parameters", "random walks of all blocks: no law, no stages", _walk)
EARLY = Inputs("early attention", "queries and keys open before the embeddings condense, and stay", _early)
HELD = Inputs("held focus", "attention stays at the focus of its first row, embeddings go on: no row is diluted", _held)
MONOTONE = Inputs("monotone rows", "from E2 on each row goes straight to its end, which the loss of a flow has", _monotone)
UNEQUAL = Inputs("unequal rare tokens", "a flow on unequal rare tokens, shown under equal ones: E2 comes", _unequal)
PERSISTENT = Inputs(
    "persistent equal tokens", "equal rare tokens, persistence above lambda_c: the point is unstable", _persistent
)


def inputs() -> tuple[Inputs, ...]:
    """The settings that the paper is about, drawn widely."""
    spread = "scale .35 to 4, start 1e-5 to 1e-3, width 4 or 8"
    return (
        Inputs("lazy chains", f"flows on lazy chains, d 3, 4 or 6, Dirichlet pi, persistence .2 to .8; {spread}", _lazy),
        Inputs("any chains", f"flows on chains with Dirichlet rows, d 3, 4 or 6, c of either sign; {spread}", _any),
        Inputs(
            "almost equal rare tokens", f"flows on lazy chains with equal or almost equal rare tokens; {spread}", _almost_equal
        ),
    )
