"""The numbers that decide what is read in a run on in-context chains, each with its derivation (page: the science page)."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar


@dataclass(frozen=True)
class Limits:
    """Shares are of what is predicted."""

    # errors of the computation
    rounding: float = 1e-9  # nats: levels, or scores of lags, that differ by less are equal up to rounding
    solver: float = 1e-7  # of a curve of a flow, relative to the level it crosses
    exact: float = 1e-6  # relative: closed forms are integrals by the quadrature of the loss itself
    newton: int = 200  # steps at most, to a squared length of a step at which the loss no longer changes in double precision
    enough: float = 1e-13
    # levels and strategies, nats
    entropy: float = 1e-3  # what a softmax of finite scores is above the trigram entropy (page)
    level: float = entropy / 2  # the page's; a plateau of R at rho = .1 is 2e-4 from its class
    small: float = 0.05  # KL of the uniform strategy to the model at a small start; largest change of t_2 over its law by noise
    compared: int = 100  # frames at which strategies are compared, sequences on which layer 2 is scored: its error is about .01
    sequences: int = 5 * compared  # on which strategies are compared
    half: float = 0.5  # of a match or of attention; an induction score half of the way from chance to its largest value
    sampled: float = 0.02  # two standard errors of that score on sampled sequences
    # laws of t_2
    fifth: float = 0.2  # largest t_b over the law: b is at its class optimum for most of the plateau; the two-step law leaves
    # out what b and attention do to each other (page: 1.04 to 1.18); steps of Adam change by less while lags grow eightfold
    grown: float = 0.9  # share of its value on the plateau that the match has at the time t_b
    slow: ClassVar[Mapping[str, float]] = {"R": 0.1, "F": 1.0}  # largest t_b over the law (R), and rho (F): the match rests
    lags_needed: ClassVar[Mapping[int, float]] = {
        25: 0.12,
        100: 0.05,
    }  # lags from which on the law of the plateau holds to this share
    after: float = 3.5  # the two-step law over 1/g_1, the time in which b grows once attention is at lag 1 (page: 1.18 of it)
    lags_compared: int = 7  # lags whose scores are compared: later ones differ by less than the flow's tolerance
    fewest: float = 50  # effective lags of a start: with fewer the law itself is off by more than `small`
    earlier: float = 1.1  # least ratio of t_2 to that under the doubly stochastic prior (page)
    # companion runs and Taylor laws
    noises: tuple[float, ...] = (0.0, 1e-3, 0.1, 0.5, 1.0)  # of the initial scores: those of the page
    adam_lags: int = 400  # of a companion run
    taylor_lags: int = 30  # up to so many the Taylor laws take some seconds; with 100 lags it would be 20
    # the end of a flow and its first frame
    later: ClassVar[Mapping[str, float]] = {"R": 3.0, "S": 15.0}  # times the law of t_2: a softmax comes to its entropy like 1/t
    settles: float = 1000.0  # and at least for so long: with fast lags the match is what takes time
    slowest: ClassVar[Mapping[str, float]] = {"S3": 800.0, "F": 1500.0}  # over 1/rho where there is no law: S3 for each lag
    farthest: float = 20.0  # times the law of t_2 for which the growth of the match is waited: many tokens, few differences
    first: float = 1e-3  # unigrams of F are there at .1 to 1, those of R at 5 to 30


LIMITS = Limits()
