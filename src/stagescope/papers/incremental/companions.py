"""Companion runs of incremental learning: from equal heads, at another initial noise, and the regression flow."""

from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from stagescope.dynamics.descent import Descent
from stagescope.dynamics.evolve import evolve
from stagescope.dynamics.flow import GradientFlow
from stagescope.dynamics.record import AtTimes, LogSpaced
from stagescope.papers.incremental.regression.loss import Regression, RegressionLoss
from stagescope.papers.incremental.regression.model import RegressionHeads
from stagescope.papers.incremental.regression.observables import head_curves
from stagescope.papers.incremental.regression.sampled import RegressionSampled
from stagescope.papers.incremental.students.positional import PositionalHeads
from stagescope.papers.incremental.students.positional_loss import HeadsLoss
from stagescope.papers.incremental.task import Clock, Companions, Curve, EqualHeads
from stagescope.papers.rebuild import ended, rebuilt
from stagescope.params import Params
from stagescope.runs.run import Run
from stagescope.spec import build


@dataclass(frozen=True)
class ClockThresholds:
    """The regime of the clock [ISA:clock], and its tolerances."""

    skew: float = 0.02
    """Largest cosine between two features, or between a feature and a matrix of equal rows or columns."""
    sampled: float = 0.05
    """Tolerance of t_j for batches of contexts against their mean; an independent implementation had .014."""
    softmax: float = 0.15
    """Tolerance of t_j for the cross-entropy; an independent implementation had .08 to .13. The average of softmax is linear in
    centred logits up to their square, which is the relative error of the flow's times."""


CLOCK = ClockThresholds()


def companions(run: Run) -> Companions:
    """The companion runs of a run of heads of any kind."""
    law = rebuilt(run.spec["field"])
    dynamics = build(run.spec["dynamics"])
    steps = isinstance(dynamics, Descent)
    if isinstance(law, Regression):
        return Companions(partial(_equal_flow, run, law), scaled=None if steps else partial(_scaled, run, law))
    gradient = not steps or (dynamics.clip is None and dynamics.optimizer.decay is not None)
    if not gradient or not isinstance(law, HeadsLoss | RegressionSampled):
        return Companions()
    return Companions(partial(_equal_heads, run, law), flow=None if clock(run) is None else partial(_flow, run, law))


def _log_spaced(until: float) -> LogSpaced:
    return LogSpaced(frames=2000, first=until * 1e-5)


def _equal_flow(run: Run, law: Any, until: float | None) -> EqualHeads:
    """Equal heads by the exact reduction to one head [ISA:symmetric]."""
    small = type(law)(model=law.model.symmetric())
    start = {name: np.mean(run.params[name][0], axis=0, keepdims=True) for name in run.params}
    made = _moved(run, small, start, build(run.spec["dynamics"]), until)
    params = {name: np.repeat(made.params[name], law.model.heads, axis=1) for name in made.params}
    return EqualHeads(made.time, small.model.losses(made.params), params)


def _moved(run: Run, law: Any, start: Params, dynamics: Any, until: float | None) -> Run:
    """The motion of one head: at the steps of the run for a descent; for a flow to `until`, or to the run's end at its frames."""
    if isinstance(dynamics, Descent):
        record = AtTimes(at=tuple(run.step[1:].astype(float).tolist()))
        return ended(evolve(law, start, dynamics, record=record, progress=False))
    record = AtTimes(at=tuple(run.time[1:].tolist())) if until is None else _log_spaced(until)
    return ended(evolve(law, start, dynamics, until=until or float(run.time[-1]), record=record, progress=False))


def _equal_heads(run: Run, law: HeadsLoss | RegressionSampled, until: float | None) -> EqualHeads:
    """One head with U = H V: V_h' = F_V gives U' = H F_V, and a' = F_a(U)/H, so rates are H and 1/H times those of the run."""
    heads = law.model.heads
    one = law.model_copy(update={"model": _single(law.model)})
    start = {"a": np.mean(run.params["a"][0], axis=0, keepdims=True), "V": np.sum(run.params["V"][0], axis=0, keepdims=True)}
    dynamics = build(run.spec["dynamics"])
    rates = {"a": dynamics.rates.get("a", 1.0) / heads, "V": dynamics.rates.get("V", 1.0) * heads}
    made = _moved(run, one, start, dynamics.model_copy(update={"rates": rates}), until)
    params = {name: np.repeat(made.params[name], heads, axis=1) for name in made.params}
    return EqualHeads(made.time, np.asarray(made.series["loss"]), {"a": params["a"], "V": params["V"] / heads})


def _single(model: Any) -> Any:
    if isinstance(model, PositionalHeads):
        return model.model_copy(update={"heads": 1})
    return model.model_copy(update={"reduced": model.reduced.model_copy(update={"heads": 1})})


def _scaled(run: Run, law: Any, sigma: float, until: float) -> Curve:
    """The same law from logits scaled to another rms."""
    first = run.at(0)
    logits = np.asarray(first["a"])
    start: Params = {"a": logits * (sigma / np.sqrt(np.mean(logits**2))), "V": np.asarray(first["V"])}
    return _curve(law, start, until)


def _curve(law: Any, start: Params, until: float, pace: float = 1.0) -> Curve:
    """A regression flow to its time `until`, on a clock that runs `pace` times as fast."""
    flow = GradientFlow(rtol=1e-12)  # no slower than a coarser tolerance
    found = head_curves(ended(evolve(law, start, flow, until=until, record=_log_spaced(until), progress=False)))
    return Curve(found.time * pace, found.loss, found.forms.levels)


def _flow(run: Run, law: HeadsLoss | RegressionSampled, until: float) -> Curve:
    """The regression flow from the same logits; for cross-entropy on t/d^2 with g_i = beta_i sqrt(d) [ISA:clock]."""
    logits = np.asarray(run.params["a"][0])
    if isinstance(law, RegressionSampled):
        reduced, pace = law.model.reduced, 1.0
    else:
        chain, model = law.process, law.model
        pace, logits = float(chain.vocab**2), logits[:, 0]
        gains = tuple(beta * float(np.sqrt(chain.vocab)) for beta in chain.importances)
        places = tuple(model.context - group[0] for group in chain.groups)
        reduced = RegressionHeads(positions=model.positions, gains=gains, heads=model.heads, places=places)
    start = {"a": logits, "V": np.zeros(reduced.shapes["V"])}
    return _curve(RegressionLoss(model=reduced), start, until / pace, pace)


def clock(run: Run) -> Clock | None:
    """Whether the regression flow predicts the times of this run; None where there is no such flow [ISA:clock]."""
    law, dynamics = rebuilt(run.spec["field"]), build(run.spec["dynamics"])
    if not isinstance(law, HeadsLoss | RegressionSampled) or run.clock != "t":
        return None
    kinds = [
        (set(dynamics.block_rates(tuple(run.params)).values()) == {1.0}, "the rates of the blocks differ"),
        (not np.any(run.params["V"][0]), "values do not start at zero"),
    ]
    if isinstance(law, RegressionSampled):
        return _clock(kinds, "squared loss of sampled contexts", CLOCK.sampled)
    if law.model.targets > 1 or any(len(group) > 1 for group in law.process.groups) or not law.process.disjoint:
        return None
    # root mean square of the true logits for uniform tokens: sqrt(sum_i |beta_i A_i|^2)/d
    size, skew = float(np.linalg.norm(law.process.matrices)) / law.process.vocab, _skew(law)
    kinds += [
        (
            size**2 <= CLOCK.softmax / 2,
            f"the root mean square of the true logits is {size:.2f}; its square, the error of the clock, is too large",
        ),
        (skew <= CLOCK.skew, f"features are not centred and orthogonal: the largest cosine is {skew:.2g}, above {CLOCK.skew:g}"),
    ]
    return _clock(kinds, f"small true logits, root mean square {size:.2f}", CLOCK.softmax, size**2)


def _clock(kinds: list[tuple[bool, str]], sentence: str, tolerance: float, error: float = 0.0) -> Clock:
    failed = [why for good, why in kinds if not good]
    return Clock(not failed, "; ".join(failed) or sentence, tolerance, error)


def _skew(law: HeadsLoss) -> float:
    """Largest cosine between two features, or between one and a matrix of equal rows or columns."""
    unit = law.process.matrices / np.linalg.norm(law.process.matrices, axis=(1, 2), keepdims=True)
    overlaps = np.abs(np.einsum("iyx,jyx->ij", unit, unit) - np.eye(len(unit)))
    means = [np.linalg.norm(unit.sum(axis=axis), axis=1) / np.sqrt(law.process.vocab) for axis in (1, 2)]
    return float(max(overlaps.max(), *(mean.max() for mean in means)))
