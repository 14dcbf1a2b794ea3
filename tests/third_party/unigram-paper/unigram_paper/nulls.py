"""Inputs on which the claims are tried: those that the paper is about, and one on which the rate is wrong by construction."""

import numpy as np

import stagescope as ss
from stagescope.claims.inputs import Inputs
from unigram_paper.setup import setup
from unigram_paper.study import STUDY, UnigramOptions


def _drawn(seed: int) -> UnigramOptions:
    random = np.random.default_rng(seed)
    return UnigramOptions(top=random.uniform(0.3, 0.7), vocab=int(random.integers(2, 5)), until=30.0)


def _any(seed: int) -> ss.Run:
    return STUDY.run(_drawn(seed), seed=seed, progress=False)


def _slower(seed: int) -> ss.Run:
    plan = setup(_drawn(seed), seed)
    return ss.evolve(plan.what, plan.params, ss.GradientFlow(rates={"b": 0.5}), until=2 * (plan.until or 0.0), progress=False)


INPUTS = (Inputs("any frequencies", "a few tokens with frequencies drawn at random", _any),)
SLOWER = Inputs("half the rate", "the flow moves at half the rate, so nothing falls at the rate that is predicted", _slower)
