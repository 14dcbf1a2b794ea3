"""In-context Markov chains against the numbers of the science page: page, ours, difference, and what it may be."""

from collections.abc import Iterator
from typing import Any

import numpy as np

import stagescope as ss
from stagescope.detect.events import first_crossing
from stagescope.papers.markov_icl.finite import Enumerated, FiniteExact, strategies
from stagescope.papers.markov_icl.forms import (
    Plateau,
    chi_squares,
    class_of,
    common_gain,
    effective_lags,
    lag_gains,
    levels,
    second_chi_squares,
    two_step,
)
from stagescope.papers.markov_icl.loss import LinearPopulation
from stagescope.papers.markov_icl.model import LinearMatch
from stagescope.papers.markov_icl.process import ChainPrior
from stagescope.papers.markov_icl.reading import taylor_laws
from stagescope.readings.reading import reading

Row = tuple[str, float, float, float]
"""What, the page's number, ours, and the largest difference."""
PLATEAUS = {(25, 0.01): 29327, (50, 0.01): 59087, (100, 0.01): 119996, (200, 0.01): 243886, (100, 0.1): 12543, (100, 1.0): 1615}
DOUBLY = {(25, 0.01): 3227, (50, 0.01): 5668, (100, 0.01): 10021, (100, 0.1): 2688, (100, 1.0): 775, (100, 10.0): 249}
FINITE = {
    (2, 8, 1.0): (0.64859, 0.62671, 0.53, 184.8),
    (2, 10, 1.0): (0.64044, 0.61417, 0.38, 157.5),
    (2, 10, 0.1): (0.64044, 0.61417, 0.38, 1568.7),
    (2, 12, 1.0): (0.63423, 0.60462, 0.29, 143.6),
    (2, 12, 0.1): (0.63423, 0.60462, 0.29, 1422.9),
    (2, 12, 10.0): (0.63423, 0.60462, 0.29, 15.9),
    (3, 8, 1.0): (1.06741, 1.04745, 1.42, 191.7),
}


ENUMERATED = {
    (2, 8): (0.65852, 0.61615),
    (2, 10): (0.64779, 0.60282),
    (2, 12): (0.63964, 0.59239),
    (2, 14): (0.63317, 0.58396),
    (3, 8): (1.09543, 1.03564),
}
"""Tokens and length: losses of the unigram and the Bayes bigram strategy, mean over positions."""


def main() -> bool:
    infinite = (_entropies, _gains, _plateaus, _starts, _layers, _doubly, _windows, _adam, _trigram, _taylor)
    rows = [row for part in (*infinite, _lengths, _enumerated, _finite, _sampled) for row in part()]
    print(f"{'what':<46} {'page':>10} {'ours':>12} {'difference':>12} {'may be':>9}")
    for what, page, ours, room in rows:
        mark = "" if abs(ours - page) <= room else "   DOES NOT HOLD"
        print(f"{what:<46} {page:>10.6g} {ours:>12.6g} {ours - page:>+12.2g} {room:>9.2g}{mark}")
    return all(abs(ours - page) <= room for _, page, ours, room in rows)


def _entropies() -> Iterator[Row]:
    """Section 1. The page's Beta(.5) rows (.4791, .3606) are a quadrature that has not converged: by sampling they are these."""
    tables = {
        "k=2": (ChainPrior(), (0.69315, 0.56383, 0.48089), 1e-5),
        "k=2 doubly stochastic": (ChainPrior(doubly_stochastic=True), (0.69315, 0.69315, 0.5), 1e-5),
        "k=2 Beta(2)": (ChainPrior(concentration=2.0), (0.69315, 0.6258, 0.5750), 1e-4),
        "k=2 Beta(.5), 4 million draws": (ChainPrior(concentration=0.5, nodes=100), (0.69315, 0.47315, 0.35446), 4e-4),
        "k=3, 4000 draws": (ChainPrior(tokens=3, draws=4000), (1.09861, 0.9785, 0.8193), 3e-3),
        "order 2": (ChainPrior(order=2, nodes=10), (0.69315, 0.60657, 0.55028, 0.46977), 1e-5),
    }
    for name, (prior, page, room) in tables.items():
        for place, value in enumerate(page):
            yield f"entropy {place}, {name}", value, float(prior.entropies[place]), room


def _lengths() -> Iterator[Row]:
    tokens = ChainPrior().sample(np.random.default_rng(0), 40_000, 100)
    laws = strategies(tokens, 2)
    for name, page in (("unigram", 0.5821), ("bigram", 0.5106)):
        losses = -np.log(np.take_along_axis(laws[name], tokens[:, 1:, None], axis=2)[..., 0]).mean(axis=1)
        error = float(losses.std() / np.sqrt(len(losses)))
        yield f"{name}, 100 tokens, 40000 sequences", page, float(losses.mean()), 3 * np.sqrt(2) * error


def _enumerated() -> Iterator[Row]:
    """All sequences, with the prior integrated out."""
    for (k, length), page in ENUMERATED.items():
        found = Enumerated(ChainPrior(tokens=k), length)
        yield f"sum of weights, k {k}, T {length}", 1.0, float(found.weights.sum()), 1e-12
        laws = strategies(found.tokens, k)
        for name, value in zip(("unigram", "bigram"), page, strict=True):
            chosen = np.take_along_axis(laws[name], found.tokens[:, 1:, None], axis=2)[..., 0]
            yield f"{name}, k {k}, T {length}", value, float(-found.weights @ np.log(chosen).mean(axis=1)), 1e-5


def _gains() -> Iterator[Row]:
    prior, doubly = ChainPrior(), ChainPrior(doubly_stochastic=True)
    yield "a' at zero", 0.11371, common_gain(prior), 1e-5
    for d, page in enumerate((0.1023, 0.1251, 0.0889, 0.1048, 0.0894, 0.0984)):
        yield f"g_{d}", page, float(lag_gains(prior, 6)[d]), 5e-5
    for d, page in enumerate((-0.0228, 0.0680, -0.0078, 0.0275, -0.0038, 0.0148)):
        yield f"c_{d}", page, float(chi_squares(prior, 6)[d]), 5e-5
    for d in (1, 3, 5):
        yield f"g_{d}, doubly stochastic", 1 / (4 * (d + 2)), float(lag_gains(doubly, 6)[d]), 1e-6
        yield f"c_{d}, doubly stochastic", 1 / (2 * (d + 2)), float(chi_squares(doubly, 6)[d]), 1e-6
    yield from _pulls(200)
    second = second_chi_squares(ChainPrior(order=2, nodes=10), 9)
    for d, page in enumerate((0.0655, -0.0052, 0.0037, 0.0133, 0.0079, 0.0017, 0.0077), start=2):
        yield f"c'_{d} of S3", page, float(second[d]), 6e-5
    for lags, page in ((50, 0.107), (100, 0.111), (200, 0.112)):
        yield f"sum of c, {lags} lags", page, float(chi_squares(prior, lags).sum()), 1e-3


def _pulls(lags: int) -> Iterator[Row]:
    """G_d - <G> beside central differences of the loss.

    The page's own G_0 .. G_5 (-.0355 .0266 -.0108 .0094 -.0062 .0040) do not follow from its law: t_2 = 6338 at 50 lags and
    rho .1 needs G_1 - <G> = .0291. They have the same signs and order.
    """
    law = _reduced(lags)
    found, even = Plateau(law, np.zeros(lags)), np.zeros(lags)
    step = 1e-4
    for d in range(6):
        move = step * np.eye(lags)[d]
        up, down = (law.value({"W": found.least[1], "v": even + sign * move}) for sign in (1, -1))
        slope = -(up - down) / (2 * step) * lags / found.match
        yield f"G_{d} - <G> by differences of the loss, {lags} lags", slope, float(found.pull[d] - found.pull.mean()), 1e-5


def _reduced(lags: int, doubly_stochastic: bool = False) -> LinearPopulation:
    process = ChainPrior(doubly_stochastic=doubly_stochastic)
    return LinearPopulation(model=LinearMatch(tokens=2, lags=lags), process=process)


def _plateaus() -> Iterator[Row]:
    for lags, page in ((12, 0.55718), (100, 0.55918), (200, 0.55950)):
        yield f"l_1, {lags} lags", page, float(levels(_reduced(lags)).losses[1]), 1e-5
    yield "l_2", 0.49705, float(levels(_reduced(100)).losses[2]), 1e-5
    yield "l_2, doubly stochastic", 0.50495, float(levels(_reduced(100, True)).losses[-1]), 1e-5
    three = LinearPopulation(model=LinearMatch(tokens=3, lags=200), process=ChainPrior(tokens=3, draws=1500))
    for place, page in ((1, 0.97231), (2, 0.86563)):
        yield f"l_{place}, three tokens, 1500 draws", page, float(levels(three).losses[place]), 6e-3
    yield "law, 50 lags, rho .1", 6338, Plateau(_reduced(50), np.zeros(50)).time(0.1), 1
    for (lags, rho), page in PLATEAUS.items():
        found = reading(ss.run_study("markov-icl", lags=lags, ratio=rho, frames=1500, progress=False)).evidence
        yield f"t_2, {lags} lags, rho {rho:g}", page, found.t2 or np.nan, 0.005 * page


def _over_law(**options: Any) -> tuple[float, float]:
    """t_2 and its ratio to the law, 50 lags, rho .1."""
    run = ss.run_study("markov-icl", **{"lags": 50, "ratio": 0.1, "frames": 1500, **options}, progress=False)
    found = reading(run).evidence
    when = found.t2 or np.nan
    return when, when / found.plateau_time


def _farthest_over_law(sigma: float) -> float:
    """t_2 over the law of the page, of the seed among ten that is farthest from 1; seeds in which another lag leads are left out.

    The page takes b* and gamma_1 of even attention, and D of the start. `Plateau.time` takes all three of the start; at noise 1
    that is farther off, .90 to 1.08, because the noise of the other lags does not stay.
    """
    law, found = _reduced(50), []
    even = Plateau(law, np.zeros(50)).time(0.1) / 50
    for seed in range(10):
        v = law.model.init(seed, sigma)["v"]
        if Plateau(law, v).leads:
            found.append(_over_law(init_scale=sigma, seed=seed)[0] / (even * effective_lags(v)))
    return max(found, key=lambda ratio: abs(ratio - 1))


def _starts() -> Iterator[Row]:
    """Noise, other starts of the match, other priors: 50 lags, rho .1. Draws of three and four tokens are not the page's."""
    for sigma, page in ((0.0, 6416), (1e-6, 6416), (1e-3, 6418)):
        yield f"t_2, noise {sigma:g}", page, _over_law(init_scale=sigma)[0], 0.005 * page
    for sigma in (0.1, 0.5, 1.0):
        yield f"farthest of ten over the law with its own D, noise {sigma:g}", 1.0, _farthest_over_law(sigma), 0.05
    for b, page in ((-3.0, 1.09), (-1.0, 1.04), (1.0, 0.99), (5.0, 0.90)):
        start = {"W": np.array([0.0, b]), "v": np.zeros(50)}
        run = ss.evolve(_reduced(50), start, ss.GradientFlow(rates={"v": 0.1}), until=15000, progress=False)
        found = reading(run).evidence
        yield f"over the law from b = {b:g}", page, (found.t2 or np.nan) / found.plateau_time, 0.01
    for name, options, page, room in (
        ("Beta(2)", {"prior": 2.0}, 0.985, 0.005),
        ("Beta(.5)", {"prior": 0.5, "nodes": 60}, 1.04, 0.02),
        ("three tokens", {"tokens": 3}, 1.15, 0.05),
        ("four tokens", {"tokens": 4}, 1.70, 0.1),
        ("four tokens, rho .01", {"tokens": 4, "ratio": 0.01}, 0.978, 0.03),
    ):
        yield f"over the law, {name}", page, _over_law(**options)[1], room


def _layers() -> Iterator[Row]:
    """When the match is half of its plateau value, and when attention on lag 1 is twice its start; 50 lags."""
    for rho, page in {0.1: (69, 3493), 1.0: (68, 517), 10.0: (66, 81), 100.0: (37, 17)}.items():
        run = ss.run_study("markov-icl", lags=50, ratio=rho, frames=1500, progress=False)
        for name, value in zip(("match", "lag"), page, strict=True):
            yield f"{name}, 50 lags, rho {rho:g}", value, ss.stages(run).events[name] or np.nan, max(1.0, 0.01 * value)


def _doubly() -> Iterator[Row]:
    """The page takes the level of the class with even attention as l_1 here too; the law's own ratios follow from the times."""
    for (lags, rho), page in DOUBLY.items():
        run = ss.run_study("markov-icl", doubly_stochastic=True, lags=lags, ratio=rho, frames=1500, progress=False)
        law = _reduced(lags, doubly_stochastic=True)
        first, second = (class_of(law, held).least()[0] for held in (np.full(lags, 1 / lags), np.eye(lags)[1]))
        when = first_crossing(run.time, run.series["loss"], (first + second) / 2, rising=False)
        yield f"t_2 doubly stochastic, {lags} lags, rho {rho:g}", page, when or np.nan, 0.01 * page
    ratio = 10021 / two_step(lag_gains(ChainPrior(doubly_stochastic=True), 100), np.zeros(100), 0.01)
    yield "over the two-step law, 100 lags, rho .01", 1.39, ratio, 0.01


def _windows() -> Iterator[Row]:
    for rho, page in ((10.0, 1.18), (100.0, 1.72)):
        found = reading(ss.run_study("markov-icl", "softmax", ratio=rho, nodes=24, progress=False)).evidence
        yield f"t_2 of S over its law, 8 lags, rho {rho:g}", page, (found.t2 or np.nan) / found.two_step, 0.03
    for lags, page in ((4, 101), (8, 171), (10, 203), (12, 236)):
        found = reading(ss.run_study("markov-icl", "softmax", lags=lags, nodes=24, progress=False)).evidence
        yield f"t_2 of S, {lags} lags", page, found.t2 or np.nan, 0.03 * page
        yield f"the same over its law, {lags} lags", 1.04, (found.t2 or np.nan) / found.two_step, 0.02
        speed = float(found.run.series["speed"][0])
        yield f"|F| at the unigram point, {lags} lags", float(found.gains.mean()), speed, 1e-6


def _finite() -> Iterator[Row]:
    for (k, length, rho), (first, second, t1, t2) in FINITE.items():
        model = LinearMatch(tokens=k, lags=length, form="entries")
        found = levels(FiniteExact(model=model, process=ChainPrior(tokens=k), length=length)).losses
        name = f"F, k {k}, T {length}, rho {rho:g}"
        yield f"l_1, {name}", first, float(found[1]), 1e-5
        yield f"l_2, {name}", second, float(found[2]), 1e-5
        run = ss.run_study("markov-icl", "finite", tokens=k, length=length, ratio=rho, until=300 / rho, progress=False)
        events = ss.stages(run).events
        yield f"t_1, {name}", t1, events["t1"] or np.nan, 0.006
        yield f"t_2, {name}", t2, events["t2"] or np.nan, 0.005 * t2


def _adam() -> Iterator[Row]:
    for lags, page in ((25, 110), (50, 120), (100, 120), (200, 130)):
        run = ss.run_study("markov-icl", "adam", lags=lags, progress=False)
        yield f"steps of Adam to t_2, {lags} lags", page, ss.stages(run).events["t2"] or np.nan, 10


def _trigram() -> Iterator[Row]:
    """Half times between levels of the flow's own quadrature. The page's times of S and S3 are all 1 to 2 % later than ours."""
    found = reading(ss.run_study("markov-icl", "trigram", progress=False)).evidence
    for name, page in (("t2", 154), ("t3", 261)):
        yield f"{name} of S3, 4 lags", page, found.event_time(name)[0] or np.nan, 0.03 * page
    yield "end of S3, 4 lags", 0.47188, float(found.loss[-1]), 1e-3
    six = reading(ss.run_study("markov-icl", "trigram", lags=6, until=1500, progress=False)).evidence
    for name, page in (("t2", 187), ("t3", 329)):
        yield f"{name} of S3, 6 lags", page, six.event_time(name)[0] or np.nan, 0.03 * page


def _taylor() -> Iterator[Row]:
    """When v_1 = ln D by the field at the slowest frame; which frame that is depends on the frames."""
    found = taylor_laws(reading(ss.run_study("markov-icl", lags=25, ratio=0.1, progress=False)).evidence)
    assert found is not None
    for order, (page, ours) in enumerate(zip((4162, 3599, 3533), found.predicted, strict=True), start=1):
        yield f"v_1 = ln D by order {order}, 25 lags, rho .1", page, ours or np.nan, 0.005 * page
    yield "v_1 = ln D measured", 3898, found.measured or np.nan, 0.01 * 3898


def _sampled() -> Iterator[Row]:
    """From which step on bigrams are the nearest strategy, F and T on batches: one seed, so to a quarter."""
    for preset, steps, page in (("minimal", 0.001, 440), ("readout", 1.0, 680)):
        found = ss.stages(ss.run_study("markov-icl", preset, progress=False))
        start = next((stage.start for stage in found if stage.name == "bigram"), np.nan)
        yield f"bigram from step, {preset}", page, start / steps, 0.25 * page
        yield f"strategies of {preset} in order", 3, len([stage.name for stage in found]), 0
