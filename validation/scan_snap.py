"""Scan and snap against its reference numbers (reference.json of the paper); the source of each number is in its row."""

from collections.abc import Iterator

import numpy as np

import stagescope as ss
from stagescope.core.progress import Progress
from stagescope.detect.events import peak
from stagescope.papers.scan_snap import forms
from stagescope.readings.published import published
from stagescope.readings.study import reproduction

figures = reproduction("scan_snap").figures
Row = tuple[str, float, float, float, str]
"""What is compared, the measured value, the lowest and the highest value allowed, and the name of the reference number."""


def main() -> bool:
    rows = [*_events(), *_figures(), *_lengths(), *_collapse()]
    reference = published("stagescope.papers.scan_snap")
    print(f"{'what':<44} {'measured':>10} {'expected':>18}  source")
    for what, value, low, high, name in rows:
        mark = "" if low <= value <= high else "   DOES NOT HOLD"
        source = reference[name].source.split(";")[0]
        print(f"{what:<44} {value:>10.4f} {f'[{low:.4g}, {high:.4g}]':>18}  {source}{mark}")
    return all(low <= value <= high for _, value, low, high, _ in rows)


def _row(what: str, measured: float, name: str, value: float, *, relative: bool = False) -> Row:
    """A comparison with one value of a reference number, with its tolerance."""
    tolerance = published("stagescope.papers.scan_snap")[name].tolerance
    assert tolerance is not None
    room = tolerance * abs(value) if relative else tolerance
    return what, measured, value - room, value + room, name


def _events() -> Iterator[Row]:
    for rate_y, events in published("stagescope.papers.scan_snap")["flow_events"].value.items():
        found = ss.stages(ss.run_study("scan-snap", rate_y=float(rate_y), progress=False)).events
        for name, value in events.items():
            when = found[name]
            shown = when if when is not None else float("nan")
            yield _row(f"Syn-Small flow, rates ({rate_y}, 1): {name}", shown, "flow_events", value, relative=True)


def _figures() -> Iterator[Row]:
    reference = published("stagescope.papers.scan_snap")
    for panel in figures.syn_small(Progress())["panels"]:
        rate = f"{panel['rate_y']:g}"
        value = reference["figure_4_entropy"].value[rate]
        yield _row(f"figure 4, entropy at step 99, eta_Y {rate}", panel["entropy_at_99"][0], "figure_4_entropy", value)
    for panel in figures.adam(Progress())["panels"]:
        low, high = reference["figure_5_leading_token"].value[f"{panel['lr']:g}"]
        yield f"figure 5, leading token, Adam rate {panel['lr']:g}", panel["top"], low, high, "figure_5_leading_token"
    gap = figures.entropy_grid(Progress())["mean_abs_difference"]
    yield _row("figure 6, mean |difference| over 64 cells", gap, "figure_6_entropy", 0.0)


def _lengths(seeds: int = 40) -> Iterator[Row]:
    limit = _entropy()
    for length, gap in published("stagescope.papers.scan_snap")["length_gap"].value.items():
        mean = float(np.mean([_entropy(length=int(length), seed=seed) for seed in range(seeds)]))
        yield _row(f"entropy gap to infinite length, L = {length}", limit - mean, "length_gap", gap, relative=True)


def _entropy(**options) -> float:
    run = ss.run_study("scan-snap", optimizer="heavy-ball", steps=100, record="uniform", frames=3, progress=False, **options)
    curves = ss.class_attention(run)
    return float(curves.mean(curves.entropy)[-1])


def _collapse() -> Iterator[Row]:
    """Transition times of the flow with one common token against K ln M / eta_Y, and log-log slopes."""
    reference = published("stagescope.papers.scan_snap")
    grid = [(K, M, rate) for K in (2, 5, 10, 20) for M in (300, 1000, 10_000) for rate in (30.0, 100.0, 300.0)]
    times = np.array([_transition(*setting) for setting in grid])
    ratios = times / [forms.t0_prime(outputs, classes, rate) for classes, outputs, rate in grid]
    logs = np.log([[rate, classes, np.log(outputs)] for classes, outputs, rate in grid])
    slopes = np.linalg.lstsq(np.column_stack([logs, np.ones(len(grid))]), np.log(times), rcond=None)[0]
    for name, slope in zip(("eta_Y", "K", "ln M"), slopes, strict=False):
        value = reference["transition_slopes"].value[name]
        yield _row(f"transition time, slope in {name}", float(slope), "transition_slopes", value)
    low, high = reference["transition_ratio"].value
    for name, ratio in (("least", float(ratios.min())), ("largest", float(ratios.max()))):
        yield f"t* eta_Y / (K ln M), {name}", ratio, low, high, "transition_ratio"


def _transition(classes: int, outputs: int, rate_y: float) -> float:
    """t*: when the winners' scores grow fastest."""
    until = 4 * forms.t0_prime(outputs, classes, rate_y)
    made = {"num_last": classes, "num_common": 1, "vocab": outputs, "rate_y": rate_y, "until": until, "frames": 300}
    run = ss.run_study("scan-snap", progress=False, **made)
    curves = ss.class_attention(run)
    top = peak(run.t, curves.mean(curves.dz[:, curves.winners]))
    assert top is not None, "the winner's growth did not pass its peak within 4 t0"
    return top[0]
