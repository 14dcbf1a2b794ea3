"""Runs beside a run of incremental learning: from equal heads, at another initial noise, and the regression flow in its place."""

from typing import Any

import numpy as np

from stagescope.dynamics.descent import Descent
from stagescope.dynamics.evolve import evolve
from stagescope.dynamics.flow import GradientFlow
from stagescope.dynamics.record import AtTimes, LogSpaced
from stagescope.papers.incremental.evidence import Beside, Clock, Curve, Equal
from stagescope.papers.incremental.forms import RegressionForms
from stagescope.papers.incremental.regression.loss import Regression, RegressionLoss
from stagescope.papers.incremental.regression.model import RegressionHeads
from stagescope.papers.incremental.regression.sampled import RegressionSampled
from stagescope.papers.incremental.students.positional import PositionalHeads
from stagescope.papers.incremental.students.positional_loss import HeadsLoss
from stagescope.papers.rebuild import ended, rebuilt
from stagescope.params import Params
from stagescope.runs.run import Run
from stagescope.spec import build

FRAMES = 2000
EXACTLY = 1e-12
"""rtol of flows beside a run: it costs no more than a coarser one."""
SMALL_LOGITS, ORTHOGONAL = 0.5, 0.02
"""The clock of the cross-entropy model needs logits of at most this rms, and features this close to centred and orthogonal."""
SAMPLED, SOFTMAX = 0.05, 0.15
"""Tolerances of the clock: a batch of contexts against their mean, and the cross-entropy besides."""


def beside(run: Run) -> Beside:
    """What can be run beside a run of heads of any kind."""
    law = rebuilt(run.spec["field"])
    dynamics = build(run.spec["dynamics"])
    steps = isinstance(dynamics, Descent)
    if isinstance(law, Regression):
        flows = None if steps else (lambda sigma, until: _scaled(run, law, sigma, until))
        return Beside(equal=lambda until: _equal_flow(run, law, until), scaled=flows)
    gradient = not steps or (dynamics.clip is None and dynamics.optimizer.decay is not None)
    if not gradient or not isinstance(law, HeadsLoss | RegressionSampled):
        return Beside()
    flow = None if clock(run) is None else (lambda until: _flow(run, law, until))
    return Beside(equal=lambda until: _equal_heads(run, law, until), flow=flow)


def _frames(run: Run, until: float | None) -> tuple[float, Any]:
    """To the run's end at its own frames, or to another end at equal ratios of time."""
    if until is None:
        return float(run.time[-1]), AtTimes(at=tuple(run.time[1:].tolist()))
    return until, LogSpaced(frames=FRAMES, first=until * 1e-5)


def _equal_flow(run: Run, law: Any, until: float | None) -> Equal:
    """By the exact reduction to one head [ISA:symmetric]."""
    small = type(law)(model=law.model.symmetric())
    start = {name: np.mean(run.params[name][0], axis=0, keepdims=True) for name in run.params}
    made = _moved(run, small, start, build(run.spec["dynamics"]), until)
    params = {name: np.repeat(made.params[name], law.model.heads, axis=1) for name in made.params}
    return Equal(made.time, small.model.losses(made.params), params)


def _moved(run: Run, law: Any, start: Params, dynamics: Any, until: float | None) -> Run:
    """The motion of one head: at the run's own steps where it descends, as a flow to `until` where it flows."""
    if isinstance(dynamics, Descent):
        record = AtTimes(at=tuple(run.step[1:].astype(float).tolist()))
        return ended(evolve(law, start, dynamics, record=record, progress=False))
    end, record = _frames(run, until)
    return ended(evolve(law, start, dynamics, until=end, record=record, progress=False))


def _equal_heads(run: Run, law: HeadsLoss | RegressionSampled, until: float | None) -> Equal:
    """One head with U = H V: V_h' = F_V gives U' = H F_V, and a' = F_a(U)/H, so that rates are H times and 1/H of the run's."""
    heads = law.model.heads
    one = law.model_copy(update={"model": _single(law.model)})
    start = {"a": np.mean(run.params["a"][0], axis=0, keepdims=True), "V": np.sum(run.params["V"][0], axis=0, keepdims=True)}
    dynamics = build(run.spec["dynamics"])
    rates = {"a": dynamics.rates.get("a", 1.0) / heads, "V": dynamics.rates.get("V", 1.0) * heads}
    made = _moved(run, one, start, dynamics.model_copy(update={"rates": rates}), until)
    params = {name: np.repeat(made.params[name], heads, axis=1) for name in made.params}
    return Equal(made.time, np.asarray(made.series["loss"]), {"a": params["a"], "V": params["V"] / heads})


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
    """A regression flow to its time `until`, told on a clock that runs `pace` times as fast."""
    record = LogSpaced(frames=FRAMES, first=until * 1e-5)
    made = ended(evolve(law, start, GradientFlow(rtol=EXACTLY), until=until, record=record, progress=False))
    model: RegressionHeads = law.model
    levels = RegressionForms(model.gains, model.positions, model.heads * model.copies, law.mirror).levels
    return Curve(made.t * pace, model.losses(made.params), levels)


def _flow(run: Run, law: HeadsLoss | RegressionSampled, until: float) -> Curve:
    """The regression flow from the same logits; of cross-entropy on t/d^2 with g_i = beta_i sqrt(d) [ISA:clock]."""
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
    """Whether the regression flow should give this run's times; None where it has nothing to do with them [ISA:clock]."""
    law, dynamics = rebuilt(run.spec["field"]), build(run.spec["dynamics"])
    if not isinstance(law, HeadsLoss | RegressionSampled) or run.clock != "t":
        return None
    kinds = [
        (set(dynamics.block_rates(tuple(run.params)).values()) == {1.0}, "block rates differ"),
        (not np.any(run.params["V"][0]), "values do not start at zero"),
    ]
    if isinstance(law, RegressionSampled):
        return _clock(kinds, "squared loss of sampled contexts", SAMPLED)
    if law.model.targets > 1 or any(len(group) > 1 for group in law.process.groups) or not law.process.disjoint:
        return None
    size, skew = _logits(law), _skew(law)
    kinds += [
        (size <= SMALL_LOGITS, f"outside the small-logit clock: true logits have rms {size:.2f}, above {SMALL_LOGITS:g}"),
        (skew <= ORTHOGONAL, f"features are not centred and orthogonal to each other (off by {skew:.2g})"),
    ]
    return _clock(kinds, f"small-logit clock: true logits have rms {size:.2f}", SOFTMAX)


def _clock(kinds: list[tuple[bool, str]], sentence: str, tolerance: float) -> Clock:
    failed = [why for good, why in kinds if not good]
    return Clock(not failed, "; ".join(failed) or sentence, tolerance)


def _logits(law: HeadsLoss) -> float:
    """Root mean square of the true logits for uniform tokens, sqrt(sum_i |beta_i A_i|^2)/d."""
    return float(np.linalg.norm(law.process.matrices)) / law.process.vocab


def _skew(law: HeadsLoss) -> float:
    """Largest cosine between two features, or between one and a matrix of equal rows or columns."""
    unit = law.process.matrices / np.linalg.norm(law.process.matrices, axis=(1, 2), keepdims=True)
    overlaps = np.abs(np.einsum("iyx,jyx->ij", unit, unit) - np.eye(len(unit)))
    means = [np.linalg.norm(unit.sum(axis=axis), axis=1) / np.sqrt(law.process.vocab) for axis in (1, 2)]
    return float(max(overlaps.max(), *(mean.max() for mean in means)))
