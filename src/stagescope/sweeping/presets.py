"""Named sweeps: a study's preset with grids, seeds and measures that answer a question of its paper."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from stagescope.errors import unknown
from stagescope.papers.registry import STUDIES

if TYPE_CHECKING:
    from stagescope.sweeping.plan import Measure


@dataclass(frozen=True)
class SweepPreset:
    """A sweep of a study by name; `preset` and `options` stay, grid or table are swept, `color` is the column that answers."""

    title: str
    preset: str | None
    options: Mapping[str, Any] = field(default_factory=dict)
    grid: Mapping[str, str] = field(default_factory=dict)
    table: Callable[[], list[dict[str, Any]]] | None = None
    seeds: int | None = None
    measures: "tuple[Measure, ...]" = ("events", "numbers")
    color: str | None = None


def figure_six() -> list[dict[str, Any]]:
    """The 640 runs of figure 6 of scan and snap, each with a seed of its own, as `reproduce` makes them."""
    from stagescope.papers.scan_snap.process import SequenceClasses
    from stagescope.papers.scan_snap.study import MEDIUM_LAST, MEDIUM_RATIO, MEDIUM_Z, SEEDS

    rows = []
    for last in MEDIUM_LAST:
        scale = SequenceClasses.synthetic(last, 2, 10, 10).vocab ** -0.5
        cells = [(z, ratio) for z in MEDIUM_Z for ratio in MEDIUM_RATIO for _ in range(SEEDS)]
        rows += [
            {"num_last": last, "rate_z": z, "rate_y": z * ratio, "init_scale": scale, "seed": seed}
            for seed, (z, ratio) in enumerate(cells)
        ]
    return rows


PRESETS: dict[str, dict[str, SweepPreset]] = {
    "focus-dilution": {
        "focus-defocus": SweepPreset(
            "where attention first focuses on the frequent token, and where it turns away from it",
            preset=None,
            options={"until": 3000.0},
            grid={"pi0": "0.3:0.6:7", "persistence": "-0.12:0.6:10", "delta": "0,0.02"},
            color="first_move",
        ),
        "stalls": SweepPreset(
            "where the second embedding direction has not opened by t = 1e5",
            preset="stall",
            options={"until": 1e5, "frames": 400},
            grid={"pi0": "0.35:0.65:7", "persistence": "0.2:0.7:6", "delta": "0,0.001,0.01"},
            color="E2",
        ),
        "linearisation": SweepPreset(
            "where linearising at the saddles predicts what a run does",
            preset=None,
            options={"until": 2000.0},
            grid={"init_scale": "1e-4:1e-1:7:log", "pi.0": "0.3:0.7:5", "persistence": "0.3,0.6"},
            measures=("events", "verdicts", "numbers"),
            color="FD:linear-condensed",
        ),
    },
    "incremental": {
        "escape": SweepPreset(
            "when heads leave plateau 1, over heads, importance ratio and initial scale",
            preset="gd-ladder",
            grid={"heads": "2,3,4", "importance_ratio": "1.3,1.7,2.2", "init_scale": "1e-4:1e-1:4:log"},
            color="t2",
        ),
    },
    "scan-snap": {
        "figure-6": SweepPreset(
            "entropy on distinct tokens over rates and number of classes: the 640 runs of figure 6",
            preset="figure-6",
            table=figure_six,
            measures=("numbers",),
            color="entropy",
        ),
    },
}


def preset_of(study: str, name: str | None) -> SweepPreset | None:
    """The sweep preset of that name; None where it is a preset of the study alone, or none is named."""
    if name is None:
        return None
    if name not in {**PRESETS.get(study, {}), **STUDIES[study].presets}:
        raise unknown(f"preset of {study}", name, {**PRESETS.get(study, {}), **STUDIES[study].presets})
    return PRESETS.get(study, {}).get(name)


def color_of(study: str, name: str | None) -> str | None:
    """The column that answers the question of a named sweep; None of any other, also of one that is no longer there."""
    named = PRESETS.get(study, {}).get(name or "")
    return None if named is None else named.color
