"""Scan and snap: claims that can be put to a run."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from stagescope.detect.stage import peak
from stagescope.observables.pairwise import ClassAttention, class_attention, law_of
from stagescope.runs.run import Run
from stagescope.theory.claim import Claim, Comparison, Regime

SIGN = 1e-9
"""A velocity counts as zero below this fraction of the largest one: rounding of the right-hand side."""
CONSERVED = 1e-9


@dataclass(frozen=True)
class Evidence:
    """What the claims look at: a run and its class attention (of a denser replay where the run is coarse)."""

    run: Run
    curves: ClassAttention

    @classmethod
    def of(cls, run: Run, curves: ClassAttention | None = None) -> "Evidence":
        return cls(run, curves or class_attention(run))

    @cached_property
    def law(self):  # noqa: ANN201
        return law_of(self.run)

    @property
    def dynamics(self) -> str:
        return self.run.spec["dynamics"]["type"]

    @property
    def one_query_per_class(self) -> bool:
        queries = [item.query for item in self.law.process.classes]
        return len(set(queries)) == len(queries)


_ADAM = Regime(False, "the paper speaks of gradient steps; Adam rescales every entry", applies=False)


def _conserving(evidence: Evidence) -> Regime:
    if evidence.run.clock == "step":
        return _ADAM
    return Regime(True, "any gradient or modified-decoder run")


def _row_sums(evidence: Evidence) -> Comparison:
    weights = evidence.law.model.multiplicity
    sums = (evidence.run.params["Y"] @ weights, evidence.run.params["Z"].sum(axis=2))
    drift = max(float(np.max(np.abs(total - total[0]))) for total in sums)
    sentence = f"row sums of Y and Z drift by at most {drift:.1e}"
    return Comparison(0.0, drift, CONSERVED, drift <= CONSERVED, sentence)


def _distinct_regime(evidence: Evidence) -> Regime:
    if evidence.run.clock == "step":
        return _ADAM
    if evidence.one_query_per_class:
        return Regime(True, "one query per class")
    return Regime(False, "classes share a query: a distinct token can then fall late")


def _distinct_grow(evidence: Evidence) -> Comparison:
    curves = evidence.curves
    scale = float(np.max(np.abs(curves.velocity)))
    least = float(np.min(np.where(curves.distinct, curves.velocity, np.inf))) / (scale or 1.0)
    moved = scale > 0
    reason = f"least dz/dt of a distinct token is {least:.2e} of the largest |dz/dt|"
    return Comparison("dz/dt >= 0", least, SIGN, least >= -SIGN if moved else None, reason if moved else "Z never moved")


def _common_regime(evidence: Evidence) -> Regime:
    curves = evidence.curves
    if evidence.run.clock == "step":
        return _ADAM
    shared = curves.common.any(axis=0)
    count = int(shared.sum())
    if count == 0:
        return Regime(False, "there are no common tokens", applies=False)
    if count == 1:
        return Regime(True, "a single common token")
    laws = np.where(curves.common, curves.table, np.nan)[:, shared]
    same = not np.isnan(laws).any() and np.allclose(laws, laws[0], rtol=1e-9)
    profiles = np.sort(np.where(curves.distinct, curves.table, 0.0), axis=1)
    symmetric = np.allclose(profiles, profiles[0], rtol=1e-9)
    zero = not np.any(evidence.run.params["Z"][0])
    wrong = [
        name
        for name, holds in (
            ("P(l|n) of a common token differs between classes", same),
            ("classes have different distinct-token profiles", symmetric),
            ("Z(0) is not zero", zero),
            ("classes share a query", evidence.one_query_per_class),
        )
        if not holds
    ]
    many = f"{count} common tokens"
    return Regime(not wrong, f"{many}; " + ("; ".join(wrong) if wrong else "symmetric classes, Z(0) = 0"))


def _common_fall(evidence: Evidence) -> Comparison:
    curves = evidence.curves
    scale = float(np.max(np.abs(curves.velocity)))
    most = float(np.max(np.where(curves.common, curves.velocity, -np.inf))) / (scale or 1.0)
    moved = scale > 0
    reason = f"largest dz/dt of a common token is {most:.2e} of the largest |dz/dt|"
    return Comparison("dz/dt <= 0", most, SIGN, most <= SIGN if moved else None, reason if moved else "Z never moved")


def _any_run(evidence: Evidence) -> Regime:
    return Regime(True, "any run that passes its peak")


def _speed_falls(evidence: Evidence) -> Comparison:
    curves = evidence.curves
    speed = curves.mean(curves.speed)
    top = peak(curves.time, speed)
    if top is None:
        return Comparison("slope < 0", None, "sign", None, "the attention speed has not passed its peak")
    late = (curves.time >= 3 * top[0]) & (speed > 0) & (curves.time > 0)
    if late.sum() < 5:
        return Comparison("slope < 0", None, "sign", None, f"the run ends before three times the peak at {top[0]:.4g}")
    slope = float(np.polyfit(np.log(curves.time[late]), np.log(speed[late]), 1)[0])
    reason = f"log-log slope {slope:.2f} from three times the peak on; the speed ends at {speed[-1] / top[1]:.1%} of the peak"
    return Comparison("slope < 0", slope, "sign", slope < 0 and speed[-1] < top[1], reason)


CLAIMS = (
    Claim("SnS:lemma-1", "Row sums of Y and Z are conserved", _conserving, _row_sums),
    Claim("SnS:theorem-2-distinct", "Scores of distinct tokens grow", _distinct_regime, _distinct_grow),
    Claim("SnS:theorem-2-common", "Scores of common tokens fall", _common_regime, _common_fall),
    Claim("SnS:snap", "After its peak the attention speed falls", _any_run, _speed_falls),
)
