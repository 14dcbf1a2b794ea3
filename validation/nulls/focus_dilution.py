"""Runs drawn by seed on which the claims of focus and dilution are tried: chains of every kind, and nulls.

A null is a run on which a claim is false by construction. Flows of the model obey its theorems, so most nulls show a flow
under the law of another chain: what is predicted is then false by a known amount, and near enough that the claim is judged.
Others are steered: they start as a flow does and are of its law, so that the claims apply to them, and then move otherwise.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from stagescope.claims.inputs import Inputs
from stagescope.core.errors import StagescopeError
from stagescope.core.params import root_mean_square
from stagescope.flow.descent import Adam, Descent
from stagescope.flow.evolve import evolve
from stagescope.flow.gradient_flow import GradientFlow
from stagescope.flow.record import AtTimes, Uniform
from stagescope.papers.focus_dilution.family import (
    attention_rate,
    condensation_rate,
    saturated_kappa,
    saturation_boundary,
    stall_boundary,
)
from stagescope.papers.focus_dilution.ladder import condensed_start, small_point
from stagescope.papers.focus_dilution.limits import LIMITS
from stagescope.papers.focus_dilution.loss import TokenPopulation
from stagescope.papers.focus_dilution.model import LazyChain, TokenAttention, asymmetric_law
from stagescope.papers.focus_dilution.observables import token_curves
from stagescope.papers.focus_dilution.stages import passes
from stagescope.processes.markov_chain import Chain, MarkovChain
from stagescope.runs.run import Run
from validation.nulls import focus_dilution_adam as adam

FRAMES, LONGEST = 600, 3e4
VOCABULARIES, WIDTHS = (3, 4, 6), ((4, 3), (8, 8))
"""Few sizes, because each is compiled anew."""
TRIES, AGAIN = 120, 12
"""Chains that are tried until one has its events in another order than a first, and after how many another first is drawn."""


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
        opening = small_point(law, condensed_start(law, float(np.sign(c))), 1, 1).opening
        rates = condensation_rate(self.chain.stationary), abs(c), abs(c) / 4 if opening is None else opening.rate
        return float(min(LONGEST, 3 * sum(np.log(1 / self.eps) / max(rate, 1e-9) for rate in rates)))

    def run(self, until: float | None = None) -> Run:
        """The flow, in frames even in time and in its logarithm."""
        law = self.law()
        until = until or self.until
        even, early = np.linspace(0, until, FRAMES), np.geomspace(1e-5 * until, until, FRAMES)
        kept = AtTimes(at=tuple(np.unique(np.concatenate([even, early])).tolist()))
        start = law.model.init(self.seed, self.eps)
        return evolve(law, start, GradientFlow(), until=until, record=kept, seed=self.seed, progress=False)

    def shown_under(self, chain: Chain) -> Run:
        """The run as if it had been made on another chain."""
        run = self.run()
        return replace(run, spec={**run.spec, "field": self.law(chain).describe()}, memo={})


def _law(chain: Chain) -> tuple[np.ndarray, np.ndarray]:
    return chain.stationary, chain.transition


def setting(seed: int, draw: Callable[[np.random.Generator], Chain]) -> Setting:
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
    """One frequent token and rare ones that differ by 4 to 15 % of their mean."""
    d, first = int(rng.choice(VOCABULARIES)), float(rng.uniform(0.35, 0.7))
    shape = rng.normal(size=d - 1)
    shape = (shape - shape.mean()) / np.abs(shape - shape.mean()).max()
    delta = float(np.exp(rng.uniform(np.log(0.04), np.log(0.15)))) * (1 - first) / (d - 1)
    return LazyChain(pi=asymmetric_law(first, d, tuple(shape.tolist()), delta), persistence=float(rng.uniform(0.2, 0.6)))


def equal_rare(rng: np.random.Generator) -> LazyChain:
    """One frequent token and equal rare ones."""
    d, first = int(rng.choice(VOCABULARIES)), float(rng.uniform(0.35, 0.7))
    return LazyChain(pi=asymmetric_law(first, d, (0.0,) * (d - 1), 0.0), persistence=float(rng.uniform(0.2, 0.6)))


def separated(rng: np.random.Generator, least: float = 0.2) -> LazyChain:
    """Each token is 2 to 4.5 times as frequent as the next."""
    shares = np.cumprod(np.concatenate([[1.0], 1 / rng.uniform(2, 4.5, size=int(rng.choice((3, 4))) - 1)]))
    return LazyChain(pi=tuple((shares / shares.sum()).tolist()), persistence=float(rng.uniform(least, 0.9)))


def _separated(seed: int) -> Run:
    """Four times as long as for E2: later directions open at lower rates."""
    drawn = setting(seed, separated)
    return drawn.run(min(LONGEST, 4 * drawn.until))


def _separated_adam(seed: int) -> Run:
    """The published optimiser on 64 units: start 1/64, steps of 6e-4, infinitely long contexts; diagonally dominant chains."""
    chain = separated(np.random.default_rng(seed), 0.65)
    model = TokenAttention(vocab=chain.vocab, width=64, scale=1.0)
    how = Descent(optimizer=Adam(), lr=6e-4, steps=6000)
    law = TokenPopulation(model=model, process=chain)
    return evolve(law, model.init(seed, 1 / 64), how, record=Uniform(frames=FRAMES), seed=seed, progress=False)


def _straight_rows(seed: int) -> Run:
    """From halfway between E1 and Q1 on every row of attention goes straight to where it ended: none focuses and lets go."""
    drawn = replace(setting(seed, separated), width=8, key_width=8)
    run, law = drawn.run(min(LONGEST, 4 * drawn.until)), drawn.law()
    curves = token_curves(run)
    first = (_opened(curves.embedding_values, 0) + _opened(curves.score_values, 0)) // 2
    share = ((run.time[first:] - run.time[first]) / max(run.time[-1] - run.time[first], 1e-9))[:, None, None]
    return _steered(run, law, first, (1 - share) * curves.attention[first] + share * curves.attention[-1])


def _lazy(seed: int) -> Run:
    return setting(seed, lazy_chain).run()


def _any(seed: int) -> Run:
    return setting(seed, any_chain).run()


def _rare(draw: Callable[[np.random.Generator], Chain], seed: int) -> Run:
    found = setting(seed, draw)
    return replace(found, scale=max(found.scale, 1.0)).run()


def _other_law(seed: int) -> Run:
    """pi of the chain that is named is flatter or sharper, so that the direction pi is another one."""
    drawn = setting(seed, lazy_chain)
    pi, rng = drawn.chain.stationary, np.random.default_rng([seed, 1])
    assert isinstance(drawn.chain, LazyChain)
    order = np.argsort(pi)
    other = pi.copy()
    other[order[-1]], other[order[0]] = pi[order[0]], pi[order[-1]]  # the most and the least frequent token change places
    other = other ** float(rng.choice([0.6, 1.6]))
    return drawn.shown_under(LazyChain(pi=tuple((other / other.sum()).tolist()), persistence=drawn.chain.persistence))


def _other_persistence(seed: int) -> Run:
    """The same pi, so the same points (0,0) and (1,0); c is proportional to the persistence, and here off by 30 % or more."""
    drawn = setting(seed, lazy_chain)
    assert isinstance(drawn.chain, LazyChain)
    kept = drawn.chain.persistence
    other = kept * 0.6 if kept > 0.5 else min(kept * 1.7, 0.95)
    return drawn.shown_under(LazyChain(pi=drawn.chain.pi, persistence=other))


def _opposite(seed: int) -> Run:
    """The same pi and a negative persistence: the sign of c is the opposite."""
    drawn = setting(seed, lazy_chain)
    assert isinstance(drawn.chain, LazyChain)
    least = min(drawn.chain.pi)
    return drawn.shown_under(LazyChain(pi=drawn.chain.pi, persistence=-0.9 * least / (1 - least)))


def _stretched(seed: int) -> Run:
    """Times are those of the flow times 1.4, or over it: every point of the run is true, and every rate is false."""
    run = setting(seed, lazy_chain).run()
    factor = float(np.random.default_rng([seed, 3]).choice([1.4, 1 / 1.4]))
    return replace(run, series={**run.series, "t": factor * run.t}, memo={})


def _other_start(seed: int) -> Run:
    """The first frame is three times as large, or a third: what it predicts comes too early or late, by ln 3 over each rate."""
    run = setting(seed, lazy_chain).run()
    factor = float(np.random.default_rng([seed, 4]).choice([3.0, 1 / 3])) if root_mean_square(run.at(0)) < 3e-4 else 1 / 3
    first = {name: np.concatenate([factor * run.params[name][:1], run.params[name][1:]]) for name in run.params}
    return replace(run, params=first, memo={})


def _other_sequence(seed: int) -> Run:
    """A flow shown under a chain whose own flow, from the same start and as long, has its events in another order."""
    drawn, rng, mine = setting(seed, lazy_chain), np.random.default_rng([seed, 5]), []
    for k in range(TRIES):
        if k % AGAIN == 0:
            drawn = replace(drawn, chain=lazy_chain(rng), scale=float(rng.uniform(1, 4)), width=8, key_width=8)
            mine = _sequence(drawn.run())
        other = lazy_chain(rng)
        if other.vocab == drawn.chain.vocab:
            theirs = _sequence(replace(drawn, chain=other).run(drawn.until))
            if any(a != b for a, b in zip(mine, theirs, strict=False)):
                return drawn.shown_under(other)
    raise StagescopeError(f"no two among {TRIES} chains have their events in different orders")


def _sequence(run: Run) -> list[str]:
    """The names of the openings in order of time."""
    curves = token_curves(run)
    values = {"E": curves.embedding_values, "Q": curves.score_values}
    times = {f"{letter}{k + 1}": when for letter, each in values.items() for k, when in enumerate(passes(curves.time, each))}
    return sorted((name for name, when in times.items() if when is not None), key=lambda name: times[name] or 0.0)


def _unequal(seed: int) -> Run:
    """Rare tokens that differ by a tenth to a quarter of their mean lift the point; the chain that is named has equal ones."""
    rng = np.random.default_rng(seed)
    first, persistence = float(rng.uniform(0.35, 0.45)), float(rng.uniform(0.2, 0.3))
    laws = [asymmetric_law(first, 4, (1.0, 0.0, -1.0), share * (1 - first) / 3) for share in (float(rng.uniform(0.1, 0.25)), 0.0)]
    made, named = (LazyChain(pi=pi, persistence=persistence) for pi in laws)
    return Setting(made, 4.0, 1e-3, 8, 8, seed).shown_under(named)


def _offset(seed: int) -> Run:
    """The chain that is named has a small asymmetry; the flow's chain has another one on top, three times as large.

    Flows beside it change by what the named chain would change by, so halving leaves most of the asymmetry.
    """
    rng = np.random.default_rng(seed)
    first, share, persistence = float(rng.uniform(0.4, 0.6)), float(rng.uniform(0.03, 0.06)), float(rng.uniform(0.3, 0.5))
    mean = (1 - first) / 3
    named = asymmetric_law(first, 4, (1.0, 0.0, -1.0), share * mean)
    made = np.array(named) + 3 * share * mean * np.array([0.0, 1.0, 0.0, -1.0])
    drawn = Setting(LazyChain(pi=tuple(made.tolist()), persistence=persistence), 4.0, 1e-3, 8, 8, seed)
    return drawn.shown_under(LazyChain(pi=named, persistence=persistence))


def _other_side(seed: int) -> Run:
    """Equal rare tokens; the chain that is named has a persistence on the other side of lambda_c."""
    rng = np.random.default_rng(seed)
    first = float(rng.uniform(0.45, 0.65))
    critical = stall_boundary(first, 4)
    assert critical is not None
    pi, shares = asymmetric_law(first, 4, (0.0, 0.0, 0.0), 0.0), [float(rng.uniform(0.6, 0.8)), float(rng.uniform(1.15, 1.3))]
    made, named = (LazyChain(pi=pi, persistence=share * critical) for share in (shares if rng.integers(2) else shares[::-1]))
    return Setting(made, 4.0, 1e-3, 8, 8, seed).shown_under(named)


def _walk(seed: int) -> Run:
    return _wandering(setting(seed, lazy_chain).run(), seed)


def _separated_walk(seed: int) -> Run:
    return _wandering(setting(seed, separated).run(), seed)


def _wandering(run: Run, seed: int) -> Run:
    """Parameters that wander: random walks of every block from the start of a flow, as far as the flow's fastest block goes."""
    rng, knots = np.random.default_rng([seed, 2]), 60
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


def _wide(seed: int) -> Setting:
    """A lazy chain with a model that can have any scores: width and key width are at least the number of tokens."""
    return replace(setting(seed, lazy_chain), width=8, key_width=8)


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
    above = np.flatnonzero(values[:, which] > LIMITS.level)
    return int(above[0]) if above.size else len(values) - 1


def _monotone(seed: int) -> Run:
    """From E2 on every row of attention goes straight to where it ended: no row rises and falls again."""
    drawn = _wide(seed)
    run, law = drawn.run(), drawn.law()
    curves = token_curves(run)
    first = _opened(curves.embedding_values, 1)
    share = ((run.time[first:] - run.time[first]) / max(run.time[-1] - run.time[first], 1e-9))[:, None, None]
    return _steered(run, law, first, (1 - share) * curves.attention[first] + share * curves.attention[-1])


def _held(seed: int) -> Run:
    """Attention stays as it is when the first rare row is largest between E1 and E2: no row is diluted."""
    drawn = _wide(seed)
    run, law = drawn.run(), drawn.law()
    curves = token_curves(run)
    begin, end = (_opened(curves.embedding_values, which) for which in (0, 1))
    rare = np.delete(curves.on_frequent[begin : end + 1], curves.frequent, axis=1)
    first = begin + int(np.argmax(rare, axis=0).min())
    return _steered(run, law, first, np.repeat(curves.attention[first][None], run.frames - first, axis=0))


def _exaggerated(seed: int) -> Run:
    """From halfway between E1 and Q1 on the embedding W0 moves 1.5 times as far: attention does not account for its motion."""
    run = setting(seed, lazy_chain).run()
    curves = token_curves(run)
    first, opened = _opened(curves.embedding_values, 0), _opened(curves.score_values, 0)
    middle = int(np.searchsorted(run.time, (run.time[first] + run.time[opened]) / 2))
    w0 = np.array(run.params["W0"])
    w0[middle:] += 0.5 * (w0[middle:] - w0[middle])
    return replace(run, params={name: w0 if name == "W0" else run.params[name] for name in run.params}, memo={})


def _swapped(seed: int) -> Run:
    """From Q1 on what W0 has outside its first direction is handed from token to token: another direction opens."""
    run = setting(seed, lazy_chain).run()
    curves = token_curves(run)
    first = _opened(curves.score_values, 0)
    w0 = np.array(run.params["W0"])
    rows = np.concatenate([w0, np.swapaxes(run.params["W1"], 1, 2)], axis=1)[first:]
    along = np.linalg.svd(rows, full_matrices=False)[2][:, :1]
    inside = w0[first:] @ np.swapaxes(along, 1, 2) @ along
    w0[first:] = inside + np.roll(w0[first:] - inside, 1, axis=1)
    return replace(run, params={name: w0 if name == "W0" else run.params[name] for name in run.params}, memo={})


def _early(seed: int) -> Run:
    """Queries and keys go to where they are at Q1 by half of E1, and stay: attention is not frozen, and opens first."""
    run = setting(seed, lazy_chain).run()
    curves = token_curves(run)
    half = run.time[_opened(curves.embedding_values, 0)] / 2
    opened = run.time[_opened(curves.score_values, 0)]
    at = np.searchsorted(run.time, opened * np.minimum(run.time / half, 1.0))
    moved = {name: run.params[name][np.minimum(at, run.frames - 1)] for name in ("WQ", "WK")}
    return replace(run, params={name: moved.get(name, run.params[name]) for name in run.params}, memo={})


# Runs at the saturated end of the symmetric points (1,1): attention of rare rows on the frequent token is 0 there.


def _saturated(seed: int, delta: float) -> tuple[Run, float]:
    """A flow from the saturated symmetric point of three tokens with 1e-6 of noise, and kappa; `delta` is a share of the mean.

    Rows 0 and i have logits gamma_0 beta and gamma_1 beta, which give token 0 its probabilities. A_i0 = share (delta mean)^2
    fixes E = scale eta gamma_0^2; without asymmetry delta counts as .02 here.
    """
    rng = np.random.default_rng(seed)
    first = float(rng.uniform(0.5, 0.75))
    persistence = float(rng.uniform(saturation_boundary(first, 3) + 0.15, 0.92))
    mean, share = (1 - first) / 2, float(np.exp(rng.uniform(-12, -5)))
    chain = LazyChain(pi=asymmetric_law(first, 3, (1.0, -1.0), delta * mean), persistence=persistence)
    law = TokenPopulation(model=TokenAttention(vocab=3, width=6, key_width=6, scale=1.0), process=chain)
    frequent = np.array([persistence + (1 - persistence) * first, (1 - persistence) * first])
    logits = np.log(2 * frequent / (1 - frequent))
    r = logits[1] / logits[0]
    strength = np.log(first / (2 * mean * share * ((delta or 0.02) * mean) ** 2)) / (r**2 - r)
    gamma_0 = (logits[0] * (2 / 3) ** 0.5) ** 0.5  # gamma_0 is as long as beta
    keys = np.array([[strength**0.5 / gamma_0]])
    point = {"W0": gamma_0 * np.array([[1.0], [r], [r]]), "W1": logits[0] / gamma_0 * np.array([[2.0, -1.0, -1.0]]) / 3}
    start = {name: 1e-6 * block for name, block in law.model.init(seed, 1.0).items()}
    for name, block in {**point, "WQ": keys, "WK": keys}.items():
        start[name][: block.shape[0], : block.shape[1]] += block
    kappa = saturated_kappa(first, persistence)
    c = attention_rate(*_law(chain), law.model.scale)
    until = 1.2 * np.log(LIMITS.level / 1e-6) / (kappa * delta * mean) if delta else 150 / c
    run = evolve(law, start, GradientFlow(), until=float(until), record=Uniform(frames=FRAMES), seed=seed, progress=False)
    return run, kappa


def _share(seed: int) -> float:
    """Rare tokens differ by 2 to 6 % of their mean."""
    return float(np.random.default_rng([seed, 6]).uniform(0.02, 0.06))


def _saturated_start(seed: int) -> Run:
    return _saturated(seed, _share(seed))[0]


def _saturated_equal(seed: int) -> Run:
    return _saturated(seed, 0.0)[0]


def _saturated_stretched(seed: int) -> Run:
    run, factor = _saturated_start(seed), float(np.random.default_rng([seed, 3]).choice([1.4, 1 / 1.4]))
    return replace(run, series={**run.series, "t": factor * run.t}, memo={})


def _saturated_other(seed: int) -> Run:
    """The chain that is named has 1.5 times the asymmetry of the flow's chain."""
    run, share = _saturated_start(seed), _share(seed)
    named = _saturated(seed, 1.5 * share)[0]
    return replace(run, spec={**run.spec, "field": named.spec["field"]}, memo={})


def _parted(seed: int) -> Run:
    """A run that stays at the saturated end, with rare embeddings that part at a rate of .01 to .03, up to .05."""
    run, rate = _saturated_equal(seed), float(np.random.default_rng([seed, 8]).uniform(0.01, 0.03))
    w0 = np.array(run.params["W0"])
    parted = np.minimum(1e-6 * np.exp(np.minimum(rate * run.t, 50.0)), 0.05)
    w0[:, 1:, 0] += parted[:, None] * np.array([1.0, -1.0])
    return replace(run, params={name: w0 if name == "W0" else run.params[name] for name in run.params}, memo={})


OTHER_LAW = Inputs("another law", "a flow shown under a chain whose pi is another one: directions along pi are false", _other_law)
OTHER_PERSISTENCE = Inputs(
    "another persistence", "a flow shown under a chain of the same pi whose c is off by 30 % or more", _other_persistence
)
OPPOSITE = Inputs("opposite sign", "a flow that focuses, shown under a chain whose c is negative", _opposite)
STRETCHED = Inputs("stretched time", "flows whose times are 1.4 times too long or too short: rates are false", _stretched)
OTHER_START = Inputs(
    "another start", "a flow whose first frame is three times too large or too small: times are false", _other_start
)
OTHER_SEQUENCE = Inputs(
    "another sequence", "a flow shown under a chain whose flow has its events in another order", _other_sequence
)
UNEQUAL = Inputs("unequal rare tokens", "a flow on unequal rare tokens, shown under equal ones: E2 comes", _unequal)
OFFSET = Inputs("another asymmetry", "a flow whose rare tokens differ by four times what is named and halved", _offset)
OTHER_SIDE = Inputs(
    "other side of lambda_c", "a flow on equal rare tokens, shown under a persistence beyond lambda_c from its own", _other_side
)
WALK = Inputs("wandering parameters", "random walks of all blocks: no law, no stages", _walk)
EARLY = Inputs("early attention", "queries and keys open before the embeddings condense, and stay", _early)
HELD = Inputs("held focus", "attention stays at the focus of its first row, embeddings go on: no row is diluted", _held)
MONOTONE = Inputs("monotone rows", "from E2 on each row goes straight to its end, which the loss of a flow has", _monotone)
EXAGGERATED = Inputs("exaggerated motion", "embeddings move 1.5 times as far as attention drives them", _exaggerated)
SWAPPED = Inputs("swapped direction", "what opens in W0 after Q1 is handed from token to token", _swapped)

STRAIGHT = Inputs("straight rows", "from before Q1 on each row of attention goes straight to its end", _straight_rows)
SEPARATED_WALK = Inputs(
    "wandering, separated tokens", "random walks of all blocks, tokens of clearly different frequency", _separated_walk
)
PARTED = Inputs("parting rare tokens", "rare embeddings part at the saturated end, at a rate of .01 to .03", _parted)
SATURATED_STRETCHED = Inputs(
    "stretched time at saturation",
    "flows from the saturated end whose times are 1.4 times too long or too short",
    _saturated_stretched,
)
SATURATED_OTHER = Inputs(
    "another asymmetry at saturation", "flows from the saturated end, shown under 1.5 times their asymmetry", _saturated_other
)

_SPREAD = "scale .35 to 4, start 1e-5 to 1e-3, width 4 or 8"
INPUTS: dict[str, tuple[Inputs, ...]] = {
    "focus-dilution": (
        Inputs("lazy chains", f"flows on lazy chains, d 3, 4 or 6, Dirichlet pi, persistence .2 to .8; {_SPREAD}", _lazy, "FD:"),
        Inputs("any chains", f"flows on chains with Dirichlet rows, d 3, 4 or 6, c of either sign; {_SPREAD}", _any, "FD:"),
        Inputs(
            "almost equal rare tokens",
            f"flows on lazy chains whose rare tokens differ by 4 to 15 %; {_SPREAD}",
            partial(_rare, almost_equal),
            "FD:",
        ),
        Inputs("equal rare tokens", f"flows on lazy chains with equal rare tokens; {_SPREAD}", partial(_rare, equal_rare), "FD:"),
        Inputs(
            "separated tokens",
            f"flows on lazy chains, each token 2 to 4.5 times as frequent as the next; {_SPREAD}",
            _separated,
            "FD:",
        ),
        Inputs(
            "separated tokens, Adam",
            "Adam on such chains of persistence .65 to .9, width 64, start 1/64",
            _separated_adam,
            "FD:",
        ),
        Inputs(
            "saturated equal tokens",
            "three tokens, the rare ones equal, from the saturated end with noise",
            _saturated_equal,
            "FD:",
        ),
        Inputs("saturated starts", "the same, the rare ones 2 to 6 % from their mean", _saturated_start, "FD:"),
        *adam.INPUTS,
    ),
}
"""By study: the settings that the paper is about, drawn widely."""
NULLS: dict[str, dict[str, tuple[Inputs, ...]]] = {
    "focus-dilution": {
        "FD:origin": (STRETCHED, WALK),
        "FD:linear-bound": (OTHER_LAW, STRETCHED, WALK),
        "FD:approach": (STRETCHED, WALK),
        "FD:attention-rate": (OTHER_PERSISTENCE, STRETCHED, WALK),
        "FD:linear-condensed": (OTHER_PERSISTENCE, STRETCHED, WALK),
        "FD:embedding-rate": (STRETCHED,),
        "FD:embedding-direction": (SWAPPED,),
        "FD:redistribution": (OTHER_PERSISTENCE, STRETCHED, WALK),
        "FD:displacement": (EXAGGERATED, OTHER_LAW, WALK),
        "FD:second-order": (EXAGGERATED, WALK),
        "FD:directions": (OTHER_LAW, WALK),
        "FD:frozen": (EARLY, WALK),
        "FD:focus": (OPPOSITE, OTHER_LAW, WALK),
        "FD:sign": (OPPOSITE,),
        "FD:dilution": (HELD, WALK),
        "FD:stages": (EARLY, WALK),
        "FD:token-cycles": (STRAIGHT, SEPARATED_WALK),
        "FD:recurrence": (MONOTONE,),
        "FD:eps-law": (OTHER_PERSISTENCE, STRETCHED),
        "FD:delta-law": (OFFSET,),
        "FD:tangential": (PARTED,),
        "FD:kappa": (SATURATED_STRETCHED, SATURATED_OTHER),
        "FD:stall": (UNEQUAL,),
        "FD:lambda-c": (OTHER_SIDE,),
        "FD:predicted-sequence": (OTHER_SEQUENCE, WALK),
        "FD:predicted-times": (OTHER_START, OTHER_PERSISTENCE, STRETCHED),
        "FD:critical-scale": (UNEQUAL,),
        **adam.NULLS,
    },
}
"""By study and claim: runs on which the claim is false."""
