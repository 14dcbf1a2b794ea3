"""Tiny starts: how much later E1, E2 and E3 come for a start ten times smaller, from 1e-3 down to 1e-13, on two chains.

The delay of E1 is ln 10 over the rate at the origin. Those of E2 and E3 change slowly with the start, because several modes
compete; the flow to a hundredth of both tolerances gives them too. A smaller start than the limit is refused.
"""

import numpy as np

from stagescope.core.errors import InputError
from stagescope.flow.dynamics import TINIEST
from stagescope.flow.evolve import evolve
from stagescope.flow.gradient_flow import GradientFlow
from stagescope.readings.reading import reading
from stagescope.readings.registry import study

CHAINS = {"ref": 2050.0, "zipf": 3300.0}
"""Presets of focus-dilution, with the time by which E3 has come for the smallest start."""
DECADES = range(3, 14)
CLOSE = 0.01
EVENTS = ("E1", "E2", "E3")


def main() -> bool:
    holds = [_chain(preset, until) for preset, until in CHAINS.items()]
    return all(holds) and _refused()


def _chain(preset: str, until: float) -> bool:
    usual = [_events(preset, until, 10.0**-decade) for decade in DECADES]
    tight = [_events(preset, until, 10.0**-decade, tight=True) for decade in DECADES]
    pi = np.array(study("focus-dilution").configured(preset).pi)  # pyright: ignore[reportAttributeAccessIssue]
    expected = float(np.log(10) / (np.linalg.norm(pi) * np.linalg.norm(pi - 1 / len(pi))))
    print(f"{preset}: delay of an event for a start ten times smaller, then in the tighter flow; E1 predicted {expected:.3f}")
    worst = 0.0
    for k, decade in enumerate(DECADES[1:]):
        slopes, other = np.subtract(usual[k + 1], usual[k]), np.subtract(tight[k + 1], tight[k])
        gaps = np.append(slopes / other, slopes[0] / expected) - 1
        worst = max(worst, float(np.max(np.abs(gaps))) if np.all(np.isfinite(gaps)) else np.inf)
        pairs = "   ".join(f"{name} {a:8.3f} {b:8.3f}" for name, a, b in zip(EVENTS, slopes, other, strict=True))
        print(f"1e-{decade - 1} to 1e-{decade}:  {pairs}", flush=True)
    print(f"largest difference {worst:.2%} (at most {CLOSE:.0%})")
    return worst < CLOSE


def _events(preset: str, until: float, scale: float, tight: bool = False) -> list[float]:
    found = study("focus-dilution")
    plan = found.setup(found.configured(preset, init_scale=scale, until=until), 0)
    flow = GradientFlow(rtol=1e-12, atol=1e-12 * scale) if tight else plan.dynamics
    run = evolve(plan.what, plan.params, flow, until=until, record=plan.record, progress=False)
    events = reading(run).stages.events
    return [np.nan if (when := events.get(name)) is None else when for name in EVENTS]


def _refused() -> bool:
    try:
        _events("ref", 10.0, TINIEST / 10)
    except InputError as error:
        print(f"refused: {error}")
        return True
    return False


if __name__ == "__main__":
    raise SystemExit(0 if main() else 1)
