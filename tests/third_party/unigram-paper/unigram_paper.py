"""A paper in one file: output logits b learn the frequencies pi of independent tokens."""

from functools import cached_property
from typing import Any

import numpy as np
from pydantic import Field

import stagescope as ss
from stagescope.claims.claim import ClaimTable
from stagescope.claims.comparison import regime_of
from stagescope.core.options import Options
from stagescope.core.spec import Described, Numbers
from stagescope.detect.events import first_crossing
from stagescope.readings.study import NamedSweep, Setup

TAGS = {
    "unigram:loss": ss.Tag("definition", "L = log sum_j exp(b_j) - pi . b"),
    "unigram:sum": ss.Tag("section 1", "the sum of b is conserved, because its gradient sums to zero"),
    "unigram:rate": ss.Tag("linearisation", "the excess loss falls as exp(-2 r t), r the slowest rate of diag(pi) - pi pi^T"),
}


class BiasLoss(Described, ss.Objective):
    """The exact loss; the model has no parameters but b [unigram:loss]."""

    pi: Numbers

    @property
    def data(self) -> np.ndarray:
        return np.array(self.pi)

    def loss(self, params: Any, data: Any) -> Any:
        from stagescope.flow.autodiff import jax, jnp

        return jax.scipy.special.logsumexp(params["b"]) - jnp.dot(data, params["b"])

    def slowest_rate(self) -> float:
        """The least positive eigenvalue of the Hessian at the optimum."""
        return float(np.linalg.eigvalsh(np.diag(self.pi) - np.outer(self.pi, self.pi))[1])


class UnigramOptions(Options):
    """Output logits on independent tokens."""

    top: float = Field(0.5, gt=0, lt=1, description="probability of token 0")
    vocab: int = Field(3, ge=2, description="number of tokens; all but token 0 have weights that fall linearly")
    until: float = Field(20.0, gt=0, description="end time of the flow")


def setup(options: UnigramOptions, seed: int) -> Setup:
    weights = np.arange(options.vocab, 1, -1)
    pi = (options.top, *((1 - options.top) * weights / weights.sum()).tolist())
    return Setup(BiasLoss(pi=pi), {"b": np.zeros(options.vocab)}, ss.GradientFlow(), until=options.until)


class UnigramReading(ss.Reading):
    @cached_property
    def excess(self) -> np.ndarray:
        """Loss above its least value, the entropy of pi, at every frame."""
        return self.run.series["loss"] + np.dot(self.law.pi, np.log(self.law.pi))

    @cached_property
    def stages(self) -> ss.Stages:
        run, first, last = self.run, self.excess[0], self.excess[-1]
        half = first_crossing(run.time, self.excess, first / 2, rising=False)
        falling = ss.Stage("falling", float(run.time[0]), half, f"the excess loss starts at {first:.3g}")
        settling = ss.Stage("settling", half, None, f"the excess loss ends at {last:.3g}")
        return ss.Stages(run.status, run.clock, {"half": half}, (falling, settling) if half is not None else (falling,))


def draw(seed: int) -> dict[str, Any]:
    random = np.random.default_rng(seed)
    return {"top": random.uniform(0.3, 0.7), "vocab": int(random.integers(2, 5)), "until": 30.0}


def half_speed(seed: int) -> ss.Run:
    plan = setup(UnigramOptions(**draw(seed)), seed)
    return ss.evolve(plan.what, plan.params, ss.GradientFlow(rates={"b": 0.5}), until=60.0, progress=False)


INPUTS = ss.Inputs(
    "any frequencies", "a few tokens of random frequencies", lambda seed: ss.run_study("unigram", seed=seed, **draw(seed))
)
SLOW = ss.Inputs("half the rate", "the flow moves at half the rate, so nothing falls at the rate that is predicted", half_speed)
claim = ClaimTable()


@claim("unigram:sum", lambda _: ss.Regime(True, "any gradient flow"), statement="The sum of b is conserved")
def _sum(reading: UnigramReading) -> ss.Comparison:
    total = reading.run.params["b"].sum(axis=1)
    drift, rounding = float(np.abs(total - total[0]).max()), 1e-9  # of some hundred steps at rtol 1e-10
    return ss.Comparison(0.0, drift, rounding, drift <= rounding, f"the sum of b drifts by {drift:.1e}")


def _late(reading: UnigramReading) -> ss.Regime:
    share = float(reading.excess[-1] / reading.excess[0])
    return regime_of((share < 1e-3, f"the excess loss ends at {share:.1e} of its start"), holds="the last exponential")


@claim("unigram:rate", _late, statement="The excess loss falls at twice the slowest rate", kind="prediction", null=SLOW)
def _rate(reading: UnigramReading) -> ss.Comparison:
    predicted, time = 2 * reading.law.slowest_rate(), reading.run.time
    late = time > 0.9 * time[-1]
    measured = -float(np.polyfit(time[late], np.log(reading.excess[late]), 1)[0])
    reason = f"the excess loss falls at {measured:.4f} in the last tenth of the run, predicted {predicted:.4f}"
    return ss.agreement(predicted, measured, 0.05 * predicted, reason, unit="1/t")  # the next term is smaller by exp(-r t)


STUDY = ss.Study(
    name="unigram",
    title="Logits learn the frequencies of tokens",
    options=UnigramOptions,
    presets={"small": {}, "skewed": {"top": 0.9}},
    setup=setup,
    kinds=(ss.Kind(fields=("unigram_paper:BiasLoss",), read=UnigramReading, claims=lambda: claim.claims),),
    tags=("unigram:loss",),
    ledger=("small", "skewed"),
    inputs=lambda: (INPUTS,),
    sweeps={"half-time": NamedSweep("when half of the excess loss is gone", "small", grid={"top": ".4:.8:5"}, color="half")},
)
PAPER = ss.Paper("unigram", ss.Reference("toy2026", "Logits Learn Frequencies", "A. Toy", 2026, "an example"), TAGS, (STUDY,))
