"""Degenerate and near-stationary rungs: escapes by local laws of any order, against the run, on listed and on drawn settings."""

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np

import stagescope as ss
from validation.degenerate_cases import Case, attention, lags, linear_network, quadratic_units, tensor

WITHIN, DRIFT, COEFFICIENT = 0.02, 0.1, 1e-3
"""Relative errors of times and coefficients that hold; a drift is a rougher law."""
FIRST_SEED, DRAWN = 30_000, 3
"""Drawn settings of each family, from seeds on from this one."""
REF, THREE = attention((0.4, 0.3, 0.2, 0.1), 31, 5), attention((1.0, 0.5, 0.25), 10, 4)


@dataclass
class Tally:
    """What was found on the runs of a family."""

    runs: int = 0
    laws: dict[str, int] = field(default_factory=dict)
    errors: list[float] = field(default_factory=list)
    ahead: list[float] = field(default_factory=list)
    silent: list[str] = field(default_factory=list)
    missed: list[str] = field(default_factory=list)

    def line(self) -> str:
        laws = ", ".join(f"{law} {count}" for law, count in sorted(self.laws.items())) or "no law"
        if not self.errors:
            return f"{self.runs} runs: {laws}; no escapes"
        (middle, worst), (_, far) = (
            [100 * np.quantile(found, share) for share in (0.5, 1.0)] for found in (self.errors, self.ahead)
        )
        said = f"{len(self.errors)} escapes, time error median {middle:.3f} %, max {worst:.2f} % ({far:.2f} % of the time ahead)"
        return f"{self.runs} runs: {laws}; {said}; left without a law {len(self.silent)}; missed {len(self.missed)}"


def main() -> bool:
    tallies: dict[str, Tally] = {}
    for kind, case, seed, scale in [*_listed(), *_drawn()]:
        _compare(case, seed, scale, tallies.setdefault(f"{kind} {case.name}", Tally()))
    for name, tally in tallies.items():
        print(f"{name:<34} {tally.line()}")
        for line in [*tally.missed, *tally.silent]:
            print(f"    {line}")
    return not any(tally.missed for tally in tallies.values())


def _listed() -> Iterator[tuple[str, Case, int, float]]:
    """The settings of the study notes: attention at two starts of two scales, networks of depth 2, 3, 4."""
    for seed in (0, 1):
        for case in (REF, THREE):
            yield from (("listed", case, seed, scale) for scale in (0.03, 0.01))
        for depth, scales in ((2, (1e-2, 1e-3)), (3, (0.05, 0.02)), (4, (0.15, 0.1))):
            yield from (("listed", linear_network(depth, (1.0, 0.6, 0.3)), seed, scale) for scale in scales)


def _drawn() -> Iterator[tuple[str, Case, int, float]]:
    """Strengths, widths, scales and starts drawn; scales within a factor of three."""
    for seed in range(FIRST_SEED, FIRST_SEED + DRAWN):
        rng = np.random.default_rng(seed)
        ratios = np.cumprod(rng.uniform(0.4, 0.75, size=3))
        strengths = tuple(np.round([1.0, *ratios[:2]], 3).tolist())
        shrink = float(rng.uniform(1.0, 3.0))
        for depth, scale in ((2, 1e-2), (3, 0.05), (4, 0.15)):
            yield "drawn", linear_network(depth, strengths), seed, scale / shrink
        yield "drawn", attention(tuple(0.5 * value for value in strengths), 20, 4), seed, 0.03 / shrink
        yield "drawn", tensor(strengths, 5), seed, 0.03 / shrink
        yield "drawn", quadratic_units(strengths, 5), seed, 0.03 / shrink
        yield "drawn", lags(int(rng.integers(5, 20)), 0.1), seed, 0.03 / shrink


def _compare(case: Case, seed: int, scale: float, tally: Tally) -> None:
    run = case.run(seed, scale)
    tally.runs += 1
    for rung in ss.saddle_ladder(run, case.loss):
        where = f"seed {seed}, scale {scale:.3g}, rung {rung.label} at t = {rung.t:.4g}"
        tally.missed += [f"{where}: {what}" for what in _wrong(rung, run, case)]
        if rung.law is None and rung.t < run.time[-1] and "minimum" not in rung.label:
            tally.silent.append(f"no law: {where}: {rung.note}")
        if rung.law is None:
            continue
        tally.laws[rung.law] = tally.laws.get(rung.law, 0) + 1
        if rung.predicted_escape is not None and rung.measured_escape is not None:
            tally.errors.append(abs(rung.predicted_escape / rung.measured_escape - 1))
            tally.ahead.append(abs((rung.predicted_escape - rung.t) / (rung.measured_escape - rung.t) - 1))


def _wrong(rung: ss.Rung, run: ss.Run, case: Case) -> Iterator[str]:
    """What a rung states that does not hold."""
    if bool(rung.rates) != (rung.law == "linear") or (rung.law and rung.remainder is None):
        yield f"law {rung.law} with rates {rung.rates[:1]}, remainder {rung.remainder}"
    c, known = rung.coefficient, case.origin
    at_origin = rung.loss is not None and np.isclose(rung.loss, _at_zero(run, case))
    if c is not None and known is not None and at_origin and abs(c / known - 1) > COEFFICIENT:
        yield f"c {c:.5g}, expected {known:.5g}"
    if rung.predicted_escape is not None and rung.measured_escape is not None:
        error = abs(rung.predicted_escape / rung.measured_escape - 1)
        if error > (DRIFT if rung.law == "drift" else WITHIN):
            times = f"predicted {rung.predicted_escape:.5g}, measured {rung.measured_escape:.5g}"
            yield f"{rung.law}: {times}, remainder {rung.remainder:.2g}"


def _at_zero(run: ss.Run, case: Case) -> float:
    return case.loss.value({name: np.zeros_like(block[0]) for name, block in run.params.items()})
