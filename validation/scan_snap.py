"""Scan and snap against published and independently measured numbers; sources in each row."""

import numpy as np

import stagescope as ss
from stagescope.papers.scan_snap.figures import numbers
from stagescope.progress import Progress

SEEDS = 40
_PAGE = "independent implementation"


def main() -> bool:
    rows = [*_events(), *_figures(), *_lengths(), *_collapse()]
    print(f"{'what':<44} {'measured':>10} {'expected':>18}  source")
    for what, value, low, high, source in rows:
        mark = "" if low <= value <= high else "   DOES NOT HOLD"
        print(f"{what:<44} {value:>10.4f} {f'[{low:.4g}, {high:.4g}]':>18}  {source}{mark}")
    return all(low <= value <= high for _, value, low, high, _ in rows)


def _events():
    expected = {1.0: (9.0, 15.2, 12.5, 92.0), 10.0: (3.5, 13.7, 1.6, 38.0)}
    for rate_y, values in expected.items():
        found = ss.stages(ss.run_study("scan-snap", rate_y=rate_y, progress=False)).events
        for (name, when), value in zip(found.items(), values, strict=True):
            shown = when if when is not None else float("nan")
            yield f"Syn-Small flow, rates ({rate_y:g}, 1): {name}", shown, 0.95 * value, 1.05 * value, _PAGE


def _figures():
    panels = numbers.syn_small(Progress())["panels"]
    for panel, value in zip(panels, (1.936, 2.087), strict=True):
        yield (
            f"figure 4, entropy at step 99, eta_Y {panel['rate_y']:g}",
            panel["entropy_at_99"][0],
            value - 0.03,
            value + 0.03,
            _PAGE,
        )
    for panel, (low, high) in zip(numbers.adam(Progress())["panels"], ((2, 4), (4, 6), (7, 9)), strict=True):
        yield f"figure 5, leading token, Adam rate {panel['lr']:g}", panel["top"], low, high, _PAGE
    gap = numbers.entropy_grid(Progress())["mean_abs_difference"]
    yield "figure 6, mean |difference| over 64 cells", gap, 0.0, 0.02, "published means"


def _lengths():
    limit = _entropy()
    for length, gap in ((32, 0.126), (128, 0.044), (512, 0.015)):
        mean = float(np.mean([_entropy(length=length, seed=seed) for seed in range(SEEDS)]))
        yield f"entropy gap to infinite length, L = {length}", limit - mean, 0.7 * gap, 1.3 * gap, _PAGE


def _entropy(**options) -> float:
    run = ss.run_study("scan-snap", optimizer="heavy-ball", steps=100, record="uniform", frames=3, progress=False, **options)
    curves = ss.class_attention(run)
    return float(curves.mean(curves.entropy)[-1])


def _collapse():
    found = numbers.collapse(Progress())
    yield "transition time, slope in eta_Y", found["slopes"]["eta_Y"], -1.1, -0.9, "t0 = K ln M / eta_Y"
    yield "transition time, slope in K", found["slopes"]["K"], 0.9, 1.1, "t0 = K ln M / eta_Y"
    for name, ratio in zip(("least", "largest"), found["ratio"], strict=True):
        yield f"t* eta_Y / (K ln M), {name}", ratio, 0.75, 1.15, _PAGE
