"""Focus and dilution: `ref` and `flow-skewed` against the numbers of independent implementations (reference.json)."""

import stagescope as ss
from stagescope.papers.focus_dilution.observables import token_curves
from stagescope.readings.published import published

REFERENCE = published("stagescope.papers.focus_dilution")


def main() -> bool:
    rows = [*_events(), *_rows(), *_eps()]
    print(f"{'what':<44} {'measured':>10} {'expected':>18}")
    for what, value, low, high in rows:
        mark = "" if low <= value <= high else "   DOES NOT HOLD"
        print(f"{what:<44} {value:>10.4f} {f'[{low:.4g}, {high:.4g}]':>18}{mark}")
    return all(low <= value <= high for _, value, low, high in rows)


def _events():
    """The range over about twenty seeds; ours are other seeds, so a quarter of its width more is allowed at each end."""
    for preset, spread in REFERENCE["events"].value.items():
        for seed in range(3):
            found = ss.stages(ss.run_study("focus-dilution", preset, seed=seed, progress=False)).events
            for event, (low, high) in spread.items():
                room = 0.25 * (high - low)
                yield f"{preset}, seed {seed}: {event}", found[event] or float("nan"), low - room, high + room


def _rows():
    run = ss.run_study("focus-dilution", "ref", frames=3000, progress=False)
    curves, events = token_curves(run), ss.stages(run).events
    for name, extreme in (("peaks", max), ("troughs", min)):
        expected = REFERENCE[name]
        for row, value in expected.value["ref"].items():
            cycle = (run.t >= (events[f"focus{row}"] or 0) - 2) & (run.t <= (events["E2"] or 0))
            found = float(extreme(curves.attention[cycle, int(row), 0]))
            yield f"ref, {name}: row {row}", found, value - expected.tolerance, value + expected.tolerance


def _eps():
    """Delay per decade of the initial scale between 1e-4 and 1e-5."""
    times = []
    for eps in (1e-4, 1e-5):
        found = ss.stages(ss.run_study("focus-dilution", init_scale=eps, progress=False)).events
        times.append([found[name] or float("nan") for name in ("E1", "Q1", "E2")])
    legs = [(e1, q1 - e1, e2 - q1) for e1, q1, e2 in times]
    expected = REFERENCE["eps_delays_predicted"]
    room = expected.tolerance or 0.0
    for (name, delay), first, second in zip(expected.value.items(), *legs, strict=True):
        yield f"ref: {name} per decade of eps", second - first, (1 - room) * delay, (1 + room) * delay
