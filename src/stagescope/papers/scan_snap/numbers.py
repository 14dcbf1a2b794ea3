"""Final numbers of scan-and-snap runs: of one run, or of many runs trained in one kernel call."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from stagescope.papers.scan_snap.loss import Pairing
from stagescope.papers.scan_snap.observables import law_of
from stagescope.papers.scan_snap.process import SequenceClasses
from stagescope.papers.scan_snap.setup import setup
from stagescope.papers.scan_snap.study import MEDIUM_LAST, MEDIUM_RATIO, MEDIUM_Z, SEEDS
from stagescope.papers.scan_snap.supports import Supports
from stagescope.papers.study import final_loss
from stagescope.runs.run import Run


def numbers(run: Run) -> dict[str, float]:
    """Final loss, and class attention at the end."""
    return {**final_loss(run), **_attention(law_of(run), run.params["Z"][-1])} if run.frames else {}


def _attention(law: Pairing, z: np.ndarray) -> dict[str, float]:
    """Entropy of class attention on distinct tokens, and its mass on common ones; means over classes, weighted by the prior."""
    on, weights = Supports.of_law(law), law.process.weights
    found = on.attention(z[on.row, on.key])
    return {"entropy": float(on.entropy(found) @ weights), "common_mass": float(on.sums(found * on.common) @ weights)}


def many(options: Sequence[Any], seeds: Sequence[int]) -> list[dict[str, float] | None]:
    """Numbers of sampled heavy-ball runs, one kernel call per problem; None for all other runs and for runs that diverged."""
    may_differ = dict.fromkeys(("rate_y", "rate_z", "lr"))  # runs that differ in these, or in the seed, share one call
    groups: dict[Any, list[int]] = {}
    for place, each in enumerate(options):
        if each.optimizer == "heavy-ball" and each.length is not None:
            groups.setdefault(each.model_copy(update=may_differ).model_dump_json(), []).append(place)
    found: list[dict[str, float] | None] = [None] * len(options)
    for places in groups.values():
        numbers = _trained([options[place] for place in places], [seeds[place] for place in places])
        for place, each in zip(places, numbers, strict=True):
            found[place] = each
    return found


def _trained(options: Sequence[Any], seeds: Sequence[int]) -> list[dict[str, float] | None]:
    """Numbers of runs of one problem that differ in rates and seed."""
    first = options[0]
    problem: Any = setup(first, seeds[0]).what
    lr_y, lr_z = (np.array([each.lr * getattr(each, name) for each in options]) for name in ("rate_y", "rate_z"))
    many = np.array(seeds, dtype=np.int64)
    y, z, taken = problem.train_many(many, first.init_scale, lr_y, lr_z, steps=first.steps, decay=first.momentum)
    return [
        {"loss": float(problem.value({"Y": y[i], "Z": z[i]})), **_attention(problem, z[i])} if taken[i] == first.steps else None
        for i in range(len(options))
    ]


def figure_six() -> list[dict[str, Any]]:
    """Options of the 640 runs of figure 6, each with its own seed, as in `reproduce`."""
    rows = []
    for last in MEDIUM_LAST:
        scale = SequenceClasses.synthetic(last, 2, 10, 10).vocab ** -0.5
        cells = [(z, ratio) for z in MEDIUM_Z for ratio in MEDIUM_RATIO for _ in range(SEEDS)]
        rows += [
            {"num_last": last, "rate_z": z, "rate_y": z * ratio, "init_scale": scale, "seed": seed}
            for seed, (z, ratio) in enumerate(cells)
        ]
    return rows
