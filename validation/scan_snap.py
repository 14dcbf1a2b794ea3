"""Scan and snap against its reference numbers (reference.json of the paper); the source of each number is in its row."""

from collections.abc import Iterator

import numpy as np

import stagescope as ss
from stagescope.papers.published import published
from stagescope.papers.scan_snap import figures
from stagescope.progress import Progress

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
    found, reference = figures.collapse(Progress()), published("stagescope.papers.scan_snap")
    for name, value in reference["transition_slopes"].value.items():
        yield _row(f"transition time, slope in {name}", found["slopes"][name], "transition_slopes", value)
    low, high = reference["transition_ratio"].value
    for name, ratio in zip(("least", "largest"), found["ratio"], strict=True):
        yield f"t* eta_Y / (K ln M), {name}", ratio, low, high, "transition_ratio"
